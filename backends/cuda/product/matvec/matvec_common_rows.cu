// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV kernels for two to eight rows of x: the types that most models have. matvec.cuh has the kernel.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_2_4_8(F16)
TN_MATVEC_2_4_8(BF16)
TN_MATVEC_2_4_8(Q4_0)
TN_MATVEC_2_4_8(Q8_0)
TN_MATVEC_2_4_8(Q4_K)
TN_MATVEC_2_4_8(Q6_K)
