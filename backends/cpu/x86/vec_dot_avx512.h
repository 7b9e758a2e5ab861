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

TN_INLINE vi vi_set1_i32(const int32_t *p)
{
    return _mm512_set1_epi32(*p);
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

TN_INLINE vi vi_unpack_low(vi a, vi b)
{
    return _mm512_unpacklo_epi16(a, b);
}

TN_INLINE vi vi_unpack_high(vi a, vi b)
{
    return _mm512_unpackhi_epi16(a, b);
}

TN_INLINE vi vi_repack_first(vi low, vi high)
{
    const vi from = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    return _mm512_permutex2var_epi64(low, from, high);
}

TN_INLINE vi vi_repack_second(vi low, vi high)
{
    const vi from = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    return _mm512_permutex2var_epi64(low, from, high);
}

TN_INLINE vi vi_pair_i16(vf a, vf b)
{
    vi high = _mm512_slli_epi32(_mm512_cvtps_epi32(b), 16);
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_cvtps_epi32(a), high);
}

TN_INLINE void vf_store_i16(int16_t *p, vf a)
{
    vec_dot_store32(p, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a)));
}

TN_INLINE vi vec_words_q8_0(const uint8_t *block, int64_t half)
{
    TN_UNUSED(half);
    return _mm512_cvtepi8_epi16(vec_dot_load32(block + 2));
}

TN_INLINE vi vec_words_q4_0(const uint8_t *block, int64_t half)
{
    TN_UNUSED(half);
    __m128i q = vec_dot_load16(block + 2), mask = _mm_set1_epi8(15);
    __m256i low = _mm256_castsi128_si256(_mm_and_si128(q, mask));
    __m256i both = _mm256_inserti128_si256(low, _mm_and_si128(_mm_srli_epi16(q, 4), mask), 1);
    return _mm512_cvtepi8_epi16(_mm256_sub_epi8(both, _mm256_set1_epi8(8)));
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

#define VEC_SCALES

// Two vectors with four f16 of each of sixteen rows become four vectors, all `stride` floats apart.
TN_INLINE void vec_scales_4(float *scale, int64_t stride)
{
    const __m512i first = _mm512_setr_epi32(
        0x00040000, 0x000c0008, 0x00140010, 0x001c0018, 0x00240020, 0x002c0028, 0x00340030, 0x003c0038,
        0x00050001, 0x000d0009, 0x00150011, 0x001d0019, 0x00250021, 0x002d0029, 0x00350031, 0x003d0039);
    const __m512i last = _mm512_add_epi16(first, _mm512_set1_epi16(2));
    __m512i a = _mm512_loadu_si512(scale), b = _mm512_loadu_si512(scale + stride);
    __m512i two = _mm512_permutex2var_epi16(a, first, b), more = _mm512_permutex2var_epi16(a, last, b);
    vf_store(scale, _mm512_cvtph_ps(_mm512_castsi512_si256(two)));
    vf_store(scale + stride, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(two, 1)));
    vf_store(scale + 2 * stride, _mm512_cvtph_ps(_mm512_castsi512_si256(more)));
    vf_store(scale + 3 * stride, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(more, 1)));
}

#endif
