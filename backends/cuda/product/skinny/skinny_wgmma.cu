// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM kernels on wgmma, for types whose integers times scales are exact in f16. skinny_wgmma.cuh has
// the kernel.
#include "backends/cuda/product/skinny/skinny_wgmma.cuh"

SKINNY_WGMMA(Q4_K, 256, 1, 16)
SKINNY_WGMMA(Q4_K, 128, 1, 8)
SKINNY_WGMMA(Q5_K, 256, 1, 16)
SKINNY_WGMMA(Q5_K, 128, 1, 8)
SKINNY_WGMMA(Q6_K, 128, 1, 8)
