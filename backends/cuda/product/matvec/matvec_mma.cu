// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV kernels for one row of x on tensor cores, and those for two types that stand together in a layer of
// the common mixes. matvec_mma.cuh has the kernel.
#include "backends/cuda/product/matvec/matvec_mma.cuh"

TN_MATVEC_TILES(Q4_0)
TN_MATVEC_TILES(Q8_0)
TN_MATVEC_TILES(Q4_K)
TN_MATVEC_TILES(Q5_K)
TN_MATVEC_TILES(Q6_K)
TN_MATVEC_TILES_PAIR(Q4_K, Q6_K)
TN_MATVEC_TILES_PAIR(Q5_K, Q6_K)
