// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// few_wgmma.cuh for the types whose integers times scales are exact.
#include "backends/cuda/product/skinny/skinny_wgmma.cuh"

FEW_WGMMA(Q4_K, 256, 1, 16)
FEW_WGMMA(Q4_K, 128, 1, 8)
FEW_WGMMA(Q5_K, 256, 1, 16)
FEW_WGMMA(Q5_K, 128, 1, 8)
FEW_WGMMA(Q6_K, 128, 1, 8)
