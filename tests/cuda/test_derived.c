// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights in e4m3 on the emulated device (backends/cuda/runtime/derived.h): made once where memory allows it,
// at each run where it does not, which an event says, with the same results; shared by all sessions of a
// model and freed with its weights. They take what plans and predictions say. The gated pair leaves its
// result as rows of the next product either way.
#include "graph/graph.h"
#include "tests/cuda/fake.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/session.h>

enum {
    M = 70, // a tile and a part of one
    K = 256,
    HIDDEN = 384,
    // Memory for the weights and what they are written through, of which no quarter stays free; and plenty,
    // for a model with a session too (models/run/fit.c).
    LITTLE = 42 << 20,
    MUCH = 1 << 30,
};

static float x[M * K], residual[M * K];
static uint16_t gate[HIDDEN * K], up[HIDDEN * K], down[K * HIDDEN];

static float next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static void fill(void)
{
    uint32_t state = 1;
    uint16_t *const weights[] = {gate, up, down};
    for (size_t i = 0; i < M * K; i++) x[i] = next(&state), residual[i] = next(&state);
    for (size_t w = 0; w < 3; w++)
        for (size_t i = 0; i < HIDDEN * K; i++) {
            float v = next(&state);
            uint32_t bits;
            memcpy(&bits, &v, sizeof bits);
            weights[w][i] = (uint16_t)(bits >> 16); // bf16
        }
}

static tn_graph *record(tn_context *ctx)
{
    tn_graph *g = NULL;
    TEST_CHECK_STATUS(tn_graph_create(ctx, &g), TN_OK);
    const int64_t rows[] = {M, K}, in[] = {HIDDEN, K}, out[] = {K, HIDDEN};
    tn_tensor *a = tn_graph_input(g, "x", TN_TYPE_F32, 2, rows);
    tn_tensor *b = tn_op_matmul(g, a, tn_graph_weight(g, "gate", TN_TYPE_BF16, 2, in));
    tn_tensor *c = tn_op_matmul(g, a, tn_graph_weight(g, "up", TN_TYPE_BF16, 2, in));
    tn_tensor *h = tn_op_glu(g, b, c, &(tn_glu_params){.act = TN_UNARY_SILU});
    tn_tensor *y = tn_op_matmul(g, h, tn_graph_weight(g, "down", TN_TYPE_BF16, 2, out));
    tn_graph_output(g, "y", tn_op_add(g, y, tn_graph_input(g, "residual", TN_TYPE_F32, 2, rows)));
    return g;
}

static int n_events; // TN_EVENT_WEIGHTS_CONVERTED

static void count_event(void *user, int32_t code, const char *text)
{
    (void)user;
    (void)text;
    n_events += code == TN_EVENT_WEIGHTS_CONVERTED;
}

static tn_context *open_context(size_t memory, bool strict)
{
    tn_context *ctx = NULL;
    tn_context_config of;
    tn_context_config_default(&of);
    of.backend = "cuda";
    of.event = count_event;
    of.strict = strict;
    fake_get()->memory = memory;
    n_events = 0;
    TEST_CHECK_STATUS(tn_context_create(&of, &ctx), TN_OK);
    return ctx;
}

static tn_plan *make_plan(tn_context *ctx)
{
    tn_graph *g = record(ctx);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    cfg.precision = TN_PRECISION_fp8;
    tn_plan *plan = NULL;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    tn_graph_destroy(&g);
    return plan;
}

static tn_status make_runner(tn_plan *plan, tn_runner **out)
{
    const tn_binding weights[] = {
        {"gate", gate, sizeof gate}, {"up", up, sizeof up}, {"down", down, sizeof down}};
    return tn_runner_create(plan, weights, 3, out);
}

// What a runner takes: launches that a run replays, and bytes of the device.
typedef struct cost {
    int64_t launches;
    size_t memory;
} cost;

