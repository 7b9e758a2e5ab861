// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights in e4m3 on the emulated device (backends/cuda/runtime/derived.h): made once where memory allows it,
// at each run where it does not, with the same results; freed with the weights. The gated pair leaves its
// result as rows of the next product either way.
#include "tests/cuda/fake.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

enum {
    M = 70, // a tile and a part of one
    K = 256,
    HIDDEN = 384,
    // Memory for the weights and what they are written through, of which no quarter stays free; and plenty.
    LITTLE = 42 << 20,
    MUCH = 256 << 20,
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

// Runs twice; gives the launches that a run replays.
static int64_t run(size_t memory, float *y)
{
    fake_state *fake = fake_get();
    fake->memory = memory;
    tn_context *ctx = NULL;
    tn_context_config of;
    tn_context_config_default(&of);
    of.backend = "cuda";
    TEST_CHECK_STATUS(tn_context_create(&of, &ctx), TN_OK);
    tn_graph *g = record(ctx);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    cfg.precision = TN_PRECISION_fp8;
    tn_plan *plan = NULL;
    tn_runner *r = NULL;
    const tn_binding weights[] = {
        {"gate", gate, sizeof gate}, {"up", up, sizeof up}, {"down", down, sizeof down}};
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    int64_t before = fake->n_captured;
    TEST_CHECK_STATUS(tn_runner_create(plan, weights, 3, &r), TN_OK);
    int64_t captured = fake->n_captured - before;
    TEST_CHECK_STATUS(tn_runner_write(r, "x", x, sizeof x), TN_OK);
    TEST_CHECK_STATUS(tn_runner_write(r, "residual", residual, sizeof residual), TN_OK);
    for (int32_t i = 0; i < 2; i++) TEST_CHECK_STATUS(tn_runner_run(r), TN_OK);
    TEST_CHECK_STATUS(tn_runner_read(r, "y", y, M * K * sizeof *y), TN_OK);
    tn_runner_destroy(&r);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    TEST_CHECK(fake->n_alive == 0 && fake->used == 0);
    return captured;
}

int main(void)
{
    static float once[M * K], each[M * K];
    fill();
    int64_t kept = run(MUCH, once), made = run(LITTLE, each);
    // A launch for each of the three weights.
    if (!TEST_CHECK(made == kept + 3)) printf("    %d and %d launches\n", (int)kept, (int)made);
    TEST_CHECK(memcmp(once, each, sizeof once) == 0);
    return test_done();
}
