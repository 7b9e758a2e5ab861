// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: unpackers of the codebook formats (IQ1 to IQ3), TQ1_0, TQ2_0, Q1_0, Q2_0 and NVFP4. Kernels,
// layouts and maths: product_avx512vnni_tmpl.h, formats: ops/quant/quant_iq.c, ops/quant/quant_ternary.c and
// ops/quant/quant_fp4.c, numbers: backends/cpu/README.md.
//
// A vector takes the same eight elements of each of the eight blocks of 32, or the same four elements of each
// half of one, so that the indices of a vector are the same bits of its words of the file, and signs the same
// byte.
#include "backends/cpu/grids.h"
#include "backends/cpu/x86/product/codes.h"
#include "backends/cpu/x86/product/product_avx512vnni.h"
#include "ops/quant_tables.h"

// --- pieces -----------------------------------------------------------------------------------------------

// What eights_to_halves makes of ORDER_EIGHTS: lanes of four blocks of 16, the first halves of two blocks of
// 32 before the second ones.
#define FOUR_HALVES(b, z) 16 * (b) + (z), 16 * (b) + 8 + (z), 16 * (b) + 4 + (z), 16 * (b) + 12 + (z)
#define EIGHT_HALVES(z)   FOUR_HALVES(0, z), FOUR_HALVES(1, z), FOUR_HALVES(2, z), FOUR_HALVES(3, z)
#define ORDER_HALVES                                                                                         \
    {                                                                                                        \
        EIGHT_HALVES(0), EIGHT_HALVES(1), EIGHT_HALVES(2), EIGHT_HALVES(3)                                   \
    }
#define SUBS_HALVES                                                                                          \
    {                                                                                                        \
        0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15                                                 \
    }

TN_INLINE void eights_to_halves(__m512i *u)
{
    __m512i a = u[0], b = u[1];
    u[0] = shuffle_words(a, u[2], 0);
    u[1] = shuffle_words(a, u[2], 1);
    u[2] = shuffle_words(b, u[3], 0);
    u[3] = shuffle_words(b, u[3], 1);
}

TN_INLINE __m256i load_32(const uint8_t *p)
{
    return _mm256_loadu_si256((const void *)p);
}

// 8 bytes or words as 8 integers.
TN_INLINE __m256i load_8_bytes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

TN_INLINE __m256i load_8_words(const uint8_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
}

// Rows by their numbers.
TN_INLINE __m512i rows_of_8(__m256i numbers, const uint64_t *rows)
{
    return _mm512_i32gather_epi64(numbers, rows, 8);
}

TN_INLINE __m512i rows_of_4(__m512i numbers, const uint32_t *rows)
{
    return _mm512_i32gather_epi32(numbers, rows, 4);
}

// Bits of a word, moved to another place of it.
TN_INLINE __m256i bits_of(__m256i v, int from, int n, int to)
{
    v = from > to ? _mm256_srli_epi32(v, (unsigned)(from - to)) : _mm256_slli_epi32(v, (unsigned)(to - from));
    return _mm256_and_si256(v, _mm256_set1_epi32(((1 << n) - 1) << to));
}

// The bits of byte z of each word, one for each of 8 bytes. words: 8, as 64-bit numbers.
TN_INLINE __mmask64 bits_of_8(__m512i words, int z)
{
    const __m512i first = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0808080808080808, 0));
    __m512i bytes = _mm512_shuffle_epi8(words, _mm512_add_epi8(first, _mm512_set1_epi8((char)z)));
    return _mm512_test_epi8_mask(bytes, _mm512_set1_epi64((long long)0x8040201008040201ull));
}

// Rows of 8 with such signs.
TN_INLINE __m512i with_signs_8(__m512i u, __m512i words, int z, int bias)
{
    return _mm512_mask_sub_epi8(u, bits_of_8(words, z), _mm512_set1_epi8((char)(2 * bias)), u);
}

// Rows of 4, whose signs are bits 4 z to 4 z + 3 of 16 words, as 32-bit numbers.
TN_INLINE __m512i with_signs_4(__m512i u, __m512i words, int z, int bias)
{
    const __m512i first = _mm512_broadcast_i32x4(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
    __m512i bytes = _mm512_shuffle_epi8(words, _mm512_add_epi8(first, _mm512_set1_epi8((char)(z / 2))));
    __mmask64 minus = _mm512_test_epi8_mask(bytes, _mm512_set1_epi32(z % 2 ? (int)0x80402010u : 0x08040201));
    return _mm512_mask_sub_epi8(u, minus, _mm512_set1_epi8((char)(2 * bias)), u);
}

// d * (factor * (s + half)) for eight integers.
TN_INLINE __m512 scales_8(__m256i s, float half, float factor, __m512 d)
{
    __m256 v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s), _mm256_set1_ps(factor), _mm256_set1_ps(factor * half));
    return _mm512_mul_ps(_mm512_zextps256_ps512(v), d);
}

