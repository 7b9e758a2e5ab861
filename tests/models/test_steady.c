// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine on a device with memory of its own, under a load that changes all the time: when every size of
// passes was seen, no step records, plans or allocates anything.
#include "tests/models/engine_requests.h"
#include "tests/models/far_device.h"

enum { N_SEQ = 4, N_BATCH = 64, N_STEPS = 1000, SAME = 6000, PENDING = 2 * N_SEQ };
// One to 4 sequences; 16, 32, 48 and 64 tokens with 1, 2, 4 and 5 sequences, with and without output rows.
enum { MOST_PLANS = 4 + 4 * 4 * 2 };

static counting count;
static long n_stood_in; // steps that ran in a plan for another size

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
    n_stood_in += e->session->stands_in;
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

// Plans that stand in for a size without one: those with enough tokens, sequences and output rows, of which
// the additional ones have a place, and at most half as many tokens again.
static void test_stand_in(tn_context *ctx)
{
    enum { N_SEQS = 64, BATCH = 256 };
    static const tn_plan_key plans[] = {
        {.n_tokens = 20, .n_seq = 20, .n_outputs = 20},
        {.n_tokens = 24, .n_seq = 24, .n_outputs = 24},
        {.n_tokens = 96, .n_seq = 16, .n_outputs = 16},
        {.n_tokens = 96, .n_seq = 32, .n_outputs = 32},
        {.n_tokens = 128, .n_seq = 32},
        {.n_tokens = 64, .n_seq = 4, .n_outputs = 4, .apart = 1},
    };
    static const struct {
        tn_plan_key step;
        int32_t n_tokens, n_seq, n_outputs;
        bool stands_in;
    } rows[] = {
        {{.n_tokens = 20, .n_seq = 20, .n_outputs = 20}, 20, 20, 20, false}, // its own
        {{.n_tokens = 17, .n_seq = 17, .n_outputs = 17}, 20, 20, 20, false},
        {{.n_tokens = 16, .n_seq = 16, .n_outputs = 16}, 20, 20, 20, true},
        {{.n_tokens = 16, .n_seq = 16, .n_outputs = 16, .uneven = 1}, 20, 20, 20, true},
        {{.n_tokens = 12, .n_seq = 12, .n_outputs = 12}, 12, 12, 12, false}, // 20 are too many
        {{.n_tokens = 25, .n_seq = 25, .n_outputs = 25}, 28, 28, 28, false}, // none is large enough
        {{.n_tokens = 64, .n_seq = 8, .n_outputs = 5}, 96, 16, 16, true},
        {{.n_tokens = 64, .n_seq = 20, .n_outputs = 5}, 96, 32, 32, true},
        {{.n_tokens = 60, .n_seq = 4}, 64, 8, 0, false}, // 128 tokens are too many
        {{.n_tokens = 90, .n_seq = 20}, 128, 32, 0, true},
        {{.n_tokens = 60, .n_seq = 3, .n_outputs = 1}, 96, 16, 16, true}, // not that of small pieces
        {{.n_tokens = 60, .n_seq = 3, .n_outputs = 1, .apart = 1}, 64, 4, 4, false},
        {{.n_tokens = 16, .n_seq = 16, .n_outputs = 16, .adapters = 1}, 16, 16, 16, false},
    };
    static tn_session s;
    static int32_t ints[5][BATCH + 1], table[N_SEQS];
    s.ctx = ctx;
    s.pads = true;
    s.cfg.n_seq = N_SEQS, s.cfg.n_batch = BATCH, s.cfg.n_ctx_seq = 64;
    s.cache.max_blocks = 1;
    static tn_config config;
    static tn_model model;
    model.config = config;
    s.model = &model;
    s.tokens = ints[0], s.positions = ints[1], s.slots = ints[2], s.out_rows = ints[3], s.q_start = ints[4];
    s.kv_len = table, s.table = (int32_t[N_SEQS]){0};
    for (size_t i = 0; i < TN_COUNT(plans); i++) {
        s.slots_of_plans[i].key = plans[i];
        s.slots_of_plans[i].runner = (tn_runner *)(void *)&s; // it is there, and is not used
    }
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_plan_key key = rows[i].step;
        tn_session_pad(&s, &key);
        bool right = key.n_tokens == rows[i].n_tokens && key.n_seq == rows[i].n_seq &&
                     key.n_outputs == rows[i].n_outputs && s.stands_in == rows[i].stands_in &&
                     (s.missing != NULL) == rows[i].stands_in;
        if (!TEST_CHECK(right))
            printf("row %zu: %d tokens, %d sequences, %d outputs, %d\n", i, key.n_tokens, key.n_seq,
                   key.n_outputs, s.stands_in);
    }
}

int main(void)
{
    test_uneven();
    test_apart();
    tn_context *ctx = context(&count, 1);
    test_stand_in(ctx);
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
    for (int32_t same = 0; same < SAME && at < 100000; at++) {
        (void)step(e, at, &n_plans);
        same = n_plans == last ? same + 1 : 0;
        last = n_plans;
    }
    for (int32_t i = 0; i < N_STEPS; i++) calls += step(e, at + i, &n_plans);
    printf(
        "%d steps until all of %llu plans were made, then %ld allocations in %d steps; %ld ran in plans for "
        "other sizes\n",
        at - SAME, (unsigned long long)last, calls, N_STEPS, n_stood_in);
    TEST_CHECK(n_stood_in > 0);
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
