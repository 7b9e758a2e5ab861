// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products with two to eight rows for the types that most models have; see matvec.cuh.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_MORE(F16)
TN_MATVEC_MORE(BF16)
TN_MATVEC_MORE(Q4_0)
TN_MATVEC_MORE(Q8_0)
TN_MATVEC_MORE(Q4_K)
TN_MATVEC_MORE(Q6_K)
