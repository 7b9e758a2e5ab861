// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What plans say about a session before it runs: its memory, the plan as text, the time the host spends on a
// step. The sessions made here for this are dry: they have plans, but no cache and no activations.
#include "models/run/session.h"

#include <string.h>

// Bytes of a buffer of a device: planned of a dry session, else allocated.
static size_t size_of(const tn_session *s, const tn_buffer *made, const size_t *planned, int32_t d)
{
    return s->dry ? planned[d] : made[d].size;
}

// Weights that the device keeps in another form.
static uint64_t converted_weights(const tn_session *s, const tn_device *device, int32_t d)
{
    const tn_model *m = s->model;
    uint64_t size = 0;
    if (s->dry) return s->derived_size[d];
    if (!device->backend->derived_used) return 0;
    for (int32_t i = 0; i < m->n_uploaded; i++)
        if (m->uploaded[i].device == device)
            size += device->backend->derived_used(m->uploaded[i].device, m->uploaded[i].data,
                                                  m->uploaded[i].size);
    return size;
}

static uint64_t device_weights(const tn_session *s)
{
    const tn_model *m = s->model;
    uint64_t size = 0;
    if (s->dry) return m->device_size;
    for (int32_t i = 0; i < m->n_uploaded; i++) size += m->uploaded[i].size;
    return size;
}

static void add_sampling(const tn_session *s, tn_device_memory *row, tn_device_memory_parts *parts)
{
    uint64_t *const kinds[TN_SAMPLE_BUFFERS] = {&row->arena, &row->scratch, &row->other};
    uint64_t *const of[TN_SAMPLE_BUFFERS] = {&parts->sampling_arena, &parts->sampling_scratch,
                                             &parts->sampling_other};
    for (int32_t i = 0; i < TN_SAMPLE_BUFFERS; i++) {
        const tn_buffer *made = s->sampling.buffers;
        *of[i] = s->dry ? s->sampling.sizes[i] : made ? made[i * s->sampling.n_devices].size : 0;
        *kinds[i] += *of[i];
    }
}

static void predict_device(const tn_session *s, int32_t d, tn_session_memory *out)
{
    const tn_model *m = s->model;
    tn_device *device = s->slots_of_plans[0].plan->devices[d];
    tn_device_memory *row = &out->devices[out->n_devices];
    *row = (tn_device_memory){.device = device->name,
                              .arena = size_of(s, s->arena, s->arena_size, d),
                              .scratch = size_of(s, s->scratch, s->scratch_size, d),
                              .other = size_of(s, s->inputs, s->input_size, d)};
    if (d < TN_CACHE_DEVICES) row->cache = size_of(s, s->cache.buffers, s->cache.sizes, d);
    tn_device_memory_parts *parts = &out->parts[out->n_devices];
    if (d == 0) add_sampling(s, row, parts);
    parts->converted = converted_weights(s, device, d);
    for (int32_t i = 0; i < s->n_adapters; i++)
        row->weights += device->host_memory ? s->adapters[i]->host_size : s->adapters[i]->device_size;
    row->weights += device->host_memory ? tn_weights_host_size(m) : device_weights(s);
    row->weights += parts->converted;
    out->cache += row->cache;
    out->arena += row->arena;
    out->scratch += row->scratch;
    out->other += row->other;
    out->n_devices++;
}

// The memory of a session and its plans: as planned if it is dry. `host`: bytes of objects of the host.
static void sum_up(const tn_session *s, size_t host, tn_session_memory *out)
{
    for (int32_t d = 0; d < s->n_devices && out->n_devices < TN_MEMORY_DEVICES; d++)
        if (d < s->n_targets || s->arena_size[d] > 0) predict_device(s, d, out);
    out->devices[out->n_devices - 1].other += host; // the host is last
    out->other += host;
    out->total = out->cache + out->arena + out->scratch + out->other;
    for (int32_t i = 0; i < out->n_devices; i++) {
        tn_device_memory *row = &out->devices[i];
        row->total = row->weights + row->cache + row->arena + row->scratch + row->other;
    }
}

tn_status tn_session_predict(tn_model *model, const tn_session_config *cfg, tn_session_memory *out)
{
    TN_NEED(NULL, model);
    tn_context *ctx = model->ctx;
    size_t before = tn_context_memory(ctx);
    tn_session *s;
    tn_status status = TN_STRUCT_CHECK(ctx, tn_session_memory, out);
    if (status == TN_OK) status = tn_session_create_on(model, model->device, cfg, true, &s);
    if (status != TN_OK) return status;
    // Objects of the host: those of the dry session with its plans, and those that runners will add.
    size_t host = tn_context_memory(ctx) - before;
    for (int32_t i = 0; i < TN_SESSION_SLOTS; i++)
        if (s->slots_of_plans[i].plan) host += tn_runner_size(s->slots_of_plans[i].plan);
    tn_session_memory sum = {0};
    sum_up(s, host, &sum);
    tn_session_destroy(&s);
    return TN_STRUCT_WRITE(ctx, tn_session_memory, out, &sum);
}

