// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: unpackers of the codebook formats (IQ1 to IQ3), TQ1_0, TQ2_0, Q1_0, Q2_0 and NVFP4. Kernels, layouts
// and maths: product_avx2_tmpl.h, formats: ops/quant/quant_iq.c, ops/quant/quant_ternary.c and
// ops/quant/quant_fp4.c, numbers: backends/cpu/README.md.
//
// Rows of grids are loaded one by one: gathers are slower on most processors of this level.
#include "backends/cpu/grids.h"
#include "backends/cpu/x86/product/product_avx2.h"
// after the dot products
#include "backends/cpu/x86/product/codes.h"
#include "ops/quant_tables.h"

// --- pieces -----------------------------------------------------------------------------------------------

TN_INLINE __m256i four_rows(const uint64_t *rows, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm256_setr_epi64x((long long)rows[a], (long long)rows[b], (long long)rows[c], (long long)rows[d]);
}

// All ones where the bits of four bytes are set.
TN_INLINE __m256i bytes_of_bits(uint32_t v)
{
    const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    __m256i u = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)v), bytes), bits);
    return _mm256_cmpeq_epi8(u, bits);
}

// u where the bit of a sign is not set, 2 * bias - u where it is. signs: four bytes.
TN_INLINE __m256i with_signs(__m256i u, uint32_t signs, int bias)
{
    __m256i minus = bytes_of_bits(signs); // -u = ~u + 1
    __m256i add = _mm256_and_si256(minus, _mm256_set1_epi8((char)(2 * bias + 1)));
    return _mm256_add_epi8(_mm256_xor_si256(u, minus), add);
}

TN_INLINE void store_words(uint32_t *to, __m256i v)
{
    _mm256_store_si256((void *)to, v);
}

// d * (factor * (s + half)) for eight integers.
TN_INLINE __m256 scales_8(__m256i s, float half, float factor, __m256 d)
{
    __m256 v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s), _mm256_set1_ps(factor), _mm256_set1_ps(factor * half));
    return _mm256_mul_ps(v, d);
}

// Scales of IQ2_XS and IQ2_S, a nibble for each 16: d * (s + 0.5) / 4.
TN_INLINE void scales_iq2(const uint8_t *nibbles, __m256 d, __m256 *scale)
{
    __m128i v = _mm_loadl_epi64((const void *)nibbles);
    v = _mm_and_si128(_mm_unpacklo_epi8(v, _mm_srli_epi16(v, 4)), _mm_set1_epi8(15));
    scale[0] = scales_8(_mm256_cvtepu8_epi32(v), 0.5f, 0.25f, d);
    scale[1] = scales_8(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(v, v)), 0.5f, 0.25f, d);
}

// --- IQ2 --------------------------------------------------------------------------------------------------

// The words of IQ2_XXS by turns: four numbers of rows, and four times 7 sign bits below a scale.
TN_INLINE __m256i iq2_xxs_words(const uint8_t *w)
{
    __m256 a = _mm256_castsi256_ps(load_i8(w + 2)), b = _mm256_castsi256_ps(load_i8(w + 34));
    __m256i v = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
    return _mm256_permute4x64_epi64(v, 0xd8);
}

TN_INLINE void iq2_xxs_unpack(const uint8_t *w, __m256i *u)
{
    uint32_t signs[8] TN_ALIGNED(32);
    store_words(signs, signs_of_4x7(iq2_xxs_words(w)));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        const uint8_t *n = w + 2 + 8 * z;
        u[z] = with_signs(four_rows(tn_cpu_iq2xxs_rows, n[0], n[1], n[2], n[3]), signs[z], TN_IQ2_BIAS);
    }
}

TN_INLINE void iq2_xxs_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = scales_8(_mm256_srli_epi32(iq2_xxs_words(w), 28), 0.5f, 0.25f, load_f16_all(w));
}

