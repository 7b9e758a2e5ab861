// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Vectors of eight f32 for AVX2 + FMA + F16C; the meaning of each function is in c/vec_generic.h.
#ifndef TN_CPU_VEC_AVX2_H
#define TN_CPU_VEC_AVX2_H

#include "core/compiler.h"
#include "core/fp16.h"

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>

#define VEC_N           8
#define VEC_NAME(base)  tn_##base##_avx2
#define VEC_ROWS        6
#define VEC_REP_ROWS(F) F(0) F(1) F(2) F(3) F(4) F(5)

typedef __m256 vf;
typedef __m256 vm;

typedef struct vd {
    __m256d lo, hi;
} vd;

TN_INLINE vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

TN_INLINE vf vf_zero(void)
{
    return _mm256_setzero_ps();
}

TN_INLINE vf vf_iota(void)
{
    return _mm256_setr_ps(0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f);
}

TN_INLINE __m256i vec_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

TN_INLINE vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

TN_INLINE void vf_store(float *p, vf a)
{
    _mm256_storeu_ps(p, a);
}

TN_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, vec_first(n));
}

TN_INLINE void vf_store_n(float *p, vf a, int64_t n)
{
    _mm256_maskstore_ps(p, vec_first(n), a);
}

TN_INLINE vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

TN_INLINE vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

TN_INLINE vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

TN_INLINE vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

TN_INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

TN_INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

TN_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

TN_INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

TN_INLINE vm vm_lt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

TN_INLINE vm vm_le(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}

TN_INLINE vm vm_eq(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

TN_INLINE vm vm_and(vm a, vm b)
{
    return _mm256_and_ps(a, b);
}

TN_INLINE bool vm_any(vm a)
{
    return _mm256_movemask_ps(a) != 0;
}

TN_INLINE vf vf_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}

TN_INLINE vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

TN_INLINE vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}

TN_INLINE vf vf_copysign(vf a, vf b)
{
    return _mm256_or_ps(vf_abs(a), _mm256_and_ps(_mm256_set1_ps(-0.0f), b));
}

TN_INLINE vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

TN_INLINE vf vf_trunc(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

TN_INLINE vf vec_power2(__m256i e)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
}

TN_INLINE vf vf_scale2(vf a, vf n)
{
    __m256i e = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(e, 1);
    return vf_mul(vf_mul(a, vec_power2(half)), vec_power2(_mm256_sub_epi32(e, half)));
}

TN_INLINE vf vf_frexp(vf a, vf *e)
{
    __m256i u = _mm256_castps_si256(a);
    __m256i k = _mm256_srai_epi32(_mm256_sub_epi32(u, _mm256_set1_epi32(0x3f3504f3)), 23);
    *e = _mm256_cvtepi32_ps(k);
    return _mm256_castsi256_ps(_mm256_sub_epi32(u, _mm256_slli_epi32(k, 23)));
}

TN_INLINE float vf_sum(vf a)
{
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

TN_INLINE float vf_hmax(vf a)
{
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

TN_INLINE vf vf_swap_pairs(vf a)
{
    return _mm256_permute_ps(a, 0xb1);
}

TN_INLINE __m128i vec_load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

TN_INLINE __m128i vec_load8(const uint8_t *p)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

TN_INLINE vf vf_load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(vec_load16(p));
}

TN_INLINE vf vf_set1_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_set1_epi16((short)tn_load_u16(p)));
}

TN_INLINE vf vf_load_bf16(const uint8_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(vec_load16(p)), 16));
}

TN_INLINE void vf_store_f16(uint8_t *p, vf a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

TN_INLINE void vf_store_bf16(uint8_t *p, vf a)
{
    __m256i u = _mm256_castps_si256(a), one = _mm256_set1_epi32(1);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    __m256i near = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    __m256i h = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
    h = _mm256_permute4x64_epi64(_mm256_packus_epi32(h, h), 0x08);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(h));
}

TN_INLINE vf vf_load_i8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(vec_load8(p)));
}

TN_INLINE vf vf_load_low4(const uint8_t *p)
{
    __m256i q = _mm256_and_si256(_mm256_cvtepu8_epi32(vec_load8(p)), _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(8)));
}

TN_INLINE vf vf_load_high4(const uint8_t *p)
{
    __m256i q = _mm256_srli_epi32(_mm256_cvtepu8_epi32(vec_load8(p)), 4);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(8)));
}

TN_INLINE void vf_store_i32(int32_t *p, vf a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_cvttps_epi32(a));
}

TN_INLINE vd vd_zero(void)
{
    return (vd){_mm256_setzero_pd(), _mm256_setzero_pd()};
}

