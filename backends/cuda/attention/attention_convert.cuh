// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of caches of any type as f16, eight elements at a time, for kernels that keep tiles of them in shared
// memory.
//
// Elements of q8_0 and q4_0 become integers times a power of two, which is exact in f16; the kernels apply
// the rest of the scale after a product or to the weights. With the whole scale in f16, single elements
// exceeded the bound of the checks with one seed in ten, and scales above 256 gave NaN. NVIDIA H200,
// 2026-11-22: the largest error of 167 seeds went from 0.0037 to 0.0018 of the RMS. It costs time in
// attention_wide.cu (q8_0, heads of 576: 1 query and 4096 keys 43.4 to 44.5 us, 32 sequences of that 229.8 to
// 238.8 us, 512 queries 989 to 1075 us) and saves some in attention_prefill.cu (4096 queries 1637 to 1614
// us).
#ifndef TN_CUDA_ATTENTION_CONVERT_CUH
#define TN_CUDA_ATTENTION_CONVERT_CUH

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/attention/mma_attention.cuh"

// Elements [8 i, 8 i + 8) of a block of q8_0 or q4_0 as integers without the scale, two in a register. The
// f16 with the bits 0x6400 + n is 1024 + n, so a byte becomes an integer by one permutation and one
// subtraction.
template <int TYPE>
static __device__ __forceinline__ void tn_cache_quants(const char *block, int i, __half2 (&x)[4])
{
    const uint16_t *from = (const uint16_t *)(block + 2 + (TYPE == TN_CUDA_CACHE_Q8_0 ? i * 8 : i % 2 * 8));
#pragma unroll
    for (int e = 0; e < 4; e++) {
        uint32_t w = from[e];
        uint32_t bias = TYPE == TN_CUDA_CACHE_Q8_0 ? 0x64806480u : 0x64086408u; // 1024 + 128, 1024 + 8
        w = TYPE == TN_CUDA_CACHE_Q8_0 ? w ^ 0x8080u : (i < 2 ? w : w >> 4) & 0x0f0fu;
        w = __byte_perm(w, 0x64u, 0x4140);
        x[e] = __hsub2(*reinterpret_cast<__half2 *>(&w), *reinterpret_cast<__half2 *>(&bias));
    }
}

// The scale of a block of 32 elements; 1 for types without blocks.
template <int TYPE> static __device__ __forceinline__ __half tn_cache_scale(const char *row, int block)
{
    if constexpr (TYPE == TN_CUDA_CACHE_F32 || TYPE == TN_CUDA_CACHE_BF16 || TYPE == TN_CUDA_CACHE_F16)
        return __float2half(1.0f);
    return *(const __half *)(row + block * tn_cache_block_bytes<TYPE>());
}

// A scale is split into two factors. The first is a power of two, with which integers of 8 bits are exact in
// f16; it is at most 2^8, so that 127 times it stays finite. The second, the rest, has a magnitude of 1 to 2,
// so that a weight times it keeps its bits. Only if the scale is huge the rest is larger, up to just below
// 2^8, so that it stays below infinity times a weight of up to 2^8.
static __device__ __forceinline__ float tn_scale_power(__half scale)
{
    return __uint_as_float(min(__float_as_uint(__half2float(scale)) & 0x7f800000u, __float_as_uint(256.0f)));
}

static __device__ __forceinline__ __half tn_scale_rest(__half scale)
{
    constexpr float MOST = 255.875f; // the largest f16 below 2^8
    float inverse = __uint_as_float(0x7f000000u - __float_as_uint(tn_scale_power(scale)));
    return __float2half(fminf(fmaxf(__half2float(scale) * inverse, -MOST), MOST));
}

// Elements [8 i, 8 i + 8) of a row that is not f16. Those of blocks are multiplied by the power of two of
// their scale only.
template <int TYPE> static __device__ __forceinline__ uint4 tn_cache_chunk(const char *row, int i)
{
    if constexpr (TYPE == TN_CUDA_CACHE_F32 || TYPE == TN_CUDA_CACHE_BF16) {
        constexpr float F16_MOST = 65504.0f; // the largest finite f16
        float x[8];
        const uint4 *from = (const uint4 *)(row + i * (TYPE == TN_CUDA_CACHE_F32 ? 32 : 16));
        uint4 w = from[0], u = TYPE == TN_CUDA_CACHE_F32 ? from[1] : w;
        const uint32_t bits[8] = {w.x, w.y, w.z, w.w, u.x, u.y, u.z, u.w};
#pragma unroll
        for (int e = 0; e < 8; e++) {
            x[e] = TYPE == TN_CUDA_CACHE_F32
                       ? __uint_as_float(bits[e])
                       : __uint_as_float(e % 2 ? bits[e / 2] & 0xffff0000u : bits[e / 2] << 16);
            x[e] = fminf(fmaxf(x[e], -F16_MOST), F16_MOST); // an infinity times a weight of 0 would give NaN
        }
        return make_uint4(tn_pack16<false>(x[0], x[1]), tn_pack16<false>(x[2], x[3]),
                          tn_pack16<false>(x[4], x[5]), tn_pack16<false>(x[6], x[7]));
    } else {
        __half2 x[4], d = __float2half2_rn(tn_scale_power(tn_cache_scale<TYPE>(row, i / 4)));
        tn_cache_quants<TYPE>(row + i / 4 * tn_cache_block_bytes<TYPE>(), i % 4, x);
        return make_uint4(tn_half2_bits(__hmul2(x[0], d)), tn_half2_bits(__hmul2(x[1], d)),
                          tn_half2_bits(__hmul2(x[2], d)), tn_half2_bits(__hmul2(x[3], d)));
    }
}

#endif
