// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The merge loop of SPM and BPE: a heap of candidate pairs over a row of symbols, O(n log n) for n symbols.
// Entries of the heap are never removed early; a stale one is known by its priority, which the pair that
// stands there now does not have. If it has the same one, the entry is as good as that of the pair.
#include "core/checked.h"
#include "models/text/tokenizer/tokenizer_impl.h"

enum { HEAP_KEPT = 1 << 16 }; // entries, 512 KB: a larger heap is freed before the ids need memory

tn_status tn_encoder_reserve(tn_encoder *e, void **array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return TN_OK;
    size_t grown = TN_MAX(need, *capacity < SIZE_MAX / 2 ? *capacity * 2 : need), bytes;
    if (!tn_mul_size(grown, size, &bytes)) return tn_fail(e->ctx, TN_ERR_MEMORY, "text is too long");
    tn_free(e->ctx, *array);
    *capacity = 0;
    *array = tn_alloc(e->ctx, bytes);
    if (*array == NULL) return TN_ERR_MEMORY;
    *capacity = grown;
    return TN_OK;
}

tn_status tn_symbols_begin(tn_encoder *e)
{
    void *array = e->symbols;
    tn_status status = tn_encoder_reserve(e, &array, &e->symbols_capacity, e->text.size, sizeof *e->symbols);
    e->symbols = array;
    e->n_symbols = 0;
    return status;
}

void tn_symbols_add(tn_encoder *e, int32_t id, size_t start, size_t size)
{
    e->symbols[start + size - 1].size = (uint32_t)size;
    e->symbols[start] = (tn_symbol){id, (uint32_t)size};
    e->n_symbols++;
}

static bool before(const tn_candidate *a, const tn_candidate *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->left < b->left;
}

static void heap_push(tn_encoder *e, tn_candidate c)
{
    size_t i = e->n_heap++;
    for (; i > 0 && before(&c, &e->heap[(i - 1) / 2]); i = (i - 1) / 2) e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = c;
}

static tn_candidate heap_pop(tn_encoder *e)
{
    tn_candidate top = e->heap[0], last = e->heap[--e->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < e->n_heap; i = child) {
        if (child + 1 < e->n_heap && before(&e->heap[child + 1], &e->heap[child])) child++;
        if (!before(&e->heap[child], &last)) break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = last;
    return top;
}

// What the symbol at `left` gives with the one behind it, if there is one.
static bool find_merge(const tn_encoder *e, size_t left, tn_merge *out)
{
    size_t right = left + e->symbols[left].size;
    return right < e->text.size && e->t->kind->pair(e, left, right, out);
}

static void queue_pair(tn_encoder *e, size_t left)
{
    tn_merge m;
    if (find_merge(e, left, &m)) heap_push(e, (tn_candidate){m.priority, (uint32_t)left});
}

static void queue_all(tn_encoder *e)
{
    e->n_heap = 0;
    for (size_t i = 0; i < e->text.size; i += e->symbols[i].size) queue_pair(e, i);
}

static void join(tn_encoder *e, size_t left, int32_t id)
{
    size_t right = left + e->symbols[left].size;
    uint32_t size = e->symbols[left].size + e->symbols[right].size;
    e->symbols[right].id = TN_ID_INSIDE;
    e->symbols[left + size - 1].size = size;
    e->symbols[left] = (tn_symbol){id, size};
}

tn_status tn_symbols_merge(tn_encoder *e)
{
    // A merge takes one entry and adds two, so stale ones collect. The pairs that are there now are fewer
    // than the symbols: when the heap is full, it is made anew, at most three times with an eighth of them
    // free.
    size_t capacity = e->n_symbols + e->n_symbols / 8 + 2;
    void *array = e->heap;
    tn_status status = tn_encoder_reserve(e, &array, &e->heap_capacity, capacity, sizeof *e->heap);
    e->heap = array;
    if (status != TN_OK) return status;
    queue_all(e);
    while (e->n_heap > 0) {
        tn_candidate c = heap_pop(e);
        tn_merge m;
        if (e->symbols[c.left].id == TN_ID_INSIDE || !find_merge(e, c.left, &m) || m.priority != c.priority)
            continue;
        join(e, c.left, m.id);
        if (e->n_heap + 2 > e->heap_capacity) {
            queue_all(e);
            continue;
        }
        if (c.left > 0) queue_pair(e, c.left - e->symbols[c.left - 1].size);
        queue_pair(e, c.left);
    }
    if (e->heap_capacity > HEAP_KEPT) {
        tn_free(e->ctx, e->heap);
        e->heap = NULL;
        e->heap_capacity = 0;
    }
    return TN_OK;
}

tn_status tn_symbols_emit(tn_encoder *e, size_t ids_per_byte,
                          tn_status (*spell)(tn_encoder *e, const char *text, size_t n))
{
    const tn_symbol *s = e->symbols;
    size_t n = e->text.size, n_ids = 0;
    for (size_t i = 0; i < n; i += s[i].size)
        n_ids += s[i].id >= 0 && s[i].id < e->t->n_tokens ? 1 : ids_per_byte * s[i].size;
    tn_status status = tn_tokens_reserve(e->out, n_ids);
    for (size_t i = 0; i < n && status == TN_OK; i += s[i].size) {
        bool is_token = s[i].id >= 0 && s[i].id < e->t->n_tokens;
        status = is_token ? tn_tokens_push(e->out, s[i].id) : spell(e, e->text.data + i, s[i].size);
    }
    return status;
}
