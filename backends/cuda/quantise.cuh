// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations as int8, 16 elements to a scale d = max|x| / 127: by the products that read them, or by the kernel
// that makes them (tn_cuda_quantised of args.h). A group with a value that is no number gets d = NaN, so the results are none either.
#ifndef TN_CUDA_QUANTISE_CUH
#define TN_CUDA_QUANTISE_CUH

#include "backends/cuda/common.cuh"

// What a group is divided by and the d that is stored, from the bits of its largest magnitude.
struct tn_round_scale {
    float inverse, d; // inverse 0: all q are 0, for what is no number too
};

static __device__ __forceinline__ tn_round_scale tn_round_scale_of(uint32_t top)
{
    float most = __uint_as_float(top);
    bool odd = top >= 0x7f800000u, none = odd || most < 1e-35f;
    return {none ? 0.0f : 127.0f / most, odd ? __uint_as_float(0x7fc00000u) : none ? 0.0f : most / 127.0f};
}

static __device__ __forceinline__ uint32_t tn_magnitude(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

static __device__ __forceinline__ uint32_t tn_top4(const float4 &v)
{
    return max(max(tn_magnitude(v.x), tn_magnitude(v.y)), max(tn_magnitude(v.z), tn_magnitude(v.w)));
}

static __device__ __forceinline__ int tn_round1(float x, const tn_round_scale &s)
{
    return __float2int_rn(__fmul_rn(x, s.inverse));
}

// Four values as the bytes of a word.
static __device__ __forceinline__ int tn_round4(const float4 &v, const tn_round_scale &s)
{
    int a = tn_round1(v.x, s), b = tn_round1(v.y, s), c = tn_round1(v.z, s), d = tn_round1(v.w, s);
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// Elements j .. j + 3 of row `row`, j a multiple of 4; four lanes in sequence, `lanes` of the warp, have a whole group.
static __device__ __forceinline__ void tn_quantised_store4(const tn_cuda_quantised &r, int64_t row, int j, float4 v, uint32_t lanes)
{
    char *to = r.rows + row * r.row_size;
    float squares = v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w);
    if (r.norm) v.x *= __ldg(r.norm + j), v.y *= __ldg(r.norm + j + 1), v.z *= __ldg(r.norm + j + 2), v.w *= __ldg(r.norm + j + 3);
    uint32_t top = tn_top4(v);
#pragma unroll
    for (int i = 1; i < 4; i *= 2) top = max(top, __shfl_xor_sync(lanes, top, i));
    tn_round_scale s = tn_round_scale_of(top);
    int q = tn_round4(v, s), sum = __dp4a(q, 0x01010101, 0);
    *(int *)(to + j) = q;
    sum += __shfl_xor_sync(lanes, sum, 1);
    sum += __shfl_xor_sync(lanes, sum, 2);
    if (j % 16 == 0) *(short *)(to + TN_QUANTISED_SUM(r.k) + j / 16 * 2) = (short)sum;
    if (j % 16 == 0) *(float *)(to + TN_QUANTISED_D(r.k) + j / 16 * 4) = s.d;
    if (!r.norm) return;
#pragma unroll
    for (int i = 1; i < 4; i *= 2) squares += __shfl_xor_sync(lanes, squares, i);
    if (j % 16 == 0) *(float *)(to + TN_QUANTISED_SQUARES(r.k) + j / 16 * 4) = squares;
}

// Element j of row `row`: half a warp has a group; the other half may be elsewhere. `norm` is the reader's weight of the element, 1 if there is none.
static __device__ __forceinline__ void tn_quantised_store1(const tn_cuda_quantised &r, int64_t row, int j, float x, float norm)
{
    char *to = r.rows + row * r.row_size;
    float v = x * norm, squares = x * x;
    uint32_t top = tn_magnitude(v), lanes = 0xffffu << (threadIdx.x & 16);
#pragma unroll
    for (int i = 8; i > 0; i >>= 1) top = max(top, __shfl_xor_sync(lanes, top, i));
    tn_round_scale s = tn_round_scale_of(top);
    int q = tn_round1(v, s), sum = q;
    to[j] = (char)q;
#pragma unroll
    for (int i = 1; i < 16; i *= 2) sum += __shfl_xor_sync(lanes, sum, i);
    if (j % 16 == 0) *(short *)(to + TN_QUANTISED_SUM(r.k) + j / 16 * 2) = (short)sum;
    if (j % 16 == 0) *(float *)(to + TN_QUANTISED_D(r.k) + j / 16 * 4) = s.d;
    if (!r.norm) return;
#pragma unroll
    for (int i = 8; i > 0; i >>= 1) squares += __shfl_xor_sync(lanes, squares, i);
    if (j % 16 == 0) *(float *)(to + TN_QUANTISED_SQUARES(r.k) + j / 16 * 4) = squares;
}

#endif
