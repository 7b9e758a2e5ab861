// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which kernels quantise or round the activations of a matrix product, and to what: the interface of backends
// does not say that. A backend with such kernels has a row here.
#include "backends/cpu/kernel.h"
#include "backends/cpu/product.h"
#if TN_HAVE_CUDA
#include "backends/cuda/kernels.h"
#include "backends/cuda/product/gemm/gemm_args.h"
#endif
#include "core/fp16.h"
#include "tests/check/check.h"

#include <float.h>
#include <math.h>
#include <string.h>

// Several rows may share a launch function: the one that accepts the step says.
static int32_t cpu_flags(const tn_step *step, const char *name)
{
    int32_t n, flags = 0;
    const tn_cpu_kernel *kernels = tn_cpu_kernels(&n);
    for (int32_t i = 0; i < n; i++) {
        const tn_cpu_kernel *k = &kernels[i];
        bool runs = tn_op_set_has(k->set, step->op) && strcmp(k->name, name) == 0 && k->accepts(step);
        if (runs) flags |= k->flags;
    }
    return flags;
}

// The power of two that brings the largest finite value to 2^top .. 2^(top + 1).
static float power_of(const float *x, int64_t k, int top)
{
    float most = 0.0f;
    for (int64_t i = 0; i < k; i++)
        if (fabsf(x[i]) <= FLT_MAX) most = fmaxf(most, fabsf(x[i]));
    int e = (int)(tn_f32_bits(most) >> 23) - 127;
    return most == 0.0f ? 1.0f : ldexpf(1.0f, top - TN_MAX(e, -112));
}

// Scaled to the range of f16, rounded to it.
static void round_f16(const float *x, float *y, int64_t k)
{
    float power = power_of(x, k, 14);
    for (int64_t i = 0; i < k; i++) y[i] = tn_f16_to_f32(tn_f32_to_f16(x[i] * power)) / power;
}

// The rounding of the packed f16 GEMM of a Vulkan device (gemm_tile_f16): the range of a row of x is smaller,
// and runs of 16 weights are scaled.
static void round_half(const float *x, float *y, int64_t k)
{
    float power = power_of(x, k, 10);
    for (int64_t i = 0; i < k; i++) y[i] = tn_f16_to_f32(tn_f32_to_f16(x[i] * power)) / power;
}

static void round_half_runs(const float *x, float *y, int64_t k)
{
    for (int64_t from = 0; from < k; from += 16) {
        float power = power_of(x + from, TN_MIN(k - from, 16), -1);
        for (int64_t i = from; i < TN_MIN(from + 16, k); i++)
            y[i] = tn_f16_to_f32(tn_f32_to_f16(x[i] * power)) / power;
    }
}

static void round_bf16(const float *x, float *y, int64_t k)
{
    for (int64_t i = 0; i < k; i++) y[i] = tn_bf16_to_f32(tn_f32_to_bf16(x[i]));
}

static check_round_fn cpu_rounding(const tn_step *step, const char *name)
{
    int32_t flags = cpu_flags(step, name);
    if (flags & TN_CPU_QUANTISES) return tn_matmul_quantise_row;
    return flags & TN_CPU_ROUNDS_BF16 ? round_bf16 : NULL;
}

static check_round_fn cpu_weight_rounding(const tn_step *step, const char *name)
{
    return cpu_flags(step, name) & TN_CPU_ROUNDS_BF16 ? round_bf16 : NULL;
}

static void round_to_f16(const float *x, float *y, int64_t k)
{
    for (int64_t i = 0; i < k; i++) y[i] = tn_f16_to_f32(tn_f32_to_f16(x[i]));
}

static void round_finite_f16(const float *x, float *y, int64_t k)
{
    bool finite = true;
    for (int64_t i = 0; i < k; i++) finite = finite && fabsf(x[i]) <= FLT_MAX;
    round_f16(x, y, k);
    for (int64_t i = 0; i < k && !finite; i++) y[i] = NAN;
}

#if TN_HAVE_CUDA
// To `bits` significant bits, with exponents from `least` on: the last bit is never worth less than 2^(least
// - bits + 1).
static float round_bits(float v, int bits, int least)
{
    if (!(fabsf(v) <= FLT_MAX) || v == 0.0f) return v;
    double unit = ldexp(1.0, TN_MAX(ilogbf(v), least) - bits + 1);
    return (float)(nearbyint((double)v / unit) * unit); // ties to even
}

static void round_tf32(const float *x, float *y, int64_t k)
{
    for (int64_t i = 0; i < k; i++) y[i] = round_bits(x[i], 11, -126);
}

// Scaled to the range of e4m3, which has no infinities.
static void round_e4m3(const float *x, float *y, int64_t k)
{
    float power = power_of(x, k, 7);
    for (int64_t i = 0; i < k; i++)
        y[i] = fabsf(x[i]) <= FLT_MAX ? round_bits(x[i] * power, 4, -6) / power : NAN;
}

