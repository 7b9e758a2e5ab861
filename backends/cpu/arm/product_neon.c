// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// NEON: matrix products in f32 for weights F32, F16, BF16, and tiles of every type without kernels of its
// own. y[t, r] = sum over k of w[r, k] * x[t, k], all products exact FMA. Quantised weights: product/.
//
// rows: 4 accumulators of 4 along k per row of w and row of x. Bytes moved: w once; bound by memory.
// tile: f32 [2 halves][n_k][8 rows]; a pass multiplies 8 rows with 8 rows of x: 16 accumulators; four k of x
//       in a vector each, whose elements the multiply-adds take. Numbers: README.md.
#include "backends/cpu/arm/product/product_arm.h"
#include "backends/cpu/arm/vec_neon.h"
#include "ops/quant.h"
// after the vectors
#include "backends/cpu/product_tmpl.h"

enum {
    FLOAT_X = 8,             // rows of x per pass
    TILE_K = 256,            // 16 KiB of a tile, of an L1 of 32 KiB or more
    ANY_K = TN_MATMUL_GROUP, // multiple of every block
};

TN_INLINE float32x4_t load_f32(const uint8_t *w, int64_t k)
{
    return vld1q_f32((const float *)(const void *)w + k);
}

TN_INLINE float32x4_t load_f16(const uint8_t *w, int64_t k)
{
    return vf_load_f16(w + 2 * k);
}

TN_INLINE float32x4_t load_bf16(const uint8_t *w, int64_t k)
{
    return vf_load_bf16(w + 2 * k);
}

// Rows r to r + 3 at in -> four columns of the tile from q on.
TN_INLINE void store_columns(const float32x4_t *in, float *q)
{
    float32x4_t out[4];
    transpose_4(in, out);
    TN_UNROLL
    for (int i = 0; i < 4; i++) vst1q_f32(q + i * ARM_HALF, out[i]);
}

// Where elements k of rows r to r + 3 lie in a tile.
TN_INLINE float *column_at(const tn_matmul_tile *t, int64_t k, int r)
{
    return (float *)(void *)t->q + (r / ARM_HALF * t->n_k + k) * ARM_HALF + r % ARM_HALF;
}

#define TYPE f32
#define SIZE 4
#include "backends/cpu/arm/product/product_neon_float_tmpl.h"
#define TYPE f16
#define SIZE 2
#include "backends/cpu/arm/product/product_neon_float_tmpl.h"
#define TYPE bf16
#define SIZE 2
#include "backends/cpu/arm/product/product_neon_float_tmpl.h"

// Through tn_quant_info, 4 rows and 256 elements at a time.
static void any_pack(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    tn_dequant_fn to_f32 = tn_quant_info_get(t->type)->to_f32;
    for (int r = 0; r < ARM_TILE_ROWS; r += 4) {
        for (int64_t k0 = 0; k0 < t->n_k; k0 += ANY_K) {
            float rows[4][ANY_K] TN_ALIGNED(16);
            int64_t n = TN_MIN(l->k - t->k0 - k0, ANY_K), n_pad = TN_MIN(t->n_k - k0, ANY_K);
            for (int64_t i = 0; i < 4; i++) { // rows past the end repeat the last one
                const uint8_t *w = t->w + TN_MIN(r + i, t->n_rows - 1) * t->w_stride;
                to_f32(w + tn_dtype_row_size(t->type, t->k0 + k0), rows[i], n);
                for (int64_t z = n; z < n_pad; z++) rows[i][z] = 0.0f;
            }
            for (int64_t k = 0; k < n_pad; k += 4) {
                float32x4_t in[4];
                TN_UNROLL
                for (int i = 0; i < 4; i++) in[i] = vld1q_f32(rows[i] + k);
                store_columns(in, column_at(t, k0 + k, r));
            }
        }
    }
}

