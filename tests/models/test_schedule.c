// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler and the cache of an engine over a device that computes nothing (fake_run.h): random arrivals,
// priorities and cancels, passes and allocations that fail; none starves, none stalls.
//     test_schedule [SCHEDULES]
#include "tests/models/engine_requests.h"
#include "tests/models/fake_run.h"

enum { PER_ENGINE = 250, STEPS_FACTOR = 12 };

static long n_steps_all, n_hits_all, n_preempted_all, n_failures_all, n_memory_all, n_loaded_all;
static long n_late_all, n_ahead_all;

// --- random schedules ----------------------------------------------------------------------------------

typedef struct setup {
    tn_model *model;
    counting *c;
    tn_engine *engine;
    tn_session *alone;
    int32_t n_ctx;
    bool has_states;
} setup;

static void make_request(plan *p, int32_t n_ctx)
{
    make_plan(p, n_ctx, false);
    p->arrives = below(20);
    p->leaves = below(6) == 0 ? p->arrives + below(20) : -1;
    p->max_tokens = below(below(4) == 0 ? MAX_TEXT : 24);
    p->sampling.temperature = below(8) == 0 ? 1.0f : 0.0f;
    p->sampling.frequency_penalty = 0.0f;
}

// Greedy texts are computed here; the others by a generation of its own session.
static void expect(const setup *u, plan *p)
{
    int32_t all[MAX_PROMPT + MAX_TEXT], n = p->n_prompt;
    if (p->sampling.temperature == 0.0f) {
        memcpy(all, p->prompt, (size_t)n * sizeof *all);
        p->want_stop = TN_STOP_LIMIT;
        while (p->n_want < p->max_tokens) {
            p->want[p->n_want++] = all[n] = fake_next_of(all, n, u->has_states);
            if (n++ < u->n_ctx || p->n_want == p->max_tokens) continue;
            p->want_stop = TN_STOP_CONTEXT;
            break;
        }
        return;
    }
    run_in(u->alone, p);
}

// A pass or an allocation of the next call fails, now and then.
static bool arm(const setup *u)
{
    fake.fail_at = below(12) == 0 ? fake.n_runs + 1 : 0;
    bool memory = below(12) == 0;
    if (memory) u->c->fail_from = u->c->calls + below(40), u->c->fail_to = u->c->fail_from + 1;
    return memory;
}

static void disarm(const setup *u)
{
    fake.fail_at = u->c->fail_from = u->c->fail_to = 0;
}

static void arrive(const setup *u, plan *p)
{
    bool memory = arm(u);
    tn_status status = submit_plan(u->engine, p);
    disarm(u);
    if (status == TN_OK) return;
    TEST_CHECK(status == TN_ERR_MEMORY && memory);
    n_memory_all++;
    submit(u->engine, p);
}

// Whatever fails for one request alone ends that one; the others are tried again.
static void step(const setup *u, plan *plans, int32_t n)
{
    const tn_engine_event *const *events;
    int32_t n_events;
    bool memory = arm(u), device = fake.fail_at > 0, late = fake.n_late > 0;
    tn_status status = tn_engine_step(u->engine, &events, &n_events);
    disarm(u);
    n_failures_all += status != TN_OK;
    n_late_all += late && status == TN_ERR_DEVICE;
    if (status != TN_OK)
        TEST_CHECK((status == TN_ERR_MEMORY && memory) || (status == TN_ERR_DEVICE && (device || late)));
    if (late) fake.n_late = 0;
    // A token whose event came now, and whose pass runs.
    for (int32_t i = 0; i < u->engine->n_continued && u->engine->launched; i++)
        n_ahead_all += n_events > 0 && u->engine->fed[i] != NULL;
    for (int32_t i = 0; i < n_events; i++) {
        plan *p = events[i]->user;
        if (!TEST_CHECK(p >= plans && p < plans + n && p->id == events[i]->id && !p->ended)) continue;
        if (events[i]->status == TN_OK) {
            take_event(plans, n, events[i]);
            continue;
        }
        TEST_CHECK(events[i]->status == TN_ERR_MEMORY && memory && events[i]->message);
        n_memory_all++;
        p->ended = true;
        p->leaves = 0; // as if it had been cancelled: the beginning of its text is right
        p->got_stop = TN_STOP_CANCELLED;
    }
}

