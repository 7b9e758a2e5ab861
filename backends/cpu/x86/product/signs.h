// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sign bits of the codebook formats (IQ2, IQ3), for vectors of 32 bytes: a byte for each 8 elements.
#ifndef TN_CPU_X86_SIGNS_H
#define TN_CPU_X86_SIGNS_H

#include "core/compiler.h"

#include <immintrin.h>

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

#endif
