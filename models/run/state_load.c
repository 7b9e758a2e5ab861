// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Loading sessions: everything is checked before the session is touched. The layout is in state.h.
#include "core/os/file_map.h"
#include "core/hash.h"
#include "models/gguf/cursor.h"
#include "models/run/state.h"

#include <string.h>

// A state that was read: places in its bytes, numbers within the limits of the session.
typedef struct state {
    tn_context *ctx;
    const char *name; // for messages
    uint32_t version, flags, type_k, type_v, block, n_blocks, n_seqs, n_parts, n_states, n_snapshots;
    uint64_t size, model;
    uint64_t block_size, snapshot_size; // bytes of all parts of a block, of all states of a snapshot
    const uint8_t *seqs, *snapshots, *ids, *data, *states;
    size_t seqs_size;
} state;

typedef struct state_seq {
    uint32_t index, length;
    const uint8_t *blocks; // u32 each
} state_seq;

static uint32_t u32_at(const uint8_t *list, size_t i)
{
    return (uint32_t)tn_load_le(list + 4 * i, 4);
}

// --- checks ------------------------------------------------------------------------------------------

static tn_status damaged(const state *t, const char *what)
{
    return tn_fail(t->ctx, TN_ERR_FORMAT, "%s: the session file is damaged: %s", t->name, what);
}

// Checks that do not depend on the session: the kind of file, its version, its length and its checksum.
static tn_status read_head(state *t, tn_cursor *c)
{
    const uint8_t *magic;
    uint32_t *const numbers[] = {&t->type_k, &t->type_v,  &t->block,    &t->n_blocks,
                                 &t->n_seqs, &t->n_parts, &t->n_states, &t->n_snapshots};
    if (!tn_cursor_bytes(c, 8, &magic) || memcmp(magic, TN_STATE_MAGIC, 8) != 0)
        return tn_fail(t->ctx, TN_ERR_FORMAT, "%s: not a session file", t->name);
    if (!tn_cursor_u32(c, &t->version)) return damaged(t, "it ends in its head");
    if (t->version != TN_STATE_VERSION)
        return tn_fail(t->ctx, TN_ERR_UNSUPPORTED,
                       "%s: session file of format %u, this library reads format %d", t->name,
                       (unsigned)t->version, (int)TN_STATE_VERSION);
    bool ok = tn_cursor_u32(c, &t->flags) && tn_cursor_u64(c, &t->size) && tn_cursor_u64(c, &t->model);
    for (size_t i = 0; i < TN_COUNT(numbers); i++) ok = ok && tn_cursor_u32(c, numbers[i]);
    if (!ok || c->size < TN_STATE_HEAD_SIZE + TN_STATE_CHECKSUM_SIZE)
        return damaged(t, "it ends in its head");
    if (t->size != c->size)
        return tn_fail(t->ctx, TN_ERR_FORMAT,
                       "%s: the session file is damaged: it has %zu bytes, its head says %llu", t->name,
                       c->size, (unsigned long long)t->size);
    size_t n = c->size - TN_STATE_CHECKSUM_SIZE;
    tn_hash h;
    tn_hash_init(&h);
    tn_hash_add(&h, c->data, n);
    if (tn_hash_value(&h) != tn_load_le(c->data + n, TN_STATE_CHECKSUM_SIZE))
        return damaged(t, "its checksum does not match");
    c->size = n;
    return TN_OK;
}

static const char *type_name(uint32_t file_id)
{
    tn_dtype type = tn_dtype_by_file_id(file_id);
    return type < 0 ? "unknown type" : tn_dtype_name(type);
}

// The model and the types of the cache must be the same, or the bytes would have another meaning.
static tn_status check_kind(const state *t, const tn_session *s)
{
    uint64_t model;
    tn_status status = tn_state_model_hash(s, 0, &model);
    if (status != TN_OK) return status;
    if (t->model != model)
        return tn_fail(
            t->ctx, TN_ERR_MODEL,
            "%s: the session was saved with another model or version of it, or with other adapters", t->name);
    if (t->type_k != (uint32_t)tn_dtype_file_id(s->cfg.cache_type_k) ||
        t->type_v != (uint32_t)tn_dtype_file_id(s->cfg.cache_type_v))
        return tn_fail(
            t->ctx, TN_ERR_TYPE,
            "%s: the session was saved with a cache of %s keys and %s values, this one has %s and %s",
            t->name, type_name(t->type_k), type_name(t->type_v), tn_dtype_name(s->cfg.cache_type_k),
            tn_dtype_name(s->cfg.cache_type_v));
    if (t->flags != tn_state_flags(s))
        return tn_fail(t->ctx, TN_ERR_UNSUPPORTED,
                       "%s: the session was saved with a %s context, for which this model turns keys "
                       "otherwise; use a similar context size",
                       t->name, t->flags & TN_STATE_LONG_ROPE ? "longer" : "shorter");
    if (t->block != TN_CACHE_BLOCK)
        return tn_fail(t->ctx, TN_ERR_UNSUPPORTED,
                       "%s: the session was saved in blocks of %u tokens, this library has blocks of %d",
                       t->name, (unsigned)t->block, (int)TN_CACHE_BLOCK);
    return TN_OK;
}

