// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels of compute capability 9.0 for the types that most files have. skinny_stream.cuh has
// the kernel.
#include "backends/cuda/product/skinny/skinny_stream.cuh"

SKINNY_STREAM_88(Q4_K)
SKINNY_STREAM_80(Q6_K)
