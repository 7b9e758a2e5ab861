// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rounding of activations and epilogues of matrix products; one file per ISA includes this after its vec_*.h
// and so compiles its own copy with its flags. The rounding is plain C with loops of fixed length, which
// compilers turn into vector code at -O2. It gives the same bits everywhere: one operation per statement,
// which compilers do not contract in strict C.
#include "backends/cpu/product.h"
#include "backends/cpu/vec_math.h"
#include "core/fp16.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

#ifndef TN_MATMUL_ROUND_BLOCK // an ISA may bring its own round_block, with the same bits
enum { BLOCK = 32, CHUNK = 16 };

// x [32] -> q [32], d; sums [2] of q over 16 elements.
static inline float round_block(const float *restrict x, int8_t *restrict q, int32_t *restrict sums)
{
    uint32_t bits[BLOCK], top = 0;
    memcpy(bits, x, sizeof bits);
    for (int i = 0; i < BLOCK; i++) {
        uint32_t u = bits[i] & 0x7fffffffu; // the order of magnitudes is that of their bits
        top = u > top ? u : top;
    }
    memset(q, 0, BLOCK);
    sums[0] = sums[1] = 0;
    if (top >= 0x7f800000u) return tn_f32_from_bits(0x7fc00000u);
    float amax = tn_f32_from_bits(top);
    if (amax < 1e-35f) return 0.0f; // 127 / amax would overflow; such products vanish beside any other
    float inverse = 127.0f / amax;
    int32_t v[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        float scaled = x[i] * inverse;
        float shifted = scaled + 12582912.0f; // 1.5 * 2^23: the sum's low bits are round-to-nearest-even
        v[i] = (int32_t)(tn_f32_bits(shifted) - 0x4b400000u);
    }
    for (int i = 0; i < CHUNK; i++) {
        sums[0] += v[i];
        sums[1] += v[CHUNK + i];
    }
    for (int i = 0; i < BLOCK; i++) q[i] = (int8_t)v[i];
    return amax / 127.0f;
}
#endif

// Elements and scales of one group of 256 elements in the order of the format: q [256], d [8], sums [16].
static inline void place_group(const tn_matmul_format *f, const int8_t *restrict q, const float *restrict d,
                               const int32_t *restrict sums, const tn_matmul_record_group *to)
{
#ifdef TN_MATMUL_PLACE_CHUNKS // an ISA whose kernels have formats with chunks of 4 bytes brings place_chunks
    if (f->chunk == 4) {
        place_chunks(f, q, d, sums, to);
        return;
    }
#endif
    int32_t n_sub = TN_MATMUL_GROUP / f->sub;
    for (int u = 0; u < TN_MATMUL_GROUP / CHUNK; u++)
        memcpy(to->q + u * CHUNK, q + f->order[u] * CHUNK, CHUNK);
    for (int32_t s = 0; s < n_sub; s++) {
        int32_t sum = f->sub == CHUNK ? sums[s] : sums[2 * s] + sums[2 * s + 1];
        to->d[s] = d[s * f->sub / BLOCK];
        to->sum[s] = to->d[s] * (float)sum;
        if (f->lanes == 0) to->init[s] = -f->bias * sum;
    }
    if (f->lanes == 0) return;
    int32_t size = f->lanes * 4, n = TN_MATMUL_GROUP / (size * f->chain);
    for (int32_t c = 0; c < n; c++) {
        for (int32_t lane = 0; lane < f->lanes; lane++) {
            int32_t sum = 0;
            for (int32_t j = 0; j < f->chain; j++) {
                const int8_t *p = to->q + (c * f->chain + j) * size + lane * 4;
                sum += p[0] + p[1] + p[2] + p[3];
            }
            to->init[c * f->lanes + lane] = -f->bias * sum;
        }
    }
}

