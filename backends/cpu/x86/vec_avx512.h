// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Vectors of sixteen f32 for AVX-512 F, BW, DQ, VL; the meaning of each function is in c/vec_generic.h.
#ifndef TN_CPU_VEC_AVX512_H
#define TN_CPU_VEC_AVX512_H

#include "core/compiler.h"
#include "core/fp16.h"

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>

#define VEC_N           16
#define VEC_NAME(base)  tn_##base##_avx512
#define VEC_ROWS        12
#define VEC_REP_ROWS(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)

typedef __m512 vf;
typedef __mmask16 vm;

typedef struct vd {
    __m512d lo, hi;
} vd;

TN_INLINE vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

TN_INLINE vf vf_zero(void)
{
    return _mm512_setzero_ps();
}

TN_INLINE vf vf_iota(void)
{
    return _mm512_setr_ps(0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 10.0f, 11.0f, 12.0f,
                          13.0f, 14.0f, 15.0f);
}

TN_INLINE __mmask16 vec_first(int64_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

TN_INLINE vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

TN_INLINE void vf_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}

TN_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(vec_first(n), p);
}

TN_INLINE void vf_store_n(float *p, vf a, int64_t n)
{
    _mm512_mask_storeu_ps(p, vec_first(n), a);
}

TN_INLINE vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

TN_INLINE vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

TN_INLINE vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

TN_INLINE vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

TN_INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

TN_INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

TN_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

TN_INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

TN_INLINE vm vm_lt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

TN_INLINE vm vm_le(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}

TN_INLINE vm vm_eq(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

TN_INLINE vm vm_and(vm a, vm b)
{
    return (vm)(a & b);
}

TN_INLINE bool vm_any(vm a)
{
    return a != 0;
}

TN_INLINE vf vf_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}

TN_INLINE vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}

TN_INLINE vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}

TN_INLINE vf vf_copysign(vf a, vf b)
{
    return _mm512_or_ps(vf_abs(a), _mm512_and_ps(_mm512_set1_ps(-0.0f), b));
}

TN_INLINE vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

TN_INLINE vf vf_trunc(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

TN_INLINE vf vf_scale2(vf a, vf n)
{
    return _mm512_scalef_ps(a, n);
}

TN_INLINE vf vf_frexp(vf a, vf *e)
{
    __m512i u = _mm512_castps_si512(a);
    __m512i k = _mm512_srai_epi32(_mm512_sub_epi32(u, _mm512_set1_epi32(0x3f3504f3)), 23);
    *e = _mm512_cvtepi32_ps(k);
    return _mm512_castsi512_ps(_mm512_sub_epi32(u, _mm512_slli_epi32(k, 23)));
}

TN_INLINE float vf_sum(vf a)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

TN_INLINE float vf_hmax(vf a)
{
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

TN_INLINE vf vf_swap_pairs(vf a)
{
    return _mm512_permute_ps(a, 0xb1);
}

TN_INLINE __m128i vec_load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

TN_INLINE __m256i vec_load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

TN_INLINE vf vf_load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(vec_load32(p));
}

TN_INLINE vf vf_set1_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)tn_load_u16(p)));
}

TN_INLINE vf vf_load_bf16(const uint8_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(vec_load32(p)), 16));
}

TN_INLINE void vf_store_f16(uint8_t *p, vf a)
{
    __m256i h = _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256((__m256i *)(void *)p, h);
}

TN_INLINE void vf_store_bf16(uint8_t *p, vf a)
{
    __m512i u = _mm512_castps_si512(a), one = _mm512_set1_epi32(1);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    __m512i h = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    h = _mm512_mask_or_epi32(h, nan, u, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(h, 16)));
}

TN_INLINE vf vf_load_i8(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(vec_load16(p)));
}

TN_INLINE vf vf_load_low4(const uint8_t *p)
{
    __m512i q = _mm512_and_si512(_mm512_cvtepu8_epi32(vec_load16(p)), _mm512_set1_epi32(15));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(q, _mm512_set1_epi32(8)));
}

TN_INLINE vf vf_load_high4(const uint8_t *p)
{
    __m512i q = _mm512_srli_epi32(_mm512_cvtepu8_epi32(vec_load16(p)), 4);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(q, _mm512_set1_epi32(8)));
}

TN_INLINE void vf_store_i32(int32_t *p, vf a)
{
    _mm512_storeu_si512(p, _mm512_cvttps_epi32(a));
}

TN_INLINE vd vd_zero(void)
{
    return (vd){_mm512_setzero_pd(), _mm512_setzero_pd()};
}

