// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches of skinny_tiles.cuh: which rows of x and of weights a block has, and how the stages of a launch
// are shared between blocks. The cut with the least estimated time is selected.
#include "backends/cuda/product/skinny/skinny.h"
#include "backends/cuda/runtime/layout.h"
#include "backends/cuda/runtime/tensor_map.h"

#include "core/compiler.h"
#include "core/context.h"

#include <stdio.h>
#include <string.h>

enum {
    SWIZZLE = 1024,       // bytes that swizzled matrices are aligned to
    SHARED_STATIC = 1024, // bytes of shared memory beside the stages
    LEAST_SLOTS = 2,      // a stage is copied while another one is multiplied
    // Blocks may be this many times fewer than there can be at once, if that saves partial sums.
    LONGEST_SHARE = 4,
};

// Rates of an H200 in bytes per ns, for one multiprocessor.
enum { MEMORY_RATE = 32, L2_RATE = 46 };

// The types of these kernels, with the modules that have them.
static const struct tile_type {
    tn_dtype type;
    int32_t module;
} tile_types[] = {
    {TN_TYPE_Q4_0, TN_CUDA_MODULE_skinny_tiles},
    {TN_TYPE_Q4_1, TN_CUDA_MODULE_skinny_tiles},
    {TN_TYPE_Q5_0, TN_CUDA_MODULE_skinny_tiles},
    {TN_TYPE_Q5_1, TN_CUDA_MODULE_skinny_tiles},
    {TN_TYPE_Q8_0, TN_CUDA_MODULE_skinny_tiles},
    {TN_TYPE_Q3_K, TN_CUDA_MODULE_skinny_tiles_codebook},
    {TN_TYPE_IQ4_NL, TN_CUDA_MODULE_skinny_tiles_codebook},
    {TN_TYPE_IQ4_XS, TN_CUDA_MODULE_skinny_tiles_codebook},
    {TN_TYPE_MXFP4, TN_CUDA_MODULE_skinny_tiles_codebook},
};

// NULL: none of them.
static const struct tile_type *find_type(tn_dtype type)
{
    for (size_t i = 0; i < TN_COUNT(tile_types); i++)
        if (tile_types[i].type == type) return &tile_types[i];
    return NULL;
}

static bool is_tile_type(tn_dtype type)
{
    return find_type(type) != NULL;
}

bool tn_cuda_skinny_uses_tiles(const tn_cuda *cuda, const tn_product *p)
{
    if (cuda->compute != 90 || cuda->variant.skinny_without_wgmma || p->k % TN_SKINNY_K != 0) return false;
    for (int32_t i = 0; i < p->n_weights; i++)
        if (!tn_cuda_weight_aligned(p->w[i])) return false;
    return tn_cuda_weights_all(p, is_tile_type);
}

int32_t tn_cuda_skinny_tiles_columns(int64_t m)
{
    return m <= 16 ? 16 : m <= 32 ? 32 : TN_SKINNY_TILES_COLUMNS;
}

// --- how a launch is cut -----------------------------------------------------------------------------

typedef struct cut {
    int32_t row_groups, k_groups, slots;
    int32_t n_tiles, blocks;
    int64_t time; // estimated, ns
} cut;

// Bytes that a plane has of 256 values, and of those that are copied to shared memory: 16 and more.
static int32_t copied_bytes(const tn_cuda_pack_args *planes, tn_dtype type, int32_t plane)
{
    int32_t bytes = planes->plane_bytes[plane] * (TN_SKINNY_K / (int32_t)tn_dtype_block_elems(type));
    return bytes < 16 ? 0 : bytes;
}

static int64_t stage_weights(tn_dtype type)
{
    tn_cuda_pack_args planes;
    tn_cuda_layout_get(type, &planes);
    int64_t bytes = 0;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) bytes += copied_bytes(&planes, type, p);
    return bytes * TN_SKINNY_STAGE_ROWS;
}

static int64_t stage_x(int32_t columns, int32_t k_groups)
{
    return k_groups * (int64_t)TN_SKINNY_TILES_STAGE(columns);
}

static int64_t slot_size(tn_dtype type, int32_t columns, int32_t k_groups)
{
    return tn_div_up(stage_weights(type) + stage_x(columns, k_groups), SWIZZLE) * SWIZZLE;
}

// Estimated time in nanoseconds on an H200: that of the longest block, with what the last block of a tile
// needs for the parts of all its blocks.
static int64_t time_of(const cut *c, tn_dtype type, int32_t columns, int64_t per_tile)
{
    enum { LEAST = 700, PUBLISH = 2000, ADD_K_GROUPS = 300 };
    int64_t weights = stage_weights(type), x = stage_x(columns, c->k_groups), n = c->n_tiles * per_tile;
    int64_t longest = tn_div_up(n, c->blocks);
    bool even = n % c->blocks == 0 && TN_MAX(longest, per_tile) % TN_MIN(longest, per_tile) == 0;
    int64_t parts = !even ? tn_div_up(per_tile, longest) + 1 : longest < per_tile ? per_tile / longest : 0;
    int64_t copies = TN_MAX(weights / MEMORY_RATE, (weights + x) / L2_RATE);
    int64_t part = (int64_t)c->row_groups * 64 * columns * 4;
    return longest * TN_MAX(copies, LEAST + 10 * columns) + (c->k_groups > 1 ? ADD_K_GROUPS : 0) +
           (parts > 0 ? PUBLISH + parts * part / L2_RATE : 0);
}