// The same with a scale for each run of x that has one.
static void round_e4m3_runs(const float *x, float *y, int64_t k)
{
    for (int64_t from = 0; from < k; from += TN_GEMM_RUN)
        round_e4m3(x + from, y + from, TN_MIN(k - from, TN_GEMM_RUN));
}

// int8 for each 16 elements, as backends/cuda/quantise.cuh does it, to the bit.
static void round_i8(const float *x, float *y, int64_t k)
{
    for (int64_t from = 0; from < k; from += TN_QUANTISED_GROUP) {
        int64_t end = TN_MIN(from + TN_QUANTISED_GROUP, k);
        float most = 0.0f;
        bool finite = true;
        for (int64_t i = from; i < end; i++) {
            finite = finite && fabsf(x[i]) <= FLT_MAX;
            most = fmaxf(most, fabsf(x[i]));
        }
        bool none = !finite || most < 1e-35f;
        float inverse = none ? 0.0f : 127.0f / most, d = !finite ? NAN : none ? 0.0f : most / 127.0f;
        for (int64_t i = from; i < end; i++) y[i] = finite ? rintf(x[i] * inverse) * d : NAN;
    }
}

static int32_t cuda_flags(const tn_step *step, const char *name)
{
    for (int32_t i = 0; i < tn_cuda_kernels.n_rows; i++) {
        const tn_cuda_kernel *k = &tn_cuda_kernels.rows[i];
        if (tn_op_set_has(k->set, step->op) && strcmp(k->name, name) == 0) return k->flags;
    }
    return 0;
}

static check_round_fn cuda_rounding(const tn_step *step, const char *name)
{
    int32_t flags = cuda_flags(step, name);
    if (flags & TN_CUDA_ROUNDS_I8) return round_i8;
    if (flags & TN_CUDA_ROUNDS_F16) return flags & TN_CUDA_FINITE_ROWS ? round_finite_f16 : round_f16;
    if (flags & TN_CUDA_ROUNDS_TF32) return round_tf32;
    if (flags & TN_CUDA_ROUNDS_E4M3) return round_e4m3_runs;
    return flags & TN_CUDA_ROUNDS_BF16 ? round_bf16 : NULL;
}

static check_round_fn cuda_weight_rounding(const tn_step *step, const char *name)
{
    int32_t flags = cuda_flags(step, name);
    if (flags & TN_CUDA_ROUNDS_WEIGHTS_F16) return round_to_f16;
    if (flags & TN_CUDA_ROUNDS_TF32) return round_tf32;
    if (flags & TN_CUDA_ROUNDS_E4M3) return round_e4m3;
    // Attention has nothing else in bf16 than caches of that type.
    bool bf16 = flags & TN_CUDA_ROUNDS_BF16 && step->op != TN_OP_attention;
    return bf16 ? round_bf16 : NULL;
}
#endif

// Runs of 16 products are summed in f16: sum j of them is rounded by at most 2^-11 of itself, a third of the
// square of that on average, and has the variance of j products. So 17 / 2 * 2^-22 / 3 = 6.8e-7 at most where
// all columns are alike; one of weights four times as large has sixteen times that.
#define HALF_SUMS 1.1e-5

// Attention that rounds q to bf16 rounds the weights of the softmax to it too: each and their sum are off by
// at most 2^-9 of themselves, so results by at most 2^-8 of the values, and the NMSE is at most 2^-16.
#define BF16_WEIGHTS (1.0 / 65536.0)
#define BF16_ELEMENT (1.0 / 256.0)

// Weights of the softmax, their sum, and values of quantised caches in f16: each is off by at most 2^-11 of
// itself.
#define F16_ELEMENT (3.0 / 2048.0)

static const struct {
    const char *kernel;
    check_round_fn rounding, weight;
    double sums;    // NMSE of sums that are not in f32
    double element; // see check_value_error
} vulkan_kernels[] = {
    {"gemv_int8", tn_matmul_quantise_row, NULL, 0.0, 0.0}, // like the kernels of the CPU, to the bit
    {"gemm_coopmat_bf16", round_bf16, round_bf16, 0.0, 0.0},
    {"gemm_coopmat_f16", round_f16, round_to_f16, 0.0, 0.0},
    {"gemm_fragment_bf16", round_bf16, round_bf16, 0.0, 0.0},
    {"gemm_fragment_k", round_finite_f16, NULL, 0.0, 0.0},
    {"gemm_fragment_f16", round_f16, round_to_f16, 0.0, 0.0},
    {"gemm_skinny_bf16", round_bf16, round_bf16, 0.0, 0.0},
    {"gemm_skinny_f16", round_f16, round_to_f16, 0.0, 0.0},
    {"gemm_tile_f16", round_half, round_half_runs, HALF_SUMS, 0.0},
    {"attention_coopmat", NULL, NULL, 0.0, F16_ELEMENT},
    {"attention_fragment", round_f16, NULL, 0.0, F16_ELEMENT},
    {"attention_fragment_bf16", round_bf16, NULL, BF16_WEIGHTS, BF16_ELEMENT},
};

