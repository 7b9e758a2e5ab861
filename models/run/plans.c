// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of a session: made per key, prepared with weights and cache, kept in a fixed number of slots.
#include "models/run/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Kernels of attention are selected by the width of the block table, because lengths are known on the device
// only. While a single sequence is short, its token is evaluated by a plan with a short table: with the
// table of a long context 8B Q4_K_M gave 540 tokens/s for 550 at 500 tokens (NVIDIA H200).
static int32_t table_width(const tn_session *s, const tn_plan_key *key)
{
    enum { SHORT_BLOCKS = 2048 / TN_CACHE_BLOCK };
    bool one = key->n_tokens == 1 && key->n_seq == 1, device = s->setup.best,
         fits = s->kv_len[0] <= SHORT_BLOCKS * TN_CACHE_BLOCK && s->cache.max_blocks > SHORT_BLOCKS;
    return one && device && fits ? SHORT_BLOCKS : 0;
}

// Whether kernels of attention should divide long sequences: not the plan but the host knows lengths. It
// costs 1 us a layer where nothing is divided; 32 sequences of exponentially distributed lengths with a mean
// of 1000 keys take 61 us instead of 89 (NVIDIA H200).
static uint32_t find_uneven(const tn_session *s, const tn_plan_key *key)
{
    enum { LEAST_SEQS = 8, LEAST_KEYS = 256 };
    if (key->n_tokens != key->n_seq || key->n_seq < LEAST_SEQS || !s->setup.best) return 0;
    int64_t sum = 0;
    int32_t longest = 0;
    for (int32_t i = 0; i < key->n_seq; i++) {
        sum += s->kv_len[i];
        longest = TN_MAX(longest, s->kv_len[i]);
    }
    return longest > LEAST_KEYS && (int64_t)longest * key->n_seq > 2 * sum;
}

// Whether attention should treat the queries of pieces of prompts like the single tokens beside them, for
// which the kernel of prompts takes longer than the one of single tokens. Beyond these limits it gains
// nothing, because every query reads all its keys (docs/log/cuda-attention.md).
static uint32_t find_apart(const tn_session *s, const tn_plan_key *key)
{
    // Of pieces, besides a token of each sequence; keys that their queries read in all.
    enum { MOST_TOKENS = 128, MOST_KEYS = 20000 };
    int32_t more = key->n_tokens - key->n_seq;
    if (more == 0 || more > MOST_TOKENS || key->n_seq < 2 || !s->setup.best) return 0;
    int64_t keys = 0;
    for (int32_t i = 0; i < key->n_seq; i++) {
        int64_t n = s->q_start[i + 1] - s->q_start[i];
        if (n > 1) keys += n * s->kv_len[i] - n * (n - 1) / 2;
    }
    return keys <= MOST_KEYS;
}

// Whether single tokens of many sequences stand beside pieces of prompts for which attention needs a kernel
// of its own.
static uint32_t find_mixed(const tn_session *s, const tn_plan_key *key)
{
    enum { LEAST_SINGLE = 32 };
    if (key->n_tokens == key->n_seq || key->apart || !s->setup.best) return 0;
    int32_t single = 0;
    for (int32_t i = 0; i < key->n_seq; i++) single += s->q_start[i + 1] - s->q_start[i] == 1;
    return single >= LEAST_SINGLE && 4 * single >= 3 * key->n_seq;
}

void tn_session_complete_key(const tn_session *s, tn_plan_key *key)
{
    key->max_blocks = table_width(s, key);
    key->uneven = find_uneven(s, key);
    key->apart = find_apart(s, key);
    key->mixed = find_mixed(s, key);
}

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
    // The arenas are as large as the first plans need them, and others only have to fit.
    const tn_plan *first = s->arena_size ? NULL : s->slots_of_plans[0].plan;
    const size_t *there = first ? first->arena_size : s->arena_size;
    status = tn_plan_create_within(g, &cfg, there, first ? first->n_devices : s->n_devices, out);
    tn_graph_destroy(&g);
    return status;
}