static void run_schedule(const setup *u, uint32_t seed)
{
    plan plans[MAX_REQUESTS];
    int32_t n = 1 + below(MAX_REQUESTS), left = n, at = 0, most = 100;
    for (int32_t i = 0; i < n; i++) {
        make_request(&plans[i], u->n_ctx);
        expect(u, &plans[i]);
        most += STEPS_FACTOR * (plans[i].n_prompt + plans[i].max_tokens);
    }
    for (; at < most && left > 0; at++) {
        for (int32_t i = 0; i < n; i++) {
            if (plans[i].arrives == at) arrive(u, &plans[i]);
            if (plans[i].leaves == at) tn_engine_cancel(u->engine, plans[i].id);
        }
        step(u, plans, n);
        tn_engine_stats now = {.struct_size = sizeof now};
        tn_engine_stats_get(u->engine, &now);
        TEST_CHECK(now.n_running >= 0 && now.n_running + now.n_waiting == tn_engine_pending(u->engine));
        left = 0;
        for (int32_t i = 0; i < n; i++) left += !plans[i].ended;
    }
    n_steps_all += at;
    for (int32_t i = 0; i < n; i++) check_plan(&plans[i], i, seed);
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_engine_stats_get(u->engine, &stats);
    bool empty = stats.n_free == stats.n_blocks && stats.n_running == 0 && stats.n_waiting == 0;
    if (!TEST_CHECK(empty && tn_engine_pending(u->engine) == 0)) printf("    schedule %u\n", seed);
}

// Its passes run while the texts of the pass before are made, as on a device that finds the best tokens.
static void make_overlap(tn_engine *e)
{
    tn_session *s = e->session;
    size_t n = (size_t)s->cfg.n_batch;
    e->overlaps = true;
    s->best = tn_calloc(s->ctx, n, sizeof *s->best);
    s->best_logprob = tn_calloc(s->ctx, n, sizeof *s->best_logprob);
    if (!s->best || !s->best_logprob) abort();
}

// One engine and a number of schedules, each of which finds what the ones before have left in the cache.
static void run_engine(tn_model *model, counting *c, uint32_t seed, int32_t n_schedules)
{
    random_state = seed * 2654435761u + 99;
    setup u = {.model = model, .c = c, .n_ctx = 70 + below(200), .has_states = model->config.delta.dim > 0};
    tn_session_config scfg = session_config(u.n_ctx, 1 + below(6)), one = session_config(u.n_ctx, 1);
    scfg.n_batch = scfg.n_seq + below(80);
    scfg.n_ctx_seq = u.n_ctx;
    scfg.n_ctx += below(2) * below(300);
    memset(&fake, 0, sizeof fake);
    fake.pass_ns = 1000000;
    fake.token_ns = (uint64_t)below(300000);
    TEST_CHECK_STATUS(tn_session_create(model, &one, &u.alone), TN_OK);
    tn_engine_config ecfg;
    tn_engine_config_default(&ecfg);
    ecfg.session = &scfg;
    ecfg.prompt_tokens = below(2) * (1 + below(20));
    // From one block of the tiny model to some more than its cache has.
    if (!u.has_states && below(2) != 0) ecfg.host_cache = 40000u * (unsigned)(1 + below(12));
    TEST_CHECK_STATUS(tn_engine_create(model, &ecfg, &u.engine), TN_OK);
    u.engine->session->pads = below(2) != 0;
    if (below(2) != 0) make_overlap(u.engine);
    for (int32_t i = 0; i < n_schedules; i++) run_schedule(&u, seed * PER_ENGINE + (uint32_t)i);
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_engine_stats_get(u.engine, &stats);
    n_hits_all += (long)stats.n_hits;
    n_preempted_all += (long)stats.n_preempted;
    n_loaded_all += (long)stats.n_host_loaded;
    TEST_CHECK((uint64_t)stats.n_host * 16384 <= ecfg.host_cache); // bytes of K and V in a block
    tn_engine_destroy(&u.engine);
    tn_session_destroy(&u.alone);
}

// --- starvation ----------------------------------------------------------------------------------------

static uint64_t submit_plain(tn_engine *e, int32_t n_prompt, int32_t max_tokens, int32_t priority, void *user)
{
    int32_t ids[512];
    uint64_t id = 0;
    tn_generation_config g;
    tn_request_config r;
    for (int32_t i = 0; i < n_prompt; i++) ids[i] = below(FAKE_TOKENS); // no prefix in common
    tn_generation_config_default(&g);
    tn_request_config_default(&r);
    g.max_tokens = max_tokens;
    r.tokens = ids, r.n_tokens = n_prompt, r.generation = &g, r.priority = priority, r.user = user;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
    return id;
}

