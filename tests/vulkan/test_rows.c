// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The products of a dense layer with several rows on a device of Vulkan: gate and up, down with a residual,
// and a product behind the next norm, which leave int8 activations to each other. Results are those of the
// reference. With an argument all of 1 to 8 rows and more types, for which drivers compile many pipelines.
#include "tests/vulkan/with_between.h"

enum { WIDTH = 512, HIDDEN = 768, NEXT = 96, MAX_ROWS = 8, QUICK_TYPES = 2 };

static void record(tn_graph *g, tn_dtype type, int64_t rows)
{
    tn_tensor *x = INPUT("x", rows, WIDTH), *norm = tn_op_rms_norm(g, x, WEIGHT("norm", WIDTH), 1e-5f);
    tn_tensor *gate = tn_op_matmul(g, norm, tn_graph_weight(g, "gate", type, SHAPE(HIDDEN, WIDTH)));
    tn_tensor *up = tn_op_matmul(g, norm, tn_graph_weight(g, "up", type, SHAPE(HIDDEN, WIDTH)));
    tn_tensor *h = tn_op_glu(g, gate, up, &(tn_glu_params){.act = TN_UNARY_SILU});
    tn_tensor *y =
        tn_op_add(g, tn_op_matmul(g, h, tn_graph_weight(g, "down", type, SHAPE(WIDTH, HIDDEN))), x);
    OUTPUT("y", y);
    OUTPUT("z", tn_op_matmul(g, tn_op_rms_norm(g, y, WEIGHT("next norm", WIDTH), 1e-5f),
                             tn_graph_weight(g, "next", type, SHAPE(NEXT, WIDTH))));
}

// y and z of the reference, or of the device if there is one.
static void run(tn_context *ctx, tn_device *device, tn_dtype type, int64_t rows, float *y, float *z)
{
    tn_graph *g = new_graph(ctx);
    record(g, type, rows);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    if (device) cfg.devices = &device, cfg.n_devices = 1;
    const named_values given[] = {{"norm", TN_TYPE_F32, WIDTH},
                                  {"gate", type, HIDDEN * WIDTH},
                                  {"up", type, HIDDEN * WIDTH},
                                  {"down", type, HIDDEN * WIDTH},
                                  {"next norm", TN_TYPE_F32, WIDTH},
                                  {"next", type, NEXT * WIDTH},
                                  {"x", TN_TYPE_F32, (size_t)rows * WIDTH}};
    enum { N_GIVEN = TN_COUNT(given), N_INPUTS = 1, N_WEIGHTS = N_GIVEN - N_INPUTS };
    tn_binding bound[N_GIVEN];
    bind_values(given, N_GIVEN, bound);
    tn_binding out[] = {{"y", y, (size_t)rows * WIDTH * sizeof *y},
                        {"z", z, (size_t)rows * NEXT * sizeof *z}};
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, bound, N_WEIGHTS, bound + N_WEIGHTS, N_INPUTS}, out, 2),
                      TN_OK);
    free_values(bound, N_GIVEN);
    tn_graph_destroy(&g);
}

static void check(tn_context *host, tn_context *ctx, tn_dtype type, int64_t rows)
{
    static float want_y[MAX_ROWS * WIDTH], want_z[MAX_ROWS * NEXT], y[MAX_ROWS * WIDTH], z[MAX_ROWS * NEXT];
    run(host, NULL, type, rows, want_y, want_z);
    run(ctx, tn_context_device_by_name(ctx, "vulkan"), type, rows, y, z);
    // Activations are rounded to 8 bits; z is behind that twice.
    double far_y = deviation(y, want_y, (size_t)rows * WIDTH),
           far_z = deviation(z, want_z, (size_t)rows * NEXT);
    bool ok = TEST_CHECK(far_y < 2e-2);
    ok &= TEST_CHECK(far_z < 3e-2);
    if (!ok) printf("    %s, %d rows: y %g, z %g\n", tn_dtype_name(type), (int)rows, far_y, far_z);
}

int main(int argc, char **argv)
{
    TN_UNUSED(argv);
    bool all = argc > 1;
    static const tn_dtype types[] = {TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_TYPE_Q5_K, TN_TYPE_Q8_0, TN_TYPE_BF16};
    if (!find_between()) return 1;
    reset();
    tn_context *ctx = context(NULL, false), *host = graph_context("reference", 1);
    if (!TEST_CHECK(ctx != NULL)) return test_done();
    for (size_t i = 0; i < (all ? TN_COUNT(types) : QUICK_TYPES); i++)
        for (int64_t rows = 1; rows <= MAX_ROWS; rows++)
            if (all || rows == 1 || rows == 3 || rows == MAX_ROWS) check(host, ctx, types[i], rows);
    if (!TEST_CHECK(n_events == 0)) printf("    %s\n", last_text); // no kernel was replaced by another
    tn_context_destroy(&ctx);
    tn_context_destroy(&host);
    return test_done();
}
