// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of caches of any type as f16, eight elements at a time, for kernels that keep tiles of them in shared memory.
#ifndef TN_CUDA_ATTENTION_CONVERT_CUH
#define TN_CUDA_ATTENTION_CONVERT_CUH

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/attention/mma_attention.cuh"

// Eight elements of a block of q8_0 or q4_0, as they are without the scale, two in a register. As bits of f16 0x6400 + n is 1024 + n.
template <int TYPE> static __device__ __forceinline__ void tn_cache_quants(const char *block, int i, __half2 (&x)[4])
{
    const uint16_t *from = (const uint16_t *)(block + 2 + (TYPE == TN_CUDA_CACHE_Q8_0 ? i * 8 : i % 2 * 8));
#pragma unroll
    for (int e = 0; e < 4; e++) {
        uint32_t w = from[e], bias = TYPE == TN_CUDA_CACHE_Q8_0 ? 0x64806480u : 0x64086408u; // 1024 + 128, 1024 + 8
        w = TYPE == TN_CUDA_CACHE_Q8_0 ? w ^ 0x8080u : (i < 2 ? w : w >> 4) & 0x0f0fu;
        w = __byte_perm(w, 0x64u, 0x4140);
        x[e] = __hsub2(*reinterpret_cast<__half2 *>(&w), *reinterpret_cast<__half2 *>(&bias));
    }
}

// The scale that stands before each 32 elements; 1 for types without.
template <int TYPE> static __device__ __forceinline__ __half tn_cache_scale(const char *row, int block)
{
    if constexpr (TYPE == TN_CUDA_CACHE_F32 || TYPE == TN_CUDA_CACHE_BF16 || TYPE == TN_CUDA_CACHE_F16) return __float2half(1.0f);
    return *(const __half *)(row + block * (TYPE == TN_CUDA_CACHE_Q8_0 ? 34 : 18));
}

// A scale in two parts: a power of two, with which integers of 8 bits are exact in f16, and what is left: 1 to 2 without sign,
// so that a weight times it keeps its bits; up to 2^8 if the scale is huge, so that one of up to 2^8 stays below infinity.
static __device__ __forceinline__ float tn_scale_power(__half scale)
{
    return __uint_as_float(min(__float_as_uint(__half2float(scale)) & 0x7f800000u, __float_as_uint(256.0f)));
}

static __device__ __forceinline__ __half tn_scale_rest(__half scale)
{
    float inverse = __uint_as_float(0x7f000000u - __float_as_uint(tn_scale_power(scale)));
    return __float2half(fminf(fmaxf(__half2float(scale) * inverse, -255.875f), 255.875f));
}

// Elements [8 i, 8 i + 8) of a row that is not f16; those of blocks have but the power of two of their scale.
template <int TYPE> static __device__ __forceinline__ uint4 tn_cache_chunk(const char *row, int i)
{
    if constexpr (TYPE == TN_CUDA_CACHE_F32 || TYPE == TN_CUDA_CACHE_BF16) {
        float x[8];
        const uint4 *from = (const uint4 *)(row + i * (TYPE == TN_CUDA_CACHE_F32 ? 32 : 16));
        uint4 w = from[0], u = TYPE == TN_CUDA_CACHE_F32 ? from[1] : w;
        const uint32_t bits[8] = {w.x, w.y, w.z, w.w, u.x, u.y, u.z, u.w};
#pragma unroll
        for (int e = 0; e < 8; e++) {
            x[e] = TYPE == TN_CUDA_CACHE_F32 ? __uint_as_float(bits[e]) : __uint_as_float(e % 2 ? bits[e / 2] & 0xffff0000u : bits[e / 2] << 16);
            x[e] = fminf(fmaxf(x[e], -65504.0f), 65504.0f); // 0 times what is too large must stay 0
        }
        return make_uint4(tn_pack16<false>(x[0], x[1]), tn_pack16<false>(x[2], x[3]), tn_pack16<false>(x[4], x[5]), tn_pack16<false>(x[6], x[7]));
    } else {
        __half2 x[4], d = __float2half2_rn(tn_scale_power(tn_cache_scale<TYPE>(row, i / 4)));
        tn_cache_quants<TYPE>(row + i / 4 * (TYPE == TN_CUDA_CACHE_Q8_0 ? 34 : 18), i % 4, x);
        return make_uint4(tn_half2_bits(__hmul2(x[0], d)), tn_half2_bits(__hmul2(x[1], d)), tn_half2_bits(__hmul2(x[2], d)), tn_half2_bits(__hmul2(x[3], d)));
    }
}

#endif
