// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// i8mm: kernels of quantised weights; tiles by SMMLA, which multiplies 2 rows of w by 2 rows of x over 8 k,
// twice as many products as SDOT. Rows of w keep SDOT: with one row of x half of an SMMLA would be lost, and
// with few, bringing rows of w side by side costs what it saves. Numbers: ../README.md.
//
// Tile: bytes [n_k / 8][8 pairs of rows][2][8], scale and min [n_k / sub][16]. A pass multiplies 4 pairs with
// 2 pairs of rows of x, which it brings side by side itself: 16 k of a pair cost two loads and two TRN.
#include "backends/cpu/arm/product/sdot.h"

enum { ROWS_X = 4, QUANT_K = 1024, PAIRS = ARM_HALF / 2, PASS_PAIRS = ARM_PASS_X / 2 };

TN_INLINE int8x16_t low_halves(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s64(vtrn1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

TN_INLINE int8x16_t high_halves(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s64(vtrn2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

TN_INLINE void place_group(int8_t (*rows)[TN_MATMUL_GROUP], uint8_t *q, int64_t k, int64_t n_k)
{
    TN_UNUSED(n_k);
    for (int64_t c = 0; c < TN_MATMUL_GROUP; c += 16) {
        uint8_t *to = q + (k + c) * ARM_TILE_ROWS;
        TN_UNROLL
        for (int r = 0; r < ARM_TILE_ROWS; r += 2) {
            int8x16_t a = vld1q_s8(rows[r] + c), b = vld1q_s8(rows[r + 1] + c);
            vst1q_u8(to + 8 * r, vreinterpretq_u8_s8(low_halves(a, b)));
            vst1q_u8(to + 8 * (ARM_TILE_ROWS + r), vreinterpretq_u8_s8(high_halves(a, b)));
        }
    }
}

// Sums of a pass by pairs: lanes are (row 0, x 0), (row 0, x 1), (row 1, x 0), (row 1, x 1).
typedef float32x4_t pair_sums[PAIRS][PASS_PAIRS];

TN_INLINE void load_pairs(const arm_pass *p, int n, pair_sums acc)
{
    TN_UNROLL
    for (int r = 0; r < PAIRS; r += 2) {
        TN_UNROLL
        for (int t = 0; t < n; t++) {
            const float *y = p->acc + 2 * t * ARM_TILE_ROWS + 2 * r;
            float32x4_t a = p->first ? vdupq_n_f32(0.0f) : vld1q_f32(y);
            float32x4_t b = p->first ? vdupq_n_f32(0.0f) : vld1q_f32(y + ARM_TILE_ROWS);
            acc[r][t] = vzip1q_f32(a, b);
            acc[r + 1][t] = vzip2q_f32(a, b);
        }
    }
}

TN_INLINE void store_pairs(const arm_pass *p, int n, pair_sums acc)
{
    TN_UNROLL
    for (int r = 0; r < PAIRS; r += 2) {
        TN_UNROLL
        for (int t = 0; t < n; t++) {
            float *y = p->acc + 2 * t * ARM_TILE_ROWS + 2 * r;
            vst1q_f32(y, vuzp1q_f32(acc[r][t], acc[r + 1][t]));
            vst1q_f32(y + ARM_TILE_ROWS, vuzp2q_f32(acc[r][t], acc[r + 1][t]));
        }
    }
}

// (a, b, a, b)
TN_INLINE float32x4_t pair_of(const float *a, const float *b)
{
    float32x2_t v = vset_lane_f32(*b, vdup_n_f32(*a), 1);
    return vcombine_f32(v, v);
}

// acc += d * (scale * dot) + min * sum for sub-block s
TN_INLINE void scale_pairs(const arm_pass *p, int64_t s, int n, bool has_min, int32x4_t (*dot)[PASS_PAIRS],
                           pair_sums acc)
{
    float32x4_t d[PASS_PAIRS], sum[PASS_PAIRS];
    TN_UNROLL
    for (int t = 0; t < n; t++) {
        d[t] = pair_of(p->x[2 * t].d + s, p->x[2 * t + 1].d + s);
        if (has_min) sum[t] = pair_of(p->x[2 * t].sum + s, p->x[2 * t + 1].sum + s);
    }
    TN_UNROLL
    for (int r = 0; r < PAIRS; r++) {
        float32x4_t v = vld1q_f32(p->scale + s * ARM_TILE_ROWS + r / 2 * 4);
        float32x4_t scale = r % 2 ? vzip2q_f32(v, v) : vzip1q_f32(v, v), min = scale;
        if (has_min) {
            v = vld1q_f32(p->min + s * ARM_TILE_ROWS + r / 2 * 4);
            min = r % 2 ? vzip2q_f32(v, v) : vzip1q_f32(v, v);
        }
        TN_UNROLL
        for (int t = 0; t < n; t++) {
            float32x4_t y = vmulq_f32(vcvtq_f32_s32(dot[r][t]), scale);
            acc[r][t] = vfmaq_f32(acc[r][t], y, d[t]);
            if (has_min) acc[r][t] = vfmaq_f32(acc[r][t], min, sum[t]);
        }
    }
}

// n pairs of rows of x
TN_INLINE void tile_pass(const arm_pass *p, int n, int sub, bool has_min)
{
    pair_sums acc;
    load_pairs(p, n, acc);
    for (int64_t s = 0; s < p->n_sub; s++) {
        int32x4_t dot[PAIRS][PASS_PAIRS];
        TN_UNROLL
        for (int r = 0; r < PAIRS; r++) {
            TN_UNROLL
            for (int t = 0; t < n; t++) dot[r][t] = vdupq_n_s32(0);
        }
        TN_UNROLL
        for (int c = 0; c < sub; c += 16) {
            const uint8_t *q = p->q + (s * sub + c) * ARM_TILE_ROWS;
            int8x16_t x[2][PASS_PAIRS];
            TN_UNROLL
            for (int t = 0; t < n; t++) {
                int8x16_t a = vld1q_s8(p->x[2 * t].q + s * sub + c);
                int8x16_t b = vld1q_s8(p->x[2 * t + 1].q + s * sub + c);
                x[0][t] = low_halves(a, b);
                x[1][t] = high_halves(a, b);
            }
            TN_UNROLL
            for (int i = 0; i < 2 * PAIRS; i++) {
                int half = i / PAIRS, r = i % PAIRS;
                int8x16_t w = as_signed(load_u8(q + half * 8 * ARM_TILE_ROWS + 16 * r));
                TN_UNROLL
                for (int t = 0; t < n; t++) dot[r][t] = vmmlaq_s32(dot[r][t], w, x[half][t]);
            }
        }
        scale_pairs(p, s, n, has_min, dot, acc);
    }
    store_pairs(p, n, acc);
}

// A last row of x without another one is multiplied twice; the second result goes to a place of its own.
TN_INLINE void last_row(const arm_pass *p, int sub, bool has_min)
{
    float acc[2 * ARM_TILE_ROWS] = {0};
    arm_pass one = *p;
    one.x[1] = p->x[0];
    one.acc = acc;
    if (!p->first) memcpy(acc, p->acc, ARM_HALF * sizeof(float));
    tile_pass(&one, 1, sub, has_min);
    memcpy(p->acc, acc, ARM_HALF * sizeof(float));
}

TN_INLINE void tile_passes(const tn_matmul_tile_args *a, int sub, bool has_min)
{
    for (int half = 0; half < 2; half++) {
        int64_t n = 0;
        for (int64_t i = 0; i < a->n_x; i += n) {
            int64_t left = a->n_x - i;
            n = left >= ARM_PASS_X ? ARM_PASS_X : left >= 2 ? 2 : 1;
            arm_pass p = arm_pass_get(a, half, i, n, sub);
            p.q = a->tile->q + half * 8 * ARM_HALF;
            if (n == ARM_PASS_X)
                tile_pass(&p, 2, sub, has_min);
            else if (n == 2)
                tile_pass(&p, 1, sub, has_min);
            else
                last_row(&p, sub, has_min);
        }
    }
}

ARM_TILE_FUNCTIONS

#include "backends/cpu/arm/product/types.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &name##_kernel,
#include "backends/cpu/quant_types.def"
};
const tn_matmul_isa tn_matmul_isa_i8mm = {.below = &tn_matmul_isa_dotprod, .kernels = kernels};

void tn_matmul_i8mm(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_i8mm);
}
