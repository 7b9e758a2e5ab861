// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of caches of any type as f16, eight elements at a time, for kernels that keep tiles of them in shared memory.
#ifndef TN_CUDA_ATTENTION_CONVERT_CUH
#define TN_CUDA_ATTENTION_CONVERT_CUH

#include "backends/cuda/kernels/attention.cuh"
#include "backends/cuda/kernels/mma_attention.cuh"

// f16 of two floats, infinities and what is too large as the largest number: 0 times it must stay 0.
static __device__ __forceinline__ uint32_t tn_pack_clamped(float x, float y)
{
    return tn_pack16<false>(fminf(fmaxf(x, -65504.0f), 65504.0f), fminf(fmaxf(y, -65504.0f), 65504.0f));
}

// Eight elements of a block of q8_0 or q4_0, as they are without the scale.
template <int TYPE> static __device__ __forceinline__ void tn_cache_quants(const char *block, int i, float (&x)[8])
{
    const uint16_t *from = (const uint16_t *)(block + 2 + (TYPE == TN_CUDA_CACHE_Q8_0 ? i * 8 : i % 2 * 8));
#pragma unroll
    for (int e = 0; e < 4; e++) {
        uint32_t w = from[e];
        if (TYPE == TN_CUDA_CACHE_Q4_0) {
            w >>= i < 2 ? 0 : 4;
            x[2 * e] = (float)((int)(w & 15) - 8), x[2 * e + 1] = (float)((int)(w >> 8 & 15) - 8);
        } else {
            x[2 * e] = (float)(int8_t)(w & 255), x[2 * e + 1] = (float)(int8_t)(w >> 8);
        }
    }
}

// The scale that stands before each 32 elements; 1 for types without.
template <int TYPE> static __device__ __forceinline__ __half tn_cache_scale(const char *row, int block)
{
    if constexpr (TYPE == TN_CUDA_CACHE_F32 || TYPE == TN_CUDA_CACHE_BF16 || TYPE == TN_CUDA_CACHE_F16) return __float2half(1.0f);
    return *(const __half *)(row + block * (TYPE == TN_CUDA_CACHE_Q8_0 ? 34 : 18));
}

// Elements [8 i, 8 i + 8) of a row that is not f16; those of blocks without their scale, unless SCALED.
template <int TYPE, bool SCALED> static __device__ __forceinline__ uint4 tn_cache_chunk(const char *row, int i)
{
    float x[8];
    if constexpr (TYPE == TN_CUDA_CACHE_F32 || TYPE == TN_CUDA_CACHE_BF16) {
        const uint4 *from = (const uint4 *)(row + i * (TYPE == TN_CUDA_CACHE_F32 ? 32 : 16));
        uint4 w = from[0], u = TYPE == TN_CUDA_CACHE_F32 ? from[1] : w;
        const uint32_t bits[8] = {w.x, w.y, w.z, w.w, u.x, u.y, u.z, u.w};
#pragma unroll
        for (int e = 0; e < 8; e++)
            x[e] = TYPE == TN_CUDA_CACHE_F32 ? __uint_as_float(bits[e]) : __uint_as_float(e % 2 ? bits[e / 2] & 0xffff0000u : bits[e / 2] << 16);
    } else {
        tn_cache_quants<TYPE>(row + i / 4 * (TYPE == TN_CUDA_CACHE_Q8_0 ? 34 : 18), i % 4, x);
        float d = SCALED ? __half2float(tn_cache_scale<TYPE>(row, i / 4)) : 1.0f;
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] *= d;
    }
    return make_uint4(tn_pack_clamped(x[0], x[1]), tn_pack_clamped(x[2], x[3]), tn_pack_clamped(x[4], x[5]), tn_pack_clamped(x[6], x[7]));
}

#endif
