// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the kernels in softmax/: softmax and reduce, top_k, argmax.
#ifndef TN_CUDA_SOFTMAX_ARGS_H
#define TN_CUDA_SOFTMAX_ARGS_H

#include "backends/cuda/runtime/args.h"

enum {
    TN_CUDA_SOFTMAX_RUNS = 4, // of four floats
    TN_CUDA_TOP_K_WARPS = 4,
    TN_CUDA_TOP_K_THREADS = 1024,
    TN_CUDA_MAX_GROUPS = 256,
};

typedef struct tn_cuda_softmax_args {
    tn_cuda_view x, mask, y; // mask without data: none
    float scale;
    int32_t kind; // TN_REDUCE_*
    int32_t aligned;
} tn_cuda_softmax_args;

typedef struct tn_cuda_top_k_args {
    tn_cuda_view x, y;
    const float *bias; // [n] or NULL
    uint32_t n_rows;
    int32_t k, n_groups, n_groups_used;
} tn_cuda_top_k_args;

enum {
    TN_CUDA_ARGMAX_THREADS = 256,
    TN_CUDA_ARGMAX_PART = 16 * TN_CUDA_ARGMAX_THREADS, // elements of a block
    TN_CUDA_ARGMAX_ROWS = 4096,                        // of a launch, where rows have several parts
};

// Best value of a part of a row, and the sum of exp(x - max) over the others of the part.
typedef struct tn_cuda_argmax_part {
    float max, sum;
    int32_t index, pad;
} tn_cuda_argmax_part;

typedef struct tn_cuda_argmax_args {
    tn_cuda_view x;
    tn_cuda_argmax_part *parts; // [rows, n_parts]
    uint32_t n_parts, first_row;
    int32_t aligned;
    int32_t *best;
    float *logprob; // NULL: argmax
} tn_cuda_argmax_args;

#endif
