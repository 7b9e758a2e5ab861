// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: unpackers of the weight types with blocks of 32; a group is 8 blocks. Kernels, layouts and maths:
// product_avx2_tmpl.h, numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx2.h"

// Nibbles at p + stride * block.
TN_INLINE void unpack_nibbles(const uint8_t *p, int stride, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) {
        __m256i v = load_2x16(p + 2 * i * stride, stride);
        u[2 * i] = low_nibbles(v);
        u[2 * i + 1] = high_nibbles(v);
    }
}

// 16 bytes of the bits of two 16-bit words, as 16 where the bit is set.
TN_INLINE __m256i sixteens(const uint8_t *a, const uint8_t *b)
{
    __m256i v =
        _mm256_set_m128i(_mm_set1_epi16((short)tn_load_u16(b)), _mm_set1_epi16((short)tn_load_u16(a)));
    v = _mm256_shuffle_epi8(v, _mm256_setr_epi64x(0, 0x0101010101010101, 0, 0x0101010101010101));
    const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    v = _mm256_cmpeq_epi8(_mm256_and_si256(v, bits), bits);
    return _mm256_and_si256(v, _mm256_set1_epi8(16));
}

// Fifth bits at h + stride * block: the lower 16 of 32 bits belong to low nibbles.
TN_INLINE void add_fifth_bits(const uint8_t *h, int stride, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) {
        const uint8_t *a = h + 2 * i * stride, *b = a + stride;
        u[2 * i] = _mm256_or_si256(u[2 * i], sixteens(a, b));
        u[2 * i + 1] = _mm256_or_si256(u[2 * i + 1], sixteens(a + 2, b + 2));
    }
}

TN_INLINE void q4_0_unpack(const uint8_t *w, __m256i *u)
{
    unpack_nibbles(w + 2, 18, u);
}

TN_INLINE void q4_0_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = load_8_f16(w, 18);
}

#define TYPE        q4_0
#define SUB         32
#define CHAIN       2
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        8
#define ORDER       ORDER_NIBBLES
#define LANES       lanes_of_2
#define GROUP_SIZE  144
#define BLOCK_ELEMS 32
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void q4_1_unpack(const uint8_t *w, __m256i *u)
{
    unpack_nibbles(w + 4, 20, u);
}

TN_INLINE void q4_1_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    *scale = load_8_f16(w, 20);
    *min = load_8_f16(w + 2, 20);
}

#define TYPE        q4_1
#define SUB         32
#define CHAIN       2
#define HAS_MIN     1
#define SIGNED      0
#define BIAS        0
#define ORDER       ORDER_NIBBLES
#define LANES       lanes_of_2
#define GROUP_SIZE  160
#define BLOCK_ELEMS 32
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_8_min)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void q5_0_unpack(const uint8_t *w, __m256i *u)
{
    unpack_nibbles(w + 6, 22, u);
    add_fifth_bits(w + 2, 22, u);
}

TN_INLINE void q5_0_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = load_8_f16(w, 22);
}

#define TYPE        q5_0
#define SUB         32
#define CHAIN       2
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        16
#define ORDER       ORDER_NIBBLES
#define LANES       lanes_of_2
#define GROUP_SIZE  176
#define BLOCK_ELEMS 32
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_4)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void q5_1_unpack(const uint8_t *w, __m256i *u)
{
    unpack_nibbles(w + 8, 24, u);
    add_fifth_bits(w + 4, 24, u);
}

TN_INLINE void q5_1_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    *scale = load_8_f16(w, 24);
    *min = load_8_f16(w + 2, 24);
}

#define TYPE        q5_1
#define SUB         32
#define CHAIN       2
#define HAS_MIN     1
#define SIGNED      0
#define BIAS        0
#define ORDER       ORDER_NIBBLES
#define LANES       lanes_of_2
#define GROUP_SIZE  192
#define BLOCK_ELEMS 32
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_4_min)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void q8_0_unpack(const uint8_t *w, __m256i *u)
{
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) u[z] = load_i8(w + 2 + 34 * z);
}

TN_INLINE void q8_0_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    *scale = load_8_f16(w, 34);
}

#define TYPE        q8_0
#define SUB         32
#define CHAIN       1
#define HAS_MIN     0
#define SIGNED      1
#define BIAS        0
#define ORDER       ORDER_NATURAL
#define LANES       lanes_of_1
#define GROUP_SIZE  272
#define BLOCK_ELEMS 32
#define TILE        AT_LEVEL(tn_matmul_tile_32_signed)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void iq4_nl_unpack(const uint8_t *w, __m256i *u)
{
    unpack_nibbles(w + 2, 18, u);
    const __m256i values = iq4_values();
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) u[z] = _mm256_shuffle_epi8(values, u[z]);
}

#define iq4_nl_scales q4_0_scales
#define TYPE          iq4_nl
#define SUB           32
#define CHAIN         2
#define HAS_MIN       0
#define SIGNED        1
#define BIAS          0
#define ORDER         ORDER_NIBBLES
#define LANES         lanes_of_2
#define GROUP_SIZE    144
#define BLOCK_ELEMS   32
#define TILE          AT_LEVEL(tn_matmul_tile_32_signed)
#define ROWS_X_MAX    8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"

TN_INLINE void mxfp4_unpack(const uint8_t *w, __m256i *u)
{
    unpack_nibbles(w + 1, 17, u);
    const __m256i values = fp4_values();
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) u[z] = _mm256_shuffle_epi8(values, u[z]);
}

// 2^(e - 128), below 2^-126 as subnormals.
TN_INLINE void mxfp4_scales(const uint8_t *w, __m256 *scale, __m256 *min)
{
    TN_UNUSED(min);
    __m256i e = _mm256_and_si256(_mm256_cvtepu16_epi32(load_8_u16(w, 17)), _mm256_set1_epi32(255));
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    *scale = _mm256_castsi256_ps(_mm256_blendv_epi8(normal, small, is_small));
}

#define TYPE        mxfp4
#define SUB         32
#define CHAIN       2
#define HAS_MIN     0
#define SIGNED      0
#define BIAS        12
#define ORDER       ORDER_NIBBLES
#define LANES       lanes_of_2
#define GROUP_SIZE  136
#define BLOCK_ELEMS 32
#define TILE        AT_LEVEL(tn_matmul_tile_32_steps_4)
#define ROWS_X_MAX  8
#include "backends/cpu/x86/product/product_avx2_tmpl.h"
