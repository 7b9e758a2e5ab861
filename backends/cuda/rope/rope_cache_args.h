// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of rope/rope_cache.cu, and of the attention kernel that fuses it.
#ifndef TN_CUDA_ROPE_CACHE_ARGS_H
#define TN_CUDA_ROPE_CACHE_ARGS_H

#include "backends/cuda/runtime/args.h"

enum { TN_CUDA_MAX_PAIRS = 128, TN_CUDA_ROPE_CACHE_HEAD = 512 };
// Of tn_rope_cache_token: threads of a block at most, and rows that a lane has a part of at a time.
enum { TN_CUDA_ROPE_TOKEN_THREADS = 256, TN_CUDA_ROPE_ROWS = 3 };

typedef struct tn_cuda_rope_cache_args {
    tn_cuda_view q, k, v; // [1, T, heads, D] f32
    tn_cuda_view out;     // rotated q
    int32_t out_type;     // of its elements: TN_TYPE_F32, or F16 or BF16 (tn_rope_cache_token only)
    char *cache[2];       // of k, of v: [n_blocks, KV, B, D]
    int64_t cache_nb[2][3];
    int32_t cache_type[2], cache_row[2]; // elements of a row
    int32_t block, n_slots;              // tokens of a cache block, of all blocks
    const char *pos, *slots;             // I32
    int64_t pos_nb, slots_nb;
    const float *norm[2]; // weights [D] of q and k, NULL: no norm
    const float *factors; // [n_rot / 2] or NULL
    float eps, m;         // m scales cos and sin
    int32_t neox, n_rot;
    int32_t pairs;                        // pairs are adjacent, and aligned to 8 bytes
    int32_t heads;                        // of a warp
    double half_turns[TN_CUDA_MAX_PAIRS]; // angle of each pair at position 1, over pi
} tn_cuda_rope_cache_args;

#endif
