// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of moe/moe.cu and moe/moe_route.cu.
#ifndef TN_CUDA_MOE_ARGS_H
#define TN_CUDA_MOE_ARGS_H

#include "backends/cuda/runtime/args.h"

enum {
    TN_CUDA_MOE_WARPS = 4,
    TN_CUDA_MOE_THREADS = 256,
    TN_CUDA_ROUTE_TOKENS = 16, // whose router is multiplied in the same kernel
    TN_CUDA_ROUTE_THREADS = 256,
};

typedef struct tn_cuda_moe_args {
    tn_cuda_view x, ids, w, y; // moe_weights: x [T, E], ids [T, U]; moe_sum: x [T, U, n], w [T, U]
    uint32_t n_tokens, n_chunks;
    int32_t gating, normalise;
    float scale;
    tn_cuda_view added[2], factor; // moe_combine: [T, n], [T, 1]; without data: none
    tn_cuda_quantised quantised_y;
} tn_cuda_moe_args;

// How logits become experts and their weights.
typedef struct tn_cuda_expert_route {
    int32_t *ids;      // [T, k]
    float *weights;    // [T, k]
    int64_t ids_stride, weights_stride; // elements, from one token to the next
    const float *bias; // added to the scores by which experts are ranked; NULL: none
    int32_t n_experts, k, n_groups, n_groups_used;
    int32_t choice, gating, normalise; // TN_GATING_*
    float scale;
} tn_cuda_expert_route;

typedef struct tn_cuda_route_args {
    tn_cuda_view x, normed; // x: rows [T, n], or logits [T, E]
    const float *w, *norm, *bias; // w [E, n]; each but w may be NULL
    float *logits; // [T, E], scratch of rows
    uint32_t n_tokens;
    int32_t defers_route;
    float eps;
    tn_cuda_expert_route choice;
    tn_cuda_quantised quantised_y; // of normed
} tn_cuda_route_args;

#endif
