// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: unpackers of the weight types with blocks of 32; a group is 8 blocks. Kernels, layouts and
// maths: product_avx512vnni_tmpl.h, numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx512vnni.h"

// Nibbles at p + stride * block.
TN_INLINE void unpack_nibbles(const uint8_t *p, int stride, __m512i *u)
{
    quarters_of_nibbles(load_4x16(p, stride), load_4x16(p + 4 * stride, stride), u);
}

// Scales and minima of 8 blocks, from words of two half floats each.
TN_INLINE __m512 scales_and_mins(__m256i words)
{
    const __m256i halves =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    __m256i v = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(words, halves), 0xd8);
    return _mm512_cvtph_ps(v);
}

// Of one group, and of two.
TN_INLINE __m512 first_halves(__m512 v, __m512 *second)
{
    *second = _mm512_zextps256_ps512(_mm512_extractf32x8_ps(v, 1));
    return _mm512_zextps256_ps512(_mm512_castps512_ps256(v));
}

TN_INLINE __m512 first_halves_2(__m512 a, __m512 b, __m512 *second)
{
    *second = _mm512_shuffle_f32x4(a, b, 0xee);
    return _mm512_shuffle_f32x4(a, b, 0x44);
}

// Fifth bits of 8 blocks, in the order 0, 4, 1, 5, 2, 6, 3, 7.
TN_INLINE void add_fifth_bits(__m256i v, __m512i *u)
{
    const __m512i sixteen = _mm512_set1_epi8(16);
    const __m256i bytes =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    v = _mm256_shuffle_epi8(v, bytes); // byte i of four blocks in word i of each half
    v = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);
    uint64_t masks[4] = {(uint64_t)_mm_cvtsi128_si64(low), (uint64_t)_mm_extract_epi64(low, 1),
                         (uint64_t)_mm_cvtsi128_si64(high), (uint64_t)_mm_extract_epi64(high, 1)};
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_mask_add_epi8(u[z], masks[z], u[z], sixteen);
}

// Four blocks of 9 words of 16 bits, a scale and 8 of nibbles: one vector holds all but the last nibbles, and
// one permutation picks out what four loads and three insertions would.
TN_INLINE __m512i nibbles_of_4x18(const uint8_t *w)
{
    const __m512i words = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 26, 25, 24, 23, 22, 21, 20, 19, //
                                           17, 16, 15, 14, 13, 12, 11, 10, 8, 7, 6, 5, 4, 3, 2, 1);
    __m512i last = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(w + 56)));
    return _mm512_mask_permutexvar_epi16(last, 0xffffff, words, _mm512_loadu_si512(w));
}

TN_INLINE void unpack_8x18(const uint8_t *w, __m512i *u)
{
    quarters_of_nibbles(nibbles_of_4x18(w), nibbles_of_4x18(w + 72), u);
}

TN_INLINE void q4_0_unpack(const uint8_t *w, __m512i *u)
{
    unpack_8x18(w, u);
}

TN_INLINE __m512 q4_0_scales(const uint8_t *w, __m512 *min)
{
    const __m512i words = _mm512_set1_epi64(0x001b001200090000); // 27, 18, 9, 0
    __m512i d = _mm512_permutexvar_epi16(words, _mm512_loadu_si512(w));
    d = _mm512_mask_permutexvar_epi16(d, 0xf0, words, _mm512_loadu_si512(w + 72));
    TN_UNUSED(min);
    return _mm512_zextps256_ps512(_mm256_cvtph_ps(_mm512_castsi512_si128(d)));
}

TN_INLINE __m512 q4_0_scales_2(const uint8_t *v, const uint8_t *w, __m512 *min)
{
    return both_rows(q4_0_scales(v, min), q4_0_scales(w, min));
}

#define TYPE        q4_0
#define SUB         32
#define HAS_MIN     0
#define BIAS        8
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  144
#define BLOCK_ELEMS 32
#define PAIRS       1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void q4_1_unpack(const uint8_t *w, __m512i *u)
{
    unpack_nibbles(w + 4, 20, u);
}

