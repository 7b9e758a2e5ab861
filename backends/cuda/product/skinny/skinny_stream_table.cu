// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels of compute capability 9.0 for types with a table of 16 values. skinny_stream.cuh has
// the kernel.
#include "backends/cuda/product/skinny/skinny_stream.cuh"

SKINNY_STREAM(IQ4_NL)
SKINNY_STREAM(IQ4_XS)
SKINNY_STREAM(MXFP4)