// Sum of the sizes of parts [first, last). They are the sizes of a cache in memory, so the sum does not
// overflow.
static tn_status read_sizes(const state *t, tn_cursor *c, const tn_cache_part *parts, int32_t n,
                            uint64_t *sum)
{
    *sum = 0;
    for (int32_t i = 0; i < n; i++) {
        uint64_t size;
        if (!tn_cursor_u64(c, &size)) return damaged(t, "it ends among the layers");
        if (size != parts[i].block_size) return damaged(t, "its layers have other sizes");
        *sum += size;
    }
    return TN_OK;
}

static tn_status read_parts(state *t, tn_cursor *c, const tn_cache *cache)
{
    if (t->n_parts != (uint32_t)cache->n_parts || t->n_states != (uint32_t)cache->n_states)
        return damaged(t, "it has another number of layers");
    tn_status status = read_sizes(t, c, cache->parts, cache->n_parts, &t->block_size);
    if (status != TN_OK) return status;
    return read_sizes(t, c, cache->parts + cache->n_parts, cache->n_states, &t->snapshot_size);
}

static bool read_seq(tn_cursor *c, state_seq *out)
{
    bool ok = tn_cursor_u32(c, &out->index) && tn_cursor_u32(c, &out->length);
    uint64_t n = ((uint64_t)out->length + TN_CACHE_BLOCK - 1) / TN_CACHE_BLOCK;
    return ok && tn_cursor_bytes(c, 4 * n, &out->blocks);
}

static tn_status check_fit(const state *t, const tn_cache *cache, const state_seq *q)
{
    if (q->index >= (uint32_t)cache->n_seq)
        return tn_fail(t->ctx, TN_ERR_CONTEXT_FULL, "%s: it holds sequence %u, this session has %d", t->name,
                       (unsigned)q->index, cache->n_seq);
    if (q->length > (uint32_t)cache->n_ctx_seq)
        return tn_fail(t->ctx, TN_ERR_CONTEXT_FULL, "%s: it holds %u tokens, the context of this session %d",
                       t->name, (unsigned)q->length, cache->n_ctx_seq);
    return TN_OK;
}

static tn_status read_seqs(state *t, tn_cursor *c, const tn_cache *cache)
{
    size_t first = c->pos;
    uint32_t next = 0; // lowest index that may follow
    t->seqs = c->data + first;
    for (uint32_t i = 0; i < t->n_seqs; i++) {
        state_seq q;
        if (!read_seq(c, &q)) return damaged(t, "it ends among the sequences");
        if (q.index < next || q.length == 0) return damaged(t, "its sequences are out of order or empty");
        tn_status status = check_fit(t, cache, &q);
        if (status != TN_OK) return status;
        for (size_t k = 0; k * TN_CACHE_BLOCK < q.length; k++)
            if (u32_at(q.blocks, k) >= t->n_blocks)
                return damaged(t, "a sequence names a block that is not there");
        next = q.index + 1;
    }
    t->seqs_size = c->pos - first;
    return TN_OK;
}

// Sequences in turn; false at the end. They were read before.
static bool next_seq(tn_cursor *c, state_seq *out)
{
    return tn_cursor_left(c) > 0 && read_seq(c, out);
}

static tn_cursor seqs_cursor(const state *t)
{
    return (tn_cursor){.data = t->seqs, .size = t->seqs_size};
}

// Snapshots belong to sequences that are there, and are not longer.
static tn_status read_snapshots(state *t, tn_cursor *c)
{
    tn_cursor seqs = seqs_cursor(t);
    state_seq q;
    if (t->n_snapshots > t->n_seqs || (t->n_snapshots > 0 && t->n_states == 0))
        return damaged(t, "it has too many snapshots");
    if (!tn_cursor_bytes(c, 8 * (uint64_t)t->n_snapshots, &t->snapshots))
        return damaged(t, "it ends among the snapshots");
    for (uint32_t i = 0; i < t->n_snapshots; i++) {
        uint32_t index = u32_at(t->snapshots, 2 * (size_t)i),
                 position = u32_at(t->snapshots, 2 * (size_t)i + 1);
        do {
            if (!next_seq(&seqs, &q)) return damaged(t, "a snapshot is of a sequence that is not there");
        } while (q.index != index);
        if (position == 0 || position > q.length) return damaged(t, "a snapshot is not of its sequence");
    }
    return TN_OK;
}

