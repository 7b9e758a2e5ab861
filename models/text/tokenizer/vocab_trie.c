// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/text/tokenizer/vocab_trie.h"

#include "models/text/tokenizer/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *text;
    uint32_t size;
    int32_t id;
} entry;

static int by_bytes(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = memcmp(x->text, y->text, TN_MIN(x->size, y->size));
    if (order != 0) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static bool is_text(const tn_tokenizer *t, int32_t id)
{
    int32_t type = tn_tokenizer_type(t, id);
    return type != TN_TOKEN_CONTROL && type != TN_TOKEN_UNKNOWN && type != TN_TOKEN_UNUSED &&
           !tn_tokenizer_is_eog(t, id);
}

static tn_status read_pieces(tn_vocab_trie *v, const tn_tokenizer *t)
{
    for (int32_t id = 0; id < v->n_tokens; id++) {
        bool ends = tn_tokenizer_is_eog(t, id);
        v->same[id] = -1;
        v->start[id] = (uint32_t)v->bytes.size;
        if (ends) v->ends[v->n_ends++] = id;
        if (!is_text(t, id)) continue;
        tn_status status = tn_tokenizer_piece(t, id, false, &v->bytes);
        if (status != TN_OK) return status;
        if (v->bytes.size - v->start[id] > TN_PIECE_MAX) v->bytes.size = v->start[id];
        if (v->bytes.size > UINT32_MAX / 2)
            return tn_fail(v->ctx, TN_ERR_MODEL, "grammar: the tokens have more than 2 GiB of text");
    }
    v->start[v->n_tokens] = (uint32_t)v->bytes.size;
    return TN_OK;
}

static uint32_t common(const entry *a, const entry *b)
{
    uint32_t n = 0, most = TN_MIN(a->size, b->size);
    while (n < most && a->text[n] == b->text[n]) n++;
    return n;
}

// open[d]: the node at depth d on the path to the entry before.
static void add_nodes(tn_vocab_trie *v, const entry *e, uint32_t shared, uint32_t *open, uint32_t *n_open)
{
    for (; *n_open > shared; --*n_open) v->nodes[open[*n_open]].end = v->n_nodes;
    for (uint32_t d = shared; d < e->size; d++) {
        open[++*n_open] = v->n_nodes;
        v->nodes[v->n_nodes++] =
            (tn_trie_node){.token = -1, .depth = (uint16_t)(d + 1), .byte = (uint8_t)e->text[d]};
    }
    tn_trie_node *last = &v->nodes[open[*n_open]];
    v->same[e->id] = last->token;
    last->token = e->id;
}

static uint32_t taller(const tn_vocab_trie *v, uint32_t first, uint32_t end)
{
    uint32_t height = 0;
    for (uint32_t i = first; i < end; i = v->nodes[i].end) height = TN_MAX(height, v->nodes[i].height + 1u);
    return TN_MIN(height, (uint32_t)TN_TRIE_TALL);
}

// The descendants of a node follow it in the array.
static void measure(tn_vocab_trie *v)
{
    for (uint32_t i = v->n_nodes; i-- > 0;) v->nodes[i].height = (uint8_t)taller(v, i + 1, v->nodes[i].end);
    v->height = taller(v, 0, v->n_nodes);
}

static tn_status build(tn_vocab_trie *v, entry *entries, size_t n)
{
    uint32_t open[TN_PIECE_MAX + 1] = {0}, n_open = 0;
    size_t n_nodes = 0;
    qsort(entries, n, sizeof *entries, by_bytes);
    for (size_t i = 0; i < n; i++)
        n_nodes += entries[i].size - (i ? common(&entries[i - 1], &entries[i]) : 0);
    v->nodes = tn_calloc(v->ctx, n_nodes, sizeof *v->nodes);
    if (!v->nodes) return TN_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        add_nodes(v, &entries[i], i ? common(&entries[i - 1], &entries[i]) : 0, open, &n_open);
    for (; n_open > 0; n_open--) v->nodes[open[n_open]].end = v->n_nodes;
    measure(v);
    return TN_OK;
}

static tn_status fill(tn_vocab_trie *v, const tn_tokenizer *t)
{
    size_t n = (size_t)v->n_tokens, n_entries = 0;
    v->same = tn_calloc(v->ctx, n, sizeof *v->same);
    v->start = tn_calloc(v->ctx, n + 1, sizeof *v->start);
    v->ends = tn_calloc(v->ctx, n, sizeof *v->ends);
    if (!v->same || !v->start || !v->ends) return TN_ERR_MEMORY;
    tn_status status = read_pieces(v, t);
    if (status != TN_OK) return status;
    entry *entries = tn_calloc(v->ctx, n, sizeof *entries);
    if (!entries) return TN_ERR_MEMORY;
    for (int32_t id = 0; id < v->n_tokens; id++) {
        uint32_t size = v->start[id + 1] - v->start[id];
        if (size > 0) entries[n_entries++] = (entry){v->bytes.data + v->start[id], size, id};
    }
    status = build(v, entries, n_entries);
    tn_free(v->ctx, entries);
    return status;
}

tn_status tn_vocab_trie_create(tn_context *ctx, const tn_tokenizer *t, tn_vocab_trie **out)
{
    tn_vocab_trie *v = tn_calloc(ctx, 1, sizeof *v);
    if (!v) return TN_ERR_MEMORY;
    v->ctx = ctx;
    v->n_tokens = tn_tokenizer_n_tokens(t);
    tn_strbuf_init(&v->bytes, ctx);
    tn_status status = fill(v, t);
    if (status != TN_OK)
        tn_vocab_trie_destroy(&v);
    else
        *out = v;
    return status;
}

void tn_vocab_trie_destroy(tn_vocab_trie **trie)
{
    if (!trie || !*trie) return;
    tn_vocab_trie *v = *trie;
    tn_strbuf_fini(&v->bytes);
    tn_free(v->ctx, v->ends);
    tn_free(v->ctx, v->start);
    tn_free(v->ctx, v->same);
    tn_free(v->ctx, v->nodes);
    tn_free(v->ctx, v);
    *trie = NULL;
}

tn_status tn_vocab_trie_of(const tn_tokenizer *t, const tn_vocab_trie **out)
{
    // Acquire and release: a thread that reads the pointer also sees the whole tree.
    tn_vocab_trie *v = atomic_load_explicit(t->trie, memory_order_acquire), *none = NULL;
    if (!v) {
        tn_status status = tn_vocab_trie_create(t->ctx, t, &v);
        if (status != TN_OK) return status;
        if (!atomic_compare_exchange_strong_explicit(t->trie, &none, v, memory_order_acq_rel,
                                                     memory_order_acquire)) {
            tn_vocab_trie_destroy(&v); // another thread was first
            v = none;
        }
    }
    *out = v;
    return TN_OK;
}
