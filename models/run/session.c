// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sessions: creation, the cache, the inputs of an eval. After the first token decoding reuses its plan: it
// fills small buffers, submits, and reads the results; it records and allocates nothing.
#include "core/cpu_features.h"
#include "models/run/sampling/logits.h"
#include "models/run/session.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_CONTEXT = 4096, MAX_BATCH = 65536, MAX_SEQUENCES = 256, MAX_CHECKPOINTS = 1024 };
enum { MAX_CONTEXT = 1 << 24 }; // tokens; the lists of blocks alone would take 1 GiB at 16 times that

void tn_session_config_init(tn_session_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_session_config, cfg, struct_size,
                   {.n_seq = 1,
                    .cache_type_k = TN_TYPE_F16,
                    .cache_type_v = TN_TYPE_F16,
                    .fusion = 1,
                    .n_checkpoints = 4});
}

// --- creation --------------------------------------------------------------------------------------

static bool cache_type_known(tn_dtype t)
{
    return t == TN_TYPE_F32 || t == TN_TYPE_F16 || t == TN_TYPE_BF16 || t == TN_TYPE_Q8_0 ||
           t == TN_TYPE_Q4_0;
}

static tn_status read_config(tn_model *m, const tn_session_config *given, tn_session_config *c)
{
    if (m->tokenizer_only)
        return tn_fail(m->ctx, TN_ERR_STATE, "the model was opened for its tokenizer only");
    tn_session_config_default(c);
    tn_context *ctx = m->ctx;
    tn_status status = TN_STRUCT_READ(ctx, tn_session_config, given, c);
    if (status != TN_OK) return status;
    if (c->n_ctx < 0 || c->n_ctx > MAX_CONTEXT)
        return tn_fail(ctx, TN_ERR_ARG, "context of %d tokens, must be 1 to %d, or 0 for the default",
                       c->n_ctx, MAX_CONTEXT);
    if (c->n_ctx == 0) c->n_ctx = TN_MIN(m->config.n_ctx_train, DEFAULT_CONTEXT);
    if (c->n_ctx_seq < 0 || c->n_ctx_seq > c->n_ctx)
        return tn_fail(ctx, TN_ERR_ARG, "sequences of %d tokens, must be 1 to %d, the context", c->n_ctx_seq,
                       c->n_ctx);
    if (c->n_ctx_seq == 0) c->n_ctx_seq = c->n_ctx;
    if (tn_model_find_weight(m, "position_embd.weight") >= 0 && c->n_ctx_seq > m->config.n_ctx_train)
        return tn_fail(ctx, TN_ERR_ARG, "%d positions are wanted, the model has learned %d", c->n_ctx_seq,
                       m->config.n_ctx_train);
    if (c->n_batch < 0 || c->n_batch > MAX_BATCH)
        return tn_fail(ctx, TN_ERR_ARG, "batch of %d, must be 1 to %d, or 0 for what suits the device",
                       c->n_batch, MAX_BATCH);
    if (c->n_batch == 0) c->n_batch = m->n_batch;
    if (c->n_seq < 1 || c->n_seq > MAX_SEQUENCES)
        return tn_fail(ctx, TN_ERR_ARG, "%d sequences, must be 1 to %d", c->n_seq, MAX_SEQUENCES);
    if (!cache_type_known(c->cache_type_k) || !cache_type_known(c->cache_type_v))
        return tn_fail(ctx, TN_ERR_ARG, "cache of %s and %s: known are F32 F16 BF16 Q8_0 Q4_0",
                       tn_dtype_name(c->cache_type_k), tn_dtype_name(c->cache_type_v));
    if (c->precision < 0 || c->precision >= TN_PRECISION_COUNT)
        return tn_fail(ctx, TN_ERR_ARG, "precision %d", c->precision);
    if (m->config.whole_texts && c->result == TN_RESULT_LOGITS) c->result = TN_RESULT_HIDDEN;
    if (c->result < TN_RESULT_LOGITS || c->result > TN_RESULT_SCORES)
        return tn_fail(ctx, TN_ERR_ARG, "result %d", c->result);
    if (tn_result_width(m, c->result) < 1)
        return tn_fail(ctx, TN_ERR_UNSUPPORTED,
                       "the model has no classification head (cls.weight or cls.output.weight)");
    if (!m->config.whole_texts) c->n_batch = TN_MIN(c->n_batch, c->n_ctx);
    if (c->n_checkpoints < 0 || c->n_checkpoints > MAX_CHECKPOINTS)
        return tn_fail(ctx, TN_ERR_ARG, "%d checkpoints, must be 0 to %d", c->n_checkpoints, MAX_CHECKPOINTS);
    c->n_batch = TN_MAX(c->n_batch, c->n_seq);
    return TN_OK;
}

