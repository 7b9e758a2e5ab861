// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Engines: whatever arrives when, is cancelled, waits, loses its blocks or shares a prefix, each request gets
// exactly the tokens that it gets alone.
#include "tests/models/engine_requests.h"

#include <pthread.h>

// When nothing runs, each block of the window can be had once.
static bool window_blocks_are_back(tn_cache *c)
{
    int32_t n = 0;
    while (tn_cache_window_take(c) >= 0) n++;
    return n == c->sliding.n_blocks;
}

// Runs one schedule until all have ended; returns how often a request lost its blocks. windows: layers with a
// sliding window keep the blocks of the window, and requests lose all their blocks now and then.
static uint64_t run_schedule(tn_model *model, uint32_t seed, bool text, bool windows)
{
    enum { MOST_STEPS = 8000 };
    plan plans[MAX_REQUESTS];
    random_state = seed * 2654435761u + 1;
    int32_t n = 2 + below(MAX_REQUESTS - 1), n_ctx = 96 + below(200);
    tn_session_config scfg = session_config(n_ctx, 1 + below(6));
    scfg.n_batch = scfg.n_seq + below(40);
    scfg.n_ctx_seq = n_ctx;
    scfg.n_ctx += below(2) * below(300); // longer than one sequence may be
    scfg.free_windows = windows;
    if (windows) scfg.n_ctx += 5 * TN_CACHE_BLOCK * scfg.n_seq; // else the window has no blocks of its own
    tn_engine *e = make_engine(model, &scfg, below(2) * (1 + below(20)));
    TEST_CHECK(tn_cache_has_window(&e->session->cache) == windows);
    e->session->pads = below(2) != 0; // as on devices that capture their steps
    for (int32_t i = 0; i < n; i++) make_plan(&plans[i], n_ctx, text);
    for (int32_t i = 0; i < n; i++) run_alone(model, &plans[i], n_ctx);
    int32_t step = 0, left = n, held;
    for (; step < MOST_STEPS && left > 0; step++) {
        const tn_engine_event *const *events;
        int32_t n_events;
        for (int32_t i = 0; i < n; i++) {
            if (plans[i].arrives == step) submit(e, &plans[i]);
            if (plans[i].leaves == step) tn_engine_cancel(e, plans[i].id);
            if (plans[i].leaves == step && plans[i].id == 0) plans[i].leaves = -1;
        }
        if (windows && step < 500 && tn_engine_n_running(e) > 0 && below(16) == 0)
            TEST_CHECK_STATUS(tn_engine_preempt(e, tn_engine_newest(e)), TN_OK);
        TEST_CHECK_STATUS(tn_engine_step(e, &events, &n_events), TN_OK);
        for (int32_t i = 0; i < n_events; i++) take_event(plans, n, events[i]);
        left = 0;
        for (int32_t i = 0; i < n; i++) left += !plans[i].ended;
        if (windows) TEST_CHECK(window_refs_are_right(&e->session->cache, &held));
    }
    TEST_CHECK(tn_engine_pending(e) == 0);
    for (int32_t i = 0; i < n; i++) check_plan(&plans[i], i, seed);
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_engine_stats_get(e, &stats);
    TEST_CHECK(stats.n_free == stats.n_blocks && stats.n_running == 0 && stats.n_waiting == 0);
    if (windows) TEST_CHECK(window_blocks_are_back(&e->session->cache));
    tn_engine_destroy(&e);
    return stats.n_preempted;
}

// --- refused requests ----------------------------------------------------------------------------------

static void refuse_config(tn_model *model, const tn_engine_config *cfg, tn_status want, const char *part)
{
    tn_engine *e = NULL;
    char text[512];
    TEST_CHECK_STATUS(tn_engine_create(model, cfg, &e), want);
    tn_context_error(tn_model_context(model), text, sizeof text);
    if (!TEST_CHECK(!e && strstr(text, part))) printf("    message: %s\n", text);
}

static void test_refused_configs(tn_model *model)
{
    tn_session_config scfg = session_config(128, 2);
    tn_engine_config d, c;
    tn_engine_config_default(&d);
    d.session = &scfg;
    c = d, c.waiting_tokens = 0;
    refuse_config(model, &c, TN_ERR_ARG, "waiting_tokens is 0, must be at least 1");
    c = d, c.prompt_tokens = -1;
    refuse_config(model, &c, TN_ERR_ARG, "prompt_tokens is -1, must be 0 to ");
    c.prompt_tokens = INT32_MAX;
    refuse_config(model, &c, TN_ERR_ARG, "prompt_tokens is 2147483647, must be 0 to ");
    c = d, c.gap_limit = NAN;
    refuse_config(model, &c, TN_ERR_ARG, "gap_limit is ");
    c.gap_limit = -1;
    refuse_config(model, &c, TN_ERR_ARG, "gap_limit is -1, must be ");
    c.gap_limit = INFINITY;
    refuse_config(model, &c, TN_ERR_ARG, "gap_limit is inf, must be ");
    c = d, scfg.result = TN_RESULT_HIDDEN;
    refuse_config(model, &c, TN_ERR_UNSUPPORTED, "the model or session gives no logits");
}

