// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of dot_avx2.h for AVX-VNNI: vpdpbusd adds four products in int32, so nothing overflows, and
// signed bytes of weights become unsigned by adding 128.
#ifndef TN_CPU_X86_DOT_H
#define TN_CPU_X86_DOT_H

#include "backends/cpu/x86/product/dpbusd.h"
#include "backends/cpu/x86/product/product_loops.h"
#include "core/fp16.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    DOT_PASS_X =
        3, // rows of x per pass of a tile: 6 sums each of int32 and f32, and 4 registers for operands
    SIGNED_BIAS = 128,
    SIGNED_STEP = 64,
};

TN_INLINE __m256i load_i8(const void *p)
{
    return _mm256_loadu_si256(p);
}

TN_INLINE void prepare_signed(__m256i *u)
{
    const __m256i sign = _mm256_set1_epi8(-128); // q ^ 0x80 = q + 128 as unsigned
    TN_MATMUL_UNROLL
    for (int z = 0; z < 8; z++) u[z] = _mm256_xor_si256(u[z], sign);
}

TN_INLINE void pack_signed(uint8_t *to, __m256i w, __m256i *negatives)
{
    (void)negatives;
    _mm256_store_si256((void *)to, w);
}

TN_INLINE void pack_negatives(float *min, __m256i negatives)
{
    (void)min, (void)negatives;
}

TN_INLINE __m256i start_signed(const float *min, const int32_t *init)
{
    (void)min;
    return _mm256_set1_epi32(*init);
}

TN_INLINE __m256i dot_rows(const __m256i *u, const uint8_t *q, const uint8_t *init, int chain, bool is_signed)
{
    (void)is_signed;
    __m256i dot = init ? load_i8(init) : _mm256_setzero_si256();
    TN_MATMUL_UNROLL
    for (int i = 0; i < chain; i++) dot = dpbusd(dot, u[i], load_i8(q + 32 * i));
    return dot;
}

TN_INLINE void dot_tile(const uint8_t *q, const int8_t *const *x, int n_x, int sub, int steps,
                        __m256i (*dot)[DOT_PASS_X])
{
    (void)steps;
    TN_MATMUL_UNROLL
    for (int i = 0; i < sub / 4; i++) {
        __m256i a = load_i8(q + i * 64), b = load_i8(q + i * 64 + 32);
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            __m256i v = _mm256_set1_epi32((int)tn_load_u32(x[t] + 4 * i));
            dot[0][t] = dpbusd(dot[0][t], a, v);
            dot[1][t] = dpbusd(dot[1][t], b, v);
        }
    }
}

#endif
