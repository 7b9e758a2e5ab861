// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/check/peak.h"

#include <immintrin.h>

float check_peak_fma_avx512(int64_t n)
{
    __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
#define DECLARE(i) __m512 v##i = _mm512_set1_ps((float)(i));
#define STEP(i)    v##i = _mm512_fmadd_ps(v##i, a, b);
#define SUM(i)     b = _mm512_add_ps(b, v##i);
    CHECK_PEAK_REPEAT(DECLARE)
    for (int64_t r = 0; r < n; r++) {
        CHECK_PEAK_REPEAT(STEP)
    }
    CHECK_PEAK_REPEAT(SUM)
    return _mm512_cvtss_f32(b);
#undef DECLARE
#undef STEP
#undef SUM
}

// The sum is an operand of the product: else the compiler would take the product out of the loop.
int32_t check_peak_dot_avx512(int64_t n)
{
    __m512i a = _mm512_set1_epi8(3), ones = _mm512_set1_epi16(1);
#define DECLARE(i) __m512i v##i = _mm512_set1_epi32(i);
#define STEP(i)    v##i = _mm512_add_epi32(v##i, _mm512_madd_epi16(_mm512_maddubs_epi16(v##i, a), ones));
#define SUM(i)     a = _mm512_add_epi32(a, v##i);
    CHECK_PEAK_REPEAT(DECLARE)
    for (int64_t r = 0; r < n; r++) {
        CHECK_PEAK_REPEAT(STEP)
    }
    CHECK_PEAK_REPEAT(SUM)
    return _mm_cvtsi128_si32(_mm512_castsi512_si128(a));
#undef DECLARE
#undef STEP
#undef SUM
}
