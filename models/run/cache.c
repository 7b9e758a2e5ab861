// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/cache.h"

#include "core/checked.h"

#include <string.h>

enum { PART_ALIGN = 64 };

// Every sequence may have one partly filled block.
int32_t tn_cache_n_blocks(int32_t n_ctx, int32_t n_seq)
{
    return (n_ctx - 1) / TN_CACHE_BLOCK + 1 + (n_seq - 1);
}

size_t tn_cache_part_size(int32_t n_ctx, int32_t n_seq, size_t row_size)
{
    size_t bytes, n_blocks = (size_t)tn_cache_n_blocks(n_ctx, n_seq);
    if (!tn_mul_size(row_size, TN_CACHE_BLOCK * n_blocks, &bytes) ||
        !tn_round_up_size(bytes, PART_ALIGN, &bytes))
        return SIZE_MAX;
    return bytes;
}

void tn_cache_fini(tn_cache *c)
{
    if (!c->ctx) return;
    for (int32_t d = 0; d < TN_CACHE_DEVICES; d++) tn_buffer_destroy(&c->buffers[d]);
    tn_free(c->ctx, c->parts);
    tn_free(c->ctx, c->refs);
    tn_free(c->ctx, c->free_ids);
    tn_free(c->ctx, c->seqs);
    tn_free(c->ctx, c->table);
    tn_free(c->ctx, c->used);
    tn_free(c->ctx, c->ids);
    tn_cache_index_fini(c);
    tn_cache_host_fini(c);
    tn_cache_states_fini(c);
    *c = (tn_cache){0};
}

static tn_status place(tn_cache *c, int32_t part, int32_t device, size_t bytes, size_t block_size)
{
    size_t *at = &c->sizes[device], end;
    if (!tn_add_size(*at, bytes, &end) || end == SIZE_MAX)
        return tn_fail(c->ctx, TN_ERR_MEMORY, "out of memory: a cache of %d tokens", c->n_ctx);
    c->parts[part] = (tn_cache_part){device, *at, block_size};
    *at = end;
    return TN_OK;
}

static tn_status place_parts(tn_cache *c, const tn_cache_config *cfg)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < c->n_parts && status == TN_OK; i++) {
        size_t bytes = tn_cache_part_size(c->n_ctx, c->n_seq, cfg->row_sizes[i]);
        status = place(c, i, cfg->devices[i], bytes, cfg->row_sizes[i] * TN_CACHE_BLOCK);
    }
    for (int32_t i = 0; i < c->n_states && status == TN_OK; i++) {
        size_t bytes;
        if (!tn_mul_size(cfg->state_sizes[i], (size_t)c->n_slots, &bytes) ||
            !tn_round_up_size(bytes, PART_ALIGN, &bytes))
            bytes = SIZE_MAX;
        status = place(c, c->n_parts + i, cfg->state_devices[i], bytes, cfg->state_sizes[i]);
    }
    return status;
}

