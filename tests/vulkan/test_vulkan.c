// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan backend when its driver fails, miscompiles, is missing or slow: through a library between it and
// the loader.
//     test_vulkan STRIDE   every STRIDE-th call fails; LD_LIBRARY_PATH leads to the libvulkan.so.1 of this
//     folder
#include "tests/vulkan/with_between.h"

#include <unistd.h>

// --- failures ----------------------------------------------------------------------------------------

// One whole life of a context; the status of the first failure, TN_ERR_DEVICE too where the device is not
// there.
static tn_status life(bool again, tn_status *second)
{
    double error;
    tn_context *ctx = context(NULL, false);
    tn_status status = TN_ERR_MEMORY;
    *second = TN_OK;
    if (ctx && !tn_context_device_by_name(ctx, "vulkan")) {
        char text[512] = "";
        tn_context_absent_backends(ctx, text, sizeof text);
        TEST_CHECK(strstr(text, "vulkan: ") != NULL);
        status = TN_ERR_DEVICE;
    } else if (ctx) {
        status = product(ctx, &error);
        TEST_CHECK(status != TN_OK || error < 1e-3);
        if (again) *second = product(ctx, &error);
    }
    tn_context_destroy(&ctx);
    return status;
}

static void every_call_fails(int64_t stride)
{
    tn_status second;
    reset();
    TEST_CHECK_STATUS(life(false, &second), TN_OK);
    TEST_CHECK(between->n_alive == 0);
    int64_t n_calls = between->n_calls, seen = 0;
    TEST_CHECK(n_calls > 25);
    for (int64_t at = 1; at <= n_calls; at += stride, seen++) {
        bool lost = seen % 2 != 0;
        reset();
        between->fail_at = at;
        between->error = lost ? VK_ERROR_DEVICE_LOST : VK_ERROR_OUT_OF_DEVICE_MEMORY;
        between->fail_stays = lost;
        tn_status status = life(true, &second);
        bool here = between->n_alive == 0;
        if (strcmp(between->failed, "CreateInstance") == 0 ||
            strcmp(between->failed, "EnumeratePhysicalDevices") == 0 ||
            strcmp(between->failed, "EnumerateDeviceExtensionProperties") == 0)
            here = here && status == TN_ERR_DEVICE; // absent, with a reason
        else
            // A wait may fail while things are destroyed: then the next call tells.
            here = here && second == (lost ? TN_ERR_DEVICE : TN_OK) &&
                   (status == (lost ? TN_ERR_DEVICE : TN_ERR_MEMORY) ||
                    (status == TN_OK && strcmp(between->failed, "WaitSemaphores") == 0));
        if (!TEST_CHECK(here))
            printf("    call %lld, %s: %s, then %s; %lld objects left\n", (long long)at, between->failed,
                   tn_status_text(status), tn_status_text(second), (long long)between->n_alive);
    }
}

// --- missing -------------------------------------------------------------------------------------------

static void absent(const char *want)
{
    char text[512] = "";
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    TEST_CHECK(!tn_context_device_by_name(ctx, "vulkan"));
    tn_context_absent_backends(ctx, text, sizeof text);
    if (!TEST_CHECK(strstr(text, want) != NULL)) printf("    %s\n", text);
    tn_context_destroy(&ctx);
}

static void nothing_there(const char *self)
{
    reset();
    between->version = VK_API_VERSION_1_1;
    absent("too old");
    reset();
    between->no_devices = true;
    absent("no device");
    // A library that is none, in a process of its own.
    char dir[] = "/tmp/tn-vulkan-XXXXXX", text[600];
    if (!TEST_CHECK(mkdtemp(dir) != NULL)) return;
    snprintf(text, sizeof text, "%s/libvulkan.so.1", dir);
    FILE *f = fopen(text, "w");
    if (TEST_CHECK(f != NULL)) fclose(f);
    snprintf(text, sizeof text, "LD_LIBRARY_PATH=%s '%s' missing", dir, self);
    TEST_CHECK(system(text) == 0);
    snprintf(text, sizeof text, "rm -r %s", dir);
    TEST_CHECK(system(text) == 0);
}

// --- miscompiled kernels ---------------------------------------------------------------------------------

// The type of weights is constant 0 of products; GEMV kernels with subgroups also have constant 4.
static void spoil_subgroups(int32_t *c, uint32_t n)
{
    if (n > 4 && c[4] != 0) c[0] = TN_TYPE_F16;
}

