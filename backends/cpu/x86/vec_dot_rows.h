// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Codes of a block of q8_0 or q4_0 as 32 int16 in order, for the levels with vec_dot_avx2.h or
// vec_dot_avx512.h.
#ifndef TN_CPU_VEC_DOT_ROWS_H
#define TN_CPU_VEC_DOT_ROWS_H

#include "core/compiler.h"

#include <immintrin.h>
#include <stdint.h>

TN_INLINE __m128i vec_dot_load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

TN_INLINE __m256i vec_dot_load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

TN_INLINE void vec_dot_store32(int16_t *p, __m256i a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}

TN_INLINE void vec_row_q8_0(const uint8_t *block, int16_t *dst)
{
    vec_dot_store32(dst, _mm256_cvtepi8_epi16(vec_dot_load16(block + 2)));
    vec_dot_store32(dst + 16, _mm256_cvtepi8_epi16(vec_dot_load16(block + 18)));
}

TN_INLINE void vec_row_q4_0(const uint8_t *block, int16_t *dst)
{
    const __m256i eight = _mm256_set1_epi16(8);
    __m256i q = _mm256_cvtepu8_epi16(vec_dot_load16(block + 2));
    __m256i low = _mm256_and_si256(q, _mm256_set1_epi16(15));
    vec_dot_store32(dst, _mm256_sub_epi16(low, eight));
    vec_dot_store32(dst + 16, _mm256_sub_epi16(_mm256_srli_epi16(q, 4), eight));
}

#endif
