// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Saving sessions. The layout is in state.h.
#include "models/run/state.h"

#include "core/checked.h"
#include "core/os/file_map.h"
#include "core/hash.h"
#include "core/strbuf.h"

#include <string.h>

// --- the model ---------------------------------------------------------------------------------------

static void hash_u64(tn_hash *h, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(v >> 8 * i);
    tn_hash_add(h, bytes, sizeof bytes);
}

static void hash_text(tn_hash *h, const char *text, size_t n)
{
    hash_u64(h, n);
    tn_hash_add(h, text, n);
}

static tn_status hash_tensor(tn_hash *h, const tn_gguf *gguf, const tn_gguf_tensor *t)
{
    enum { SAMPLE = 64 };
    uint8_t bytes[SAMPLE] = {0};
    size_t n = TN_MIN(t->size, SAMPLE), middle = TN_MIN(t->size / 2, t->size - n);
    hash_text(h, t->name, strlen(t->name));
    hash_u64(h, (uint64_t)t->dtype);
    hash_u64(h, (uint64_t)t->n_dims);
    for (int32_t i = 0; i < t->n_dims; i++) hash_u64(h, (uint64_t)t->ne[i]);
    if (!t->data) return TN_OK;
    tn_status status = tn_gguf_tensor_read(gguf, t, 0, bytes, n);
    tn_hash_add(h, bytes, n);
    if (status == TN_OK) status = tn_gguf_tensor_read(gguf, t, middle, bytes, n);
    tn_hash_add(h, bytes, n);
    return status;
}

static tn_status hash_file(tn_hash *h, const tn_gguf *gguf)
{
    for (int64_t i = 0; i < tn_gguf_n_kv(gguf); i++) {
        const tn_gguf_kv *kv = tn_gguf_kv_at(gguf, i);
        hash_text(h, kv->key.data, kv->key.size);
        hash_u64(h, (uint64_t)kv->type);
        hash_u64(h, kv->count);
        hash_text(h, (const char *)kv->data, kv->size);
    }
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_gguf_n_tensors(gguf) && status == TN_OK; i++)
        status = hash_tensor(h, gguf, tn_gguf_tensor_at(gguf, i));
    return status;
}

tn_status tn_state_model_hash(const tn_session *s, int32_t seq, uint64_t *out)
{
    tn_hash h;
    tn_hash_init(&h);
    tn_status status = hash_file(&h, s->model->gguf);
    for (int32_t i = 0; i < s->n_adapters && status == TN_OK; i++) {
        float scale = s->adapter_scales[(size_t)seq * (size_t)s->n_adapters + (size_t)i];
        uint32_t bits;
        memcpy(&bits, &scale, sizeof bits);
        if (scale == 0.0f) continue; // the file of a session without the adapter is the same
        status = hash_file(&h, s->adapters[i]->gguf);
        hash_u64(&h, bits);
    }
    if (status == TN_OK) *out = tn_hash_value(&h);
    return status;
}

// The sequence whose adapters a save records: all that hold tokens must have the same.
static tn_status find_adapters(const tn_session *s, int32_t *seq)
{
    *seq = -1;
    for (int32_t q = 0; q < s->cfg.n_seq; q++) {
        if (s->cache.seqs[q].length == 0) continue;
        if (*seq < 0) *seq = q;
        if (!tn_session_same_adapters(s, q, *seq))
            return tn_fail(s->ctx, TN_ERR_UNSUPPORTED,
                           "sequences %d and %d use adapters with different scales: they cannot be saved "
                           "together",
                           *seq, q);
    }
    *seq = TN_MAX(*seq, 0);
    return TN_OK;
}

uint32_t tn_state_flags(const tn_session *s)
{
    return tn_decoder_long_rope(&s->model->config, s->cfg.n_ctx_seq) ? TN_STATE_LONG_ROPE : 0;
}

// --- where the bytes go --------------------------------------------------------------------------------

typedef struct sink {
    tn_file_writer *file; // NULL: memory
    char *memory;
    size_t size, used; // bytes of all, bytes so far
    tn_hash hash;
} sink;