static void spoil_all(int32_t *c, uint32_t n)
{
    if (n > 4) c[0] = TN_TYPE_F16;
}

// GEMM with cooperative matrices has a tile of four hexadecimal digits as constant 2; the tiles of the other
// GEMM kernels have more.
static void spoil_matrices(int32_t *c, uint32_t n)
{
    if (n > 5 && c[2] > 0xfff && c[2] <= 0xffff) c[5] = 1; // as if there were two weights
}

static void quarantine(void)
{
    char dir[] = "/tmp/tn-vulkan-XXXXXX", text[128];
    double error;
    if (!TEST_CHECK(mkdtemp(dir) != NULL)) return;
    int64_t submits[2];
    for (int32_t warm = 0; warm < 2; warm++) { // the second time the verdict comes from the file
        reset();
        if (!warm) between->constants = spoil_subgroups;
        tn_context *ctx = context(dir, false);
        if (!TEST_CHECK(ctx != NULL)) return;
        TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
        TEST_CHECK(error < 1e-3);
        TEST_CHECK(n_events == 2 && last_event == TN_EVENT_KERNEL_REPLACED &&
                   strstr(last_text, "gemv_generic_subgroups"));
        submits[warm] = between->n_submits;
        TEST_CHECK(warm ? n_compiling == 0 && n_compiled == 0 : n_compiling > 0 && n_compiled == 1);
        tn_context_destroy(&ctx);
    }
    TEST_CHECK(submits[1] == submits[0] - 3); // all three kernels were tried once
    reset();
    between->constants = spoil_subgroups;
    tn_context *ctx = context(NULL, true);
    if (TEST_CHECK(ctx != NULL)) TEST_CHECK_STATUS(product(ctx, &error), TN_ERR_UNSUPPORTED);
    tn_context_destroy(&ctx);
    reset();
    between->constants = spoil_all;
    ctx = context(NULL, false);
    if (TEST_CHECK(ctx != NULL)) {
        TEST_CHECK_STATUS(product(ctx, &error), TN_ERR_DEVICE);
        TEST_CHECK(message_has(ctx, "compiles the kernel gemm_tile of matmul wrongly"));
    }
    tn_context_destroy(&ctx);
    reset();
    between->no_subgroups = true;
    between->constants = spoil_subgroups;
    ctx = context(NULL, false);
    if (TEST_CHECK(ctx != NULL)) TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    TEST_CHECK(n_events == 0 && error < 1e-3);
    tn_context_destroy(&ctx);
    snprintf(text, sizeof text, "rm -r %s", dir);
    TEST_CHECK(system(text) == 0);
}

// --- barriers --------------------------------------------------------------------------------------------

// Barriers of a + b where a is exp of x, and b the square of x or, as a chain, of a; *last: of the results.
static int64_t barriers_of(tn_context *ctx, bool chain, float *last)
{
    float x[64], y[64];
    for (int32_t i = 0; i < 64; i++) x[i] = (float)i / 64.0f;
    tn_graph *g = new_graph(ctx);
    tn_tensor *in = INPUT("x", 64), *a = tn_op_unary(g, in, &(tn_unary_params){.kind = TN_UNARY_EXP});
    tn_tensor *b = tn_op_unary(g, chain ? a : in, &(tn_unary_params){.kind = TN_UNARY_SQUARE});
    OUTPUT("y", tn_op_binary(g, TN_BINARY_ADD, a, b));
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    cfg.devices = &device;
    cfg.n_devices = 1;
    tn_binding input = {"x", x, sizeof x}, out = {"y", y, sizeof y};
    int64_t before = between->n_barriers;
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, NULL, 0, &input, 1}, &out, 1), TN_OK);
    tn_graph_destroy(&g);
    *last = y[63];
    return between->n_barriers - before;
}

static void barriers(void)
{
    const float x = 63.0f / 64.0f;
    float y;
    reset();
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    barriers_of(ctx, true, &y); // checks kernels
    int64_t chain = barriers_of(ctx, true, &y);
    TEST_CHECK(fabsf(y - expf(x) - expf(x) * expf(x)) < 1e-3f);
    int64_t beside = barriers_of(ctx, false, &y);
    TEST_CHECK(fabsf(y - expf(x) - x * x) < 1e-3f);
    if (!TEST_CHECK(beside == chain - 1)) printf("    %lld, %lld\n", (long long)chain, (long long)beside);
    tn_context_destroy(&ctx);
}

// --- cooperative matrices ------------------------------------------------------------------------

