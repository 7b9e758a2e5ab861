// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: unpackers of the weight types with super-blocks of 256. Kernels, layouts and maths:
// product_avx2_tmpl.h, numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx2.h"

TN_INLINE __m256 scale_i8(__m128i v, __m256 d) // the lower 8
{
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)), d);
}

TN_INLINE void scales_16(__m128i v, __m256 d, __m256 *scale)
{
    scale[0] = scale_i8(v, d);
    scale[1] = scale_i8(_mm_unpackhi_epi64(v, v), d);
}

// u[z] |= value where bit z of the byte is set
TN_INLINE void add_bits(__m256i bits, int value, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) {
        __m256i bit = _mm256_set1_epi8((char)(1 << z));
        __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit);
        u[z] = _mm256_or_si256(u[z], _mm256_and_si256(set, _mm256_set1_epi8((char)value)));
    }
}

TN_INLINE void q2_k_unpack(const uint8_t *w, __m256i *u)
{
    unpack_planes(w + 16, u);
}

TN_INLINE void q2_k_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    __m128i v = _mm_loadu_si128((const void *)w), low = _mm_set1_epi8(15);
    scales_16(_mm_and_si128(v, low), load_f16_all(w + 80), scale);
    __m256 dmin = _mm256_sub_ps(_mm256_setzero_ps(), load_f16_all(w + 82));
    scales_16(_mm_and_si128(_mm_srli_epi16(v, 4), low), dmin, min);
}

#define TYPE        q2_k
#define SUB         16
#define CHAIN       1
#define HAS_MIN     1
#define SIGNED      0
#define BIAS        0
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_2
#define GROUP_SIZE  84
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_16_steps_4_min)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void q3_k_unpack(const uint8_t *w, __m256i *u)
{
    unpack_planes(w + 32, u);
    add_bits(load_i8(w), 4, u);
}

TN_INLINE void q3_k_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    __m128i low = _mm_loadl_epi64((const void *)(w + 96));
    low = _mm_and_si128(_mm_unpacklo_epi64(low, _mm_srli_epi16(low, 4)), _mm_set1_epi8(15));
    __m128i high = _mm_srlv_epi32(_mm_set1_epi32((int)tn_load_u32(w + 104)), _mm_setr_epi32(0, 2, 4, 6));
    high = _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4);
    scales_16(_mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32)), load_f16_all(w + 108), scale);
}

#define TYPE        q3_k
#define SUB         16
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        4
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_2
#define GROUP_SIZE  110
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_16_steps_4)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// 128 bytes, of which the low nibbles of each 32 are one sub-block and the high ones the next. A vector has
// half of sub-block a and half of a + 2, and the next vector the other halves, so that both go through one
// accumulator: a = 0, 1, 4, 5.
#define ORDER_SUB_PAIRS                                                                                      \
    {                                                                                                        \
        0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15                                                 \
    }
TN_INLINE int first_of_pair(int c)
{
    return c / 2 * 4 + c % 2;
}

TN_INLINE __m256 lanes_of_sub_pairs(const __m256 *s, int c)
{
    int a = first_of_pair(c), b = a + 2;
    return _mm256_permutevar8x32_ps(s[0], _mm256_setr_epi32(a, a, a, a, b, b, b, b));
}

TN_INLINE void unpack_sub_pairs(const uint8_t *p, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) {
        __m256i v = load_2x16(p + i / 2 * 64 + i % 2 * 16, 32);
        u[i / 2 * 4 + i % 2] = low_nibbles(v);
        u[i / 2 * 4 + i % 2 + 2] = high_nibbles(v);
    }
}

TN_INLINE void q4_k_unpack(const uint8_t *w, __m256i *u)
{
    unpack_sub_pairs(w + 16, u);
}

// d, dmin f16, then eight 6-bit scales and minima in 12 bytes, as 32-bit words a, b, c: bytes of a and b hold
// the first four scales and minima, nibbles of c the others, whose upper two bits lie above in a and b.
TN_INLINE void q4_k_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    const __m128i low_mask = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    const __m128i high_mask = _mm_setr_epi32(0, 0x30303030, 0, 0x30303030);
    __m128i v = _mm_loadu_si128((const void *)w);
    __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(v, 0xed), _mm_setr_epi32(0, 0, 0, 4)); // a, c, b, c
    low = _mm_and_si128(low, low_mask);
    __m128i high = _mm_and_si128(_mm_srli_epi32(_mm_shuffle_epi32(v, 0x94), 2), high_mask); // -, a, -, b
    __m128i s = _mm_or_si128(low, high);
    __m128 d = _mm_cvtph_ps(_mm_xor_si128(v, _mm_cvtsi32_si128((int)0x80000000u))); // d, -dmin
    *scale = scale_i8(s, _mm256_broadcastss_ps(d));
    *min = scale_i8(_mm_unpackhi_epi64(s, s), _mm256_broadcastss_ps(_mm_movehdup_ps(d)));
}

