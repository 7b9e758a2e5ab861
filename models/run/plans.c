// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of a session: made per key, prepared with weights and cache, kept in a few slots. And what plans
// tell without running: memory, text, host overhead.
#include "models/run/session.h"

#include <stdlib.h>
#include <string.h>

tn_status tn_session_plan(tn_session *s, const tn_plan_key *key, tn_plan **out)
{
    tn_graph *g;
    tn_status status = tn_decoder_record(s->model, &s->setup, key, &g);
    if (status != TN_OK) return status;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = s->devices;
    cfg.n_devices = s->n_targets;
    cfg.fusion = s->cfg.fusion;
    cfg.precision = s->cfg.precision;
    cfg.fallback = s->quiet ? TN_FALLBACK_QUIET : TN_FALLBACK_EVENT;
    if (s->model->no_fallback) cfg.fallback = TN_FALLBACK_ERROR;
    status = tn_plan_create(g, &cfg, out);
    tn_graph_destroy(&g);
    return status;
}

// K of layer 7 is part 14, V is part 15; behind those of all layers its states: columns of the convolution, then the matrix.
int32_t tn_session_cache_part(const tn_session *s, const char *name)
{
    static const char *const kinds[] = {"cache_k.", "cache_v.", "state_conv.", "state_delta."};
    for (int32_t i = 0; i < (int32_t)TN_COUNT(kinds); i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(name, kinds[i], n) == 0) return (i >= 2 ? s->cache.n_parts : 0) + 2 * (int32_t)strtol(name + n, NULL, 10) + i % 2;
    }
    return -1;
}

int32_t tn_session_part_layer(const tn_session *s, int32_t part)
{
    return part % s->cache.n_parts / 2;
}

static tn_status bind(void *user, tn_device *device, const tn_plan_port *port, tn_runner_binding *out)
{
    tn_session *s = user;
    int32_t i = tn_session_cache_part(s, port->name);
    out->offset = 0;
    if (i < 0) return tn_weights_find(s->model, device, port->name, &out->buffer);
    const tn_cache_part *part = &s->cache.parts[i];
    *out = (tn_runner_binding){&s->cache.buffers[part->device], part->offset};
    // A plan that was made later than the cache, and has no kernel where the others have one.
    if (s->devices[part->device] != device)
        return tn_fail(s->ctx, TN_ERR_UNSUPPORTED, "%s lies on %s, attention over this many tokens would run on %s", port->name,
                       s->devices[part->device]->name, device->name);
    return TN_OK;
}

void tn_session_drop_slot(tn_session *s, tn_session_slot *slot)
{
    if (s->logits_slot == slot) s->logits_slot = NULL;
    tn_runner_destroy(&slot->runner);
    tn_plan_unref(&slot->plan);
    *slot = (tn_session_slot){0};
}

tn_status tn_session_plan_slot(tn_session *s, const tn_plan_key *key, tn_session_slot *slot)
{
    slot->key = *key;
    return tn_session_plan(s, key, &slot->plan);
}

tn_status tn_session_prepare_slot(tn_session *s, tn_session_slot *slot)
{
    tn_runner_config cfg = {.bind = bind, .user = s, .arena = s->arena, .scratch = s->scratch, .inputs = s->inputs};
    tn_status status = tn_runner_create_with(slot->plan, &cfg, &slot->runner);
    if (status != TN_OK) {
        tn_session_drop_slot(s, slot);
        return status;
    }
    const tn_plan *p = slot->plan;
    slot->in_tokens = tn_plan_find_input(p, "tokens");
    slot->in_positions = tn_plan_find_input(p, "positions");
    slot->in_slots = tn_plan_find_input(p, "slots");
    slot->in_q_start = tn_plan_find_input(p, "q_start");
    slot->in_kv_len = tn_plan_find_input(p, "kv_len");
    slot->in_table = tn_plan_find_input(p, "block_table");
    slot->in_out_rows = tn_plan_find_input(p, "out_rows");
    slot->in_q_scale = tn_plan_find_input(p, "q_scale");
    slot->in_head_ids = tn_plan_find_input(p, "head_ids");
    slot->in_state_slots = tn_plan_find_input(p, "state_slots");
    slot->in_types = tn_plan_find_input(p, "token_types");
    slot->out_logits = tn_plan_find_output(p, tn_result_name(s->result));
    slot->out_best = tn_plan_find_output(p, "best");
    slot->out_logprob = tn_plan_find_output(p, "best_logprob");
    return TN_OK;
}