// Scales of IQ2_XS and IQ2_S, a nibble for each 16: d * (s + 0.5) / 4.
TN_INLINE __m512 scales_16(const uint8_t *nibbles, __m512 d)
{
    __m128i v = _mm_loadl_epi64((const void *)nibbles);
    v = _mm_and_si128(_mm_unpacklo_epi8(v, _mm_srli_epi16(v, 4)), _mm_set1_epi8(15));
    __m512 s = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(v));
    return _mm512_mul_ps(_mm512_fmadd_ps(s, _mm512_set1_ps(0.25f), _mm512_set1_ps(0.125f)), d);
}

// --- IQ2 --------------------------------------------------------------------------------------------------

// The words of IQ2_XXS by turns: four indices, and four times 7 sign bits below a scale.
TN_INLINE __m256i iq2_xxs_words(const uint8_t *w, int which)
{
    const __m512i order = _mm512_add_epi32(
        _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 14, 12, 10, 8, 6, 4, 2, 0), _mm512_set1_epi32(which));
    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, _mm512_loadu_si512(w + 2)));
}

TN_INLINE void iq2_xxs_unpack(const uint8_t *w, __m512i *u)
{
    __m256i index = iq2_xxs_words(w, 0);
    __m512i signs = _mm512_cvtepu32_epi64(signs_of_4x7(iq2_xxs_words(w, 1)));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++)
        u[z] =
            with_signs_8(rows_of_8(bits_of(index, 8 * z, 8, 0), tn_cpu_iq2xxs_rows), signs, z, TN_IQ2_BIAS);
}

TN_INLINE __m512 iq2_xxs_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return scales_8(_mm256_srli_epi32(iq2_xxs_words(w, 1), 28), 0.5f, 0.25f, load_f16_all(w));
}

#define TYPE        iq2_xxs
#define SUB         32
#define HAS_MIN     0
#define BIAS        TN_IQ2_BIAS
#define ORDER       ORDER_EIGHTS
#define SUBS        SUBS_PAIRS
#define GROUP_SIZE  66
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// 32 words of 9 bits of index and 7 of signs.
TN_INLINE void iq2_xs_unpack(const uint8_t *w, __m512i *u)
{
    __m512i words = _mm512_loadu_si512(w + 2);
    __m256i bytes = signs_of_7(_mm512_cvtepi16_epi8(_mm512_srli_epi16(words, 9)));
    __m512i signs = _mm512_cvtepu32_epi64(bytes);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i index =
            _mm512_and_si512(_mm512_srli_epi64(words, (unsigned)(16 * z)), _mm512_set1_epi64(511));
        u[z] = rows_of_8(_mm512_cvtepi64_epi32(index), tn_cpu_iq2xs_rows);
        u[z] = with_signs_8(u[z], signs, z, TN_IQ2_BIAS);
    }
    eights_to_halves(u);
}

TN_INLINE __m512 iq2_xs_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return scales_16(w + 66, load_f16_all(w));
}

#define TYPE        iq2_xs
#define SUB         16
#define HAS_MIN     0
#define BIAS        TN_IQ2_BIAS
#define ORDER       ORDER_HALVES
#define SUBS        SUBS_HALVES
#define GROUP_SIZE  74
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void iq2_s_unpack(const uint8_t *w, __m512i *u)
{
    __m256i low = load_32(w + 2), high = load_8_bytes(w + 66);
    __m512i signs = _mm512_cvtepu32_epi64(load_32(w + 34));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m256i index = _mm256_or_si256(bits_of(low, 8 * z, 8, 0), bits_of(high, 2 * z, 2, 8));
        u[z] = with_signs_8(rows_of_8(index, tn_cpu_iq2s_rows), signs, z, TN_IQ2_BIAS);
    }
    eights_to_halves(u);
}

TN_INLINE __m512 iq2_s_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return scales_16(w + 74, load_f16_all(w));
}

#define TYPE        iq2_s
#define SUB         16
#define HAS_MIN     0
#define BIAS        TN_IQ2_BIAS
#define ORDER       ORDER_HALVES
#define SUBS        SUBS_HALVES
#define GROUP_SIZE  82
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// --- IQ3 --------------------------------------------------------------------------------------------------

