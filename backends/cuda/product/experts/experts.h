// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What products of experts can share with the step after them.
#ifndef TN_CUDA_EXPERTS_H
#define TN_CUDA_EXPERTS_H

#include "backends/cuda/runtime/kernel.h"

// Whether a gated pair can leave its result as x of the product of the same ids that comes next
// (experts_write.cuh), as far as the step that makes it decides that.
bool tn_cuda_experts_leaves_next(const tn_cuda *cuda, const tn_step *step);

#endif
