// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Random requests for engines, and what each of them gives alone.
#ifndef TN_TESTS_MODELS_ENGINE_REQUESTS_H
#define TN_TESTS_MODELS_ENGINE_REQUESTS_H

#include "models/engine/engine.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/lent.h"
#include "tests/unit/test.h"

enum { VOCAB = TINY_MODEL_VOCAB, MAX_REQUESTS = 14, MAX_TEXT = 160, MAX_PROMPT = 150 };

typedef struct plan {
    int32_t prompt[MAX_PROMPT], n_prompt, max_tokens, priority;
    tn_sampling sampling;
    int32_t arrives, leaves; // step of submitting, and of cancelling; -1: never
    const char *ban;
    // What it says alone, and what the engine gave.
    int32_t want[MAX_TEXT], n_want, want_stop;
    int32_t got[MAX_TEXT], n_got, got_stop;
    uint64_t id;
    bool ended;
} plan;

static uint32_t random_state;

static inline int32_t below(int32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int32_t)((random_state >> 8) % (uint32_t)n);
}

static int n_lent_runs;

// The level below AVX2: a row does not depend on its batch, so everything is equal to the bit. c counts
// allocations, from one thread only; NULL: nothing is counted.
static inline tn_context *context(counting *c, int32_t n_threads)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.isa = "generic";
    cfg.n_threads = n_threads;
    if (n_threads > 1) cfg.executor = (tn_executor){&n_lent_runs, lent_run};
    if (c) *c = (counting){0};
    if (c) cfg.allocator = (tn_allocator){c, counting_alloc, counting_free};
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    return ctx;
}

static inline tn_session_config session_config(int32_t n_ctx, int32_t n_seq)
{
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = n_ctx;
    cfg.n_seq = n_seq;
    return cfg;
}

// Prompts begin with one of a small number of prefixes, so that some share whole blocks.
static inline void make_plan(plan *p, int32_t n_ctx, bool text)
{
    *p = (plan){.arrives = below(30), .leaves = below(4) == 0 ? below(60) : -1, .priority = below(5) - 2};
    p->n_prompt = 1 + below(TN_MIN(MAX_PROMPT, n_ctx - 1));
    int32_t prefix = below(3), shared = below(2) == 0 ? p->n_prompt : below(p->n_prompt);
    for (int32_t i = 0; i < p->n_prompt; i++)
        p->prompt[i] = i < shared ? (i * 7 + prefix * 31) % 250 : below(250);
    p->max_tokens = below(MAX_TEXT);
    tn_sampling_default(&p->sampling);
    p->sampling.temperature = below(3) == 0 ? 0.0f : 2.5f;
    p->sampling.frequency_penalty = below(2) == 0 ? 1.5f : 0.0f;
    p->sampling.penalty_last_n = -1;
    p->sampling.seed = (uint64_t)below(1000);
    if (text && below(3) == 0) p->ban = "e";
}

static inline tn_generation_config generation_config(const plan *p)
{
    tn_generation_config cfg;
    tn_generation_config_default(&cfg);
    cfg.sampling = &p->sampling;
    cfg.max_tokens = p->max_tokens;
    if (p->ban) cfg.bans = &p->ban, cfg.n_bans = 1;
    return cfg;
}

static inline void run_in(tn_session *s, plan *p)
{
    tn_generation_config cfg = generation_config(p);
    tn_generation *g = NULL;
    TEST_CHECK_STATUS(tn_generation_create(s, &cfg, &g), TN_OK);
    TEST_CHECK_STATUS(tn_generation_start(g, p->prompt, (size_t)p->n_prompt), TN_OK);
    for (tn_piece piece = {.struct_size = sizeof piece, .stop = TN_STOP_NONE}; piece.stop == TN_STOP_NONE;) {
        if (!TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK)) break;
        if (piece.token >= 0) p->want[p->n_want++] = piece.token;
        p->want_stop = piece.stop;
    }
    tn_generation_destroy(&g);
}

static inline void run_alone(tn_model *model, plan *p, int32_t n_ctx)
{
    tn_session_config scfg = session_config(n_ctx, 1);
    tn_session *s = NULL;
    TEST_CHECK_STATUS(tn_session_create(model, &scfg, &s), TN_OK);
    run_in(s, p);
    tn_session_destroy(&s);
}

// Every block of the window is counted as often as sequences hold it. *held: blocks that one holds.
static inline bool window_refs_are_right(const tn_cache *c, int32_t *held)
{
    enum { MOST = 64 };
    int32_t refs[MOST] = {0};
    *held = 0;
    if (!TEST_CHECK(c->sliding.n_blocks <= MOST)) return false;
    for (int32_t q = 0; q < c->n_seq; q++) {
        const tn_cache_seq *s = &c->seqs[q];
        for (int32_t i = s->window_first; i < tn_cache_blocks_of(s->window_length); i++)
            refs[s->window_blocks[i]]++;
    }
    for (int32_t i = 0; i < c->sliding.n_blocks; i++) {
        if (refs[i] != c->sliding.refs[i]) return false;
        *held += refs[i] > 0;
    }
    return true;
}

static inline void take_event(plan *plans, int32_t n, const tn_engine_event *event)
{
    plan *p = event->user;
    if (!TEST_CHECK(p >= plans && p < plans + n && p->id == event->id && !p->ended)) return;
    TEST_CHECK_STATUS(event->status, TN_OK);
    TEST_CHECK(event->piece->token < 0 || event->queue_ns > 0);
    if (event->piece->token >= 0 && TEST_CHECK(p->n_got < MAX_TEXT)) p->got[p->n_got++] = event->piece->token;
    p->ended = event->piece->stop != TN_STOP_NONE || event->status != TN_OK;
    p->got_stop = event->piece->stop;
}

static inline void check_plan(const plan *p, int32_t i, uint32_t seed)
{
    bool cancelled = p->got_stop == TN_STOP_CANCELLED && p->leaves >= 0;
    bool ok =
        p->ended && p->n_got <= p->n_want && memcmp(p->got, p->want, (size_t)p->n_got * sizeof *p->got) == 0;
    if (!cancelled) ok = ok && p->n_got == p->n_want && p->got_stop == p->want_stop;
    if (!TEST_CHECK(ok))
        printf("    schedule %u, request %d: %d tokens, stop %d; alone %d, stop %d\n", seed, i, p->n_got,
               p->got_stop, p->n_want, p->want_stop);
}

// From any thread: it counts no checks.
static inline tn_status submit_plan(tn_engine *e, plan *p)
{
    tn_generation_config cfg = generation_config(p);
    tn_request_config r;
    tn_request_config_default(&r);
    r.tokens = p->prompt;
    r.n_tokens = p->n_prompt;
    r.generation = &cfg;
    r.priority = p->priority;
    r.user = p;
    return tn_engine_submit(e, &r, &p->id);
}

static inline void submit(tn_engine *e, plan *p)
{
    TEST_CHECK_STATUS(submit_plan(e, p), TN_OK);
}

static inline tn_engine *make_engine(tn_model *model, const tn_session_config *session, int32_t prompt_tokens)
{
    tn_engine_config cfg;
    tn_engine *e = NULL;
    tn_engine_config_default(&cfg);
    cfg.session = session;
    cfg.prompt_tokens = prompt_tokens;
    if (!TEST_CHECK_STATUS(tn_engine_create(model, &cfg, &e), TN_OK)) abort();
    return e;
}

#endif
