// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of unpackers that AVX2 and AVX-512 share, for vectors of 32 bytes.
#ifndef TN_CPU_X86_CODES_H
#define TN_CPU_X86_CODES_H

#include "core/compiler.h"
#include "core/fp16.h"

#include <immintrin.h>

// --- signs of the codebook formats (IQ2, IQ3): a byte for each 8 elements ---------------------------------

// Bytes of 7 stored bits: bit 7 makes the number of minus signs even.
TN_INLINE __m256i signs_of_7(__m256i v)
{
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    __m256i nibbles = _mm256_xor_si256(v, _mm256_srli_epi16(v, 4));
    nibbles = _mm256_and_si256(nibbles, _mm256_set1_epi8(15));
    return _mm256_or_si256(v, _mm256_shuffle_epi8(odd, nibbles));
}

// Of words of four times 7 bits, the first in the lowest ones.
TN_INLINE __m256i signs_of_4x7(__m256i words)
{
    __m256i a = _mm256_and_si256(words, _mm256_set1_epi32(0x7f));
    __m256i b = _mm256_and_si256(_mm256_slli_epi32(words, 1), _mm256_set1_epi32(0x7f00));
    __m256i c = _mm256_and_si256(_mm256_slli_epi32(words, 2), _mm256_set1_epi32(0x7f0000));
    __m256i d = _mm256_and_si256(_mm256_slli_epi32(words, 3), _mm256_set1_epi32(0x7f000000));
    return signs_of_7(_mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d)));
}

// --- digits in base 3 (TQ1_0) -----------------------------------------------------------------------------

// The eight blocks of a group as bytes whose top digits are their elements: digit n of 32 bytes, then of 16,
// then of 4. Three times a byte, in 8 bits, has the next digit at its top.
TN_INLINE void trit_bytes(const uint8_t *w, __m256i *b)
{
    __m128i digit[6];
    b[0] = _mm256_loadu_si256((const void *)w);
    digit[0] = _mm_loadu_si128((const void *)(w + 32));
    TN_UNROLL
    for (int n = 1; n < 5; n++) {
        b[n] = _mm256_add_epi8(b[n - 1], _mm256_add_epi8(b[n - 1], b[n - 1]));
        digit[n] = _mm_add_epi8(digit[n - 1], _mm_add_epi8(digit[n - 1], digit[n - 1]));
    }
    const __m128i powers = _mm_setr_epi16(1, 1, 3, 3, 9, 9, 27, 27);
    __m128i last = _mm_set1_epi32((int)tn_load_u32(w + 48));
    __m128i odd = _mm_slli_epi16(_mm_mullo_epi16(_mm_srli_epi16(last, 8), powers), 8);
    digit[5] = _mm_or_si128(_mm_and_si128(_mm_mullo_epi16(last, powers), _mm_set1_epi16(255)), odd);
    TN_UNROLL
    for (int n = 0; n < 3; n++) b[5 + n] = _mm256_set_m128i(digit[2 * n + 1], digit[2 * n]);
}

// --- scales
// --------------------------------------------------------------------------------------------------

// Of Q2_0: four blocks of 64, each for two sub-blocks.
TN_INLINE __m256 q2_0_scales_8(const uint8_t *w)
{
    __m128i d = _mm_setr_epi16((short)tn_load_u16(w), 0, (short)tn_load_u16(w + 18), 0,
                               (short)tn_load_u16(w + 36), 0, (short)tn_load_u16(w + 54), 0);
    return _mm256_cvtph_ps(_mm_or_si128(d, _mm_slli_epi32(d, 16)));
}

// Of NVFP4: four blocks of 64 with four scales each, E4M3 without a sign, as half floats. Those have one bit
// more of exponent and a bias of 15, so they are smaller by 2^8.
TN_INLINE __m256i nvfp4_halves(const uint8_t *w)
{
    const __m128i none = _mm_set1_epi8(0x7f); // no number reads as 0
    __m128i v = _mm_setr_epi32((int)tn_load_u32(w), (int)tn_load_u32(w + 36), (int)tn_load_u32(w + 72),
                               (int)tn_load_u32(w + 108));
    v = _mm_and_si128(v, none);
    v = _mm_andnot_si128(_mm_cmpeq_epi8(v, none), v);
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(v), 7);
}

#endif
