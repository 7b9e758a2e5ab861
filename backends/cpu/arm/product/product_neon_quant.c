// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// NEON: kernels of quantised weights for processors without SDOT. Numbers: ../README.md.
//
// rows: SMULL and SMLAL, eight products each, summed in 16 bits as long as these cannot overflow.
// Tile: int16 [2 halves][n_k][8 rows], scale and min [n_k / sub][16]. A pass multiplies 8 rows with 4 rows of
// x: one load of w feeds 4 MLA with an element of x each, again in 16 bits as long as they last. Weights of 8
// bits go into 32 bits at once (SMLAL), twice as many instructions.
#include "backends/cpu/arm/product/unpack_low_bits.h"

enum {
    ROWS_X = 2,
    QUANT_K = 512,
    MOST_X = 127,
    MOST_SUM = 32767
}; // 16 KiB of a tile, of an L1 of 32 KiB or more

// Whether sums of n products fit 16 bits.
TN_INLINE bool fits(int n, int most)
{
    return n * most * MOST_X <= MOST_SUM;
}

TN_INLINE int16x8_t products_16(int8x16_t w, const int8_t *x)
{
    int8x16_t v = vld1q_s8(x);
    return vmlal_high_s8(vmull_s8(vget_low_s8(w), vget_low_s8(v)), w, v);
}

// Products of sub-block i in 16 bits, sub / 8 per lane.
TN_INLINE int16x8_t products_sub(const int8x16_t *u, const int8_t *x, int i, int sub)
{
    int at = i * sub / 16;
    int16x8_t p = products_16(u[at], x + 16 * at);
    if (sub == 16) return p;
    int8x16_t v = vld1q_s8(x + 16 * at + 16);
    p = vmlal_s8(p, vget_low_s8(u[at + 1]), vget_low_s8(v));
    return vmlal_high_s8(p, u[at + 1], v);
}

TN_INLINE int32x4_t sums_4(const int8x16_t *u, const int8_t *x, int sub, int most)
{
    int32x4_t s[4];
    if (fits(sub / 4, most)) { // after one pairwise addition
        int16x8_t a = vpaddq_s16(products_sub(u, x, 0, sub), products_sub(u, x, 1, sub));
        int16x8_t b = vpaddq_s16(products_sub(u, x, 2, sub), products_sub(u, x, 3, sub));
        if (fits(sub / 2, most)) return vpaddlq_s16(vpaddq_s16(a, b)); // and after two
        return vpaddq_s32(vpaddlq_s16(a), vpaddlq_s16(b));
    }
    TN_UNROLL
    for (int i = 0; i < 4; i++) {
        int at = i * sub / 16;
        s[i] = vpaddlq_s16(products_16(u[at], x + 16 * at));
        if (sub == 32) s[i] = vpadalq_s16(s[i], products_16(u[at + 1], x + 16 * at + 16));
    }
    return vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3]));
}

// v[i] = column i of 8 rows of 8 bytes.
TN_INLINE void transpose_8(const int8x8_t *r, int8x8_t *v)
{
    int16x4_t a[8];
    int32x2_t b[8];
    TN_UNROLL
    for (int i = 0; i < 4; i++) {
        a[2 * i] = vreinterpret_s16_s8(vtrn1_s8(r[2 * i], r[2 * i + 1]));
        a[2 * i + 1] = vreinterpret_s16_s8(vtrn2_s8(r[2 * i], r[2 * i + 1]));
    }
    TN_UNROLL
    for (int i = 0; i < 2; i++) { // b[4i + c]: columns c and c + 4 of rows 4i to 4i + 3
        b[4 * i] = vreinterpret_s32_s16(vtrn1_s16(a[4 * i], a[4 * i + 2]));
        b[4 * i + 1] = vreinterpret_s32_s16(vtrn1_s16(a[4 * i + 1], a[4 * i + 3]));
        b[4 * i + 2] = vreinterpret_s32_s16(vtrn2_s16(a[4 * i], a[4 * i + 2]));
        b[4 * i + 3] = vreinterpret_s32_s16(vtrn2_s16(a[4 * i + 1], a[4 * i + 3]));
    }
    TN_UNROLL
    for (int c = 0; c < 4; c++) {
        v[c] = vreinterpret_s8_s32(vtrn1_s32(b[c], b[4 + c]));
        v[4 + c] = vreinterpret_s8_s32(vtrn2_s32(b[c], b[4 + c]));
    }
}

