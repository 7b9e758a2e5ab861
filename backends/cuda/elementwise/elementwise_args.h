// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of elementwise/elementwise.cu: operands broadcast to the extents of the result, outer
// dimensions joined.
#ifndef TN_CUDA_ELEMENTWISE_ARGS_H
#define TN_CUDA_ELEMENTWISE_ARGS_H

#include "backends/cuda/runtime/row_split.h"

#include <tenon/params.h>

typedef struct tn_cuda_elementwise_args {
    tn_cuda_view a, b, y;   // b is not used by unary
    tn_cuda_split split;    // in pieces of four columns
    int32_t kind;           // TN_UNARY_* or TN_BINARY_*
    int32_t aligned_a, aligned_b, aligned_y;
    tn_unary_params unary;
    tn_glu_params glu;
} tn_cuda_elementwise_args;

#endif
