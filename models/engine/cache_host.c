// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of full blocks in the memory of the host. A block of the index that is needed for something else is
// copied there first, and a prompt that begins with its tokens gets it back. A copy has the serial of the
// block, and a block that is written again behind the same parent gets this serial back. So copies stay
// reachable while blocks before them come and go, and a text is compared block by block, as in the index.
//
// The number of copies is bounded. The one that was not used for longest gives up its place; all of a text
// are used when its beginning is. A copy stays when its block is on the device again: the next eviction of
// that block copies nothing.
#include "models/run/cache/cache.h"

#include "core/checked.h"

#include <string.h>

enum { NONE = -1, COPIES_MAX = 1 << 24 };

typedef struct block_copy {
    uint64_t serial;      // of the block; 0: the place is empty
    uint64_t parent;      // as in the index
    int32_t depth;        // blocks before it
    int32_t next;         // in its bucket
    int32_t newer, older; // by their last use, all places
} block_copy;

struct tn_cache_host {
    uint8_t *data;      // n * block_size
    int32_t *ids;       // n * TN_CACHE_BLOCK tokens
    block_copy *copies; // n
    int32_t *buckets;   // n_buckets, a power of two
    size_t block_size;  // bytes of a block in all parts
    int32_t n, n_buckets;
    int32_t newest, oldest;
    tn_cache_host_stats stats;
};

static tn_status allocate(tn_cache *c, tn_cache_host *h)
{
    size_t size;
    if (!tn_mul_size((size_t)h->n, h->block_size, &size))
        return tn_fail(c->ctx, TN_ERR_MEMORY, "out of memory: %d blocks in the memory of the host", h->n);
    h->n_buckets = 1;
    while (h->n_buckets < h->n) h->n_buckets *= 2;
    h->data = tn_alloc(c->ctx, size);
    h->ids = tn_alloc(c->ctx, (size_t)h->n * TN_CACHE_BLOCK * sizeof *h->ids);
    h->copies = tn_calloc(c->ctx, (size_t)h->n, sizeof *h->copies);
    h->buckets = tn_alloc(c->ctx, (size_t)h->n_buckets * sizeof *h->buckets);
    return h->data && h->ids && h->copies && h->buckets ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn_cache_host_create(tn_cache *c, uint64_t bytes)
{
    size_t block = 0;
    if (c->n_states > 0)
        return tn_fail(c->ctx, TN_ERR_UNSUPPORTED,
                       "cache: blocks of models with recurrent layers are not kept in host memory");
    if (tn_cache_has_window(c))
        return tn_fail(c->ctx, TN_ERR_UNSUPPORTED,
                       "cache: blocks are not kept in host memory where layers keep their window only");
    for (int32_t i = 0; i < c->n_parts; i++) block += c->parts[i].block_size;
    uint64_t each = block + TN_CACHE_BLOCK * sizeof(int32_t) + sizeof(block_copy) + 2 * sizeof(int32_t);
    if (bytes < each)
        return tn_fail(c->ctx, TN_ERR_ARG, "cache: %llu bytes of host memory hold no block, which has %llu",
                       (unsigned long long)bytes, (unsigned long long)each);
    tn_cache_host *h = tn_calloc(c->ctx, 1, sizeof *h);
    if (!h) return TN_ERR_MEMORY;
    c->host = h;
    h->block_size = block;
    h->n = (int32_t)TN_MIN(bytes / each, (uint64_t)COPIES_MAX);
    tn_status status = allocate(c, h);
    if (status != TN_OK) {
        tn_cache_host_fini(c);
        return status;
    }
    for (int32_t i = 0; i < h->n_buckets; i++) h->buckets[i] = NONE;
    for (int32_t i = 0; i < h->n; i++) {
        h->copies[i].newer = i - 1; // the first place is the newest one, and -1 is none
        h->copies[i].older = i + 1 < h->n ? i + 1 : NONE;
    }
    h->newest = 0;
    h->oldest = h->n - 1;
    return TN_OK;
}

void tn_cache_host_fini(tn_cache *c)
{
    if (!c->host) return;
    tn_free(c->ctx, c->host->data);
    tn_free(c->ctx, c->host->ids);
    tn_free(c->ctx, c->host->copies);
    tn_free(c->ctx, c->host->buckets);
    tn_free(c->ctx, c->host);
    c->host = NULL;
}

tn_cache_host_stats tn_cache_host_stats_of(const tn_cache *c)
{
    return c->host ? c->host->stats : (tn_cache_host_stats){0};
}

// --- the order of use, and finding ---------------------------------------------------------------------

static void unlink_copy(tn_cache_host *h, int32_t k)
{
    const block_copy *b = &h->copies[k];
    *(b->newer == NONE ? &h->newest : &h->copies[b->newer].older) = b->older;
    *(b->older == NONE ? &h->oldest : &h->copies[b->older].newer) = b->newer;
}

static void make_newest(tn_cache_host *h, int32_t k)
{
    if (h->newest == k) return;
    unlink_copy(h, k);
    h->copies[k].newer = NONE;
    h->copies[k].older = h->newest;
    h->copies[h->newest].newer = k;
    h->newest = k;
}

static int32_t *bucket_of(const tn_cache_host *h, uint64_t parent, int32_t depth, const int32_t *tokens)
{
    return &h->buckets[tn_cache_block_hash(parent, depth, tokens) & (uint64_t)(h->n_buckets - 1)];
}

static int32_t *ids_of(const tn_cache_host *h, int32_t k)
{
    return h->ids + (size_t)k * TN_CACHE_BLOCK;
}

static int32_t find(const tn_cache_host *h, uint64_t parent, int32_t depth, const int32_t *tokens)
{
    int32_t k = *bucket_of(h, parent, depth, tokens);
    for (; k != NONE; k = h->copies[k].next) {
        const block_copy *b = &h->copies[k];
        if (b->parent == parent && b->depth == depth &&
            memcmp(ids_of(h, k), tokens, TN_CACHE_BLOCK * sizeof *tokens) == 0)
            return k;
    }
    return NONE;
}

uint64_t tn_cache_host_find(const tn_cache *c, uint64_t parent, int32_t depth, const int32_t *tokens)
{
    int32_t k = c->host ? find(c->host, parent, depth, tokens) : NONE;
    return k == NONE ? 0 : c->host->copies[k].serial;
}

void tn_cache_host_use(tn_cache *c, uint64_t parent, int32_t depth, const int32_t *tokens, int32_t n)
{
    tn_cache_host *h = c->host;
    for (; h && depth < n / TN_CACHE_BLOCK; depth++) {
        int32_t k = find(h, parent, depth, tokens + (size_t)depth * TN_CACHE_BLOCK);
        if (k == NONE) return;
        make_newest(h, k);
        parent = h->copies[k].serial;
    }
}

// --- copying -------------------------------------------------------------------------------------------

static void forget(tn_cache_host *h, int32_t k)
{
    block_copy *b = &h->copies[k];
    if (b->serial == 0) return;
    int32_t *at = bucket_of(h, b->parent, b->depth, ids_of(h, k));
    while (*at != k) at = &h->copies[*at].next;
    *at = b->next;
    b->serial = 0;
    h->stats.n_blocks--;
}

// All parts of a block, one behind the other.
static tn_status copy_parts(tn_cache *c, int32_t id, uint8_t *data, bool to_host)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < c->n_parts && status == TN_OK; i++) {
        const tn_cache_part *p = &c->parts[i];
        tn_buffer *b = &c->buffers[p->device];
        size_t offset = p->offset + (size_t)id * p->block_size;
        if (p->block_size == 0) continue; // the layer reads the cache of another one
        status = to_host ? tn_buffer_read(b, offset, data, p->block_size)
                         : tn_buffer_write(b, offset, data, p->block_size);
        data += p->block_size;
    }
    return status;
}

