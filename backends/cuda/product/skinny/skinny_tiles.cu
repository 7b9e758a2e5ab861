// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels of compute capability 9.0 for blocks of 32 values with an f16 scale. skinny_tiles.cuh
// has the kernel.
#include "backends/cuda/product/skinny/skinny_tiles.cuh"

SKINNY_TILES(Q8_0, 16)
SKINNY_TILES(Q8_0, 32)
SKINNY_TILES(Q8_0, 64)
SKINNY_TILES(Q4_0, 16)
SKINNY_TILES(Q4_0, 32)
SKINNY_TILES(Q4_0, 64)
SKINNY_TILES(Q4_1, 16)
SKINNY_TILES(Q4_1, 32)
SKINNY_TILES(Q4_1, 64)
SKINNY_TILES(Q5_0, 16)
SKINNY_TILES(Q5_0, 32)
SKINNY_TILES(Q5_0, 64)
SKINNY_TILES(Q5_1, 16)
SKINNY_TILES(Q5_1, 32)
SKINNY_TILES(Q5_1, 64)
