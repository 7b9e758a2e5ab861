// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: the tile product of quantised weights.
//
//   acc[t][r] += sum over sub-blocks s of
//       d_x[t,s] * (scale[s,r] * dot(w[r,s], q_x[t,s])) + min[s,r] * sum_x[t,s]
//
// Tile: bytes [n_k / 4][16 rows][4], scale and min [n_k / sub][16]. One pass multiplies 2 rows of x with the
// 16 rows: int16 sums of `steps` maddubs results, widened by madd, 4 f32 accumulators of 8 lanes. Signed
// bytes (steps 0) cost a sign and an absolute value per product. Numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx2.h"

enum { PASS_X = 2 }; // rows of x per pass

typedef struct rows_x {
    const int8_t *q;
    const float *d, *sum;
    const int32_t *init;
} rows_x;

TN_INLINE rows_x rows_x_get(const tn_matmul_layout *l, const uint8_t *record)
{
    return (rows_x){.q = (const int8_t *)record,
                    .d = (const float *)(const void *)(record + l->d_off),
                    .sum = (const float *)(const void *)(record + l->sum_off),
                    .init = (const int32_t *)(const void *)(record + l->init_off)};
}

typedef struct pass {
    const uint8_t *q;
    const float *scale, *min;
    rows_x x[PASS_X]; // at the start of the tile
    float *acc;
    int64_t n_sub; // sub-blocks of 16 or 32
    bool first;
} pass;

TN_INLINE __m256i products(__m256i w, const int8_t *x, bool is_signed)
{
    __m256i v = _mm256_set1_epi32((int)tn_load_u32(x));
    if (is_signed) return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(v, w));
    return _mm256_maddubs_epi16(w, v);
}

// dot[2][n_x] of sub-block s; without init for signed bytes.
TN_INLINE void dot_sub(const pass *p, int64_t s, int n_x, int sub, int steps, __m256i (*dot)[PASS_X])
{
    bool is_signed = steps == 0;
    int n = is_signed ? 1 : steps;
    const __m256i ones = _mm256_set1_epi16(1);
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++)
        dot[0][t] = dot[1][t] = is_signed ? _mm256_setzero_si256() : _mm256_set1_epi32(p->x[t].init[s]);
    TN_MATMUL_UNROLL
    for (int i = 0; i < sub / 4; i += n) {
        const uint8_t *q = p->q + (s * (sub / 4) + i) * AVX2_TILE_STEP;
        __m256i wide[2][PASS_X];
        TN_MATMUL_UNROLL
        for (int j = 0; j < n; j++) {
            __m256i a = load_i8(q + j * AVX2_TILE_STEP), b = load_i8(q + j * AVX2_TILE_STEP + 32);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) {
                const int8_t *x = p->x[t].q + s * sub + 4 * (i + j);
                __m256i pa = products(a, x, is_signed), pb = products(b, x, is_signed);
                wide[0][t] = j == 0 ? pa : _mm256_add_epi16(wide[0][t], pa);
                wide[1][t] = j == 0 ? pb : _mm256_add_epi16(wide[1][t], pb);
            }
        }
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            dot[0][t] = _mm256_add_epi32(dot[0][t], _mm256_madd_epi16(wide[0][t], ones));
            dot[1][t] = _mm256_add_epi32(dot[1][t], _mm256_madd_epi16(wide[1][t], ones));
        }
    }
}

TN_INLINE void tile_pass(const pass *p, int n_x, int sub, int steps, bool has_min)
{
    __m256 acc[2][PASS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        acc[0][t] = p->first ? _mm256_setzero_ps() : _mm256_load_ps(p->acc + t * AVX2_TILE_ROWS);
        acc[1][t] = p->first ? _mm256_setzero_ps() : _mm256_load_ps(p->acc + t * AVX2_TILE_ROWS + 8);
    }
    for (int64_t s = 0; s < p->n_sub; s++) {
        __m256i dot[2][PASS_X];
        dot_sub(p, s, n_x, sub, steps, dot);
        TN_MATMUL_UNROLL
        for (int r = 0; r < 2; r++) {
            __m256 scale = _mm256_load_ps(p->scale + s * AVX2_TILE_ROWS + r * 8);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) {
                __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[r][t]), scale);
                acc[r][t] = _mm256_fmadd_ps(v, _mm256_broadcast_ss(p->x[t].d + s), acc[r][t]);
            }
            if (!has_min) continue;
            __m256 min = _mm256_load_ps(p->min + s * AVX2_TILE_ROWS + r * 8);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++)
                acc[r][t] = _mm256_fmadd_ps(min, _mm256_broadcast_ss(p->x[t].sum + s), acc[r][t]);
        }
    }
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        _mm256_store_ps(p->acc + t * AVX2_TILE_ROWS, acc[0][t]);
        _mm256_store_ps(p->acc + t * AVX2_TILE_ROWS + 8, acc[1][t]);
    }
}

TN_INLINE void tile_passes(const tn_matmul_tile_args *a, int sub, int steps, bool has_min)
{
    const tn_matmul_tile *t = a->tile;
    pass p = {.q = t->q, .scale = t->scale, .min = t->min, .n_sub = t->n_k / sub, .first = a->first};
    for (int64_t i = 0; i < a->n_x; i += PASS_X) {
        int64_t n = TN_MIN(a->n_x - i, PASS_X);
        for (int64_t j = 0; j < n; j++) {
            rows_x x = rows_x_get(a->layout, a->x[i + j]);
            int64_t s = t->k0 / sub;
            p.x[j] = (rows_x){.q = x.q + t->k0, .d = x.d + s, .sum = x.sum + s, .init = x.init + s};
        }
        p.acc = a->acc + i * AVX2_TILE_ROWS;
        if (n == PASS_X)
            tile_pass(&p, PASS_X, sub, steps, has_min);
        else
            tile_pass(&p, 1, sub, steps, has_min);
    }
}

#define TILE(name, sub, steps, has_min)                                                                      \
    void tn_matmul_tile_##name##_avx2(const tn_matmul_tile_args *a)                                          \
    {                                                                                                        \
        tile_passes(a, sub, steps, has_min);                                                                 \
    }
TILE(16_steps_4_min, 16, 4, true)
TILE(16_steps_4, 16, 4, false)
TILE(16_steps_2, 16, 2, false)
TILE(32_steps_8_min, 32, 8, true)
TILE(32_steps_8, 32, 8, false)
TILE(32_steps_4_min, 32, 4, true)
TILE(32_steps_4, 32, 4, false)
TILE(32_signed, 32, 0, false)
