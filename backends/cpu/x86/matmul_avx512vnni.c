// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: the tile product of quantised weights, and the table of the level.
//
//   acc[t][r] += sum over sub-blocks s of d_x[t,s] * (scale[s,r] * dot(u[r,s], q_x[t,s])) + min[s,r] * sum_x[t,s]
//
// Tile: bytes [n_k / 4][32 rows][4], scale and min [n_k / sub][32]. One pass takes 6 rows of x against the
// 32 rows: 12 int32 and 12 f32 accumulators of 16 lanes; 4 bytes of x are broadcast from L1, the tile stays
// in L1. Per 32 k and accumulator: 8 dpbusd and 3 (with min 4, sub-blocks of 16 5 to 7) float operations on
// the same two ports, which bounds the rate to 8/11 (8/12, 8/13 to 8/15) of the peak of dpbusd.
// Numbers: backends/cpu/README.md.
#include "backends/cpu/x86/matmul_avx512vnni.h"

enum { PASS_X = 6 }; // rows of x per pass

typedef struct pass {
    const uint8_t *q;
    const float *scale, *min;
    rows_x x[PASS_X]; // at the start of the tile
    float *acc;
    int64_t n_sub; // sub-blocks of 16 or 32
    bool first;
} pass;

TN_INLINE __m512i broadcast_4(const int8_t *p)
{
    return _mm512_set1_epi32((int)tn_load_u32(p));
}

// dot[2][n_x] of sub-block s.
TN_INLINE void dot_sub(const pass *p, int64_t s, int n_x, int sub, __m512i (*dot)[PASS_X])
{
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) dot[0][t] = dot[1][t] = _mm512_set1_epi32(p->x[t].init[s]);
    TN_MATMUL_UNROLL
    for (int j = 0; j < sub / 4; j++) {
        const uint8_t *q = p->q + (s * (sub / 4) + j) * TILE_STEP;
        __m512i a = _mm512_load_si512(q), b = _mm512_load_si512(q + 64);
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            __m512i x = broadcast_4(p->x[t].q + s * sub + 4 * j);
            dot[0][t] = _mm512_dpbusd_epi32(dot[0][t], a, x);
            dot[1][t] = _mm512_dpbusd_epi32(dot[1][t], b, x);
        }
    }
}

TN_INLINE void tile_pass(const pass *p, int n_x, int sub, bool has_min)
{
    __m512 acc[2][PASS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        acc[0][t] = p->first ? _mm512_setzero_ps() : _mm512_load_ps(p->acc + t * TN_MATMUL_TILE_ROWS);
        acc[1][t] = p->first ? _mm512_setzero_ps() : _mm512_load_ps(p->acc + t * TN_MATMUL_TILE_ROWS + 16);
    }
    for (int64_t s = 0; s < p->n_sub; s++) {
        __m512i dot[2][PASS_X];
        dot_sub(p, s, n_x, sub, dot);
        TN_MATMUL_UNROLL
        for (int r = 0; r < 2; r++) {
            __m512 scale = _mm512_load_ps(p->scale + s * TN_MATMUL_TILE_ROWS + r * 16);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) {
                __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(dot[r][t]), scale);
                acc[r][t] = _mm512_fmadd_ps(v, _mm512_set1_ps(p->x[t].d[s]), acc[r][t]);
            }
            if (!has_min) continue;
            __m512 min = _mm512_load_ps(p->min + s * TN_MATMUL_TILE_ROWS + r * 16);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) acc[r][t] = _mm512_fmadd_ps(min, _mm512_set1_ps(p->x[t].sum[s]), acc[r][t]);
        }
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
    pass p = {.q = t->q, .scale = t->scale, .min = t->min, .n_sub = t->n_k / sub, .first = a->first};
    for (int64_t i = 0; i < a->n_x; i += PASS_X) {
        int64_t n = TN_MIN(a->n_x - i, PASS_X);
        for (int64_t j = 0; j < n; j++) {
            rows_x x = rows_x_get(a->layout, a->x[i + j]);
            int64_t s = t->k0 / sub;
            p.x[j] = (rows_x){.q = x.q + t->k0, .d = x.d + s, .sum = x.sum + s, .init = x.init + s};
        }
        p.acc = a->acc + i * TN_MATMUL_TILE_ROWS;
        if (n == 6) tile_pass(&p, 6, sub, has_min);
        else if (n == 5) tile_pass(&p, 5, sub, has_min);
        else if (n == 4) tile_pass(&p, 4, sub, has_min);
        else if (n == 3) tile_pass(&p, 3, sub, has_min);
        else if (n == 2) tile_pass(&p, 2, sub, has_min);
        else tile_pass(&p, 1, sub, has_min);
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

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_Q4_0] = &tn_matmul_q4_0_avx512vnni,     [TN_TYPE_Q4_1] = &tn_matmul_q4_1_avx512vnni,
    [TN_TYPE_Q5_0] = &tn_matmul_q5_0_avx512vnni,     [TN_TYPE_Q5_1] = &tn_matmul_q5_1_avx512vnni,
    [TN_TYPE_Q8_0] = &tn_matmul_q8_0_avx512vnni,     [TN_TYPE_Q2_K] = &tn_matmul_q2_k_avx512vnni,
    [TN_TYPE_Q3_K] = &tn_matmul_q3_k_avx512vnni,     [TN_TYPE_Q4_K] = &tn_matmul_q4_k_avx512vnni,
    [TN_TYPE_Q5_K] = &tn_matmul_q5_k_avx512vnni,     [TN_TYPE_Q6_K] = &tn_matmul_q6_k_avx512vnni,
    [TN_TYPE_IQ4_NL] = &tn_matmul_iq4_nl_avx512vnni, [TN_TYPE_IQ4_XS] = &tn_matmul_iq4_xs_avx512vnni,
    [TN_TYPE_MXFP4] = &tn_matmul_mxfp4_avx512vnni,
};

const tn_matmul_isa tn_matmul_isa_avx512vnni = {
    .below = &tn_matmul_isa_avx512, .kernels = kernels};

void tn_matmul_avx512vnni(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_avx512vnni);
}