// Bytes of one token in K and V of every layer: K of layer i is part 2i, V is part 2i+1.
static tn_status part_sizes(const tn_session *s, size_t **out)
{
    const tn_config *c = &s->model->config;
    size_t *rows = tn_calloc(s->ctx, (size_t)c->n_layers * 2, sizeof *rows);
    if (!rows) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < c->n_layers && !c->whole_texts; i++)
        for (int32_t v = 0; v < 2; v++) {
            tn_dtype type = v ? s->cfg.cache_type_v : s->cfg.cache_type_k;
            int64_t block = tn_dtype_block_elems(type),
                    dim = v ? c->layers[i].head_dim_v : c->layers[i].head_dim;
            dim = (dim + block - 1) / block * block;
            if (v && c->mla.kv_rank > 0) dim = 0;    // a part of K
            if (c->layers[i].kv_layer != i) dim = 0; // K and V of another layer
            if (c->layers[i].recurrent) dim = 0;
            rows[2 * i + v] = tn_dtype_row_size(type, dim) * (size_t)c->layers[i].n_kv_heads;
        }
    *out = rows;
    return TN_OK;
}

static tn_status make_host_arrays(tn_session *s)
{
    size_t n = (size_t)s->cfg.n_batch, n_seq = (size_t)s->cfg.n_seq;
    size_t table = n_seq * (size_t)s->setup.max_blocks;
    bool window = tn_cache_has_window(&s->cache);
    s->ints = tn_calloc(s->ctx, 5 * n + 4 * n_seq + 1 + table + (window ? n + table : 0), sizeof *s->ints);
    s->q_scale = tn_calloc(s->ctx, n, sizeof *s->q_scale);
    s->feeds = tn_calloc(s->ctx, n_seq, sizeof *s->feeds);
    s->rows_read = tn_calloc(s->ctx, n_seq, sizeof *s->rows_read);
    if (!s->ints || !s->q_scale || !s->feeds || !s->rows_read) return TN_ERR_MEMORY;
    if (s->model->config.mla.kv_rank > 0) {
        size_t n_heads = (size_t)s->model->config.layers[0].n_heads;
        s->head_ids = tn_calloc(s->ctx, n * n_heads, sizeof *s->head_ids);
        if (!s->head_ids) return TN_ERR_MEMORY;
        for (size_t i = 0; i < n * n_heads; i++) s->head_ids[i] = (int32_t)(i % n_heads);
    }
    if (s->setup.best) {
        s->best = tn_calloc(s->ctx, n, sizeof *s->best);
        s->best_logprob = tn_calloc(s->ctx, n, sizeof *s->best_logprob);
        // Memory for the logits of one row per sequence. Reading all rows of a prompt allocates more.
        s->logits_size = n_seq * (size_t)s->model->config.n_vocab * sizeof *s->logits_copy;
        s->logits_copy = tn_alloc(s->ctx, s->logits_size);
        if (!s->best || !s->best_logprob || !s->logits_copy) return TN_ERR_MEMORY;
    }
    s->tokens = s->ints;
    s->positions = s->tokens + n;
    s->slots = s->positions + n;
    s->out_rows = s->slots + n;
    s->types = s->out_rows + n;
    s->q_start = s->types + n;
    s->kv_len = s->q_start + n_seq + 1;
    s->state_slots = s->kv_len + n_seq;
    s->table = s->state_slots + 2 * n_seq;
    if (window) s->window_table = s->table + table, s->window_slots = s->window_table + table;
    return TN_OK;
}

// Systems grant more memory than they have. Zeroing allocates the pages now, so that no text fails in the
// middle.
static tn_status reserve_buffer(tn_device *device, size_t size, tn_buffer *out)
{
    if (size == 0) return TN_OK;
    tn_status status = tn_buffer_create(device, size, out);
    return status == TN_OK ? tn_buffer_zero(out, 0, size) : status;
}

static tn_status find_sizes(tn_session *s)
{
    int32_t n = s->n_devices = s->slots_of_plans[0].plan->n_devices;
    s->arena_size = tn_calloc(s->ctx, 4 * (size_t)n, sizeof *s->arena_size);
    if (!s->arena_size) return TN_ERR_MEMORY;
    s->scratch_size = s->arena_size + n;
    s->input_size = s->scratch_size + n;
    s->derived_size = s->input_size + n;
    for (int32_t i = 0; i < TN_SESSION_SLOTS; i++) {
        const tn_plan *p = s->slots_of_plans[i].plan;
        for (int32_t d = 0; p && d < n; d++) {
            s->arena_size[d] = TN_MAX(s->arena_size[d], p->arena_size[d]);
            s->scratch_size[d] = TN_MAX(s->scratch_size[d], p->scratch_size[d]);
            s->derived_size[d] = TN_MAX(s->derived_size[d], p->derived_size[d]);
            // Devices with host memory read the inputs in the memory of the runners.
            if (!p->devices[d]->host_memory) s->input_size[d] = TN_MAX(s->input_size[d], p->input_size[d]);
        }
    }
    return TN_OK;
}