tn_status tn_session_find_slot(tn_session *s, const tn_plan_key *key, tn_session_slot **out)
{
    tn_session_slot *oldest = &s->slots_of_plans[0];
    for (int32_t i = 0; i < TN_SESSION_SLOTS; i++) {
        tn_session_slot *slot = &s->slots_of_plans[i];
        if (slot->runner && memcmp(&slot->key, key, sizeof *key) == 0) {
            slot->last_use = ++s->clock;
            *out = slot;
            return TN_OK;
        }
        if (!slot->runner || (oldest->runner && slot->last_use < oldest->last_use)) oldest = slot;
    }
    if (s->profiled == oldest) s->profiled = NULL;
    tn_session_drop_slot(s, oldest);
    tn_status status = tn_session_plan_slot(s, key, oldest);
    if (status == TN_OK) status = tn_session_prepare_slot(s, oldest);
    if (status != TN_OK) return status;
    oldest->last_use = ++s->clock;
    *out = oldest;
    return TN_OK;
}

tn_status tn_session_prepare_rows(tn_session *s, int32_t n)
{
    tn_status status = TN_OK;
    for (int32_t k = 2; k <= TN_MIN(n, TN_SESSION_SLOTS / 2) && status == TN_OK; k++) {
        tn_session_slot *slot;
        status = tn_session_find_slot(s, &(tn_plan_key){k, 1, k}, &slot);
    }
    return status;
}

// --- profiles --------------------------------------------------------------------------------------

tn_status tn_session_profile_room(tn_session *s, const tn_session_slot *slot)
{
    if (!s->profile || s->profiled == slot) return TN_OK;
    s->profiled = NULL;
    tn_free(s->ctx, s->step_ns);
    s->step_ns = tn_calloc(s->ctx, (size_t)slot->plan->n_steps + 1, sizeof *s->step_ns);
    s->step_ns_count = s->step_ns ? slot->plan->n_steps : 0;
    if (!s->step_ns) return TN_ERR_MEMORY;
    s->profiled = slot;
    return TN_OK;
}

void tn_session_profile(tn_session *s, int32_t on)
{
    s->profile = on != 0;
    if (s->step_ns) memset(s->step_ns, 0, (size_t)s->step_ns_count * sizeof *s->step_ns);
}

int32_t tn_session_step_time(const tn_session *s, int32_t i, tn_step_time *out)
{
    if (!s->profiled || i < 0 || i >= s->step_ns_count) return 0;
    const tn_plan_step *step = &s->profiled->plan->steps[i];
    *out = (tn_step_time){tn_op_name(step->step.op), step->kernel, step->step.name, s->step_ns[i]};
    return 1;
}

// --- without running -------------------------------------------------------------------------------

static void predict_device(const tn_session *s, int32_t d, tn_session_memory *out)
{
    const tn_model *m = s->model;
    tn_device *device = s->slots_of_plans[0].plan->devices[d];
    tn_device_memory *row = &out->devices[out->n_devices];
    *row = (tn_device_memory){.device = device->name, .arena = s->arena_size[d], .scratch = s->scratch_size[d], .other = s->input_size[d]};
    if (d < TN_CACHE_DEVICES) row->cache = s->cache.sizes[d];
    row->weights = device->host_memory ? tn_weights_host_size(m) : m->device_size;
    out->cache += row->cache;
    out->arena += row->arena;
    out->scratch += row->scratch;
    out->other += row->other;
    out->n_devices++;
}

