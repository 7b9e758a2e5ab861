// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the AVX-512 VNNI kernels of matrix products that all weight types share.
#ifndef TN_CPU_X86_MATMUL_AVX512VNNI_H
#define TN_CPU_X86_MATMUL_AVX512VNNI_H

#include "backends/cpu/matmul.h"
#include "backends/cpu/x86/matmul_loops.h"
#include "core/fp16.h"

#include <immintrin.h>
#include <string.h>

// Bytes of a tile per 4 k: 32 rows of 4 bytes.
enum { TILE_STEP = TN_MATMUL_TILE_ROWS * 4 };

// Orders of 16-byte units within 256 elements (tn_matmul_format): how the packed bits fall into vectors.
#define ORDER_NATURAL {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
// Low nibbles of 4 blocks of 32, then their high nibbles.
#define ORDER_NIBBLES {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15}
// Low nibbles of the first halves of four runs of 32 bytes, each holding sub-blocks (2g, 2g + 1), low nibbles of
// the second halves, then the high nibbles.
#define ORDER_RUNS {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}
// Bit pairs s of both halves of the group.
#define ORDER_PLANES {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15}

// Sub-block of each lane of accumulator c.
TN_INLINE __m512i lanes_of_2(int a, int b)
{
    return _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
}

TN_INLINE __m512i lanes_of_4(int a, int b, int c, int d)
{
    return _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
}

TN_INLINE __m512i lanes_natural_32(int c)
{
    return lanes_of_2(2 * c, 2 * c + 1);
}

TN_INLINE __m512i lanes_fours(int c) // natural with sub-blocks of 16; nibbles with blocks of 32
{
    return lanes_of_4(4 * c, 4 * c + 1, 4 * c + 2, 4 * c + 3);
}

TN_INLINE __m512i lanes_runs(int c)
{
    return lanes_of_4(c, c + 2, c + 4, c + 6);
}

TN_INLINE __m512i lanes_planes(int c)
{
    return lanes_of_4(2 * c, 2 * c + 1, 8 + 2 * c, 9 + 2 * c);
}

// Values of the sub-blocks of a group, zeros above.
TN_INLINE __m512 load_subs(const uint8_t *p, int sub)
{
    if (sub == 16) return _mm512_loadu_ps(p);
    return _mm512_zextps256_ps512(_mm256_loadu_ps((const float *)(const void *)p));
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
    __m512 c = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd)); // a quarter for each
    c = _mm512_add_ps(c, _mm512_permute_ps(c, 0x4e));                                             // 2 3 0 1
    c = _mm512_add_ps(c, _mm512_permute_ps(c, 0xb1));                                             // 1 0 3 2
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), c));
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

TN_INLINE __m512i low_nibbles(__m512i v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

TN_INLINE __m512i high_nibbles(__m512i v)
{
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}

// Code book of IQ4_NL and IQ4_XS, + 128.
TN_INLINE __m512i iq4_values(void)
{
    return _mm512_broadcast_i32x4(_mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, (char)129, (char)141, (char)153,
                                                (char)166, (char)181, (char)197, (char)217, (char)241));
}

TN_INLINE uint64_t load_u64_of_u16(const uint8_t *p, int stride) // 4 values at a stride
{
    return (uint64_t)tn_load_u16(p) | (uint64_t)tn_load_u16(p + stride) << 16 |
           (uint64_t)tn_load_u16(p + 2 * stride) << 32 | (uint64_t)tn_load_u16(p + 3 * stride) << 48;
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

extern const tn_matmul_kernel tn_matmul_q4_0_avx512vnni, tn_matmul_q4_1_avx512vnni, tn_matmul_q5_0_avx512vnni,
    tn_matmul_q5_1_avx512vnni, tn_matmul_q8_0_avx512vnni, tn_matmul_q2_k_avx512vnni, tn_matmul_q3_k_avx512vnni,
    tn_matmul_q4_k_avx512vnni, tn_matmul_q5_k_avx512vnni, tn_matmul_q6_k_avx512vnni, tn_matmul_iq4_nl_avx512vnni,
    tn_matmul_iq4_xs_avx512vnni, tn_matmul_mxfp4_avx512vnni;

#endif
