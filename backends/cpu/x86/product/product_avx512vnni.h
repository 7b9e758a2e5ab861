// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the AVX-512 VNNI kernels of matrix products that all weight types share.
#ifndef TN_CPU_X86_PRODUCT_AVX512VNNI_H
#define TN_CPU_X86_PRODUCT_AVX512VNNI_H

#include "backends/cpu/product.h"
#include "backends/cpu/x86/product/product_loops.h"
#include "core/fp16.h"

#include <immintrin.h>
#include <string.h>

// Bytes of a tile per 4 k: 32 rows of 4 bytes.
enum { TILE_STEP = TN_MATMUL_TILE_ROWS * 4 };

// A group of 256 weights becomes four vectors u of bytes whose lane l (4 bytes) holds weights of sub-block
// subs[l] in each: dpbusd sums up all four, so a lane's sum is scaled once. SUBS_* are those tables, ORDER_*
// the 4-byte chunks of the group in that order (tn_matmul_format): what packed bits and few shuffles give.
//
// Blocks of 32: vector i holds the i-th quarter of each block.
#define EIGHT_OF(b, i) 8 * (b) + 2 * (i), 8 * (b) + 2 * (i) + 1
#define QUARTERS(i, j)                                                                                       \
    EIGHT_OF(0, i), EIGHT_OF(4, i), EIGHT_OF(1, j), EIGHT_OF(5, j), EIGHT_OF(2, i), EIGHT_OF(6, i),          \
        EIGHT_OF(3, j), EIGHT_OF(7, j)
#define ORDER_BLOCKS                                                                                         \
    {                                                                                                        \
        QUARTERS(0, 0), QUARTERS(1, 1), QUARTERS(2, 2), QUARTERS(3, 3)                                       \
    }
// Runs of 32 bytes whose low and high nibbles are two sub-blocks of 32: the odd ones lag by half.
#define ORDER_RUNS                                                                                           \
    {                                                                                                        \
        QUARTERS(0, 2), QUARTERS(2, 0), QUARTERS(1, 3), QUARTERS(3, 1)                                       \
    }
#define SUBS_32                                                                                              \
    {                                                                                                        \
        0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7                                                       \
    }
// Sub-blocks of 16 in natural order, transposed: vector i holds 4-byte chunk i of each.
#define FOURTHS(i)                                                                                           \
    (i), 16 + (i), 32 + (i), 48 + (i), 4 + (i), 20 + (i), 36 + (i), 52 + (i), 8 + (i), 24 + (i), 40 + (i),   \
        56 + (i), 12 + (i), 28 + (i), 44 + (i), 60 + (i)
#define ORDER_COLUMNS                                                                                        \
    {                                                                                                        \
        FOURTHS(0), FOURTHS(1), FOURTHS(2), FOURTHS(3)                                                       \
    }
#define SUBS_COLUMNS                                                                                         \
    {                                                                                                        \
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15                                                 \
    }
// Pairs of bits: chunk p of 16 bytes, turned by i chunks, gives plane p.
#define FOUR_OF(s, i)            4 * (s) + (i) % 4
#define PLANES_OF(a, b, c, d, i) FOUR_OF(a, i), FOUR_OF(b, (i) + 1), FOUR_OF(c, (i) + 2), FOUR_OF(d, (i) + 3)
#define PLANES(i)                                                                                            \
    PLANES_OF(0, 2, 4, 6, i), PLANES_OF(1, 3, 5, 7, i), PLANES_OF(8, 10, 12, 14, i),                         \
        PLANES_OF(9, 11, 13, 15, i)
#define ORDER_PLANES                                                                                         \
    {                                                                                                        \
        PLANES(0), PLANES(1), PLANES(2), PLANES(3)                                                           \
    }
#define SUBS_PLANES                                                                                          \
    {                                                                                                        \
        0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15                                                 \
    }

// Vector z holds elements 8 z to 8 z + 7 of each block of 32.
#define EIGHT_BLOCKS(z)                                                                                      \
    EIGHT_OF(0, z), EIGHT_OF(1, z), EIGHT_OF(2, z), EIGHT_OF(3, z), EIGHT_OF(4, z), EIGHT_OF(5, z),          \
        EIGHT_OF(6, z), EIGHT_OF(7, z)
#define ORDER_EIGHTS                                                                                         \
    {                                                                                                        \
        EIGHT_BLOCKS(0), EIGHT_BLOCKS(1), EIGHT_BLOCKS(2), EIGHT_BLOCKS(3)                                   \
    }
