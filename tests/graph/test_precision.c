// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Precision of matrix products: what a plan asks for is what its kernels do, on the CPU; what a device does
// not have is refused. That each kernel keeps the error of its precision is checked by tenon-check.
#include "ops/quant.h"
#include "tests/graph/run_graph.h"

#include <math.h>

enum { M = 20, K = 96, N = 40, W_SIZE = N * K / 32 * 34, TEXT_CAPACITY = 64 };

static tn_context *ctx;
static float x[M][K], w[N][K];
static uint8_t packed[W_SIZE];

static tn_graph *product(void)
{
    tn_graph *g = new_graph(ctx);
    tn_tensor *weights = tn_graph_weight(g, "w", TN_TYPE_Q8_0, SHAPE(N, K));
    tn_tensor *y = tn_op_add(g, tn_op_matmul(g, INPUT("x", M, K), weights), WEIGHT("b", N));
    OUTPUT("y", y); // with the bias it is fused: the precision has to come along
    return g;
}

static float next_value(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (float)(1 << 23) - 1.0f;
}

static void fill(void)
{
    uint32_t seed = 7;
    for (int32_t i = 0; i < M * K; i++) x[i / K][i % K] = next_value(&seed);
    for (int32_t i = 0; i < N * K; i++) w[i / K][i % K] = next_value(&seed);
    for (int32_t r = 0; r < N; r++)
        tn_quant_info_get(TN_TYPE_Q8_0)->from_f32(w[r], packed + r * (W_SIZE / N), K, NULL);
    for (int32_t r = 0; r < N; r++)
        tn_quant_info_get(TN_TYPE_Q8_0)->to_f32(packed + r * (W_SIZE / N), w[r], K);
}

// Against the sums of the given x and the values that the weights stand for; negative after a failure.
static double error_of(int32_t precision, int32_t fusion)
{
    static const float bias[N] = {0};
    float y[M][N];
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.precision = precision;
    cfg.fusion = fusion;
    tn_binding bound[] = {{"w", packed, sizeof packed}, {"b", bias, sizeof bias}},
               in[] = {{"x", x, sizeof x}}, out[] = {{"y", y, sizeof y}};
    tn_graph *g = product();
    tn_status status = run_graph(g, &(run_args){&cfg, bound, 2, in, 1}, out, 1);
    tn_graph_destroy(&g);
    if (!TEST_CHECK_STATUS(status, TN_OK)) return -1.0;
    double wrong = 0.0, all = 0.0;
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            double want = 0.0;
            for (int32_t k = 0; k < K; k++) want += (double)x[i][k] * (double)w[j][k];
            wrong += ((double)y[i][j] - want) * ((double)y[i][j] - want);
            all += want * want;
        }
    return wrong / all;
}

static void check_errors(void)
{
    for (int32_t fusion = 0; fusion < 2; fusion++) {
        double f32 = error_of(TN_PRECISION_f32, fusion), int8 = error_of(TN_PRECISION_int8, fusion);
        TEST_CHECK(f32 >= 0.0 && f32 <= tn_precision_nmse(TN_PRECISION_f32));
        // Rounded, and no more than stated; the CPU does the same when left alone.
        TEST_CHECK(int8 > tn_precision_nmse(TN_PRECISION_f32) &&
                   int8 <= tn_precision_nmse(TN_PRECISION_int8));
        TEST_CHECK(error_of(TN_PRECISION_auto, fusion) == int8);
    }
}

// The plan tells what its products do.
static void check_plan_text(int32_t precision, const char *in, const char *not_in)
{
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.precision = precision;
    tn_graph *g = product();
    tn_plan *plan = NULL;
    if (TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK)) {
        char *text = NULL, line[TEXT_CAPACITY];
        snprintf(line, sizeof line, "precision of matrix products: %s ", tn_precision_name(precision));
        TEST_CHECK_STATUS(tn_plan_dump(plan, TN_PLAN_TEXT, &text), TN_OK);
        TEST_CHECK(text && strstr(text, line) && strstr(text, in) && !strstr(text, not_in));
        tn_text_free(ctx, text);
    }
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
}

static tn_status plan_status(const tn_graph *g, const tn_plan_config *cfg)
{
    tn_plan *plan = NULL;
    tn_status status = tn_plan_create(g, cfg, &plan);
    TEST_CHECK((status == TN_OK) == (plan != NULL));
    tn_plan_unref(&plan);
    return status;
}

static void check_refusals(void)
{
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_graph *g = product();
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++) {
        bool has = i == TN_PRECISION_auto || i == TN_PRECISION_f32 || i == TN_PRECISION_int8;
        cfg.precision = i;
        TEST_CHECK(tn_device_has_precision(tn_context_device_by_name(ctx, "cpu"), i) == has);
        TEST_CHECK_STATUS(plan_status(g, &cfg), has ? TN_OK : TN_ERR_UNSUPPORTED);
        if (has) continue;
        TEST_CHECK(message_has(ctx, tn_precision_name(i)) && message_has(ctx, "cpu has no matrix products") &&
                   message_has(ctx, "auto f32 int8"));
    }
    static const int32_t wrong[] = {-1, TN_PRECISION_COUNT, INT32_MAX};
    for (size_t i = 0; i < TN_COUNT(wrong); i++) {
        cfg.precision = wrong[i];
        TEST_CHECK_STATUS(plan_status(g, &cfg), TN_ERR_ARG);
        TEST_CHECK(tn_device_has_precision(tn_context_device_by_name(ctx, "cpu"), wrong[i]) == 0);
    }
    // Programs built before there was such a field; and graphs without products take any.
    cfg.struct_size = offsetof(tn_plan_config, n_devices);
    TEST_CHECK_STATUS(plan_status(g, &cfg), TN_OK);
    tn_graph_destroy(&g);
    tn_plan_config_default(&cfg);
    cfg.precision = TN_PRECISION_fp8;
    g = new_graph(ctx);
    OUTPUT("y", tn_op_scale(g, INPUT("x", M, K), 2.0f));
    TEST_CHECK_STATUS(plan_status(g, &cfg), TN_OK);
    tn_graph_destroy(&g);
}

static void check_names(void)
{
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++) {
        TEST_CHECK(tn_precision_by_name(tn_precision_name(i)) == i);
        TEST_CHECK(tn_precision_nmse(i) > 0.0 && tn_precision_nmse(i) < 0.01 && tn_precision_text(i)[0] != 0);
    }
    TEST_CHECK(tn_precision_by_name("f64") == -1 && tn_precision_by_name("") == -1);
    TEST_CHECK(strcmp(tn_precision_name(-1), "?") == 0 && tn_precision_nmse(TN_PRECISION_COUNT) == 0.0);
}

int main(void)
{
    fill();
    check_names();
    static const char *const levels[] = {"reference", "generic", NULL};
    for (size_t i = 0; i < TN_COUNT(levels); i++) {
        ctx = graph_context(levels[i], 2);
        if (i > 0) check_errors(); // references round nothing
        check_plan_text(TN_PRECISION_f32, "in f32", "in int8");
        if (i > 0) check_plan_text(TN_PRECISION_int8, "in int8", "in f32");
        check_refusals();
        tn_context_destroy(&ctx);
    }
    return test_done();
}
