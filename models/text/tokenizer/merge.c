// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The merge loop of SPM and BPE: a heap of candidate pairs over a doubly linked list of symbols,
// O(n log n) for n symbols. Entries are never removed early; a stale one is known by its length.
#include "core/checked.h"
#include "models/text/tokenizer/tokenizer_impl.h"

tn_status tn_encoder_reserve(tn_encoder *e, void **array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return TN_OK;
    size_t grown = TN_MAX(need, *capacity < SIZE_MAX / 2 ? *capacity * 2 : need), bytes;
    if (!tn_mul_size(grown, size, &bytes)) return tn_fail(e->ctx, TN_ERR_MEMORY, "text is too long");
    void *p = tn_realloc(e->ctx, *array, *capacity * size, bytes);
    if (p == NULL) return TN_ERR_MEMORY;
    *array = p;
    *capacity = grown;
    return TN_OK;
}

tn_status tn_encoder_add_symbol(tn_encoder *e, int32_t id, uint32_t start, uint32_t size)
{
    void *array = e->symbols;
    tn_status status =
        tn_encoder_reserve(e, &array, &e->symbols_capacity, e->n_symbols + 1, sizeof *e->symbols);
    e->symbols = array;
    if (status != TN_OK) return status;
    int32_t i = (int32_t)e->n_symbols++;
    e->symbols[i] = (tn_symbol){id, start, size, i - 1, -1};
    if (i > 0) e->symbols[i - 1].next = i;
    return TN_OK;
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

static void queue_pair(tn_encoder *e, int32_t left, int32_t right)
{
    if (left < 0 || right < 0) return;
    const tn_symbol *l = &e->symbols[left], *r = &e->symbols[right];
    tn_candidate c = {.left = left, .right = right, .size = l->size + r->size};
    if (e->t->kind->pair(e, l, r, &c)) heap_push(e, c);
}

tn_status tn_merge_symbols(tn_encoder *e)
{
    // n - 1 pairs at the start; each of at most n - 1 merges takes one away and adds two.
    void *array = e->heap;
    tn_status status = tn_encoder_reserve(e, &array, &e->heap_capacity, 2 * e->n_symbols, sizeof *e->heap);
    e->heap = array;
    if (status != TN_OK) return status;
    e->n_heap = 0;
    for (size_t i = 1; i < e->n_symbols; i++) queue_pair(e, (int32_t)i - 1, (int32_t)i);
    while (e->n_heap > 0) {
        tn_candidate c = heap_pop(e);
        tn_symbol *left = &e->symbols[c.left], *right = &e->symbols[c.right];
        if (left->size == 0 || right->size == 0 || left->size + right->size != c.size) continue;
        left->size = c.size;
        left->id = c.merged;
        left->next = right->next;
        if (right->next >= 0) e->symbols[right->next].prev = c.left;
        right->size = 0;
        queue_pair(e, left->prev, c.left);
        queue_pair(e, c.left, left->next);
    }
    return TN_OK;
}