// A product of many rows at a precision; *error: the largest difference.
static void many_rows(tn_context *ctx, int32_t precision, double *error)
{
    enum { M = 70, N = 150, K = 104 };
    static float x[M][K], w[N][K], y[M][N];
    for (int32_t i = 0; i < M * K; i++) x[i / K][i % K] = (float)(i % 7) - 3.0f;
    for (int32_t i = 0; i < N * K; i++) w[i / K][i % K] = (float)(i % 5) - 1.5f;
    tn_graph *g = new_graph(ctx);
    OUTPUT("y", tn_op_matmul(g, INPUT("x", M, K), WEIGHT("w", N, K)));
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    cfg.devices = &device;
    cfg.n_devices = 1;
    cfg.precision = precision;
    tn_binding weight = {"w", w, sizeof w}, in = {"x", x, sizeof x}, out = {"y", y, sizeof y};
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, &weight, 1, &in, 1}, &out, 1), TN_OK);
    tn_graph_destroy(&g);
    *error = 0.0;
    for (int32_t i = 0; i < M * N; i++) {
        double want = 0.0;
        for (int32_t k = 0; k < K; k++) want += (double)x[i / N][k] * (double)w[i % N][k];
        *error = fmax(*error, fabs(want - (double)y[i / N][i % N]));
    }
}

// A device with cooperative matrices uses them where the precision allows it, and not where they are spoiled.
static void matrices(void)
{
    double error;
    reset();
    between->matrices = true;
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    TEST_CHECK(tn_device_has_precision(device, TN_PRECISION_bf16) &&
               tn_device_has_precision(device, TN_PRECISION_f16));
    many_rows(ctx, TN_PRECISION_auto, &error); // F32 weights are not converted
    TEST_CHECK(error < 1e-3 && between->n_emulated == 0);
    many_rows(ctx, TN_PRECISION_bf16, &error);
    TEST_CHECK(error < 1e-3 && between->n_emulated == 1 && n_events == 0);
    many_rows(ctx, TN_PRECISION_f16, &error);
    TEST_CHECK(error < 1e-3 && between->n_emulated == 2 && n_events == 0);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
    reset();
    between->matrices = true;
    between->constants = spoil_matrices;
    ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    many_rows(ctx, TN_PRECISION_f16, &error);
    TEST_CHECK(error < 1e-3 && n_events == 1 && strstr(last_text, "gemm_coopmat_f16 of matmul"));
    tn_context_destroy(&ctx);
    reset();
}

// An older driver: f16 by VK_NV_cooperative_matrix, bf16 not at all.
static void matrices_nv(void)
{
    double error;
    reset();
    between->matrices = between->matrices_nv = true;
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    TEST_CHECK(!tn_device_has_precision(device, TN_PRECISION_bf16) &&
               tn_device_has_precision(device, TN_PRECISION_f16));
    many_rows(ctx, TN_PRECISION_f16, &error);
    TEST_CHECK(error < 1e-3 && between->n_emulated == 1 && n_events == 0);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
    reset();
}

// --- staged results ---------------------------------------------------------------------------------

// Dispatches of y = w (w x), where w of Q8_0 has 2 on its diagonal and no other values; apart: with a softmax
// between.
static int64_t dispatches_of(tn_context *ctx, bool apart)
{
    enum { N = 64, BLOCK = 34 };
    static uint8_t w[N][N / 32][BLOCK];
    float x[N], y[N];
    memset(w, 0, sizeof w);
    for (int32_t i = 0; i < N; i++) {
        x[i] = (float)(i + 1);
        w[i][i / 32][1] = 0x3c; // scale 1 as f16
        w[i][i / 32][2 + i % 32] = 2;
    }
    tn_graph *g = new_graph(ctx);
    tn_tensor *weight = tn_graph_weight(g, "w", TN_TYPE_Q8_0, SHAPE(N, N));
    tn_tensor *h = tn_op_matmul(g, INPUT("x", 1, N), weight);
    if (apart) h = tn_op_softmax(g, h, NULL, 1.0f);
    OUTPUT("y", tn_op_matmul(g, h, weight));
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    cfg.devices = &device;
    cfg.n_devices = 1;
    tn_binding weights = {"w", w, sizeof w}, input = {"x", x, sizeof x}, out = {"y", y, sizeof y};
    int64_t before = between->n_dispatches;
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, &weights, 1, &input, 1}, &out, 1), TN_OK);
    tn_graph_destroy(&g);
    for (int32_t i = 0; i < N && !apart; i++) TEST_CHECK(fabsf(y[i] - 4.0f * x[i]) < 0.02f * 4.0f * N);
    return between->n_dispatches - before;
}

