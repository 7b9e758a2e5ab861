// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: unpackers of the weight types with super-blocks of 256. Kernels, layouts and maths:
// product_avx512vnni_tmpl.h, numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx512vnni.h"

TN_INLINE __m512i load_2_same(const uint8_t *p) // 32 bytes in both halves
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)p));
}

TN_INLINE __m512 scale_i8(__m128i v, __m512 d)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(v)), d);
}

TN_INLINE void q2_k_unpack(const uint8_t *w, __m512i *u)
{
    unpack_planes(w + 16, u);
}

TN_INLINE __m512 q2_k_scales(const uint8_t *w, __m512 *min)
{
    __m128i v = _mm_loadu_si128((const void *)w), low = _mm_set1_epi8(15);
    __m128i halves = _mm_cvtsi32_si128((int)(tn_load_u32(w + 80) ^ 0x80000000u));
    __m128 d = _mm_cvtph_ps(halves); // d, -dmin
    *min = scale_i8(_mm_and_si128(_mm_srli_epi16(v, 4), low), _mm512_broadcastss_ps(_mm_movehdup_ps(d)));
    return scale_i8(_mm_and_si128(v, low), _mm512_broadcastss_ps(d));
}

#define TYPE        q2_k
#define SUB         16
#define HAS_MIN     1
#define BIAS        0
#define ORDER       ORDER_PLANES
#define SUBS        SUBS_PLANES
#define GROUP_SIZE  84
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void q3_k_unpack(const uint8_t *w, __m512i *u)
{
    const __m128i low = _mm_setr_epi32(0x01010101, 0x02020202, 0x04040404, 0x08080808);
    const __m512i four = _mm512_set1_epi8(4); // bits 0 to 3: planes of the first 128, 4 to 7: of the others
    __m512i bits = _mm512_broadcast_i32x4(low), high[4];
    bits = _mm512_mask_slli_epi32(bits, 0xff00, bits, 4);
    unpack_planes(w + 32, u);
    turns(load_2_same(w), high);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++)
        u[z] = _mm512_mask_add_epi8(u[z], _mm512_test_epi8_mask(high[z], bits), u[z], four);
}

TN_INLINE __m512 q3_k_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    __m128i low = _mm_loadl_epi64((const void *)(w + 96));
    low = _mm_and_si128(_mm_unpacklo_epi64(low, _mm_srli_epi16(low, 4)), _mm_set1_epi8(15));
    __m128i high = _mm_srlv_epi32(_mm_set1_epi32((int)tn_load_u32(w + 104)), _mm_setr_epi32(0, 2, 4, 6));
    high = _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4);
    return scale_i8(_mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32)), load_f16_all(w + 108));
}

#define TYPE        q3_k
#define SUB         16
#define HAS_MIN     0
#define BIAS        4
#define ORDER       ORDER_PLANES
#define SUBS        SUBS_PLANES
#define GROUP_SIZE  110
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

// Four runs of 32 bytes, the nibbles of two sub-blocks each.
TN_INLINE void unpack_runs(const uint8_t *p, __m512i *u)
{
    const __m512i shifts = _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4), low = _mm512_set1_epi8(15);
    __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
    u[0] = _mm512_unpacklo_epi64(a, b);
    u[2] = _mm512_unpackhi_epi64(a, b);
    u[1] = _mm512_shuffle_i64x2(u[0], u[0], 0xb1); // halves of runs exchanged
    u[3] = _mm512_shuffle_i64x2(u[2], u[2], 0xb1);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_and_si512(_mm512_srlv_epi64(u[z], shifts), low);
}

TN_INLINE void q4_k_unpack(const uint8_t *w, __m512i *u)
{
    unpack_runs(w + 16, u);
}

// The eight 6-bit scales and minima of two groups, one group per half of v: d, dmin, then 32-bit words a, b,
// c. Bytes of a and b hold the first four scales and minima, nibbles of c the others, whose upper two bits
// lie above in a and b. Returns the scales of both, then the minima of both.
TN_INLINE __m256i q4_k_bytes(__m256i v)
{
    const __m256i low_mask = _mm256_set1_epi64x(0x0f0f0f0f3f3f3f3f);
    const __m256i high_mask = _mm256_set1_epi64x(0x3030303000000000);
    __m256i low = _mm256_shuffle_epi32(v, 0xed); // a, c, b, c
    low = _mm256_srlv_epi32(low, _mm256_setr_epi32(0, 0, 0, 4, 0, 0, 0, 4));
    __m256i high = _mm256_srli_epi32(_mm256_shuffle_epi32(v, 0x94), 2);                    // -, a, -, b
    v = _mm256_ternarylogic_epi32(_mm256_and_si256(low, low_mask), high, high_mask, 0xf8); // or of the parts
    return _mm256_permute4x64_epi64(v, 0xd8);
}

TN_INLINE __m512 q4_k_scales_2(const uint8_t *v, const uint8_t *w, __m512 *min)
{
    __m128i head = _mm_loadu_si128((const void *)v);
    __m256i q = _mm256_inserti128_si256(_mm256_castsi128_si256(head), _mm_loadu_si128((const void *)w), 1);
    __m128 dm = _mm_cvtph_ps(_mm_unpacklo_epi32(head, _mm_cvtsi32_si128((int)tn_load_u32(w))));
    __m512 d = _mm512_castps128_ps512(_mm_xor_ps(dm, _mm_setr_ps(0, -0.0f, 0, -0.0f))); // d, -dmin of both
    q = q4_k_bytes(q);
    *min =
        scale_i8(_mm256_extracti128_si256(q, 1),
                 _mm512_permutexvar_ps(_mm512_setr_epi32(1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3), d));
    return scale_i8(
        _mm256_castsi256_si128(q),
        _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2), d));
}

