// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/cache.h"

#include "core/checked.h"

#include <string.h>

enum { PART_ALIGN = 64 };

// Every sequence but one can leave a block partly empty.
int32_t tn_cache_n_blocks(int32_t n_ctx, int32_t n_seq)
{
    return (n_ctx - 1) / TN_CACHE_BLOCK + 1 + (n_seq - 1);
}

size_t tn_cache_size(int32_t n_ctx, int32_t n_seq, int32_t n_parts, const size_t *row_sizes)
{
    size_t total = 0, n_blocks = (size_t)tn_cache_n_blocks(n_ctx, n_seq);
    for (int32_t i = 0; i < n_parts; i++) {
        size_t bytes;
        if (!tn_mul_size(row_sizes[i], TN_CACHE_BLOCK * n_blocks, &bytes) ||
            !tn_round_up_size(bytes, PART_ALIGN, &bytes) || !tn_add_size(total, bytes, &total))
            return SIZE_MAX;
    }
    return total;
}

void tn_cache_fini(tn_cache *c)
{
    if (!c->ctx) return;
    tn_buffer_destroy(&c->buffer);
    tn_free(c->ctx, c->parts);
    tn_free(c->ctx, c->refs);
    tn_free(c->ctx, c->free_ids);
    tn_free(c->ctx, c->seqs);
    tn_free(c->ctx, c->table);
    tn_free(c->ctx, c->zeros);
    *c = (tn_cache){0};
}

tn_status tn_cache_init(tn_cache *c, tn_device *device, int32_t n_ctx, int32_t n_seq, int32_t n_parts,
                        const size_t *row_sizes, bool dry)
{
    tn_context *ctx = device->ctx;
    *c = (tn_cache){.ctx = ctx, .n_seq = n_seq, .n_parts = n_parts, .n_ctx = n_ctx};
    c->n_blocks = tn_cache_n_blocks(n_ctx, n_seq);
    c->max_blocks = (n_ctx - 1) / TN_CACHE_BLOCK + 1;
    c->parts = tn_calloc(ctx, (size_t)n_parts, sizeof *c->parts);
    c->refs = tn_calloc(ctx, (size_t)c->n_blocks, sizeof *c->refs);
    c->free_ids = tn_calloc(ctx, (size_t)c->n_blocks, sizeof *c->free_ids);
    c->seqs = tn_calloc(ctx, (size_t)n_seq, sizeof *c->seqs);
    c->table = tn_calloc(ctx, (size_t)n_seq * (size_t)c->max_blocks, sizeof *c->table);
    bool ok = c->parts && c->refs && c->free_ids && c->seqs && c->table;
    size_t size = tn_cache_size(n_ctx, n_seq, n_parts, row_sizes), offset = 0, largest = 1;
    for (int32_t i = 0; i < n_parts && ok; i++) {
        c->parts[i] = (tn_cache_part){offset, row_sizes[i] * TN_CACHE_BLOCK};
        largest = TN_MAX(largest, c->parts[i].block_size);
        offset += (c->parts[i].block_size * (size_t)c->n_blocks + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    }
    c->zeros = ok ? tn_calloc(ctx, 1, largest) : NULL;
    tn_status status = c->zeros ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK && size == SIZE_MAX) status = tn_fail(ctx, TN_ERR_MEMORY, "out of memory: a cache of %d tokens", n_ctx);
    if (status == TN_OK && !dry) status = tn_buffer_create(device, size, &c->buffer);
    if (status == TN_OK && !dry) status = tn_buffer_zero(&c->buffer);
    if (status != TN_OK) {
        tn_cache_fini(c);
        return status;
    }
    for (int32_t i = 0; i < n_seq; i++) c->seqs[i].blocks = c->table + (size_t)i * (size_t)c->max_blocks;
    // Low ids first: short contexts stay in few pages.
    for (int32_t i = 0; i < c->n_blocks; i++) c->free_ids[i] = c->n_blocks - 1 - i;
    c->n_free = c->n_blocks;
    return TN_OK;
}