// K of layer 7 is part 14, V is part 15. Behind the parts of all layers come the states: of each layer the
// columns of the convolution, then the matrix.
int32_t tn_session_cache_part(const tn_session *s, const char *name)
{
    static const char *const kinds[] = {"cache_k.", "cache_v.", "state_conv.", "state_delta."};
    for (int32_t i = 0; i < (int32_t)TN_COUNT(kinds); i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(name, kinds[i], n) == 0)
            return (i >= 2 ? s->cache.n_parts : 0) + 2 * (int32_t)strtol(name + n, NULL, 10) + i % 2;
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
    const tn_adapter *adapter;
    const char *tensor;
    if (i < 0 && tn_session_find_adapter(s, port->name, &adapter, &tensor))
        return tn_adapter_find(adapter, device, tensor, &out->buffer);
    if (i < 0) return tn_weights_find(s->model, device, port->name, &out->buffer);
    const tn_cache_part *part = &s->cache.parts[i];
    *out = (tn_runner_binding){&s->cache.buffers[part->device], part->offset};
    // A plan that was made after the cache, and whose device has no kernel although the plans before it had
    // one.
    if (s->devices[part->device] != device)
        return tn_fail(s->ctx, TN_ERR_UNSUPPORTED,
                       "%s lies on %s, attention over this many tokens would run on %s", port->name,
                       s->devices[part->device]->name, device->name);
    return TN_OK;
}

void tn_session_drop_slot(tn_session *s, tn_session_slot *slot)
{
    if (s->logits_slot == slot) s->logits_slot = NULL;
    for (int32_t i = 0; i < TN_SAMPLE_PLANS; i++) tn_sample_slot_drop(&slot->samples[i]);
    tn_runner_destroy(&slot->runner);
    tn_plan_unref(&slot->plan);
    *slot = (tn_session_slot){0};
}

tn_status tn_session_plan_slot(tn_session *s, const tn_plan_key *key, tn_session_slot *slot)
{
    uint64_t begin = tn_span_begin(s->ctx);
    slot->key = *key;
    tn_status status = tn_session_plan(s, key, &slot->plan);
    tn_span_end(s->ctx, TN_SPAN_PLAN, "make a plan", begin, key->n_tokens);
    return status;
}

tn_status tn_session_prepare_slot(tn_session *s, tn_session_slot *slot)
{
    tn_runner_config cfg = {
        .bind = bind, .user = s, .arena = s->arena, .scratch = s->scratch, .inputs = s->inputs};
    uint64_t begin = tn_span_begin(s->ctx);
    tn_status status = tn_runner_create_with(slot->plan, &cfg, &slot->runner);
    tn_span_end(s->ctx, TN_SPAN_PLAN, "prepare a plan", begin, slot->key.n_tokens);
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
    slot->in_window_slots = tn_plan_find_input(p, "window_slots");
    slot->in_window_table = tn_plan_find_input(p, "window_table");
    slot->in_out_rows = tn_plan_find_input(p, "out_rows");
    slot->in_q_scale = tn_plan_find_input(p, "q_scale");
    slot->in_head_ids = tn_plan_find_input(p, "head_ids");
    slot->in_state_slots = tn_plan_find_input(p, "state_slots");
    slot->in_types = tn_plan_find_input(p, "token_types");
    for (int32_t i = 0; i < s->n_adapters; i++) {
        char name[32];
        snprintf(name, sizeof name, "adapter_scale.%d", i);
        slot->in_adapters[i] = tn_plan_find_input(p, name);
    }
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
    s->n_plans++;
    oldest->last_use = ++s->clock;
    *out = oldest;
    return TN_OK;
}

tn_status tn_session_prepare_rows(tn_session *s, int32_t n)
{
    enum { MOST = 24 }; // longer drafts are rare, and get their plans when they come
    tn_status status = TN_OK;
    for (int32_t k = 2; k <= TN_MIN(n, MOST) && status == TN_OK; k++) {
        tn_session_slot *slot;
        status = tn_session_find_slot(
            s,
            &(tn_plan_key){
                .n_tokens = k, .n_seq = 1, .n_outputs = k, .adapters = tn_session_adapters_of(s, 0)},
            &slot);
    }
    return status;
}

// --- profiles --------------------------------------------------------------------------------------

tn_status tn_session_profile_reserve(tn_session *s, const tn_session_slot *slot)
{
    if (s->profiled == slot) return TN_OK;
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
    if (!s) return;
    s->profile = on != 0;
    if (s->step_ns) memset(s->step_ns, 0, (size_t)s->step_ns_count * sizeof *s->step_ns);
}

const tn_plan *tn_session_plan_get(const tn_session *s)
{
    return s && s->profiled ? s->profiled->plan : NULL;
}

int32_t tn_session_step_time(const tn_session *s, int32_t i, tn_step_time *out)
{
    if (!s) return 0;
    if (!s->profiled || i < 0 || i >= s->step_ns_count) return 0;
    const tn_plan_step *step = &s->profiled->plan->steps[i];
    tn_step_time now = {sizeof now, tn_op_name(step->step.op), step->kernel, step->step.name, s->step_ns[i]};
    tn_status status = TN_STRUCT_WRITE(s->ctx, tn_step_time, out, &now);
    return status == TN_OK ? 1 : status;
}