tn_status tn_session_memory_get(const tn_session *s, tn_session_memory *out)
{
    TN_NEED(NULL, s);
    tn_status status = TN_STRUCT_CHECK(s->ctx, tn_session_memory, out);
    if (status != TN_OK) return status;
    tn_session_memory sum = {0};
    sum_up(s, 0, &sum);
    return TN_STRUCT_WRITE(s->ctx, tn_session_memory, out, &sum);
}

// The plans of all layers on the device bound those of fewer; the cache counts by layer.
tn_status tn_session_estimate(tn_model *model, const tn_session_config *cfg, uint64_t *sessions)
{
    tn_session *s;
    tn_status status = tn_session_create_on(model, model->device, cfg, true, &s);
    if (status != TN_OK) return status;
    uint64_t size = s->arena_size[0] + s->scratch_size[0] + s->input_size[0];
    for (int32_t i = 0; i < TN_SAMPLE_BUFFERS; i++) size += s->sampling.sizes[i];
    int32_t n_layers = model->config.n_layers;
    for (int32_t n = 1; n <= n_layers; n++) {
        int32_t layer = n_layers - n;
        for (int32_t part = 0; part < s->cache.n_parts + s->cache.n_states; part++) {
            bool mine = tn_session_part_layer(s, part) == layer && s->cache.parts[part].device == 0;
            int32_t n_blocks =
                s->cache.parts[part].slides ? s->cache.sliding.n_blocks : s->cache.all.n_blocks;
            int32_t count = part < s->cache.n_parts ? n_blocks : s->cache.n_slots;
            if (mine) size += s->cache.parts[part].block_size * (size_t)count;
        }
        sessions[n] = size;
    }
    tn_session_destroy(&s);
    return TN_OK;
}

tn_status tn_model_plan_create(tn_model *model, const tn_session_config *cfg, int32_t n_tokens, int32_t n_seq,
                               tn_plan **out)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), out);
    if (n_tokens < 1) return tn_fail(model->ctx, TN_ERR_ARG, "a plan for %d tokens", n_tokens);
    if (n_seq < 1 || n_seq > n_tokens)
        return tn_fail(model->ctx, TN_ERR_ARG, "a plan for %d tokens of %d sequences", n_tokens, n_seq);
    tn_session *s;
    tn_session_config c;
    tn_session_config_default(&c);
    tn_status status = TN_STRUCT_READ(model->ctx, tn_session_config, cfg, &c);
    if (status == TN_OK && n_seq > c.n_seq)
        status =
            tn_fail(model->ctx, TN_ERR_ARG, "a plan for %d sequences, the session has %d", n_seq, c.n_seq);
    if (status == TN_OK) status = tn_session_create_on(model, model->device, &c, true, &s);
    if (status != TN_OK) return status;
    tn_plan_key key = {
        .n_tokens = n_tokens, .n_seq = n_seq, .n_outputs = n_seq, .adapters = tn_session_adapters_of(s, 0)};
    s->quiet = false;
    status = tn_session_plan(s, &key, out);
    tn_session_destroy(&s);
    return status;
}

tn_status tn_model_plan_dump(tn_model *model, const tn_session_config *cfg, int32_t n_tokens, int32_t format,
                             char **out)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), out);
    tn_plan *plan = NULL;
    tn_status status = tn_model_plan_create(model, cfg, n_tokens, 1, &plan);
    if (status == TN_OK) status = tn_plan_dump(plan, format, out);
    tn_plan_unref(&plan);
    return status;
}

tn_status tn_model_host_overhead(tn_model *model, const tn_session_config *cfg, double *ns_per_step)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), ns_per_step);
    enum { WARM_UP = 16, STEPS = 256 };
    tn_session_config c;
    tn_session_config_default(&c);
    tn_status status = TN_STRUCT_READ(model->ctx, tn_session_config, cfg, &c);
    if (status != TN_OK) return status;
    c.n_ctx = TN_MIN(WARM_UP + STEPS, model->config.n_ctx_train);
    c.n_ctx_seq = 0; // one sequence with all of it, whatever was given
    c.n_batch = c.n_seq = 1;
    tn_device *noop_device = tn_device_of_role(model->ctx, TN_BACKEND_NOOP);
    if (!noop_device) return tn_fail(model->ctx, TN_ERR_DEVICE, "no device that computes nothing");
    tn_session *s;
    status = tn_session_create_on(model, noop_device, &c, false, &s);
    if (status != TN_OK) return status;
    int32_t token = 0;
    uint64_t start = 0;
    for (int32_t i = 0; i < WARM_UP + STEPS && status == TN_OK; i++) {
        if (i == WARM_UP) start = tn_time_ns();
        tn_feed f = {.struct_size = sizeof f, .n_tokens = 1, .tokens = &token, .outputs = TN_OUTPUT_LAST};
        if (tn_session_length(s, 0) == c.n_ctx) status = tn_session_truncate(s, 0, 0);
        if (status == TN_OK) status = tn_session_eval(s, &f, 1);
    }
    if (status == TN_OK) *ns_per_step = (double)(tn_time_ns() - start) / STEPS;
    tn_session_destroy(&s);
    return status;
}
