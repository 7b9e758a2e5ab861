// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products with one row through tensor cores, and those of types that stand together in one layer of the usual mixes; see matvec_mma.cuh.
#include "backends/cuda/product/matvec/matvec_mma.cuh"

TN_MATVEC_TILES(Q4_0)
TN_MATVEC_TILES(Q8_0)
TN_MATVEC_TILES(Q4_K)
TN_MATVEC_TILES(Q5_K)
TN_MATVEC_TILES(Q6_K)
TN_MATVEC_TILES_PAIR(Q4_K, Q6_K)
TN_MATVEC_TILES_PAIR(Q5_K, Q6_K)