static tn_status make_shared_buffers(tn_session *s)
{
    tn_device *const *devices = s->slots_of_plans[0].plan->devices;
    s->arena = tn_calloc(s->ctx, 3 * (size_t)s->n_devices, sizeof *s->arena);
    if (!s->arena) return TN_ERR_MEMORY;
    s->scratch = s->arena + s->n_devices;
    s->inputs = s->scratch + s->n_devices;
    tn_status status = TN_OK;
    for (int32_t d = 0; d < s->n_devices && status == TN_OK; d++) {
        status = reserve_buffer(devices[d], s->arena_size[d], &s->arena[d]);
        if (status == TN_OK) status = reserve_buffer(devices[d], s->scratch_size[d], &s->scratch[d]);
        if (status == TN_OK) status = reserve_buffer(devices[d], s->input_size[d], &s->inputs[d]);
    }
    return status;
}

int32_t tn_session_keys(const tn_session *s, tn_plan_key keys[TN_SESSION_KEYS])
{
    int32_t n = 0, n_seq = s->cfg.n_seq, n_batch = s->cfg.n_batch;
    bool whole = s->model->config.whole_texts;
    uint32_t adapters = tn_session_adapters_of(s, 0); // all sequences begin with the same scales
    keys[n++] = (tn_plan_key){
        .n_tokens = n_batch, .n_seq = n_seq, .n_outputs = whole ? n_batch : n_seq, .adapters = adapters};
    if (whole) return n;
    // Of a prompt longer than a batch.
    if (s->cfg.n_ctx_seq > n_batch)
        keys[n++] = (tn_plan_key){.n_tokens = n_batch, .n_seq = 1, .adapters = adapters};
    if (n_seq > 1 && n_batch > n_seq)
        keys[n++] =
            (tn_plan_key){.n_tokens = n_seq, .n_seq = n_seq, .n_outputs = n_seq, .adapters = adapters};
    if (n_batch > 1)
        keys[n++] = (tn_plan_key){.n_tokens = 1, .n_seq = 1, .n_outputs = 1, .adapters = adapters};
    return n;
}

// Bytes of a slot of the recurrent states of every layer: columns of the convolution of layer i are state 2i,
// its matrix 2i+1.
static tn_status state_sizes(const tn_session *s, size_t **out)
{
    const tn_config *c = &s->model->config;
    const tn_delta_config *d = &c->delta;
    size_t *sizes = tn_calloc(s->ctx, (size_t)c->n_layers * 2, sizeof *sizes);
    if (!sizes) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < c->n_layers; i++) {
        if (!c->layers[i].recurrent) continue;
        sizes[2 * i] = (size_t)(d->n_conv - 1) * (size_t)d->n_channels * sizeof(float);
        sizes[2 * i + 1] = (size_t)d->n_heads * (size_t)d->dim * (size_t)d->dim * sizeof(float);
    }
    *out = sizes;
    return TN_OK;
}

// Layers whose K and V are read by layers with a window only.
static void find_windows(tn_session *s)
{
    const tn_config *c = &s->model->config;
    bool *layers = s->windowed + 2 * (size_t)c->n_layers;
    for (int32_t i = 0; i < c->n_layers; i++) layers[i] = c->layers[i].sliding;
    for (int32_t i = 0; i < c->n_layers; i++)
        if (!c->layers[i].sliding) layers[c->layers[i].kv_layer] = false;
    for (int32_t i = 0; i < 2 * c->n_layers; i++) s->windowed[i] = layers[i / 2];
}

static tn_status init_cache(tn_session *s)
{
    const tn_config *c = &s->model->config;
    int32_t n_parts = 2 * c->n_layers;
    size_t *rows = NULL, *states = NULL;
    tn_status status = part_sizes(s, &rows);
    if (status == TN_OK) status = state_sizes(s, &states);
    uint8_t *devices = tn_calloc(s->ctx, (size_t)n_parts, sizeof *devices);
    if (status == TN_OK && !devices) status = TN_ERR_MEMORY;
    for (int32_t i = 0; i < n_parts && status == TN_OK; i++)
        devices[i] = i / 2 < s->setup.n_host_layers || s->host_states[i / 2];
    tn_cache_config cfg = {.n_ctx = s->cfg.n_ctx,
                           .n_ctx_seq = s->cfg.n_ctx_seq,
                           .n_seq = s->cfg.n_seq,
                           .n_parts = n_parts,
                           .row_sizes = rows,
                           .devices = devices,
                           .n_batch = s->cfg.n_batch,
                           .slides = s->windowed};
    if (!c->whole_texts && s->cfg.free_windows != 0) cfg.window = c->chunk > 0 ? c->chunk : c->window;
    find_windows(s);
    bool any = false;
    for (int32_t i = 0; i < n_parts; i++) any |= s->windowed[i];
    if (!any) cfg.window = 0;
    if (c->delta.dim > 0) {
        cfg.n_states = n_parts;
        cfg.n_slots = 2 * s->cfg.n_seq + s->cfg.n_checkpoints;
        cfg.state_sizes = states;
        cfg.state_devices = devices;
    }
    tn_cache_fini(&s->cache);
    if (status == TN_OK) status = tn_cache_init(&s->cache, s->ctx, &cfg);
    tn_free(s->ctx, devices);
    tn_free(s->ctx, states);
    tn_free(s->ctx, rows);
    return status;
}