TN_INLINE void iq3_xxs_unpack(const uint8_t *w, __m512i *u)
{
    __m512i index = _mm512_loadu_si512(w + 2), byte = _mm512_set1_epi32(255);
    __m512i signs = _mm512_cvtepu16_epi32(signs_of_4x7(load_32(w + 66)));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i at = _mm512_and_si512(_mm512_srli_epi32(index, (unsigned)(8 * z)), byte);
        u[z] = with_signs_4(rows_of_4(at, tn_cpu_iq3xxs_rows), signs, z, TN_IQ3XXS_BIAS);
    }
}

TN_INLINE __m512 iq3_xxs_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return scales_8(_mm256_srli_epi32(load_32(w + 66), 28), 0.5f, 0.5f, load_f16_all(w));
}

#define TYPE        iq3_xxs
#define SUB         32
#define HAS_MIN     0
#define BIAS        TN_IQ3XXS_BIAS
#define ORDER       ORDER_QUADS
#define SUBS        SUBS_PAIRS
#define GROUP_SIZE  98
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void iq3_s_unpack(const uint8_t *w, __m512i *u)
{
    __m512i low = _mm512_loadu_si512(w + 2), byte = _mm512_set1_epi32(255), ninth = _mm512_set1_epi32(256);
    // The ninth bits of the indices of a word are a nibble.
    __m512i high = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const void *)(w + 66)));
    high = _mm512_slli_epi32(_mm512_or_si512(high, _mm512_slli_epi64(high, 28)), 8);
    __m512i signs = _mm512_cvtepu16_epi32(load_32(w + 74));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i at = _mm512_and_si512(_mm512_srli_epi32(low, (unsigned)(8 * z)), byte);
        at = _mm512_or_si512(at, _mm512_and_si512(_mm512_srli_epi32(high, (unsigned)z), ninth));
        u[z] = with_signs_4(rows_of_4(at, tn_cpu_iq3s_rows), signs, z, TN_IQ3S_BIAS);
    }
}

TN_INLINE __m512 iq3_s_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    __m256i v = _mm256_set1_epi32((int)tn_load_u32(w + 106));
    v = _mm256_srlv_epi32(v, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    return scales_8(bits_of(v, 0, 4, 1), 1.0f, 1.0f, load_f16_all(w));
}

#define TYPE        iq3_s
#define SUB         32
#define HAS_MIN     0
#define BIAS        TN_IQ3S_BIAS
#define ORDER       ORDER_QUADS
#define SUBS        SUBS_PAIRS
#define GROUP_SIZE  110
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// --- IQ1 --------------------------------------------------------------------------------------------------

// value = scale * (code - 1 + shift), so all but the code is a minimum.
TN_INLINE void iq1_s_unpack(const uint8_t *w, __m512i *u)
{
    __m256i low = load_32(w + 2), high = load_8_words(w + 34);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m256i index = _mm256_or_si256(bits_of(low, 8 * z, 8, 0), bits_of(high, 3 * z, 3, 8));
        u[z] = rows_of_8(index, tn_cpu_iq1_rows);
    }
}

TN_INLINE __m512 iq1_s_scales(const uint8_t *w, __m512 *min)
{
    __m256i h = load_8_words(w + 34);
    __m512 scale = scales_8(bits_of(h, 12, 3, 1), 1.0f, 1.0f, load_f16_all(w));
    __mmask8 minus = _mm256_test_epi32_mask(h, _mm256_set1_epi32(0x8000));
    __m512 shift = _mm512_mask_mov_ps(_mm512_set1_ps(-0.875f), minus, _mm512_set1_ps(-1.125f));
    *min = _mm512_mul_ps(scale, shift);
    return scale;
}

#define TYPE        iq1_s
#define SUB         32
#define HAS_MIN     1
#define BIAS        0
#define ORDER       ORDER_EIGHTS
#define SUBS        SUBS_PAIRS
#define GROUP_SIZE  50
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// As eighths: 8 (code - 1) + 1 or - 1, because the shift is that of 8 elements and the scale that of 16.
TN_INLINE void iq1_m_unpack(const uint8_t *w, __m512i *u)
{
    __m256i low = load_32(w), high = load_8_words(w + 32); // nibbles: 3 bits of index, 1 of sign
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m256i index = _mm256_or_si256(bits_of(low, 8 * z, 8, 0), bits_of(high, 4 * z, 3, 8));
        __mmask8 plus = _mm256_testn_epi32_mask(high, _mm256_set1_epi32(8 << 4 * z));
        u[z] = _mm512_slli_epi64(rows_of_8(index, tn_cpu_iq1_rows), 3);
        u[z] = _mm512_mask_add_epi64(u[z], plus, u[z], _mm512_set1_epi8(2));
    }
    eights_to_halves(u);
}

