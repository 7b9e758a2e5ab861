// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Engines on a thread of their own: several threads submit and cancel at random, one takes the events, and
// each request gets what it gets alone. Meant to be run with the thread sanitizer too.
#include "tests/models/engine_requests.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { SUBMITTERS = 3, EACH = 16, ALL = SUBMITTERS * EACH, N_CTX = 224 };

static void rest(int32_t microseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)microseconds * 1000}, NULL);
}

// --- an allocator for several threads that fails on request --------------------------------------------

static _Atomic long n_live;
static _Atomic bool out_of_memory;

static void *thread_alloc(void *user, size_t size, size_t align)
{
    TN_UNUSED(user);
    if (atomic_load(&out_of_memory)) return NULL;
    void *p = tn_system_alloc(size, align);
    if (p) atomic_fetch_add(&n_live, 1);
    return p;
}

static void thread_free(void *user, void *ptr)
{
    TN_UNUSED(user);
    if (ptr) atomic_fetch_sub(&n_live, 1);
    tn_system_free(ptr);
}

// --- random submitting and cancelling ------------------------------------------------------------------

typedef struct submitter {
    tn_engine *engine;
    plan *plans; // [EACH]
    uint32_t random;
    pthread_t thread;
} submitter;

static int32_t draw(submitter *s, int32_t n)
{
    s->random = s->random * 1664525u + 1013904223u;
    return (int32_t)((s->random >> 8) % (uint32_t)n);
}

static void *submit_and_cancel(void *user)
{
    submitter *s = user;
    for (int32_t i = 0; i < EACH; i++) {
        if (submit_plan(s->engine, &s->plans[i]) != TN_OK) return NULL;
        if (draw(s, 3) == 0) rest(draw(s, 3000));
        // One that was submitted before, perhaps long ended.
        int32_t k = draw(s, i + 1);
        if (s->plans[k].leaves >= 0) tn_engine_cancel(s->engine, s->plans[k].id);
    }
    for (int32_t i = 0; i < EACH; i++)
        if (s->plans[i].leaves >= 0) tn_engine_cancel(s->engine, s->plans[i].id);
    return s;
}

static int32_t note(uint64_t *ids, plan *plans, const tn_engine_event *event)
{
    plan *p = event->user;
    ids[p - plans] = event->id;
    TEST_CHECK_STATUS(event->status, TN_OK);
    if (!TEST_CHECK(!p->ended)) return 0;
    if (event->piece->token >= 0 && TEST_CHECK(p->n_got < MAX_TEXT)) p->got[p->n_got++] = event->piece->token;
    p->ended = event->piece->stop != TN_STOP_NONE;
    p->got_stop = event->piece->stop;
    return p->ended;
}

// Everything that waits, or one pass of the host; returns how many requests ended.
static int32_t take_all(tn_engine *e, bool step, uint64_t *ids, plan *plans)
{
    const tn_engine_event *const *events;
    int32_t n, n_ended = 0;
    do {
        tn_status status = step ? tn_engine_step(e, &events, &n) : tn_engine_take(e, &events, &n);
        if (!TEST_CHECK_STATUS(status, TN_OK)) return n_ended;
        for (int32_t i = 0; i < n; i++) n_ended += note(ids, plans, events[i]);
    } while (n > 0 && !step);
    return n_ended;
}

static bool readable(tn_engine *e, int32_t milliseconds)
{
    struct pollfd p = {.fd = tn_engine_descriptor(e), .events = POLLIN};
    return poll(&p, 1, milliseconds) == 1 && (p.revents & POLLIN);
}

// Now and then the thread is stopped, the host runs passes itself, and starts the thread again.
static void run_host(tn_engine *e, uint64_t *ids, plan *plans)
{
    int32_t n_ended = 0;
    TEST_CHECK_STATUS(tn_engine_start(e), TN_OK);
    for (int32_t round = 1; n_ended < ALL; round++) {
        if (!TEST_CHECK(readable(e, 60000))) break;
        n_ended += take_all(e, false, ids, plans);
        tn_engine_stats stats = {.struct_size = sizeof stats};
        tn_engine_stats_get(e, &stats);
        TEST_CHECK(stats.n_running >= 0 && stats.n_waiting >= 0 && stats.n_free <= stats.n_blocks);
        if (round % 20 != 0) continue;
        tn_engine_stop(e);
        n_ended += take_all(e, false, ids, plans);
        for (int32_t i = 0; i < 3; i++) n_ended += take_all(e, true, ids, plans);
        TEST_CHECK_STATUS(tn_engine_start(e), TN_OK);
    }
    TEST_CHECK(tn_engine_pending(e) == 0);
}

static void test_random(tn_model *model, uint32_t seed)
{
    plan *plans = calloc(ALL, sizeof *plans);
    uint64_t ids[ALL] = {0};
    submitter submitters[SUBMITTERS];
    if (!plans) abort();
    random_state = seed;
    for (int32_t i = 0; i < ALL; i++) {
        make_plan(&plans[i], N_CTX, false);
        plans[i].max_tokens %= 40;
        run_alone(model, &plans[i], N_CTX);
    }
    tn_session_config scfg = session_config(2 * N_CTX, 4);
    scfg.n_ctx_seq = N_CTX;
    tn_engine *e = make_engine(model, &scfg, 0);
    for (int32_t i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (submitter){e, plans + (size_t)i * EACH, seed + (uint32_t)i, 0};
        if (pthread_create(&submitters[i].thread, NULL, submit_and_cancel, &submitters[i]) != 0) abort();
    }
    run_host(e, ids, plans);
    for (int32_t i = 0; i < SUBMITTERS; i++) {
        void *result;
        pthread_join(submitters[i].thread, &result);
        TEST_CHECK(result == &submitters[i]);
    }
    for (int32_t i = 0; i < ALL; i++) {
        check_plan(&plans[i], i, seed);
        TEST_CHECK(plans[i].id == ids[i]);
    }
    tn_engine_destroy(&e); // while its thread sleeps
    free(plans);
}

