// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x for gemm_blocks.cuh: to[m, k] f16 from x [m, k] f32, through an rms_norm if the product has one.
// Each row is scaled by the power of two that brings its largest value to 2^14, and of each 16 values the
// even ones come first.
//
// Of a gated pair whose result is left as such rows too, the kernel also makes the power of two that brings
// a row of the result into the range of f16. It has to be known before the first result is: |silu(g) u| <= |g
// u|
// <= |x|^2 |w_gate| |w_up| (Cauchy and Schwarz), with the largest norms of rows of the weights. That bound is
// some 2^8 above the largest result, of the 2^29 between the largest and the smallest f16 of full precision.
//
// A block makes one row after another. A thread holds PIECES times 8 values of the row in registers, so the
// row is read once; two reductions over the block (squares for the norm, then the largest value) lie between
// the loads and the stores. 6 bytes for each value; with up to some 300 rows the limit is the latency of
// these steps and of the launch, with more the L2.
#include "backends/cuda/product/gemm/gemm_blocks_args.h"
#include "backends/cuda/product/prepare.cuh"

static __device__ __forceinline__ uint32_t pack2(float a, float b)
{
    __half2 h = __floats2half2_rn(a, b);
    return *(uint32_t *)&h;
}

static __device__ __forceinline__ void load8(const float *at, float (&v)[8])
{
    float4 a = *(const float4 *)at, b = *(const float4 *)(at + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

static __device__ __forceinline__ float largest_of(float largest, float v)
{
    return fabsf(v) <= 3.4028235e38f ? fmaxf(largest, fabsf(v)) : largest;
}

// Piece p of a thread is values 8 (threadIdx.x + p blockDim.x) and the seven behind.
template <int PIECES> static __device__ __forceinline__ void make_rows(const tn_cuda_gemm_blocks_x_args &a)
{
    __shared__ float shared[3][TN_WARP];
    float g[PIECES][8];
    tn_pdl_trigger();
#pragma unroll
    for (int p = 0; p < PIECES; p++) { // weights do not change: before the predecessor has ended
        int k = 8 * (threadIdx.x + p * blockDim.x);
#pragma unroll
        for (int i = 0; i < 8; i++) g[p][i] = 1.0f;
        if (a.norm && k < a.k) load8(a.norm + k, g[p]);
    }
    double norms = a.y_power ? (double)*a.norm_gate * *a.norm_up : 0.0;
    tn_pdl_wait();
    for (int r = blockIdx.x; r < a.m; r += gridDim.x) {
        const float *row = (const float *)(a.x + r * a.stride);
        float v[PIECES][8], sum = 0.0f, largest = 0.0f;
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            int k = 8 * (threadIdx.x + p * blockDim.x);
#pragma unroll
            for (int i = 0; i < 8; i++) v[p][i] = 0.0f;
            if (k < a.k) load8(row + k, v[p]);
        }
        if (a.norm) {
#pragma unroll
            for (int i = 0; i < 8 * PIECES; i++) sum += v[i / 8][i % 8] * v[i / 8][i % 8];
            float factor = (float)(1.0 / sqrt((double)tn_block_sum(sum, shared[0]) / a.k + (double)a.eps));
#pragma unroll
            for (int i = 0; i < 8 * PIECES; i++) v[i / 8][i % 8] = v[i / 8][i % 8] * factor * g[i / 8][i % 8];
        }
#pragma unroll
        for (int i = 0; i < 8 * PIECES; i++) largest = largest_of(largest, v[i / 8][i % 8]);
        float power = tn_power_of_two_for(tn_block_max(largest, shared[1]), 14);
        if (threadIdx.x == 0) a.row_scale[r] = 1.0f / power;
        if (a.y_power) {
            float squares = 0.0f;
#pragma unroll
            for (int i = 0; i < 8 * PIECES; i++) squares += v[i / 8][i % 8] * v[i / 8][i % 8];
            squares = tn_block_sum(squares, shared[2]);
            if (threadIdx.x == 0) {
                float y_power = tn_power_for_bound(squares * norms);
                a.y_power[r] = y_power, a.y_scale[r] = 1.0f / y_power;
            }
        }
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            int k = 8 * (threadIdx.x + p * blockDim.x);
            if (k >= a.k) break;
            uint2 *to = (uint2 *)(a.to + r * (int64_t)a.k + (k & ~15)) + (k >> 3 & 1);
#pragma unroll
            for (int odd = 0; odd < 2; odd++)
                to[2 * odd] = make_uint2(pack2(v[p][odd] * power, v[p][2 + odd] * power),
                                         pack2(v[p][4 + odd] * power, v[p][6 + odd] * power));
        }
    }
}

TN_ENTRY __launch_bounds__(1024) tn_gemm_blocks_x_1(const __grid_constant__ tn_cuda_gemm_blocks_x_args a)
{
    make_rows<1>(a);
}

TN_ENTRY __launch_bounds__(1024) tn_gemm_blocks_x_2(const __grid_constant__ tn_cuda_gemm_blocks_x_args a)
{
    make_rows<2>(a);
}
