// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The contents of blocks: clearing and copying them in all parts of a pool.
#include "models/run/cache/cache.h"

enum { STEP = 2 }; // K and V of a layer may differ, those of different layers seldom do

// The next part behind i for K, or for V, of the same kind; n_parts: none.
static int32_t next_part(const tn_cache *c, int32_t i, bool slides)
{
    for (i += STEP; i < c->n_parts; i += STEP)
        if (c->parts[i].slides == slides) return i;
    return c->n_parts;
}

// How many parts of its kind from i on have the same block size and equal distances. *pitch: the distance;
// *next: the part behind them.
static int32_t alike(const tn_cache *c, int32_t i, size_t *pitch, int32_t *next)
{
    const tn_cache_part *first = &c->parts[i], *last = first;
    int32_t n = 1;
    *pitch = 0;
    for (*next = next_part(c, i, first->slides); *next < c->n_parts; n++) {
        const tn_cache_part *p = &c->parts[*next];
        bool same = p->device == first->device && p->block_size == first->block_size;
        if (!same || (n > 1 && p->offset - last->offset != *pitch)) break;
        *pitch = p->offset - last->offset;
        last = p;
        *next = next_part(c, *next, first->slides);
    }
    return n;
}

// A new block is zeroed, because attention reads whole blocks and masks positions beyond the length. Blocks
// [id, id + n) of all parts of the pool are cleared with the smallest number of calls: on a device each call
// costs as much as a kernel.
static tn_status clear_blocks(tn_cache *c, const tn_cache_pool *pool, int32_t id, int32_t n)
{
    bool slides = pool == &c->sliding;
    tn_status status = TN_OK;
    for (int32_t which = 0; which < STEP; which++)
        for (int32_t i = next_part(c, which - STEP, slides); i < c->n_parts && status == TN_OK;) {
            const tn_cache_part *p = &c->parts[i];
            size_t pitch, size = (size_t)n * p->block_size;
            int32_t rows = alike(c, i, &pitch, &i);
            if (size > 0) // layers that read the cache of another layer have none
                status = tn_buffer_zero_rows(&c->buffers[p->device], p->offset + (size_t)id * p->block_size,
                                             size, pitch, (size_t)rows);
        }
    return status;
}

// Adjacent ones with one call.
tn_status tn_cache_clear_used(tn_cache *c, tn_cache_pool *pool, const int32_t *ids, int32_t n)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < n && status == TN_OK;) {
        int32_t low = ids[i], high = ids[i], k = i + 1;
        bool used = pool->used[ids[i]];
        for (; k < n && pool->used[ids[k]] == used && (ids[k] == low - 1 || ids[k] == high + 1); k++) {
            low = TN_MIN(low, ids[k]);
            high = TN_MAX(high, ids[k]);
        }
        if (used) status = clear_blocks(c, pool, low, high - low + 1);
        for (; i < k; i++) pool->used[ids[i]] = true;
    }
    return status;
}

tn_status tn_cache_copy_block(tn_cache *c, const tn_cache_pool *pool, int32_t from, int32_t to)
{
    char piece[4096];
    for (int32_t i = 0; i < c->n_parts; i++) {
        const tn_cache_part *p = &c->parts[i];
        tn_buffer *b = &c->buffers[p->device];
        if (p->slides != (pool == &c->sliding)) continue;
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
