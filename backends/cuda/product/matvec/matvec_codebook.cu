// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV kernels for one to eight rows of x: codebook and ternary types. matvec.cuh has the kernel.
// TQ1_0 has no kernel here: the one for one row failed with an address out of range that was not explained,
// so matmul_any accepts that type.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_1_4(IQ2_XXS)
TN_MATVEC_1_4(IQ2_XS)
TN_MATVEC_1_4(IQ2_S)
TN_MATVEC_1_4(IQ3_XXS)
TN_MATVEC_1_4(IQ3_S)
TN_MATVEC_1_4(IQ1_S)
TN_MATVEC_1_4(IQ1_M)
TN_MATVEC_1_4(TQ2_0)
TN_MATVEC_1_4(Q1_0)
TN_MATVEC_1_4(Q2_0)
