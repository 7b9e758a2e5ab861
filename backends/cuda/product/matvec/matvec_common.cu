// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV kernels for one row of x: the types that most models have. matvec.cuh has the kernel.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC(F16, 1)
TN_MATVEC(BF16, 1)
TN_MATVEC(Q4_0, 1)
TN_MATVEC(Q8_0, 1)
TN_MATVEC(Q4_K, 1)
TN_MATVEC(Q6_K, 1)
