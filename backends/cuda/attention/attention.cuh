// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the attention kernels share: which keys a query sees, ALiBi slopes, and where the rows of a cache lie.
#ifndef TN_CUDA_ATTENTION_CUH
#define TN_CUDA_ATTENTION_CUH

#include "backends/cuda/attention/attention_args.h"
#include "backends/cuda/common.cuh"

#define TN_LOG2E 1.4426950408889634f

// The sequence that token t belongs to, which is the last one that starts at or before t; n_seq if there is
// none.
static __device__ __forceinline__ int tn_attention_seq(const tn_cuda_attention_args &a, int t)
{
    int lo = 0, hi = a.n_seq; // q_start[lo] <= t < q_start[hi]
    if (t >= a.q_start[a.n_seq]) return a.n_seq;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (a.q_start[mid] <= t) lo = mid;
        else hi = mid;
    }
    return lo;
}

// The keys [lo, hi) that the query at `position` may see under the causal mask, the window and the chunks.
static __device__ __forceinline__ void tn_attention_range(const tn_cuda_attention_args &a, int position,
                                                          int kv_len, int *lo, int *hi)
{
    *lo = 0;
    *hi = kv_len;
    if (a.causal) *hi = min(kv_len, position + 1);
    if (a.window > 0) *lo = max(*lo, position - a.window + 1);
    if (a.chunk > 0) *lo = max(*lo, position / a.chunk * a.chunk);
}

// The slope of ALiBi for a head (Press et al. 2021, section 3), generalised to head counts that are no power
// of two; 0 without ALiBi.
static __device__ __forceinline__ float tn_attention_slope(const tn_cuda_attention_args &a, int head)
{
    if (a.max_bias <= 0.0f) return 0.0f;
    int n2 = 1;
    while (n2 * 2 <= a.n_heads) n2 *= 2;
    if (head < n2) return exp2f(-a.max_bias / (float)n2 * (float)(head + 1));
    return exp2f(-a.max_bias / (2.0f * (float)n2) * (float)(2 * (head - n2) + 1));
}

// The scaled score s after the softcap and the bias of ALiBi for this distance of query and key.
static __device__ __forceinline__ float tn_attention_bias(const tn_cuda_attention_args &a, float s,
                                                          float slope, int distance)
{
    if (a.softcap > 0.0f) s = a.softcap * tanhf(s / a.softcap);
    return s - slope * (float)abs(distance);
}

// Row `index` of a page, for one KV head.
static __device__ __forceinline__ const char *tn_cache_row(const tn_cuda_cache &c, int64_t page, int head,
                                                           int index)
{
    return c.data + page * c.block_size + (int64_t)head * c.head_size + (int64_t)index * c.row_size;
}

// Bytes of a block of 32 elements: an f16 scale and the codes.
template <int TYPE> static __device__ __forceinline__ constexpr int tn_cache_block_bytes()
{
    return TYPE == TN_CUDA_CACHE_Q8_0 ? 2 + 32 : 2 + 16;
}

// One element of a row, which needs no more alignment than its type does.
template <int TYPE> static __device__ __forceinline__ float tn_cache_get(const char *row, int d)
{
    if (TYPE == TN_CUDA_CACHE_F32) return ((const float *)row)[d];
    if (TYPE == TN_CUDA_CACHE_F16) return __half2float(((const __half *)row)[d]);
    if (TYPE == TN_CUDA_CACHE_BF16) return __bfloat162float(((const __nv_bfloat16 *)row)[d]);
    int i = d % 32;
    const char *b = row + d / 32 * tn_cache_block_bytes<TYPE>();
    float scale = __half2float(*(const __half *)b);
    if (TYPE == TN_CUDA_CACHE_Q8_0) return scale * (float)((const int8_t *)b)[2 + i];
    int byte = ((const uint8_t *)b)[2 + i % 16];
    return scale * (float)((i < 16 ? byte & 15 : byte >> 4) - 8);
}

#endif
