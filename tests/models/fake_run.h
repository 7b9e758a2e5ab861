// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A device for schedulers: it takes the place of tn_session_run and of its parts by the linker (--wrap). Its
// logits depend on every token that the sequence reaches through its block table, on their positions, and on
// the recurrent state that it was given. It writes a key for each token into the first part of the cache that
// has memory. So a block that is shared wrongly, written late or used again too early changes the text. Its
// clock goes on by what a pass should cost, and its calls fail on request.
#ifndef TN_TESTS_MODELS_FAKE_RUN_H
#define TN_TESTS_MODELS_FAKE_RUN_H

#include "models/run/session.h"
#include "tests/models/tiny_model.h"

enum { FAKE_SESSIONS = 2, FAKE_STATES = 64, FAKE_OUTPUTS = 192, FAKE_TOKENS = 250, FAKE_PLANS = 512 };

static struct {
    struct {
        const tn_session *session;
        uint64_t states[FAKE_STATES];
        float logits[FAKE_OUTPUTS * TINY_MODEL_VOCAB];
        int32_t n_outputs; // of the pass that was submitted last
        tn_status status;  // of it, when it is waited for
    } of[FAKE_SESSIONS];
    long n_late;                        // failures that are still to be returned, by the call that waits
    long n_runs, fail_at;               // run number fail_at fails, counted from 1
    uint64_t now_ns, pass_ns, token_ns; // what a pass and each of its tokens cost
    uint64_t (*cost)(const tn_session *s, const tn_plan_key *key); // instead of these two; NULL: none
    bool any_text;    // the text depends on the position only, which takes less time
    uint64_t plan_ns; // what the first pass of a size costs besides
    tn_plan_key plans[FAKE_PLANS];
    int n_plans;
} fake;

static inline uint64_t fake_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static inline uint64_t fake_key(int32_t token, int32_t position)
{
    return fake_mix((uint64_t)token + 1, (uint64_t)position + 1);
}

// The token that is selected behind these.
static inline int32_t fake_next(uint64_t attention, uint64_t state)
{
    return (int32_t)(fake_mix(attention, state) % FAKE_TOKENS);
}

// Behind n tokens, greedily.
static inline int32_t fake_next_of(const int32_t *tokens, int32_t n, bool has_states)
{
    uint64_t attention = 1, state = 0;
    for (int32_t i = 0; i < n; i++) {
        attention = fake_mix(attention, fake_key(tokens[i], i));
        if (has_states) state = fake_mix(state, (uint64_t)tokens[i] + 1);
    }
    return fake_next(attention, state);
}

static inline int fake_index(const tn_session *s)
{
    for (int i = 0; i < FAKE_SESSIONS; i++)
        if (fake.of[i].session == s || !fake.of[i].session) {
            fake.of[i].session = s;
            return i;
        }
    abort();
}

static inline uint64_t *fake_kv(tn_session *s, int32_t slot)
{
    const tn_cache_part *p = s->cache.parts;
    while (p->block_size == 0) p++;
    size_t row = p->block_size / TN_CACHE_BLOCK;
    char *data = s->cache.buffers[p->device].data;
    return (uint64_t *)(void *)(data + p->offset + (size_t)slot * row);
}

static inline void fake_output(tn_session *s, int at, int32_t row, int32_t seq, int32_t position,
                               uint64_t state)
{
    const int32_t *table = s->table + (size_t)seq * (size_t)s->cache.max_blocks;
    float *logits = fake.of[at].logits + (size_t)row * TINY_MODEL_VOCAB;
    uint64_t attention = 1;
    for (int32_t i = fake.any_text ? position : 0; i <= position; i++)
        attention =
            fake_mix(attention, *fake_kv(s, table[i / TN_CACHE_BLOCK] * TN_CACHE_BLOCK + i % TN_CACHE_BLOCK));
    memset(logits, 0, TINY_MODEL_VOCAB * sizeof *logits);
    // Some others are nearly as probable, for those that sample.
    for (int32_t i = 1; i < 4; i++) logits[(attention >> (8 * i)) % FAKE_TOKENS] = 9.0f;
    logits[fake_next(attention, state)] = 10.0f;
}

