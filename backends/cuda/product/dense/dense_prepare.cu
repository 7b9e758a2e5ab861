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

// Chunks of 8 values that a thread keeps in registers: all of them for k up to 4096. What is behind them is
// read again by each pass. With two chunks the blocks would need more registers than the product that runs
// before leaves, and could not wait beside it.
enum { DENSE_KEPT = 1 };

struct dense_row {
    const float *x, *norm;
    bool x_wide, norm_wide;
    int k;
    float factor; // 1 / root mean square
    float g[DENSE_KEPT][8], v[DENSE_KEPT][8];

    // Weights of a norm do not change, so they are loaded while the predecessor runs.
    __device__ __forceinline__ void load_norm(const tn_cuda_dense_x_args &a)
    {
        norm = a.norm, norm_wide = (uintptr_t)norm % 16 == 0, k = a.k, factor = 1.0f;
#pragma unroll
        for (int i = 0; i < DENSE_KEPT; i++)
            if (norm) tn_load8(norm, at(i), k, norm_wide, g[i]);
    }
    __device__ __forceinline__ void load(const float *row)
    {
        x = row, x_wide = (uintptr_t)row % 16 == 0;
#pragma unroll
        for (int i = 0; i < DENSE_KEPT; i++) tn_load8(x, at(i), k, x_wide, v[i]);
    }
    // Where chunk i of this thread begins.
    static __device__ __forceinline__ int64_t at(int i)
    {
        return 8 * (threadIdx.x + (int64_t)i * blockDim.x);
    }
    __device__ __forceinline__ void raw(int i, float (&to)[8]) const
    {
        tn_load8(x, at(i), k, x_wide, to);
    }
    // Chunk i behind the kept ones after the norm.
    __device__ __forceinline__ void normed(int i, float (&to)[8]) const
    {
        raw(i, to);
        if (!norm) return;
        float h[8];
        tn_load8(norm, at(i), k, norm_wide, h);
#pragma unroll
        for (int e = 0; e < 8; e++) to[e] = to[e] * factor * h[e];
    }
    __device__ __forceinline__ void norm_kept(float factor_)
    {
        factor = factor_;
#pragma unroll
        for (int i = 0; i < DENSE_KEPT; i++)
#pragma unroll
            for (int e = 0; e < 8; e++) v[i][e] = v[i][e] * factor * g[i][e];
    }
};

static __device__ __forceinline__ float dense_squares(float sum, const float (&v)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++) sum += v[i] * v[i];
    return sum;
}

static __device__ __forceinline__ float dense_largest(float largest, const float (&v)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        largest = fabsf(v[i]) <= 3.4028235e38f ? fmaxf(largest, fabsf(v[i])) : largest;
    return largest;
}

// Writes chunk i, and what rounding leaves of it.
static __device__ __forceinline__ void dense_write8(const tn_cuda_dense_x_args &a, int r, int64_t k,
                                                    float power, float (&v)[8])
{
    uint16_t *to = (uint16_t *)a.to + r * a.ld + k;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= power;
    dense_store8(a.f16, to, v);
    if (!a.split) return;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = dense_remainder(a.f16, v[i]);
    dense_store8(a.f16, to + TN_DENSE_SPLIT * a.ld, v);
}

static __device__ __forceinline__ void dense_make_row(const tn_cuda_dense_x_args &a, dense_row &row, int r,
                                                      float (&shared)[2][TN_WARP])
{
    int chunks = (int)((a.ld + 8 * (int64_t)blockDim.x - 1) / (8 * (int64_t)blockDim.x));
    float power = 1.0f, v[8];
    row.load((const float *)tn_row(a.x, r));
    if (a.norm) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < DENSE_KEPT; i++) sum = dense_squares(sum, row.v[i]);
        for (int i = DENSE_KEPT; i < chunks; i++) row.raw(i, v), sum = dense_squares(sum, v);
        row.norm_kept((float)(1.0 / sqrt((double)tn_block_sum(sum, shared[0]) / a.k + (double)a.eps)));
    }
    if (a.row_scale) {
        float largest = 0.0f;
#pragma unroll
        for (int i = 0; i < DENSE_KEPT; i++) largest = dense_largest(largest, row.v[i]);
        for (int i = DENSE_KEPT; i < chunks; i++) row.normed(i, v), largest = dense_largest(largest, v);
        power = tn_power_of_two_for(tn_block_max(largest, shared[1]), 14);
        if (threadIdx.x == 0) a.row_scale[r] = 1.0f / power;
    }
#pragma unroll
    for (int i = 0; i < DENSE_KEPT; i++)
        if (dense_row::at(i) < a.ld) dense_write8(a, r, dense_row::at(i), power, row.v[i]);
    for (int i = DENSE_KEPT; i < chunks; i++) {
        row.normed(i, v);
        if (dense_row::at(i) < a.ld) dense_write8(a, r, dense_row::at(i), power, v);
    }
}

TN_ENTRY __launch_bounds__(TN_DENSE_PREPARE, 3) tn_dense_x(const __grid_constant__ tn_cuda_dense_x_args a)
{
    __shared__ float shared[2][TN_WARP];
    dense_row row;
    tn_pdl_trigger();
    row.load_norm(a);
    tn_pdl_wait();
    dense_make_row(a, row, blockIdx.x, shared);
}
