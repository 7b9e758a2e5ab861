// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine on a device with memory of its own, under a load that changes all the time: when every size of
// passes was seen, no step records, plans or allocates anything.
#include "tests/models/engine_requests.h"
#include "tests/models/far_device.h"

enum { N_SEQ = 6, N_BATCH = 96, N_STEPS = 1000, SAME = 4000, PENDING = 2 * N_SEQ };
// One to 6 sequences; 16, 32, 48, 64 and 96 tokens with 1, 2, 4 and 7 sequences, with and without output
// rows.
enum { MOST_PLANS = 6 + 5 * 4 * 2 };

static counting count;

static tn_model *open_far(tn_context *ctx)
{
    size_t size;
    tn_model *model = NULL;
    tn_model_config cfg;
    tiny_file *f = malloc(sizeof *f);
    if (!f) abort();
    tn_model_config_default(&cfg);
    cfg.device = far_add(ctx, (size_t)1 << 28);
    cfg.device_layers = tiny_shapes[TINY_LLAMA].n_layers;
    tiny_describe(&tiny_shapes[TINY_LLAMA], f);
    void *data = tiny_write(ctx, f, &size);
    free(f);
    tiny_must(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model));
    return model;
}

// A load that rises and falls, so that passes have all numbers of sequences.
static void submit_some(tn_engine *e, int32_t at)
{
    while (tn_engine_pending(e) < 1 + at / 8 % PENDING && below(3) > 0) {
        int32_t ids[200], n = 1 + below(below(3) == 0 ? 200 : 40);
        uint64_t id;
        tn_generation_config g;
        tn_sampling sampling;
        tn_request_config r;
        for (int32_t i = 0; i < n; i++) ids[i] = below(250);
        tn_generation_config_default(&g);
        tn_sampling_default(&sampling);
        tn_request_config_default(&r);
        g.sampling = &sampling;
        g.max_tokens = 1 + below(30);
        sampling.temperature = (float)below(2);
        r.tokens = ids, r.n_tokens = n, r.generation = &g;
        TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
        if (below(8) == 0) tn_engine_cancel(e, id);
    }
}

// Allocations in one step, and how many plans there are then. Only a step that makes a plan may allocate.
static long step(tn_engine *e, int32_t at, uint64_t *n_plans)
{
    const tn_engine_event *const *events;
    int32_t n;
    tn_engine_stats stats = {.struct_size = sizeof stats};
    submit_some(e, at);
    long before = count.calls;
    TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK);
    long calls = count.calls - before;
    tn_engine_stats_get(e, &stats);
    TEST_CHECK(calls == 0 || stats.n_plans > *n_plans);
    *n_plans = stats.n_plans;
    return calls;
}

// Plans for sequences of which some are much longer than the mean are others: not for few sequences, for
// pieces of prompts, or for short ones, and not where the processor computes.
static void test_uneven(void)
{
    enum { N = 16 };
    static const struct {
        int32_t n_seq, n_tokens, usual, longest;
        bool device;
        uint32_t uneven;
    } rows[] = {{N, N, 300, 300, true, 0},      {N, N, 300, 4000, true, 1}, {8, 8, 100, 257, true, 1},
                {8, 8, 100, 256, true, 0},      {8, 8, 200, 390, true, 0},  {7, 7, 100, 4000, true, 0},
                {N, N + 1, 300, 4000, true, 0}, {N, N, 300, 4000, false, 0}};
    static tn_session s;
    int32_t len[N], start[N + 1] = {0};
    s.kv_len = len, s.q_start = start;
    for (int32_t k = 0; k <= N; k++) start[k] = k == N ? N + 1 : k; // where there is a token more
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_plan_key key = {.n_tokens = rows[i].n_tokens, .n_seq = rows[i].n_seq};
        for (int32_t k = 0; k < N; k++) len[k] = k == 5 ? rows[i].longest : rows[i].usual;
        s.setup.best = rows[i].device;
        tn_session_complete_key(&s, &key);
        if (!TEST_CHECK(key.uneven == rows[i].uneven)) printf("row %zu\n", i);
    }
}

