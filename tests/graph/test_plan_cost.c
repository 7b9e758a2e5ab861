// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Costs and times of the steps of plans: what is a weight, what a cache, what activations; and the profile of
// a runner.
#include "tests/graph/run_graph.h"

#include <string.h>

static tn_context *ctx;

enum { T = 3, K = 64, N = 32, SLOTS = 16 };

// y = relu(x w^T + b), and x into a cache of which each row is a slot.
static tn_plan *make_plan(int32_t fusion)
{
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = fusion;
    TEST_CHECK_STATUS(tn_graph_create(ctx, &g), TN_OK);
    tn_tensor *x = tn_graph_input(g, "x", TN_TYPE_F32, 2, (int64_t[]){T, K});
    tn_tensor *slots = tn_graph_input(g, "slots", TN_TYPE_I32, 1, (int64_t[]){T});
    tn_tensor *w = tn_graph_weight(g, "w", TN_TYPE_F16, 2, (int64_t[]){N, K});
    tn_tensor *b = tn_graph_weight(g, "b", TN_TYPE_F32, 1, (int64_t[]){N});
    tn_tensor *cache = tn_graph_state(g, "cache", TN_TYPE_F16, 4, (int64_t[]){1, 1, SLOTS, K});
    tn_tensor *rows = tn_op_reshape(g, x, 3, (int64_t[]){T, 1, K});
    tn_op_cache_write(g, cache, rows, slots);
    tn_tensor *y = tn_op_add(g, tn_op_matmul(g, x, w), b);
    tn_graph_output(g, "y", tn_op_unary(g, y, &(tn_unary_params){.kind = TN_UNARY_RELU}));
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    tn_graph_destroy(&g);
    return plan;
}

static int32_t find(const tn_plan *plan, const char *op, tn_plan_step_info *out)
{
    *out = (tn_plan_step_info){.struct_size = sizeof *out};
    for (int32_t i = 0; tn_plan_step_get(plan, i, 0, out) == 1; i++)
        if (strcmp(out->op, op) == 0) return i;
    return -1;
}

static void test_operands(void)
{
    tn_plan *plan = make_plan(0);
    tn_plan_step_info s;
    TEST_CHECK(find(plan, "matmul", &s) >= 0);
    TEST_CHECK(s.weights_read == N * K * 2 && s.read == T * K * 4 && s.written == T * N * 4);
    TEST_CHECK(s.cache_read == 0 && s.cache_written == 0);
    TEST_CHECK(s.product_ops == 2.0 * T * N * K && s.ops == 0 && strcmp(s.family, "product") == 0);
    TEST_CHECK(find(plan, "cache_write", &s) >= 0);
    TEST_CHECK(s.cache_written == T * K * 2 && s.cache_read == 0 && s.read == T * K * 4 + T * 4);
    TEST_CHECK(s.weights_read == 0 && s.written == 0);
    TEST_CHECK(find(plan, "binary", &s) >= 0);
    TEST_CHECK(s.weights_read == N * 4 && s.read == T * N * 4 && s.ops == T * N && s.product_ops == 0);
    TEST_CHECK_STATUS(tn_plan_step_get(plan, 0, -1, &s), TN_ERR_ARG);
    TEST_CHECK(tn_plan_step_get(plan, 1000, 0, &s) == 0);
    tn_plan_unref(&plan);
}

static void test_shapes(void)
{
    tn_plan *plan = make_plan(0);
    tn_plan_step_info s;
    int32_t i = find(plan, "matmul", &s);
    const char *want = "F32 [3, 64], F16 [32, 64] -> F32 [3, 32]";
    char text[100], cut[10];
    TEST_CHECK(tn_plan_step_shapes(plan, i, text, sizeof text) == strlen(want) && strcmp(text, want) == 0);
    TEST_CHECK(tn_plan_step_shapes(plan, i, cut, sizeof cut) == strlen(want));
    TEST_CHECK(memcmp(cut, want, 9) == 0 && cut[9] == '\0');
    TEST_CHECK(tn_plan_step_shapes(plan, i, NULL, 0) == strlen(want));
    TEST_CHECK(tn_plan_step_shapes(plan, -1, text, sizeof text) == 0 && text[0] == '\0');
    tn_plan_unref(&plan);
}

