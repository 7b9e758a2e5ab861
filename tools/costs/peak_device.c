// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Peaks of devices that are no processor: what their fastest kernels reach on long rows and large matmuls,
// run as graphs of one op. Problems grow until one takes long enough, or until the largest. These are roofs
// in practice; what the maker promises for a device may be higher.
#include "tools/costs/peak.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

enum { RUNS = 6, WIDTH = 8192, LONG_NS = 20000000 };

typedef struct problem {
    tn_dtype type;   // of the weight, WIDTH or k wide
    int64_t m, n, k; // m 0: y = 2 w + 1 instead of a product
    int32_t precision;
} problem;

// Values of a sort that occurs in models: zeros would cost a device less energy, and so be faster.
static void fill(uint8_t *bytes, size_t n, tn_dtype type)
{
    uint32_t x = 1;
    for (size_t i = 0; i + 4 <= n; i += 4) {
        x = x * 1664525u + 1013904223u;
        uint32_t v = x;
        if (type == TN_TYPE_F32) v = (x & 0x807fffffu) | 0x3d000000u; // 0.03 to 0.06, with either sign
        if (type == TN_TYPE_BF16) v = (x & 0x807f807fu) | 0x3d003d00u;
        if (type == TN_TYPE_F16) v = (x & 0x83ff83ffu) | 0x28002800u;
        memcpy(bytes + i, &v, 4);
    }
    static const uint8_t scale[2] = {0x00, 0x1c}; // 2^-8 as f16
    for (size_t i = 0; type == TN_TYPE_Q8_0 && i + 34 <= n; i += 34) memcpy(bytes + i, scale, 2);
}

static tn_status record(tn_graph *g, const problem *p)
{
    tn_tensor *w = tn_graph_weight(g, "w", p->type, 2, (int64_t[]){p->n, p->k}), *y;
    if (p->m == 0) {
        y = tn_op_unary(g, w, &(tn_unary_params){TN_UNARY_AFFINE, 2.0f, 1.0f});
    } else {
        tn_tensor *x = tn_graph_weight(g, "x", TN_TYPE_F32, 2, (int64_t[]){p->m, p->k});
        y = tn_op_matmul(g, x, w);
    }
    tn_graph_output(g, "y", y);
    return tn_graph_status(g);
}

// Step 0 of a plan: the fastest of several runs, in nanoseconds; 0 on failure.
static uint64_t time_plan(tn_plan *plan, const problem *p)
{
    size_t n_w = tn_dtype_row_size(p->type, p->k) * (size_t)p->n, n_x = (size_t)(p->m * p->k) * 4;
    uint8_t *w = malloc(n_w), *x = malloc(n_x + 1);
    tn_runner *run = NULL;
    uint64_t best = 0;
    tn_status status = w && x ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        fill(w, n_w, p->type);
        fill(x, n_x, TN_TYPE_F32);
        tn_binding bound[] = {{"w", w, n_w}, {"x", x, n_x}};
        status = tn_runner_create(plan, bound, p->m > 0 ? 2 : 1, &run);
    }
    for (int i = -1; i < RUNS && status == TN_OK; i++) { // -1: warms up
        status = tn_runner_profile(run, 1);
        if (status == TN_OK) status = tn_runner_run(run);
        uint64_t ns = tn_runner_step_ns(run, 0);
        if (ns > 0 && (best == 0 || ns < best)) best = ns;
        if (ns > LONG_NS && i >= 1) break; // long enough to be steady
    }
    tn_runner_destroy(&run);
    free(w);
    free(x);
    return status == TN_OK ? best : 0;
}

static uint64_t time_problem(const tool *t, tn_device *device, const problem *p, tn_plan_step_info *info)
{
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = &device;
    cfg.n_devices = 1;
    cfg.precision = p->precision;
    cfg.fallback = TN_FALLBACK_ERROR;
    uint64_t ns = 0;
    tn_status status = tn_graph_create(t->ctx, &g);
    if (status == TN_OK) status = record(g, p);
    if (status == TN_OK) status = tn_plan_create(g, &cfg, &plan);
    *info = (tn_plan_step_info){.struct_size = sizeof *info};
    if (status == TN_OK && tn_plan_step_get(plan, 0, 0, info) == 1) ns = time_plan(plan, p);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    return ns;
}

// A row of a weight times a vector reads the weight; y = 2 w + 1 reads and writes.
static double measure_memory(const tool *t, tn_device *device, tn_dtype type, int64_t m)
{
    double rate = 0; // of the largest problem: small ones lie in a cache of the device
    for (int64_t n = 1024; n <= 65536; n *= 2) {
        problem p = {type, m, n, WIDTH, TN_PRECISION_auto};
        tn_plan_step_info s;
        uint64_t ns = time_problem(t, device, &p, &s);
        if (ns == 0) break;
        rate = (double)(s.weights_read + s.read + s.written) * 1e9 / (double)ns;
        if (ns > LONG_NS) break;
    }
    return rate;
}

// The rate goes to the precision in which the selected kernel multiplies.
static void measure_matmuls(const tool *t, tn_device *device, int32_t precision, tn_dtype type, peaks *out)
{
    for (int64_t n = 256; n <= WIDTH; n *= 2) {
        problem p = {type, n, n, n, precision};
        tn_plan_step_info s;
        uint64_t ns = time_problem(t, device, &p, &s);
        if (ns == 0) return;
        double rate = s.product_ops * 1e9 / (double)ns;
        if (rate > out->rate[s.precision]) out->rate[s.precision] = rate;
        if (ns > LONG_NS) return;
    }
}

bool peaks_measure_device(const tool *t, tn_device *device, peaks *out)
{
    static const struct {
        int32_t precision;
        tn_dtype type;
    } matmuls[] = {
        {TN_PRECISION_f32, TN_TYPE_F32},   {TN_PRECISION_tf32, TN_TYPE_F32},
        {TN_PRECISION_bf16, TN_TYPE_BF16}, {TN_PRECISION_f16, TN_TYPE_F16},
        {TN_PRECISION_fp8, TN_TYPE_BF16},  {TN_PRECISION_int8, TN_TYPE_Q8_0},
        {TN_PRECISION_auto, TN_TYPE_BF16}, {TN_PRECISION_auto, TN_TYPE_Q8_0},
    };
    double bf16 = measure_memory(t, device, TN_TYPE_BF16, 1), q8 = measure_memory(t, device, TN_TYPE_Q8_0, 1);
    *out = (peaks){.read = bf16 > q8 ? bf16 : q8};
    if (out->read == 0) return false;
    out->copy = measure_memory(t, device, TN_TYPE_F32, 0);
    for (size_t i = 0; i < sizeof matmuls / sizeof *matmuls; i++)
        if (tn_device_has_precision(device, matmuls[i].precision))
            measure_matmuls(t, device, matmuls[i].precision, matmuls[i].type, out);
    return peaks_rate(out, TN_PRECISION_f32) > 0;
}
