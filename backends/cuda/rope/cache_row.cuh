// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One warp writes one row of a cache: F32, F16, BF16, or blocks of Q8_0 and Q4_0 with the same bits as the
// encoders of ops/quant/quant_legacy.c write. For that, multiplications and additions are kept apart as they
// are there.
#ifndef TN_CUDA_CACHE_ROW_CUH
#define TN_CUDA_CACHE_ROW_CUH

#include "backends/cuda/common.cuh"

#include <tenon/base.h>

// Bytes of a block of 32 elements: an f16 scale and the codes.
enum { TN_Q8_0_BLOCK = 2 + 32, TN_Q4_0_BLOCK = 2 + 16 };

// One block of Q8_0; lane l has element l.
static __device__ __forceinline__ void tn_write_q8_0(char *block, float x, int lane)
{
    float d = __fdiv_rn(tn_warp_max(fabsf(x)), 127.0f); // fmaxf ignores NaN
    float id = d != 0.0f ? __fdiv_rn(1.0f, d) : 0.0f;
    float v = __fmul_rn(x, id);
    v = v > -127.0f ? v : -127.0f; // NaN becomes the smallest code
    v = v < 127.0f ? v : 127.0f;
    int q = (int)v;
    float rest = v - (float)q; // exact; ties are rounded away from zero
    q += (rest >= 0.5f) - (rest <= -0.5f);
    block[2 + lane] = (char)q;
    if (lane == 0) *(__half *)block = __float2half_rn(d);
}

// One block of Q4_0; lane l has element l.
static __device__ __forceinline__ void tn_write_q4_0(char *block, float x, int lane)
{
    float a = fabsf(x);
    if (!(a >= 0.0f)) a = 0.0f;
    float amax = tn_warp_max(a);
    unsigned lanes = __ballot_sync(0xffffffffu, a == amax);
    float largest = __shfl_sync(0xffffffffu, x, __ffs(lanes) - 1); // the first one, with its sign
    if (amax == 0.0f) largest = 0.0f;
    float d = __fdiv_rn(largest, -8.0f), id = d != 0.0f ? __fdiv_rn(1.0f, d) : 0.0f;
    float v = __fadd_rn(__fmul_rn(x, id), 8.5f);
    v = v > 0.0f ? v : 0.0f;
    int q = (int)(v < 15.0f ? v : 15.0f);
    int high = __shfl_down_sync(0xffffffffu, q, 16);
    if (lane < 16) block[2 + lane] = (char)(q | high << 4);
    if (lane == 0) *(__half *)block = __float2half_rn(d);
}

// A row of F16 or BF16, four elements at a time; both rows are aligned and n is a multiple of four.
static __device__ __forceinline__ void tn_write_cache_quads(char *out, int type, const float *row, int n,
                                                            int lane)
{
    for (int j = 4 * lane; j < n; j += 4 * TN_WARP) {
        float4 v = *(const float4 *)(row + j);
        uint2 bits;
        if (type == TN_TYPE_F16) {
            __half2 a = __floats2half2_rn(v.x, v.y), b = __floats2half2_rn(v.z, v.w);
            bits = make_uint2(*(const uint32_t *)&a, *(const uint32_t *)&b);
        } else {
            __nv_bfloat162 a = __floats2bfloat162_rn(v.x, v.y), b = __floats2bfloat162_rn(v.z, v.w);
            bits = make_uint2(*(const uint32_t *)&a, *(const uint32_t *)&b);
        }
        *(uint2 *)(out + 2 * j) = bits;
    }
}

// Writes a row of n_out elements: the n floats of `row`, which lies in global memory or in shared memory that
// all lanes of this warp see, and zeros behind them.
static __device__ __forceinline__ void tn_write_cache_row(char *out, int type, int n_out, const float *row,
                                                          int n, int lane)
{
    bool quads = (type == TN_TYPE_F16 || type == TN_TYPE_BF16) && n == n_out && n % 4 == 0 &&
                 (uintptr_t)row % 16 == 0 && (uintptr_t)out % 8 == 0;
    if (quads) {
        tn_write_cache_quads(out, type, row, n, lane);
        return;
    }
    // For block types n_out is a multiple of 32, so the warp stays together.
    for (int j = lane; j < n_out; j += TN_WARP) {
        float x = j < n ? row[j] : 0.0f;
        if (type == TN_TYPE_F32) ((float *)out)[j] = x;
        else if (type == TN_TYPE_F16) ((__half *)out)[j] = __float2half_rn(x);
        else if (type == TN_TYPE_BF16) ((__nv_bfloat16 *)out)[j] = __float2bfloat16_rn(x);
        else if (type == TN_TYPE_Q8_0) tn_write_q8_0(out + j / 32 * TN_Q8_0_BLOCK, x, lane);
        else tn_write_q4_0(out + j / 32 * TN_Q4_0_BLOCK, x, lane);
    }
}

#endif
