// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// From the logits of a token to the experts that are selected for it and their weights, by one warp.
#ifndef TN_CUDA_MOE_ROUTE_CUH
#define TN_CUDA_MOE_ROUTE_CUH

#include "backends/cuda/moe/moe_args.h"
#include "backends/cuda/softmax/top_k.cuh"

#include <tenon/params.h>

// The score by which experts are compared, from a logit.
struct tn_route_score {
    int kind; // TN_GATING_*
    float max, sum;

    __device__ __forceinline__ float of(float x) const
    {
        if (kind == TN_GATING_SIGMOID) return 1.0f / (1.0f + expf(-x));
        return kind == TN_GATING_SOFTMAX ? expf(x - max) / sum : x;
    }
};

// Sums of weights below this are not divided by: 2^-14, the smallest normal f16.
static constexpr float TN_LEAST_WEIGHT_SUM = 6.103515625e-5f;

// The weight of an expert with logit x, given the maximum and the sum of exponentials of the softmax.
static __device__ __forceinline__ float tn_gate(int gating, float x, float max, float sum)
{
    if (gating == TN_GATING_SIGMOID) return 1.0f / (1.0f + expf(-x));
    return gating == TN_GATING_NONE ? x : expf(x - max) / sum;
}

// Lane u computes the weight of the u-th selected expert, whose logit is x. Called by a whole warp.
static __device__ __forceinline__ float tn_expert_weight(const tn_cuda_expert_route &a, int u, float x,
                                                         float max, float sum)
{
    bool mine = u < a.k;
    if (a.gating == TN_GATING_SOFTMAX_SELECTED) {
        max = tn_warp_max(mine ? x : -INFINITY);
        sum = tn_warp_sum(mine ? expf(x - max) : 0.0f);
    }
    float w = mine ? tn_gate(a.gating, x, max, sum) : 0.0f;
    if (!a.normalise) return w * a.scale;
    return w * (a.scale / fmaxf(tn_warp_sum(w), TN_LEAST_WEIGHT_SUM));
}

// Selects the experts of token t, whose logits logit(j) gives, with a whole warp; lane u returns the u-th
// selected expert. `writes` says whether ids and weights are stored too. PLAIN excludes groups, which need
// the scratch `shared`, and a bias.
template <int R, bool PLAIN, class Logit>
static __device__ __forceinline__ int tn_route_experts(const tn_cuda_expert_route &a, uint32_t t, bool writes,
                                                       tn_group_scratch *shared, Logit logit)
{
    int lane = threadIdx.x % TN_WARP, n = a.n_experts, mine = 0;
    float x[R], max = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < R; i++) x[i] = lane + i * TN_WARP < n ? logit(lane + i * TN_WARP) : -INFINITY;
    if (a.choice == TN_GATING_SOFTMAX || a.gating == TN_GATING_SOFTMAX) {
#pragma unroll
        for (int i = 0; i < R; i++) max = fmaxf(max, x[i]);
        max = tn_warp_max(max);
#pragma unroll
        for (int i = 0; i < R; i++)
            if (lane + i * TN_WARP < n) sum += expf(x[i] - max);
        sum = tn_warp_sum(sum);
    }
    tn_route_score score = {a.choice, max, sum};
    const float *bias = PLAIN ? nullptr : a.bias;
    if (!PLAIN && a.n_groups > 1)
        tn_route_groups(n, a.n_groups, a.n_groups_used, lane, TN_WARP, shared->score, shared->kept,
                         [&](int j) { return tn_biased(score.of(logit(j)), bias, j); }, [] { __syncwarp(); });
    uint64_t key[R];
    uint32_t high[R]; // of the keys, if that is all of them
#pragma unroll
    for (int i = 0; i < R; i++) {
        int j = lane + i * TN_WARP;
        key[i] = 0, high[i] = 0;
        if (j >= n || (!PLAIN && a.n_groups > 1 && !shared->kept[j / (n / a.n_groups)])) continue;
        float s = score.of(x[i]);
        key[i] = bias ? tn_key_of(tn_biased(s, bias, j)) : tn_key_of(s);
        high[i] = (uint32_t)(key[i] >> 32);
    }
#pragma unroll 1
    for (int i = 0; i < a.k; i++) {
        int j = bias ? tn_extract_max<R>(key, true) : tn_extract_max<R>(high);
        if (lane == i) mine = j;
    }
    if (!writes) return mine;
    float my_logit = 0.0f;
#pragma unroll
    for (int r = 0; r < R; r++) {
        float v = __shfl_sync(0xffffffffu, x[r], mine % TN_WARP);
        if (mine / TN_WARP == r) my_logit = v;
    }
    float w = tn_expert_weight(a, lane, my_logit, max, sum);
    if (lane < a.k) a.ids[t * a.ids_stride + lane] = mine, a.weights[t * a.weights_stride + lane] = w;
    return mine;
}

#endif