TN_INLINE void place_group(int8_t (*rows)[TN_MATMUL_GROUP], uint8_t *q, int64_t k, int64_t n_k)
{
    for (int64_t half = 0; half < 2; half++) {
        int16_t *to = (int16_t *)(void *)q + (half * n_k + k) * ARM_HALF;
        for (int64_t c = 0; c < TN_MATMUL_GROUP; c += 8) {
            int8x8_t in[8], out[8];
            TN_UNROLL
            for (int r = 0; r < 8; r++) in[r] = vld1_s8(rows[half * ARM_HALF + r] + c);
            transpose_8(in, out);
            TN_UNROLL
            for (int i = 0; i < 8; i++) vst1q_s16(to + (c + i) * ARM_HALF, vmovl_s8(out[i]));
        }
    }
}

// 8 rows against k of x[t], element `lane` of a vector, which must be a constant of the source: in 16 bits
// and in 32 bits.
#define ADD_SHORT(lane)                                                                                      \
    do {                                                                                                     \
        int16x8_t v_ = vld1q_s16(w + (k + (lane)) * ARM_HALF);                                               \
        TN_UNROLL                                                                                            \
        for (int t = 0; t < n_x; t++) part[t] = vmlaq_laneq_s16(part[t], v_, x[t], lane);                    \
    } while (0)
#define ADD_LONG(lane)                                                                                       \
    do {                                                                                                     \
        int16x8_t v_ = vld1q_s16(w + (k + (lane)) * ARM_HALF);                                               \
        TN_UNROLL                                                                                            \
        for (int t = 0; t < n_x; t++) {                                                                      \
            dot[0][t] = vmlal_laneq_s16(dot[0][t], vget_low_s16(v_), x[t], lane);                            \
            dot[1][t] = vmlal_high_laneq_s16(dot[1][t], v_, x[t], lane);                                     \
        }                                                                                                    \
    } while (0)

TN_INLINE void add_short(const int16_t *w, int k, int n_x, const int16x8_t *x, int16x8_t *part)
{
    ADD_SHORT(0);
    ADD_SHORT(1);
    ADD_SHORT(2);
    ADD_SHORT(3);
    ADD_SHORT(4);
    ADD_SHORT(5);
    ADD_SHORT(6);
    ADD_SHORT(7);
}

TN_INLINE void add_long(const int16_t *w, int k, int n_x, const int16x8_t *x, int32x4_t (*dot)[ARM_PASS_X])
{
    ADD_LONG(0);
    ADD_LONG(1);
    ADD_LONG(2);
    ADD_LONG(3);
    ADD_LONG(4);
    ADD_LONG(5);
    ADD_LONG(6);
    ADD_LONG(7);
}