// Plans for pieces of prompts that are small and see few keys are others, too.
static void test_apart(void)
{
    enum { N = 4 };
    static const struct {
        int32_t piece, keys; // of the third sequence
        bool device;
        uint32_t apart;
    } rows[] = {{8, 8, true, 1},     {8, 8, false, 0},    {1, 4000, true, 0},  {2, 4000, true, 1},
                {129, 129, true, 1}, {130, 130, true, 0}, {100, 249, true, 1}, {100, 250, true, 0},
                {10, 2004, true, 1}, {10, 2005, true, 0}};
    static tn_session s;
    int32_t len[N], start[N + 1] = {0};
    s.kv_len = len, s.q_start = start;
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        for (int32_t k = 0; k < N; k++) {
            len[k] = k == 2 ? rows[i].keys : 5000;
            start[k + 1] = start[k] + (k == 2 ? rows[i].piece : 1);
        }
        tn_plan_key key = {.n_tokens = start[N], .n_seq = N};
        s.setup.best = rows[i].device;
        tn_session_complete_key(&s, &key);
        if (!TEST_CHECK(key.apart == rows[i].apart)) printf("row %zu\n", i);
    }
}

// Plans for single tokens of many sequences beside pieces of prompts are others as well.
static void test_mixed(void)
{
    enum { N = 44 };
    static const struct {
        int32_t pieces, tokens; // sequences with so many tokens; the others have one
        bool device;
        uint32_t mixed;
    } rows[] = {{1, 300, true, 1},  {1, 300, false, 0}, {11, 200, true, 1},
                {12, 200, true, 0}, {0, 1, true, 0},    {1, 20, true, 0}};
    static tn_session s;
    int32_t len[N], start[N + 1] = {0};
    s.kv_len = len, s.q_start = start;
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        for (int32_t k = 0; k < N; k++) {
            len[k] = 500;
            start[k + 1] = start[k] + (k < rows[i].pieces ? rows[i].tokens : 1);
        }
        tn_plan_key key = {.n_tokens = start[N], .n_seq = N};
        s.setup.best = rows[i].device;
        tn_session_complete_key(&s, &key);
        if (!TEST_CHECK(key.mixed == rows[i].mixed)) printf("row %zu\n", i);
    }
}

int main(void)
{
    test_uneven();
    test_apart();
    test_mixed();
    tn_context *ctx = context(&count, 1);
    tn_model *model = open_far(ctx);
    tn_session_config scfg = session_config(1024, N_SEQ);
    scfg.n_ctx_seq = 256, scfg.n_batch = N_BATCH;
    tn_engine *e = make_engine(model, &scfg, 32); // by the clock, passes would differ from run to run
    TEST_CHECK(e->session->pads && e->n_seq == N_SEQ);
    uint64_t n_plans = 0, last = 0;
    long calls = 0;
    random_state = 5;
    int32_t at = 0;
    // The sizes come by and by: as long as there are new ones.
    for (int32_t same = 0; same < SAME && at < 20000; at++) {
        (void)step(e, at, &n_plans);
        same = n_plans == last ? same + 1 : 0;
        last = n_plans;
    }
    for (int32_t i = 0; i < N_STEPS; i++) calls += step(e, at + i, &n_plans);
    printf("%d steps until all of %llu plans were made, then %ld allocations in %d steps\n", at - SAME,
           (unsigned long long)last, calls, N_STEPS);
    TEST_CHECK(n_plans == last && last < MOST_PLANS);
    TEST_CHECK(calls == 0);
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_engine_stats_get(e, &stats);
    TEST_CHECK(stats.n_sampled > 0); // on the device, by plans of their own
    tn_engine_destroy(&e);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