// Layers whose cache had to move to the host, because the device has no kernel for their attention.
static bool find_host_states(tn_session *s, const tn_plan *p)
{
    bool moved = false;
    for (int32_t i = 0; i < p->n_bound && s->n_targets > 1; i++) {
        int32_t part = tn_session_cache_part(s, p->bound[i].name);
        if (part < 0 || s->cache.parts[part].device == 1 || !(p->bound[i].devices >> 1 & 1)) continue;
        moved = s->host_states[tn_session_part_layer(s, part)] = true;
    }
    return moved;
}

// If one plan moves the cache of a layer to the host, all plans have to.
static tn_status make_plans(tn_session *s)
{
    tn_plan_key keys[TN_SESSION_KEYS];
    int32_t n = tn_session_keys(s, keys);
    tn_status status = TN_OK;
    for (bool moved = true; moved && status == TN_OK;) {
        moved = false;
        for (int32_t i = 0; i < n && status == TN_OK; i++) {
            tn_session_drop_slot(s, &s->slots_of_plans[i]);
            status = tn_session_plan_slot(s, &keys[i], &s->slots_of_plans[i]);
            if (status == TN_OK) moved |= find_host_states(s, s->slots_of_plans[i].plan);
        }
        if (moved && status == TN_OK) status = init_cache(s);
    }
    return status;
}

// Systems grant more host memory than they have, and end some process once it is used.
static tn_status check_host_memory(const tn_session *s)
{
    tn_device *const *devices = s->slots_of_plans[0].plan->devices;
    uint64_t need = 0, total, available;
    for (int32_t d = 0; d < s->n_devices; d++)
        if (devices[d]->host_memory) need += s->arena_size[d] + s->scratch_size[d] + s->input_size[d];
    for (int32_t d = 0; d < TN_CACHE_DEVICES && d < s->n_targets; d++)
        if (s->devices[d]->host_memory) need += s->cache.sizes[d];
    tn_system_memory(&total, &available);
    if (total == 0 || need <= available) return TN_OK;
    return tn_fail(
        s->ctx, TN_ERR_MEMORY,
        "out of memory: a session with a context of %d tokens takes %llu MiB, %llu MiB are available",
        s->cfg.n_ctx, (unsigned long long)(need >> 20), (unsigned long long)(available >> 20));
}

// First the plans, then all their memory at once, then their executables: from then on no step can run out of
// memory.
static tn_status reserve(tn_session *s)
{
    tn_status status = make_plans(s);
    if (status == TN_OK) status = find_sizes(s);
    if (status == TN_OK) status = tn_session_sampling_init(s);
    if (s->dry || status != TN_OK) return status;
    uint64_t begin = tn_span_begin(s->ctx);
    status = check_host_memory(s);
    if (status == TN_OK) status = tn_cache_reserve(&s->cache, s->devices);
    if (status == TN_OK) status = make_shared_buffers(s);
    tn_span_end(s->ctx, TN_SPAN_LOAD, "reserve cache and activations", begin, 0);
    for (int32_t i = 0; i < TN_SESSION_SLOTS && status == TN_OK; i++)
        if (s->slots_of_plans[i].plan) status = tn_session_prepare_slot(s, &s->slots_of_plans[i]);
    return status;
}

void tn_session_destroy(tn_session **session)
{
    if (!session || !*session) return;
    tn_session *s = *session;
    for (int32_t i = 0; i < TN_SESSION_SLOTS; i++) tn_session_drop_slot(s, &s->slots_of_plans[i]);
    for (int32_t d = 0; s->arena && d < 3 * s->n_devices; d++) tn_buffer_destroy(&s->arena[d]);
    tn_free(s->ctx, s->arena);
    tn_free(s->ctx, s->arena_size);
    tn_free(s->ctx, s->host_states);
    tn_free(s->ctx, s->windowed);
    tn_free(s->ctx, s->ints);
    tn_free(s->ctx, s->q_scale);
    tn_free(s->ctx, s->feeds);
    tn_free(s->ctx, s->head_ids);
    tn_free(s->ctx, s->logits_copy);
    tn_free(s->ctx, s->rows_read);
    tn_session_sampling_fini(s);
    tn_free(s->ctx, s->best);
    tn_free(s->ctx, s->best_logprob);
    tn_free(s->ctx, s->step_ns);
    tn_session_adapters_fini(s);
    tn_cache_fini(&s->cache);
    tn_model_unref(&s->model);
    tn_free(s->ctx, s);
    *session = NULL;
}