TN_INLINE __m512 q4_k_scales(const uint8_t *w, __m512 *min)
{
    __m512 m, s = q4_k_scales_2(w, w, &m);
    *min = _mm512_zextps256_ps512(_mm512_castps512_ps256(m));
    return _mm512_zextps256_ps512(_mm512_castps512_ps256(s));
}

#define TYPE        q4_k
#define SUB         32
#define HAS_MIN     1
#define BIAS        0
#define ORDER       ORDER_RUNS
#define SUBS        SUBS_32
#define GROUP_SIZE  144
#define BLOCK_ELEMS 256
#define PAIRS       1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void q5_k_unpack(const uint8_t *w, __m512i *u)
{
    const __m512i sixteen = _mm512_set1_epi8(16), order = _mm512_setr_epi64(0, 0, 2, 2, 0, 0, 2, 2);
    const __m512i bits = // bit s of a byte belongs to sub-block s
        _mm512_sllv_epi64(_mm512_set1_epi64(0x0101010101010101), _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
    static const int64_t turned[4] = {0, 2, 1, 3}; // quarters as in ORDER_RUNS
    unpack_runs(w + 48, u);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i from = _mm512_xor_si512(order, _mm512_set1_epi64(turned[z]));
        __m512i high = _mm512_permutexvar_epi64(from, load_2_same(w + 16));
        u[z] = _mm512_mask_add_epi8(u[z], _mm512_test_epi8_mask(high, bits), u[z], sixteen);
    }
}

#define q5_k_scales   q4_k_scales
#define q5_k_scales_2 q4_k_scales_2
#define TYPE          q5_k
#define SUB           32
#define HAS_MIN       1
#define BIAS          0
#define ORDER         ORDER_RUNS
#define SUBS          SUBS_32
#define GROUP_SIZE    176
#define BLOCK_ELEMS   256
#define PAIRS         1
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE __m512i words_of_2(int a, int b)
{
    return _mm512_inserti64x4(_mm512_set1_epi16((short)a), _mm256_set1_epi16((short)b), 1);
}

// Vectors of four sub-blocks of 16 each -> vectors of four bytes of each.
TN_INLINE void transpose_units(__m512i *u)
{
    __m512i a0 = _mm512_unpacklo_epi32(u[0], u[1]), a1 = _mm512_unpackhi_epi32(u[0], u[1]);
    __m512i b0 = _mm512_unpacklo_epi32(u[2], u[3]), b1 = _mm512_unpackhi_epi32(u[2], u[3]);
    u[0] = _mm512_unpacklo_epi64(a0, b0);
    u[1] = _mm512_unpackhi_epi64(a0, b0);
    u[2] = _mm512_unpacklo_epi64(a1, b1);
    u[3] = _mm512_unpackhi_epi64(a1, b1);
}

TN_INLINE void q6_k_unpack(const uint8_t *w, __m512i *u)
{
    const __m512i mask = _mm512_set1_epi8(0x30);
    TN_MATMUL_UNROLL
    for (int n = 0; n < 2; n++) {
        __m512i low = _mm512_loadu_si512(w + 64 * n), high = load_2_same(w + 128 + 32 * n);
        __m512i a = _mm512_and_si512(_mm512_sllv_epi16(high, words_of_2(4, 2)), mask);
        __m512i b = _mm512_and_si512(_mm512_srlv_epi16(high, words_of_2(0, 2)), mask);
        u[2 * n] = _mm512_or_si512(low_nibbles(low), a);
        u[2 * n + 1] = _mm512_or_si512(high_nibbles(low), b);
    }
    transpose_units(u);
}

TN_INLINE __m512 q6_k_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    return scale_i8(_mm_loadu_si128((const void *)(w + 192)), load_f16_all(w + 208));
}

#define TYPE        q6_k
#define SUB         16
#define HAS_MIN     0
#define BIAS        32
#define ORDER       ORDER_COLUMNS
#define SUBS        SUBS_COLUMNS
#define GROUP_SIZE  210
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"

TN_INLINE void iq4_xs_unpack(const uint8_t *w, __m512i *u)
{
    const __m512i values = iq4_values();
    quarters_of_nibbles(_mm512_loadu_si512(w + 8), _mm512_loadu_si512(w + 72), u);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) u[z] = _mm512_shuffle_epi8(values, u[z]);
}

TN_INLINE __m512 iq4_xs_scales(const uint8_t *w, __m512 *min)
{
    TN_UNUSED(min);
    __m256i low = _mm256_set1_epi32((int)tn_load_u32(w + 4)), high = _mm256_set1_epi32(tn_load_u16(w + 2));
    low = _mm256_srlv_epi32(low, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    high = _mm256_srlv_epi32(high, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    low = _mm256_and_si256(low, _mm256_set1_epi32(15));
    high = _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4);
    __m256i s = _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32));
    __m512 d = load_f16_all(w);
    return _mm512_zextps256_ps512(_mm256_mul_ps(_mm256_cvtepi32_ps(s), _mm512_castps512_ps256(d)));
}

#define TYPE        iq4_xs
#define SUB         32
#define HAS_MIN     0
#define BIAS        128
#define ORDER       ORDER_BLOCKS
#define SUBS        SUBS_32
#define GROUP_SIZE  136
#define BLOCK_ELEMS 256
#define PAIRS       0
#include "backends/cpu/x86/product/product_avx512vnni_tmpl.h"
