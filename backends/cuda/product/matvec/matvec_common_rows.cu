// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV kernels for two to eight rows of x: 16-bit types; and for four rows of the quantised types that most
// models have. matvec.cuh has the kernel. Quantised weights run matvec_rows.cuh wherever its tiles fit.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_2_4_8(F16)
TN_MATVEC_2_4_8(BF16)
TN_MATVEC(Q4_0, 4)
TN_MATVEC(Q8_0, 4)
TN_MATVEC(Q4_K, 4)
TN_MATVEC(Q6_K, 4)
