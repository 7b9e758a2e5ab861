// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// bf16: many rows of x with BF16 weights by BFMMLA, which multiplies 2 rows of w by 2 rows of x over 4 k,
// four times as many products as FMLA. x is the sum of two bf16, its first 8 significant bits and the next 8,
// so that it is off by 2^-16 at most; rows of w as at level neon. Numbers: ../README.md.
//
// Records: for each 8 k the high parts, then the low ones; 4 bytes an element, as f32.
// Tile: bf16 [n_k / 4][8 pairs of rows][2][4]. A pass multiplies all pairs with 2 pairs of rows of x, which
// it brings side by side itself: 16 sums of 2 x 2, and 8 k take 16 loads of w and 8 of x, 8 TRN and 64
// BFMMLA. The low part of an element keeps its sign, so that an infinite weight gives an infinite product
// unless the low part is 0: then it gives NaN.
#include "backends/cpu/arm/product/product_arm.h"

#include <math.h>

enum {
    BF16_K = 512,              // 16 KiB of a tile, of an L1 of 32 KiB or more
    STEP = 8,                  // elements of k
    PAIRS = ARM_TILE_ROWS / 2, // of rows of w
    PASS_PAIRS = ARM_PASS_X / 2,
};

// --- rows of x ---------------------------------------------------------------------------------------------

// High and low part of four elements, in the upper halves of the words
TN_INLINE uint32x4_t split_4(float32x4_t x, uint32x4_t *low)
{
    const float32x4_t infinity = vdupq_n_f32(INFINITY);
    uint32x4_t high = vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0xffff0000u));
    // A NaN of low bits only stays one.
    uint32x4_t nan = vmvnq_u32(vceqq_f32(x, x));
    high = vorrq_u32(high, vandq_u32(nan, vdupq_n_u32(0x400000)));
    uint32x4_t rest = vreinterpretq_u32_f32(vsubq_f32(x, vreinterpretq_f32_u32(high)));
    rest = vbicq_u32(rest, vceqq_f32(vabsq_f32(x), infinity));
    *low = vaddq_u32(rest, vaddq_u32(vdupq_n_u32(0x7fff), vandq_u32(vshrq_n_u32(rest, 16), vdupq_n_u32(1))));
    return high;
}

TN_INLINE uint16x8_t upper_halves(uint32x4_t a, uint32x4_t b)
{
    return vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
}

static void split_record(const tn_matmul_format *f, const tn_matmul_layout *l, const float *x, uint8_t *rec,
                         int64_t k0, int64_t k1)
{
    TN_UNUSED(f);
    uint16_t *to = (uint16_t *)(void *)rec + 2 * k0;
    for (int64_t k = k0; k < k1; k += STEP, to += 2 * STEP) {
        float row[STEP] = {0};
        int64_t n = TN_MAX(TN_MIN(l->k - k, STEP), 0);
        memcpy(row, x + (n > 0 ? k : 0), (size_t)n * sizeof(float));
        uint32x4_t low[2], high[2];
        for (int i = 0; i < 2; i++) high[i] = split_4(vld1q_f32(row + 4 * i), &low[i]);
        vst1q_u16(to, upper_halves(high[0], high[1]));
        vst1q_u16(to + STEP, upper_halves(low[0], low[1]));
    }
}

// --- weights -----------------------------------------------------------------------------------------------

static void rows(const tn_matmul_rows_args *a)
{
    tn_matmul_isa_neon_float.kernels[TN_TYPE_BF16]->rows(a);
}

// Elements k to k + 7 of a row, and zeros behind its end
TN_INLINE uint64x2_t load_row(const uint8_t *w, int64_t k, int64_t left)
{
    if (left >= STEP) return vreinterpretq_u64_u8(vld1q_u8(w + 2 * k));
    uint8_t padded[2 * STEP] = {0};
    if (left > 0) memcpy(padded, w + 2 * k, (size_t)left * 2);
    return vreinterpretq_u64_u8(vld1q_u8(padded));
}

static void pack(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    for (int64_t pair = 0; pair < PAIRS; pair++) { // rows past the end repeat the last one
        const uint8_t *a = t->w + TN_MIN(2 * pair, t->n_rows - 1) * t->w_stride + 2 * t->k0;
        const uint8_t *b = t->w + TN_MIN(2 * pair + 1, t->n_rows - 1) * t->w_stride + 2 * t->k0;
        uint64_t *q = (uint64_t *)(void *)t->q + pair * 2;
        for (int64_t k = 0; k < t->n_k; k += STEP, q += 4 * PAIRS) {
            int64_t left = l->k - t->k0 - k;
            uint64x2_t v = load_row(a, k, left), u = load_row(b, k, left);
            vst1q_u64(q, vtrn1q_u64(v, u));
            vst1q_u64(q + 2 * PAIRS, vtrn2q_u64(v, u));
        }
    }
}

// --- products ----------------------------------------------------------------------------------------------

TN_INLINE bfloat16x8_t as_bf16(uint64x2_t v)
{
    return vreinterpretq_bf16_u64(v);
}

TN_INLINE uint64x2_t load_x(const uint16_t *p)
{
    return vreinterpretq_u64_u16(vld1q_u16(p));
}

