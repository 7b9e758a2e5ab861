// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels of compute capability 9.0 for types with a table of 16 values, and Q3_K.
// skinny_tiles.cuh has the kernel.
#include "backends/cuda/product/skinny/skinny_tiles.cuh"

SKINNY_TILES(Q3_K, 16)
SKINNY_TILES(Q3_K, 32)
SKINNY_TILES(Q3_K, 64)
SKINNY_TILES(IQ4_NL, 16)
SKINNY_TILES(IQ4_NL, 32)
SKINNY_TILES(IQ4_NL, 64)
SKINNY_TILES(IQ4_XS, 16)
SKINNY_TILES(IQ4_XS, 32)
SKINNY_TILES(IQ4_XS, 64)
SKINNY_TILES(MXFP4, 16)
SKINNY_TILES(MXFP4, 32)
SKINNY_TILES(MXFP4, 64)