// 8 rows against one k of x[t], element `lane` of a vector, which must be a constant of the source.
#define ADD(lane)                                                                                            \
    do {                                                                                                     \
        float32x4_t a_ = vld1q_f32(w + (lane)*ARM_HALF), b_ = vld1q_f32(w + (lane)*ARM_HALF + 4);            \
        TN_UNROLL                                                                                            \
        for (int t = 0; t < n_x; t++) {                                                                      \
            sum[0][t] = vfmaq_laneq_f32(sum[0][t], a_, x[t], lane);                                          \
            sum[1][t] = vfmaq_laneq_f32(sum[1][t], b_, x[t], lane);                                          \
        }                                                                                                    \
    } while (0)

// Four k
TN_INLINE void add_4(const float *w, const float32x4_t *x, int n_x, float32x4_t (*sum)[FLOAT_X])
{
    ADD(0);
    ADD(1);
    ADD(2);
    ADD(3);
}

TN_INLINE void tile_pass(const float *w, int64_t n_k, const float *const *x, float *acc, bool first, int n_x)
{
    float32x4_t sum[2][FLOAT_X];
    TN_UNROLL
    for (int t = 0; t < n_x; t++) {
        sum[0][t] = first ? vdupq_n_f32(0.0f) : vld1q_f32(acc + t * ARM_TILE_ROWS);
        sum[1][t] = first ? vdupq_n_f32(0.0f) : vld1q_f32(acc + t * ARM_TILE_ROWS + 4);
    }
    for (int64_t k = 0; k < n_k; k += 4) {
        float32x4_t v[FLOAT_X];
        TN_UNROLL
        for (int t = 0; t < n_x; t++) v[t] = vld1q_f32(x[t] + k);
        add_4(w + k * ARM_HALF, v, n_x, sum);
    }
    TN_UNROLL
    for (int t = 0; t < n_x; t++) {
        vst1q_f32(acc + t * ARM_TILE_ROWS, sum[0][t]);
        vst1q_f32(acc + t * ARM_TILE_ROWS + 4, sum[1][t]);
    }
}

static void tile(const tn_matmul_tile_args *a)
{
    const tn_matmul_tile *t = a->tile;
    for (int half = 0; half < 2; half++) {
        const float *q = (const float *)(const void *)t->q + half * t->n_k * ARM_HALF;
        int64_t n = 0;
        for (int64_t i = 0; i < a->n_x; i += n) {
            const float *x[FLOAT_X];
            int64_t left = a->n_x - i;
            n = left >= FLOAT_X ? FLOAT_X : left >= 2 ? 2 : 1;
            for (int64_t j = 0; j < n; j++) x[j] = (const float *)(const void *)a->x[i + j] + t->k0;
            float *acc = a->acc + i * ARM_TILE_ROWS + half * ARM_HALF;
            if (n == FLOAT_X)
                tile_pass(q, t->n_k, x, acc, a->first, FLOAT_X);
            else if (n == 2)
                tile_pass(q, t->n_k, x, acc, a->first, 2);
            else
                tile_pass(q, t->n_k, x, acc, a->first, 1);
        }
    }
}

#define KERNEL(rows_fn, pack_fn)                                                                             \
    {                                                                                                        \
        .rows = rows_fn, .pack = pack_fn, .tile = tile, .tile_rows = ARM_TILE_ROWS, .tile_k = TILE_K,        \
        .rows_x = ARM_PASS_X, .rows_x_max = TN_MATMUL_ROWS_ALIKE                                             \
    }
static const tn_matmul_kernel f32 = KERNEL(f32_rows, f32_pack);
static const tn_matmul_kernel f16 = KERNEL(f16_rows, f16_pack);
static const tn_matmul_kernel bf16 = KERNEL(bf16_rows, bf16_pack);
static const tn_matmul_kernel any = KERNEL(NULL, any_pack);

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_F32] = &f32, [TN_TYPE_F16] = &f16, [TN_TYPE_BF16] = &bf16};

const tn_matmul_isa tn_matmul_isa_neon_float = {.below = &tn_matmul_isa_generic,
                                                .kernels = kernels,
                                                .any = &any,
                                                .quantise = quantise_record,
                                                .act = act_values,
                                                .glu = glu_values};
