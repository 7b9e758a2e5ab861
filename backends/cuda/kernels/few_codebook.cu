// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// few_blocks.cuh for codebooks, floats of 4 bits, ternary and one to two bit weights, all through f32.
#include "backends/cuda/kernels/few_blocks.cuh"

FEW_BLOCKS(IQ4_XS)
FEW_BLOCKS(MXFP4)
FEW_BLOCKS(NVFP4)
FEW_BLOCKS(IQ2_XXS)
FEW_BLOCKS(IQ2_XS)
FEW_BLOCKS(IQ2_S)
FEW_BLOCKS(IQ3_XXS)
FEW_BLOCKS(IQ3_S)
FEW_BLOCKS(IQ1_S)
FEW_BLOCKS(IQ1_M)
FEW_BLOCKS(TQ1_0)
FEW_BLOCKS(TQ2_0)
FEW_BLOCKS(Q1_0)
FEW_BLOCKS(Q2_0)