static tn_status check_tokens(const state *t, const tn_session *s)
{
    tn_cursor c = seqs_cursor(t);
    state_seq q;
    while (next_seq(&c, &q))
        for (size_t k = 0; k < q.length; k++) {
            size_t slot = (size_t)u32_at(q.blocks, k / TN_CACHE_BLOCK) * TN_CACHE_BLOCK + k % TN_CACHE_BLOCK;
            if (u32_at(t->ids, slot) >= (uint32_t)s->model->config.n_vocab)
                return damaged(t, "a token is not in the vocabulary");
        }
    return TN_OK;
}

static tn_status read_state(state *t, const tn_session *s, const uint8_t *bytes, size_t n)
{
    tn_cursor c = {.data = bytes, .size = n};
    tn_status status = read_head(t, &c);
    if (status == TN_OK) status = check_kind(t, s);
    if (status == TN_OK) status = read_parts(t, &c, &s->cache);
    if (status == TN_OK) status = read_seqs(t, &c, &s->cache);
    if (status == TN_OK) status = read_snapshots(t, &c);
    if (status != TN_OK) return status;
    if (t->n_blocks > (uint32_t)s->cache.all.n_blocks)
        return tn_fail(t->ctx, TN_ERR_CONTEXT_FULL, "%s: it holds %u blocks of %d tokens, this session %d",
                       t->name, (unsigned)t->n_blocks, (int)TN_CACHE_BLOCK, s->cache.all.n_blocks);
    // There are no more blocks and snapshots than the cache in memory has, so nothing overflows.
    bool ok = tn_cursor_bytes(&c, (uint64_t)t->n_blocks * TN_CACHE_BLOCK * 4, &t->ids);
    ok = ok && tn_cursor_bytes(&c, t->n_blocks * t->block_size, &t->data);
    ok = ok && tn_cursor_bytes(&c, t->n_snapshots * t->snapshot_size, &t->states);
    if (!ok) return damaged(t, "it ends among the blocks");
    if (tn_cursor_left(&c) > 0) return damaged(t, "something follows its blocks");
    return check_tokens(t, s);
}

// --- taking over ---------------------------------------------------------------------------------------

// Block or slot `id` of n parts; of those that slide block `window`, -1: they are left out.
static tn_status write_parts(tn_cache *c, const tn_cache_part *parts, int32_t n, int32_t id, int32_t window,
                             const uint8_t *data)
{
    for (int32_t i = 0; i < n; i++) {
        const tn_cache_part *p = &parts[i];
        if (p->block_size == 0) continue;
        size_t at = p->offset + (size_t)(p->slides ? window : id) * p->block_size;
        tn_status status = TN_OK;
        if (!p->slides || window >= 0)
            status = tn_buffer_write(&c->buffers[p->device], at, data, p->block_size);
        if (status != TN_OK) return status;
        data += p->block_size;
    }
    return TN_OK;
}

// The cache is empty: there is a slot for each sequence.
static tn_status write_snapshots(const state *t, tn_cache *c)
{
    for (uint32_t i = 0; i < t->n_snapshots; i++) {
        int32_t seq = (int32_t)u32_at(t->snapshots, 2 * (size_t)i), slot = tn_cache_state_take(c);
        if (slot < 0)
            return tn_fail(t->ctx, TN_ERR_INTERNAL, "%s: no free slot for the state of sequence %d", t->name,
                           (int)seq);
        tn_status status =
            write_parts(c, c->parts + c->n_parts, c->n_states, slot, -1, t->states + i * t->snapshot_size);
        if (status != TN_OK) {
            tn_cache_state_drop(c, slot);
            return status;
        }
        tn_cache_state_keep(c, seq, slot, (int32_t)u32_at(t->snapshots, 2 * (size_t)i + 1), true);
    }
    return TN_OK;
}

// windows[i]: the block of the window for block i of the file, -1: no sequence sees it. The cache is empty,
// and has a block for each that one sees.
static tn_status find_windows(const state *t, tn_cache *c, int32_t *windows)
{
    tn_cursor seqs = seqs_cursor(t);
    state_seq q;
    for (uint32_t i = 0; i < t->n_blocks; i++) windows[i] = -1;
    while (tn_cache_has_window(c) && next_seq(&seqs, &q))
        for (int32_t k = tn_cache_window_start(c, (int32_t)q.length);
             k < tn_cache_blocks_of((int32_t)q.length); k++) {
            int32_t *id = &windows[u32_at(q.blocks, (size_t)k)];
            if (*id < 0) *id = tn_cache_window_take(c);
            if (*id < 0) return tn_fail(t->ctx, TN_ERR_INTERNAL, "%s: no block for a window", t->name);
            c->sliding.used[*id] = true;
            c->sliding.refs[*id] = 0;
        }
    return TN_OK;
}

