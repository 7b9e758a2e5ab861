// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV kernels for one to eight rows of x: f32 and the less common types of 2 to 6 bits. matvec.cuh has the
// kernel.
// A file of their own only so that kernels compile in parallel.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_1_4(F32)
TN_MATVEC_1_4(Q4_1)
TN_MATVEC_1_4(Q5_0)
TN_MATVEC_1_4(Q5_1)
TN_MATVEC_1_4(Q5_K)
TN_MATVEC_1_4(Q2_K)
TN_MATVEC_1_4(Q3_K)
TN_MATVEC_1_4(IQ4_NL)
TN_MATVEC_1_4(IQ4_XS)
TN_MATVEC_1_4(MXFP4)
TN_MATVEC_1_4(NVFP4)
