// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the products with few columns (product/narrow/narrow.cu).
#ifndef TN_CUDA_NARROW_ARGS_H
#define TN_CUDA_NARROW_ARGS_H

#include "backends/cuda/runtime/args.h"

enum {
    TN_NARROW_ROWS = 32,    // of x, and of y, of a block
    TN_NARROW_COLUMNS = 32, // of y, of a block
    TN_NARROW_WARPS = 8,
    TN_NARROW_K = 16, // elements of k of one step of a warp
    TN_NARROW_MAX_SPLITS = 8,
};

typedef struct tn_cuda_narrow_args {
    tn_cuda_view x;    // rows of k
    const float *w;    // [n, k]
    const float *bias; // [n]; NULL: none
    float *y;          // [m, n]
    int32_t m, n, k;
    int32_t aligned; // four elements of a row of x or of w start at a multiple of 16 bytes
    int32_t splits;  // blocks of a cluster, which share k
} tn_cuda_narrow_args;

#endif