// With and without fusion the same weights are read and the same products computed.
static void test_fused(void)
{
    uint64_t weights[2] = {0};
    double products[2] = {0.0};
    for (int32_t fusion = 0; fusion < 2; fusion++) {
        tn_plan *plan = make_plan(fusion);
        tn_plan_step_info s = {.struct_size = sizeof s};
        for (int32_t i = 0; tn_plan_step_get(plan, i, 0, &s) == 1; i++)
            weights[fusion] += s.weights_read, products[fusion] += s.product_ops;
        tn_plan_unref(&plan);
    }
    TEST_CHECK(weights[0] == N * K * 2 + N * 4 && weights[1] == weights[0]);
    TEST_CHECK(products[0] == 2.0 * T * N * K && products[1] == products[0]);
}

static void test_profile(void)
{
    static uint16_t w[N * K], cache[SLOTS * K];
    static float b[N], y[T * N];
    tn_binding bound[] = {{"w", w, sizeof w}, {"b", b, sizeof b}, {"cache", cache, sizeof cache}};
    tn_plan *plan = make_plan(1);
    tn_runner *run = NULL;
    tn_plan_info info = {.struct_size = sizeof info};
    TEST_CHECK_STATUS(tn_plan_info_get(plan, &info), TN_OK);
    if (!TEST_CHECK_STATUS(tn_runner_create(plan, bound, 3, &run), TN_OK)) return;
    TEST_CHECK_STATUS(tn_runner_run(run), TN_OK);
    TEST_CHECK(tn_runner_step_ns(run, 0) == 0); // nobody asked
    TEST_CHECK_STATUS(tn_runner_profile(run, 1), TN_OK);
    uint64_t sum[2] = {0}, allocs = tn_context_n_allocs(ctx);
    for (int i = 0; i < 2; i++) {
        TEST_CHECK_STATUS(tn_runner_run(run), TN_OK);
        for (int32_t k = 0; k < info.n_steps; k++) sum[i] += tn_runner_step_ns(run, k);
    }
    TEST_CHECK(tn_context_n_allocs(ctx) == allocs);
    TEST_CHECK(sum[0] > 0 && sum[1] > sum[0]); // times add up
    TEST_CHECK(tn_runner_step_ns(run, info.n_steps) == 0 && tn_runner_step_ns(run, -1) == 0);
    TEST_CHECK_STATUS(tn_runner_profile(run, 0), TN_OK);
    TEST_CHECK_STATUS(tn_runner_run(run), TN_OK);
    TEST_CHECK(tn_runner_step_ns(run, 0) == 0);
    TEST_CHECK_STATUS(tn_runner_read(run, "y", y, sizeof y), TN_OK);
    tn_runner_destroy(&run);
    tn_plan_unref(&plan);
}

// Pictures of a graph that is no model: the recorded ops and the fused step, the weights by their names,
// axes.
static void test_drawn(void)
{
    static const struct {
        int32_t format;
        const char *wanted[4];
    } forms[] = {
        {TN_PLAN_SVG, {"<svg", "bytes of the arena", "cache_write", "linear"}},
        {TN_PLAN_DOT, {"cluster_recorded", "cluster_plan", "matmul", "linear"}},
        {TN_PLAN_JSON, {"\"steps\"", "\"operations\"", "\"bytes\"", "linear"}},
        {TN_PLAN_TEXT, {"matmul", "cache_write", "linear", "arena"}},
    };
    tn_plan *plan = make_plan(1);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *text = NULL;
        if (!TEST_CHECK_STATUS(tn_plan_dump(plan, forms[i].format, &text), TN_OK)) continue;
        for (int k = 0; k < 4; k++)
            if (!TEST_CHECK(strstr(text, forms[i].wanted[k]) != NULL))
                printf("    format %d: no '%s'\n", forms[i].format, forms[i].wanted[k]);
        tn_text_free(ctx, text);
    }
    tn_plan_unref(&plan);
}

int main(void)
{
    if (tn_context_create(NULL, &ctx) != TN_OK) return 1;
    test_operands();
    test_shapes();
    test_fused();
    test_profile();
    test_drawn();
    tn_context_destroy(&ctx);
    return test_done();
}
