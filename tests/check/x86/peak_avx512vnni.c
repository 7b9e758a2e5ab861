// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/check/peak.h"

#include <immintrin.h>

int32_t check_peak_dot_avx512vnni(int64_t n)
{
    __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
#define DECLARE(i) __m512i v##i = _mm512_set1_epi32(i);
#define STEP(i)    v##i = _mm512_dpbusd_epi32(v##i, a, b);
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
