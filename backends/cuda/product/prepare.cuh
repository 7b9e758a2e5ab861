// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Device functions shared by the kernels that turn f32 rows of x into the operands of tensor cores
// (gemm/gemm_prepare.cu and skinny/skinny_prepare.cu): loads of 8 values, and the power of two that brings a
// row into the range of f16 or e4m3. A power of two is used because multiplying by it is exact.
#ifndef TN_CUDA_PREPARE_CUH
#define TN_CUDA_PREPARE_CUH

#include "backends/cuda/mma.cuh"

// The powers of two that the largest value of a row is brought to: below twice of them nothing overflows.
enum { TN_F16_EXPONENT = 14, TN_E4M3_EXPONENT = 7 };

// Values k to k + 7 of a row of n, with zeros behind its end; `wide` says that the row starts at a multiple
// of 16 bytes.
static __device__ __forceinline__ void tn_load8(const float *row, int64_t k, int64_t n, bool wide,
                                                float (&v)[8])
{
    if (wide && k + 8 <= n) {
        float4 a = *(const float4 *)(row + k), b = *(const float4 *)(row + k + 4);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = k + i < n ? row[k + i] : 0.0f;
}

// The power of two that brings `largest` into [2^exponent, 2^(exponent + 1)). Exponents below -112 are
// treated as -112, so that the power and its inverse stay finite.
static __device__ __forceinline__ float tn_power_of_two_for(float largest, int exponent)
{
    if (largest == 0.0f) return 1.0f;
    int e = max((int)(__float_as_uint(largest) >> 23) - 127, -112);
    return __uint_as_float((uint32_t)(127 + exponent - e) << 23);
}

// The power of two that brings values of at most `bound` to at most 2^14.
static __device__ __forceinline__ float tn_power_for_bound(double bound)
{
    if (!(bound > 0.0 && bound < 1e300)) return 1.0f;
    int e = min(max(13 - ilogb(bound), -126), 126);
    return __uint_as_float((uint32_t)(127 + e) << 23);
}

// Exclusive prefix sum over the threads of a block; `shared` has an element for each warp.
static __device__ __forceinline__ int tn_sum_before(int v, int *shared)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP, x = v;
#pragma unroll
    for (int i = 1; i < TN_WARP; i *= 2) {
        int y = __shfl_up_sync(0xffffffffu, x, i);
        if (lane >= i) x += y;
    }
    if (lane == TN_WARP - 1) shared[warp] = x;
    __syncthreads();
    int before = 0;
    for (int i = 0; i < warp; i++) before += shared[i];
    return before + x - v;
}

static __device__ __forceinline__ float tn_max_finite(float largest, float v)
{
    return fabsf(v) <= 3.4028235e38f ? fmaxf(largest, fabsf(v)) : largest;
}

// Two values in e4m3, which has no infinity, so infinities become NaN as well.
static __device__ __forceinline__ uint32_t tn_round_e4m3(float a, float b)
{
    return tn_pack_e4m3(a - a == 0.0f ? a : NAN, b - b == 0.0f ? b : NAN);
}

#endif
