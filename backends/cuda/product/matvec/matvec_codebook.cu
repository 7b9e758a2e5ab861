// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products with one to eight rows for codebooks and ternary types; see matvec.cuh. TQ1_0 has none: matmul_any takes it.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_SOME(IQ2_XXS)
TN_MATVEC_SOME(IQ2_XS)
TN_MATVEC_SOME(IQ2_S)
TN_MATVEC_SOME(IQ3_XXS)
TN_MATVEC_SOME(IQ3_S)
TN_MATVEC_SOME(IQ1_S)
TN_MATVEC_SOME(IQ1_M)
TN_MATVEC_SOME(TQ2_0)
TN_MATVEC_SOME(Q1_0)
TN_MATVEC_SOME(Q2_0)
