// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for 2 rows of x on tensor cores, of the types that most models have. matvec_rows.cuh has the
// kernel.
#include "backends/cuda/product/matvec/matvec_rows.cuh"

TN_MATVEC_2_ROWS(Q4_0)
TN_MATVEC_2_ROWS(Q8_0)
TN_MATVEC_2_ROWS(Q4_K)
TN_MATVEC_2_ROWS(Q5_K)
TN_MATVEC_2_ROWS(Q6_K)
TN_MATVEC_2_ROWS(IQ4_XS)
TN_MATVEC_2_ROWS(MXFP4)
TN_MATVEC_2_ROWS_PAIR(Q4_K, Q6_K)
TN_MATVEC_2_ROWS_PAIR(Q5_K, Q6_K)
