// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: the tile product of quantised weights.
//
//   acc[t][r] += sum over sub-blocks s of
//       d_x[t,s] * (scale[s,r] * dot(w[r,s], q_x[t,s])) + min[s,r] * sum_x[t,s]
//
// Tile: bytes [n_k / 4][16 rows][4], scale and min [n_k / sub][16]. One pass multiplies 3 rows of x with the
// 16 rows: int16 sums of `steps` maddubs results, widened by madd, 6 f32 accumulators of 8 lanes. Signed
// bytes (steps 0) cost an exclusive or and a widening per product, and their tiles have masks (dot_avx2.h).
// Numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx2.h"

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
    rows_x x[DOT_PASS_X]; // at the start of the tile
    float *acc;
    int64_t n_sub; // sub-blocks of 16 or 32
    bool first;
} pass;

// dot[2][n_x] of sub-block s, from init on.
TN_INLINE void dot_sub(const pass *p, int64_t s, int n_x, int sub, int steps, __m256i (*dot)[DOT_PASS_X])
{
    const float *min = p->min + s * AVX2_TILE_ROWS;
    const int8_t *x[DOT_PASS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        x[t] = p->x[t].q + s * sub;
        for (int r = 0; r < 2; r++)
            dot[r][t] =
                steps == 0 ? start_signed(min + r * 8, p->x[t].init + s) : _mm256_set1_epi32(p->x[t].init[s]);
    }
    dot_tile(p->q + s * (sub / 4) * (steps == 0 ? SIGNED_STEP : AVX2_TILE_STEP), x, n_x, sub, steps, dot);
}

TN_INLINE void tile_pass(const pass *p, int n_x, int sub, int steps, bool has_min)
{
    __m256 acc[2][DOT_PASS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        acc[0][t] = p->first ? _mm256_setzero_ps() : _mm256_load_ps(p->acc + t * AVX2_TILE_ROWS);
        acc[1][t] = p->first ? _mm256_setzero_ps() : _mm256_load_ps(p->acc + t * AVX2_TILE_ROWS + 8);
    }
    for (int64_t s = 0; s < p->n_sub; s++) {
        __m256i dot[2][DOT_PASS_X];
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
    for (int64_t i = 0; i < a->n_x; i += DOT_PASS_X) {
        int64_t n = TN_MIN(a->n_x - i, DOT_PASS_X);
        for (int64_t j = 0; j < n; j++) {
            rows_x x = rows_x_get(a->layout, a->x[i + j]);
            int64_t s = t->k0 / sub;
            p.x[j] = (rows_x){.q = x.q + t->k0, .d = x.d + s, .sum = x.sum + s, .init = x.init + s};
        }
        p.acc = a->acc + i * AVX2_TILE_ROWS;
        if (n == DOT_PASS_X)
            tile_pass(&p, DOT_PASS_X, sub, steps, has_min);
        else if (n == 2)
            tile_pass(&p, 2, sub, steps, has_min);
        else
            tile_pass(&p, 1, sub, steps, has_min);
    }
}

#define TILE(name, sub, steps, has_min)                                                                      \
    void AT_LEVEL(tn_matmul_tile_##name)(const tn_matmul_tile_args *a)                                       \
    {                                                                                                        \
        tile_passes(a, sub, steps, has_min);                                                                 \
    }
TILE(16_steps_4_min, 16, 4, true)
TILE(16_steps_4, 16, 4, false)
TILE(16_steps_2, 16, 2, false)
TILE(16_steps_1, 16, 1, false)
TILE(32_steps_8_min, 32, 8, true)
TILE(32_steps_8, 32, 8, false)
TILE(32_steps_4_min, 32, 4, true)
TILE(32_steps_4, 32, 4, false)
TILE(32_steps_1, 32, 1, false)
TILE(32_signed, 32, 0, false)
