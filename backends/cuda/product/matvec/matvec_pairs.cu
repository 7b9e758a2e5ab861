// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products with one row for the types that stand together in one layer of the usual mixes; see matvec.cuh.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_PAIR(Q4_K, Q6_K)
TN_MATVEC_PAIR(Q5_K, Q6_K)