// A device other than that of the model runs all layers: it has host memory, where all weights are.
static void set_devices(tn_session *s, tn_device *device)
{
    const tn_model *m = s->model;
    s->devices[s->n_targets++] = device;
    if (device != m->device || m->host == device) return;
    s->devices[s->n_targets++] = m->host;
    s->setup.n_host_layers = m->config.n_layers - m->device_layers;
}

tn_status tn_session_create_on(tn_model *model, tn_device *device, const tn_session_config *cfg, bool dry,
                               tn_session **out)
{
    tn_context *ctx = model->ctx;
    tn_session_config c;
    tn_status status = read_config(model, cfg, &c);
    if (status != TN_OK) return status;
    tn_session *s = tn_calloc(ctx, 1, sizeof *s);
    if (!s) return TN_ERR_MEMORY;
    *s = (tn_session){.ctx = ctx, .model = tn_model_ref(model), .cfg = c, .dry = dry, .quiet = dry};
    atomic_init(&s->cancel, 0);
    s->cancelled = &s->cancel;
    set_devices(s, device);
    s->host_states = tn_calloc(ctx, (size_t)model->config.n_layers, sizeof *s->host_states);
    s->windowed = tn_calloc(ctx, 3 * (size_t)model->config.n_layers, sizeof *s->windowed);
    status = s->host_states && s->windowed ? init_cache(s) : TN_ERR_MEMORY;
    if (status == TN_OK) status = tn_session_adapters_init(s, &c);
    if (status == TN_OK) {
        s->setup = (tn_decoder_setup){
            .n_blocks = s->cache.all.n_blocks,
            .n_window_blocks = s->cache.sliding.n_blocks,
            .windowed = s->windowed + 2 * (size_t)model->config.n_layers,
            .block_size = TN_CACHE_BLOCK,
            .max_blocks = s->cache.max_blocks,
            .n_state_slots = s->cache.n_slots,
            .n_ctx = c.n_ctx_seq,
            .cache_type_k = c.cache_type_k,
            .cache_type_v = c.cache_type_v,
            .n_host_layers = s->setup.n_host_layers,
            .places = s->n_targets > 1,
            .host_states = s->host_states,
            .adapters = s->adapters,
            .n_adapters = s->n_adapters,
            .result = c.result,
            .best = !device->host_memory && c.result == TN_RESULT_LOGITS,
        };
        s->result = c.result;
        s->width = tn_result_width(model, c.result);
        if (model->config.whole_texts)
            s->setup.block_size = 1, s->setup.max_blocks = TN_MIN(c.n_ctx, c.n_batch);
        status = make_host_arrays(s);
    }
    if (status == TN_OK) status = reserve(s);
    if (status != TN_OK)
        tn_session_destroy(&s);
    else
        *out = s;
    return status;
}

tn_status tn_session_create(tn_model *model, const tn_session_config *cfg, tn_session **out)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), out);
    if (model->metadata_only)
        return tn_fail(model->ctx, TN_ERR_STATE, "the model was opened without its weights");
    tn_session_config own;
    tn_status status = read_config(model, cfg, &own);
    int32_t trained = model->config.n_ctx_train;
    if (status == TN_OK && trained > 0 && own.n_ctx_seq > trained && !model->config.whole_texts)
        status =
            tn_event(model->ctx, TN_EVENT_CONTEXT_BEYOND_TRAINING,
                     "a context of %d tokens is longer than the %d that the model was trained with: what "
                     "it writes behind them may make no sense",
                     own.n_ctx_seq, trained);
    if (status != TN_OK) return status;
    uint64_t begin = tn_span_begin(model->ctx);
    status = tn_session_create_on(model, model->device, cfg, false, out);
    tn_span_end(model->ctx, TN_SPAN_LOAD, "create a session", begin, 0);
    return status;
}

// --- eval ------------------------------------------------------------------------------------------

// Copies the feeds of the caller to s->feeds.
static tn_status read_feeds(tn_session *s, const tn_feed *feeds, int32_t n_feeds)
{
    if (n_feeds < 1 || n_feeds > s->cfg.n_seq)
        return tn_fail(s->ctx, TN_ERR_ARG, "%d feeds for %d sequences", n_feeds, s->cfg.n_seq);
    return TN_STRUCT_READ_ARRAY(s->ctx, tn_feed, feeds, (size_t)n_feeds, s->feeds);
}

