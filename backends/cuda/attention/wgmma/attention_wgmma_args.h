// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_CUDA_ATTENTION_WGMMA_ARGS_H
#define TN_CUDA_ATTENTION_WGMMA_ARGS_H

#include "backends/cuda/attention/attention_args.h"

// `partial` of the arguments has `n_slots` results of parts, laid out as they are in registers:
// [warp][element / 2][lane][4], the last row with maxima and sums.
typedef struct tn_cuda_attention_wgmma_args {
    tn_cuda_attention_mapped mapped;
    int32_t early;   // no step of the program writes lengths and tables
    float part_cost; // of a part, besides its own, in tiles of keys
} tn_cuda_attention_wgmma_args;

// Tiles of keys that a part of the keys of a row tile has at least, and parts of all row tiles of a launch at
// most.
enum { TN_CUDA_ATTENTION_WGMMA_PART = 4, TN_CUDA_ATTENTION_WGMMA_SLOTS = 512 };

#endif
