// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of int16 in vectors of eight int32, after vec_avx2.h; c/attention/dot_tmpl.h says what they are
// for. VEC_DPWSSD, if defined, names vpdpwssd of the level, and AVX2 has vpmaddwd and an addition instead.
#ifndef TN_CPU_VEC_DOT_AVX2_H
#define TN_CPU_VEC_DOT_AVX2_H

#include "backends/cpu/x86/vec_avx2.h"
#include "backends/cpu/x86/vec_dot_rows.h"

#define VEC_DOTS

typedef __m256i vi;

TN_INLINE vi vi_zero(void)
{
    return _mm256_setzero_si256();
}

// The pair of int16 at p in all lanes
TN_INLINE vi vi_set1_pair(const int16_t *p)
{
    return _mm256_set1_epi32((int)tn_load_u32(p));
}

// The same where it lies in an int32
TN_INLINE vi vi_set1_i32(const int32_t *p)
{
    return _mm256_set1_epi32(*p);
}

TN_INLINE vi vi_load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

TN_INLINE void vi_store(int32_t *p, vi a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}

TN_INLINE vf vf_from_i32(vi a)
{
    return _mm256_cvtepi32_ps(a);
}

// sum + the products of both pairs in each lane
TN_INLINE vi vi_dot(vi sum, vi a, vi b)
{
#ifdef VEC_DPWSSD
    return VEC_DPWSSD(sum, a, b);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#endif
}

// Elements of a and b as pairs: in each 128 bits the first four of the eight there, the last four
TN_INLINE vi vi_unpack_low(vi a, vi b)
{
    return _mm256_unpacklo_epi16(a, b);
}

TN_INLINE vi vi_unpack_high(vi a, vi b)
{
    return _mm256_unpackhi_epi16(a, b);
}

// The first and the last VEC_N elements of what was unpacked
TN_INLINE vi vi_repack_first(vi low, vi high)
{
    return _mm256_permute2x128_si256(low, high, 0x20);
}

TN_INLINE vi vi_repack_second(vi low, vi high)
{
    return _mm256_permute2x128_si256(low, high, 0x31);
}

// Both rounded, a in the low halves
TN_INLINE vi vi_pair_i16(vf a, vf b)
{
    vi high = _mm256_slli_epi32(_mm256_cvtps_epi32(b), 16);
    return _mm256_blend_epi16(_mm256_cvtps_epi32(a), high, 0xaa);
}

// VEC_N integers, rounded
TN_INLINE void vf_store_i16(int16_t *p, vf a)
{
    __m256i v = _mm256_cvtps_epi32(a);
    __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128((__m128i *)(void *)p, packed);
}

// Codes of a block as int16, 2 VEC_N from 2 VEC_N * half on
TN_INLINE vi vec_words_q8_0(const uint8_t *block, int64_t half)
{
    return _mm256_cvtepi8_epi16(vec_dot_load16(block + 2 + 16 * half));
}

TN_INLINE vi vec_words_q4_0(const uint8_t *block, int64_t half)
{
    __m128i q = _mm_srl_epi16(vec_dot_load16(block + 2), _mm_cvtsi64_si128(4 * half));
    __m128i code = _mm_and_si128(q, _mm_set1_epi8(15));
    return _mm256_cvtepi8_epi16(_mm_sub_epi8(code, _mm_set1_epi8(8)));
}

// The codes of n blocks, as many as fill a vector, or less
TN_INLINE vf vec_codes_q8_0(const uint8_t *block, int64_t n)
{
    TN_UNUSED(n);
    return _mm256_castsi256_ps(vec_dot_load32(block + 2));
}

TN_INLINE vf vec_codes_q4_0(const uint8_t *block, int64_t n)
{
    __m128i second = n > 1 ? vec_dot_load16(block + 20) : _mm_setzero_si128();
    __m256i first = _mm256_castsi128_si256(vec_dot_load16(block + 2));
    return _mm256_castsi256_ps(_mm256_inserti128_si256(first, second, 1));
}

// Bytes 0 and 2 of each lane as int16 to dst, bytes 1 and 3 to dst + stride
TN_INLINE void vec_pairs_q8_0(const float *codes, int32_t *dst, int64_t stride)
{
    vi v = vi_load((const int32_t *)(const void *)codes);
    vi_store(dst, _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8));
    vi_store(dst + stride, _mm256_srai_epi16(v, 8));
}

// The same of low nibbles; of high nibbles, 16 elements later, to 8 and 9 strides
TN_INLINE void vec_pairs_q4_0(const float *codes, int32_t *dst, int64_t stride)
{
    vi v = vi_load((const int32_t *)(const void *)codes);
    vi mask = _mm256_set1_epi16(15), eight = _mm256_set1_epi16(8);
    vi_store(dst, _mm256_sub_epi16(_mm256_and_si256(v, mask), eight));
    vi_store(dst + stride, _mm256_sub_epi16(_mm256_and_si256(_mm256_srli_epi16(v, 8), mask), eight));
    vi_store(dst + 8 * stride, _mm256_sub_epi16(_mm256_and_si256(_mm256_srli_epi16(v, 4), mask), eight));
    vi_store(dst + 9 * stride, _mm256_sub_epi16(_mm256_srli_epi16(v, 12), eight));
}

#endif
