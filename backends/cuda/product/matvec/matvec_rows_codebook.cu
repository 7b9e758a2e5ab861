// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for 2 to 8 rows of x on tensor cores: codebook and ternary types. matvec_rows.cuh has the kernel.
#include "backends/cuda/product/matvec/matvec_rows.cuh"

TN_MATVEC_ROWS(IQ2_XXS)
TN_MATVEC_ROWS(IQ2_XS)
TN_MATVEC_ROWS(IQ2_S)
TN_MATVEC_ROWS(IQ3_XXS)
TN_MATVEC_ROWS(IQ3_S)
TN_MATVEC_ROWS(IQ1_S)
TN_MATVEC_ROWS(IQ1_M)
TN_MATVEC_ROWS(TQ2_0)
TN_MATVEC_ROWS(Q1_0)
TN_MATVEC_ROWS(Q2_0)
