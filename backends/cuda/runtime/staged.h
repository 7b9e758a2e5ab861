// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a step shares with others (TN_JOIN_* of ops/step.h), as far as runtime/ has to know it: which kernels
// can do it, and where quantised activations lie.
#ifndef TN_CUDA_STAGED_H
#define TN_CUDA_STAGED_H

#include "backends/cuda/runtime/kernel.h"

// Which result a step can stage: of a router the rows that went through its norm, else the first.
int32_t tn_cuda_staged_result(const tn_step *step);
// Elements of its rows as a product reads them: tokens and, of attention, all heads in one.
int64_t tn_cuda_staged_elems(const tn_step *step);
// Bytes of the result of a step as int8.
size_t tn_cuda_staged_size(const tn_device *device, const tn_step *step);
// What a step reads and writes as quantised activations; rows NULL: nothing.
tn_cuda_quantised tn_cuda_quantised_x(const tn_step *step);
tn_cuda_quantised tn_cuda_quantised_y(const tn_step *step);

// Flags of kernels.def that a row must have to do what step->join says.
int32_t tn_cuda_join_flags(const tn_step *step);

// A step as planned, with addresses that nobody reads: operands lie where they would if every storage began
// at TN_CUDA_NOWHERE, which is aligned for whatever a kernel asks for.
enum { TN_CUDA_NOWHERE = 1 << 20 };
tn_step tn_cuda_step_nowhere(const tn_step *step);

#endif
