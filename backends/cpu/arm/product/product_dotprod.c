// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// dotprod: kernels of quantised weights by SDOT, four products per lane and instruction. Numbers:
// ../README.md.
//
// Tile: bytes [n_k / 4][16 rows][4], scale and min [n_k / sub][16]. A pass multiplies 8 rows with 4 rows of
// x: per 4 k two loads of w feed 8 SDOT, whose other operand is a quarter of a vector of 16 k of x.
#include "backends/cpu/arm/product/sdot.h"

enum { ROWS_X = 4, QUANT_K = 1024 };

TN_INLINE void place_group(int8_t (*rows)[TN_MATMUL_GROUP], uint8_t *q, int64_t k, int64_t n_k)
{
    TN_UNUSED(n_k);
    for (int64_t c = 0; c < TN_MATMUL_GROUP; c += 16) {
        TN_UNROLL
        for (int r = 0; r < ARM_TILE_ROWS; r += 4) {
            float32x4_t in[4], out[4];
            TN_UNROLL
            for (int i = 0; i < 4; i++) in[i] = vreinterpretq_f32_s8(vld1q_s8(rows[r + i] + c));
            transpose_4(in, out);
            TN_UNROLL
            for (int i = 0; i < 4; i++)
                vst1q_u8(q + (k + c + 4 * i) * ARM_TILE_ROWS + 4 * r, vreinterpretq_u8_f32(out[i]));
        }
    }
}

// dot[v][t] += rows 4 v to 4 v + 3 against four k of x[t], quarter `lane` of a vector, which must be a
// constant of the source.
#define ADD(lane)                                                                                            \
    do {                                                                                                     \
        int8x16_t a_ = as_signed(load_u8(q + (lane)*4 * ARM_TILE_ROWS));                                     \
        int8x16_t b_ = as_signed(load_u8(q + (lane)*4 * ARM_TILE_ROWS + 16));                                \
        TN_UNROLL                                                                                            \
        for (int t = 0; t < n_x; t++) {                                                                      \
            dot[0][t] = vdotq_laneq_s32(dot[0][t], a_, x[t], lane);                                          \
            dot[1][t] = vdotq_laneq_s32(dot[1][t], b_, x[t], lane);                                          \
        }                                                                                                    \
    } while (0)

// 16 k
TN_INLINE void dots_16(const uint8_t *q, const int8x16_t *x, int n_x, int32x4_t (*dot)[ARM_PASS_X])
{
    ADD(0);
    ADD(1);
    ADD(2);
    ADD(3);
}

TN_INLINE void tile_pass(const arm_pass *p, int n_x, int sub, bool has_min)
{
    float32x4_t acc[2][ARM_PASS_X];
    load_acc(p, n_x, acc);
    for (int64_t s = 0; s < p->n_sub; s++) {
        int32x4_t dot[2][ARM_PASS_X];
        TN_UNROLL
        for (int t = 0; t < n_x; t++) dot[0][t] = dot[1][t] = vdupq_n_s32(0);
        TN_UNROLL
        for (int c = 0; c < sub; c += 16) {
            int8x16_t x[ARM_PASS_X];
            TN_UNROLL
            for (int t = 0; t < n_x; t++) x[t] = vld1q_s8(p->x[t].q + s * sub + c);
            dots_16(p->q + (s * sub + c) * ARM_TILE_ROWS, x, n_x, dot);
        }
        scale_sums(p, s, n_x, has_min, dot, acc);
    }
    store_acc(p, n_x, acc);
}

TN_INLINE void tile_passes(const tn_matmul_tile_args *a, int sub, bool has_min)
{
    for (int half = 0; half < 2; half++) {
        int64_t n = 0;
        for (int64_t i = 0; i < a->n_x; i += n) {
            int64_t left = a->n_x - i;
            n = left >= ARM_PASS_X ? ARM_PASS_X : left >= 2 ? 2 : 1;
            arm_pass p = arm_pass_get(a, half, i, n, sub);
            p.q = a->tile->q + half * 4 * ARM_HALF;
            if (n == ARM_PASS_X)
                tile_pass(&p, ARM_PASS_X, sub, has_min);
            else if (n == 2)
                tile_pass(&p, 2, sub, has_min);
            else
                tile_pass(&p, 1, sub, has_min);
        }
    }
}

ARM_TILE_FUNCTIONS

#include "backends/cpu/arm/product/types.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &name##_kernel,
#include "backends/cpu/quant_types.def"
};
const tn_matmul_isa tn_matmul_isa_dotprod = {.below = &tn_matmul_isa_neon, .kernels = kernels};

void tn_matmul_dotprod(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_dotprod);
}
