// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the AVX2 kernels of matrix products that all weight types share. AVX-VNNI compiles the same
// sources with dot_avxvnni.h in place of dot_avx2.h: LEVEL is the end of their names.
#ifndef TN_CPU_X86_PRODUCT_AVX2_H
#define TN_CPU_X86_PRODUCT_AVX2_H

#include "backends/cpu/product.h"
#include "backends/cpu/x86/product/dot_avx2.h" // unless the other one came before
#include "backends/cpu/x86/product/product_loops.h"
#include "core/fp16.h"

#include <immintrin.h>
#include <string.h>

#define AT_LEVEL_2(name, level) name##_##level
#define AT_LEVEL_1(name, level) AT_LEVEL_2(name, level)
#define AT_LEVEL(name)          AT_LEVEL_1(name, LEVEL)

enum {
    AVX2_TILE_ROWS = 16,
    AVX2_TILE_STEP = AVX2_TILE_ROWS * 4, // bytes of a tile per 4 k
    AVX2_QUANT_K = 1024,                 // TN_MATMUL_TILE_SUBS sub-blocks of 16
    AVX2_SIGNED_K = 64 * AVX2_QUANT_K / SIGNED_STEP,
};

// Orders of 16-byte chunks within 256 elements (tn_matmul_format).
#define ORDER_NATURAL                                                                                        \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15                                                 \
    }
// Low nibbles of 2 blocks of 32, then their high nibbles.
#define ORDER_NIBBLES                                                                                        \
    {                                                                                                        \
        0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15                                                 \
    }

TN_INLINE __m256 load_subs(const uint8_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}

TN_INLINE __m256i load_2x16(const uint8_t *p, int stride)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const void *)p));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const void *)(p + stride)), 1);
}

TN_INLINE __m256i low_nibbles(__m256i v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

TN_INLINE __m256i high_nibbles(__m256i v)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}

// A half float in all lanes.
TN_INLINE __m256 load_f16_all(const uint8_t *p)
{
    return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(tn_load_u16(p))));
}

// Two-bit planes of 64 bytes.
TN_INLINE void unpack_planes(const uint8_t *p, __m256i *u)
{
    const __m256i three = _mm256_set1_epi8(3);
    TN_MATMUL_UNROLL
    for (int h = 0; h < 2; h++) {
        __m256i v = load_i8(p + 32 * h);
        u[4 * h] = _mm256_and_si256(v, three);
        u[4 * h + 1] = _mm256_and_si256(_mm256_srli_epi16(v, 2), three);
        u[4 * h + 2] = _mm256_and_si256(_mm256_srli_epi16(v, 4), three);
        u[4 * h + 3] = _mm256_and_si256(_mm256_srli_epi16(v, 6), three);
    }
}

// Sub-blocks of the lanes of accumulator c as values: 8 lanes of one, or 4 lanes each of two.
TN_INLINE __m256 lanes_of_1(const __m256 *s, int c)
{
    return _mm256_permutevar8x32_ps(s[c / 8], _mm256_set1_epi32(c % 8));
}

TN_INLINE __m256 lanes_of_2(const __m256 *s, int c)
{
    int a = c % 4 * 2;
    return _mm256_permutevar8x32_ps(s[c / 4], _mm256_setr_epi32(a, a, a, a, a + 1, a + 1, a + 1, a + 1));
}

TN_INLINE float sum_8(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
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

// 8 half floats at a stride.
TN_INLINE __m256 load_8_f16(const uint8_t *p, int stride)
{
    return _mm256_cvtph_ps(load_8_u16(p, stride));
}

// Code book of IQ4_NL and IQ4_XS.
TN_INLINE __m256i iq4_values(void)
{
    return _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113));
}

// Twice E2M1 (MXFP4, NVFP4), + 12.
TN_INLINE __m256i fp4_values(void)
{
    return _mm256_broadcastsi128_si256(
        _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
}

// v[i] = column i of 8 rows of 8 floats.
TN_INLINE void transpose_8(const __m256 *r, __m256 *v)
{
    __m256 a[8], b[8];
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) {
        a[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    TN_MATMUL_UNROLL
    for (int i = 0; i < 2; i++) { // b[4i + c]: column c of each lane, rows 4i..4i+3
        b[4 * i] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0x44);
        b[4 * i + 1] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0xee);
        b[4 * i + 2] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0x44);
        b[4 * i + 3] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0xee);
    }
    TN_MATMUL_UNROLL
    for (int c = 0; c < 4; c++) {
        v[c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x20);
        v[4 + c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x31);
    }
}

void AT_LEVEL(tn_matmul)(const tn_cpu_task *task);

// Tile products by elements per scale and by how many maddubs results are summed as int16: with weights
// up to 15: 8, 31: 4, 63: 2 (127 * 63 * 2 * 2 = 32004), 127: 1; signed: bytes from -128 to 127, x negated
// where w is.

void AT_LEVEL(tn_matmul_tile_16_steps_4_min)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_16_steps_4)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_16_steps_2)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_16_steps_1)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_32_steps_8_min)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_32_steps_8)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_32_steps_4_min)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_32_steps_4)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_32_steps_1)(const tn_matmul_tile_args *a);
void AT_LEVEL(tn_matmul_tile_32_signed)(const tn_matmul_tile_args *a);

#define TN_CPU_QUANT_TYPE(type, name) extern const tn_matmul_kernel AT_LEVEL(tn_matmul_##name);
#include "backends/cpu/quant_types.def"
extern const tn_matmul_kernel tn_matmul_f32_avx2, tn_matmul_f16_avx2, tn_matmul_bf16_avx2, tn_matmul_any_avx2;

#endif