tn_status tn_cache_init(tn_cache *c, tn_context *ctx, const tn_cache_config *cfg)
{
    int32_t n_ctx = cfg->n_ctx, n_seq = cfg->n_seq;
    *c = (tn_cache){
        .ctx = ctx, .n_seq = n_seq, .n_parts = cfg->n_parts, .n_ctx = n_ctx, .n_ctx_seq = cfg->n_ctx_seq};
    c->n_states = cfg->n_states;
    c->n_slots = cfg->n_slots;
    c->n_blocks = tn_cache_n_blocks(n_ctx, n_seq);
    c->max_blocks = tn_cache_blocks_of(cfg->n_ctx_seq);
    c->parts = tn_calloc(ctx, (size_t)cfg->n_parts + (size_t)cfg->n_states, sizeof *c->parts);
    c->refs = tn_calloc(ctx, (size_t)c->n_blocks, sizeof *c->refs);
    c->free_ids = tn_calloc(ctx, (size_t)c->n_blocks, sizeof *c->free_ids);
    c->seqs = tn_calloc(ctx, (size_t)n_seq, sizeof *c->seqs);
    c->table = tn_calloc(ctx, (size_t)n_seq * (size_t)c->max_blocks, sizeof *c->table);
    c->used = tn_calloc(ctx, (size_t)c->n_blocks, sizeof *c->used);
    c->ids = tn_calloc(ctx, (size_t)c->n_blocks * TN_CACHE_BLOCK, sizeof *c->ids);
    bool ok = c->parts && c->refs && c->free_ids && c->seqs && c->table && c->used && c->ids;
    tn_status status = ok ? place_parts(c, cfg) : TN_ERR_MEMORY;
    if (status == TN_OK) status = tn_cache_states_init(c);
    if (status != TN_OK) {
        tn_cache_fini(c);
        return status;
    }
    for (int32_t i = 0; i < n_seq; i++) c->seqs[i].blocks = c->table + (size_t)i * (size_t)c->max_blocks;
    // Low ids first, so that short contexts touch only a small number of pages.
    for (int32_t i = 0; i < c->n_blocks; i++) c->free_ids[i] = c->n_blocks - 1 - i;
    c->n_free = c->n_blocks;
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

// How many parts from i on have the same block size and equal distances, going `step` parts from one to the
// next.
static int32_t alike(const tn_cache *c, int32_t i, int32_t step)
{
    const tn_cache_part *first = &c->parts[i];
    int32_t n = 1;
    for (int32_t k = i + step; k < c->n_parts; k += step, n++) {
        const tn_cache_part *p = &c->parts[k];
        bool same = p->device == first->device && p->block_size == first->block_size;
        if (!same || p->offset - c->parts[k - step].offset != c->parts[i + step].offset - first->offset)
            break;
    }
    return n;
}

// A new block is zeroed, because attention reads whole blocks and masks positions beyond the length. Blocks
// [id, id + n) of all parts are cleared with the smallest number of calls: on a device each call costs as
// much as a kernel.
static tn_status clear_blocks(tn_cache *c, int32_t id, int32_t n)
{
    enum { STEP = 2 }; // K and V of a layer may differ, those of different layers seldom do
    tn_status status = TN_OK;
    for (int32_t which = 0; which < STEP; which++)
        for (int32_t i = which; i < c->n_parts && status == TN_OK;) {
            const tn_cache_part *p = &c->parts[i];
            int32_t rows = alike(c, i, STEP);
            size_t pitch = rows > 1 ? c->parts[i + STEP].offset - p->offset : 0,
                   size = (size_t)n * p->block_size;
            if (size > 0) // layers that read the cache of another layer have none
                status = tn_buffer_zero_rows(&c->buffers[p->device], p->offset + (size_t)id * p->block_size,
                                             size, pitch, (size_t)rows);
            i += rows * STEP;
        }
    return status;
}

// Clears the blocks that were used before; adjacent ones with one call.
static tn_status clear_used(tn_cache *c, const int32_t *ids, int32_t n)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < n && status == TN_OK;) {
        int32_t low = ids[i], high = ids[i], k = i + 1;
        bool used = c->used[ids[i]];
        for (; k < n && c->used[ids[k]] == used && (ids[k] == low - 1 || ids[k] == high + 1); k++) {
            low = TN_MIN(low, ids[k]);
            high = TN_MAX(high, ids[k]);
        }
        if (used) status = clear_blocks(c, low, high - low + 1);
        for (; i < k; i++) c->used[ids[i]] = true;
    }
    return status;
}

static tn_status copy_block(tn_cache *c, int32_t from, int32_t to)
{
    char piece[4096];
    memcpy(c->ids + (size_t)to * TN_CACHE_BLOCK, c->ids + (size_t)from * TN_CACHE_BLOCK,
           TN_CACHE_BLOCK * sizeof *c->ids);
    for (int32_t i = 0; i < c->n_parts; i++) {
        const tn_cache_part *p = &c->parts[i];
        tn_buffer *b = &c->buffers[p->device];
        for (size_t at = 0; at < p->block_size; at += sizeof piece) {
            size_t n = TN_MIN(sizeof piece, p->block_size - at);
            tn_status status = tn_buffer_read(b, p->offset + (size_t)from * p->block_size + at, piece, n);
            if (status == TN_OK)
                status = tn_buffer_write(b, p->offset + (size_t)to * p->block_size + at, piece, n);
            if (status != TN_OK) return status;
        }
    }
    return TN_OK;
}

int32_t tn_cache_blocks_of(int32_t length)
{
    return (length + TN_CACHE_BLOCK - 1) / TN_CACHE_BLOCK;
}

void tn_cache_truncate(tn_cache *c, int32_t seq, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (n >= s->length) return;
    tn_cache_states_truncate(c, seq, n);
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
    if (c->refs[*last] == 1) {
        tn_cache_index_forget(c, *last); // it was full before the sequence was cut
        return TN_OK;
    }
    int32_t id = tn_cache_take_block(c);
    tn_status status = copy_block(c, *last, id);
    c->used[id] = true;
    tn_cache_release(c, status == TN_OK ? *last : id);
    if (status == TN_OK) *last = id;
    return status;
}

int32_t tn_cache_blocks_for(const tn_cache *c, int32_t seq, int32_t n)
{
    const tn_cache_seq *s = &c->seqs[seq];
    int32_t have = tn_cache_blocks_of(s->length);
    bool shared = s->length % TN_CACHE_BLOCK != 0 && c->refs[s->blocks[have - 1]] > 1;
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
    if (status == TN_OK) status = clear_used(c, s->blocks + have, want - have);
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
        c->refs[id]++;
        c->seqs[to].blocks[i] = id;
    }
    c->seqs[to].length = n;
    c->seqs[to].salt = c->seqs[from].salt;
    c->seqs[to].n_listed = TN_MIN(c->seqs[from].n_listed, n / TN_CACHE_BLOCK);
    tn_cache_states_branch(c, from, to, n);
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