static void quantise_record(const tn_matmul_format *f, const tn_matmul_layout *l, const float *x,
                            uint8_t *rec, int64_t k0, int64_t k1)
{
    int32_t n_sub = TN_MATMUL_GROUP / f->sub, n_d = f->subs ? 16 : n_sub;
    int32_t n_init = f->lanes ? TN_MATMUL_GROUP / 4 / f->chain : n_sub;
    for (int64_t k = k0; k < k1; k += TN_MATMUL_GROUP) {
        int64_t n = TN_MIN(l->k - k, TN_MATMUL_GROUP), g = k / TN_MATMUL_GROUP;
        int8_t q[TN_MATMUL_GROUP] TN_ALIGNED(64);
        float d[TN_MATMUL_GROUP / BLOCK] = {0};
        int32_t sums[TN_MATMUL_GROUP / CHUNK] = {0};
        tn_matmul_record_group to = {.q = (int8_t *)rec + k};
        to.d = (float *)(void *)(rec + l->d_off) + g * n_d;
        to.sum = (float *)(void *)(rec + l->sum_off) + g * n_sub;
        to.init = (int32_t *)(void *)(rec + l->init_off) + g * n_init;
#ifdef TN_MATMUL_ROUND_GROUP // an ISA may bring round_group, for most groups
        if (n == TN_MATMUL_GROUP && round_group(x + k, q, d, sums)) {
            place_group(f, q, d, sums, &to);
            continue;
        }
#endif
        memset(q, 0, sizeof q);
        for (int64_t b = 0; b < n / BLOCK; b++)
            d[b] = round_block(x + k + b * BLOCK, q + b * BLOCK, sums + 2 * b);
        place_group(f, q, d, sums, &to);
    }
}

// The activations that models put behind a product; the others go through their scalar definition.
TN_INLINE vf act_vector(int32_t kind, vf x)
{
    vf one = vf_set1(1.0f);
    if (kind == TN_UNARY_SILU) return vf_div(x, vf_add(one, vf_exp(vf_sub(vf_zero(), x))));
    if (kind == TN_UNARY_GELU) { // 0.5 (1 + tanh u) = sigmoid(2u), 2u = 2 sqrt(2/pi) x (1 + 0.044715 x^2)
        vf u = vf_mul(vf_mul(vf_set1(1.595769122f), x), vf_fma(vf_mul(vf_set1(0.044715f), x), x, one));
        return vf_mul(x, vf_sigmoid(u));
    }
    if (kind == TN_UNARY_GELU_ERF) return vf_mul(x, vf_normal_cdf(x));
    return vf_max(vf_zero(), x); // relu; a NaN passes as second operand
}

static void act_values(int32_t kind, float *v, int64_t n)
{
    switch (kind) {
    case TN_UNARY_SILU:
    case TN_UNARY_GELU:
    case TN_UNARY_GELU_ERF:
    case TN_UNARY_RELU:
        for (int64_t i = 0; i < n; i += VEC_N) vf_store(v + i, act_vector(kind, vf_load(v + i)));
        break;
    default:
        for (int64_t i = 0; i < n; i++) v[i] = (float)tn_scalar_unary(kind, (double)v[i], 0.0, 0.0);
    }
}

static void glu_values(const tn_glu_params *p, float *gate, const float *up, int64_t n)
{
    vf high = vf_set1(p->limit > 0.0f ? p->limit : INFINITY), low = vf_sub(vf_zero(), high);
    vf alpha = vf_set1(p->alpha), one = vf_set1(1.0f);
    if (!(p->alpha > 0.0f)) {
        for (int64_t i = 0; i < n; i += VEC_N) vf_store(gate + i, vf_min(high, vf_load(gate + i)));
        act_values(p->act, gate, n);
    }
    for (int64_t i = 0; i < n; i += VEC_N) {
        vf g = vf_load(gate + i), u = vf_max(low, vf_min(high, vf_load(up + i)));
        if (p->alpha > 0.0f) {
            g = vf_min(high, g);
            g = vf_mul(g, vf_sigmoid(vf_mul(alpha, g)));
            u = vf_add(u, one);
        }
        vf_store(gate + i, vf_mul(g, u));
    }
}
