// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of experts (matmul_id, matmul_id_glu) for 9 and more tokens whose experts have up to MOST_AVERAGE
// rows of x each, on compute capability 9.0 (experts.cuh): two launches, one that rounds x and sorts the ids,
// and the product.
#include "backends/cuda/product/experts/experts_args.h"
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/runtime/layout.h"
#include "backends/cuda/runtime/tensor_map.h"

#include "core/compiler.h"

#include <stdio.h>
#include <string.h>

enum {
    ALIGN = 256,    // of the parts of the scratch, bytes
    SWIZZLE = 1024, // bytes that swizzled matrices are aligned to
    BARRIERS = 256, // bytes of shared memory, beside the tables of rows
    TABLE_ROW = 16, // of two tables, bytes
    WARP = 32,
    PREPARE_BLOCKS = 4, // for each multiprocessor at most
    // Rows of x of an expert on average: measured up to 128, where the tiles of 128 rows of gemm/gemm_id.c,
    // which need sorted copies of x, take a quarter longer.
    MOST_AVERAGE = 160,
    // Ids for each block that sorts them, such blocks, and values of a row of x for which the form of
    // experts_prepare.cu with fewer registers has enough.
    SORTED = 1024,
    MOST_SORTERS = 16,
    SHORT_ROW = 1024,
    MOST_SLOTS = 256, // experts of a token: times 2^23 ids, less than 2^32 (x_factor)
};

// Rows of x of a tile for experts with up to `average` rows each: some have more, and a second tile costs
// more than empty rows of the first. Measured with 8, 32, 64 and 128 rows (H200, 2026-11-27).
static const struct {
    int64_t average;
    int32_t rows;
} tiles[] = {{10, 16}, {24, 32}, {48, 64}, {INT32_MAX, 96}};

// The types that there are kernels for, whether they multiply weights without rounding them, the most rows of
// a tile, and the file that has them.
static const struct expert_type {
    tn_dtype dtype;
    bool exact;
    int32_t most_rows, module;
} types[] = {
    {TN_TYPE_Q4_K, true, 64, TN_CUDA_MODULE_experts_k}, // with 96 registers do not suffice
    {TN_TYPE_Q6_K, false, 96, TN_CUDA_MODULE_experts_k},
};

static const struct expert_type *find_type(tn_dtype type)
{
    for (size_t i = 0; i < TN_COUNT(types); i++)
        if (types[i].dtype == type) return &types[i];
    return NULL;
}

// --- what is accepted --------------------------------------------------------------------------------

static int64_t average_rows(const tn_product *p)
{
    return p->n_experts > 0 ? p->m / p->n_experts : 0;
}

static bool accepts(const tn_cuda *cuda, const tn_step *step, bool exact)
{
    tn_product p = tn_product_get(step);
    if (!tn_cuda_gemm_id_fits(cuda, &p)) return false;
    const struct expert_type *type = find_type(p.w[0]->dtype);
    int32_t mode = tn_cuda_gemm_mode(cuda, &p, step->precision);
    return type && type->exact == exact && average_rows(&p) <= MOST_AVERAGE && p.ids->ne[3] <= MOST_SLOTS &&
           tn_cuda_gemm_blocks_fits(cuda, &p, mode);
}

bool tn_cuda_experts_exact_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, true);
}

bool tn_cuda_experts_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, false);
}

// --- scratch -----------------------------------------------------------------------------------------

// Where things are in the scratch, which begins with x: bytes from its start.
typedef struct layout {
    int64_t m, max_tiles; // rows of x; tiles of rows that there can be
    int32_t tile_rows;
    size_t scale, rows, tile_group, n_tiles, end;
} layout;

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

static layout layout_of(const tn_product *p)
{
    size_t i = 0;
    while (average_rows(p) > tiles[i].average) i++;
    layout s = {.m = tn_view_n_rows(p->x),
                .tile_rows = TN_MIN(tiles[i].rows, find_type(p->w[0]->dtype)->most_rows)};
    s.max_tiles = p->m / s.tile_rows + TN_MIN(p->n_experts, p->m);
    s.scale = aligned(s.m * TN_EXPERTS_ROW(p->k));
    s.rows = s.scale + aligned(4 * s.m);
    s.tile_group = s.rows + aligned(4 * s.max_tiles * s.tile_rows);
    s.n_tiles = s.tile_group + aligned(4 * s.max_tiles);
    s.end = s.n_tiles + ALIGN;
    return s;
}

size_t tn_cuda_experts_scratch(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    tn_product p = tn_product_get(step);
    return layout_of(&p).end;
}

// --- launches ----------------------------------------------------------------------------------------