static void staged(void)
{
    reset();
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    dispatches_of(ctx, true); // checks kernels
    dispatches_of(ctx, false);
    int64_t apart = dispatches_of(ctx, true), together = dispatches_of(ctx, false);
    // One softmax and one quantisation less.
    if (!TEST_CHECK(together == apart - 2)) printf("    %lld, %lld\n", (long long)apart, (long long)together);
    tn_context_destroy(&ctx);
}

// --- cancelling ------------------------------------------------------------------------------------------

static _Atomic int32_t cancel;
static int64_t cancel_at;

static void cancel_later(void)
{
    if (between->n_submits == cancel_at) atomic_store(&cancel, 1);
}

// A chain of products, much work for a processor, is cancelled between two of them.
static void cancelled(void)
{
    enum { N = 384, LAYERS = 5 };
    static float w[N][N];
    reset();
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    tn_graph *g = new_graph(ctx);
    tn_tensor *x = INPUT("x", N, N), *weight = WEIGHT("w", N, N);
    for (int32_t i = 0; i < LAYERS; i++) x = tn_op_matmul(g, x, weight);
    OUTPUT("y", x);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    cfg.devices = &device;
    cfg.n_devices = 1;
    tn_plan *plan = NULL;
    tn_runner *r = NULL;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    TEST_CHECK_STATUS(tn_runner_create(plan, &(tn_binding){"w", w, sizeof w}, 1, &r), TN_OK);
    tn_submit_options options = {.cancel = &cancel};
    atomic_store(&cancel, 0);
    between->submitted = cancel_later;
    cancel_at = between->n_submits + 2;
    TEST_CHECK_STATUS(tn_runner_submit(r, &options), TN_ERR_CANCELLED);
    TEST_CHECK(between->n_submits == cancel_at);
    atomic_store(&cancel, 0);
    cancel_at = -1;
    int64_t before = between->n_submits;
    TEST_CHECK_STATUS(tn_runner_submit(r, &options), TN_OK); // it can be run again
    TEST_CHECK_STATUS(tn_runner_wait(r), TN_OK);
    TEST_CHECK(between->n_submits == before + LAYERS);
    tn_runner_destroy(&r);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
}

// --- clearing ------------------------------------------------------------------------------------------

// Clears runs of a buffer, with one submission where they are whole words, and nothing beside them.
static void cleared(void)
{
    enum { SIZE = 4096, ROWS_CLEARED = 3 };
    static const struct {
        size_t offset, n, pitch;
    } runs[] = {{64, 128, 1024}, {4, 4, 8}, {3, 129, 1000}, {0, SIZE / ROWS_CLEARED, SIZE / ROWS_CLEARED}};
    reset();
    tn_context *ctx = context(NULL, false);
    tn_device *device = ctx ? tn_context_device_by_name(ctx, "vulkan") : NULL;
    tn_buffer b = {0};
    TEST_CHECK(device && tn_buffer_create(device, SIZE, &b) == TN_OK);
    for (size_t i = 0; device && i < TN_COUNT(runs); i++) {
        static unsigned char ones[SIZE], got[SIZE];
        memset(ones, 0xff, sizeof ones);
        TEST_CHECK_STATUS(tn_buffer_write(&b, 0, ones, SIZE), TN_OK);
        int64_t before = between->n_submits;
        TEST_CHECK_STATUS(tn_buffer_zero_rows(&b, runs[i].offset, runs[i].n, runs[i].pitch, ROWS_CLEARED),
                          TN_OK);
        if (i < 2) TEST_CHECK(between->n_submits == before + 1);
        for (size_t r = 0; r < ROWS_CLEARED; r++)
            memset(ones + runs[i].offset + r * runs[i].pitch, 0, runs[i].n);
        TEST_CHECK_STATUS(tn_buffer_read(&b, 0, got, SIZE), TN_OK);
        TEST_CHECK(memcmp(got, ones, SIZE) == 0);
    }
    if (device) tn_buffer_destroy(&b);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "missing") == 0) {
        absent("no Vulkan loader");
        return test_done();
    }
    if (!find_between()) return 1;
    nothing_there(argv[0]);
    quarantine();
    matrices();
    matrices_nv();
    barriers();
    staged();
    cancelled();
    cleared();
    every_call_fails(argc > 1 ? atoi(argv[1]) : 1);
    return test_done();
}