TN_INLINE __m256d vec_low_pd(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

TN_INLINE __m256d vec_high_pd(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

TN_INLINE vd vd_add(vd s, vf x)
{
    return (vd){_mm256_add_pd(s.lo, vec_low_pd(x)), _mm256_add_pd(s.hi, vec_high_pd(x))};
}

TN_INLINE vd vd_add_square(vd s, vf x, double c)
{
    __m256d lo = _mm256_sub_pd(vec_low_pd(x), _mm256_set1_pd(c));
    __m256d hi = _mm256_sub_pd(vec_high_pd(x), _mm256_set1_pd(c));
    return (vd){_mm256_fmadd_pd(lo, lo, s.lo), _mm256_fmadd_pd(hi, hi, s.hi)};
}

TN_INLINE double vd_sum(vd s)
{
    __m256d a = _mm256_add_pd(s.lo, s.hi);
    __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

// Columns c and c + 4 of four rows, in the halves of out[c]
TN_INLINE void vec_transpose_half(vf a, vf b, vf c, vf d, vf *out)
{
    vf ab0 = _mm256_unpacklo_ps(a, b), ab1 = _mm256_unpackhi_ps(a, b);
    vf cd0 = _mm256_unpacklo_ps(c, d), cd1 = _mm256_unpackhi_ps(c, d);
    out[0] = _mm256_shuffle_ps(ab0, cd0, 0x44);
    out[1] = _mm256_shuffle_ps(ab0, cd0, 0xee);
    out[2] = _mm256_shuffle_ps(ab1, cd1, 0x44);
    out[3] = _mm256_shuffle_ps(ab1, cd1, 0xee);
}

// Column c of rows 0..3 and of rows 4..7
TN_INLINE void vec_transpose_store(vf top, vf bottom, float *dst, int64_t stride)
{
    vf_store(dst, _mm256_permute2f128_ps(top, bottom, 0x20));
    vf_store(dst + 4 * stride, _mm256_permute2f128_ps(top, bottom, 0x31));
}

#define VEC_TRANSPOSE(row, dst, stride)                                                                      \
    do {                                                                                                     \
        vf top_[4], bottom_[4];                                                                              \
        vec_transpose_half(row(0), row(1), row(2), row(3), top_);                                            \
        vec_transpose_half(row(4), row(5), row(6), row(7), bottom_);                                         \
        vec_transpose_store(top_[0], bottom_[0], dst, stride);                                               \
        vec_transpose_store(top_[1], bottom_[1], (dst) + (stride), stride);                                  \
        vec_transpose_store(top_[2], bottom_[2], (dst) + 2 * (stride), stride);                              \
        vec_transpose_store(top_[3], bottom_[3], (dst) + 3 * (stride), stride);                              \
    } while (0)

TN_INLINE __m256i vec_load_halves(const uint8_t *p, bool half)
{
    if (half) return _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

// Element e to dst and element e + 8 to 8 rows later
TN_INLINE void vec_store_halves(uint16_t *dst, int64_t stride, __m256i a, bool half)
{
    _mm_storeu_si128((__m128i *)(void *)dst, _mm256_castsi256_si128(a));
    if (!half) _mm_storeu_si128((__m128i *)(void *)(dst + 8 * stride), _mm256_extracti128_si256(a, 1));
}

#define VEC_HALVES

// dst[j][i] = number j of 16 bits of row i from byte `at` on, VEC_N rows, 2 VEC_N numbers of them or half as
// many; stride in numbers
TN_INLINE void vec_transpose_halves(const uint8_t *const *row, int64_t at, bool half, uint16_t *dst,
                                    int64_t stride)
{
    __m256i low[4], high[4];
    for (int i = 0; i < 4; i++) {
        __m256i a = vec_load_halves(row[2 * i] + at, half), b = vec_load_halves(row[2 * i + 1] + at, half);
        low[i] = _mm256_unpacklo_epi16(a, b);
        high[i] = _mm256_unpackhi_epi16(a, b);
    }
    for (int i = 0; i < 2; i++, dst += 4 * stride) {
        const __m256i *pairs = i == 0 ? low : high;
        __m256i a0 = _mm256_unpacklo_epi32(pairs[0], pairs[1]),
                a1 = _mm256_unpackhi_epi32(pairs[0], pairs[1]);
        __m256i b0 = _mm256_unpacklo_epi32(pairs[2], pairs[3]),
                b1 = _mm256_unpackhi_epi32(pairs[2], pairs[3]);
        vec_store_halves(dst, stride, _mm256_unpacklo_epi64(a0, b0), half);
        vec_store_halves(dst + stride, stride, _mm256_unpackhi_epi64(a0, b0), half);
        vec_store_halves(dst + 2 * stride, stride, _mm256_unpacklo_epi64(a1, b1), half);
        vec_store_halves(dst + 3 * stride, stride, _mm256_unpackhi_epi64(a1, b1), half);
    }
}

#endif
