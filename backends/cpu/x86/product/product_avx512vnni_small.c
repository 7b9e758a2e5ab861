// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: unpackers of TQ1_0, TQ2_0, Q1_0, Q2_0 and NVFP4. Kernels, layouts and maths:
// product_avx512vnni_tmpl.h, formats: ops/quant/quant_ternary.c and quant_fp4.c, numbers:
// backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx512vnni.h"
#include "backends/cpu/x86/product/codes.h"

// Bytes 4 l + z of a vector, at the lowest byte of lane l.
TN_INLINE __m512i byte_of_lanes(__m512i v, int z)
{
    return _mm512_and_si512(_mm512_srli_epi32(v, (unsigned)(8 * z)), _mm512_set1_epi32(255));
}

// --- ternary -----------------------------------------------------------------------------------------------

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

// Vector z has octet z of each block.
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

// --- bits and pairs of bits in the order of the elements
// ----------------------------------------------------

// Blocks of 128: a scale, and a bit for each element, which becomes 0 or 2.
TN_INLINE void q1_0_unpack(const uint8_t *w, __m512i *u)
{
    const __m512i first = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0808080808080808, 0));
    __m256i bits = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(w + 2))),
                                           _mm_loadu_si128((const void *)(w + 20)), 1);
    __m512i words = _mm512_cvtepu32_epi64(bits);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i bytes = _mm512_shuffle_epi8(words, _mm512_add_epi8(first, _mm512_set1_epi8((char)z)));
        __mmask64 set = _mm512_test_epi8_mask(bytes, _mm512_set1_epi64((long long)0x8040201008040201ull));
        u[z] = _mm512_maskz_mov_epi8(set, _mm512_set1_epi8(2));
    }
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
#define ORDER       ORDER_OCTETS
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
    __m128i d = _mm_setr_epi16((short)tn_load_u16(w), 0, (short)tn_load_u16(w + 18), 0,
                               (short)tn_load_u16(w + 36), 0, (short)tn_load_u16(w + 54), 0);
    d = _mm_or_si128(d, _mm_slli_epi32(d, 16)); // each for two sub-blocks
    return _mm512_zextps256_ps512(_mm256_cvtph_ps(d));
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

// --- NVFP4 -------------------------------------------------------------------------------------------------

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
    const __m512i values = // twice E2M1, + 12
        _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    __m512i a = load_2x32(w + 4, 36), b = load_2x32(w + 76, 36);
    __m512i even = shuffle_words(a, b, 0), odd = shuffle_words(a, b, 1);
    u[0] = _mm512_shuffle_epi8(values, low_nibbles(even));
    u[1] = _mm512_shuffle_epi8(values, low_nibbles(odd));
    u[2] = _mm512_shuffle_epi8(values, high_nibbles(even));
    u[3] = _mm512_shuffle_epi8(values, high_nibbles(odd));
}

// Half of E4M3 without a sign: as a half float, whose exponent has one bit more and a bias of 15, times 2^7.
TN_INLINE __m512 nvfp4_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    __m128i v = _mm_setr_epi32((int)tn_load_u32(w), (int)tn_load_u32(w + 36), (int)tn_load_u32(w + 72),
                               (int)tn_load_u32(w + 108));
    v = _mm_and_si128(v, _mm_set1_epi8(0x7f));
    v = _mm_maskz_mov_epi8(_mm_cmpneq_epi8_mask(v, _mm_set1_epi8(0x7f)), v); // no number reads as 0
    __m256i half = _mm256_slli_epi16(_mm256_cvtepu8_epi16(v), 7);
    return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(128.0f));
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
