// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: the tile product of quantised weights.
//
//   acc[t][r] += sum over sub-blocks s of d_x[t,s] * (scale[s,r] * dot(u[r,s], q_x[t,s])) + min[s,r] *
//   sum_x[t,s]
//
// Tile: bytes [n_k / 4][32 rows][4], scale and min [n_k / sub][32]. One pass multiplies 6 rows of x with the
// 32 rows: 12 int32 and 12 f32 accumulators of 16 lanes; 4 bytes of x are broadcast from L1, the tile stays
// in L1. Per 32 k and accumulator: 8 dpbusd and 3 (with min 4, sub-blocks of 16 5 to 7) float operations on
// the same two ports, which bounds the rate to 8/11 (8/12, 8/13 to 8/15) of the peak of dpbusd.
// Numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx512vnni.h"

enum { PASS_X = 6 }; // rows of x per pass

// One pass; where to read in the records x advances with the sub-blocks.
typedef struct pass {
    const uint8_t *q;
    const float *scale, *min;
    const uint8_t *x[PASS_X];
    size_t q_at, d_at, sum_at, init_at;
    float *acc;
    int64_t n_sub; // sub-blocks of 16 or 32
    bool first;
} pass;

TN_INLINE __m512i broadcast_4(const uint8_t *p)
{
    return _mm512_set1_epi32((int)tn_load_u32(p));
}

TN_INLINE __m512 broadcast_f32(const uint8_t *p)
{
    return _mm512_set1_ps(*(const float *)(const void *)p);
}

// dot[2][n_x] += one sub-block: of the tile at q, of the records from q_at on.
TN_INLINE void dot_sub(const uint8_t *q, const uint8_t *const *x, size_t q_at, int n_x, int sub,
                       __m512i (*dot)[PASS_X])
{
    TN_MATMUL_UNROLL
    for (int j = 0; j < sub / 4; j++) {
        __m512i a = _mm512_load_si512(q + j * TILE_STEP), b = _mm512_load_si512(q + j * TILE_STEP + 64);
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            __m512i v = broadcast_4(x[t] + q_at + 4 * j);
            dot[0][t] = _mm512_dpbusd_epi32(dot[0][t], a, v);
            dot[1][t] = _mm512_dpbusd_epi32(dot[1][t], b, v);
        }
    }
}

TN_INLINE void tile_pass(const pass *p, int n_x, int sub, bool has_min)
{
    const uint8_t *x[PASS_X], *q = p->q;
    __m512 acc[2][PASS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        x[t] = p->x[t];
        acc[0][t] = p->first ? _mm512_setzero_ps() : _mm512_load_ps(p->acc + t * TN_MATMUL_TILE_ROWS);
        acc[1][t] = p->first ? _mm512_setzero_ps() : _mm512_load_ps(p->acc + t * TN_MATMUL_TILE_ROWS + 16);
    }
    size_t q_at = p->q_at, d_at = p->d_at, sum_at = p->sum_at, init_at = p->init_at, step = 0;
    for (int64_t s = 0; s < p->n_sub; s++) {
        __m512i dot[2][PASS_X];
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) dot[0][t] = dot[1][t] = broadcast_4(x[t] + init_at + step);
        dot_sub(q, x, q_at, n_x, sub, dot);
        TN_MATMUL_UNROLL
        for (int r = 0; r < 2; r++) {
            __m512 scale = _mm512_load_ps(p->scale + s * TN_MATMUL_TILE_ROWS + r * 16);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) {
                __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(dot[r][t]), scale);
                acc[r][t] = _mm512_fmadd_ps(v, broadcast_f32(x[t] + d_at + step), acc[r][t]);
            }
            if (!has_min) continue;
            __m512 min = _mm512_load_ps(p->min + s * TN_MATMUL_TILE_ROWS + r * 16);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++)
                acc[r][t] = _mm512_fmadd_ps(min, broadcast_f32(x[t] + sum_at + step), acc[r][t]);
        }
        q += sub / 4 * TILE_STEP;
        q_at += (size_t)sub;
        step += sizeof(float);
    }
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        _mm512_store_ps(p->acc + t * TN_MATMUL_TILE_ROWS, acc[0][t]);
        _mm512_store_ps(p->acc + t * TN_MATMUL_TILE_ROWS + 16, acc[1][t]);
    }
}

TN_INLINE void tile_passes(const tn_matmul_tile_args *a, int sub, bool has_min)
{
    const tn_matmul_tile *t = a->tile;
    const tn_matmul_layout *l = a->layout;
    size_t subs_at = (size_t)(t->k0 / sub) * sizeof(float);
    pass p = {.q = t->q, .scale = t->scale, .min = t->min, .n_sub = t->n_k / sub, .first = a->first};
    p.q_at = (size_t)t->k0;
    p.d_at = l->d_off + subs_at;
    p.sum_at = l->sum_off + subs_at;
    p.init_at = l->init_off + subs_at;
    for (int64_t i = 0; i < a->n_x; i += PASS_X) {
        int64_t n = TN_MIN(a->n_x - i, PASS_X);
        for (int64_t j = 0; j < n; j++) p.x[j] = a->x[i + j];
        p.acc = a->acc + i * TN_MATMUL_TILE_ROWS;
        if (n == 6)
            tile_pass(&p, 6, sub, has_min);
        else if (n == 5)
            tile_pass(&p, 5, sub, has_min);
        else if (n == 4)
            tile_pass(&p, 4, sub, has_min);
        else if (n == 3)
            tile_pass(&p, 3, sub, has_min);
        else if (n == 2)
            tile_pass(&p, 2, sub, has_min);
        else
            tile_pass(&p, 1, sub, has_min);
    }
}

void tn_matmul_tile_16_avx512vnni(const tn_matmul_tile_args *a)
{
    tile_passes(a, 16, false);
}

void tn_matmul_tile_16_min_avx512vnni(const tn_matmul_tile_args *a)
{
    tile_passes(a, 16, true);
}

void tn_matmul_tile_32_avx512vnni(const tn_matmul_tile_args *a)
{
    tile_passes(a, 32, false);
}

void tn_matmul_tile_32_min_avx512vnni(const tn_matmul_tile_args *a)
{
    tile_passes(a, 32, true);
}
