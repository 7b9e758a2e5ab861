// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// All operands and the parameters of a step as a kernel gets them, seen by C and by device code. The host
// file of a family passes them on for all its ops; only the device code of an op says which of them is what.
#ifndef TN_CUDA_OPERANDS_H
#define TN_CUDA_OPERANDS_H

#include "backends/cuda/runtime/args.h"
#include "ops/any_params.h"

enum { TN_CUDA_MAX_SOURCES = 3, TN_CUDA_MAX_RESULTS = 2 };
typedef struct tn_cuda_operands {
    tn_cuda_view src[TN_CUDA_MAX_SOURCES], dst[TN_CUDA_MAX_RESULTS]; // absent: without data
    tn_any_params params;
} tn_cuda_operands;

#endif