static check_round_fn vulkan_rounding(const tn_step *step, const char *name)
{
    TN_UNUSED(step);
    for (size_t i = 0; i < TN_COUNT(vulkan_kernels); i++)
        if (strcmp(vulkan_kernels[i].kernel, name) == 0) return vulkan_kernels[i].rounding;
    return NULL;
}

static check_round_fn vulkan_weight_rounding(const tn_step *step, const char *name)
{
    TN_UNUSED(step);
    for (size_t i = 0; i < TN_COUNT(vulkan_kernels); i++)
        if (strcmp(vulkan_kernels[i].kernel, name) == 0) return vulkan_kernels[i].weight;
    return NULL;
}

static const struct {
    const char *backend;
    check_round_fn (*rounding)(const tn_step *step, const char *kernel),
        (*weight)(const tn_step *step, const char *kernel);
} rows[] = {
    {"cpu", cpu_rounding, cpu_weight_rounding},
#if TN_HAVE_CUDA
    {"cuda", cuda_rounding, cuda_weight_rounding},
#endif
    {"vulkan", vulkan_rounding, vulkan_weight_rounding},
};

check_round_fn check_rounding(const tn_device *device, const tn_step *step)
{
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        if (strcmp(rows[i].backend, device->backend->name) == 0)
            return rows[i].rounding(step, device->backend->kernel_name(device, step));
    return NULL;
}

check_round_fn check_weight_rounding(const tn_device *device, const tn_step *step)
{
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        if (rows[i].weight && strcmp(rows[i].backend, device->backend->name) == 0)
            return rows[i].weight(step, device->backend->kernel_name(device, step));
    return NULL;
}

bool check_rounds_q6_k(const tn_device *device, const tn_step *step)
{
#if TN_HAVE_CUDA
    if (strcmp(device->backend->name, "cuda") == 0)
        return cuda_flags(step, device->backend->kernel_name(device, step)) & TN_CUDA_ROUNDS_Q6_K;
#endif
    bool vulkan = strcmp(device->backend->name, "vulkan") == 0;
    return vulkan && strcmp(device->backend->kernel_name(device, step), "gemm_fragment_k") == 0;
}

// A weight is d times an integer of 13 bits, sign included, of which f16 has one less: 2049 becomes 2048.
void check_round_q6_k(const uint8_t *blocks, float *row, int64_t k)
{
    int64_t elems = tn_dtype_block_elems(TN_TYPE_Q6_K);
    size_t size = tn_dtype_row_size(TN_TYPE_Q6_K, elems);
    for (int64_t i = 0; i < k; i++) {
        uint16_t bits; // d, the last of the block
        memcpy(&bits, blocks + (size_t)(i / elems + 1) * size - sizeof bits, sizeof bits);
        float d = tn_f16_to_f32(bits);
        if (d == 0.0f || !(fabsf(d) <= FLT_MAX)) continue;
        row[i] = d * tn_f16_to_f32(tn_f32_to_f16(rintf(row[i] / d)));
    }
}

static bool rounds_weights_bf16(const tn_device *device, const tn_step *step)
{
#if TN_HAVE_CUDA
    if (step->op == TN_OP_attention && strcmp(device->backend->name, "cuda") == 0)
        return cuda_flags(step, device->backend->kernel_name(device, step)) & TN_CUDA_ROUNDS_BF16;
#endif
    TN_UNUSED(device);
    TN_UNUSED(step);
    return false;
}

double check_sums_nmse(const tn_device *device, const tn_step *step)
{
    const char *name = device->backend->kernel_name(device, step);
    if (rounds_weights_bf16(device, step)) return BF16_WEIGHTS;
    for (size_t i = 0; i < TN_COUNT(vulkan_kernels) && strcmp(device->backend->name, "vulkan") == 0; i++)
        if (strcmp(vulkan_kernels[i].kernel, name) == 0) return vulkan_kernels[i].sums;
    return 0.0;
}

int64_t check_short_sums(const tn_device *device, const tn_step *step)
{
#if TN_HAVE_CUDA
    bool cuda = strcmp(device->backend->name, "cuda") == 0;
    if (cuda && (cuda_flags(step, device->backend->kernel_name(device, step)) & TN_CUDA_ROUNDS_E4M3))
        return TN_GEMM_RUN;
#endif
    TN_UNUSED(device);
    TN_UNUSED(step);
    return 0;
}

double check_value_error(const tn_device *device, const tn_step *step)
{
    const char *name = device->backend->kernel_name(device, step);
    if (rounds_weights_bf16(device, step)) return BF16_ELEMENT;
    for (size_t i = 0; i < TN_COUNT(vulkan_kernels) && strcmp(device->backend->name, "vulkan") == 0; i++)
        if (strcmp(vulkan_kernels[i].kernel, name) == 0) return vulkan_kernels[i].element;
    return 0.0;
}
