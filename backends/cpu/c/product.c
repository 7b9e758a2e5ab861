// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products in portable C: the kernels that every processor can run.
//
// Quantised types: a tile of 4 rows of w is unpacked to int8 [rows][k] with a scale and a minimum per 16
// elements, y += d_x * scale * (q_w . q_x) + min * d_x * sum(q_x); integer products of fixed length, which
// compilers turn into vector code. Other types: the tile becomes f32 [rows][k] through tn_quant_info and is
// multiplied in f32 with 16 partial sums. Bytes moved: w once, x once per 4 rows (it stays in cache);
// operations: 2 m n k. Bound by arithmetic.
#include "backends/cpu/c/vec_generic.h"
// after the vectors
#include "backends/cpu/product_tmpl.h"
#include "backends/cpu/c/convert_tmpl.h"
#include "backends/cpu/c/product/unpack.h"
#include "ops/quant.h"

enum {
    ROWS = 16,      // of a tile
    QUANT_K = 1024, // 16 sub-blocks of 16 in each group of 256: 4 groups fill the scales of a tile
    FLOAT_K = 512,  // ROWS * FLOAT_K floats fill a tile
};

// Tile: q int8 [ROWS][n_k], scale and min [ROWS][n_k / 16].
static void pack_quant(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    int64_t n_sub = t->n_k / 16, block = tn_dtype_block_elems(t->type);
    size_t group_size = tn_dtype_row_size(t->type, TN_MATMUL_GROUP);
    for (int64_t r = 0; r < t->n_rows; r++) {
        const uint8_t *w = t->w + r * t->w_stride + tn_dtype_row_size(t->type, t->k0);
        for (int64_t k = 0; k < t->n_k; k += TN_MATMUL_GROUP, w += group_size) {
            uint8_t tail[TN_MATMUL_GROUP * 2] = {0}; // a group that ends early goes through a padded copy
            int64_t left = l->k - t->k0 - k;
            if (left < TN_MATMUL_GROUP) memcpy(tail, w, tn_dtype_row_size(t->type, left / block * block));
            tn_cpu_unpacked u;
            tn_cpu_unpackers[t->type](left < TN_MATMUL_GROUP ? tail : w, &u);
            memcpy(t->q + r * t->n_k + k, u.q, sizeof u.q);
            memcpy(t->scale + r * n_sub + k / 16, u.scale, sizeof u.scale);
            memcpy(t->min + r * n_sub + k / 16, u.min, sizeof u.min);
        }
    }
}

static int32_t dot_16(const int8_t *a, const int8_t *b)
{
    int32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += a[i] * b[i];
    return sum;
}

static void tile_quant(const tn_matmul_tile_args *a)
{
    const tn_matmul_tile *t = a->tile;
    int64_t n_sub = t->n_k / 16, s0 = t->k0 / 16;
    for (int64_t i = 0; i < a->n_x; i++) {
        const uint8_t *rec = a->x[i];
        const int8_t *x = (const int8_t *)rec + t->k0;
        const float *d = (const float *)(const void *)(rec + a->layout->d_off) + s0;
        const float *sum = (const float *)(const void *)(rec + a->layout->sum_off) + s0;
        for (int64_t r = 0; r < t->n_rows; r++) {
            const int8_t *q = (const int8_t *)t->q + r * t->n_k;
            const float *scale = t->scale + r * n_sub, *min = t->min + r * n_sub;
            float y = a->first ? 0.0f : a->acc[i * ROWS + r];
            for (int64_t s = 0; s < n_sub; s++)
                y += scale[s] * (float)dot_16(q + 16 * s, x + 16 * s) * d[s] + min[s] * sum[s];
            a->acc[i * ROWS + r] = y;
        }
        for (int64_t r = t->n_rows; r < ROWS; r++) a->acc[i * ROWS + r] = 0.0f;
    }
}

// Tile: f32 [ROWS][n_k].
static void pack_float(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    tn_dequant_fn to_f32 = tn_quant_info_get(t->type)->to_f32;
    int64_t n = TN_MIN(l->k - t->k0, t->n_k);
    size_t off = tn_dtype_row_size(t->type, t->k0);
    for (int64_t r = 0; r < t->n_rows; r++) {
        float *q = (float *)(void *)t->q + r * t->n_k;
        to_f32(t->w + r * t->w_stride + off, q, n);
        for (int64_t i = n; i < t->n_k; i++) q[i] = 0.0f;
    }
}

static float dot_f32(const float *a, const float *b, int64_t n)
{
    float part[16] = {0}, sum = 0.0f;
    for (int64_t k = 0; k < n; k += 16)
        for (int i = 0; i < 16; i++) part[i] += a[k + i] * b[k + i];
    for (int i = 0; i < 16; i++) sum += part[i];
    return sum;
}

static void tile_float(const tn_matmul_tile_args *a)
{
    const tn_matmul_tile *t = a->tile;
    for (int64_t i = 0; i < a->n_x; i++) {
        const float *x = (const float *)(const void *)a->x[i] + t->k0;
        for (int64_t r = 0; r < ROWS; r++) {
            float y = a->first || r >= t->n_rows ? 0.0f : a->acc[i * ROWS + r];
            if (r < t->n_rows) y += dot_f32((const float *)(const void *)t->q + r * t->n_k, x, t->n_k);
            a->acc[i * ROWS + r] = y;
        }
    }
}

static const tn_matmul_format natural = {.order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = 16};
static const tn_matmul_kernel quant = {
    .tile_format = &natural, .pack = pack_quant, .tile = tile_quant, .tile_rows = ROWS, .tile_k = QUANT_K};
static const tn_matmul_kernel any = {
    .pack = pack_float, .tile = tile_float, .tile_rows = ROWS, .tile_k = FLOAT_K};

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &quant,
#include "backends/cpu/quant_types.def"
};

const tn_matmul_isa tn_matmul_isa_generic = {.kernels = kernels,
                                             .any = &any,
                                             .quantise = quantise_record,
                                             .act = act_values,
                                             .glu = glu_values,
                                             .decoder = to_f32_get};

void tn_matmul_quantise_row(const float *x, float *y, int64_t k)
{
    for (int64_t b = 0; b + BLOCK <= k; b += BLOCK) {
        int8_t q[BLOCK];
        int32_t sums[2];
        float d = round_block(x + b, q, sums);
        for (int i = 0; i < BLOCK; i++) y[b + i] = d * (float)q[i];
    }
}
