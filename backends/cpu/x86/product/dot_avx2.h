// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Dot products of bytes for the kernels with vectors of 32 bytes, at the level AVX2: vpmaddubsw adds two
// products in int16, and several of its results are added before vpmaddwd widens them. dot_avxvnni.h has the
// same functions for the level above; a source file includes one of them.
#ifndef TN_CPU_X86_DOT_H
#define TN_CPU_X86_DOT_H

#include "backends/cpu/x86/product/product_loops.h"
#include "core/compiler.h"
#include "core/fp16.h"

#include <stdbool.h>
#include <stddef.h>

#define LEVEL avx2
enum {
    DOT_PASS_X = 3,    // rows of x per pass of a tile: 6 sums each of int16 and f32, 4 registers for operands
    SIGNED_BIAS = 0,   // added to signed bytes
    SIGNED_STEP = 128, // bytes of a tile per four elements of 16 rows with signed weights
};

TN_INLINE __m256i load_i8(const void *p)
{
    return _mm256_loadu_si256(p);
}

// Bytes of weights from -128 to 127 as the functions below want them.
TN_INLINE void prepare_signed(__m256i *u)
{
    (void)u;
}

// Sums over `chain` vectors of products of u and q, each of four neighbours, plus those at init unless NULL.
// Unsigned bytes of u: 2 * 63 * 127 fits into int16 twice; signed ones go in as |u| and q with the sign of u,
// 2 * 128 * 127 = 32512 fits once.
TN_INLINE __m256i dot_rows(const __m256i *u, const uint8_t *q, const uint8_t *init, int chain, bool is_signed)
{
    const __m256i ones = _mm256_set1_epi16(1);
    if (is_signed) {
        __m256i p = _mm256_maddubs_epi16(_mm256_abs_epi8(u[0]), _mm256_sign_epi8(load_i8(q), u[0]));
        __m256i dot = _mm256_madd_epi16(p, ones);
        if (chain == 1) return dot;
        p = _mm256_maddubs_epi16(_mm256_abs_epi8(u[1]), _mm256_sign_epi8(load_i8(q + 32), u[1]));
        return _mm256_add_epi32(dot, _mm256_madd_epi16(p, ones));
    }
    __m256i p = _mm256_maddubs_epi16(u[0], load_i8(q));
    if (chain == 2) p = _mm256_add_epi16(p, _mm256_maddubs_epi16(u[1], load_i8(q + 32)));
    __m256i dot = _mm256_madd_epi16(p, ones);
    return init ? _mm256_add_epi32(dot, load_i8(init)) : dot;
}

// Signed weights w in tiles are |w| and a mask m of the negative ones, 32 bytes each by turns. Because
// -x = ~x + 1, w x = |w| (x ^ m), and |w| more where w is negative: these do not depend on x, and their sums
// over each sub-block stand in the place of minima, as int32. An exclusive or runs on all four ports for
// vectors of Zen 3, vpsignb and vpabsb on two, one of which multiplies too.
TN_INLINE void pack_signed(uint8_t *to, __m256i w, __m256i *negatives)
{
    __m256i magnitude = _mm256_abs_epi8(w), mask = _mm256_cmpgt_epi8(_mm256_setzero_si256(), w);
    _mm256_store_si256((void *)to, magnitude);
    _mm256_store_si256((void *)(to + 32), mask);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_and_si256(magnitude, mask), _mm256_set1_epi8(1));
    *negatives = _mm256_add_epi16(*negatives, pairs);
}

// The sums of a sub-block of 8 rows.
TN_INLINE void pack_negatives(float *min, __m256i negatives)
{
    _mm256_store_si256((void *)min, _mm256_madd_epi16(negatives, _mm256_set1_epi16(1)));
}

// What the sums of 8 rows start from.
TN_INLINE __m256i start_signed(const float *min, const int32_t *init)
{
    (void)init;
    return load_i8(min);
}

// The sum as it is here. Otherwise gcc adds integers in any order: it multiplies first, keeps the products
// of a whole block in memory, and adds them at the end.
TN_INLINE __m256i in_order(__m256i sum)
{
    __asm__("" : "+x"(sum));
    return sum;
}

// dot[2][n_x] += a sub-block of a tile at q, where a step is four elements of 16 rows, and of rows x. steps:
// how many results of vpmaddubsw fit into int16, 0: signed bytes, of which one does (2 * 128 * 128 too, since
// it is negative).
TN_INLINE void dot_tile(const uint8_t *q, const int8_t *const *x, int n_x, int sub, int steps,
                        __m256i (*dot)[DOT_PASS_X])
{
    bool is_signed = steps == 0;
    int n = is_signed ? 1 : steps, size = is_signed ? SIGNED_STEP : 64;
    const __m256i ones = _mm256_set1_epi16(1);
    TN_MATMUL_UNROLL
    for (int i = 0; i < sub / 4; i += n) {
        __m256i wide[2][DOT_PASS_X];
        TN_MATMUL_UNROLL
        for (int j = 0; j < n; j++) {
            const uint8_t *w = q + (i + j) * size;
            __m256i a = load_i8(w), b = load_i8(w + size / 2), ma = a, mb = b;
            if (is_signed) ma = load_i8(w + 32), mb = load_i8(w + size / 2 + 32);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) {
                __m256i v = _mm256_set1_epi32((int)tn_load_u32(x[t] + 4 * (i + j)));
                __m256i pa = _mm256_maddubs_epi16(a, is_signed ? _mm256_xor_si256(v, ma) : v);
                __m256i pb = _mm256_maddubs_epi16(b, is_signed ? _mm256_xor_si256(v, mb) : v);
                wide[0][t] = in_order(j == 0 ? pa : _mm256_add_epi16(wide[0][t], pa));
                wide[1][t] = in_order(j == 0 ? pb : _mm256_add_epi16(wide[1][t], pb));
            }
        }
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            dot[0][t] = in_order(_mm256_add_epi32(dot[0][t], _mm256_madd_epi16(wide[0][t], ones)));
            dot[1][t] = in_order(_mm256_add_epi32(dot[1][t], _mm256_madd_epi16(wide[1][t], ones)));
        }
    }
}

#endif
