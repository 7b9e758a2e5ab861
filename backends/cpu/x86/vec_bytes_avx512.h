// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Codes of sixteen rows as bytes, four neighbours of each row in a lane, and their products with signed
// bytes; AVX-512 VNNI, after vec_dot_avx512.h.
#ifndef TN_CPU_VEC_BYTES_AVX512_H
#define TN_CPU_VEC_BYTES_AVX512_H

#include "backends/cpu/x86/vec_dot_avx512.h"

#define VEC_BYTES

enum { VEC_OFFSET_q8_0 = 128, VEC_OFFSET_q4_0 = 8 }; // what codes are made unsigned with

TN_INLINE vi vi_set1_quad(const int8_t *p)
{
    return _mm512_set1_epi32((int)tn_load_u32(p));
}

// sum + products of unsigned bytes of a and signed ones of b, four for each lane
TN_INLINE vi vi_dot_bytes(vi sum, vi a, vi b)
{
    return _mm512_dpbusd_epi32(sum, a, b);
}

TN_INLINE vi vi_add_256(vi low, vi high)
{
    return _mm512_add_epi32(low, _mm512_slli_epi32(high, 8));
}

// Rows 0, 4, 8 and 12 from `row` on, 16 bytes of each
TN_INLINE vi vec_four_rows(const uint8_t *const *row, int64_t at)
{
    vi v = _mm512_castsi128_si512(vec_dot_load16(row[0] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, vec_dot_load16(row[4] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, vec_dot_load16(row[8] + at));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, vec_dot_load16(row[12] + at));
}

// 16 bytes of sixteen rows: bytes 4 i to 4 i + 3 of each in out[i]
TN_INLINE void vec_sixteen_rows(const uint8_t *const *row, int64_t at, vi *out)
{
    vi a = vec_four_rows(row, at), b = vec_four_rows(row + 1, at);
    vi c = vec_four_rows(row + 2, at), d = vec_four_rows(row + 3, at);
    vi ab0 = _mm512_unpacklo_epi32(a, b), ab1 = _mm512_unpackhi_epi32(a, b);
    vi cd0 = _mm512_unpacklo_epi32(c, d), cd1 = _mm512_unpackhi_epi32(c, d);
    out[0] = _mm512_unpacklo_epi64(ab0, cd0);
    out[1] = _mm512_unpackhi_epi64(ab0, cd0);
    out[2] = _mm512_unpacklo_epi64(ab1, cd1);
    out[3] = _mm512_unpackhi_epi64(ab1, cd1);
}

// A block of sixteen rows: elements 4 i to 4 i + 3 of each, with the offset, in out[i]
TN_INLINE void vec_quads_q8_0(const uint8_t *const *row, int64_t at, vi *out)
{
    const vi offset = _mm512_set1_epi8((char)VEC_OFFSET_q8_0);
    vec_sixteen_rows(row, at + 2, out);
    vec_sixteen_rows(row, at + 18, out + 4);
    for (int i = 0; i < 8; i++) out[i] = _mm512_xor_si512(out[i], offset);
}

TN_INLINE void vec_quads_q4_0(const uint8_t *const *row, int64_t at, vi *out)
{
    const vi mask = _mm512_set1_epi8(15);
    vec_sixteen_rows(row, at + 2, out);
    for (int i = 0; i < 4; i++) {
        out[4 + i] = _mm512_and_si512(_mm512_srli_epi16(out[i], 4), mask);
        out[i] = _mm512_and_si512(out[i], mask);
    }
}

#endif
