// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of elementwise/elementwise.cu: operands broadcast to the extents of the result, outer
// dimensions joined.
#ifndef TN_CUDA_ELEMENTWISE_ARGS_H
#define TN_CUDA_ELEMENTWISE_ARGS_H

#include "backends/cuda/runtime/operands.h"
#include "backends/cuda/runtime/row_split.h"

typedef struct tn_cuda_elementwise_args {
    tn_cuda_operands op;
    tn_cuda_split split; // in pieces of four columns
    int32_t aligned_src[TN_CUDA_MAX_SOURCES], aligned_dst;
} tn_cuda_elementwise_args;

#endif
