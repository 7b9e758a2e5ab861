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

TN_INLINE __m128i load_4_u32(const uint8_t *p, int stride) // of blocks 0, 4, 1, 5
{
    return _mm_setr_epi32((int)tn_load_u32(p), (int)tn_load_u32(p + 4 * stride), (int)tn_load_u32(p + stride),
                          (int)tn_load_u32(p + 5 * stride));
}

// Fifth bits of 8 blocks, 32 bits each at h + stride * block.
TN_INLINE void add_fifth_bits(const uint8_t *h, int stride, __m512i *u)
{
    const __m512i sixteen = _mm512_set1_epi8(16);
    const __m256i bytes =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m256i v = _mm256_castsi128_si256(load_4_u32(h, stride));
    v = _mm256_inserti128_si256(v, load_4_u32(h + 2 * stride, stride), 1);
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
    __m512 a = q4_0_scales(v, min), b = q4_0_scales(w, min);
    return _mm512_insertf32x8(a, _mm512_castps512_ps256(b), 1);
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

TN_INLINE __m512 q4_1_scales(const uint8_t *w, __m512 *min)
{
    *min = load_8_f16(w + 2, 20);
    return load_8_f16(w, 20);
}

#define TYPE        q4_1
#define SUB         32
#define HAS_MIN     1
#define BIAS        0
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  160
#define BLOCK_ELEMS 32
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void q5_0_unpack(const uint8_t *w, __m512i *u)
{
    unpack_nibbles(w + 6, 22, u);
    add_fifth_bits(w + 2, 22, u);
}

TN_INLINE __m512 q5_0_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return load_8_f16(w, 22);
}

#define TYPE        q5_0
#define SUB         32
#define HAS_MIN     0
#define BIAS        16
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  176
#define BLOCK_ELEMS 32
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void q5_1_unpack(const uint8_t *w, __m512i *u)
{
    unpack_nibbles(w + 8, 24, u);
    add_fifth_bits(w + 4, 24, u);
}

TN_INLINE __m512 q5_1_scales(const uint8_t *w, __m512 *min)
{
    *min = load_8_f16(w + 2, 24);
    return load_8_f16(w, 24);
}

#define TYPE        q5_1
#define SUB         32
#define HAS_MIN     1
#define BIAS        0
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  192
#define BLOCK_ELEMS 32
#define PAIRS       0
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
    // Twice the E2M1 values, + 12
    const __m512i values =
        _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_shuffle_epi8(values, u[z]);
}

// 2^(e - 128), below 2^-126 as subnormals.
TN_INLINE __m512 mxfp4_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    __m256i e = _mm256_and_si256(_mm256_cvtepu16_epi32(load_8_u16(w, 17)), _mm256_set1_epi32(255));
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    __mmask8 is_small = _mm256_cmplt_epi32_mask(e, _mm256_set1_epi32(2));
    return _mm512_zextps256_ps512(_mm256_castsi256_ps(_mm256_mask_mov_epi32(normal, is_small, small)));
}

#define TYPE        mxfp4
#define SUB         32
#define HAS_MIN     0
#define BIAS        12
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  136
#define BLOCK_ELEMS 32
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"
