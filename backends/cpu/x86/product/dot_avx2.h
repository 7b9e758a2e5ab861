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
    DOT_PASS_X = 3,  // rows of x per pass of a tile: 6 sums each of int16 and f32, 4 registers for operands
    SIGNED_BIAS = 0, // added to signed bytes
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

TN_INLINE __m256i products(__m256i w, const int8_t *x, bool is_signed)
{
    __m256i v = _mm256_set1_epi32((int)tn_load_u32(x));
    if (is_signed) return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(v, w));
    return _mm256_maddubs_epi16(w, v);
}

// The sum as it is here. Otherwise gcc adds integers in any order: it multiplies first, keeps the products
// of a whole block in memory, and adds them at the end.
TN_INLINE __m256i in_order(__m256i sum)
{
    __asm__("" : "+x"(sum));
    return sum;
}

// dot[2][n_x] += a sub-block of a tile at q, where 64 bytes are four elements of 16 rows, and of rows x.
// steps: how many results of vpmaddubsw fit into int16, 0: signed bytes.
TN_INLINE void dot_tile(const uint8_t *q, const int8_t *const *x, int n_x, int sub, int steps,
                        __m256i (*dot)[DOT_PASS_X])
{
    bool is_signed = steps == 0;
    int n = is_signed ? 1 : steps;
    const __m256i ones = _mm256_set1_epi16(1);
    TN_MATMUL_UNROLL
    for (int i = 0; i < sub / 4; i += n) {
        __m256i wide[2][DOT_PASS_X];
        TN_MATMUL_UNROLL
        for (int j = 0; j < n; j++) {
            __m256i a = load_i8(q + (i + j) * 64), b = load_i8(q + (i + j) * 64 + 32);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) {
                __m256i pa = products(a, x[t] + 4 * (i + j), is_signed);
                __m256i pb = products(b, x[t] + 4 * (i + j), is_signed);
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