// What lies at the start of each block comes out of whole vectors by permutations, here and below: fewer
// shuffles than a load for each block takes. No vector reads beyond the group.
TN_INLINE __m512 q4_1_heads(const uint8_t *w)
{
    const __m512i words = _mm512_setr_epi32(0, 5, 10, 15, 0, 5, 10, 15, 0, 0, 0, 0, 0, 0, 0, 0);
    __m512i v = _mm512_permutexvar_epi32(words, _mm512_loadu_si512(w));
    v = _mm512_mask_permutexvar_epi32(v, 0xf0, words, _mm512_loadu_si512(w + 80));
    return scales_and_mins(_mm512_castsi512_si256(v));
}

TN_INLINE __m512 q4_1_scales(const uint8_t *w, __m512 *min)
{
    return first_halves(q4_1_heads(w), min);
}

TN_INLINE __m512 q4_1_scales_2(const uint8_t *v, const uint8_t *w, __m512 *min)
{
    return first_halves_2(q4_1_heads(v), q4_1_heads(w), min);
}

#define TYPE        q4_1
#define SUB         32
#define HAS_MIN     1
#define BIAS        0
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  160
#define BLOCK_ELEMS 32
#define PAIRS       1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// Scales in the first 8 words, fifth bits in the last 16.
TN_INLINE __m512i q5_0_heads(const uint8_t *w)
{
    const __m512i words = _mm512_set_epi16(23, 22, 2, 1, 12, 11, 24, 23, 24, 23, 13, 12, 13, 12, 2, 1, //
                                           0, 0, 0, 0, 0, 0, 0, 0, 21, 10, 22, 11, 0, 22, 11, 0);
    __m512i v = _mm512_permutexvar_epi16(words, _mm512_loadu_si512(w));
    v = _mm512_mask_permutexvar_epi16(v, 0x30cc0038, words, _mm512_loadu_si512(w + 66));     // blocks 3, 4, 5
    return _mm512_mask_permutexvar_epi16(v, 0xcc0000c0, words, _mm512_loadu_si512(w + 112)); // 6, 7
}

TN_INLINE void q5_0_unpack(const uint8_t *w, __m512i *u)
{
    unpack_nibbles(w + 6, 22, u);
    add_fifth_bits(_mm512_extracti64x4_epi64(q5_0_heads(w), 1), u);
}

TN_INLINE __m512 q5_0_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return _mm512_zextps256_ps512(_mm256_cvtph_ps(_mm512_castsi512_si128(q5_0_heads(w))));
}

TN_INLINE __m512 q5_0_scales_2(const uint8_t *v, const uint8_t *w, __m512 *min)
{
    return both_rows(q5_0_scales(v, min), q5_0_scales(w, min));
}

#define TYPE        q5_0
#define SUB         32
#define HAS_MIN     0
#define BIAS        16
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  176
#define BLOCK_ELEMS 32
#define PAIRS       1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// Scales and minima in the first half, fifth bits in the second.
TN_INLINE __m512i q5_1_heads(const uint8_t *w)
{
    const __m512i words = _mm512_setr_epi32(0, 6, 12, 0, 6, 12, 4, 10, 1, 7, 7, 13, 13, 5, 1, 11);
    __m512i v = _mm512_permutexvar_epi32(words, _mm512_loadu_si512(w));
    v = _mm512_mask_permutexvar_epi32(v, 0x4a38, words, _mm512_loadu_si512(w + 72));     // blocks 3, 4, 5
    return _mm512_mask_permutexvar_epi32(v, 0xa0c0, words, _mm512_loadu_si512(w + 128)); // 6, 7
}

TN_INLINE void q5_1_unpack(const uint8_t *w, __m512i *u)
{
    unpack_nibbles(w + 8, 24, u);
    add_fifth_bits(_mm512_extracti64x4_epi64(q5_1_heads(w), 1), u);
}

TN_INLINE __m512 q5_1_scales(const uint8_t *w, __m512 *min)
{
    return first_halves(scales_and_mins(_mm512_castsi512_si256(q5_1_heads(w))), min);
}