TN_INLINE __m512 iq1_m_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    const __m512i shifts = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 3, 6, 9));
    const __m512i words = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    __m512i s = _mm512_castsi128_si512(_mm_cvtepu16_epi32(_mm_loadl_epi64((const void *)(w + 48))));
    s = _mm512_srlv_epi32(_mm512_permutexvar_epi32(words, s), shifts);
    s = _mm512_or_si512(_mm512_slli_epi32(_mm512_and_si512(s, _mm512_set1_epi32(7)), 1),
                        _mm512_set1_epi32(1));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(s), _mm512_set1_ps(_cvtsh_ss(tn_iq1m_scale(w)) * 0.125f));
}

#define TYPE        iq1_m
#define SUB         16
#define HAS_MIN     0
#define BIAS        9
#define ORDER       ORDER_HALVES
#define SUBS        SUBS_HALVES
#define GROUP_SIZE  56
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// Bytes 4 l + z of a vector, at the lowest byte of lane l.
TN_INLINE __m512i byte_of_lanes(__m512i v, int z)
{
    return _mm512_and_si512(_mm512_srli_epi32(v, (unsigned)(8 * z)), _mm512_set1_epi32(255));
}

// --- ternary ----------------------------------------------------------------------------------------------

// Top digits in base 3 of bytes: 3 v / 256.
TN_INLINE __m512i top_trits(__m512i v)
{
    __m512i one = _mm512_set1_epi8(1);
    __m512i t = _mm512_maskz_mov_epi8(_mm512_cmpge_epu8_mask(v, _mm512_set1_epi8(86)), one);
    return _mm512_mask_add_epi8(t, _mm512_cmpge_epu8_mask(v, _mm512_set1_epi8((char)171)), t, one);
}

TN_INLINE void tq1_0_unpack(const uint8_t *w, __m512i *u)
{
    __m256i b[8];
    __m512i v[4];
    trit_bytes(w, b);
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) // blocks i and i + 4
        v[i] = top_trits(_mm512_inserti64x4(_mm512_castsi256_si512(b[i]), b[i + 4], 1));
    __m512i a0 = _mm512_unpacklo_epi64(v[0], v[1]), a1 = _mm512_unpackhi_epi64(v[0], v[1]);
    __m512i b0 = _mm512_unpacklo_epi64(v[2], v[3]), b1 = _mm512_unpackhi_epi64(v[2], v[3]);
    u[0] = _mm512_shuffle_i64x2(a0, b0, 0x88);
    u[1] = _mm512_shuffle_i64x2(a1, b1, 0x88);
    u[2] = _mm512_shuffle_i64x2(a0, b0, 0xdd);
    u[3] = _mm512_shuffle_i64x2(a1, b1, 0xdd);
}

// Vector z has elements 8 z to 8 z + 7 of each block.
#define ORDER_BLOCK(b, z) 8 * (b) + 2 * (z), 8 * (b) + 2 * (z) + 1
#define ORDER_TRITS_OF(z)                                                                                    \
    ORDER_BLOCK(0, z), ORDER_BLOCK(1, z), ORDER_BLOCK(4, z), ORDER_BLOCK(5, z), ORDER_BLOCK(2, z),           \
        ORDER_BLOCK(3, z), ORDER_BLOCK(6, z), ORDER_BLOCK(7, z)
#define ORDER_TRITS                                                                                          \
    {                                                                                                        \
        ORDER_TRITS_OF(0), ORDER_TRITS_OF(1), ORDER_TRITS_OF(2), ORDER_TRITS_OF(3)                           \
    }
#define SUBS_TRITS                                                                                           \
    {                                                                                                        \
        0, 0, 1, 1, 4, 4, 5, 5, 2, 2, 3, 3, 6, 6, 7, 7                                                       \
    }

TN_INLINE __m512 tq1_0_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return _mm512_maskz_mov_ps(255, load_f16_all(w + 52));
}

#define TYPE        tq1_0
#define SUB         32
#define HAS_MIN     0
#define BIAS        1
#define ORDER       ORDER_TRITS
#define SUBS        SUBS_TRITS
#define GROUP_SIZE  54
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// The planes of Q2_K, with one scale.
TN_INLINE void tq2_0_unpack(const uint8_t *w, __m512i *u)
{
    unpack_planes(w, u);
}

