// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_weights: router logits and selected experts -> the weights of the experts (Shazeer et al. 2017).
// moe_sum, moe_combine: y[t] = sum_u w[t, u] x[t, u] + f[t] a[t] + b[t], where f, a and b are optional
// (moe_combine).
//
// moe_weights has one warp per token. The sums have four columns per thread and blocks of 1024 columns of a
// token. Bytes moved: moe_weights 4 (E + 2 U) per token for E experts of which U are used; moe_sum 4 n (U +
// 1) per token, and the rows a and b. Limit: latency; memory for moe_sum in prefill. NVIDIA H200, 2026-11-21:
// 512 tokens, 8 experts and n 2048 reach 2.9 TB/s; a launch of 13 us does not fill the device for long.
#include "backends/cuda/moe/moe_args.h"
#include "backends/cuda/quantise.cuh"
#include "backends/cuda/rows.cuh"

#include <tenon/params.h>

// The logits of a token and the ids of its selected experts.
struct router_row {
    const float *x;
    const char *ids;
    int64_t ids_nb;
    int n_experts;

    // The logit of the u-th selected expert; -inf if its id is outside the table.
    __device__ __forceinline__ float selected(int u) const
    {
        int e = *(const int32_t *)(ids + u * ids_nb);
        return e >= 0 && e < n_experts ? x[e] : -INFINITY;
    }
};

// Sums of weights below this are not divided by: 2^-14, the smallest normal f16.
static constexpr float LEAST_SUM = 6.103515625e-5f;

// The weight of an expert with logit x, given the maximum and the sum of exponentials of the softmax.
static __device__ __forceinline__ float weight(int gating, float x, float max, float sum)
{
    if (gating == TN_GATING_SIGMOID) return 1.0f / (1.0f + expf(-x));
    return gating == TN_GATING_NONE ? x : expf(x - max) / sum;
}

TN_ENTRY __launch_bounds__(TN_CUDA_MOE_WARPS *TN_WARP)
    tn_moe_weights(const __grid_constant__ tn_cuda_moe_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t t = blockIdx.x * TN_CUDA_MOE_WARPS + threadIdx.x / TN_WARP;
    int lane = threadIdx.x % TN_WARP, n_used = (int)a.y.ne[3];
    if (t >= a.n_tokens) return;
    router_row row = {(const float *)(a.x.data + t * a.x.nb[2]), a.ids.data + t * a.ids.nb[2], a.ids.nb[3],
                      (int)a.x.ne[3]};
    float max = -INFINITY, sum = 0.0f;
    bool only_selected = a.gating == TN_GATING_SOFTMAX_SELECTED;
    if (only_selected || a.gating == TN_GATING_SOFTMAX) {
        int n = only_selected ? n_used : row.n_experts;
        for (int i = lane; i < n; i += TN_WARP) max = fmaxf(max, only_selected ? row.selected(i) : row.x[i]);
        max = tn_warp_max(max);
        for (int i = lane; i < n; i += TN_WARP)
            sum += expf((only_selected ? row.selected(i) : row.x[i]) - max);
        sum = tn_warp_sum(sum);
    }
    float total = 0.0f, scale = a.scale;
    if (a.normalise) {
        for (int u = lane; u < n_used; u += TN_WARP) total += weight(a.gating, row.selected(u), max, sum);
        scale /= fmaxf(tn_warp_sum(total), LEAST_SUM);
    }
    float *y = (float *)(a.y.data + t * a.y.nb[2]);
    for (int u = lane; u < n_used; u += TN_WARP) y[u] = weight(a.gating, row.selected(u), max, sum) * scale;
}

enum { SUM_BATCH = 8 }; // experts of a token whose rows are read at a time

// Elements j to j + 3 of a row. ALIGNED: there are four, at a multiple of 16 bytes; loads have no branches
// then.
template <bool ALIGNED>
static __device__ __forceinline__ float4 sum_load(const char *row, int64_t nb, int64_t j, int64_t n)
{
    return ALIGNED ? *(const float4 *)(row + 4 * j) : tn_load_floats(row, nb, j, n, false);
}

static __device__ __forceinline__ void sum_add(float4 &sum, float f, float4 v)
{
    sum.x = fmaf(f, v.x, sum.x), sum.y = fmaf(f, v.y, sum.y);
    sum.z = fmaf(f, v.z, sum.z), sum.w = fmaf(f, v.w, sum.w);
}

template <bool ALIGNED> static __device__ __forceinline__ void moe_sum(const tn_cuda_moe_args &a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t t = blockIdx.x / a.n_chunks;
    int64_t j = ((int64_t)(blockIdx.x - t * a.n_chunks) * TN_CUDA_MOE_THREADS + threadIdx.x) * 4,
            n = a.y.ne[3];
    if (j >= n) return;
    const char *x = a.x.data + t * a.x.nb[1], *w = a.w.data + t * a.w.nb[2];
    int n_used = (int)a.x.ne[2];
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    float4 added[2];
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (a.added[i].data)
            added[i] = sum_load<ALIGNED>(a.added[i].data + t * a.added[i].nb[2], a.added[i].nb[3], j, n);
#pragma unroll 1
    for (int u0 = 0; u0 < n_used; u0 += SUM_BATCH) {
        float4 v[SUM_BATCH];
        float f[SUM_BATCH];
#pragma unroll
        for (int i = 0; i < SUM_BATCH; i++) {
            if (u0 + i >= n_used) continue;
            v[i] = sum_load<ALIGNED>(x + (u0 + i) * a.x.nb[2], a.x.nb[3], j, n);
            f[i] = *(const float *)(w + (u0 + i) * a.w.nb[3]);
        }
#pragma unroll
        for (int i = 0; i < SUM_BATCH; i++)
            if (u0 + i < n_used) sum_add(sum, f[i], v[i]);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (!a.added[i].data) break;
        float f = i == 0 && a.factor.data ? *(const float *)(a.factor.data + t * a.factor.nb[2]) : 1.0f;
        sum_add(sum, f, added[i]);
    }
    tn_store_floats(a.y.data + t * a.y.nb[2], j, n, ALIGNED, sum);
    // Rows that are quantised are multiples of 16 elements, so the four lanes of a group are all here.
    if (a.quantised_y.rows) tn_quantised_store4(a.quantised_y, t, (int)j, sum, 15u << (threadIdx.x & 28));
}

TN_ENTRY __launch_bounds__(TN_CUDA_MOE_THREADS) tn_moe_sum_aligned(const __grid_constant__ tn_cuda_moe_args a)
{
    moe_sum<true>(a);
}

TN_ENTRY __launch_bounds__(TN_CUDA_MOE_THREADS) tn_moe_sum_any(const __grid_constant__ tn_cuda_moe_args a)
{
    moe_sum<false>(a);
}