// The sequence sees the blocks of its window.
static void take_window(tn_cache *c, int32_t seq, const state_seq *q, const int32_t *windows)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (!tn_cache_has_window(c)) return;
    s->window_length = s->length;
    s->window_first = tn_cache_window_start(c, s->length);
    tn_cache_window_settle(c, seq);
    for (int32_t k = s->window_first; k < tn_cache_blocks_of(s->length); k++) {
        s->window_blocks[k] = windows[u32_at(q->blocks, (size_t)k)];
        c->sliding.refs[s->window_blocks[k]]++;
    }
}

static void drop_windows(const state *t, tn_cache *c, const int32_t *windows)
{
    for (uint32_t i = 0; i < t->n_blocks; i++)
        if (windows[i] >= 0) c->sliding.free_ids[c->sliding.n_free++] = windows[i];
}

static void take_sequences(const state *t, tn_cache *c, const int32_t *windows)
{
    tn_cache_pool *p = &c->all;
    tn_cursor seqs = seqs_cursor(t);
    state_seq q;
    int32_t top = p->n_free - 1;
    while (next_seq(&seqs, &q)) {
        tn_cache_seq *s = &c->seqs[q.index];
        s->length = (int32_t)q.length;
        for (int32_t k = 0; k < tn_cache_blocks_of(s->length); k++) {
            s->blocks[k] = p->free_ids[top - (int32_t)u32_at(q.blocks, (size_t)k)];
            p->refs[s->blocks[k]]++;
        }
        take_window(c, (int32_t)q.index, &q, windows);
    }
    // Blocks that belong to no sequence stay free.
    int32_t n_free = 0;
    for (int32_t i = 0; i < p->n_free; i++)
        if (p->refs[p->free_ids[i]] == 0) p->free_ids[n_free++] = p->free_ids[i];
    p->n_free = n_free;
}

// Block i gets the i-th free id from the top. The cache is empty here, and stays so if the device fails.
static tn_status take(const state *t, tn_cache *c)
{
    int32_t *windows = tn_alloc(c->ctx, (size_t)t->n_blocks * sizeof *windows);
    if (!windows) return TN_ERR_MEMORY;
    tn_status status = find_windows(t, c, windows);
    for (uint32_t i = 0; i < t->n_blocks && status == TN_OK; i++) {
        int32_t id = c->all.free_ids[c->all.n_free - 1 - (int32_t)i];
        c->all.used[id] = true;
        status = write_parts(c, c->parts, c->n_parts, id, windows[i], t->data + i * t->block_size);
        for (size_t k = 0; k < TN_CACHE_BLOCK; k++)
            c->ids[(size_t)id * TN_CACHE_BLOCK + k] = (int32_t)u32_at(t->ids, (size_t)i * TN_CACHE_BLOCK + k);
    }
    if (status == TN_OK) status = write_snapshots(t, c);
    if (status == TN_OK) {
        take_sequences(t, c, windows);
    } else {
        for (int32_t seq = 0; seq < c->n_seq; seq++) tn_cache_states_truncate(c, seq, 0);
        drop_windows(t, c, windows);
    }
    tn_free(c->ctx, windows);
    return status;
}

static tn_status load(tn_session *s, const uint8_t *bytes, size_t n, const char *name)
{
    state t = {.ctx = s->ctx, .name = name};
    tn_status status = read_state(&t, s, bytes, n);
    if (status != TN_OK) return status;
    for (int32_t q = 0; q < s->cfg.n_seq && status == TN_OK; q++) status = tn_session_truncate(s, q, 0);
    for (int32_t q = 1; q < s->cfg.n_seq && status == TN_OK; q++) tn_session_copy_adapters(s, 0, q);
    return status == TN_OK ? take(&t, &s->cache) : status;
}

tn_status tn_session_load(tn_session *s, const char *path)
{
    TN_NEED(NULL, s);
    TN_NEED(s->ctx, path);
    if (!path) return tn_fail(s->ctx, TN_ERR_ARG, "no path to load the session from");
    tn_file_map map;
    tn_status status = tn_file_map_open(s->ctx, path, &map);
    if (status != TN_OK) return status;
    status = tn_file_map_fetch(s->ctx, &map, 0, map.size); // a disk that fails is an error here
    if (status == TN_OK) status = load(s, map.data, map.size, path);
    tn_file_map_close(s->ctx, &map);
    return status;
}

tn_status tn_session_load_memory(tn_session *s, const void *bytes, size_t n)
{
    TN_NEED(NULL, s);
    if (n > 0) TN_NEED(s->ctx, bytes);
    if (n > 0 && !bytes) return tn_fail(s->ctx, TN_ERR_ARG, "a session of %zu bytes at NULL", n);
    return load(s, bytes, n, "session");
}
