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
    cfg.devices = &s->device;
    cfg.n_devices = 1;
    cfg.fusion = s->cfg.fusion;
    status = tn_plan_create(g, &cfg, out);
    tn_graph_destroy(&g);
    return status;
}

// "cache_k.7" is part 14, "cache_v.7" part 15; everything else is a weight.
static tn_status bind(void *user, const char *name, const tn_view *view, tn_runner_binding *out)
{
    TN_UNUSED(view);
    tn_session *s = user;
    if (strncmp(name, "cache_", 6) == 0 && (name[6] == 'k' || name[6] == 'v') && name[7] == '.') {
        int64_t part = 2 * strtol(name + 8, NULL, 10) + (name[6] == 'v');
        *out = (tn_runner_binding){name, &s->cache.buffer, s->cache.parts[part].offset};
        return TN_OK;
    }
    int32_t i = tn_model_find_weight(s->model, name);
    if (i < 0) return tn_fail(s->ctx, TN_ERR_INTERNAL, "%s: no such weight", name);
    *out = (tn_runner_binding){name, &s->model->weights[i].buffer, 0};
    return TN_OK;
}

void tn_session_drop_slot(tn_session_slot *slot)
{
    tn_runner_destroy(&slot->runner);
    tn_plan_unref(&slot->plan);
    *slot = (tn_session_slot){0};
}

static tn_status fill_slot(tn_session *s, const tn_plan_key *key, tn_session_slot *slot)
{
    slot->key = *key;
    tn_status status = tn_session_plan(s, key, &slot->plan);
    tn_runner_config cfg = {.bind = bind, .user = s, .arena = s->arena, .scratch = s->scratch};
    if (status == TN_OK) status = tn_runner_create_with(slot->plan, &cfg, &slot->runner);
    if (status != TN_OK) {
        tn_session_drop_slot(slot);
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
    slot->out_logits = tn_plan_find_output(p, "logits");
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
    tn_session_drop_slot(oldest);
    tn_status status = fill_slot(s, key, oldest);
    if (status != TN_OK) return status;
    oldest->last_use = ++s->clock;
    *out = oldest;
    return TN_OK;
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

tn_status tn_session_predict(tn_model *model, const tn_session_config *cfg, tn_session_memory *out)
{
    tn_context *ctx = model->ctx;
    size_t before = tn_context_memory(ctx);
    tn_session *s;
    tn_status status = tn_session_create_on(model, model->device, cfg, true, &s);
    if (status != TN_OK) return status;
    size_t dry = tn_context_memory(ctx) - before;
    *out = (tn_session_memory){.cache = s->cache_size, .arena = s->arena_size, .scratch = s->scratch_size};
    int32_t n_seq = s->cfg.n_seq;
    // The plans of tn_session_create.
    tn_plan_key keys[4] = {{s->cfg.n_batch, n_seq, n_seq}, {1, 1, 1}, {s->cfg.n_batch, 1, 0}, {n_seq, n_seq, n_seq}};
    size_t plans = 0;
    for (int32_t i = 0; i < (n_seq > 1 ? 4 : 3) && status == TN_OK; i++) {
        if (i == 1 && memcmp(&keys[0], &keys[1], sizeof keys[0]) == 0) continue;
        if (i == 2 && s->cfg.n_ctx <= s->cfg.n_batch) continue;
        tn_plan *plan = NULL;
        size_t start = tn_context_memory(ctx);
        status = tn_session_plan(s, &keys[i], &plan);
        if (status != TN_OK) break;
        plans += tn_context_memory(ctx) - start + tn_runner_size(plan);
        tn_plan_unref(&plan);
    }
    tn_session_destroy(&s);
    out->other = dry + plans;
    out->total = out->cache + out->arena + out->scratch + out->other;
    return status;
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
