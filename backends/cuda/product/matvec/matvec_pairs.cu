// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV kernels for one row of x and weights of two types in one launch: the types that stand together in a
// layer of the common mixes (Q4_K_M and Q5_K_M store some weights as Q6_K). matvec.cuh has the kernel.
#include "backends/cuda/product/matvec/matvec.cuh"

TN_MATVEC_PAIR(Q4_K, Q6_K)
TN_MATVEC_PAIR(Q5_K, Q6_K)