// The plan of a size is made when it comes for the first time.
static inline void fake_plan(tn_session *s, const tn_plan_key *key)
{
    for (int i = 0; i < fake.n_plans; i++)
        if (memcmp(&fake.plans[i], key, sizeof *key) == 0) return;
    if (fake.n_plans == FAKE_PLANS) abort();
    fake.plans[fake.n_plans++] = *key;
    fake.now_ns += fake.plan_ns;
    s->n_plans++;
}

// Everything that a pass does, at once. Its logits lie where those of the pass before were.
static inline tn_status fake_compute(tn_session *s, const tn_plan_key *key, bool fails)
{
    int at = fake_index(s);
    if (s->cache.n_slots > FAKE_STATES) abort();
    if (key->n_outputs > FAKE_OUTPUTS) abort();
    if (fake.plan_ns > 0) fake_plan(s, key);
    fake.now_ns += fake.cost ? fake.cost(s, key) : fake.pass_ns + fake.token_ns * (uint64_t)key->n_tokens;
    fake.of[at].n_outputs = key->n_outputs;
    for (int32_t i = 0; i < key->n_seq; i++) {
        int32_t from = s->cache.n_slots > 0 ? s->state_slots[2 * i] : -1;
        uint64_t state = from >= 0 ? fake.of[at].states[from] : 0;
        for (int32_t t = s->q_start[i]; t < s->q_start[i + 1]; t++) {
            // A pass that fails has written something, as a device may have.
            if (fails && t > s->q_start[i]) return tn_fail(s->ctx, TN_ERR_DEVICE, "fake: as requested");
            if (s->slots[t] >= 0) *fake_kv(s, s->slots[t]) = fake_key(s->tokens[t], s->positions[t]);
            if (s->cache.n_slots > 0) state = fake_mix(state, (uint64_t)s->tokens[t] + 1);
            for (int32_t k = 0; k < key->n_outputs; k++)
                if (s->out_rows[k] == t) fake_output(s, at, k, i, s->positions[t], state);
        }
        if (s->cache.n_slots > 0) fake.of[at].states[s->state_slots[2 * i + 1]] = state;
    }
    return fails ? tn_fail(s->ctx, TN_ERR_DEVICE, "fake: as requested") : TN_OK;
}

// What a session gets of its pass. One with space for the most probable tokens has a device that finds them.
static inline void fake_read(tn_session *s)
{
    int at = fake_index(s);
    s->n_outputs = fake.of[at].n_outputs;
    s->logits = fake.of[at].logits;
    for (int32_t i = 0; s->best && i < s->n_outputs; i++) {
        const float *x = s->logits + (size_t)i * TINY_MODEL_VOCAB;
        s->best[i] = 0;
        for (int32_t k = 1; k < TINY_MODEL_VOCAB; k++)
            if (x[k] > x[s->best[i]]) s->best[i] = k;
        s->best_logprob[i] = -0.5f;
    }
}

tn_status __wrap_tn_session_run(tn_session *s, const tn_plan_key *key);
tn_status __wrap_tn_session_run(tn_session *s, const tn_plan_key *key)
{
    tn_status status = fake_compute(s, key, ++fake.n_runs == fake.fail_at);
    if (status == TN_OK) fake_read(s);
    return status;
}

// Every second pass that fails does so only when it is waited for.
tn_status __wrap_tn_session_submit(tn_session *s, const tn_plan_key *key);
tn_status __wrap_tn_session_submit(tn_session *s, const tn_plan_key *key)
{
    tn_status *later = &fake.of[fake_index(s)].status,
              status = fake_compute(s, key, ++fake.n_runs == fake.fail_at);
    bool late = status != TN_OK && fake.n_runs % 2 != 0;
    *later = late ? status : TN_OK;
    fake.n_late += late;
    return late ? TN_OK : status;
}

tn_status __wrap_tn_session_choose(tn_session *s);
tn_status __wrap_tn_session_choose(tn_session *s)
{
    s->n_outputs = 0;
    return TN_OK;
}

tn_status __wrap_tn_session_finish(tn_session *s, tn_status status);
tn_status __wrap_tn_session_finish(tn_session *s, tn_status status)
{
    if (status == TN_OK) status = fake.of[fake_index(s)].status;
    if (status == TN_OK) fake_read(s);
    return status;
}

uint64_t __wrap_tn_time_ns(void);
uint64_t __wrap_tn_time_ns(void)
{
    return fake.now_ns;
}

#endif
