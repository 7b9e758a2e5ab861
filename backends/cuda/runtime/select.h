// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which row of kernels.def runs a step: of those that can do what it shares with others (step->join), the one
// that tuning found fastest (tune.h), else the first that accepts it.
#ifndef TN_CUDA_SELECT_H
#define TN_CUDA_SELECT_H

#include "backends/cuda/runtime/kernel.h"

// For plans, before operands are bound: the kernel that the step should run by. NULL if no row accepts it.
const tn_cuda_kernel *tn_cuda_kernel_find(const tn_cuda *cuda, const tn_step *step);
// For an executable, operands bound: the kernel that does run the step. It is another one than was found
// where the scratch is smaller than that one needs, or where cuBLASLt fails. NULL if no row accepts the step.
const tn_cuda_kernel *tn_cuda_kernel_select(const tn_cuda *cuda, const tn_step *step, size_t scratch_size);
// Bytes of scratch that any kernel which the program may run by needs.
size_t tn_cuda_kernel_scratch_size(const tn_cuda *cuda, const tn_program *program);

#endif