TN_INLINE __m512d vec_low_pd(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

TN_INLINE __m512d vec_high_pd(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

TN_INLINE vd vd_add(vd s, vf x)
{
    return (vd){_mm512_add_pd(s.lo, vec_low_pd(x)), _mm512_add_pd(s.hi, vec_high_pd(x))};
}

TN_INLINE vd vd_add_square(vd s, vf x, double c)
{
    __m512d lo = _mm512_sub_pd(vec_low_pd(x), _mm512_set1_pd(c));
    __m512d hi = _mm512_sub_pd(vec_high_pd(x), _mm512_set1_pd(c));
    return (vd){_mm512_fmadd_pd(lo, lo, s.lo), _mm512_fmadd_pd(hi, hi, s.hi)};
}

TN_INLINE double vd_sum(vd s)
{
    __m512d a = _mm512_add_pd(s.lo, s.hi);
    __m256d h = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    __m128d b = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

// Lane group L (128 bits) of out[c] is column 4 L + c of the four rows.
TN_INLINE void vec_transpose_quarter(vf a, vf b, vf c, vf d, vf *out)
{
    vf ab0 = _mm512_unpacklo_ps(a, b), ab1 = _mm512_unpackhi_ps(a, b);
    vf cd0 = _mm512_unpacklo_ps(c, d), cd1 = _mm512_unpackhi_ps(c, d);
    out[0] = _mm512_shuffle_ps(ab0, cd0, 0x44);
    out[1] = _mm512_shuffle_ps(ab0, cd0, 0xee);
    out[2] = _mm512_shuffle_ps(ab1, cd1, 0x44);
    out[3] = _mm512_shuffle_ps(ab1, cd1, 0xee);
}

// Columns c, c + 4, c + 8, c + 12 of rows 0..3, 4..7, 8..11, 12..15: lane groups 0 and 2, then 1 and 3, of
// the upper and the lower eight rows, then the same once more.
TN_INLINE void vec_transpose_store(vf a, vf b, vf c, vf d, float *dst, int64_t stride)
{
    vf u02 = _mm512_shuffle_f32x4(a, b, 0x88), u13 = _mm512_shuffle_f32x4(a, b, 0xdd);
    vf l02 = _mm512_shuffle_f32x4(c, d, 0x88), l13 = _mm512_shuffle_f32x4(c, d, 0xdd);
    vf_store(dst, _mm512_shuffle_f32x4(u02, l02, 0x88));
    vf_store(dst + 4 * stride, _mm512_shuffle_f32x4(u13, l13, 0x88));
    vf_store(dst + 8 * stride, _mm512_shuffle_f32x4(u02, l02, 0xdd));
    vf_store(dst + 12 * stride, _mm512_shuffle_f32x4(u13, l13, 0xdd));
}

#define VEC_TRANSPOSE(row, dst, stride)                                                                      \
    do {                                                                                                     \
        vf q0_[4], q1_[4], q2_[4], q3_[4];                                                                   \
        vec_transpose_quarter(row(0), row(1), row(2), row(3), q0_);                                          \
        vec_transpose_quarter(row(4), row(5), row(6), row(7), q1_);                                          \
        vec_transpose_quarter(row(8), row(9), row(10), row(11), q2_);                                        \
        vec_transpose_quarter(row(12), row(13), row(14), row(15), q3_);                                      \
        vec_transpose_store(q0_[0], q1_[0], q2_[0], q3_[0], dst, stride);                                    \
        vec_transpose_store(q0_[1], q1_[1], q2_[1], q3_[1], (dst) + (stride), stride);                       \
        vec_transpose_store(q0_[2], q1_[2], q2_[2], q3_[2], (dst) + 2 * (stride), stride);                   \
        vec_transpose_store(q0_[3], q1_[3], q2_[3], q3_[3], (dst) + 3 * (stride), stride);                   \
    } while (0)

// Rows of 16-bit numbers, of which the mask selects the words of 32 bits: element e of each 16 bytes of the
// eight rows in out[e]
TN_INLINE void vec_transpose_eight(const uint8_t *const *row, int64_t at, __mmask16 mask, __m512i *out)
{
    __m512i low[4], high[4];
    for (int i = 0; i < 4; i++) {
        __m512i a = _mm512_maskz_loadu_epi32(mask, row[2 * i] + at);
        __m512i b = _mm512_maskz_loadu_epi32(mask, row[2 * i + 1] + at);
        low[i] = _mm512_unpacklo_epi16(a, b);
        high[i] = _mm512_unpackhi_epi16(a, b);
    }
    for (int i = 0; i < 2; i++) {
        const __m512i *pairs = i == 0 ? low : high;
        __m512i a0 = _mm512_unpacklo_epi32(pairs[0], pairs[1]),
                a1 = _mm512_unpackhi_epi32(pairs[0], pairs[1]);
        __m512i b0 = _mm512_unpacklo_epi32(pairs[2], pairs[3]),
                b1 = _mm512_unpackhi_epi32(pairs[2], pairs[3]);
        out[4 * i] = _mm512_unpacklo_epi64(a0, b0);
        out[4 * i + 1] = _mm512_unpackhi_epi64(a0, b0);
        out[4 * i + 2] = _mm512_unpacklo_epi64(a1, b1);
        out[4 * i + 3] = _mm512_unpackhi_epi64(a1, b1);
    }
}

// Element e to dst and element e + 8 to 8 rows later
TN_INLINE void vec_store_halves(uint16_t *dst, int64_t stride, __m512i a)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, _mm512_castsi512_si256(a));
    _mm256_storeu_si256((__m256i *)(void *)(dst + 8 * stride), _mm512_extracti64x4_epi64(a, 1));
}

#define VEC_HALVES

TN_INLINE void vec_transpose_halves(const uint8_t *const *row, int64_t at, bool half, uint16_t *dst,
                                    int64_t stride)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    __mmask16 mask = half ? 0xff : 0xffff;
    __m512i top[8], bottom[8];
    vec_transpose_eight(row, at, mask, top);
    vec_transpose_eight(row + 8, at, mask, bottom);
    for (int e = 0; e < 8; e++)
        vec_store_halves(dst + e * stride, stride, _mm512_permutex2var_epi64(top[e], first, bottom[e]));
    if (half) return;
    for (int e = 0; e < 8; e++)
        vec_store_halves(dst + (e + 16) * stride, stride, _mm512_permutex2var_epi64(top[e], last, bottom[e]));
}

#endif