// More arrives than the engine can do, all of it with a higher priority: a request still ends soon after as
// many others have arrived as its priority is worth.
static void test_starvation(tn_model *model)
{
    enum { PRIORITY = 20, PLACES = 16 * PRIORITY, QUEUE = 40, SLACK = QUEUE + 20 };
    static char low;
    int32_t n_after = 0, ended_after = -1;
    memset(&fake, 0, sizeof fake);
    fake.pass_ns = 1000000;
    tn_session_config scfg = session_config(256, 2);
    tn_engine *e = make_engine(model, &scfg, 0);
    (void)submit_plain(e, 40, 8, PRIORITY, NULL);
    (void)submit_plain(e, 40, 8, PRIORITY, NULL);
    (void)submit_plain(e, 100, 20, 0, &low);
    while (ended_after < 0 && n_after < PLACES + SLACK) {
        const tn_engine_event *const *events;
        int32_t n, n_ended = 0;
        tn_status status = tn_engine_step(e, &events, &n);
        if (!TEST_CHECK_STATUS(status, TN_OK)) break;
        for (int32_t i = 0; i < n; i++) {
            n_ended += events[i]->piece->stop != TN_STOP_NONE;
            if (events[i]->user == &low && events[i]->piece->stop != TN_STOP_NONE) ended_after = n_after;
        }
        // For each that ends two arrive, as long as the queue takes them.
        for (int32_t i = 0; i < 2 * n_ended && tn_engine_pending(e) < QUEUE; i++, n_after++)
            (void)submit_plain(e, 40, 8, PRIORITY, NULL);
    }
    TEST_CHECK(ended_after > 0);
    tn_engine_destroy(&e);
}

// --- gaps ----------------------------------------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Streams continue while a long prompt arrives: the longest gap between two tokens of a stream is at most
// three times their median.
static void test_gaps(tn_model *model, int32_t n_streams, uint64_t token_ns, bool warm)
{
    enum { LONG = 460, SHORT = 10, EACH = 200, MOST = 4 * EACH };
    static char long_prompt, streams[4];
    uint64_t gaps[MOST], last[4] = {0};
    int32_t n_gaps = 0;
    bool started = false;
    memset(&fake, 0, sizeof fake);
    fake.pass_ns = 1000000;
    fake.token_ns = token_ns;
    tn_session_config scfg = session_config(2048, 5);
    scfg.n_ctx_seq = 512, scfg.n_batch = 512;
    tn_engine *e = make_engine(model, &scfg, 0);
    for (int32_t i = 0; i < n_streams; i++) (void)submit_plain(e, SHORT, EACH, 0, &streams[i]);
    for (int32_t k = 0; tn_engine_pending(e) > 0 && k < 5000; k++) {
        const tn_engine_event *const *events;
        int32_t n;
        if (k == (warm ? 60 : 1)) (void)submit_plain(e, LONG, 1, 0, &long_prompt);
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
        for (int32_t i = 0; i < n; i++) {
            started |= events[i]->user == &long_prompt;
            if (events[i]->user == &long_prompt) continue;
            uint64_t *before = &last[(char *)events[i]->user - streams];
            if (*before > 0 && n_gaps < MOST) gaps[n_gaps++] = fake.now_ns - *before;
            *before = fake.now_ns;
        }
    }
    TEST_CHECK(started && n_gaps == n_streams * (EACH - 1));
    qsort(gaps, (size_t)n_gaps, sizeof *gaps, compare);
    if (!TEST_CHECK(gaps[n_gaps - 1] <= 3 * gaps[n_gaps / 2]))
        printf("    %d streams, %llu ns a token: longest gap %llu, median %llu\n", n_streams,
               (unsigned long long)token_ns, (unsigned long long)gaps[n_gaps - 1],
               (unsigned long long)gaps[n_gaps / 2]);
    tn_engine_destroy(&e);
}

// --- load ----------------------------------------------------------------------------------------------

