// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM with sums in registers (gemm_tile.comp), for devices without cooperative matrices: in f32, and in f16.
#include "backends/vulkan/product/product.h"
#include "core/device.h"

// Elements of the common dimension that are fetched together; of a vector; vectors of columns of an
// invocation.
enum { RUN = 16, VECTOR = 4, COLUMN_VECTORS = 2 };
// Rows of x in f16 are scaled below 2^(TOP + 1) and weights below 1, so that 16 products and their sum stay
// in the range of f16.
enum { TOP = 10 };
// Constants of the shader, and bits of C_FORM.
enum { C_TILE = 2, C_THREADS = 4, C_FORM };
enum { FORM_GATED = 1, FORM_ACTIVATED = 2 };
// Workgroups that a product is divided into if it is large enough: fewer than a large device has
// multiprocessors, as larger tiles were faster there even so.
enum { WANTED_GROUPS = 32 };

// Invocations along the columns and rows of a tile, vectors of rows of each invocation, runs in the slice of
// the common dimension that is in shared memory at once, elements of it that are multiplied without a loop.
typedef struct tile {
    int32_t across, down, m, runs, steps;
} tile;
static const tile tiles[] = {
    {16, 16, 2, 2, 8}, // 128 columns x 128 rows
    {16, 8, 2, 2, 8},  // 128 x 64
    {8, 8, 2, 2, 8},   // 64 x 64
    {8, 8, 1, 2, 8},   // 64 x 32
    {8, 8, 1, 1, 4},   // 64 x 32, slices of 16
};
// The shape chooses among the first four, larger ones first: they load less for the same work. A GLU was
// slower with the two largest. The last one is for software drivers: more sums or longer code take twice as
// long to compile there, and are not faster.
enum { N_CHOSEN = 4, SOFTWARE = 4, FIRST_GATED = 2 };

bool tn_vk_accepts_gemm_tile(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return p.n_weights > 0 && !p.norm && !p.ids && tn_vk_accepts_indexable(step);
}

static int32_t tile_columns(const tile *t)
{
    return VECTOR * COLUMN_VECTORS * t->across;
}

static int32_t tile_rows(const tile *t)
{
    return VECTOR * t->m * t->down;
}

// Shared memory as the shader has it. The small tiles fit every device.
static bool fits(const tn_vk *v, const tile *t)
{
    int64_t elems = (int64_t)RUN * t->runs * (tile_rows(t) + tile_columns(t));
    return elems * (int64_t)sizeof(float) <= v->max_shared && t->across * t->down <= (int32_t)v->max_threads;
}

static int64_t groups_of(const tile *t, int64_t rows, int64_t columns)
{
    return tn_vk_div_up(rows, tile_rows(t)) * tn_vk_div_up(columns, tile_columns(t));
}

// The largest tile that makes enough workgroups and is less than twice as high as there are rows.
static const tile *choose(const tn_vk *v, int64_t rows, int64_t columns, bool gated)
{
    const tile *t = &tiles[N_CHOSEN - 1];
    if (v->tile > 0 && v->tile <= (int32_t)TN_COUNT(tiles) && fits(v, &tiles[v->tile - 1]))
        return &tiles[v->tile - 1];
    if (v->device->software) return &tiles[SOFTWARE];
    for (int32_t i = gated ? FIRST_GATED : 0; i < N_CHOSEN; i++) {
        if (!fits(v, &tiles[i])) continue;
        t = &tiles[i];
        if (tile_rows(t) < 2 * rows && groups_of(t, rows, columns) >= WANTED_GROUPS) break;
    }
    return t;
}

static void launch(const tn_step *step, const tn_product *p, int32_t i, bool x_aligned, tn_vk_dispatch *d)
{
    tn_product like = tn_product_get(d->like);
    int32_t *c = d->constants, *n = d->args.n;
    tn_vk_product_bind(step, p, i, d);
    bool gated = p->glu != NULL;
    int64_t weights = gated ? 2 : 1; // columns of the tile for one of the result
    const tile *t = choose(d->v, tn_view_n_rows(like.y[0]), like.w[i]->ne[2] * weights, gated);
    c[C_TILE] = t->across | t->down << 8 | t->m << 16 | t->runs << 20 | t->steps << 24;
    c[C_THREADS] = t->across * t->down;
    // A software driver compiles slowly: there the variant with an activation runs all products.
    bool activated = p->act != TN_UNARY_NONE || d->v->device->software;
    c[C_FORM] = (gated ? FORM_GATED : 0) | (activated ? FORM_ACTIVATED : 0);
    c[TN_VK_LAYOUT] =
        x_aligned && tn_vk_aligned_elems(p->w[i], 16) && (!gated || tn_vk_aligned_elems(p->w[1], 16));
    d->groups = groups_of(t, n[TN_VK_N_PRODUCT_ROWS], n[TN_VK_N_PRODUCT_COLUMNS] * weights);
}

int32_t tn_vk_launch_gemm_tile(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step);
    d->shader = TN_VK_SHADER_gemm_tile;
    launch(step, &p, i, tn_vk_aligned_elems(p.x, 16), d);
    return p.n_results;
}

int32_t tn_vk_launch_gemm_tile_f16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step);
    d->scratch = tn_vk_convert_16bit_size(step, TN_VK_ORDER_NONE);
    if (i == 0) {
        tn_vk_launch_convert_16bit(step, TN_TYPE_F16, TOP, TN_VK_ORDER_NONE, d);
    } else {
        d->shader = TN_VK_SHADER_gemm_tile_f16;
        d->waits = i == 1;
        launch(step, &p, i - 1, true, d);
    }
    return 1 + p.n_results;
}