static tn_status sink_put(sink *out, const void *bytes, size_t n)
{
    tn_hash_add(&out->hash, bytes, n);
    out->used += n;
    if (out->file) return tn_file_writer_write(out->file, bytes, n);
    memcpy(out->memory + out->used - n, bytes, n);
    return TN_OK;
}

static void put_number(tn_strbuf *b, uint64_t v, size_t n_bytes)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)(v >> 8 * i);
    tn_strbuf_append(b, bytes, n_bytes);
}

// --- what is written -----------------------------------------------------------------------------------

// The blocks that a save writes. A block that sequences share is written once.
typedef struct plan {
    int32_t *number;  // per block of the cache: its number in the file, -1: not in use
    int32_t *blocks;  // in the file: its id in the cache
    int32_t *reached; // in the file: tokens that a sequence reaches
    int32_t *windows; // in the file: id of the block of the window, -1: no sequence sees it
    int32_t n_blocks, n_seqs, n_snapshots;
    size_t size;
} plan;

static void plan_fini(tn_context *ctx, plan *p)
{
    tn_free(ctx, p->number);
}

static tn_status plan_size(const tn_cache *c, plan *p)
{
    size_t block = TN_CACHE_BLOCK * 4, snapshot = 8, data, states, refs = 0;
    bool ok = true;
    for (int32_t i = 0; i < c->n_parts; i++) ok = ok && tn_add_size(block, c->parts[i].block_size, &block);
    for (int32_t i = 0; i < c->n_states; i++)
        ok = ok && tn_add_size(snapshot, c->parts[c->n_parts + i].block_size, &snapshot);
    for (int32_t q = 0; q < c->n_seq; q++)
        if (c->seqs[q].length > 0) refs += 8 + 4 * (size_t)tn_cache_blocks_of(c->seqs[q].length);
    p->size = TN_STATE_HEAD_SIZE + TN_STATE_CHECKSUM_SIZE + 8 * (size_t)(c->n_parts + c->n_states) + refs;
    ok = ok && tn_mul_size(block, (size_t)p->n_blocks, &data) && tn_add_size(p->size, data, &p->size);
    ok = ok && tn_mul_size(snapshot, (size_t)p->n_snapshots, &states) &&
         tn_add_size(p->size, states, &p->size);
    return ok ? TN_OK
              : tn_fail(c->ctx, TN_ERR_MEMORY, "out of memory: the state of the session is too large");
}

// Number of tokens in the last recurrent state of a sequence; 0: there is none.
static int32_t snapshot_of(const tn_cache *c, int32_t seq, int32_t *slot)
{
    return c->n_slots > 0 ? tn_cache_state_find(c, seq, slot) : 0;
}

static tn_status plan_init(const tn_cache *c, plan *p)
{
    size_t n = (size_t)c->all.n_blocks;
    *p = (plan){.number = tn_alloc(c->ctx, 4 * n * sizeof *p->number)};
    if (!p->number) return TN_ERR_MEMORY;
    p->blocks = p->number + n;
    p->reached = p->blocks + n;
    p->windows = p->reached + n;
    for (size_t i = 0; i < n; i++) p->number[i] = -1;
    for (int32_t q = 0; q < c->n_seq; q++) {
        const tn_cache_seq *s = &c->seqs[q];
        int32_t slot;
        p->n_seqs += s->length > 0;
        p->n_snapshots += snapshot_of(c, q, &slot) > 0;
        for (int32_t i = 0; i < tn_cache_blocks_of(s->length); i++) {
            int32_t id = s->blocks[i], used = TN_MIN(s->length - i * TN_CACHE_BLOCK, TN_CACHE_BLOCK);
            if (p->number[id] < 0) {
                p->number[id] = p->n_blocks;
                p->blocks[p->n_blocks] = id;
                p->windows[p->n_blocks] = -1;
                p->reached[p->n_blocks++] = 0;
            }
            int32_t *reached = &p->reached[p->number[id]], *window = &p->windows[p->number[id]];
            // The block of the window that holds the most of its tokens.
            bool seen = tn_cache_has_window(c) && i >= tn_cache_window_start(c, s->length);
            if (seen && (*window < 0 || used > *reached)) *window = s->window_blocks[i];
            *reached = TN_MAX(*reached, used);
        }
    }
    return plan_size(c, p);
}

