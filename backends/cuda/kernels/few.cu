// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// few.cuh for 16-bit weights, integers under scales, and tables of 16.
#include "backends/cuda/kernels/few.cuh"

FEW(F16)
FEW(BF16)
FEW(Q4_0)
FEW(Q4_1)
FEW(Q5_0)
FEW(Q5_1)
FEW(Q8_0)
FEW(Q2_K)
FEW(Q3_K)
FEW(Q4_K)
FEW(Q5_K)
FEW(Q6_K)
FEW(IQ4_NL)
FEW(IQ4_XS)
FEW(MXFP4)