static tn_status check_feeds(tn_session *s, const tn_feed *feeds, int32_t n_feeds)
{
    int64_t total = 0;
    for (int32_t i = 0; i < n_feeds; i++) {
        const tn_feed *f = &feeds[i];
        if (f->seq < 0 || f->seq >= s->cfg.n_seq)
            return tn_fail(s->ctx, TN_ERR_ARG, "sequence %d of %d", f->seq, s->cfg.n_seq);
        if (f->n_tokens < 1 || !f->tokens)
            return tn_fail(s->ctx, TN_ERR_ARG, "sequence %d: no tokens", f->seq);
        if (f->outputs < TN_OUTPUT_NONE || f->outputs > TN_OUTPUT_FIRST)
            return tn_fail(s->ctx, TN_ERR_ARG, "sequence %d: outputs %d", f->seq, f->outputs);
        for (int32_t k = 0; k < i; k++)
            if (feeds[k].seq == f->seq)
                return tn_fail(s->ctx, TN_ERR_ARG, "sequence %d is fed twice", f->seq);
        for (int32_t k = 0; k < f->n_tokens; k++)
            if (f->tokens[k] < 0 || f->tokens[k] >= s->model->config.n_vocab)
                return tn_fail(s->ctx, TN_ERR_ARG, "token %d is outside the vocabulary of %d", f->tokens[k],
                               s->model->config.n_vocab);
        total += f->n_tokens;
    }
    if (total > s->cfg.n_batch)
        return tn_fail(s->ctx, TN_ERR_ARG, "%lld tokens at once, the batch takes %d", (long long)total,
                       s->cfg.n_batch);
    return TN_OK;
}

// Lengthens the sequences and writes the step's inputs to the host arrays.
static tn_status fill_inputs(tn_session *s, const tn_feed *feeds, int32_t n_feeds, tn_plan_key *key)
{
    int32_t t = 0, out = 0;
    for (int32_t i = 0; i < n_feeds; i++) {
        const tn_feed *f = &feeds[i];
        int32_t first = s->cache.seqs[f->seq].length;
        tn_status status = tn_cache_extend(&s->cache, f->seq, f->n_tokens);
        if (status != TN_OK) {
            while (i-- > 0)
                tn_cache_truncate(&s->cache, feeds[i].seq,
                                  s->cache.seqs[feeds[i].seq].length - feeds[i].n_tokens);
            return status;
        }
        s->q_start[i] = t;
        s->kv_len[i] = first + f->n_tokens;
        int32_t *row = s->table + (size_t)i * (size_t)s->cache.max_blocks;
        memcpy(row, s->cache.seqs[f->seq].blocks, (size_t)s->cache.max_blocks * sizeof *row);
        if (s->window_table) tn_cache_window_row(&s->cache, f->seq, s->window_table + (row - s->table));
        for (int32_t k = 0; k < f->n_tokens; k++, t++) {
            s->tokens[t] = f->tokens[k];
            s->positions[t] = first + k;
            s->slots[t] = tn_cache_slot(&s->cache, f->seq, first + k);
            s->cache.ids[s->slots[t]] = f->tokens[k];
            if (s->window_slots) s->window_slots[t] = tn_cache_window_slot(&s->cache, f->seq, first + k);
            tn_session_fill_scale(s, t, first + k);
            if (tn_feed_wants(f, k)) s->out_rows[out++] = t;
        }
    }
    s->q_start[n_feeds] = t;
    *key = (tn_plan_key){.n_tokens = t, .n_seq = n_feeds, .n_outputs = out};
    tn_session_complete_key(s, key);
    return TN_OK;
}

// The sequences are what they were before the pass. Those that were cut to nothing stay so.
static void take_back(tn_session *s, int32_t n_feeds)
{
    for (int32_t i = 0; i < n_feeds && !s->model->config.whole_texts; i++) {
        const tn_feed *f = &s->feeds[i];
        tn_cache_truncate(&s->cache, f->seq, TN_MAX(s->cache.seqs[f->seq].length - f->n_tokens, 0));
    }
}

static tn_status read_logits(tn_session *s, tn_session_slot *slot)
{
    size_t size = (size_t)s->n_outputs * (size_t)s->width * sizeof(float);
    if (size > s->logits_size) {
        tn_free(s->ctx, s->logits_copy);
        s->logits_size = 0;
        s->logits_copy = tn_alloc(s->ctx, size);
        if (!s->logits_copy) return TN_ERR_MEMORY;
        s->logits_size = size;
    }
    tn_status status = tn_runner_read_at(slot->runner, slot->out_logits, 0, s->logits_copy, size);
    if (status == TN_OK) s->logits = s->logits_copy;
    return status;
}

// Everything before the pass: sequences become longer, its inputs are in the host arrays.
static tn_status begin_eval(tn_session *s, const tn_feed *given, int32_t n_feeds, tn_plan_key *key)
{
    bool whole = s->model->config.whole_texts;
    const tn_feed *feeds = s->feeds;
    s->logits = NULL;
    s->logits_slot = NULL;
    if (s->launched) return tn_fail(s->ctx, TN_ERR_STATE, "a pass of the session is in flight");
    tn_status status = read_feeds(s, given, n_feeds);
    if (status == TN_OK) status = check_feeds(s, feeds, n_feeds);
    if (status == TN_OK && s->model->reads_map) status = tn_gguf_check_size(s->model->gguf);
    for (int32_t i = 0; i < n_feeds && status == TN_OK; i++) status = tn_session_catch_up(s, feeds[i].seq);
    if (status == TN_OK)
        status = whole ? tn_session_fill_texts(s, feeds, n_feeds, key) : fill_inputs(s, feeds, n_feeds, key);
    if (status != TN_OK) return status;
    tn_session_fill_adapters(s, feeds, n_feeds, key);
    status = tn_session_take_slots(s, feeds, n_feeds);
    if (status != TN_OK) take_back(s, n_feeds);
    s->n_launched = n_feeds;
    s->n_launched_outputs = key->n_outputs;
    s->n_fed = key->n_tokens;
    if (status == TN_OK && s->pads) tn_session_pad(s, key);
    return status;
}

