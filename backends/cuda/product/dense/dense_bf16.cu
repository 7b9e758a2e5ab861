// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// dense.cuh for weights of bf16.
#include "backends/cuda/product/dense/dense.cuh"

DENSE(BF16, 16, 1)
DENSE(BF16, 16, 2)
DENSE(BF16, 32, 1)
DENSE(BF16, 32, 2)
DENSE(BF16, 64, 1)
DENSE(BF16, 64, 2)
DENSE(BF16, 128, 2)
