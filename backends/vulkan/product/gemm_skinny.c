// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM of up to 64 rows with cooperative matrices (gemm_skinny.comp). convert_16bit.comp writes x to scratch
// first, a norm included. Operands are bf16 if all weights are BF16, and f16 otherwise, as in gemm_coopmat.c.
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

enum {
    MAX_ROWS = 64,   // gemm_coopmat.c runs what has more
    SIZE = 16,       // rows and columns of a matrix
    DEPTH = 128,     // of a slice of the common dimension
    VECTOR = 16,     // bytes
    ALIGNMENT = 256, // of sums in scratch, bytes
    TOP = 14         // the largest exponent of f16 is 15: rows are scaled to one below it
};
// GEMV runs what has fewer rows. Tokens/s of an 8B model on an H200 with 2, 3, 4, 6, 8 rows: Q4_K_M by GEMV
// with int8 activations 453, 486, 639, 607, 791, by this 243, 366, 486, 720, 954; BF16 with 4, 8 rows by GEMV
// 301, 317, by this 572, 1121.
enum { MIN_ROWS_QUANTISED = 5, MIN_ROWS_PLAIN = 3 };
enum { MIN_SLICES = 2 }; // of a part
// Constants of the shader.
enum { C_TILE = 2, C_THREADS = 4, C_GATED };

// Blocks of 16 rows, matrices of 16 columns of a subgroup, subgroups, slices of x in shared memory, and
// workgroups that a product is divided into if its common dimension is long enough: enough for the 132
// multiprocessors of the largest devices of 2025. Measured on an H200 with eight layers of an 8B model in
// Q4_K_M: other tiles were 1 to 40 % slower, and twice as many workgroups 0 to 7 %.
typedef struct tile {
    int32_t m, n, teams, slices, groups;
} tile;
static const tile tiles[] = {
    {1, 1, 8, 1, 264},  // 16 x 128
    {2, 1, 16, 1, 132}, // 32 x 256
    {2, 1, 8, 1, 132},  // 32 x 128, where workgroups are smaller
    {4, 1, 8, 1, 132},  // 64 x 128
};

static bool accepts(const tn_step *step, tn_dtype element)
{
    tn_product p = tn_product_get(step);
    int64_t rows = tn_view_n_rows(&step->dst[0]);
    bool quantised = p.n_weights > 0 && tn_dtype_block_elems(p.w[0]->dtype) > 1;
    return p.n_weights > 0 && !p.ids && rows >= (quantised ? MIN_ROWS_QUANTISED : MIN_ROWS_PLAIN) &&
           rows <= MAX_ROWS && tn_vk_fits_coopmat(step, &p, element);
}

bool tn_vk_accepts_gemm_skinny_bf16(const tn_step *step)
{
    return accepts(step, TN_TYPE_BF16);
}

bool tn_vk_accepts_gemm_skinny_f16(const tn_step *step)
{
    return accepts(step, TN_TYPE_F16);
}

static int32_t tile_threads(const tn_vk *v, const tile *t)
{
    return v->coopmat.subgroup * t->teams;
}

// Shared memory as the shader has it: half a slice of weights of each subgroup, and slices of x.
static bool fits(const tn_vk *v, const tile *t)
{
    int64_t weights = (int64_t)t->teams * SIZE * t->n * (DEPTH / 16 + 1),
            x = (int64_t)SIZE * t->m * (t->slices * DEPTH / 8 + 1);
    return (weights + x + 1) * VECTOR <= v->max_shared && tile_threads(v, t) <= (int32_t)v->max_threads;
}

// The first tile that has all rows.
static const tile *select_tile(const tn_vk *v, const tn_product *p)
{
    int64_t rows = tn_view_n_rows(p->y[0]);
    size_t i = 0;
    if (v->tile > 0 && v->tile <= (int32_t)TN_COUNT(tiles) && fits(v, &tiles[v->tile - 1]))
        return &tiles[v->tile - 1];
    while (i + 1 < TN_COUNT(tiles) && (SIZE * tiles[i].m < rows || !fits(v, &tiles[i]))) i++;
    return &tiles[i];
}