// Everything before the data.
static tn_status make_head(const tn_session *s, const plan *p, tn_strbuf *b)
{
    const tn_cache *c = &s->cache;
    int32_t alike;
    uint64_t model = 0;
    tn_status status = find_adapters(s, &alike);
    if (status == TN_OK) status = tn_state_model_hash(s, alike, &model);
    if (status != TN_OK) return status;
    tn_strbuf_append(b, TN_STATE_MAGIC, 8);
    put_number(b, TN_STATE_VERSION, 4);
    put_number(b, tn_state_flags(s), 4);
    put_number(b, p->size, 8);
    put_number(b, model, 8);
    put_number(b, (uint32_t)tn_dtype_file_id(s->cfg.cache_type_k), 4);
    put_number(b, (uint32_t)tn_dtype_file_id(s->cfg.cache_type_v), 4);
    put_number(b, TN_CACHE_BLOCK, 4);
    put_number(b, (uint32_t)p->n_blocks, 4);
    put_number(b, (uint32_t)p->n_seqs, 4);
    put_number(b, (uint32_t)c->n_parts, 4);
    put_number(b, (uint32_t)c->n_states, 4);
    put_number(b, (uint32_t)p->n_snapshots, 4);
    for (int32_t i = 0; i < c->n_parts + c->n_states; i++) put_number(b, c->parts[i].block_size, 8);
    for (int32_t q = 0; q < c->n_seq; q++) {
        const tn_cache_seq *seq = &c->seqs[q];
        if (seq->length == 0) continue;
        put_number(b, (uint32_t)q, 4);
        put_number(b, (uint32_t)seq->length, 4);
        for (int32_t i = 0; i < tn_cache_blocks_of(seq->length); i++)
            put_number(b, (uint32_t)p->number[seq->blocks[i]], 4);
    }
    for (int32_t q = 0; q < c->n_seq; q++) {
        int32_t slot, n = snapshot_of(c, q, &slot);
        if (n == 0) continue;
        put_number(b, (uint32_t)q, 4);
        put_number(b, (uint32_t)n, 4);
    }
    for (int32_t i = 0; i < p->n_blocks; i++)
        for (int32_t k = 0; k < TN_CACHE_BLOCK; k++)
            put_number(b, k < p->reached[i] ? (uint32_t)c->ids[p->blocks[i] * TN_CACHE_BLOCK + k] : 0, 4);
    return b->status;
}

// Block or slot `id` of a part.
static tn_status read_part(const tn_cache *c, const tn_cache_part *part, int32_t id, char *piece)
{
    size_t at = part->offset + (size_t)id * part->block_size;
    return tn_buffer_read(&c->buffers[part->device], at, piece, part->block_size);
}

// Clears the rows of a block [heads, TN_CACHE_BLOCK, row] that no sequence uses. They may hold tokens that
// were cut off before saving, and those must not get into the file.
static void clear_rest(char *block, size_t size, int32_t n_heads, int32_t reached)
{
    size_t head = size / (size_t)n_heads, kept = head / TN_CACHE_BLOCK * (size_t)reached;
    for (int32_t h = 0; h < n_heads; h++) memset(block + (size_t)h * head + kept, 0, head - kept);
}

