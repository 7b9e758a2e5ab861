// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_weights: router logits and chosen experts -> weights (Shazeer et al. 2017), one warp per token.
// moe_sum, moe_combine: y[t] = sum_u w[t, u] x[t, u] + f[t] a[t] + b[t], four columns per thread, blocks of 1024 columns of a token.
// Bytes moved: moe_weights 4 (E + 2 U) per token; moe_sum 4 n (U + 1) per token, and the rows added. Limit: latency; memory for moe_sum in prefill:
// 512 tokens, 8 experts, n 2048 at 2.9 TB/s on an H200, where a launch of 13 us does not fill the device for long.
#include "backends/cuda/moe/moe_args.h"
#include "backends/cuda/quantise.cuh"
#include "backends/cuda/rows.cuh"

#include <tenon/params.h>

struct router_row {
    const float *x;
    const char *ids;
    int64_t ids_nb;
    int n_experts;

    // Logit of the expert chosen as number u; outside the table: -inf.
    __device__ __forceinline__ float chosen(int u) const
    {
        int e = *(const int32_t *)(ids + u * ids_nb);
        return e >= 0 && e < n_experts ? x[e] : -INFINITY;
    }
};

static __device__ __forceinline__ float weight(int gating, float x, float max, float sum)
{
    if (gating == TN_GATING_SIGMOID) return 1.0f / (1.0f + expf(-x));
    return gating == TN_GATING_NONE ? x : expf(x - max) / sum;
}

TN_ENTRY __launch_bounds__(TN_CUDA_MOE_WARPS *TN_WARP) tn_moe_weights(const __grid_constant__ tn_cuda_moe_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t t = blockIdx.x * TN_CUDA_MOE_WARPS + threadIdx.x / TN_WARP;
    int lane = threadIdx.x % TN_WARP, n_used = (int)a.y.ne[3];
    if (t >= a.n_tokens) return;
    router_row row = {(const float *)(a.x.data + t * a.x.nb[2]), a.ids.data + t * a.ids.nb[2], a.ids.nb[3], (int)a.x.ne[3]};
    float max = -INFINITY, sum = 0.0f;
    bool selected = a.gating == TN_GATING_SOFTMAX_SELECTED;
    if (selected || a.gating == TN_GATING_SOFTMAX) {
        int n = selected ? n_used : row.n_experts;
        for (int i = lane; i < n; i += TN_WARP) max = fmaxf(max, selected ? row.chosen(i) : row.x[i]);
        max = tn_warp_max(max);
        for (int i = lane; i < n; i += TN_WARP) sum += expf((selected ? row.chosen(i) : row.x[i]) - max);
        sum = tn_warp_sum(sum);
    }
    float total = 0.0f, scale = a.scale;
    if (a.normalise) {
        for (int u = lane; u < n_used; u += TN_WARP) total += weight(a.gating, row.chosen(u), max, sum);
        scale /= fmaxf(tn_warp_sum(total), 6.103515625e-5f); // 2^-14, smallest normal f16
    }
    float *y = (float *)(a.y.data + t * a.y.nb[2]);
    for (int u = lane; u < n_used; u += TN_WARP) y[u] = weight(a.gating, row.chosen(u), max, sum) * scale;
}

TN_ENTRY __launch_bounds__(TN_CUDA_MOE_THREADS) tn_moe_sum(const __grid_constant__ tn_cuda_moe_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t t = blockIdx.x / a.n_chunks;
    int64_t j = ((int64_t)(blockIdx.x - t * a.n_chunks) * TN_CUDA_MOE_THREADS + threadIdx.x) * 4, n = a.y.ne[3];
    if (j >= n) return;
    const char *x = a.x.data + t * a.x.nb[1], *w = a.w.data + t * a.w.nb[2];
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
    for (int u = 0; u < (int)a.x.ne[2]; u++) {
        float f = *(const float *)(w + u * a.w.nb[3]);
        float4 v = tn_load_floats(x + u * a.x.nb[2], a.x.nb[3], j, n, a.aligned);
        sum.x = fmaf(f, v.x, sum.x), sum.y = fmaf(f, v.y, sum.y);
        sum.z = fmaf(f, v.z, sum.z), sum.w = fmaf(f, v.w, sum.w);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (!a.added[i].data) break;
        float f = i == 0 && a.factor.data ? *(const float *)(a.factor.data + t * a.factor.nb[2]) : 1.0f;
        float4 v = tn_load_floats(a.added[i].data + t * a.added[i].nb[2], a.added[i].nb[3], j, n, a.aligned);
        sum.x = fmaf(f, v.x, sum.x), sum.y = fmaf(f, v.y, sum.y);
        sum.z = fmaf(f, v.z, sum.z), sum.w = fmaf(f, v.w, sum.w);
    }
    tn_store_floats(a.y.data + t * a.y.nb[2], j, n, a.aligned, sum);
    // Rows are multiples of 16 then, so that four lanes are here together.
    if (a.quantised_y.rows) tn_quantised_store4(a.quantised_y, t, (int)j, sum, 15u << (threadIdx.x & 28));
}