// Runs twice; `planned` becomes what the plan said.
static cost run(size_t memory, float *y, cost *planned)
{
    fake_state *fake = fake_get();
    tn_context *ctx = open_context(memory, false);
    tn_plan *plan = make_plan(ctx);
    *planned = (cost){plan->info.n_launches, plan->derived_size[0]};
    tn_runner *r = NULL;
    int64_t before = fake->n_captured;
    TEST_CHECK_STATUS(make_runner(plan, &r), TN_OK);
    cost c = {fake->n_captured - before, fake->used};
    TEST_CHECK_STATUS(tn_runner_write(r, "x", x, sizeof x), TN_OK);
    TEST_CHECK_STATUS(tn_runner_write(r, "residual", residual, sizeof residual), TN_OK);
    for (int32_t i = 0; i < 2; i++) TEST_CHECK_STATUS(tn_runner_run(r), TN_OK);
    TEST_CHECK_STATUS(tn_runner_read(r, "y", y, M * K * sizeof *y), TN_OK);
    tn_runner_destroy(&r);
    tn_plan_unref(&plan);
    tn_context_destroy(&ctx);
    TEST_CHECK(fake->n_alive == 0 && fake->used == 0);
    return c;
}

static void test_memory(void)
{
    static float once[M * K], each[M * K];
    cost planned;
    cost kept = run(MUCH, once, &planned);
    TEST_CHECK(n_events == 0);
    cost made = run(LITTLE, each, &planned);
    TEST_CHECK(n_events == 1);
    // A launch for each of the three weights.
    if (!TEST_CHECK(made.launches == kept.launches + 3 && kept.launches == planned.launches))
        printf("    %d and %d launches, %d planned\n", (int)kept.launches, (int)made.launches,
               (int)planned.launches);
    // A byte for a value, and four for the scale of a row.
    TEST_CHECK(planned.memory == 3 * HIDDEN * K + (2 * HIDDEN + K) * 4);
    TEST_CHECK(kept.memory == made.memory + planned.memory);
    TEST_CHECK(memcmp(once, each, sizeof once) == 0);
}

// In a strict context weights that are made again are an error.
static void test_strict(void)
{
    tn_context *ctx = open_context(LITTLE, true);
    tn_plan *plan = make_plan(ctx);
    tn_runner *r = NULL;
    TEST_CHECK_STATUS(make_runner(plan, &r), TN_ERR_UNSUPPORTED);
    TEST_CHECK(!r);
    tn_plan_unref(&plan);
    tn_context_destroy(&ctx);
    TEST_CHECK(fake_get()->n_alive == 0 && fake_get()->used == 0);
}

// Any call of the driver may fail while weights are made: nothing is leaked, and the runner is not made.
static void test_failures(void)
{
    fake_state *fake = fake_get();
    int64_t last = 0;
    for (int64_t call = 1; call <= last || last == 0; call++) {
        tn_context *ctx = open_context(MUCH, false);
        tn_plan *plan = make_plan(ctx);
        tn_runner *r = NULL;
        int64_t before = fake->n_calls;
        if (last > 0) fake->fail_at = before + call, fake->error = CUDA_ERROR_OUT_OF_MEMORY;
        tn_status status = make_runner(plan, &r);
        fake->fail_at = 0;
        if (last == 0) last = fake->n_calls - before, call = 0;
        TEST_CHECK((status == TN_OK) == (r != NULL));
        tn_runner_destroy(&r);
        tn_plan_unref(&plan);
        tn_context_destroy(&ctx);
        if (!TEST_CHECK(fake->n_alive == 0 && fake->used == 0)) printf("    call %d\n", (int)call);
    }
}

// The second session of a model makes no weights, and the end of a session frees none.
static void test_sessions(void)
{
    fake_state *fake = fake_get();
    tn_context *ctx = open_context(MUCH, false);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 128;
    tn_session_memory plain = {.struct_size = sizeof plain}, fp8 = {.struct_size = sizeof fp8};
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &plain), TN_OK);
    cfg.precision = TN_PRECISION_fp8;
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &fp8), TN_OK);
    size_t derived = (size_t)(fp8.devices[0].weights - plain.devices[0].weights);
    tn_session *s[2] = {NULL, NULL};
    size_t used[3] = {fake->used, 0, 0};
    for (int32_t i = 0; i < 2; i++) {
        TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s[i]), TN_OK);
        used[i + 1] = fake->used;
    }
    size_t first = used[1] - used[0], second = used[2] - used[1];
    if (!TEST_CHECK(derived > 0 && first == second + derived))
        printf("    sessions of %zu and %zu bytes, %zu predicted for weights\n", first, second, derived);
    tn_session_destroy(&s[0]);
    TEST_CHECK(fake->used == used[1]);
    tn_session_destroy(&s[1]);
    TEST_CHECK(fake->used == used[0] + derived);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    TEST_CHECK(fake->n_alive == 0 && fake->used == 0);
}

int main(void)
{
    fill();
    test_memory();
    test_strict();
    test_failures();
    test_sessions();
    return test_done();
}
