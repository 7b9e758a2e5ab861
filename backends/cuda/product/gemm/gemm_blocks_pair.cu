// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instances of gemm_blocks.cuh for weights of two types that read the same x, as q, k and v do in half of the
// layers of the common mixes: a launch of their own for v would have a start, an end and sums of its own for
// an eighth of the work.
#include "backends/cuda/product/gemm/gemm_blocks.cuh"

GEMM_BLOCKS_PAIR(Q4_K, Q6_K, 4, 128)
GEMM_BLOCKS_PAIR(Q4_K, Q6_K, 2, 160)
GEMM_BLOCKS_PAIR(Q4_K, Q6_K, 2, 192)
GEMM_BLOCKS_PAIR(Q4_K, Q6_K, 2, 256)
