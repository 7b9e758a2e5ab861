// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for 2 to 8 rows of x on tensor cores, and those for two types that stand together in a layer of the
// common mixes. matvec_rows.cuh has the kernel.
#include "backends/cuda/product/matvec/matvec_rows.cuh"

TN_MATVEC_ROWS(Q4_0)
TN_MATVEC_ROWS(Q8_0)
TN_MATVEC_ROWS(Q4_K)
TN_MATVEC_ROWS(Q5_K)
TN_MATVEC_ROWS(Q6_K)
TN_MATVEC_ROWS_PAIR(Q4_K, Q6_K)
TN_MATVEC_ROWS_PAIR(Q5_K, Q6_K)
