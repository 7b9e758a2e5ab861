// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// few.cuh for codebooks, ternary and one to two bit weights.
#include "backends/cuda/kernels/few.cuh"

FEW(NVFP4)
FEW(IQ2_XXS)
FEW(IQ2_XS)
FEW(IQ2_S)
FEW(IQ3_XXS)
FEW(IQ3_S)
FEW(IQ1_S)
FEW(IQ1_M)
FEW(TQ1_0)
FEW(TQ2_0)
FEW(Q1_0)
FEW(Q2_0)
