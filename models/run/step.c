// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One step of a session whose inputs are in the host arrays: find its plan, write the inputs, submit, read
// what is needed at once.
#include "models/run/session.h"

#include <math.h>
#include <string.h>

// The temperature of queries grows with the position.
void tn_session_fill_scale(tn_session *s, int32_t i, int32_t position)
{
    const tn_config *c = &s->model->config;
    if (c->temperature_scale == 0.0f) return;
    double steps = floor(((double)position + c->temperature_start) / c->temperature_length);
    s->q_scale[i] = (float)(1.0 + (double)c->temperature_scale * log(steps + 1.0));
}

static tn_status write_inputs(tn_session *s, tn_session_slot *slot)
{
    const tn_plan_key *k = &slot->key;
    size_t t = (size_t)k->n_tokens, n_seq = (size_t)k->n_seq,
           blocks = (size_t)(k->max_blocks > 0 ? k->max_blocks : s->setup.max_blocks);
    const struct {
        int32_t input;
        const void *data;
        size_t size;
    } rows[] = {
        {slot->in_tokens, s->tokens, t * 4},
        {slot->in_positions, s->positions, t * 4},
        {slot->in_slots, s->slots, t * 4},
        {slot->in_q_start, s->q_start, (n_seq + 1) * 4},
        {slot->in_kv_len, s->kv_len, n_seq * 4},
        {slot->in_table, s->table, n_seq * blocks * 4},
        {slot->in_window_slots, s->window_slots, t * 4},
        {slot->in_window_table, s->window_table, n_seq * blocks * 4},
        {slot->in_out_rows, s->out_rows, (size_t)k->n_outputs * 4},
        {slot->in_q_scale, s->q_scale, t * 4},
        {slot->in_state_slots, s->state_slots, 2 * n_seq * 4},
        {slot->in_head_ids, s->head_ids, t * (size_t)s->model->config.layers[0].n_heads * 4},
        {slot->in_types, s->types, t * 4},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        if (rows[i].input < 0) continue;
        tn_status status = tn_runner_write_at(slot->runner, rows[i].input, rows[i].data, rows[i].size);
        if (status != TN_OK) return status;
    }
    return tn_session_write_adapters(s, slot);
}

// From devices with memory of their own only the argmax tokens are read now; logits are read when the caller
// asks for them.
static tn_status read_outputs(tn_session *s, tn_session_slot *slot)
{
    s->n_outputs = slot->key.n_outputs;
    if (s->n_outputs == 0) return TN_OK;
    s->logits = tn_runner_output_data(slot->runner, slot->out_logits);
    if (!s->logits) s->logits_slot = slot;
    if (!s->best) return TN_OK;
    size_t n = (size_t)s->n_outputs;
    tn_status status = tn_runner_read_at(slot->runner, slot->out_best, 0, s->best, n * sizeof *s->best);
    return status == TN_OK
               ? tn_runner_read_at(slot->runner, slot->out_logprob, 0, s->best_logprob, n * sizeof(float))
               : status;
}

// --- for whoever watches ---------------------------------------------------------------------------

// Lengths are in the host arrays, also of sequences that the pass was filled up with.
static int64_t mean_depth(const tn_session *s, const tn_plan_key *key)
{
    int64_t sum = 0;
    if (s->model->config.whole_texts || key->n_seq < 1) return 0;
    for (int32_t i = 0; i < key->n_seq; i++) sum += s->kv_len[i];
    return TN_MAX(sum - key->n_tokens, 0) / key->n_seq;
}

