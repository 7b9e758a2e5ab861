// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products with one row for the types that most models have; see matvec.cuh.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC(F16, 1)
TN_MATVEC(BF16, 1)
TN_MATVEC(Q4_0, 1)
TN_MATVEC(Q8_0, 1)
TN_MATVEC(Q4_K, 1)
TN_MATVEC(Q6_K, 1)