TN_INLINE __m512 q5_1_scales_2(const uint8_t *v, const uint8_t *w, __m512 *min)
{
    return first_halves_2(scales_and_mins(_mm512_castsi512_si256(q5_1_heads(v))),
                          scales_and_mins(_mm512_castsi512_si256(q5_1_heads(w))), min);
}

#define TYPE        q5_1
#define SUB         32
#define HAS_MIN     1
#define BIAS        0
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  192
#define BLOCK_ELEMS 32
#define PAIRS       1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void q8_0_unpack(const uint8_t *w, __m512i *u)
{
    const __m512i sign = _mm512_set1_epi8(-128); // q ^ 0x80 = q + 128 as unsigned
    __m512i a = load_2x32(w + 2, 34), b = load_2x32(w + 2 + 4 * 34, 34);
    __m512i c = load_2x32(w + 2 + 2 * 34, 34), d = load_2x32(w + 2 + 6 * 34, 34);
    __m512i ab0 = _mm512_unpacklo_epi64(a, b), ab1 = _mm512_unpackhi_epi64(a, b); // quarters 0 and 2, 1 and 3
    __m512i cd0 = _mm512_unpacklo_epi64(c, d), cd1 = _mm512_unpackhi_epi64(c, d);
    u[0] = _mm512_shuffle_i64x2(ab0, cd0, 0x88);
    u[1] = _mm512_shuffle_i64x2(ab1, cd1, 0x88);
    u[2] = _mm512_shuffle_i64x2(ab0, cd0, 0xdd);
    u[3] = _mm512_shuffle_i64x2(ab1, cd1, 0xdd);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_xor_si512(u[z], sign);
}

TN_INLINE __m512 q8_0_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return load_8_f16(w, 34);
}

#define TYPE        q8_0
#define SUB         32
#define HAS_MIN     0
#define BIAS        128
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  272
#define BLOCK_ELEMS 32
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void iq4_nl_unpack(const uint8_t *w, __m512i *u)
{
    unpack_8x18(w, u);
    const __m512i values = iq4_values();
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_shuffle_epi8(values, u[z]);
}

#define iq4_nl_scales   q4_0_scales
#define iq4_nl_scales_2 q4_0_scales_2
#define TYPE            iq4_nl
#define SUB             32
#define HAS_MIN         0
#define BIAS            128
#define ORDER           ORDER_BLOCKS
#define SUBS            SUBS_32
#define GROUP_SIZE      144
#define BLOCK_ELEMS     32
#define PAIRS           1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void mxfp4_unpack(const uint8_t *w, __m512i *u)
{
    unpack_nibbles(w + 1, 17, u);
    const __m512i values = fp4_values();
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_shuffle_epi8(values, u[z]);
}

// 2^(e - 128), below 2^-126 as subnormals.
TN_INLINE __m512 mxfp4_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    const __m512i words = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0);
    __m512i v = _mm512_permutexvar_epi32(words, _mm512_loadu_si512(w));
    v = _mm512_mask_permutexvar_epi32(v, 0xf0, words, _mm512_loadu_si512(w + 68));
    __m256i e = _mm256_srlv_epi32(_mm512_castsi512_si256(v), _mm256_setr_epi32(0, 8, 16, 24, 0, 8, 16, 24));
    e = _mm256_and_si256(e, _mm256_set1_epi32(255));
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    __mmask8 is_small = _mm256_cmplt_epi32_mask(e, _mm256_set1_epi32(2));
    return _mm512_zextps256_ps512(_mm256_castsi256_ps(_mm256_mask_mov_epi32(normal, is_small, small)));
}

TN_INLINE __m512 mxfp4_scales_2(const uint8_t *v, const uint8_t *w, __m512 *min)
{
    return both_rows(mxfp4_scales(v, min), mxfp4_scales(w, min));
}

#define TYPE        mxfp4
#define SUB         32
#define HAS_MIN     0
#define BIAS        12
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  136
#define BLOCK_ELEMS 32
#define PAIRS       1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"