// Sums by pairs: lanes are (row 0, x 0), (row 0, x 1), (row 1, x 0), (row 1, x 1).
typedef float32x4_t pair_sums[PAIRS][PASS_PAIRS];

TN_INLINE void load_pairs(const float *acc, int n, bool first, pair_sums sum)
{
    TN_UNROLL
    for (int r = 0; r < PAIRS; r += 2) {
        TN_UNROLL
        for (int t = 0; t < n; t++) {
            const float *y = acc + 2 * t * ARM_TILE_ROWS + 2 * r;
            float32x4_t a = first ? vdupq_n_f32(0.0f) : vld1q_f32(y);
            float32x4_t b = first ? vdupq_n_f32(0.0f) : vld1q_f32(y + ARM_TILE_ROWS);
            sum[r][t] = vzip1q_f32(a, b);
            sum[r + 1][t] = vzip2q_f32(a, b);
        }
    }
}

TN_INLINE void store_pairs(float *acc, int n, pair_sums sum)
{
    TN_UNROLL
    for (int r = 0; r < PAIRS; r += 2) {
        TN_UNROLL
        for (int t = 0; t < n; t++) {
            float *y = acc + 2 * t * ARM_TILE_ROWS + 2 * r;
            vst1q_f32(y, vuzp1q_f32(sum[r][t], sum[r + 1][t]));
            vst1q_f32(y + ARM_TILE_ROWS, vuzp2q_f32(sum[r][t], sum[r + 1][t]));
        }
    }
}

// n pairs of rows of x, records from the first element of the tile on
TN_INLINE void tile_pass(const tn_matmul_tile *tile, const uint16_t *const *x, int n, float *acc, bool first)
{
    const uint64_t *q = (const uint64_t *)(const void *)tile->q;
    pair_sums sum;
    load_pairs(acc, n, first, sum);
    for (int64_t k = 0; k < tile->n_k; k += STEP) {
        uint64x2_t operand[2][2][PASS_PAIRS]; // [four k][high, low][pair]
        TN_UNROLL
        for (int i = 0; i < 2 * n; i++) {
            int t = i / 2, part = i % 2;
            uint64x2_t a = load_x(x[2 * t] + 2 * k + part * STEP);
            uint64x2_t b = load_x(x[2 * t + 1] + 2 * k + part * STEP);
            operand[0][part][t] = vtrn1q_u64(a, b);
            operand[1][part][t] = vtrn2q_u64(a, b);
        }
        TN_UNROLL
        for (int i = 0; i < 2 * PAIRS; i++, q += 2) {
            int r = i % PAIRS;
            bfloat16x8_t w = as_bf16(vld1q_u64(q));
            TN_UNROLL
            for (int t = 0; t < n; t++) {
                sum[r][t] = vbfmmlaq_f32(sum[r][t], w, as_bf16(operand[i / PAIRS][0][t]));
                sum[r][t] = vbfmmlaq_f32(sum[r][t], w, as_bf16(operand[i / PAIRS][1][t]));
            }
        }
    }
    store_pairs(acc, n, sum);
}

// A last row of x without another one is multiplied twice; the second result goes to a place of its own.
static void last_row(const tn_matmul_tile *tile, const uint16_t *x, float *acc, bool first)
{
    float two[2 * ARM_TILE_ROWS] = {0};
    if (!first) memcpy(two, acc, ARM_TILE_ROWS * sizeof(float));
    tile_pass(tile, (const uint16_t *[]){x, x}, 1, two, first);
    memcpy(acc, two, ARM_TILE_ROWS * sizeof(float));
}

static void tile(const tn_matmul_tile_args *a)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->n_x; i += n) {
        const uint16_t *x[ARM_PASS_X];
        float *acc = a->acc + i * ARM_TILE_ROWS;
        int64_t left = a->n_x - i;
        n = left >= ARM_PASS_X ? ARM_PASS_X : left >= 2 ? 2 : 1;
        for (int64_t j = 0; j < n; j++) x[j] = (const uint16_t *)(const void *)a->x[i + j] + 2 * a->tile->k0;
        if (n == ARM_PASS_X)
            tile_pass(a->tile, x, 2, acc, a->first);
        else if (n == 2)
            tile_pass(a->tile, x, 1, acc, a->first);
        else
            last_row(a->tile, x[0], acc, a->first);
    }
}

// --- table -------------------------------------------------------------------------------------------------

static const tn_matmul_format split = {.is_split = true};
static const tn_matmul_kernel bf16 = {.tile_format = &split,
                                      .rows = rows,
                                      .pack = pack,
                                      .tile = tile,
                                      .tile_rows = ARM_TILE_ROWS,
                                      .tile_k = BF16_K,
                                      .rows_x = ARM_PASS_X,
                                      .rows_x_max = TN_MATMUL_ROWS_ALIKE};
static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {[TN_TYPE_BF16] = &bf16};
static const tn_matmul_isa isa = {
    .below = &tn_matmul_isa_neon_float, .kernels = kernels, .quantise = split_record};

void tn_matmul_bf16(const tn_cpu_task *task)
{
    tn_matmul_run(task, &isa);
}
