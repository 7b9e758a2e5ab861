// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// skinny.cuh for 16-bit weights.
#include "backends/cuda/product/skinny/skinny.cuh"

SKINNY(F16)
SKINNY(BF16)
