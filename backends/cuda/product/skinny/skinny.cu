// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// few.cuh for 16-bit weights.
#include "backends/cuda/product/skinny/skinny.cuh"

FEW(F16)
FEW(BF16)
