// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations as int8 with one scale d = max|x| / 127 for each group of 16 elements: x is close to d * q.
// GEMV kernels quantise rows of x themselves, or the kernel that computes the row stores it quantised for
// them (tn_cuda_quantised in runtime/args.h), which saves them the pass over f32.
//
// A group that holds NaN or infinity gets d = NaN, so every result that depends on it is NaN too. For a
// reader that applies a norm, the values are multiplied by the norm's weight before quantisation, and the sum
// of squares of each group is stored beside them.
//
// A lane holds 4 elements or 1 of a group, so a group takes 4 lanes or half a warp, and the maximum and the
// sums are reduced by shuffles. Bytes: 1.375 for an element (q, a 16-bit sum and a 32-bit scale for 16),
// 1.625 with squares. The cost is the latency of the shuffles, which was not measured alone.
#ifndef TN_CUDA_QUANTISE_CUH
#define TN_CUDA_QUANTISE_CUH

#include "backends/cuda/common.cuh"

// The factor that a group is multiplied by and the scale d that is stored.
struct tn_quantise_scale {
    // An inverse of 0 makes all q 0. That is so for a group of zeros and for one that holds NaN or infinity.
    float inverse, d;
};

static __device__ __forceinline__ tn_quantise_scale tn_quantise_scale_of(uint32_t largest_bits)
{
    float largest = __uint_as_float(largest_bits);
    bool not_finite = largest_bits >= 0x7f800000u, all_zero = not_finite || largest < 1e-35f;
    return {all_zero ? 0.0f : 127.0f / largest, not_finite ? __uint_as_float(0x7fc00000u)
                                                : all_zero ? 0.0f
                                                           : largest / 127.0f};
}

static __device__ __forceinline__ uint32_t tn_magnitude_bits(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

static __device__ __forceinline__ uint32_t tn_max_magnitude4(const float4 &v)
{
    return max(max(tn_magnitude_bits(v.x), tn_magnitude_bits(v.y)),
               max(tn_magnitude_bits(v.z), tn_magnitude_bits(v.w)));
}

static __device__ __forceinline__ int tn_quantise1(float x, const tn_quantise_scale &s)
{
    return __float2int_rn(__fmul_rn(x, s.inverse));
}

// Four values as the bytes of a word.
static __device__ __forceinline__ int tn_quantise4(const float4 &v, const tn_quantise_scale &s)
{
    int a = tn_quantise1(v.x, s), b = tn_quantise1(v.y, s), c = tn_quantise1(v.z, s),
        d = tn_quantise1(v.w, s);
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// Stores elements j to j + 3 of row `row` (j is a multiple of 4). Four lanes in sequence hold a whole group
// of 16, and `lanes` is the mask of the lanes of the warp that call this.
static __device__ __forceinline__ void tn_quantised_store4(const tn_cuda_quantised &r, int64_t row, int j,
                                                           float4 v, uint32_t lanes)
{
    char *to = r.rows + row * r.row_size;
    float squares = v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w);
    if (r.norm)
        v.x *= __ldg(r.norm + j), v.y *= __ldg(r.norm + j + 1), v.z *= __ldg(r.norm + j + 2),
            v.w *= __ldg(r.norm + j + 3);
    uint32_t largest_bits = tn_max_magnitude4(v);
#pragma unroll
    for (int i = 1; i < 4; i *= 2) largest_bits = max(largest_bits, __shfl_xor_sync(lanes, largest_bits, i));
    tn_quantise_scale s = tn_quantise_scale_of(largest_bits);
    int q = tn_quantise4(v, s), sum = __dp4a(q, 0x01010101, 0);
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

// Stores element j of row `row`. Half a warp holds a group of 16; the other half may have taken another
// branch. `norm` is the element of the norm weight that the reader of the row applies, 1 if it has none.
static __device__ __forceinline__ void tn_quantised_store1(const tn_cuda_quantised &r, int64_t row, int j,
                                                           float x, float norm)
{
    char *to = r.rows + row * r.row_size;
    float v = x * norm, squares = x * x;
    uint32_t largest_bits = tn_magnitude_bits(v), lanes = 0xffffu << (threadIdx.x & 16);
#pragma unroll
    for (int i = 8; i > 0; i >>= 1) largest_bits = max(largest_bits, __shfl_xor_sync(lanes, largest_bits, i));
    tn_quantise_scale s = tn_quantise_scale_of(largest_bits);
    int q = tn_quantise1(v, s), sum = q;
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