static tn_status begin_watched(tn_session *s, tn_session_slot *slot, uint64_t begin)
{
    const tn_plan_key *key = &slot->key;
    const tn_cache *c = &s->cache;
    tn_session_flight *f = &s->flight;
    f->pass = (tn_pass_info){.struct_size = sizeof f->pass,
                             .session = (uint64_t)(uintptr_t)s,
                             .n_tokens = s->n_fed > 0 ? s->n_fed : key->n_tokens,
                             .n_seq = s->n_fed > 0 ? s->n_launched : key->n_seq,
                             .n_blocks = c->all.n_blocks,
                             .n_blocks_used = c->all.n_blocks - tn_cache_n_available(c),
                             .depth = mean_depth(s, key),
                             .begin_ns = begin,
                             .plan = slot->plan};
    f->timed = tn_pass_begin(s->ctx, &f->pass) && !s->profile;
    if (!f->timed) return TN_OK;
    tn_status status = tn_session_profile_reserve(s, slot);
    f->timed = status == TN_OK;
    if (status != TN_OK) return status;
    memset(s->step_ns, 0, (size_t)s->step_ns_count * sizeof *s->step_ns);
    tn_pool_watch(s->ctx);
    return TN_OK;
}

static void end_watched(tn_session *s, tn_session_flight *f, tn_status status)
{
    if (f->timed) tn_pool_unwatch(s->ctx);
    if (f->timed && status == TN_OK) {
        f->pass.step_ns = s->step_ns;
        f->pass.n_steps = s->step_ns_count;
    }
    f->pass.end_ns = tn_time_ns();
    tn_pass_end(s->ctx, &f->pass);
}

// --- a pass in parts -------------------------------------------------------------------------------

static tn_status submit(tn_session *s, tn_session_slot *slot)
{
    tn_session_flight *f = &s->flight;
    uint64_t begin = f->pass.begin_ns ? tn_span_begin(s->ctx) : 0;
    f->slot = slot;
    if (f->pass.begin_ns) f->pass.submit_ns = tn_time_ns();
    tn_submit_options options = {.cancel = s->cancelled,
                                 .step_ns = s->profile || f->timed ? s->step_ns : NULL};
    tn_status status = tn_runner_submit(slot->runner, &options);
    tn_span_end(s->ctx, TN_SPAN_RUN, "submit a pass", begin, f->pass.n_tokens);
    return status;
}

tn_status tn_session_submit(tn_session *s, const tn_plan_key *key)
{
    tn_session_slot *slot;
    // Passes that compute nothing only measure the host (tn_model_host_overhead).
    bool watched = tn_passes_watched(s->ctx) && s->devices[0]->backend->role != TN_BACKEND_NOOP;
    uint64_t begin = watched ? tn_time_ns() : 0;
    s->flight = (tn_session_flight){0};
    tn_status status = tn_session_find_slot(s, key, &slot);
    if (status == TN_OK && s->profile) status = tn_session_profile_reserve(s, slot);
    if (status == TN_OK) status = write_inputs(s, slot);
    if (status == TN_OK && watched) status = begin_watched(s, slot, begin);
    s->n_fed = 0;
    return status == TN_OK ? submit(s, slot) : status;
}

tn_status tn_session_choose(tn_session *s)
{
    s->n_outputs = 0;
    s->sampling.done = false;
    memset(s->rows_read, 0, (size_t)s->cfg.n_seq * sizeof *s->rows_read);
    return tn_session_sample(s, s->flight.slot, &s->flight.sampled);
}

tn_status tn_session_finish(tn_session *s, tn_status status)
{
    tn_session_flight flight = s->flight;
    tn_session_slot *slot = flight.slot;
    uint64_t start = tn_time_ns();
    if (!slot) return status;
    s->flight = (tn_session_flight){0};
    tn_status waited = tn_runner_wait(slot->runner); // also behind a failure: the device may still run
    if (status == TN_OK) status = waited;
    if (status == TN_OK && flight.sampled) status = tn_session_read_sampled(s, slot, flight.sampled);
    s->wait_ns += tn_time_ns() - start;
    if (!flight.pass.begin_ns) return status == TN_OK ? read_outputs(s, slot) : status;
    if (tn_span_begin(s->ctx)) tn_span_end(s->ctx, TN_SPAN_RUN, "wait for a pass", start, 0);
    end_watched(s, &flight, status);
    return status == TN_OK ? read_outputs(s, slot) : status;
}

tn_status tn_session_run(tn_session *s, const tn_plan_key *key)
{
    tn_status status = tn_session_submit(s, key);
    if (status == TN_OK) status = tn_session_choose(s);
    return tn_session_finish(s, status);
}
