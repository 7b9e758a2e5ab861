// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/cache/cache.h"

#include "core/checked.h"

#include <string.h>

enum { PART_ALIGN = 64 };

// Every sequence may have one partly filled block.
int32_t tn_cache_n_blocks(int32_t n_ctx, int32_t n_seq)
{
    return (n_ctx - 1) / TN_CACHE_BLOCK + 1 + (n_seq - 1);
}

size_t tn_cache_part_size(int32_t n_blocks, size_t row_size)
{
    size_t bytes;
    if (!tn_mul_size(row_size, TN_CACHE_BLOCK * (size_t)n_blocks, &bytes) ||
        !tn_round_up_size(bytes, PART_ALIGN, &bytes))
        return SIZE_MAX;
    return bytes;
}

static void pool_fini(tn_cache *c, tn_cache_pool *p)
{
    tn_free(c->ctx, p->refs);
    tn_free(c->ctx, p->free_ids);
    tn_free(c->ctx, p->used);
}

void tn_cache_fini(tn_cache *c)
{
    if (!c->ctx) return;
    for (int32_t d = 0; d < TN_CACHE_DEVICES; d++) tn_buffer_destroy(&c->buffers[d]);
    tn_free(c->ctx, c->parts);
    tn_free(c->ctx, c->seqs);
    tn_free(c->ctx, c->table);
    tn_free(c->ctx, c->ids);
    pool_fini(c, &c->all);
    pool_fini(c, &c->sliding);
    tn_cache_index_fini(c);
    tn_cache_host_fini(c);
    tn_cache_states_fini(c);
    *c = (tn_cache){0};
}

// Of c->parts[part], whose device and block size are known.
static tn_status place(tn_cache *c, int32_t part, size_t bytes)
{
    size_t *at = &c->sizes[c->parts[part].device], end;
    if (!tn_add_size(*at, bytes, &end) || end == SIZE_MAX)
        return tn_fail(c->ctx, TN_ERR_MEMORY, "out of memory: a cache of %d tokens", c->n_ctx);
    c->parts[part].offset = *at;
    *at = end;
    return TN_OK;
}

static tn_status place_parts(tn_cache *c, const tn_cache_config *cfg)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < c->n_parts; i++)
        c->parts[i] = (tn_cache_part){.device = cfg->devices[i],
                                      .block_size = cfg->row_sizes[i] * TN_CACHE_BLOCK,
                                      .slides = tn_cache_has_window(c) && cfg->slides[i]};
    // Those of one kind together, at equal distances.
    for (int32_t slides = 0; slides < 2; slides++)
        for (int32_t i = 0; i < c->n_parts && status == TN_OK; i++) {
            int32_t n_blocks = slides ? c->sliding.n_blocks : c->all.n_blocks;
            if (c->parts[i].slides == (slides != 0))
                status = place(c, i, tn_cache_part_size(n_blocks, cfg->row_sizes[i]));
        }
    for (int32_t i = 0; i < c->n_states && status == TN_OK; i++) {
        size_t bytes;
        if (!tn_mul_size(cfg->state_sizes[i], (size_t)c->n_slots, &bytes) ||
            !tn_round_up_size(bytes, PART_ALIGN, &bytes))
            bytes = SIZE_MAX;
        c->parts[c->n_parts + i] =
            (tn_cache_part){.device = cfg->state_devices[i], .block_size = cfg->state_sizes[i]};
        status = place(c, c->n_parts + i, bytes);
    }
    return status;
}

// Low ids first, so that short contexts touch only a small number of pages.
static bool pool_init(tn_cache *c, tn_cache_pool *p, int32_t n)
{
    *p = (tn_cache_pool){.n_blocks = n, .n_free = n};
    if (n == 0) return true;
    p->refs = tn_calloc(c->ctx, (size_t)n, sizeof *p->refs);
    p->free_ids = tn_calloc(c->ctx, (size_t)n, sizeof *p->free_ids);
    p->used = tn_calloc(c->ctx, (size_t)n, sizeof *p->used);
    for (int32_t i = 0; p->free_ids && i < n; i++) p->free_ids[i] = n - 1 - i;
    return p->refs && p->free_ids && p->used;
}

tn_status tn_cache_init(tn_cache *c, tn_context *ctx, const tn_cache_config *cfg)
{
    int32_t n_ctx = cfg->n_ctx, n_seq = cfg->n_seq, n_window = tn_cache_window_blocks(cfg);
    *c = (tn_cache){
        .ctx = ctx, .n_seq = n_seq, .n_parts = cfg->n_parts, .n_ctx = n_ctx, .n_ctx_seq = cfg->n_ctx_seq};
    c->window = cfg->window;
    c->n_states = cfg->n_states;
    c->n_slots = cfg->n_slots;
    c->max_blocks = tn_cache_blocks_of(cfg->n_ctx_seq);
    bool pools = pool_init(c, &c->all, tn_cache_n_blocks(n_ctx, n_seq));
    pools = pool_init(c, &c->sliding, n_window) && pools;
    size_t table = (size_t)n_seq * (size_t)c->max_blocks;
    c->parts = tn_calloc(ctx, (size_t)cfg->n_parts + (size_t)cfg->n_states, sizeof *c->parts);
    c->seqs = tn_calloc(ctx, (size_t)n_seq, sizeof *c->seqs);
    c->table = tn_calloc(ctx, n_window > 0 ? 2 * table : table, sizeof *c->table);
    c->ids = tn_calloc(ctx, (size_t)c->all.n_blocks * TN_CACHE_BLOCK, sizeof *c->ids);
    bool ok = pools && c->parts && c->seqs && c->table && c->ids;
    tn_status status = ok ? place_parts(c, cfg) : TN_ERR_MEMORY;
    if (status == TN_OK) status = tn_cache_states_init(c);
    if (status != TN_OK) {
        tn_cache_fini(c);
        return status;
    }
    for (int32_t i = 0; i < n_seq; i++) {
        c->seqs[i].blocks = c->table + (size_t)i * (size_t)c->max_blocks;
        if (n_window > 0) c->seqs[i].window_blocks = c->seqs[i].blocks + table;
    }
    return TN_OK;
}

