// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// dense.cuh for weights of f16.
#include "backends/cuda/product/dense/dense.cuh"

DENSE(F16, 16, 1)
DENSE(F16, 16, 2)
DENSE(F16, 32, 1)
DENSE(F16, 32, 2)
DENSE(F16, 64, 1)
DENSE(F16, 64, 2)
DENSE(F16, 128, 2)
