// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels of compute capability 9.0 for blocks of 32 values with an f16 scale. skinny_stream.cuh
// has the kernel.
#include "backends/cuda/product/skinny/skinny_stream.cuh"

SKINNY_STREAM(Q8_0)
SKINNY_STREAM(Q4_0)
SKINNY_STREAM(Q5_0)
