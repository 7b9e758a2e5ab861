// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax: y_j = exp(s_j - max s) / sum_i exp(s_i - max s) with s = scale * x (+ mask); a row of -inf gives
// zeros. reduce: the sum, the mean or the maximum of rows.
//
// One block has one row. softmax holds rows of up to 16384 floats in registers; longer ones are read three
// times, from L2 after the first. Bytes moved: 8 per element (12 with a mask), 4 for reduce. Limit: memory
// with many rows, latency with one. NVIDIA H200, 2026-11-21, 4096 rows of 4096: softmax 3.0 TB/s, reduce 3.7,
// where a plain read reaches 4.42.
#include "backends/cuda/softmax/softmax_args.h"
#include "backends/cuda/rows.cuh"

#include <tenon/params.h>

struct score_row {
    const float *x, *mask;
    float scale;

    __device__ __forceinline__ float at(int64_t j) const
    {
        // The product is rounded before the mask is added, as the two separate ops do it: with a fused
        // multiply-add, a product that overflows would not become infinite.
        float s = __fmul_rn(x[j], scale);
        return mask ? s + mask[j] : s;
    }
};

TN_ENTRY __launch_bounds__(1024) tn_softmax(const __grid_constant__ tn_cuda_softmax_args a)
{
    __shared__ float shared[TN_WARP];
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t n = a.y.ne[3];
    score_row row = {(const float *)tn_row32(a.x, blockIdx.x), nullptr, a.scale};
    if (a.mask.data) row.mask = (const float *)tn_row32(a.mask, blockIdx.x);
    float *y = (float *)tn_row32(a.y, blockIdx.x);
    float max = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x) max = fmaxf(max, row.at(j)); // skips NaN
    max = tn_block_max(max, shared);
    if (max == -INFINITY) {
        for (int64_t j = threadIdx.x; j < n; j += blockDim.x) y[j] = 0.0f;
        return;
    }
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x) sum += __expf(row.at(j) - max);
    sum = 1.0f / tn_block_sum(sum, shared);
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x) y[j] = __expf(row.at(j) - max) * sum;
}

// Rows that fit in registers: at most VECTORS times four floats per thread.
template <int VECTORS> static __device__ __forceinline__ void softmax_short(const tn_cuda_softmax_args &a)
{
    __shared__ float shared[TN_WARP];
    tn_pdl_trigger();
    tn_pdl_wait();
    int n = (int)a.y.ne[3];
    const char *x = tn_row32(a.x, blockIdx.x), *mask = a.mask.data ? tn_row32(a.mask, blockIdx.x) : nullptr;
    char *y = tn_row32(a.y, blockIdx.x);
    float s[VECTORS * 4], max = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int j = 4 * (threadIdx.x + i * blockDim.x);
        float4 v = tn_load_floats(x, 4, j, n, a.aligned), m = {0.0f, 0.0f, 0.0f, 0.0f};
        if (mask) m = tn_load_floats(mask, 4, j, n, a.aligned);
        s[4 * i] = __fmul_rn(v.x, a.scale) + m.x, s[4 * i + 1] = __fmul_rn(v.y, a.scale) + m.y;
        s[4 * i + 2] = __fmul_rn(v.z, a.scale) + m.z, s[4 * i + 3] = __fmul_rn(v.w, a.scale) + m.w;
#pragma unroll
        for (int k = 4 * i; k < 4 * i + 4; k++) {
            if (j + k - 4 * i >= n) s[k] = -INFINITY;
            max = fmaxf(max, s[k]); // skips NaN
        }
    }
    max = tn_block_max(max, shared);
#pragma unroll
    for (int k = 0; k < 4 * VECTORS; k++) sum += s[k] = max == -INFINITY ? 0.0f : __expf(s[k] - max);
    sum = tn_block_sum(sum, shared);
    sum = max == -INFINITY ? 0.0f : 1.0f / sum;
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        tn_store_floats(
            y, 4 * (threadIdx.x + i * blockDim.x), n, a.aligned,
            make_float4(s[4 * i] * sum, s[4 * i + 1] * sum, s[4 * i + 2] * sum, s[4 * i + 3] * sum));
}

TN_ENTRY __launch_bounds__(1024) tn_softmax_1(const __grid_constant__ tn_cuda_softmax_args a)
{
    softmax_short<1>(a);
}

TN_ENTRY __launch_bounds__(1024) tn_softmax_4(const __grid_constant__ tn_cuda_softmax_args a)
{
    softmax_short<TN_CUDA_SOFTMAX_RUNS>(a);
}

TN_ENTRY __launch_bounds__(1024) tn_reduce(const __grid_constant__ tn_cuda_softmax_args a)
{
    __shared__ float shared[TN_WARP];
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t n = a.x.ne[3];
    const float *x = (const float *)tn_row32(a.x, blockIdx.x);
    float result = a.kind == TN_REDUCE_MAX ? -INFINITY : 0.0f;
    for (int64_t j = 4 * threadIdx.x; j < n; j += 4 * blockDim.x) {
        float4 v = tn_load_floats((const char *)x, 4, j, n, a.aligned);
        if (a.kind != TN_REDUCE_MAX) result += (v.x + v.y) + (v.z + v.w);
        else if (j + 4 <= n) result = fmaxf(fmaxf(result, fmaxf(v.x, v.y)), fmaxf(v.z, v.w));
        else
            for (int64_t i = j; i < n; i++) result = fmaxf(result, x[i]);
    }
    result = a.kind == TN_REDUCE_MAX ? tn_block_max(result, shared) : tn_block_sum(result, shared);
    if (a.kind == TN_REDUCE_MEAN) result /= (float)n;
    if (threadIdx.x == 0) *(float *)tn_row32(a.y, blockIdx.x) = result;
}