static int64_t tiles_of(const tn_product *p, int32_t i, const tile *t)
{
    int64_t columns = p->w[i]->ne[2] * (p->glu ? 2 : 1);
    return tn_vk_div_up(tn_view_n_rows(p->y[i]), SIZE * t->m) * tn_vk_div_up(columns, SIZE * t->n * t->teams);
}

// Into how many parts the common dimension is divided: all results of the step run side by side.
static int64_t parts_of(const tn_product *p, const tile *t)
{
    int64_t groups = 0;
    for (int32_t i = 0; i < p->n_results; i++) groups += tiles_of(p, i, t);
    int64_t most = tn_vk_div_up(p->k, DEPTH) / MIN_SLICES, wanted = t->groups / TN_MAX(groups, 1);
    return TN_MAX(1, TN_MIN(most, wanted));
}

// Bytes of the sums of result i.
static int64_t sums_of(const tn_product *p, int32_t i, const tile *t, int64_t parts)
{
    int64_t size = (int64_t)SIZE * SIZE * t->m * t->n * t->teams * (int64_t)sizeof(float);
    return tn_vk_div_up(tiles_of(p, i, t) * parts * size, ALIGNMENT) * ALIGNMENT;
}

static void launch_result(const tn_step *step, const tn_product *p, int32_t i, const tile *t, int64_t parts,
                          tn_vk_dispatch *d)
{
    int32_t *c = d->constants, *n = d->args.n;
    int64_t at = tn_vk_div_up(tn_vk_convert_16bit_size(step), ALIGNMENT) * ALIGNMENT, counter = 0;
    for (int32_t r = 0; r < i; r++) {
        at += sums_of(p, r, t, parts);
        counter += tiles_of(p, r, t);
    }
    tn_vk_product_bind(step, p, i, d);
    bool gated = p->glu != NULL;
    c[C_TILE] = t->m | t->n << 4 | t->teams << 8 | t->slices << 16;
    c[C_THREADS] = tile_threads(d->v, t);
    c[C_GATED] = gated;
    c[TN_VK_LAYOUT] = tn_vk_aligned_elems(p->w[i], 8) && (!gated || tn_vk_aligned_elems(p->w[1], 8));
    n[TN_VK_N_PRODUCT_SPLITS] = (int32_t)parts;
    n[TN_VK_N_PRODUCT_SUMS] = (int32_t)(at / ALIGNMENT);
    n[TN_VK_N_PRODUCT_COUNTERS] = (int32_t)counter;
    d->groups = tiles_of(p, i, t) * parts;
    d->waits = i == 0;
}

static int32_t launch(const tn_step *step, int32_t i, tn_dtype element, int32_t shader, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step), like = tn_product_get(d->like);
    const tile *t = select_tile(d->v, &like);
    int64_t parts = parts_of(&like, t);
    d->scratch = tn_vk_div_up(tn_vk_convert_16bit_size(step), ALIGNMENT) * ALIGNMENT;
    for (int32_t r = 0; r < p.n_results; r++) {
        d->scratch += sums_of(&p, r, t, parts);
        d->counters += tiles_of(&p, r, t);
    }
    if (i == 0) {
        tn_vk_launch_convert_16bit(step, element, TOP, d);
    } else {
        launch_result(step, &p, i - 1, t, parts, d);
        d->shader = shader;
    }
    return 1 + p.n_results;
}

int32_t tn_vk_launch_gemm_skinny_f16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_F16, TN_VK_SHADER_gemm_skinny_f16, d);
}

int32_t tn_vk_launch_gemm_skinny_bf16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_BF16, TN_VK_SHADER_gemm_skinny_bf16, d);
}
