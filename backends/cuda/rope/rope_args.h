// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of rope/rope.cu and rope/cache_write.cu.
#ifndef TN_CUDA_ROPE_ARGS_H
#define TN_CUDA_ROPE_ARGS_H

#include "backends/cuda/runtime/args.h"

// A warp holds a head: pairs of a lane in registers, rotated pairs of a head.
enum { TN_CUDA_ROPE_LANE_PAIRS = 16, TN_CUDA_ROPE_PAIRS = 256, TN_CUDA_ROPE_WARPS = 4 };

typedef struct tn_cuda_rope_args {
    tn_cuda_view x, y;    // [1, T, H, D]
    const int32_t *pos;   // [T]
    const float *weight;  // [D], of the norm
    const float *factors; // [n_rot / 2] or NULL
    float eps, scale;     // scale of cos and sin
    int32_t neox, n_rot, heads; // heads of a warp
    double half_turns[TN_CUDA_ROPE_PAIRS]; // angle of each pair at position 1, over pi
} tn_cuda_rope_args;

typedef struct tn_cuda_cache_write_args {
    tn_cuda_view cache, x; // [n_blocks, KV, B, D], [1, T, KV, D]
    const int32_t *slots;  // [T]
    int32_t type;          // TN_TYPE_*
    uint32_t n_rows;       // T * KV
} tn_cuda_cache_write_args;

#endif
