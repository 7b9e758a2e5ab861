// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of vec_dot_avx2.h in vectors of sixteen int32, after vec_avx512.h.
#ifndef TN_CPU_VEC_DOT_AVX512_H
#define TN_CPU_VEC_DOT_AVX512_H

#include "backends/cpu/x86/vec_avx512.h"
#include "backends/cpu/x86/vec_dot_rows.h"

#define VEC_DOTS

typedef __m512i vi;

TN_INLINE vi vi_zero(void)
{
    return _mm512_setzero_si512();
}

TN_INLINE vi vi_set1_pair(const int16_t *p)
{
    return _mm512_set1_epi32((int)tn_load_u32(p));
}

TN_INLINE vi vi_load(const int32_t *p)
{
    return _mm512_loadu_si512(p);
}

TN_INLINE void vi_store(int32_t *p, vi a)
{
    _mm512_storeu_si512(p, a);
}

TN_INLINE vf vf_from_i32(vi a)
{
    return _mm512_cvtepi32_ps(a);
}

TN_INLINE vi vi_dot(vi sum, vi a, vi b)
{
#ifdef VEC_DPWSSD
    return VEC_DPWSSD(sum, a, b);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}

TN_INLINE vf vec_codes_q8_0(const uint8_t *block, int64_t n)
{
    __m256i second = n > 1 ? vec_dot_load32(block + 36) : _mm256_setzero_si256();
    __m512i first = _mm512_castsi256_si512(vec_dot_load32(block + 2));
    return _mm512_castsi512_ps(_mm512_inserti64x4(first, second, 1));
}

TN_INLINE vf vec_codes_q4_0(const uint8_t *block, int64_t n)
{
    __m512i v = _mm512_castsi128_si512(vec_dot_load16(block + 2));
    v = _mm512_inserti32x4(v, n > 1 ? vec_dot_load16(block + 20) : _mm_setzero_si128(), 1);
    v = _mm512_inserti32x4(v, n > 2 ? vec_dot_load16(block + 38) : _mm_setzero_si128(), 2);
    v = _mm512_inserti32x4(v, n > 3 ? vec_dot_load16(block + 56) : _mm_setzero_si128(), 3);
    return _mm512_castsi512_ps(v);
}

TN_INLINE void vec_pairs_q8_0(const float *codes, int32_t *dst, int64_t stride)
{
    vi v = vi_load((const int32_t *)(const void *)codes);
    vi_store(dst, _mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8));
    vi_store(dst + stride, _mm512_srai_epi16(v, 8));
}

TN_INLINE void vec_pairs_q4_0(const float *codes, int32_t *dst, int64_t stride)
{
    vi v = vi_load((const int32_t *)(const void *)codes);
    vi mask = _mm512_set1_epi16(15), eight = _mm512_set1_epi16(8);
    vi_store(dst, _mm512_sub_epi16(_mm512_and_si512(v, mask), eight));
    vi_store(dst + stride, _mm512_sub_epi16(_mm512_and_si512(_mm512_srli_epi16(v, 8), mask), eight));
    vi_store(dst + 8 * stride, _mm512_sub_epi16(_mm512_and_si512(_mm512_srli_epi16(v, 4), mask), eight));
    vi_store(dst + 9 * stride, _mm512_sub_epi16(_mm512_srli_epi16(v, 12), eight));
}

#endif
