// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The baseline of x86-64: what compilers make of portable C. A multiply-add is two instructions.
#include "tests/check/peak.h"

#include <emmintrin.h>

float check_peak_fma_sse2(int64_t n)
{
    __m128 a = _mm_set1_ps(0.999f), b = _mm_set1_ps(1e-3f);
#define DECLARE(i) __m128 v##i = _mm_set1_ps((float)(i));
#define STEP(i)    v##i = _mm_add_ps(_mm_mul_ps(v##i, a), b);
#define SUM(i)     b = _mm_add_ps(b, v##i);
    CHECK_PEAK_REPEAT(DECLARE)
    for (int64_t r = 0; r < n; r++) {
        CHECK_PEAK_REPEAT(STEP)
    }
    CHECK_PEAK_REPEAT(SUM)
    return _mm_cvtss_f32(b);
#undef DECLARE
#undef STEP
#undef SUM
}
