// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The k largest values of a row in the registers of one warp. Values become integers that order like them,
// element lane + 32 i in register i, and the largest is removed k times. Of equal values the one with the
// lower index comes first. Groups of values are selected before as DeepSeek-V3 (2024), section 2.1.2, selects
// groups of experts.
#ifndef TN_CUDA_TOP_K_CUH
#define TN_CUDA_TOP_K_CUH

#include "backends/cuda/softmax/softmax_args.h"
#include "backends/cuda/common.cuh"

// The integer of a value: integers order like the values. No value gives 0, which marks removed elements.
// Both zeros give the same integer.
static __device__ __forceinline__ uint64_t tn_key_of(double v)
{
    uint64_t u = (uint64_t)__double_as_longlong(v + 0.0);
    return u >> 63 ? ~u : u | 1ull << 63;
}

// The same of a float, in the upper half of the integer alone. NaN counts as -inf.
static __device__ __forceinline__ uint64_t tn_key_of(float v)
{
    uint32_t u = __float_as_uint(v == v ? v + 0.0f : -INFINITY);
    return (uint64_t)(u >> 31 ? ~u : u | 1u << 31) << 32;
}

// The value by which element j is compared: with its bias, if there is one, which plays no other part. The
// sum is a double, because sums rounded to f32 could tie. NaN counts as -inf.
static __device__ __forceinline__ double tn_biased(float v, const float *bias, int j)
{
    double sum = bias ? (double)v + (double)bias[j] : (double)v;
    return sum == sum ? sum : -INFINITY;
}

static __device__ __forceinline__ uint32_t tn_warp_max_u32(uint32_t x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, x);
#else
    for (int i = 16; i > 0; i >>= 1) x = max(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
#endif
}

// Returns the index of the largest key of the warp and removes it. `wide` says that the lower halves of keys
// count too.
template <int R> static __device__ __forceinline__ int tn_extract_max(uint64_t (&key)[R], bool wide)
{
    int lane = threadIdx.x % TN_WARP, at = 0;
    uint64_t best = 0;
#pragma unroll
    for (int r = 0; r < R; r++)
        if (key[r] > best) best = key[r], at = r;
    uint32_t high = tn_warp_max_u32((uint32_t)(best >> 32)), low = 0;
    if (wide) low = tn_warp_max_u32((uint32_t)(best >> 32) == high ? (uint32_t)best : 0);
    bool wins = best == ((uint64_t)high << 32 | low);
    int j = (int)~tn_warp_max_u32(wins ? ~(uint32_t)(at * TN_WARP + lane) : 0);
#pragma unroll
    for (int r = 0; r < R; r++)
        if (j == lane + r * TN_WARP) key[r] = 0;
    return j;
}

// The same for keys whose lower halves are zero, given without them.
template <int R> static __device__ __forceinline__ int tn_extract_max(uint32_t (&key)[R])
{
    uint32_t best = key[0], lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int r = 1; r < R; r++) best = max(best, key[r]);
    best = tn_warp_max_u32(best);
    int j = 0;
#pragma unroll
    for (int r = R - 1; r >= 0; r--) {
        uint32_t lanes = __ballot_sync(0xffffffffu, key[r] == best);
        if (lanes) j = r * TN_WARP + __ffs((int)lanes) - 1;
    }
#pragma unroll
    for (int r = 0; r < R; r++)
        if (j == (int)lane + r * TN_WARP) key[r] = 0;
    return j;
}

// Scratch of a warp for the groups of its row.
struct tn_group_scratch {
    double score[TN_CUDA_MAX_GROUPS];
    bool kept[TN_CUDA_MAX_GROUPS];
};

// Decides which n_used groups of a row of n values are kept: those with the largest sums of their two best
// values. value(j) gives value j as a double. The threads first, first + step, ... that work together meet at
// sync().
template <class Value, class Sync>
static __device__ __forceinline__ void tn_route_groups(int n, int n_groups, int n_used, int first, int step,
                                                       double *score, bool *kept, Value value, Sync sync)
{
    int size = n / n_groups;
    for (int g = first; g < n_groups; g += step) {
        double best = -INFINITY, second = -INFINITY;
        for (int j = g * size; j < (g + 1) * size; j++) {
            double v = value(j);
            if (v > best) second = best, best = v;
            else if (v > second) second = v;
        }
        score[g] = size > 1 ? best + second : best;
    }
    sync();
    for (int g = first; g < n_groups; g += step) {
        int ahead = 0;
        for (int i = 0; i < n_groups; i++) ahead += score[i] > score[g] || (score[i] == score[g] && i < g);
        kept[g] = ahead < n_used;
    }
    sync();
}

#endif
