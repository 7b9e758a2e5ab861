// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// vpdpbusd in the encoding of AVX-VNNI: sum += products of unsigned bytes u and signed bytes x, each of four
// neighbours. tests/cpu/dpbusd.h has the encoding of AVX-512, which more processors have, in its place.
#ifndef TN_CPU_X86_DPBUSD_H
#define TN_CPU_X86_DPBUSD_H

#include "core/compiler.h"

#include <immintrin.h>

#define LEVEL avxvnni

TN_INLINE __m256i dpbusd(__m256i sum, __m256i u, __m256i x)
{
    return _mm256_dpbusd_avx_epi32(sum, u, x);
}

#endif
