// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// few_blocks.cuh for the types that few_units.cuh has a way of their own for.
#include "backends/cuda/kernels/few_blocks.cuh"

FEW_BLOCKS(Q4_0)
FEW_BLOCKS(Q4_1)
FEW_BLOCKS(Q5_0)
FEW_BLOCKS(Q5_1)
FEW_BLOCKS(Q8_0)
FEW_BLOCKS(Q2_K)
FEW_BLOCKS(Q3_K)
FEW_BLOCKS(Q4_K)
FEW_BLOCKS(Q5_K)
FEW_BLOCKS(Q6_K)
FEW_BLOCKS(IQ4_NL)