// A prompt arrives for each text that ends, so that there is always one. Tokens of prompts cost little beside
// a pass: most of a prompt has to fit into one, although no pass would be without prompts by itself.
static void test_load(tn_model *model, bool pads)
{
    enum {
        SEQUENCES = 8,
        REQUESTS = 100,
        PROMPT = 100,
        ANSWER = 20,
        STEPS = 2 * REQUESTS * ANSWER / SEQUENCES
    };
    int32_t n_submitted = 0, n_steps = 0;
    memset(&fake, 0, sizeof fake);
    fake.pass_ns = 1000000;
    fake.token_ns = 1000;
    tn_session_config scfg = session_config(2048, SEQUENCES);
    scfg.n_ctx_seq = 256, scfg.n_batch = 256;
    tn_engine *e = make_engine(model, &scfg, 0);
    e->session->pads = pads;
    for (; n_steps < 100 * STEPS; n_steps++) {
        const tn_engine_event *const *events;
        int32_t n;
        while (tn_engine_pending(e) < SEQUENCES && n_submitted < REQUESTS) {
            (void)submit_plain(e, PROMPT, ANSWER, 0, NULL);
            n_submitted++;
        }
        if (tn_engine_pending(e) == 0) break;
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
    }
    if (!TEST_CHECK(n_steps < STEPS)) printf("    %d steps, %d expected at most\n", n_steps, STEPS);
    tn_engine_destroy(&e);
}

// Where a token of a prompt takes a fortieth of a pass, some 80 fit: three times the time of a pass without.
static void test_pieces(tn_model *model)
{
    enum { SEQUENCES = 32, PROMPT = 200, ANSWER = 40, STEPS = 150, LEAST = 48, MOST = 120 };
    int64_t n_fed = 0, n_mixed = 0;
    memset(&fake, 0, sizeof fake);
    fake.pass_ns = 4000000;
    fake.token_ns = 100000;
    fake.plan_ns = 30000000; // of the first pass of a size; it says nothing about the next one
    tn_session_config scfg = session_config(4096, SEQUENCES);
    scfg.n_ctx_seq = 256, scfg.n_batch = 256;
    tn_engine *e = make_engine(model, &scfg, 0);
    e->session->pads = true;
    for (int32_t i = 0; i < STEPS; i++) {
        const tn_engine_event *const *events;
        int32_t n;
        while (tn_engine_pending(e) < SEQUENCES) (void)submit_plain(e, PROMPT, ANSWER, 0, NULL);
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
        if (e->n_continued < SEQUENCES / 4 || e->pass.n_prompt < 16) continue;
        n_fed += e->pass.n_prompt;
        n_mixed++;
    }
    double mean = n_mixed > 0 ? (double)n_fed / (double)n_mixed : 0.0;
    if (!TEST_CHECK(mean > LEAST && mean < MOST)) printf("    %.1f tokens of prompts in a pass\n", mean);
    tn_engine_destroy(&e);
}

int main(int argc, char **argv)
{
    counting c;
    tn_context *ctx = context(&c, 1);
    int32_t n_schedules = argc > 1 ? atoi(argv[1]) : 4000;
    static const int32_t shapes[] = {TINY_LLAMA, TINY_LLAMA, TINY_QWEN35};
    static const uint64_t costs[] = {1000, 20000, 100000, 400000};
    tn_model *models[TN_COUNT(shapes)];
    for (size_t i = 0; i < TN_COUNT(shapes); i++) models[i] = tiny_model_open(ctx, &tiny_shapes[shapes[i]]);
    for (int32_t i = 0; i * PER_ENGINE < n_schedules; i++)
        run_engine(models[i % (int32_t)TN_COUNT(shapes)], &c, (uint32_t)i,
                   TN_MIN(PER_ENGINE, n_schedules - i * PER_ENGINE));
    printf("%d schedules: %ld steps, %ld failed (%ld behind the next one's beginning), %ld times no memory, "
           "%ld prefixes found, %ld preempted, %ld blocks from the host, %ld tokens evaluated ahead\n",
           n_schedules, n_steps_all, n_failures_all, n_late_all, n_memory_all, n_hits_all, n_preempted_all,
           n_loaded_all, n_ahead_all);
    TEST_CHECK(n_failures_all > 0 && n_late_all > 0 && n_ahead_all > 0);
    TEST_CHECK(n_memory_all > 0 && n_hits_all > 0 && n_preempted_all > 0);
    // Not in the smallest runs: every third or so of the engines has host memory.
    TEST_CHECK(n_loaded_all > 0 || n_schedules < 4 * PER_ENGINE);
    test_starvation(models[0]);
    for (size_t i = 0; i < TN_COUNT(costs); i++)
        for (int32_t n = 1; n <= 4; n += 3)
            for (int32_t warm = 0; warm < 2; warm++) test_gaps(models[0], n, costs[i], warm != 0);
    for (int32_t pads = 0; pads < 2; pads++) test_load(models[0], pads != 0);
    test_pieces(models[0]);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) tn_model_unref(&models[i]);
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
    return test_done();
}
