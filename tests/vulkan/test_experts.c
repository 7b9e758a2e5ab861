// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer of experts for one token on a device of Vulkan: norm, sum and gated pair leave int8 activations to
// the products that read them, which need not be the next step, and results are those of the reference. The
// library between the backend and the loader counts dispatches.
#include "tests/vulkan/with_between.h"

enum { WIDTH = 256, HIDDEN = 512, EXPERTS = 6, USED = 3, NEXT = 64 };
// add_rms_norm, router, moe_route, gate and up, down, moe_combine, and the product behind; copies before and
// after. Two more quantise x where subgroups are too small for add_rms_norm and moe_combine to do it.
enum { DISPATCHES = 7 + 2, WITH_SMALL_SUBGROUPS = DISPATCHES + 2 };

static void record(tn_graph *g, tn_dtype type)
{
    tn_tensor *x = tn_op_add(g, INPUT("x", 1, WIDTH), INPUT("more", 1, WIDTH)),
              *norm = tn_op_rms_norm(g, x, WEIGHT("norm", WIDTH), 1e-5f),
              *logits = tn_op_matmul(g, norm, WEIGHT("router", EXPERTS, WIDTH)),
              *ids = tn_op_top_k(g, logits, NULL, &(tn_top_k_params){.k = USED});
    tn_tensor *factors = tn_op_moe_weights(
        g, logits, ids, &(tn_moe_weights_params){.gating = TN_GATING_SOFTMAX, .normalise = 1});
    tn_tensor *rows = tn_op_reshape(g, norm, SHAPE(1, 1, WIDTH));
    tn_tensor *gate =
        tn_op_matmul_id(g, rows, tn_graph_weight(g, "gate", type, SHAPE(EXPERTS, HIDDEN, WIDTH)), ids);
    tn_tensor *up =
        tn_op_matmul_id(g, rows, tn_graph_weight(g, "up", type, SHAPE(EXPERTS, HIDDEN, WIDTH)), ids);
    tn_tensor *h = tn_op_glu(g, gate, up, &(tn_glu_params){.act = TN_UNARY_SILU});
    tn_tensor *down =
        tn_op_matmul_id(g, h, tn_graph_weight(g, "down", type, SHAPE(EXPERTS, WIDTH, HIDDEN)), ids);
    tn_tensor *y = tn_op_add(g, tn_op_moe_sum(g, down, factors), x);
    OUTPUT("y", y);
    OUTPUT("z", tn_op_matmul(g, tn_op_rms_norm(g, y, WEIGHT("next norm", WIDTH), 1e-5f),
                             tn_graph_weight(g, "next", type, SHAPE(NEXT, WIDTH))));
}

// y and z of the reference, or of the device if there is one.
static void run(tn_context *ctx, tn_device *device, tn_dtype type, float *y, float *z)
{
    tn_graph *g = new_graph(ctx);
    record(g, type);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    if (device) cfg.devices = &device, cfg.n_devices = 1;
    const named_values given[] = {{"norm", TN_TYPE_F32, WIDTH},
                                  {"router", TN_TYPE_F32, EXPERTS * WIDTH},
                                  {"gate", type, EXPERTS * HIDDEN * WIDTH},
                                  {"up", type, EXPERTS * HIDDEN * WIDTH},
                                  {"down", type, EXPERTS * HIDDEN * WIDTH},
                                  {"next norm", TN_TYPE_F32, WIDTH},
                                  {"next", type, NEXT * WIDTH},
                                  {"x", TN_TYPE_F32, WIDTH},
                                  {"more", TN_TYPE_F32, WIDTH}};
    enum { N_GIVEN = TN_COUNT(given), N_INPUTS = 2, N_WEIGHTS = N_GIVEN - N_INPUTS };
    tn_binding bound[N_GIVEN];
    bind_values(given, N_GIVEN, bound);
    tn_binding out[] = {{"y", y, WIDTH * sizeof *y}, {"z", z, NEXT * sizeof *z}};
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, bound, N_WEIGHTS, bound + N_WEIGHTS, N_INPUTS}, out, 2),
                      TN_OK);
    free_values(bound, N_GIVEN);
    tn_graph_destroy(&g);
}

static void check(tn_context *host, tn_context *ctx, tn_dtype type)
{
    static float want_y[WIDTH], want_z[NEXT], y[WIDTH], z[NEXT];
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    run(host, NULL, type, want_y, want_z);
    run(ctx, device, type, y, z); // checks kernels
    int64_t before = between->n_dispatches;
    run(ctx, device, type, y, z);
    int64_t n = between->n_dispatches - before;
    bool ok = TEST_CHECK(n == DISPATCHES || n == WITH_SMALL_SUBGROUPS);
#if defined(__x86_64__) && defined(__GNUC__)
    // lavapipe then has subgroups of 8.
    if (__builtin_cpu_supports("avx")) ok &= TEST_CHECK(n == DISPATCHES);
#endif
    // Activations are rounded to 8 bits; z is behind that twice.
    ok &= TEST_CHECK(deviation(y, want_y, WIDTH) < 2e-2);
    ok &= TEST_CHECK(deviation(z, want_z, NEXT) < 3e-2);
    if (!ok)
        printf("    %s: %d dispatches; y %g, z %g\n", tn_dtype_name(type), (int)n,
               deviation(y, want_y, WIDTH), deviation(z, want_z, NEXT));
}

int main(void)
{
    static const tn_dtype types[] = {TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    if (!find_between()) return 1;
    reset();
    tn_context *ctx = context(NULL, false), *host = graph_context("reference", 1);
    if (!TEST_CHECK(ctx != NULL)) return test_done();
    for (size_t i = 0; i < TN_COUNT(types); i++) check(host, ctx, types[i]);
    if (!TEST_CHECK(n_events == 0)) printf("    %s\n", last_text); // no kernel was replaced by another
    tn_context_destroy(&ctx);
    tn_context_destroy(&host);
    return test_done();
}