#define TYPE        iq2_xxs
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        TN_IQ2_BIAS
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  66
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_1)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// 32 words of 9 bits of a number and 7 of signs.
TN_INLINE void iq2_xs_unpack(const uint8_t *w, __m256i *u)
{
    uint32_t signs[8] TN_ALIGNED(32);
    __m256i a = _mm256_srli_epi16(load_i8(w + 2), 9), b = _mm256_srli_epi16(load_i8(w + 34), 9);
    __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
    store_words(signs, signs_of_7(bytes));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        const uint8_t *n = w + 2 + 8 * z;
        __m256i v = four_rows(tn_cpu_iq2xs_rows, tn_load_u16(n) & 511u, tn_load_u16(n + 2) & 511u,
                              tn_load_u16(n + 4) & 511u, tn_load_u16(n + 6) & 511u);
        u[z] = with_signs(v, signs[z], TN_IQ2_BIAS);
    }
}

TN_INLINE void iq2_xs_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    scales_iq2(w + 66, load_f16_all(w), scale);
}

#define TYPE        iq2_xs
#define SUB         16
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        TN_IQ2_BIAS
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_2
#define GROUP_SIZE  74
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_16_steps_1)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void iq2_s_unpack(const uint8_t *w, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        const uint8_t *n = w + 2 + 4 * z;
        uint32_t high = (uint32_t)w[66 + z] << 8;
        __m256i v = four_rows(tn_cpu_iq2s_rows, n[0] | (high & 0x300), n[1] | (high >> 2 & 0x300),
                              n[2] | (high >> 4 & 0x300), n[3] | (high >> 6 & 0x300));
        u[z] = with_signs(v, tn_load_u32(w + 34 + 4 * z), TN_IQ2_BIAS);
    }
}

TN_INLINE void iq2_s_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    scales_iq2(w + 74, load_f16_all(w), scale);
}

#define TYPE        iq2_s
#define SUB         16
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        TN_IQ2_BIAS
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_2
#define GROUP_SIZE  82
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_16_steps_1)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// --- IQ3 --------------------------------------------------------------------------------------------------

TN_INLINE void iq3_xxs_unpack(const uint8_t *w, __m256i *u)
{
    const uint32_t *rows = tn_cpu_iq3xxs_rows;
    uint32_t signs[8] TN_ALIGNED(32);
    store_words(signs, signs_of_4x7(load_i8(w + 66)));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        const uint8_t *n = w + 2 + 8 * z;
        __m256i v = _mm256_setr_epi32((int)rows[n[0]], (int)rows[n[1]], (int)rows[n[2]], (int)rows[n[3]],
                                      (int)rows[n[4]], (int)rows[n[5]], (int)rows[n[6]], (int)rows[n[7]]);
        u[z] = with_signs(v, signs[z], TN_IQ3XXS_BIAS);
    }
}

TN_INLINE void iq3_xxs_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = scales_8(_mm256_srli_epi32(load_i8(w + 66), 28), 0.5f, 0.5f, load_f16_all(w));
}

#define TYPE        iq3_xxs
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        TN_IQ3XXS_BIAS
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  98
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_1)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// Row i of a block: eight low bits of its number at n[i], the ninth is bit i of high.
TN_INLINE int iq3_s_row(const uint8_t *n, uint32_t high, int i)
{
    return (int)tn_cpu_iq3s_rows[n[i] | (high << (8 - i) & 256u)];
}

TN_INLINE void iq3_s_unpack(const uint8_t *w, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        const uint8_t *n = w + 2 + 8 * z;
        uint32_t h = w[66 + z];
        __m256i v =
            _mm256_setr_epi32(iq3_s_row(n, h, 0), iq3_s_row(n, h, 1), iq3_s_row(n, h, 2), iq3_s_row(n, h, 3),
                              iq3_s_row(n, h, 4), iq3_s_row(n, h, 5), iq3_s_row(n, h, 6), iq3_s_row(n, h, 7));
        u[z] = with_signs(v, tn_load_u32(w + 74 + 4 * z), TN_IQ3S_BIAS);
    }
}

