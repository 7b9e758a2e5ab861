// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels for 16-bit weights. skinny.cuh has the kernel.
#include "backends/cuda/product/skinny/skinny.cuh"

SKINNY(F16)
SKINNY(BF16)