static void test_refusals(tn_model *model)
{
    int32_t ids[200] = {1, 2, 3};
    uint64_t id = 7;
    tn_session_config scfg = session_config(128, 2);
    tn_engine_config ecfg;
    tn_engine *e = NULL;
    tn_engine_config_default(&ecfg);
    ecfg.session = &scfg;
    ecfg.n_waiting = 2;
    ecfg.waiting_tokens = 5;
    TEST_CHECK_STATUS(tn_engine_create(model, &ecfg, &e), TN_OK);
    tn_request_config r;
    tn_request_config_default(&r);
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_engine_submit(e, NULL, &id), TN_ERR_ARG);
    r.tokens = ids, r.n_tokens = 128;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_CONTEXT_FULL);
    r.n_tokens = 3, r.priority = 1001;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_ARG);
    r.priority = 0, ids[1] = VOCAB;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_ARG);
    ids[1] = 2;
    tn_sampling sampling;
    tn_generation_config g;
    tn_sampling_default(&sampling);
    tn_generation_config_default(&g);
    r.generation = &g;
    g.sampling = &sampling;
    sampling.top_p = 2.0f;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_ARG);
    sampling.top_p = 1.0f, g.spec_ngram = 2;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_UNSUPPORTED);
    TEST_CHECK(id == 7 && tn_engine_pending(e) == 0);
    g.spec_ngram = 0;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_BUSY); // 6 tokens
    r.n_tokens = 1;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_ERR_BUSY); // 3 requests
    TEST_CHECK(tn_engine_pending(e) == 2);
    tn_engine_destroy(&e); // with requests that never ran
    ecfg.n_waiting = 0;
    TEST_CHECK_STATUS(tn_engine_create(model, &ecfg, &e), TN_ERR_ARG);
    TEST_CHECK(e == NULL);
    test_refused_configs(model);
}

// A request that fails ends with a message of its own, and the others go on.
static void test_failing_request(tn_model *model)
{
    static int32_t ids[VOCAB];
    static float never[VOCAB];
    tn_session_config scfg = session_config(128, 2);
    tn_engine *e = make_engine(model, &scfg, 0);
    plan good = {.n_prompt = 5, .max_tokens = 20, .prompt = {1, 2, 3, 4, 5}}, bad = good;
    tn_sampling_default(&good.sampling);
    bad.sampling = good.sampling;
    for (int32_t i = 0; i < VOCAB; i++) ids[i] = i, never[i] = -INFINITY;
    bad.sampling.bias_tokens = ids, bad.sampling.bias_values = never, bad.sampling.n_bias = VOCAB;
    run_alone(model, &good, 128);
    submit(e, &good);
    submit(e, &bad);
    for (int32_t step = 0; step < 100 && tn_engine_pending(e) > 0; step++) {
        const tn_engine_event *const *events;
        int32_t n;
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
        for (int32_t i = 0; i < n; i++) {
            if (events[i]->user == &good) {
                take_event(&good, 1, events[i]);
                continue;
            }
            bad.ended = TEST_CHECK(!bad.ended);
            TEST_CHECK_STATUS(events[i]->status, TN_ERR_ARG);
            TEST_CHECK(events[i]->message &&
                       strstr(events[i]->message, "the bias list excludes every token"));
        }
    }
    TEST_CHECK(bad.ended && tn_engine_pending(e) == 0);
    check_plan(&good, 0, 0);
    tn_engine_destroy(&e);
}

// --- failing allocations -------------------------------------------------------------------------------

