// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels for codebook types, floats of 4 bits, ternary weights and those of one and two bits,
// all expanded through f32. skinny_blocks.cuh has the kernel.
#include "backends/cuda/product/skinny/skinny_blocks.cuh"

SKINNY_BLOCKS(IQ4_XS, 128, 1, 8)
SKINNY_BLOCKS(MXFP4, 128, 1, 8)
SKINNY_BLOCKS(NVFP4, 128, 1, 8)
SKINNY_BLOCKS(IQ2_XXS, 128, 1, 8)
SKINNY_BLOCKS(IQ2_XS, 128, 1, 8)
SKINNY_BLOCKS(IQ2_S, 128, 1, 8)
SKINNY_BLOCKS(IQ3_XXS, 128, 1, 8)
SKINNY_BLOCKS(IQ3_S, 128, 1, 8)
SKINNY_BLOCKS(IQ1_S, 128, 1, 8)
SKINNY_BLOCKS(IQ1_M, 128, 1, 8)
SKINNY_BLOCKS(TQ1_0, 128, 1, 8)
SKINNY_BLOCKS(TQ2_0, 128, 1, 8)
SKINNY_BLOCKS(Q1_0, 128, 1, 8)
SKINNY_BLOCKS(Q2_0, 128, 1, 8)