// --- states, a host that stands still, failures ---------------------------------------------------------

static uint64_t submit_simple(tn_engine *e, int32_t max_tokens)
{
    int32_t ids[2] = {1, 2};
    uint64_t id = 0;
    tn_generation_config g;
    tn_request_config r;
    tn_generation_config_default(&g);
    tn_request_config_default(&r);
    g.max_tokens = max_tokens;
    r.tokens = ids, r.n_tokens = 2, r.generation = &g;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
    return id;
}

static void test_states(tn_model *model)
{
    const tn_engine_event *const *events;
    int32_t n;
    tn_session_config scfg = session_config(N_CTX, 2);
    tn_engine *e = make_engine(model, &scfg, 0);
    TEST_CHECK(tn_engine_descriptor(e) == -1);
    TEST_CHECK_STATUS(tn_engine_take(e, &events, &n), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_engine_start(e), TN_OK);
    TEST_CHECK_STATUS(tn_engine_start(e), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_engine_take(e, &events, &n), TN_OK);
    TEST_CHECK(n == 0 && !readable(e, 0));
    (void)submit_simple(e, -1);
    TEST_CHECK(readable(e, 60000) && tn_engine_pending(e) == 1);
    tn_engine_stop(e);
    tn_engine_stop(e);
    TEST_CHECK(readable(e, 0)); // events stay
    TEST_CHECK_STATUS(tn_engine_start(e), TN_OK);
    (void)submit_simple(e, -1);
    tn_engine_destroy(&e); // in the middle of two texts
}

// More passes than the list of events holds: the thread pauses, and nothing is lost.
static void test_standing_host(tn_model *model)
{
    enum { TEXTS = 24, TOKENS = 20 };
    int32_t n_events = 0, n_ended = 0, n = 1;
    uint64_t steps = 0;
    tn_session_config scfg = session_config(64, 1);
    tn_engine *e = make_engine(model, &scfg, 0);
    TEST_CHECK_STATUS(tn_engine_start(e), TN_OK);
    for (int32_t i = 0; i < TEXTS; i++) (void)submit_simple(e, TOKENS);
    tn_engine_stats stats = {.struct_size = sizeof stats};
    for (int32_t same = 0; same < 50; same = stats.n_steps == steps ? same + 1 : 0) {
        steps = stats.n_steps;
        rest(10000);
        tn_engine_stats_get(e, &stats);
    }
    TEST_CHECK(stats.n_steps >= 250 && stats.n_steps < TEXTS * TOKENS);
    while (n_ended < TEXTS && TEST_CHECK(readable(e, 60000))) do {
            const tn_engine_event *const *events;
            if (!TEST_CHECK_STATUS(tn_engine_take(e, &events, &n), TN_OK)) break;
            for (int32_t i = 0; i < n; i++) n_ended += events[i]->piece->stop != TN_STOP_NONE;
            n_events += n;
        } while (n > 0);
    TEST_CHECK(n_events == TEXTS * TOKENS);
    tn_engine_destroy(&e);
}

// Without memory for its events the thread reports that and waits; later it goes on where it was.
static void test_no_memory(tn_model *model)
{
    enum { TOKENS = 30 };
    const tn_engine_event *const *events;
    int32_t n, n_tokens = 0, n_failures = 0;
    bool ended = false;
    tn_session_config scfg = session_config(64, 1);
    tn_engine *e = make_engine(model, &scfg, 0);
    TEST_CHECK_STATUS(tn_engine_start(e), TN_OK);
    (void)submit_simple(e, TOKENS);
    atomic_store(&out_of_memory, true);
    while (!ended && TEST_CHECK(readable(e, 60000))) {
        tn_status status = tn_engine_take(e, &events, &n);
        if (status != TN_OK) {
            TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
            if (++n_failures == 3) atomic_store(&out_of_memory, false);
        }
        for (int32_t i = 0; i < n; i++) {
            n_tokens += events[i]->piece->token >= 0;
            ended = events[i]->piece->stop != TN_STOP_NONE;
        }
        // What was taken before is enough for an engine whose host keeps up.
        if (n_tokens > 0 && n_failures < 3) atomic_store(&out_of_memory, false), n_failures = 3;
    }
    TEST_CHECK(n_tokens == TOKENS && n_failures >= 3);
    atomic_store(&out_of_memory, false);
    tn_engine_destroy(&e);
}

int main(int argc, char **argv)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    int32_t n_rounds = argc > 1 ? atoi(argv[1]) : 4;
    tn_context_config_default(&cfg);
    cfg.isa = "generic";
    cfg.n_threads = 1;
    cfg.allocator = (tn_allocator){NULL, thread_alloc, thread_free};
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    for (int32_t i = 0; i < n_rounds; i++) test_random(model, (uint32_t)i);
    test_states(model);
    test_standing_host(model);
    test_no_memory(model);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    TEST_CHECK(atomic_load(&n_live) == 0);
    return test_done();
}