// Everything behind the pass, which ended with this status. A sequence may have been cut to nothing since.
static tn_status end_eval(tn_session *s, tn_status status)
{
    bool whole = s->model->config.whole_texts;
    int32_t n_feeds = s->n_launched;
    if (status != TN_OK) {
        tn_session_drop_slots(s, n_feeds);
        take_back(s, n_feeds);
        return status;
    }
    s->n_outputs = TN_MIN(s->n_outputs, s->n_launched_outputs);
    tn_session_keep_slots(s, s->feeds, n_feeds);
    for (int32_t i = 0; i < n_feeds && !whole; i++) {
        tn_cache_window_settle(&s->cache, s->feeds[i].seq);
        tn_cache_list(&s->cache, s->feeds[i].seq);
    }
    return TN_OK;
}

tn_status tn_session_eval(tn_session *s, const tn_feed *given, int32_t n_feeds)
{
    TN_NEED(NULL, s);
    s->n_outputs = 0;
    s->sampling.done = false;
    tn_plan_key key;
    tn_status status = begin_eval(s, given, n_feeds, &key);
    if (status == TN_OK) status = end_eval(s, tn_session_run(s, &key));
    if (status != TN_OK) s->n_outputs = 0;
    return status;
}

tn_status tn_session_launch(tn_session *s, const tn_feed *feeds, int32_t n_feeds)
{
    tn_plan_key key;
    tn_status status = begin_eval(s, feeds, n_feeds, &key);
    if (status != TN_OK) return status;
    status = tn_session_submit(s, &key);
    if (status != TN_OK) return end_eval(s, tn_session_finish(s, status));
    s->launched = true;
    return TN_OK;
}

void tn_session_sample_launched(tn_session *s)
{
    s->launch_status = tn_session_choose(s);
}

tn_status tn_session_collect(tn_session *s)
{
    tn_status status = end_eval(s, tn_session_finish(s, s->launch_status));
    s->launched = false;
    if (status != TN_OK) s->n_outputs = 0;
    return status;
}

tn_status tn_session_feed(tn_session *s, int32_t seq, const int32_t *tokens, int32_t n)
{
    TN_NEED(NULL, s);
    TN_NEED(s->ctx, tokens);
    if (n < 1) return tn_fail(s->ctx, TN_ERR_ARG, "no tokens to feed");
    if (seq >= 0 && seq < s->cfg.n_seq && n > s->cfg.n_ctx_seq - s->cache.seqs[seq].length)
        return tn_fail(s->ctx, TN_ERR_CONTEXT_FULL,
                       "%d tokens do not fit: the context holds %d, %d are in use", n, s->cfg.n_ctx_seq,
                       s->cache.seqs[seq].length);
    if (s->model->config.whole_texts && n > s->setup.max_blocks) return tn_session_text_too_long(s, n);
    for (int32_t at = 0; at < n;) {
        int32_t k = TN_MIN(n - at, s->cfg.n_batch);
        bool last = at + k == n;
        tn_feed f = {sizeof f, seq, k, tokens + at, last ? TN_OUTPUT_LAST : TN_OUTPUT_NONE, 0};
        tn_status status = tn_session_eval(s, &f, 1);
        if (status != TN_OK) return status;
        at += k;
        if (s->cfg.progress && s->cfg.progress(s->cfg.progress_user, (uint64_t)at, (uint64_t)n) && !last)
            return tn_fail(s->ctx, TN_ERR_CANCELLED, "cancelled");
    }
    return TN_OK;
}

// --- small ones ------------------------------------------------------------------------------------

tn_status tn_session_read_row(tn_session *s, int32_t row)
{
    size_t size = (size_t)s->width * sizeof(float), at = (size_t)row * size;
    if (row < 0 || row >= s->n_outputs)
        return tn_fail(s->ctx, TN_ERR_STATE, "there is no output row %d", row);
    if (s->logits || s->rows_read[row]) return TN_OK;
    if (!s->logits_slot) return tn_fail(s->ctx, TN_ERR_STATE, "there are no logits");
    // The copy has space for a row of each sequence.
    if (row >= s->cfg.n_seq || at + size > s->logits_size) return read_logits(s, s->logits_slot);
    tn_runner *runner = s->logits_slot->runner;
    tn_status status =
        tn_runner_read_at(runner, s->logits_slot->out_logits, at, (char *)s->logits_copy + at, size);
    s->rows_read[row] = status == TN_OK;
    return status;
}

