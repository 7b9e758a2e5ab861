// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x for dense.cu: to[m, ld] of 16 bits from x [m, k] f32, through an rms_norm if the product has
// one, for f16 times a power of two for each row; if asked for, also what rounding leaves of each value, as
// rows of their own.
//
// A block makes one row, a thread 8 values at a time. Bytes for each value: 4 read and 2 or 4 written. The
// limit is latency, most of which passes while the product, which starts early, fetches its first weights.
#include "backends/cuda/product/dense/dense_args.h"
#include "backends/cuda/product/prepare.cuh"

static __device__ __forceinline__ uint32_t dense_pair(bool f16, float a, float b)
{
    if (f16) {
        __half2 h = __floats2half2_rn(a, b);
        return *(uint32_t *)&h;
    }
    __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&h;
}

static __device__ __forceinline__ void dense_store8(bool f16, uint16_t *to, const float (&v)[8])
{
    *(uint4 *)to = make_uint4(dense_pair(f16, v[0], v[1]), dense_pair(f16, v[2], v[3]),
                              dense_pair(f16, v[4], v[5]), dense_pair(f16, v[6], v[7]));
}

// What rounding v leaves of it; 0 where that is not finite.
static __device__ __forceinline__ float dense_remainder(bool f16, float v)
{
    float high = f16 ? __half2float(__float2half_rn(v)) : __bfloat162float(__float2bfloat16_rn(v));
    return fabsf(high) <= 3.4028235e38f ? v - high : 0.0f;
}

// Values k to k + 7 of a row after its norm.
static __device__ __forceinline__ void dense_normed8(const tn_cuda_dense_x_args &a, const float *row,
                                                     int64_t k, bool wide, float factor, float (&v)[8])
{
    tn_load8(row, k, a.k, wide, v);
    if (!a.norm) return;
    float g[8];
    tn_load8(a.norm, k, a.k, (uintptr_t)a.norm % 16 == 0, g);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = v[i] * factor * g[i];
}

static __device__ __forceinline__ void dense_make_row(const tn_cuda_dense_x_args &a, int r,
                                                      float (&shared)[2][TN_WARP])
{
    const float *row = (const float *)tn_row(a.x, r);
    bool wide = (uintptr_t)row % 16 == 0;
    int64_t begin = 8 * threadIdx.x, step = 8 * blockDim.x;
    float factor = 1.0f, power = 1.0f;
    if (a.norm) {
        float sum = 0.0f;
#pragma unroll 2
        for (int64_t k = begin; k < a.k; k += step) {
            float v[8];
            tn_load8(row, k, a.k, wide, v);
#pragma unroll
            for (int i = 0; i < 8; i++) sum += v[i] * v[i];
        }
        factor = (float)(1.0 / sqrt((double)tn_block_sum(sum, shared[0]) / a.k + (double)a.eps));
    }
    if (a.row_scale) {
        float largest = 0.0f;
#pragma unroll 2
        for (int64_t k = begin; k < a.k; k += step) {
            float v[8];
            dense_normed8(a, row, k, wide, factor, v);
#pragma unroll
            for (int i = 0; i < 8; i++)
                largest = fabsf(v[i]) <= 3.4028235e38f ? fmaxf(largest, fabsf(v[i])) : largest;
        }
        power = tn_power_of_two_for(tn_block_max(largest, shared[1]), 14);
        if (threadIdx.x == 0) a.row_scale[r] = 1.0f / power;
    }
    uint16_t *to = (uint16_t *)a.to + r * a.ld;
#pragma unroll 2
    for (int64_t k = begin; k < a.ld; k += step) {
        float v[8];
        dense_normed8(a, row, k, wide, factor, v);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] *= power;
        dense_store8(a.f16, to + k, v);
        if (!a.split) continue;
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = dense_remainder(a.f16, v[i]);
        dense_store8(a.f16, to + TN_DENSE_SPLIT * a.ld + k, v);
    }
}

TN_ENTRY __launch_bounds__(1024) tn_dense_x(const __grid_constant__ tn_cuda_dense_x_args a)
{
    __shared__ float shared[2][TN_WARP];
    tn_pdl_trigger();
    tn_pdl_wait();
    dense_make_row(a, blockIdx.x, shared);
}
