// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of many rows without matrices (shaders/gemm.comp), in f32 and in f16.
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

enum { RUN = 16, FOUR = 4, FOURS = 2 };
// x in f16 is below 2^(TOP + 1), weights below 1: 16 products stay in range.
enum { TOP = 10 };
// Constants of the shader.
enum { C_TILE = 2, C_THREADS = 4, C_FORM };
// Workgroups that a product is split into if it is large enough: fewer than a large device has
// multiprocessors, as larger tiles were faster there even so.
enum { WANTED_GROUPS = 32 };

// Invocations over the columns and rows of a tile, fours of rows of each of them (all have two of columns),
// runs of 16 in a piece of the common dimension, elements of it that are multiplied without a loop.
typedef struct tile {
    int32_t across, down, m, runs, steps;
} tile;
static const tile tiles[] = {
    {16, 16, 2, 2, 8}, // 128 columns x 128 rows
    {16, 8, 2, 2, 8},  // 128 x 64
    {8, 8, 2, 2, 8},   // 64 x 64
    {8, 8, 1, 2, 8},   // 64 x 32
    {8, 8, 1, 1, 4},   // 64 x 32, shallow
};
// The first ones are those that the shape chooses from, larger ones first: they load less for the same work.
// The last one is for processors: more sums or longer code take twice as long to compile there, and are not
// faster.
// Gated pairs were slower in the larger ones.
enum { N_CHOSEN = 4, SOFTWARE = 4, FIRST_GATED = 2 };

static int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int32_t tile_columns(const tile *t)
{
    return FOUR * FOURS * t->across;
}

static int32_t tile_rows(const tile *t)
{
    return FOUR * t->m * t->down;
}

// As the shader has it. The small ones fit every device.
static bool fits(const tn_vk *v, const tile *t)
{
    int64_t elems = (int64_t)RUN * t->runs * (tile_rows(t) + tile_columns(t));
    return elems * (int64_t)sizeof(float) <= v->max_shared && t->across * t->down <= (int32_t)v->max_threads;
}

static int64_t groups_of(const tile *t, int64_t rows, int64_t columns)
{
    return div_up(rows, tile_rows(t)) * div_up(columns, tile_columns(t));
}

// The largest one that makes enough workgroups and is not much higher than there are rows.
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

static int32_t launch_tile(const tn_step *step, int32_t i, bool rounded, tn_vk_dispatch *d)
{
    int32_t count = tn_vk_set_product(step, i, d), *c = d->constants, *n = d->args.n;
    int32_t weight = 1 + (step->op == TN_OP_matmul_multi ? i : 0);
    bool gated = n[TN_VK_N_GLU] >= 0;
    int64_t together = gated ? 2 : 1; // columns of the tile for one of the result
    const tile *t =
        choose(d->v, tn_view_n_rows(&d->like->dst[0]), d->like->src[weight].ne[2] * together, gated);
    c[C_TILE] = t->across | t->down << 8 | t->m << 16 | t->runs << 20 | t->steps << 24;
    c[C_THREADS] = t->across * t->down;
    bool sums = n[TN_VK_N_ACT] < 0 && !d->v->device->software; // one variant is enough for processors
    c[C_FORM] = gated | !sums << 1;
    c[TN_VK_LAYOUT] = (rounded || tn_vk_aligned_rows(&step->src[0])) &&
                      tn_vk_aligned_rows(&step->src[weight]) && (!gated || tn_vk_aligned_rows(&step->src[2]));
    d->groups = groups_of(t, n[TN_VK_N_ROWS], n[TN_VK_N_COLUMNS] * together);
    return count;
}

int32_t tn_vk_launch_gemm_tile(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    d->shader = TN_VK_SHADER_gemm_tile;
    return launch_tile(step, i, false, d);
}

int32_t tn_vk_launch_gemm_tile_f16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    d->scratch = tn_vk_convert_16bit_size(step);
    if (i == 0) {
        tn_vk_launch_convert_16bit(step, TN_TYPE_F16, TOP, d);
        return 1 + (step->op == TN_OP_matmul_multi ? ((const tn_matmul_multi_params *)step->params)->n_weights
                                                   : 1);
    }
    d->shader = TN_VK_SHADER_gemm_tile_f16;
    d->after = i == 1;
    return 1 + launch_tile(step, i - 1, true, d);
}
