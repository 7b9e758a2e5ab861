// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: unpackers of TQ1_0, TQ2_0, Q1_0, Q2_0 and NVFP4. Kernels, layouts and maths: product_avx2_tmpl.h,
// formats: ops/quant/quant_ternary.c and quant_fp4.c, numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx2.h"
// after the dot products
#include "backends/cpu/x86/product/codes.h"

// --- ternary -----------------------------------------------------------------------------------------------

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

// --- bits and pairs of bits in the order of the elements
// -----------------------------------------------------

// Blocks of 128: a scale, and a bit for each element, which becomes 0 or 2.
TN_INLINE void q1_0_unpack(const uint8_t *w, __m256i *u)
{
    const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        __m256i v = _mm256_set1_epi32((int)tn_load_u32(w + z / 4 * 18 + 2 + z % 4 * 4));
        v = _mm256_and_si256(_mm256_shuffle_epi8(v, bytes), bits);
        u[z] = _mm256_and_si256(_mm256_cmpeq_epi8(v, bits), _mm256_set1_epi8(2));
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
    __m128i d = _mm_setr_epi16((short)tn_load_u16(w), 0, (short)tn_load_u16(w + 18), 0,
                               (short)tn_load_u16(w + 36), 0, (short)tn_load_u16(w + 54), 0);
    *scale = _mm256_cvtph_ps(_mm_or_si128(d, _mm_slli_epi32(d, 16))); // each for two sub-blocks
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

// --- NVFP4 -------------------------------------------------------------------------------------------------

// Blocks of 64: four scales, and 8 bytes for each 16 elements, whose low nibbles are the first 8.
TN_INLINE void nvfp4_unpack(const uint8_t *w, __m256i *u)
{
    const __m256i values = // twice E2M1, + 12
        _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
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

// Half of E4M3 without a sign: as a half float, whose exponent has one bit more and a bias of 15, times 2^7.
TN_INLINE void nvfp4_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    const __m128i none = _mm_set1_epi8(0x7f); // no number reads as 0
    __m128i v = _mm_setr_epi32((int)tn_load_u32(w), (int)tn_load_u32(w + 36), (int)tn_load_u32(w + 72),
                               (int)tn_load_u32(w + 108));
    v = _mm_and_si128(v, none);
    v = _mm_andnot_si128(_mm_cmpeq_epi8(v, none), v);
    __m256i half = _mm256_slli_epi16(_mm256_cvtepu8_epi16(v), 7);
    scale[0] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), _mm256_set1_ps(128.0f));
    scale[1] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), _mm256_set1_ps(128.0f));
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
