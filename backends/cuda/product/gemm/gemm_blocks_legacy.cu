// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instances of gemm_blocks.cuh for further types; gemm_blocks.c says which file has which.
#include "backends/cuda/product/gemm/gemm_blocks.cuh"

GEMM_BLOCKS(Q4_0, 2, 256)
GEMM_BLOCKS(Q4_1, 2, 256)
GEMM_BLOCKS(Q5_0, 2, 256)
GEMM_BLOCKS(Q5_1, 2, 256)