TN_INLINE __m512 tq2_0_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return _mm512_maskz_mov_ps(255, load_f16_all(w + 64));
}

#define TYPE    tq2_0
#define SUB     32
#define HAS_MIN 0
#define BIAS    1
#define ORDER   ORDER_PLANES
#define SUBS                                                                                                 \
    {                                                                                                        \
        0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7                                                       \
    }
#define GROUP_SIZE  66
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// --- bits and pairs of bits in the order of the elements --------------------------------------------------

// Blocks of 128: a scale, and a bit for each element, which becomes 0 or 2.
TN_INLINE void q1_0_unpack(const uint8_t *w, __m512i *u)
{
    __m256i bits = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(w + 2))),
                                           _mm_loadu_si128((const void *)(w + 20)), 1);
    __m512i words = _mm512_cvtepu32_epi64(bits);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_maskz_mov_epi8(bits_of_8(words, z), _mm512_set1_epi8(2));
}

TN_INLINE __m512 q1_0_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    __m512 d = _mm512_mask_mov_ps(load_f16_all(w), 0xf0, load_f16_all(w + 18));
    return _mm512_maskz_mov_ps(255, d);
}

#define TYPE        q1_0
#define SUB         32
#define HAS_MIN     0
#define BIAS        1
#define ORDER       ORDER_EIGHTS
#define SUBS        SUBS_PAIRS
#define GROUP_SIZE  36
#define BLOCK_ELEMS 128
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// Blocks of 64: a scale, and a byte for each four elements.
TN_INLINE void q2_0_unpack(const uint8_t *w, __m512i *u)
{
    const __m512i codes = _mm512_set1_epi32(0x03030303);
    __m512i v = load_4x16(w + 2, 18);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i a = byte_of_lanes(v, z);
        __m512i b = _mm512_or_si512(a, _mm512_slli_epi32(a, 6)); // of which bits 6 and 7 do not matter
        b = _mm512_or_si512(b, _mm512_slli_epi32(b, 12));
        u[z] = _mm512_and_si512(b, codes);
    }
}

TN_INLINE __m512 q2_0_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return _mm512_zextps256_ps512(q2_0_scales_8(w));
}

#define TYPE        q2_0
#define SUB         32
#define HAS_MIN     0
#define BIAS        1
#define ORDER       ORDER_QUADS
#define SUBS        SUBS_PAIRS
#define GROUP_SIZE  72
#define BLOCK_ELEMS 64
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// --- NVFP4 ------------------------------------------------------------------------------------------------

// Vector z holds 4 bytes of each block of 16: lanes of blocks 2 i, 2 i + 1, 2 i + 8, 2 i + 9.
#define FOUR_OF_16(i, z) 8 * (i) + (z), 8 * (i) + 4 + (z), 8 * (i) + 32 + (z), 8 * (i) + 36 + (z)
#define ORDER_16(z)      FOUR_OF_16(0, z), FOUR_OF_16(1, z), FOUR_OF_16(2, z), FOUR_OF_16(3, z)
#define ORDER_NVFP4                                                                                          \
    {                                                                                                        \
        ORDER_16(0), ORDER_16(1), ORDER_16(2), ORDER_16(3)                                                   \
    }
#define SUBS_NVFP4                                                                                           \
    {                                                                                                        \
        0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15                                                 \
    }

// Blocks of 64: four scales, and 8 bytes for each 16 elements, whose low nibbles are the first 8.
TN_INLINE void nvfp4_unpack(const uint8_t *w, __m512i *u)
{
    const __m512i values = fp4_values();
    __m512i a = load_2x32(w + 4, 36), b = load_2x32(w + 76, 36);
    __m512i even = shuffle_words(a, b, 0), odd = shuffle_words(a, b, 1);
    u[0] = _mm512_shuffle_epi8(values, low_nibbles(even));
    u[1] = _mm512_shuffle_epi8(values, low_nibbles(odd));
    u[2] = _mm512_shuffle_epi8(values, high_nibbles(even));
    u[3] = _mm512_shuffle_epi8(values, high_nibbles(odd));
}

TN_INLINE __m512 nvfp4_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return _mm512_mul_ps(_mm512_cvtph_ps(nvfp4_halves(w)), _mm512_set1_ps(128.0f)); // values are twice E2M1
}

#define TYPE        nvfp4
#define SUB         16
#define HAS_MIN     0
#define BIAS        12
#define ORDER       ORDER_NVFP4
#define SUBS        SUBS_NVFP4
#define GROUP_SIZE  144
#define BLOCK_ELEMS 64
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"
