// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// backends/cpu/x86/product/dpbusd.h in the encoding of AVX-512 VNNI, in its place (the same guard).
#ifndef TN_CPU_X86_DPBUSD_H
#define TN_CPU_X86_DPBUSD_H

#include "core/compiler.h"

#include <immintrin.h>

#define LEVEL emulated_avxvnni

TN_INLINE __m256i dpbusd(__m256i sum, __m256i u, __m256i x)
{
    return _mm256_dpbusd_epi32(sum, u, x);
}

// sum += products of signed 16-bit numbers, each of two neighbours
TN_INLINE __m256i dpwssd(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_dpwssd_epi32(sum, a, b);
}

#endif