tn_status tn_session_predict(tn_model *model, const tn_session_config *cfg, tn_session_memory *out)
{
    tn_context *ctx = model->ctx;
    size_t before = tn_context_memory(ctx);
    tn_session *s;
    tn_status status = tn_session_create_on(model, model->device, cfg, true, &s);
    if (status != TN_OK) return status;
    // Objects of the host: those of the dry session, its plans among them, and what runners will add.
    size_t host = tn_context_memory(ctx) - before;
    for (int32_t i = 0; i < TN_SESSION_SLOTS; i++)
        if (s->slots_of_plans[i].plan) host += tn_runner_size(s->slots_of_plans[i].plan);
    *out = (tn_session_memory){0};
    for (int32_t d = 0; d < s->n_devices && out->n_devices < (int32_t)TN_COUNT(out->devices); d++)
        if (d < s->n_targets || s->arena_size[d] > 0) predict_device(s, d, out);
    out->devices[out->n_devices - 1].other += host; // the host is last
    out->other += host;
    out->total = out->cache + out->arena + out->scratch + out->other;
    for (int32_t i = 0; i < out->n_devices; i++) {
        tn_device_memory *row = &out->devices[i];
        row->total = row->weights + row->cache + row->arena + row->scratch + row->other;
    }
    tn_session_destroy(&s);
    return TN_OK;
}

// The plans of all layers on the device bound those of fewer; the cache counts by layer.
tn_status tn_session_estimate(tn_model *model, const tn_session_config *cfg, uint64_t *sessions)
{
    tn_session *s;
    tn_status status = tn_session_create_on(model, model->device, cfg, true, &s);
    if (status != TN_OK) return status;
    uint64_t size = s->arena_size[0] + s->scratch_size[0] + s->input_size[0];
    int32_t n_layers = model->config.n_layers;
    for (int32_t n = 1; n <= n_layers; n++) {
        int32_t layer = n_layers - n;
        for (int32_t part = 0; part < s->cache.n_parts + s->cache.n_states; part++) {
            bool mine = tn_session_part_layer(s, part) == layer && s->cache.parts[part].device == 0;
            int32_t count = part < s->cache.n_parts ? s->cache.n_blocks : s->cache.n_slots;
            if (mine) size += s->cache.parts[part].block_size * (size_t)count;
        }
        sessions[n] = size;
    }
    tn_session_destroy(&s);
    return TN_OK;
}

tn_status tn_model_plan_dump(tn_model *model, const tn_session_config *cfg, int32_t n_tokens, int32_t format, char **out)
{
    if (n_tokens < 1) return tn_fail(model->ctx, TN_ERR_ARG, "a plan for %d tokens", n_tokens);
    tn_session *s;
    tn_session_config c;
    tn_session_config_default(&c);
    if (cfg) memcpy(&c, cfg, TN_MIN(cfg->struct_size, sizeof c));
    tn_status status = tn_session_create_on(model, model->device, &c, true, &s);
    if (status != TN_OK) return status;
    tn_plan_key key = {n_tokens, 1, 1};
    tn_plan *plan = NULL;
    s->quiet = false;
    status = tn_session_plan(s, &key, &plan);
    if (status == TN_OK) status = tn_plan_dump(plan, format, out);
    tn_plan_unref(&plan);
    tn_session_destroy(&s);
    return status;
}

tn_status tn_model_host_overhead(tn_model *model, const tn_session_config *cfg, double *ns_per_step)
{
    enum { WARM_UP = 16, STEPS = 256 };
    tn_session_config c;
    tn_session_config_default(&c);
    if (cfg) memcpy(&c, cfg, TN_MIN(cfg->struct_size, sizeof c));
    c.n_ctx = TN_MIN(WARM_UP + STEPS, model->config.n_ctx_train);
    c.n_batch = 1;
    tn_device *null_device = tn_context_device_by_name(model->ctx, "null");
    if (!null_device) return tn_fail(model->ctx, TN_ERR_DEVICE, "no null device");
    tn_session *s;
    tn_status status = tn_session_create_on(model, null_device, &c, false, &s);
    if (status != TN_OK) return status;
    int32_t token = 0;
    uint64_t start = 0;
    for (int32_t i = 0; i < WARM_UP + STEPS && status == TN_OK; i++) {
        if (i == WARM_UP) start = tn_time_ns();
        tn_feed f = {0, 1, &token, TN_OUTPUT_LAST};
        if (tn_session_length(s, 0) == c.n_ctx) status = tn_session_truncate(s, 0, 0);
        if (status == TN_OK) status = tn_session_eval(s, &f, 1);
    }
    if (status == TN_OK) *ns_per_step = (double)(tn_time_ns() - start) / STEPS;
    tn_session_destroy(&s);
    return status;
}