TN_INLINE void iq3_s_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    __m256i v = _mm256_set1_epi32((int)tn_load_u32(w + 106));
    v = _mm256_srlv_epi32(v, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    *scale = scales_8(_mm256_and_si256(v, _mm256_set1_epi32(15)), 0.5f, 2.0f, load_f16_all(w));
}

#define TYPE        iq3_s
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        TN_IQ3S_BIAS
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  110
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_4)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// --- IQ1 --------------------------------------------------------------------------------------------------

// value = scale * (code - 1 + shift), so all but the code is a minimum.
TN_INLINE void iq1_s_unpack(const uint8_t *w, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        const uint8_t *n = w + 2 + 4 * z;
        uint32_t high = (uint32_t)tn_load_u16(w + 34 + 2 * z) << 8;
        u[z] = four_rows(tn_cpu_iq1_rows, n[0] | (high & 0x700), n[1] | (high >> 3 & 0x700),
                         n[2] | (high >> 6 & 0x700), n[3] | (high >> 9 & 0x700));
    }
}

TN_INLINE void iq1_s_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    __m256i h = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(w + 34)));
    __m256i s = _mm256_and_si256(_mm256_srli_epi32(h, 12), _mm256_set1_epi32(7));
    *scale = scales_8(s, 0.5f, 2.0f, load_f16_all(w));
    __m256 shift = _mm256_blendv_ps(_mm256_set1_ps(-0.875f), _mm256_set1_ps(-1.125f),
                                    _mm256_castsi256_ps(_mm256_slli_epi32(h, 16)));
    *min = _mm256_mul_ps(*scale, shift);
}

#define TYPE        iq1_s
#define SUB         32
#define CHAIN       1
#define HAS_MIN     1
#define SIGNED      0
#define BIAS        0
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  50
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8_min)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// As eighths: 8 (code - 1) + 1 or - 1, because the shift is that of 8 elements and the scale that of 16.
TN_INLINE void iq1_m_unpack(const uint8_t *w, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        const uint8_t *n = w + 4 * z;
        uint32_t nibbles = tn_load_u16(w + 32 + 2 * z), high = nibbles << 8; // 3 bits of a number, 1 of sign
        __m256i v = four_rows(tn_cpu_iq1_rows, n[0] | (high & 0x700), n[1] | (high >> 4 & 0x700),
                              n[2] | (high >> 8 & 0x700), n[3] | (high >> 12 & 0x700));
        __m256i sign = _mm256_and_si256(_mm256_set1_epi64x(nibbles), _mm256_setr_epi64x(8, 128, 2048, 32768));
        __m256i plus = _mm256_cmpeq_epi64(sign, _mm256_setzero_si256());
        u[z] = _mm256_add_epi8(_mm256_slli_epi64(v, 3), _mm256_and_si256(plus, _mm256_set1_epi8(2)));
    }
}

TN_INLINE void iq1_m_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    const __m256i shifts = _mm256_setr_epi32(0, 3, 6, 9, 0, 3, 6, 9);
    __m256 d = _mm256_set1_ps(_cvtsh_ss(tn_iq1m_scale(w)));
    __m256i words = _mm256_castsi128_si256(_mm_cvtepu16_epi32(_mm_loadl_epi64((const void *)(w + 48))));
    TN_MATMUL_UNROLL
    for (int i = 0; i < 2; i++) {
        int a = 2 * i, b = a + 1;
        __m256i s = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(a, a, a, a, b, b, b, b));
        s = _mm256_and_si256(_mm256_srlv_epi32(s, shifts), _mm256_set1_epi32(7));
        scale[i] = scales_8(s, 0.5f, 0.25f, d);
    }
}

#define TYPE        iq1_m
#define SUB         16
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        9
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_2
#define GROUP_SIZE  56
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_16_steps_4)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// --- ternary ----------------------------------------------------------------------------------------------

