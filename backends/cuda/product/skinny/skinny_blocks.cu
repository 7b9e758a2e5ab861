// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels for the block types that have an expander of their own in skinny_expand.cuh.
// skinny_blocks.cuh has the kernel.
#include "backends/cuda/product/skinny/skinny_blocks.cuh"

SKINNY_BLOCKS(Q4_0, 256, 2, 8)
SKINNY_BLOCKS(Q4_0, 128, 1, 8)
SKINNY_BLOCKS(Q4_1, 256, 2, 8)
SKINNY_BLOCKS(Q4_1, 128, 1, 8)
SKINNY_BLOCKS(Q5_0, 256, 2, 8)
SKINNY_BLOCKS(Q5_0, 128, 1, 8)
SKINNY_BLOCKS(Q5_1, 256, 2, 8)
SKINNY_BLOCKS(Q5_1, 128, 1, 8)
SKINNY_BLOCKS(Q8_0, 256, 2, 8)
SKINNY_BLOCKS(Q8_0, 128, 1, 8)
SKINNY_BLOCKS(Q2_K, 256, 2, 8)
SKINNY_BLOCKS(Q2_K, 128, 1, 8)
SKINNY_BLOCKS(Q3_K, 256, 2, 8)
SKINNY_BLOCKS(Q3_K, 128, 1, 8)
SKINNY_BLOCKS(Q4_K, 256, 2, 8)
SKINNY_BLOCKS(Q4_K, 128, 1, 8)
SKINNY_BLOCKS(Q5_K, 256, 2, 8)
SKINNY_BLOCKS(Q5_K, 128, 1, 8)
SKINNY_BLOCKS(Q6_K, 256, 2, 8)
SKINNY_BLOCKS(Q6_K, 128, 1, 8)
SKINNY_BLOCKS(IQ4_NL, 256, 2, 8)
SKINNY_BLOCKS(IQ4_NL, 128, 1, 8)
SKINNY_BLOCKS(Q8_0, 64, 1, 4) // two stages of 128 rows do not fit into 99 KiB of shared memory