// Vector z holds elements 4 z to 4 z + 3 of each 16.
#define SIXTEEN_QUADS(z)                                                                                     \
    (z), 4 + (z), 8 + (z), 12 + (z), 16 + (z), 20 + (z), 24 + (z), 28 + (z), 32 + (z), 36 + (z), 40 + (z),   \
        44 + (z), 48 + (z), 52 + (z), 56 + (z), 60 + (z)
#define ORDER_QUADS                                                                                          \
    {                                                                                                        \
        SIXTEEN_QUADS(0), SIXTEEN_QUADS(1), SIXTEEN_QUADS(2), SIXTEEN_QUADS(3)                               \
    }
// The sub-blocks of both.
#define SUBS_PAIRS                                                                                           \
    {                                                                                                        \
        0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7                                                       \
    }

// The table subs as indices of a permutation; first: of the first sub-block.
TN_INLINE __m512i lanes_of(const uint8_t *subs, int first)
{
    __m512i lanes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)subs));
    return _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
}

// Values of the sub-blocks of a group, zeros above.
TN_INLINE __m512 load_subs(const uint8_t *p, int sub)
{
    if (sub == 16) return _mm512_loadu_ps(p);
    return _mm512_zextps256_ps512(_mm256_loadu_ps((const float *)(const void *)p));
}

// A half float in all lanes.
TN_INLINE __m512 load_f16_all(const uint8_t *p)
{
    return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(tn_load_u16(p))));
}

// One value per lane.
TN_INLINE __m512 load_lanes(const uint8_t *p)
{
    return _mm512_loadu_ps((const float *)(const void *)p);
}

// 8 values, in both halves.
TN_INLINE __m512 load_subs_twice(const uint8_t *p)
{
    return _mm512_broadcast_f32x8(_mm256_loadu_ps((const float *)(const void *)p));
}

// Sum of the lanes, in the order of add_lanes_4: halves, quarters, pairs of a quarter, both.
TN_INLINE float add_lanes(__m512 v)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

// Of four vectors at once: 3 additions and 6 shuffles for what is 4 and 4 each alone, in the same order.
TN_INLINE __m128 add_lanes_4(const __m512 *v)
{
    __m512 a = _mm512_add_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x44), _mm512_shuffle_f32x4(v[0], v[1], 0xee));
    __m512 b = _mm512_add_ps(_mm512_shuffle_f32x4(v[2], v[3], 0x44), _mm512_shuffle_f32x4(v[2], v[3], 0xee));
    __m512 c = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88),
                             _mm512_shuffle_f32x4(a, b, 0xdd)); // a quarter for each
    c = _mm512_add_ps(c, _mm512_permute_ps(c, 0x4e));           // 2 3 0 1
    c = _mm512_add_ps(c, _mm512_permute_ps(c, 0xb1));           // 1 0 3 2
    return _mm512_castps512_ps128(
        _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), c));
}

// 4 x 16 bytes at a stride.
TN_INLINE __m512i load_4x16(const uint8_t *p, int stride)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + stride)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 2 * stride)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 3 * stride)), 3);
}

TN_INLINE __m512i load_2x32(const uint8_t *p, int stride)
{
    __m512i v = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)p));
    return _mm512_inserti64x4(v, _mm256_loadu_si256((const void *)(p + stride)), 1);
}

// Even (0) or odd (1) words of each 16 bytes of a, then of b.
TN_INLINE __m512i shuffle_words(__m512i a, __m512i b, int which)
{
    __m512 v = which == 0 ? _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88)
                          : _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xdd);
    return _mm512_castps_si512(v);
}

// v and its 16-byte chunks turned left by 4, 8 and 12 bytes.
TN_INLINE void turns(__m512i v, __m512i *u)
{
    u[0] = v;
    u[1] = _mm512_shuffle_epi32(v, 0x39);
    u[2] = _mm512_shuffle_epi32(v, 0x4e);
    u[3] = _mm512_shuffle_epi32(v, 0x93);
}

// 64 bytes of four planes of pairs of bits, as ORDER_PLANES.
TN_INLINE void unpack_planes(const uint8_t *p, __m512i *u)
{
    const __m512i three = _mm512_set1_epi8(3), shifts = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 2, 4, 6));
    turns(_mm512_loadu_si512(p), u);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_and_si512(_mm512_srlv_epi32(u[z], shifts), three);
}

