// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of norm/norm.cu.
#ifndef TN_CUDA_NORM_ARGS_H
#define TN_CUDA_NORM_ARGS_H

#include "backends/cuda/runtime/operands.h"

typedef struct tn_cuda_norm_args {
    tn_cuda_operands op; // of rows [.., n] and vectors [n]
    uint32_t n_rows;
    int32_t group; // threads of a row: a warp, or the whole block
} tn_cuda_norm_args;

#endif
