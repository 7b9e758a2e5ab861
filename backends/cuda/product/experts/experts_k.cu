// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of experts.cuh, which has their operations, bytes and limits, for Q4_K and Q6_K: as many rows
// of x in a tile as their names say.
#include "backends/cuda/product/experts/experts.cuh"

EXPERTS(Q4_K, 16)
EXPERTS(Q4_K, 32)
EXPERTS(Q4_K, 64)
EXPERTS(Q6_K, 16)
EXPERTS(Q6_K, 32)
EXPERTS(Q6_K, 64)
EXPERTS(Q6_K, 96)
EXPERTS_NEXT(Q4_K, 16)
EXPERTS_NEXT(Q6_K, 16)
