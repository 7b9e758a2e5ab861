// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instances of gemm_blocks.cuh for the types that most files have.
#include "backends/cuda/product/gemm/gemm_blocks.cuh"

#define GEMM_BLOCKS_ALL(TYPE)                                                                                \
    GEMM_BLOCKS_FOUR(TYPE)                                                                                   \
    GEMM_BLOCKS(TYPE, 2, 176)                                                                                \
    GEMM_BLOCKS(TYPE, 2, 208)                                                                                \
    GEMM_BLOCKS(TYPE, 2, 224)                                                                                \
    GEMM_BLOCKS(TYPE, 2, 240)
GEMM_BLOCKS_ALL(Q4_K)
GEMM_BLOCKS_ALL(Q6_K)

// The sums of tiles that blocks share do not depend on the type.
#define GEMM_BLOCKS_ADD_BOTH(G, N)                                                                           \
    GEMM_BLOCKS_ADD(N, G, N, false)                                                                          \
    GEMM_BLOCKS_ADD(N##_any, G, N, true)
GEMM_BLOCKS_ADD_BOTH(4, 128)
GEMM_BLOCKS_ADD_BOTH(2, 160)
GEMM_BLOCKS_ADD_BOTH(2, 176)
GEMM_BLOCKS_ADD_BOTH(2, 192)
GEMM_BLOCKS_ADD_BOTH(2, 208)
GEMM_BLOCKS_ADD_BOTH(2, 224)
GEMM_BLOCKS_ADD_BOTH(2, 240)
GEMM_BLOCKS_ADD_BOTH(2, 256)