void tn_cache_host_save(tn_cache *c, int32_t id, uint64_t serial, uint64_t parent, int32_t depth)
{
    tn_cache_host *h = c->host;
    const int32_t *tokens = c->ids + (size_t)id * TN_CACHE_BLOCK;
    int32_t k = h ? find(h, parent, depth, tokens) : NONE;
    if (k != NONE) make_newest(h, k);
    if (!h || k != NONE) return;
    k = h->oldest;
    forget(h, k);
    // Without the copy its tokens are evaluated again. A device that has failed is reported by the next pass.
    if (copy_parts(c, id, h->data + (size_t)k * h->block_size, true) != TN_OK) return;
    memcpy(ids_of(h, k), tokens, TN_CACHE_BLOCK * sizeof *tokens);
    int32_t *bucket = bucket_of(h, parent, depth, tokens);
    h->copies[k].serial = serial;
    h->copies[k].parent = parent;
    h->copies[k].depth = depth;
    h->copies[k].next = *bucket;
    *bucket = k;
    make_newest(h, k);
    h->stats.n_blocks++;
    h->stats.n_saved++;
}

bool tn_cache_host_load(tn_cache *c, int32_t id, uint64_t parent, int32_t depth, const int32_t *tokens)
{
    tn_cache_host *h = c->host;
    int32_t k = find(h, parent, depth, tokens);
    if (k == NONE) return false;
    c->all.used[id] = true;
    if (copy_parts(c, id, h->data + (size_t)k * h->block_size, false) != TN_OK) return false;
    memcpy(c->ids + (size_t)id * TN_CACHE_BLOCK, tokens, TN_CACHE_BLOCK * sizeof *tokens);
    h->stats.n_loaded++;
    return true;
}