tn_status tn_session_row(tn_session *s, int32_t row, const float **out)
{
    tn_status status = TN_OK;
    *out = NULL;
    if (row < 0 || row >= s->n_outputs) return TN_ERR_STATE;
    bool copied = !s->logits && row < s->cfg.n_seq && s->rows_read[row];
    if (!s->logits && !copied) status = s->logits_slot ? read_logits(s, s->logits_slot) : TN_ERR_STATE;
    if (status == TN_OK) *out = (copied ? s->logits_copy : s->logits) + (size_t)row * (size_t)s->width;
    return status;
}

const float *tn_session_logits(tn_session *s, int32_t i)
{
    const float *row = NULL;
    return s && tn_session_row(s, i, &row) == TN_OK ? row : NULL;
}

bool tn_session_has_best(const tn_session *s)
{
    return s->best && s->n_outputs > 0;
}

int32_t tn_session_rows_alike(const tn_session *s)
{
    int32_t n = s->devices[0]->backend->rows_alike;
    for (int32_t i = 1; i < s->n_targets; i++) n = TN_MIN(n, s->devices[i]->backend->rows_alike);
    return n;
}

bool tn_session_cancelled(const tn_session *s)
{
    return atomic_load_explicit(&s->cancel, memory_order_relaxed) != 0;
}

bool tn_session_has_states(const tn_session *s)
{
    return s->cache.n_slots > 0;
}

// If the device does not compute the argmax, the host searches the logits.
tn_status tn_session_best(tn_session *s, int32_t i, int32_t *token, float *logprob)
{
    TN_NEED(NULL, s);
    TN_NEED(s->ctx, token);
    if (s->result != TN_RESULT_LOGITS) return tn_fail(s->ctx, TN_ERR_STATE, "output rows are no logits");
    if (i < 0 || i >= s->n_outputs) return tn_fail(s->ctx, TN_ERR_STATE, "there is no output row %d", i);
    float p = 0.0f;
    if (s->best) {
        *token = s->best[i];
        p = s->best_logprob[i];
    } else {
        const float *x = tn_session_logits(s, i);
        if (!x) return tn_fail(s->ctx, TN_ERR_STATE, "there are no logits");
        int32_t best = tn_logits_best(x, s->model->config.n_vocab, logprob ? &p : NULL);
        if (best < 0) return tn_fail(s->ctx, TN_ERR_INTERNAL, "logits are not finite");
        *token = best;
    }
    if (!(p <= 0.0f)) return tn_fail(s->ctx, TN_ERR_INTERNAL, "logits are not finite");
    if (logprob) *logprob = p;
    return TN_OK;
}

int32_t tn_session_n_outputs(const tn_session *s)
{
    if (!s) return 0;
    return s->n_outputs;
}

int32_t tn_session_length(const tn_session *s, int32_t seq)
{
    if (!s) return 0;
    return seq >= 0 && seq < s->cfg.n_seq ? s->cache.seqs[seq].length : 0;
}

int32_t tn_session_n_ctx(const tn_session *s)
{
    if (!s) return 0;
    return s->cfg.n_ctx;
}

int32_t tn_session_n_ctx_seq(const tn_session *s)
{
    if (!s) return 0;
    return s->cfg.n_ctx_seq;
}

int32_t tn_session_n_batch(const tn_session *s)
{
    if (!s) return 0;
    return s->cfg.n_batch;
}

int32_t tn_session_width(const tn_session *s)
{
    if (!s) return 0;
    return s->width;
}

int32_t tn_session_result(const tn_session *s)
{
    if (!s) return 0;
    return s->result;
}

tn_model *tn_session_model(const tn_session *s)
{
    return s->model;
}

tn_status tn_session_truncate(tn_session *s, int32_t seq, int32_t n)
{
    TN_NEED(NULL, s);
    if (seq < 0 || seq >= s->cfg.n_seq || n < 0 || n > s->cache.seqs[seq].length)
        return tn_fail(s->ctx, TN_ERR_ARG, "cannot cut sequence %d to %d tokens", seq, n);
    tn_cache_truncate(&s->cache, seq, n);
    s->n_outputs = 0; // the logits may be those of a removed token
    return TN_OK;
}

tn_status tn_session_branch(tn_session *s, int32_t from, int32_t to, int32_t n)
{
    TN_NEED(NULL, s);
    bool ok = from >= 0 && from < s->cfg.n_seq && to >= 0 && to < s->cfg.n_seq && from != to && n >= 0 &&
              n <= s->cache.seqs[from].length;
    if (!ok) return tn_fail(s->ctx, TN_ERR_ARG, "cannot branch %d tokens of sequence %d to %d", n, from, to);
    tn_session_copy_adapters(s, from, to);
    return tn_cache_branch(&s->cache, from, to, n);
}

void tn_session_cancel(tn_session *s, int32_t on)
{
    if (!s) return;
    // Lock-free on every supported machine, so safe in a signal handler. Relaxed: it carries no data.
    atomic_store_explicit(&s->cancel, on, memory_order_relaxed);
}