#define TYPE        q4_k
#define SUB         32
#define CHAIN       2
#define HAS_MIN     1
#define SIGNED      0
#define BIAS        0
#define ORDER       ORDER_SUB_PAIRS
#define LANES       lanes_of_sub_pairs
#define GROUP_SIZE  144
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8_min)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void q5_k_unpack(const uint8_t *w, __m256i *u)
{
    unpack_sub_pairs(w + 48, u);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) { // bit a of 32 bytes belongs to sub-block a
        int a = first_of_pair(z / 2);
        __m256i bits = load_2x16(w + 16 + z % 2 * 16, 0);
        __m256i bit = _mm256_set_m128i(_mm_set1_epi8((char)(4 << a)), _mm_set1_epi8((char)(1 << a)));
        __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit);
        u[z] = _mm256_or_si256(u[z], _mm256_and_si256(set, _mm256_set1_epi8(16)));
    }
}

#define q5_k_scales q4_k_scales
#define TYPE        q5_k
#define SUB         32
#define CHAIN       2
#define HAS_MIN     1
#define SIGNED      0
#define BIAS        0
#define ORDER       ORDER_SUB_PAIRS
#define LANES       lanes_of_sub_pairs
#define GROUP_SIZE  176
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_4_min)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void q6_k_unpack(const uint8_t *w, __m256i *u)
{
    const __m256i mask = _mm256_set1_epi8(0x30);
    TN_MATMUL_UNROLL
    for (int n = 0; n < 2; n++) { // sub-runs of 32: low nibbles of 2 x 32 bytes, then their high nibbles
        __m256i a = load_i8(w + 64 * n), b = load_i8(w + 64 * n + 32), high = load_i8(w + 128 + 32 * n);
        __m256i *v = u + 4 * n;
        v[0] = _mm256_or_si256(low_nibbles(a), _mm256_and_si256(_mm256_slli_epi16(high, 4), mask));
        v[1] = _mm256_or_si256(low_nibbles(b), _mm256_and_si256(_mm256_slli_epi16(high, 2), mask));
        v[2] = _mm256_or_si256(high_nibbles(a), _mm256_and_si256(high, mask));
        v[3] = _mm256_or_si256(high_nibbles(b), _mm256_and_si256(_mm256_srli_epi16(high, 2), mask));
    }
}

TN_INLINE void q6_k_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    scales_16(_mm_loadu_si128((const void *)(w + 192)), load_f16_all(w + 208), scale);
}

#define TYPE        q6_k
#define SUB         16
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        32
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_2
#define GROUP_SIZE  210
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_16_steps_2)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

// 128 bytes: low nibbles of each 32, then their high nibbles.
TN_INLINE void unpack_nibbles(const uint8_t *p, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) {
        __m256i v = load_i8(p + 32 * i);
        u[2 * i] = low_nibbles(v);
        u[2 * i + 1] = high_nibbles(v);
    }
}

TN_INLINE void iq4_xs_unpack(const uint8_t *w, __m256i *u)
{
    unpack_nibbles(w + 8, u);
    const __m256i values = iq4_values();
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) u[z] = _mm256_shuffle_epi8(values, u[z]);
}

TN_INLINE void iq4_xs_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    __m256i low = _mm256_set1_epi32((int)tn_load_u32(w + 4)), high = _mm256_set1_epi32(tn_load_u16(w + 2));
    low = _mm256_srlv_epi32(low, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    high = _mm256_srlv_epi32(high, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    low = _mm256_and_si256(low, _mm256_set1_epi32(15));
    high = _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4);
    __m256i s = _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32));
    *scale = _mm256_mul_ps(_mm256_cvtepi32_ps(s), load_f16_all(w));
}

#define TYPE        iq4_xs
#define SUB         32
#define CHAIN       2
#define HAS_MIN     0
#define SIGNED      1
#define BIAS        0
#define ORDER       ORDER_NIBBLES
#define LANES       lanes_of_2
#define GROUP_SIZE  136
#define BLOCK_ELEMS 256
#define TILE        AT_LEVEL(tn_matmul_tile_32_signed)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"