// Sub-block s; chain: how many products 16 bits sum up, 0 for less than 8.
TN_INLINE void dots_sub(const arm_pass *p, int64_t s, int n_x, int sub, int chain,
                        int32x4_t (*dot)[ARM_PASS_X])
{
    const int16_t *w = (const int16_t *)(const void *)p->q + s * sub * ARM_HALF;
    const int run = chain ? chain : 8;
    TN_UNROLL
    for (int t = 0; t < n_x; t++) dot[0][t] = dot[1][t] = vdupq_n_s32(0);
    for (int k0 = 0; k0 < sub; k0 += run) { // not unrolled: the compiler would run out of registers
        int16x8_t part[ARM_PASS_X];
        TN_UNROLL
        for (int t = 0; t < n_x; t++) part[t] = vdupq_n_s16(0);
        TN_UNROLL
        for (int k = k0; k < k0 + run; k += 8) {
            int16x8_t x[ARM_PASS_X];
            TN_UNROLL
            for (int t = 0; t < n_x; t++) x[t] = vmovl_s8(vld1_s8(p->x[t].q + s * sub + k));
            if (chain)
                add_short(w, k, n_x, x, part);
            else
                add_long(w, k, n_x, x, dot);
        }
        TN_UNROLL
        for (int t = 0; t < n_x; t++) {
            if (!chain) continue;
            dot[0][t] = vaddw_s16(dot[0][t], vget_low_s16(part[t]));
            dot[1][t] = vaddw_high_s16(dot[1][t], part[t]);
        }
    }
}

TN_INLINE void tile_pass(const arm_pass *p, int n_x, int sub, int chain, bool has_min)
{
    float32x4_t acc[2][ARM_PASS_X];
    load_acc(p, n_x, acc);
    for (int64_t s = 0; s < p->n_sub; s++) {
        int32x4_t dot[2][ARM_PASS_X];
        dots_sub(p, s, n_x, sub, chain, dot);
        scale_sums(p, s, n_x, has_min, dot, acc);
    }
    store_acc(p, n_x, acc);
}

TN_INLINE void tile_passes(const tn_matmul_tile_args *a, int sub, int chain, bool has_min)
{
    for (int half = 0; half < 2; half++) {
        int64_t n = 0;
        for (int64_t i = 0; i < a->n_x; i += n) {
            int64_t left = a->n_x - i;
            n = left >= ARM_PASS_X ? ARM_PASS_X : left >= 2 ? 2 : 1;
            arm_pass p = arm_pass_get(a, half, i, n, sub);
            p.q = a->tile->q + half * a->tile->n_k * ARM_HALF * (int64_t)sizeof(int16_t);
            if (n == ARM_PASS_X)
                tile_pass(&p, ARM_PASS_X, sub, chain, has_min);
            else if (n == 2)
                tile_pass(&p, 2, sub, chain, has_min);
            else
                tile_pass(&p, 1, sub, chain, has_min);
        }
    }
}

#define TILE(name, sub, chain, has_min)                                                                      \
    static void name(const tn_matmul_tile_args *a)                                                           \
    {                                                                                                        \
        tile_passes(a, sub, chain, has_min);                                                                 \
    }
TILE(tile_16_by_16, 16, 16, false)
TILE(tile_16_by_16_min, 16, 16, true)
TILE(tile_16_by_8, 16, 8, false)
TILE(tile_32_by_32, 32, 32, false)
TILE(tile_32_by_16, 32, 16, false)
TILE(tile_32_by_16_min, 32, 16, true)
TILE(tile_32_by_8_min, 32, 8, true)
TILE(tile_32_long, 32, 0, false)
// By how many products of `most` with x fit 16 bits: 32 of 8, 16 of 16, 8 of 32.
#define TILE_FN(sub, most, has_min)                                                                          \
    ((sub) == 16 ? ((most) > 16 ? tile_16_by_8                                                               \
                    : (has_min) ? tile_16_by_16_min                                                          \
                                : tile_16_by_16)                                                             \
                 : ((has_min)     ? ((most) > 16 ? tile_32_by_8_min : tile_32_by_16_min)                     \
                    : (most) > 16 ? tile_32_long                                                             \
                    : (most) > 8  ? tile_32_by_16                                                            \
                                  : tile_32_by_32))

#include "backends/cpu/arm/product/types.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &name##_kernel,
#include "backends/cpu/quant_types.def"
};
const tn_matmul_isa tn_matmul_isa_neon = {.below = &tn_matmul_isa_neon_float, .kernels = kernels};

void tn_matmul_neon(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_neon);
}
