// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instances of gemm_blocks.cuh for the types that most files have.
#include "backends/cuda/product/gemm/gemm_blocks.cuh"

GEMM_BLOCKS_BOTH(Q4_K)
GEMM_BLOCKS_BOTH(Q6_K)
