// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/check/peak.h"

#include <immintrin.h>

float check_peak_fma_avx2(int64_t n)
{
    __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
#define DECLARE(i) __m256 v##i = _mm256_set1_ps((float)(i));
#define STEP(i)    v##i = _mm256_fmadd_ps(v##i, a, b);
#define SUM(i)     b = _mm256_add_ps(b, v##i);
    CHECK_PEAK_REPEAT(DECLARE)
    for (int64_t r = 0; r < n; r++) {
        CHECK_PEAK_REPEAT(STEP)
    }
    CHECK_PEAK_REPEAT(SUM)
    return _mm256_cvtss_f32(b);
#undef DECLARE
#undef STEP
#undef SUM
}

// The sum is an operand of the product: else the compiler would take the product out of the loop.
int32_t check_peak_dot_avx2(int64_t n)
{
    __m256i a = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
#define DECLARE(i) __m256i v##i = _mm256_set1_epi32(i);
#define STEP(i)    v##i = _mm256_add_epi32(v##i, _mm256_madd_epi16(_mm256_maddubs_epi16(v##i, a), ones));
#define SUM(i)     a = _mm256_add_epi32(a, v##i);
    CHECK_PEAK_REPEAT(DECLARE)
    for (int64_t r = 0; r < n; r++) {
        CHECK_PEAK_REPEAT(STEP)
    }
    CHECK_PEAK_REPEAT(SUM)
    return _mm256_extract_epi32(a, 0);
#undef DECLARE
#undef STEP
#undef SUM
}
