// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of move/move.cu and move/get_rows.cu.
#ifndef TN_CUDA_MOVE_ARGS_H
#define TN_CUDA_MOVE_ARGS_H

#include "backends/cuda/runtime/row_split.h"

// copy: x of any plain type, y of F32, F16, BF16 or the type of x. concat: x, then x2 along `axis`.
typedef struct tn_cuda_move_args {
    tn_cuda_view x, x2, y;
    tn_cuda_split split;
    int32_t from, to;          // TN_TYPE_*
    int32_t aligned, aligned2; // concat: for 16-byte accesses
    int32_t axis;
} tn_cuda_move_args;

// get_rows, and copy from block types: rows of a table as floats.
typedef struct tn_cuda_table_args {
    tn_cuda_weight table;
    int64_t n_table;     // rows
    int64_t row_step[3]; // copy, whose rows are blocks: blocks from one index of the result to the next
    const int32_t *ids;  // NULL: copy
    tn_cuda_view y;
    tn_cuda_split split;
    int32_t from, to;
    int32_t aligned;
    float scale;
} tn_cuda_table_args;

#endif