TN_INLINE __m512i low_nibbles(__m512i v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

TN_INLINE __m512i high_nibbles(__m512i v)
{
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}

// Nibbles of 8 blocks of 32, of four in a and of four in b, as quarters.
TN_INLINE void quarters_of_nibbles(__m512i a, __m512i b, __m512i *u)
{
    __m512i first = _mm512_unpacklo_epi64(a, b), second = _mm512_unpackhi_epi64(a, b);
    u[0] = low_nibbles(first);
    u[1] = low_nibbles(second);
    u[2] = high_nibbles(first);
    u[3] = high_nibbles(second);
}

// Code book of IQ4_NL and IQ4_XS, + 128.
TN_INLINE __m512i iq4_values(void)
{
    return _mm512_broadcast_i32x4(_mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, (char)129, (char)141,
                                                (char)153, (char)166, (char)181, (char)197, (char)217,
                                                (char)241));
}

// Twice E2M1 (MXFP4, NVFP4), + 12.
TN_INLINE __m512i fp4_values(void)
{
    return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
}

// The first 16 bits at 8 places p + i * stride, of which 32 are read.
TN_INLINE __m128i load_8_u16(const uint8_t *p, int stride)
{
    __m128i v[8];
    TN_MATMUL_UNROLL
    for (int i = 0; i < 8; i++) v[i] = _mm_cvtsi32_si128((int)tn_load_u32(p + i * stride));
    __m128i a = _mm_unpacklo_epi32(_mm_unpacklo_epi16(v[0], v[1]), _mm_unpacklo_epi16(v[2], v[3]));
    __m128i b = _mm_unpacklo_epi32(_mm_unpacklo_epi16(v[4], v[5]), _mm_unpacklo_epi16(v[6], v[7]));
    return _mm_unpacklo_epi64(a, b);
}

// 8 half floats at a stride, as the scales of a group.
TN_INLINE __m512 load_8_f16(const uint8_t *p, int stride)
{
    return _mm512_zextps256_ps512(_mm256_cvtph_ps(load_8_u16(p, stride)));
}

// Eight values of one row, then those of another one.
TN_INLINE __m512 both_rows(__m512 a, __m512 b)
{
    return _mm512_insertf32x8(a, _mm512_castps512_ps256(b), 1);
}

// 16 rows of 64 bytes -> v[i] = bytes 4i..4i+3 of all rows.
TN_INLINE void transpose_16(const uint8_t *rows, __m512i *v)
{
    TN_MATMUL_UNROLL
    for (int c = 0; c < 4; c++) {
        const uint8_t *p = rows + 16 * c;
        __m512i a = load_4x16(p, 256), b = load_4x16(p + 64, 256);
        __m512i d = load_4x16(p + 128, 256), e = load_4x16(p + 192, 256);
        __m512i ab0 = _mm512_unpacklo_epi32(a, b), ab1 = _mm512_unpackhi_epi32(a, b);
        __m512i de0 = _mm512_unpacklo_epi32(d, e), de1 = _mm512_unpackhi_epi32(d, e);
        v[4 * c] = _mm512_unpacklo_epi64(ab0, de0);
        v[4 * c + 1] = _mm512_unpackhi_epi64(ab0, de0);
        v[4 * c + 2] = _mm512_unpacklo_epi64(ab1, de1);
        v[4 * c + 3] = _mm512_unpackhi_epi64(ab1, de1);
    }
}

// 16 rows of n <= 16 sub-block values -> the tile's [sub][row].
TN_INLINE void pack_subs(const float *rows, float *out, int n)
{
    __m512i v[16];
    transpose_16((const uint8_t *)rows, v);
    for (int i = 0; i < n; i++) _mm512_store_si512(out + i * TN_MATMUL_TILE_ROWS, v[i]);
}

void tn_matmul_tile_16_avx512vnni(const tn_matmul_tile_args *a);
void tn_matmul_tile_16_min_avx512vnni(const tn_matmul_tile_args *a);
void tn_matmul_tile_32_avx512vnni(const tn_matmul_tile_args *a);
void tn_matmul_tile_32_min_avx512vnni(const tn_matmul_tile_args *a);

#define TN_CPU_QUANT_TYPE(type, name) extern const tn_matmul_kernel tn_matmul_##name##_avx512vnni;
#include "backends/cpu/quant_types.def"

#endif