// Block i of the file.
static tn_status put_block(const tn_session *s, const plan *p, int32_t i, char *piece, sink *out)
{
    const tn_cache *c = &s->cache;
    for (int32_t k = 0; k < c->n_parts; k++) {
        const tn_cache_part *part = &c->parts[k];
        if (part->block_size == 0) continue; // values that are a part of the keys, layers of the other kind
        int32_t id = part->slides ? p->windows[i] : p->blocks[i];
        tn_status status = TN_OK;
        if (id >= 0)
            status = read_part(c, part, id, piece);
        else
            memset(piece, 0, part->block_size);
        if (status != TN_OK) return status;
        int32_t layer = tn_session_part_layer(s, k);
        clear_rest(piece, part->block_size, s->model->config.layers[layer].n_kv_heads, p->reached[i]);
        status = sink_put(out, piece, part->block_size);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

static tn_status put_states(const tn_cache *c, int32_t slot, char *piece, sink *out)
{
    for (int32_t k = c->n_parts; k < c->n_parts + c->n_states; k++) {
        const tn_cache_part *part = &c->parts[k];
        if (part->block_size == 0) continue;
        tn_status status = read_part(c, part, slot, piece);
        if (status == TN_OK) status = sink_put(out, piece, part->block_size);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

static tn_status put_data(const tn_session *s, const plan *p, char *piece, sink *out)
{
    const tn_cache *c = &s->cache;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < p->n_blocks && status == TN_OK; i++) status = put_block(s, p, i, piece, out);
    for (int32_t q = 0; q < c->n_seq && status == TN_OK; q++) {
        int32_t slot;
        if (snapshot_of(c, q, &slot) > 0) status = put_states(c, slot, piece, out);
    }
    return status;
}

static tn_status put_all(const tn_session *s, const plan *p, sink *out)
{
    const tn_cache *c = &s->cache;
    size_t largest = 0;
    for (int32_t i = 0; i < c->n_parts + c->n_states; i++) largest = TN_MAX(largest, c->parts[i].block_size);
    tn_strbuf head;
    tn_strbuf_init(&head, s->ctx);
    tn_hash_init(&out->hash);
    char *piece = tn_alloc(s->ctx, largest);
    tn_status status = piece ? make_head(s, p, &head) : TN_ERR_MEMORY;
    if (status == TN_OK) status = sink_put(out, head.data, head.size);
    if (status == TN_OK) status = put_data(s, p, piece, out);
    if (status == TN_OK) {
        tn_strbuf_clear(&head);
        put_number(&head, tn_hash_value(&out->hash), TN_STATE_CHECKSUM_SIZE);
        status = head.status == TN_OK ? sink_put(out, head.data, head.size) : head.status;
    }
    tn_strbuf_fini(&head);
    tn_free(s->ctx, piece);
    if (status == TN_OK && out->used != p->size)
        status = tn_fail(s->ctx, TN_ERR_INTERNAL, "a state of %zu bytes, not %zu", out->used, p->size);
    return status;
}

// A file has the windows of all sequences.
static tn_status catch_up(tn_session *s)
{
    tn_status status = TN_OK;
    for (int32_t q = 0; tn_cache_has_window(&s->cache) && q < s->cfg.n_seq && status == TN_OK; q++)
        status = tn_session_catch_up(s, q);
    return status;
}

tn_status tn_session_save(tn_session *s, const char *path)
{
    TN_NEED(NULL, s);
    TN_NEED(s->ctx, path);
    if (!path) return tn_fail(s->ctx, TN_ERR_ARG, "no path to save the session to");
    plan p = {0};
    sink out = {0};
    tn_status status = catch_up(s);
    if (status == TN_OK) status = plan_init(&s->cache, &p);
    if (status == TN_OK) status = tn_file_writer_open(s->ctx, path, &out.file);
    if (status == TN_OK) status = put_all(s, &p, &out);
    if (status == TN_OK) status = tn_file_writer_commit(&out.file);
    tn_file_writer_abort(&out.file);
    plan_fini(s->ctx, &p);
    return status;
}

tn_status tn_session_save_memory(tn_session *s, char **bytes, size_t *n)
{
    TN_NEED(NULL, s);
    TN_NEED(s->ctx, bytes);
    TN_NEED(s->ctx, n);
    plan p = {0};
    sink out = {0};
    tn_status status = catch_up(s);
    if (status == TN_OK) status = plan_init(&s->cache, &p);
    if (status == TN_OK) {
        out.memory = tn_alloc(s->ctx, p.size);
        status = out.memory ? put_all(s, &p, &out) : TN_ERR_MEMORY;
    }
    plan_fini(s->ctx, &p);
    if (status != TN_OK) {
        tn_free(s->ctx, out.memory);
        return status;
    }
    *bytes = out.memory;
    *n = out.used;
    return TN_OK;
}