// 1 where v >= bound, as unsigned bytes.
TN_INLINE __m256i at_least(__m256i v, int bound)
{
    __m256i is = _mm256_cmpeq_epi8(_mm256_max_epu8(v, _mm256_set1_epi8((char)bound)), v);
    return _mm256_and_si256(is, _mm256_set1_epi8(1));
}

// Top digits in base 3: 3 v / 256.
TN_INLINE void tq1_0_unpack(const uint8_t *w, __m256i *u)
{
    trit_bytes(w, u);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) u[z] = _mm256_add_epi8(at_least(u[z], 86), at_least(u[z], 171));
}

TN_INLINE void tq1_0_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = load_f16_all(w + 52);
}

#define TYPE        tq1_0
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        1
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  54
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void tq2_0_unpack(const uint8_t *w, __m256i *u)
{
    unpack_planes(w, u);
}

TN_INLINE void tq2_0_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = load_f16_all(w + 64);
}

#define TYPE        tq2_0
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        1
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  66
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// --- bits and pairs of bits in the order of the elements --------------------------------------------------

// Blocks of 128: a scale, and a bit for each element, which becomes 0 or 2.
TN_INLINE void q1_0_unpack(const uint8_t *w, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        __m256i set = bytes_of_bits(tn_load_u32(w + z / 4 * 18 + 2 + z % 4 * 4));
        u[z] = _mm256_and_si256(set, _mm256_set1_epi8(2));
    }
}

TN_INLINE void q1_0_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = _mm256_blend_ps(load_f16_all(w), load_f16_all(w + 18), 0xf0);
}

#define TYPE        q1_0
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        1
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  36
#define BLOCK_ELEMS 128
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// Blocks of 64: a scale, and a byte for each four elements.
TN_INLINE void q2_0_unpack(const uint8_t *w, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        __m128i bytes = _mm_loadl_epi64((const void *)(w + z / 2 * 18 + 2 + z % 2 * 8));
        __m256i v = _mm256_cvtepu8_epi32(bytes);
        v = _mm256_or_si256(v, _mm256_slli_epi32(v, 6)); // of which bits 6 and 7 do not matter
        v = _mm256_or_si256(v, _mm256_slli_epi32(v, 12));
        u[z] = _mm256_and_si256(v, _mm256_set1_epi8(3));
    }
}

TN_INLINE void q2_0_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = q2_0_scales_8(w);
}

#define TYPE        q2_0
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        1
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  72
#define BLOCK_ELEMS 64
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// --- NVFP4 ------------------------------------------------------------------------------------------------

// Blocks of 64: four scales, and 8 bytes for each 16 elements, whose low nibbles are the first 8.
TN_INLINE void nvfp4_unpack(const uint8_t *w, __m256i *u)
{
    const __m256i values = fp4_values();
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) {
        __m256i v = load_i8(w + 36 * i + 4);
        __m256i low = _mm256_shuffle_epi8(values, low_nibbles(v));
        __m256i high = _mm256_shuffle_epi8(values, high_nibbles(v));
        __m256i a = _mm256_unpacklo_epi64(low, high), b = _mm256_unpackhi_epi64(low, high);
        u[2 * i] = _mm256_permute2x128_si256(a, b, 0x20);
        u[2 * i + 1] = _mm256_permute2x128_si256(a, b, 0x31);
    }
}

TN_INLINE void nvfp4_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    const __m256 factor = _mm256_set1_ps(128.0f); // values are twice E2M1
    __m256i v = nvfp4_halves(w);
    scale[0] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(v)), factor);
    scale[1] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(v, 1)), factor);
}

#define TYPE        nvfp4
#define SUB         16
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        12
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_2
#define GROUP_SIZE  144
#define BLOCK_ELEMS 64
#define TILE        AT_LEVEL(tn_matmul_tile_16_steps_4)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"
