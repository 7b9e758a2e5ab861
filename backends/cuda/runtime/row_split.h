// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How rows are shared by blocks of 256 threads, each of which has one piece of a row (4 or 16 elements). A
// long row is cut into chunks of 256 pieces, one for each block; of short rows a block has several.
#ifndef TN_CUDA_ROW_SPLIT_H
#define TN_CUDA_ROW_SPLIT_H

#include "backends/cuda/runtime/args.h"

enum { TN_CUDA_SPLIT_THREADS = 256 };

typedef struct tn_cuda_split {
    uint32_t n_rows, n_chunks; // chunks: blocks of a row
    int32_t shift;             // threads of a short row: 1 << shift; -1: rows are long
} tn_cuda_split;

#endif