// The number of blocks with the least time, max_blocks at most. Fewer blocks have longer shares of tiles.
static cut cut_tiles(cut c, tn_dtype type, int32_t columns, int64_t per_tile, int64_t max_blocks)
{
    int64_t n = TN_MAX(1, c.n_tiles * per_tile), shortest = tn_div_up(n, TN_MIN(max_blocks, n));
    int64_t longest = TN_MAX(shortest, TN_MIN(per_tile, LONGEST_SHARE * shortest));
    c.time = INT64_MAX;
    for (int64_t share = shortest; share <= longest; share++) {
        cut next = c;
        next.blocks = (int32_t)tn_div_up(n, share);
        next.time = time_of(&next, type, columns, per_tile);
        if (next.time < c.time) c = next;
    }
    return c;
}

static cut select_cut(const tn_cuda *cuda, tn_cuda_skinny_tiles_args *a, tn_dtype type, int32_t columns)
{
    cut best = {.time = INT64_MAX};
    for (int32_t i = 0; i < 3; i++) {
        cut c = {.row_groups = TN_SKINNY_TILES_GROUPS >> i, .k_groups = 1 << i};
        c.slots = (int32_t)TN_MIN(TN_SKINNY_TILES_SLOTS, (cuda->max_shared - SHARED_STATIC - SWIZZLE) /
                                                             slot_size(type, columns, c.k_groups));
        if (c.slots < LEAST_SLOTS) continue;
        c.n_tiles = tn_cuda_skinny_set_tiles(a->seg, a->n_segs, a->glu, 64 * c.row_groups);
        c = cut_tiles(c, type, columns, tn_div_up(a->k_stages, c.k_groups), cuda->n_sms);
        if (cuda->variant.skinny_shape == i + 1) c.time = 0;
        if (c.time < best.time) best = c;
    }
    a->n_tiles = tn_cuda_skinny_set_tiles(a->seg, a->n_segs, a->glu, 64 * best.row_groups);
    return best;
}

// --- launch ------------------------------------------------------------------------------------------

// Describes the planes of a weight for copies of boxes of `rows` rows and 256 k.
static tn_status make_maps(const tn_cuda_launch *l, tn_cuda_tensor_map *to, const tn_cuda_skinny_seg *s,
                           tn_dtype type, int32_t rows)
{
    tn_cuda_pack_args planes;
    tn_cuda_layout_get(type, &planes);
    tn_status status = TN_OK;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES && status == TN_OK; p++) {
        int32_t bytes = copied_bytes(&planes, type, p), width = TN_MIN(bytes, 128);
        if (bytes == 0) continue;
        tn_cuda_boxes b = {.data = s->w.plane[p],
                           .rows = s->n,
                           .row_bytes = s->w.row_size[p],
                           .row_stride = s->w.row_size[p],
                           .box_bytes = width,
                           .box_rows = rows,
                           .l2_bytes = 128};
        status = tn_cuda_map_boxes(l, &b, to++);
    }
    return status;
}

tn_status tn_cuda_skinny_tiles_run(const tn_cuda_launch *l, const tn_cuda_skinny_args *b, tn_dtype type,
                                   int32_t columns)
{
    tn_cuda_skinny_tiles_args a;
    memset(&a, 0, sizeof a);
    memcpy(a.seg, b->seg, sizeof a.seg);
    a.x = b->x, a.row_scale = b->row_scale, a.residual = b->residual, a.residual_ld = b->residual_ld;
    a.partial = b->partial, a.arrived = b->arrived, a.m = b->m, a.n_segs = b->n_segs;
    a.k_stages = b->k / TN_SKINNY_K;
    a.glu = b->glu, a.act = b->act, a.glu_limit = b->glu_limit, a.glu_alpha = b->glu_alpha;
    a.early = TN_SKINNY_EARLY;
    cut c = select_cut(l->cuda, &a, type, columns);
    a.row_groups = c.row_groups, a.k_groups = c.k_groups, a.slots = c.slots;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < a.n_segs && status == TN_OK && !l->sink; i++)
        status = make_maps(l, a.map[i], &a.seg[i], type, 32 * c.row_groups);
    if (status != TN_OK) return status;
    char name[48];
    snprintf(name, sizeof name, "tn_skinny_tiles_%s_%d", tn_dtype_name(type), columns);
    tn_cuda_grid grid = {.x = (uint32_t)c.blocks,
                         .y = 1,
                         .z = 1,
                         .threads = TN_SKINNY_TILES_THREADS,
                         .shared = (uint32_t)(c.slots * slot_size(type, columns, c.k_groups) + SWIZZLE),
                         .alone = l->cuda->variant.skinny_switch_dependent};
    return tn_cuda_run(l, find_type(type)->module, name, &grid, &a);
}