// A request whose submission fails leaves nothing behind, and does not harm the one that runs.
static void test_allocations(tn_model *model, counting *c)
{
    tn_session_config scfg = session_config(128, 2);
    tn_engine *e = make_engine(model, &scfg, 0);
    plan a = {.n_prompt = 5, .max_tokens = 40, .prompt = {1, 2, 3, 4, 5}}, b = a;
    tn_sampling_default(&a.sampling);
    run_alone(model, &a, 128);
    submit(e, &a);
    bool submitted = false;
    for (long k = 0; k < 200 && !submitted; k++) {
        const tn_engine_event *const *events;
        int32_t n_events;
        tn_generation_config cfg = generation_config(&a);
        tn_request_config r;
        tn_request_config_default(&r);
        r.tokens = b.prompt, r.n_tokens = b.n_prompt, r.generation = &cfg, r.user = &b;
        long live = c->live;
        c->fail_from = c->calls + k, c->fail_to = c->fail_from + 1;
        tn_status status = tn_engine_submit(e, &r, &b.id);
        c->fail_from = c->fail_to = 0;
        submitted = status == TN_OK;
        if (!submitted && !TEST_CHECK(status == TN_ERR_MEMORY && c->live == live)) break;
        if (tn_engine_pending(e) == 0) continue;
        TEST_CHECK_STATUS(tn_engine_step(e, &events, &n_events), TN_OK);
        for (int32_t i = 0; i < n_events; i++)
            if (events[i]->user == &a) take_event(&a, 1, events[i]);
    }
    TEST_CHECK(submitted);
    while (tn_engine_pending(e) > 0) {
        const tn_engine_event *const *events;
        int32_t n_events;
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n_events), TN_OK)) break;
        for (int32_t i = 0; i < n_events; i++)
            if (events[i]->user == &a) take_event(&a, 1, events[i]);
    }
    check_plan(&a, 0, 0);
    tn_engine_destroy(&e);
}

// --- threads -------------------------------------------------------------------------------------------

enum { PER_THREAD = 40 };

// Submits requests, and cancels every third one.
static void *submit_many(void *user)
{
    int32_t ids[4] = {5, 6, 7, 8};
    for (int32_t i = 0; i < PER_THREAD; i++) {
        tn_generation_config g;
        tn_request_config r;
        uint64_t id;
        tn_generation_config_default(&g);
        g.max_tokens = 1 + i % 5;
        tn_request_config_default(&r);
        r.tokens = ids, r.n_tokens = 1 + i % 4, r.generation = &g;
        if (tn_engine_submit(user, &r, &id) != TN_OK) return NULL;
        if (i % 3 == 0) tn_engine_cancel(user, id);
    }
    return user;
}

static void test_threads(void)
{
    enum { THREADS = 3 };
    tn_context *ctx = context(NULL, 1);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session_config scfg = session_config(256, 4);
    tn_engine *e = make_engine(model, &scfg, 0);
    pthread_t threads[THREADS];
    int32_t ended = 0;
    for (int32_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, submit_many, e) != 0) abort();
    for (int32_t quiet = 0; ended < THREADS * PER_THREAD && quiet < 1000000;) {
        const tn_engine_event *const *events;
        int32_t n;
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
        for (int32_t i = 0; i < n; i++) ended += events[i]->piece->stop != TN_STOP_NONE;
        quiet = n > 0 ? 0 : quiet + 1;
    }
    for (int32_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        TEST_CHECK(result == e);
    }
    TEST_CHECK(ended == THREADS * PER_THREAD);
    tn_engine_destroy(&e);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// Several threads select tokens, and evaluate.
static void test_selecting_threads(void)
{
    tn_context *ctx = context(NULL, 3);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    for (uint32_t k = 0; k < 2; k++) (void)run_schedule(model, 1000 + k, false, false);
    TEST_CHECK(n_lent_runs > 0);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

int main(int argc, char **argv)
{
    counting c;
    tn_context *ctx = context(&c, 1);
    static const int32_t shapes[] = {TINY_LLAMA, TINY_GEMMA3, TINY_DEEPSEEK2, TINY_QWEN35, TINY_GPT_OSS};
    static const int32_t windowed[] = {TINY_GEMMA3, TINY_GPT_OSS, TINY_GEMMA4};
    int32_t n_schedules = argc > 1 ? atoi(argv[1]) : 12;
    uint64_t n_preempted = 0;
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        tiny_shape shape = tiny_shapes[shapes[i]];
        shape.tokenizer = i == 0;
        tn_model *model = tiny_model_open(ctx, &shape);
        for (int32_t k = 0; k < n_schedules; k++)
            n_preempted += run_schedule(model, (uint32_t)(k + 100 * (int32_t)i), shape.tokenizer, false);
        if (i == 0) {
            test_refusals(model);
            test_failing_request(model);
            test_allocations(model, &c);
        }
        tn_model_unref(&model);
    }
    for (size_t i = 0; i < TN_COUNT(windowed); i++) {
        tiny_shape shape = tiny_shapes[windowed[i]];
        shape.tokenizer = true; // for banned texts, which cut sequences
        tn_model *model = tiny_model_open(ctx, &shape);
        for (int32_t k = 0; k < n_schedules; k++)
            (void)run_schedule(model, (uint32_t)(2000 + k + 100 * (int32_t)i), true, true);
        tn_model_unref(&model);
    }
    test_threads();
    test_selecting_threads();
    TEST_CHECK(n_preempted > 0); // else the schedules do not fill the cache
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
    return test_done();
}
