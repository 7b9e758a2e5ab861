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

tn_status tn_session_submit(tn_session *s, const tn_plan_key *key)
{
    tn_session_slot *slot;
    s->flight = (tn_session_flight){0};
    tn_status status = tn_session_find_slot(s, key, &slot);
    if (status == TN_OK) status = tn_session_profile_reserve(s, slot);
    if (status == TN_OK) status = write_inputs(s, slot);
    if (status != TN_OK) return status;
    tn_submit_options options = {.cancel = s->cancelled, .step_ns = s->profile ? s->step_ns : NULL};
    s->flight.slot = slot;
    return tn_runner_submit(slot->runner, &options);
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
    tn_session_slot *slot = s->flight.slot;
    const tn_sample_slot *sampled = s->flight.sampled;
    uint64_t start = tn_time_ns();
    if (!slot) return status;
    s->flight = (tn_session_flight){0};
    tn_status waited = tn_runner_wait(slot->runner); // also behind a failure: the device may still run
    if (status == TN_OK) status = waited;
    if (status == TN_OK && sampled) status = tn_session_read_sampled(s, slot, sampled);
    s->wait_ns += tn_time_ns() - start;
    return status == TN_OK ? read_outputs(s, slot) : status;
}

tn_status tn_session_run(tn_session *s, const tn_plan_key *key)
{
    tn_status status = tn_session_submit(s, key);
    if (status == TN_OK) status = tn_session_choose(s);
    return tn_session_finish(s, status);
}