static tn_status prepare(const tn_cuda_launch *l, const tn_product *p, const layout *s)
{
    enum { WARPS = TN_EXPERTS_PREPARE_THREADS / WARP };
    tn_cuda_experts_prepare_args a = {
        .x = tn_cuda_view_of(p->x),
        .to = l->scratch,
        .scale = (float *)(void *)(l->scratch + s->scale),
        .m = (int32_t)s->m,
        .k = (int32_t)p->k,
        .finite_rows = find_type(p->w[0]->dtype)->exact,
        .ids = p->ids->data,
        .n_ids = (int32_t)p->m,
        .n_groups = (int32_t)p->n_experts,
        .tile_rows = s->tile_rows,
        .sorters = (int32_t)TN_MIN(tn_div_up(p->m, SORTED), MOST_SORTERS),
        .rows = (int32_t *)(void *)(l->scratch + s->rows),
        .tile_group = (int32_t *)(void *)(l->scratch + s->tile_group),
        .n_tiles = (int32_t *)(void *)(l->scratch + s->n_tiles),
        .y = p->y[0]->data,
        .y_n = p->w[0]->ne[2],
    };
    int64_t blocks = TN_MIN(tn_div_up(s->m, WARPS), PREPARE_BLOCKS * (int64_t)l->cuda->n_sms);
    tn_cuda_grid grid = {
        .x = (uint32_t)(a.sorters + blocks), .y = 1, .z = 1, .threads = TN_EXPERTS_PREPARE_THREADS};
    const char *entry = p->k <= SHORT_ROW ? "tn_experts_prepare_4" : "tn_experts_prepare_8";
    return tn_cuda_run(l, TN_CUDA_MODULE_experts_prepare, entry, &grid, &a);
}

// Bytes of a row that a plane has for TN_GEMM_BLOCK_K elements.
static int32_t plane_bytes(tn_dtype type, int32_t plane)
{
    tn_cuda_pack_args planes;
    tn_cuda_layout_get(type, &planes);
    return planes.plane_bytes[plane] * (int32_t)(TN_GEMM_BLOCK_K / tn_dtype_block_elems(type));
}

static tn_status set_weights(const tn_cuda_launch *l, const tn_product *p, tn_cuda_experts_args *a)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < p->n_weights; i++) {
        tn_cuda_weight w = a->seg[i].w = tn_cuda_weight_planes(p->w[i]);
        for (int32_t plane = 0; plane < TN_CUDA_MAX_PLANES && status == TN_OK; plane++) {
            int32_t bytes = plane_bytes(p->w[i]->dtype, plane);
            if (bytes == 0 || bytes % 16 != 0) continue;
            tn_cuda_boxes boxes = {.data = w.plane[plane],
                                   .rows = a->n_rows,
                                   .row_bytes = w.row_size[plane],
                                   .row_stride = w.row_size[plane],
                                   .box_bytes = TN_MIN(bytes, 128),
                                   .box_rows = TN_EXPERTS_TILE / 2,
                                   .l2_bytes = 256};
            status = tn_cuda_map_boxes(l, &boxes, &a->seg[i].map[plane]);
        }
    }
    return status;
}

// Bytes of shared memory of 256 of k: weights, x, and sums of x for minimums.
static int32_t stage_size(tn_dtype type, int32_t tile_rows)
{
    int32_t size = 0;
    for (int32_t plane = 0; plane < TN_CUDA_MAX_PLANES; plane++)
        size += (int32_t)tn_div_up(TN_EXPERTS_TILE * plane_bytes(type, plane), 128) * 128;
    size = (int32_t)tn_div_up(size, SWIZZLE) * SWIZZLE + tile_rows * TN_GEMM_BLOCK_K * 2;
    if (find_type(type)->exact) size += tile_rows * 32;
    return (int32_t)tn_div_up(size, SWIZZLE) * SWIZZLE;
}

tn_status tn_cuda_experts_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    layout s = layout_of(&p);
    tn_status status = prepare(l, &p, &s);
    if (status != TN_OK) return status;
    tn_dtype type = p.w[0]->dtype;
    tn_cuda_experts_args a;
    memset(&a, 0, sizeof a);
    a.x = l->scratch;
    a.x_scale = (const float *)(const void *)(l->scratch + s.scale);
    a.y = p.y[0]->data;
    a.rows = (const int32_t *)(const void *)(l->scratch + s.rows);
    a.tile_group = (const int32_t *)(const void *)(l->scratch + s.tile_group);
    a.n_tiles = (const int32_t *)(const void *)(l->scratch + s.n_tiles);
    // r times this is r / slots times 2^32, and too large by less than r times slots.
    if (p.x->ne[2] == 1 && p.ids->ne[3] > 1) a.x_factor = (uint32_t)(((1ull << 32) - 1) / p.ids->ne[3] + 1);
    a.n = (int32_t)p.w[0]->ne[2];
    a.n_rows = (int32_t)(p.n_experts * a.n);
    a.k = (int32_t)p.k;
    a.glu = p.glu != NULL;
    a.act = tn_cuda_gemm_act(&p);
    if (p.glu) a.glu_limit = p.glu->limit, a.glu_alpha = p.glu->alpha;
    a.tiles_n = (int32_t)tn_div_up(a.n, a.glu ? TN_EXPERTS_TILE / 2 : TN_EXPERTS_TILE);
    status = set_weights(l, &p, &a);
    if (status != TN_OK) return status;
    int32_t stage = stage_size(type, s.tile_rows);
    int32_t fixed = SWIZZLE + BARRIERS + TABLE_ROW * s.tile_rows;
    a.stages = TN_MIN(TN_EXPERTS_MAX_STAGES, (l->cuda->max_shared - fixed) / stage);
    char name[48];
    snprintf(name, sizeof name, "tn_experts_%s_%d", tn_dtype_name(type), s.tile_rows);
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(s.max_tiles * a.tiles_n, l->cuda->n_sms),
                         .y = 1,
                         .z = 1,
                         .threads = TN_EXPERTS_THREADS,
                         .shared = (uint32_t)(a.stages * stage + SWIZZLE)};
    return tn_cuda_run(l, find_type(type)->module, name, &grid, &a);
}
