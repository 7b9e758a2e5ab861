// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// All kernels of the backend, from kernels.def.
#ifndef TN_CUDA_KERNELS_H
#define TN_CUDA_KERNELS_H

#include "backends/cuda/runtime/kernel.h"

extern const tn_cuda_kernel_table tn_cuda_kernels;

#endif
