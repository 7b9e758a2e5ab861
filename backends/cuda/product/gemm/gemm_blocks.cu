// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instances of gemm_blocks.cuh for the types that most files have.
#include "backends/cuda/product/gemm/gemm_blocks.cuh"

GEMM_BLOCKS_BOTH(Q4_K)
GEMM_BLOCKS_BOTH(Q6_K)

// The sums of tiles that blocks share do not depend on the type.
GEMM_BLOCKS_ADD(128, 4, 128, false)
GEMM_BLOCKS_ADD(128_any, 4, 128, true)
GEMM_BLOCKS_ADD(256, 2, 256, false)
GEMM_BLOCKS_ADD(256_any, 2, 256, true)
