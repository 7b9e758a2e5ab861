// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels of compute capability 9.0 for weights of two types that share x, as q, k and v do in
// many files. skinny_stream.cuh has the kernel.
#include "backends/cuda/product/skinny/skinny_stream.cuh"

SKINNY_STREAM_PAIR(Q4_K, Q6_K)