tn_status tn_cache_reserve(tn_cache *c, tn_device *const *devices)
{
    tn_status status = TN_OK;
    for (int32_t d = 0; d < TN_CACHE_DEVICES && status == TN_OK; d++) {
        if (c->sizes[d] == 0) continue;
        status = tn_buffer_create(devices[d], c->sizes[d], &c->buffers[d]);
        if (status == TN_OK) status = tn_buffer_zero(&c->buffers[d], 0, c->sizes[d]);
    }
    for (int32_t d = 0; d < TN_CACHE_DEVICES && status != TN_OK; d++) tn_buffer_destroy(&c->buffers[d]);
    return status;
}

void tn_cache_truncate(tn_cache *c, int32_t seq, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (n >= s->length) return;
    tn_cache_states_truncate(c, seq, n);
    tn_cache_window_truncate(c, seq, n);
    // The last one first: idle blocks are used again in this order.
    for (int32_t i = tn_cache_blocks_of(s->length); i-- > tn_cache_blocks_of(n);)
        tn_cache_release(c, s->blocks[i]);
    s->length = n;
    s->n_listed = TN_MIN(s->n_listed, n / TN_CACHE_BLOCK);
}

// The last block may be shared and partly filled: a sequence that appends to it gets a copy of its own.
static tn_status own_last_block(tn_cache *c, tn_cache_seq *s)
{
    if (s->length % TN_CACHE_BLOCK == 0) return TN_OK;
    int32_t *last = &s->blocks[tn_cache_blocks_of(s->length) - 1];
    if (c->all.refs[*last] == 1) {
        tn_cache_index_forget(c, *last); // it was full before the sequence was cut
        return TN_OK;
    }
    int32_t id = tn_cache_take_block(c);
    tn_status status = tn_cache_copy_block(c, &c->all, *last, id);
    memcpy(c->ids + (size_t)id * TN_CACHE_BLOCK, c->ids + (size_t)*last * TN_CACHE_BLOCK,
           TN_CACHE_BLOCK * sizeof *c->ids);
    c->all.used[id] = true;
    tn_cache_release(c, status == TN_OK ? *last : id);
    if (status == TN_OK) *last = id;
    return status;
}

int32_t tn_cache_blocks_for(const tn_cache *c, int32_t seq, int32_t n)
{
    const tn_cache_seq *s = &c->seqs[seq];
    int32_t have = tn_cache_blocks_of(s->length);
    bool shared = s->length % TN_CACHE_BLOCK != 0 && c->all.refs[s->blocks[have - 1]] > 1;
    return tn_cache_blocks_of(s->length + n) - have + shared;
}

tn_status tn_cache_extend(tn_cache *c, int32_t seq, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (n > c->n_ctx_seq - s->length)
        return tn_fail(c->ctx, TN_ERR_CONTEXT_FULL, "context is full: %d tokens in it, %d more do not fit %d",
                       s->length, n, c->n_ctx_seq);
    int32_t have = tn_cache_blocks_of(s->length), want = tn_cache_blocks_of(s->length + n);
    if (tn_cache_blocks_for(c, seq, n) > tn_cache_n_available(c))
        return tn_fail(c->ctx, TN_ERR_CONTEXT_FULL, "context is full: other sequences hold its blocks");
    tn_status status = own_last_block(c, s);
    int32_t got = have;
    for (; got < want && status == TN_OK; got++) s->blocks[got] = tn_cache_take_block(c);
    if (status == TN_OK) status = tn_cache_clear_used(c, &c->all, s->blocks + have, want - have);
    if (status == TN_OK) status = tn_cache_window_extend(c, seq, n);
    if (status != TN_OK) {
        while (got > have) tn_cache_release(c, s->blocks[--got]);
        return status;
    }
    s->length += n;
    return TN_OK;
}

tn_status tn_cache_branch(tn_cache *c, int32_t from, int32_t to, int32_t n)
{
    tn_cache_truncate(c, to, 0);
    for (int32_t i = 0; i < tn_cache_blocks_of(n); i++) {
        int32_t id = c->seqs[from].blocks[i];
        c->all.refs[id]++;
        c->seqs[to].blocks[i] = id;
    }
    c->seqs[to].length = n;
    c->seqs[to].salt = c->seqs[from].salt;
    c->seqs[to].n_listed = TN_MIN(c->seqs[from].n_listed, n / TN_CACHE_BLOCK);
    tn_cache_states_branch(c, from, to, n);
    tn_cache_window_branch(c, from, to, n);
    return TN_OK;
}

int32_t tn_cache_slot(const tn_cache *c, int32_t seq, int32_t position)
{
    return c->seqs[seq].blocks[position / TN_CACHE_BLOCK] * TN_CACHE_BLOCK + position % TN_CACHE_BLOCK;
}

int32_t tn_cache_token(const tn_cache *c, int32_t seq, int32_t position)
{
    return c->ids[tn_cache_slot(c, seq, position)];
}