// A block starts as zeros: attention reads whole blocks and masks what lies beyond the length.
static tn_status clear_block(tn_cache *c, int32_t id)
{
    for (int32_t i = 0; i < c->n_parts; i++) {
        const tn_cache_part *p = &c->parts[i];
        tn_status status = tn_buffer_write(&c->buffer, p->offset + (size_t)id * p->block_size, c->zeros, p->block_size);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

static tn_status copy_block(tn_cache *c, int32_t from, int32_t to)
{
    char piece[4096];
    for (int32_t i = 0; i < c->n_parts; i++) {
        const tn_cache_part *p = &c->parts[i];
        for (size_t at = 0; at < p->block_size; at += sizeof piece) {
            size_t n = TN_MIN(sizeof piece, p->block_size - at);
            tn_status status = tn_buffer_read(&c->buffer, p->offset + (size_t)from * p->block_size + at, piece, n);
            if (status == TN_OK)
                status = tn_buffer_write(&c->buffer, p->offset + (size_t)to * p->block_size + at, piece, n);
            if (status != TN_OK) return status;
        }
    }
    return TN_OK;
}

static int32_t blocks_of(int32_t length)
{
    return (length + TN_CACHE_BLOCK - 1) / TN_CACHE_BLOCK;
}

static void release(tn_cache *c, int32_t id)
{
    if (--c->refs[id] == 0) c->free_ids[c->n_free++] = id;
}

void tn_cache_truncate(tn_cache *c, int32_t seq, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (n >= s->length) return;
    for (int32_t i = blocks_of(n); i < blocks_of(s->length); i++) release(c, s->blocks[i]);
    s->length = n;
}

// The last block may be shared and partly filled: whoever appends gets a copy of its own.
static tn_status own_last_block(tn_cache *c, tn_cache_seq *s)
{
    if (s->length % TN_CACHE_BLOCK == 0) return TN_OK;
    int32_t *last = &s->blocks[blocks_of(s->length) - 1];
    if (c->refs[*last] == 1) return TN_OK;
    int32_t id = c->free_ids[c->n_free - 1];
    tn_status status = copy_block(c, *last, id);
    if (status != TN_OK) return status;
    c->n_free--;
    c->refs[id] = 1;
    c->refs[*last]--;
    *last = id;
    return TN_OK;
}

tn_status tn_cache_extend(tn_cache *c, int32_t seq, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    bool shared = s->length % TN_CACHE_BLOCK != 0 && c->refs[s->blocks[blocks_of(s->length) - 1]] > 1;
    if (n > c->n_ctx - s->length)
        return tn_fail(c->ctx, TN_ERR_CONTEXT_FULL, "context is full: %d tokens in it, %d more do not fit %d", s->length, n, c->n_ctx);
    int32_t have = blocks_of(s->length), want = blocks_of(s->length + n);
    if (want - have + shared > c->n_free)
        return tn_fail(c->ctx, TN_ERR_CONTEXT_FULL, "context is full: other sequences hold its blocks");
    tn_status status = own_last_block(c, s);
    int32_t got = have;
    for (; got < want && status == TN_OK; got++) {
        int32_t id = c->free_ids[--c->n_free];
        c->refs[id] = 1;
        s->blocks[got] = id;
        status = clear_block(c, id);
    }
    if (status != TN_OK) {
        while (got > have) release(c, s->blocks[--got]);
        return status;
    }
    s->length += n;
    return TN_OK;
}

tn_status tn_cache_branch(tn_cache *c, int32_t from, int32_t to, int32_t n)
{
    tn_cache_truncate(c, to, 0);
    for (int32_t i = 0; i < blocks_of(n); i++) {
        int32_t id = c->seqs[from].blocks[i];
        c->refs[id]++;
        c->seqs[to].blocks[i] = id;
    }
    c->seqs[to].length = n;
    return TN_OK;
}

int32_t tn_cache_slot(const tn_cache *c, int32_t seq, int32_t position)
{
    return c->seqs[seq].blocks[position / TN_CACHE_BLOCK] * TN_CACHE_BLOCK + position % TN_CACHE_BLOCK;
}
