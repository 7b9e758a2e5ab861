// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm, add_rms_norm and layer_norm over rows of n floats:
//   rms_norm      y = x / sqrt(mean(x^2) + eps) * w
//   add_rms_norm  the same with x = a + b, which is stored as `sum` too; sum may be the storage of a
//   layer_norm    y = (x - mean) / sqrt(var + eps) * w + b, where var is computed from the differences
//
// A row lies in the registers of its threads, V groups of four floats in each thread: one warp has a row
// while rows are short and many, otherwise one block has it. Rows that are too long for registers or not
// aligned go through tn_*_any, which reads them again for each pass, then from L1 and L2.
//
// Bytes moved: 8 per element (16 with the addition); the weights stay in L2. Limit: memory in prefill; with
// small batches the latency of one read, one reduction and one write. NVIDIA H200, 2026-11-21: 4096 rows of
// 4096 at 3.9 TB/s (4.0 with the addition), which is 88 and 91 % of what a plain read reaches (4.42); one row
// takes 1.8 us.
#include "backends/cuda/norm/norm_args.h"
#include "backends/cuda/rows.cuh"

enum { RMS, ADD_RMS, LAYER };

// Which operand is what: the rows that are normalised are written to y; weight and bias are NULL if absent.
template <int KIND> static __device__ __forceinline__ const tn_cuda_view &y_of(const tn_cuda_norm_args &a)
{
    return a.op.dst[KIND == ADD_RMS ? 1 : 0];
}

template <int KIND> static __device__ __forceinline__ const float *weight_of(const tn_cuda_norm_args &a)
{
    return (const float *)a.op.src[KIND == ADD_RMS ? 2 : 1].data;
}

template <int KIND> static __device__ __forceinline__ const float *bias_of(const tn_cuda_norm_args &a)
{
    return KIND == LAYER ? (const float *)a.op.src[2].data : nullptr;
}

template <int KIND> static __device__ __forceinline__ float eps_of(const tn_cuda_norm_args &a)
{
    return KIND == LAYER     ? a.op.params.layer_norm.eps
           : KIND == ADD_RMS ? a.op.params.add_rms_norm.eps
                             : a.op.params.rms_norm.eps;
}

// The sum over the threads that share a row: a warp or the block.
static __device__ __forceinline__ float group_sum(float x, int group, float *shared)
{
    return group == TN_WARP ? tn_warp_sum(x) : tn_block_sum(x, shared);
}

static __device__ __forceinline__ float sum_of_squares(float4 v)
{
    return fmaf(v.x, v.x, v.y * v.y) + fmaf(v.z, v.z, v.w * v.w);
}

static __device__ __forceinline__ float4 subtract(float4 v, float m)
{
    return make_float4(v.x - m, v.y - m, v.z - m, v.w - m);
}

static __device__ __forceinline__ float4 multiply(float4 v, float s)
{
    return make_float4(v.x * s, v.y * s, v.z * s, v.w * s);
}

static __device__ __forceinline__ float4 add(float4 u, float4 v)
{
    return make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w);
}

// Elements 4 i .. 4 i + 3 of the row after the weight and the bias, each if there is one.
template <int KIND>
static __device__ __forceinline__ float4 apply_weight(const tn_cuda_norm_args &a, float4 v, int i)
{
    const float4 *weight = (const float4 *)weight_of<KIND>(a), *bias = (const float4 *)bias_of<KIND>(a);
    if (weight) {
        float4 w = weight[i];
        v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
    }
    return bias ? add(v, bias[i]) : v;
}

