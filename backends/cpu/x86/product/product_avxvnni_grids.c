// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-VNNI: unpackers of the codebook formats (IQ1 to IQ3), the source of AVX2 with other dot
// products.
#include "backends/cpu/x86/product/dot_avxvnni.h"
// after the dot products
#include "backends/cpu/x86/product/product_avx2_grids.c"
