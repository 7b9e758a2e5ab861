// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels for wide heads share: the results of splits of the keys, [n_splits, T, H, Dv] and behind
// them [n_splits, T, H, 2], the maximum of the scores, an exponent of 2, and the sum of the weights.
#ifndef TN_CUDA_ATTENTION_WIDE_CUH
#define TN_CUDA_ATTENTION_WIDE_CUH

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/attention/mma_attention.cuh"

// Weights are scaled to at most 2^WEIGHT_SHIFT, so that small ones keep their bits in f16.
#define WEIGHT_SHIFT 8.0f

static __device__ __forceinline__ float2 *partial_ends(const tn_cuda_attention_args &a)
{
    return (float2 *)(a.partial + (int64_t)a.n_splits * a.n_tokens * a.n_heads * a.v.dim);
}

// The factor that makes a result of a weighted sum, given the maximum of its scores and the sum of its
// weights, which is times 2^WEIGHT_SHIFT.
static __device__ __forceinline__ float final_factor(const tn_cuda_attention_args &a, int head, float max,
                                                     float sum)
{
    float keep = 1.0f;
    if (a.sinks) {
        float sink = a.sinks[head] * TN_LOG2E, top = fmaxf(max, sink);
        keep = max > -INFINITY ? tn_exp2(max - top) : 0.0f;
        sum = sum * keep + (top > -INFINITY ? tn_exp2(sink - top + WEIGHT_SHIFT) : 0.0f);
    }
    return sum > 0.0f ? keep / sum : 0.0f;
}

#endif
