// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-VNNI: unpackers of IQ1 to IQ3, TQ1_0, TQ2_0, Q1_0, Q2_0 and NVFP4, the source of AVX2 with other dot
// products.
#include "backends/cpu/x86/product/dot_avxvnni.h"
// after the dot products
#include "backends/cpu/x86/product/product_avx2_low_bits.c"
