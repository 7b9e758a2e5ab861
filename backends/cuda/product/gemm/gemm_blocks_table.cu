// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instances of gemm_blocks.cuh for further types; gemm_blocks.c says which file has which.
#include "backends/cuda/product/gemm/gemm_blocks.cuh"

GEMM_BLOCKS_FOUR(IQ4_NL)
GEMM_BLOCKS_FOUR(IQ4_XS)
GEMM_BLOCKS_FOUR(MXFP4)
