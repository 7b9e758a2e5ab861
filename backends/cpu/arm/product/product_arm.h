// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the kernels of matrix products that all levels of aarch64 share. Only instructions that every
// aarch64 processor has.
#ifndef TN_CPU_ARM_PRODUCT_ARM_H
#define TN_CPU_ARM_PRODUCT_ARM_H

#include "backends/cpu/product.h"
#include "core/fp16.h"

#include <arm_neon.h>
#include <string.h>

enum {
    ARM_TILE_ROWS = 16,
    ARM_HALF = 8, // rows that a pass of a tile product takes at a time
};

// The lines of `size` bytes that a rows kernel reads next but 2 KiB. In-order cores do not look ahead by
// themselves; how far is best was not measured.
enum { ARM_PREFETCH = 2048 };
#define ARM_FETCH(p, size)                                                                                   \
    do {                                                                                                     \
        TN_UNROLL                                                                                            \
        for (int line_ = 0; line_ < (size); line_ += 64)                                                     \
            TN_PREFETCH((const char *)(p) + ARM_PREFETCH + line_);                                           \
    } while (0)

TN_INLINE uint8x16_t load_u8(const uint8_t *p)
{
    return vld1q_u8(p);
}

TN_INLINE int8x16_t as_signed(uint8x16_t v)
{
    return vreinterpretq_s8_u8(v);
}

// Values of sub-blocks from a byte offset of a record on.
TN_INLINE float32x4_t load_subs(const uint8_t *record, size_t offset)
{
    return vld1q_f32((const float *)(const void *)(record + offset));
}

// Four columns of four rows.
TN_INLINE void transpose_4(const float32x4_t *r, float32x4_t *v)
{
    float64x2_t a0 = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1]));
    float64x2_t a1 = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
    float64x2_t b0 = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3]));
    float64x2_t b1 = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));
    v[0] = vreinterpretq_f32_f64(vtrn1q_f64(a0, b0));
    v[1] = vreinterpretq_f32_f64(vtrn1q_f64(a1, b1));
    v[2] = vreinterpretq_f32_f64(vtrn2q_f64(a0, b0));
    v[3] = vreinterpretq_f32_f64(vtrn2q_f64(a1, b1));
}

// Activations in natural order, for sub-blocks of 16 and of 32.
static const tn_matmul_format arm_format_16 = {.order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = 16};
static const tn_matmul_format arm_format_32 = {.order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = 32};

// Scales or minima of all rows of a tile, as columns.
TN_INLINE void place_subs(float (*rows)[16], int n_sub, float *to)
{
    for (int s = 0; s < n_sub; s += 4) {
        TN_UNROLL
        for (int r = 0; r < ARM_TILE_ROWS; r += 4) {
            float32x4_t in[4], out[4];
            TN_UNROLL
            for (int i = 0; i < 4; i++) in[i] = vld1q_f32(rows[r + i] + s);
            transpose_4(in, out);
            TN_UNROLL
            for (int i = 0; i < 4; i++) vst1q_f32(to + (s + i) * ARM_TILE_ROWS + r, out[i]);
        }
    }
}

// A row of x from the first element of a tile on.
typedef struct arm_x {
    const int8_t *q;
    const float *d, *sum;
} arm_x;

TN_INLINE arm_x arm_x_get(const tn_matmul_layout *l, const uint8_t *record, int64_t k0, int sub)
{
    return (arm_x){.q = (const int8_t *)record + k0,
                   .d = (const float *)(const void *)(record + l->d_off) + k0 / sub,
                   .sum = (const float *)(const void *)(record + l->sum_off) + k0 / sub};
}

// One pass over a tile: 8 of its rows against some rows of x.
enum { ARM_PASS_X = 4 };
typedef struct arm_pass {
    const uint8_t *q;
    const float *scale, *min; // of these rows, ARM_TILE_ROWS apart
    arm_x x[ARM_PASS_X];
    float *acc; // ARM_TILE_ROWS apart
    int64_t n_sub;
    bool first;
} arm_pass;

// All but q: rows of half 0 or 1 against n_x rows of x from i on.
TN_INLINE arm_pass arm_pass_get(const tn_matmul_tile_args *a, int half, int64_t i, int64_t n_x, int sub)
{
    const tn_matmul_tile *t = a->tile;
    arm_pass p = {.scale = t->scale + half * ARM_HALF,
                  .min = t->min + half * ARM_HALF,
                  .acc = a->acc + i * ARM_TILE_ROWS + half * ARM_HALF,
                  .n_sub = t->n_k / sub,
                  .first = a->first};
    for (int64_t j = 0; j < n_x; j++) p.x[j] = arm_x_get(a->layout, a->x[i + j], t->k0, sub);
    return p;
}

// Sums of a pass whose vectors hold four rows against one row of x: [2][n_x].
TN_INLINE void load_acc(const arm_pass *p, int n_x, float32x4_t (*acc)[ARM_PASS_X])
{
    TN_UNROLL
    for (int t = 0; t < n_x; t++) {
        acc[0][t] = p->first ? vdupq_n_f32(0.0f) : vld1q_f32(p->acc + t * ARM_TILE_ROWS);
        acc[1][t] = p->first ? vdupq_n_f32(0.0f) : vld1q_f32(p->acc + t * ARM_TILE_ROWS + 4);
    }
}

TN_INLINE void store_acc(const arm_pass *p, int n_x, float32x4_t (*acc)[ARM_PASS_X])
{
    TN_UNROLL
    for (int t = 0; t < n_x; t++) {
        vst1q_f32(p->acc + t * ARM_TILE_ROWS, acc[0][t]);
        vst1q_f32(p->acc + t * ARM_TILE_ROWS + 4, acc[1][t]);
    }
}

// acc += d * (scale * dot) + min * sum for sub-block s
TN_INLINE void scale_sums(const arm_pass *p, int64_t s, int n_x, bool has_min, int32x4_t (*dot)[ARM_PASS_X],
                          float32x4_t (*acc)[ARM_PASS_X])
{
    TN_UNROLL
    for (int v = 0; v < 2; v++) {
        float32x4_t scale = vld1q_f32(p->scale + s * ARM_TILE_ROWS + 4 * v);
        float32x4_t min = has_min ? vld1q_f32(p->min + s * ARM_TILE_ROWS + 4 * v) : scale;
        TN_UNROLL
        for (int t = 0; t < n_x; t++) {
            float32x4_t y = vmulq_f32(vcvtq_f32_s32(dot[v][t]), scale);
            acc[v][t] = vfmaq_n_f32(acc[v][t], y, p->x[t].d[s]);
            if (has_min) acc[v][t] = vfmaq_n_f32(acc[v][t], min, p->x[t].sum[s]);
        }
    }
}

#endif
