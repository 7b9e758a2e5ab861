// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products with one to eight rows for f32 and the less common types of 2 to 6 bits; see matvec.cuh.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_SOME(F32)
TN_MATVEC_SOME(Q4_1)
TN_MATVEC_SOME(Q5_0)
TN_MATVEC_SOME(Q5_1)
TN_MATVEC_SOME(Q5_K)
TN_MATVEC_SOME(Q2_K)
TN_MATVEC_SOME(Q3_K)
TN_MATVEC_SOME(IQ4_NL)
TN_MATVEC_SOME(IQ4_XS)
TN_MATVEC_SOME(MXFP4)
TN_MATVEC_SOME(NVFP4)
