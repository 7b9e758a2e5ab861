// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for 2 to 8 rows of x on tensor cores: the less common types of 2 to 6 bits. matvec_rows.cuh has the
// kernel. A file of their own only so that kernels compile in parallel.
#include "backends/cuda/product/matvec/matvec_rows.cuh"

TN_MATVEC_ROWS(Q4_1)
TN_MATVEC_ROWS(Q5_0)
TN_MATVEC_ROWS(Q5_1)
TN_MATVEC_ROWS(Q2_K)
TN_MATVEC_ROWS(Q3_K)
TN_MATVEC_ROWS(IQ4_NL)
TN_MATVEC_ROWS(IQ4_XS)
TN_MATVEC_ROWS(MXFP4)
TN_MATVEC_ROWS(NVFP4)