// Reads this thread's part of the row; add_rms_norm stores the sum as well. x[k] beyond the row is zero.
// `runs` is the number of groups of four floats of a row.
template <int KIND, int V>
static __device__ __forceinline__ void load(const tn_cuda_norm_args &a, uint32_t row, int first, int runs,
                                            float4 (&x)[V])
{
    const float4 *p = (const float4 *)tn_row32(a.op.src[0], row);
#pragma unroll
    for (int k = 0; k < V; k++) {
        int i = first + k * a.group;
        x[k] = i < runs ? p[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    if (KIND != ADD_RMS) return;
    const float4 *q = (const float4 *)tn_row32(a.op.src[1], row);
    float4 *sum = (float4 *)tn_row32(a.op.dst[0], row);
#pragma unroll
    for (int k = 0; k < V; k++) {
        int i = first + k * a.group;
        if (i < runs) sum[i] = x[k] = add(x[k], q[i]);
    }
}

template <int KIND, int V> static __device__ __forceinline__ void norm(const tn_cuda_norm_args &a)
{
    __shared__ float shared[TN_WARP];
    int first = (int)threadIdx.x % a.group, n = (int)y_of<KIND>(a).ne[3], runs = n / 4;
    uint32_t row = blockIdx.x * (blockDim.x / a.group) + threadIdx.x / a.group;
    tn_pdl_trigger();
    tn_pdl_wait();
    if (row >= a.n_rows) return; // leaves by whole warps, and only where each warp has a row of its own
    float4 x[V];
    load<KIND>(a, row, first, runs, x);
    float sum = 0.0f;
    if (KIND == LAYER) {
#pragma unroll
        for (int k = 0; k < V; k++) sum += (x[k].x + x[k].y) + (x[k].z + x[k].w);
        float mean = group_sum(sum, a.group, shared) / (float)n;
        sum = 0.0f;
#pragma unroll
        for (int k = 0; k < V; k++) {
            x[k] = subtract(x[k], mean);
            if (first + k * a.group < runs) sum += sum_of_squares(x[k]);
        }
    } else {
#pragma unroll
        for (int k = 0; k < V; k++) sum += sum_of_squares(x[k]);
    }
    float scale = rsqrtf(group_sum(sum, a.group, shared) / (float)n + eps_of<KIND>(a));
    float4 *y = (float4 *)tn_row32(y_of<KIND>(a), row);
#pragma unroll
    for (int k = 0; k < V; k++) {
        int i = first + k * a.group;
        if (i < runs) y[i] = apply_weight<KIND>(a, multiply(x[k], scale), i);
    }
}

// Rows of any length and alignment: one block per row, one element at a time.
template <int KIND> static __device__ __forceinline__ void norm_any(const tn_cuda_norm_args &a)
{
    __shared__ float shared[TN_WARP];
    tn_pdl_trigger();
    tn_pdl_wait();
    int n = (int)y_of<KIND>(a).ne[3], t = threadIdx.x, step = blockDim.x;
    const float *x = (const float *)tn_row32(a.op.src[0], blockIdx.x);
    if (KIND == ADD_RMS) {
        const float *b = (const float *)tn_row32(a.op.src[1], blockIdx.x);
        float *sum = (float *)tn_row32(a.op.dst[0], blockIdx.x);
        for (int j = t; j < n; j += step) sum[j] = x[j] + b[j];
        x = sum; // no barrier is needed, because every thread reads only what it wrote itself
    }
    float sum = 0.0f, mean = 0.0f;
    if (KIND == LAYER) {
        for (int j = t; j < n; j += step) sum += x[j];
        mean = tn_block_sum(sum, shared) / (float)n;
        sum = 0.0f;
    }
    for (int j = t; j < n; j += step) sum += (x[j] - mean) * (x[j] - mean);
    float scale = rsqrtf(tn_block_sum(sum, shared) / (float)n + eps_of<KIND>(a));
    const float *weight = weight_of<KIND>(a), *bias = bias_of<KIND>(a);
    float *y = (float *)tn_row32(y_of<KIND>(a), blockIdx.x);
    for (int j = t; j < n; j += step) {
        float v = (x[j] - mean) * scale;
        if (weight) v *= weight[j];
        y[j] = bias ? v + bias[j] : v;
    }
}

// The kernels of an op, as norm.c names them.
#define TN_NORM(op, KIND)                                                                                    \
    TN_ENTRY __launch_bounds__(1024) tn_##op##_1(const __grid_constant__ tn_cuda_norm_args a)                \
    {                                                                                                        \
        norm<KIND, 1>(a);                                                                                    \
    }                                                                                                        \
    TN_ENTRY __launch_bounds__(1024) tn_##op##_2(const __grid_constant__ tn_cuda_norm_args a)                \
    {                                                                                                        \
        norm<KIND, 2>(a);                                                                                    \
    }                                                                                                        \
    TN_ENTRY __launch_bounds__(1024) tn_##op##_4(const __grid_constant__ tn_cuda_norm_args a)                \
    {                                                                                                        \
        norm<KIND, 4>(a);                                                                                    \
    }                                                                                                        \
    TN_ENTRY __launch_bounds__(1024) tn_##op##_any(const __grid_constant__ tn_cuda_norm_args a)              \
    {                                                                                                        \
        norm_any<KIND>(a);                                                                                   \
    }

TN_NORM(rms_norm, RMS)
TN_NORM(add_rms_norm, ADD_RMS)
TN_NORM(layer_norm, LAYER)
