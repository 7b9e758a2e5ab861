// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of experts (matmul_id, matmul_id_glu) for 9 and more tokens whose experts have up to MOST_AVERAGE
// rows of x each, on compute capability 9.0 (experts.cuh): two launches, one that rounds x and sorts the ids,
// and the product. A gated pair can leave its result, with the ids sorted, as the first of these launches
// would for the product after it (experts_write.cuh).
#include "backends/cuda/product/experts/experts.h"
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
    SUMS = 2 * 4 * 4 * TN_EXPERTS_CONSUMERS, // bytes of f32 of each warp, of a row of x of the next product
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
    NEXT_ROWS = 16, // of tiles of gated pairs that leave x of the next product; with more it is slower
};

// Rows of x of a tile for experts with up to `average` rows each: some have more, and a second tile costs
// more than empty rows of the first. Measured with 8, 32, 64 and 128 rows (H200, 2026-11-27).
static const struct {
    int64_t average;
    int32_t rows;
} tiles[] = {{10, 16}, {24, 32}, {48, 64}, {INT32_MAX, 96}};

// The types that there are kernels for, whether they multiply weights without rounding them, and the most
// rows of a tile.
static const struct expert_type {
    tn_dtype dtype;
    bool exact;
    int32_t most_rows;
} types[] = {
    {TN_TYPE_Q4_K, true, 64}, // with 96 registers do not suffice
    {TN_TYPE_Q6_K, false, 96},
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

// Where things are, as bytes from the start of rows of x.
typedef struct table_layout {
    int32_t tile_rows;
    size_t rows, tile_group, n_tiles, end;
} table_layout;

// In the scratch: x, and for a gated pair that leaves x of the next product powers of its results and
// measured norms of its weights.
typedef struct layout {
    int64_t m; // rows of x
    size_t scale, power, norms;
    table_layout table;
} layout;

// In memory of the result of such a pair: x of the next product.
typedef struct next_layout {
    size_t scale;
    table_layout table;
} next_layout;

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

static int64_t max_tiles(const tn_product *p, int32_t tile_rows)
{
    return p->m / tile_rows + TN_MIN(p->n_experts, p->m);
}

static table_layout table_of(const tn_product *p, const struct expert_type *type, size_t at)
{
    size_t i = 0;
    while (average_rows(p) > tiles[i].average) i++;
    table_layout t = {.tile_rows = TN_MIN(tiles[i].rows, type->most_rows), .rows = at};
    t.tile_group = t.rows + aligned(4 * max_tiles(p, t.tile_rows) * t.tile_rows);
    t.n_tiles = t.tile_group + aligned(4 * max_tiles(p, t.tile_rows));
    t.end = t.n_tiles + ALIGN;
    return t;
}

static layout layout_of(const tn_product *p)
{
    layout s = {.m = tn_view_n_rows(p->x)};
    s.scale = aligned(s.m * TN_EXPERTS_ROW(p->k));
    s.power = s.scale + aligned(4 * s.m);
    s.norms = s.power + aligned(4 * s.m);
    s.table = table_of(p, find_type(p->w[0]->dtype), s.norms + ALIGN);
    return s;
}

// `columns`: of the gated pair.
static next_layout next_of(const tn_product *p, int64_t columns)
{
    next_layout s = {.scale = aligned(p->m * TN_EXPERTS_ROW(columns))};
    s.table = table_of(p, find_type(p->w[0]->dtype), s.scale + aligned(4 * p->m));
    return s;
}

// Tiles of so few rows have the same height for all types, so the product after the pair shares its table.
bool tn_cuda_experts_leaves_next(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    if (!p.glu || !p.ids || !(accepts(cuda, step, true) || accepts(cuda, step, false))) return false;
    int64_t n = p.w[0]->ne[2];
    bool silu = p.glu->act == TN_UNARY_SILU && p.glu->limit <= 0.0f && p.glu->alpha <= 0.0f;
    if (!silu || n % TN_GEMM_BLOCK_K != 0) return false;
    table_layout table = next_of(&p, n).table;
    return table.tile_rows == NEXT_ROWS && table.end <= (size_t)tn_view_n_elems(p.y[0]) * sizeof(float);
}

size_t tn_cuda_experts_scratch(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    tn_product p = tn_product_get(step);
    return layout_of(&p).table.end;
}

// --- launches ----------------------------------------------------------------------------------------

static tn_cuda_experts_table table_at(char *base, const table_layout *t)
{
    return (tn_cuda_experts_table){.rows = (int32_t *)(void *)(base + t->rows),
                                   .tile_group = (int32_t *)(void *)(base + t->tile_group),
                                   .n_tiles = (int32_t *)(void *)(base + t->n_tiles),
                                   .tile_rows = t->tile_rows};
}

// The largest norm of a row of the weight, which is measured in each run if memory did not suffice to keep
// it, or if steps make the weight.
static tn_status norm_of(const tn_cuda_launch *l, const tn_view *w, float *measured, const float **norm)
{
    *norm = tn_cuda_gemm_derived(l, TN_GEMM_NORM, w);
    if (*norm) return TN_OK;
    *norm = measured;
    return tn_cuda_gemm_measure(l, w, measured);
}

// The result of a gated pair as x of the next product, whose table goes there too.
static tn_status set_next(const tn_cuda_launch *l, const tn_product *p, const layout *s,
                          tn_cuda_experts_prepare_args *a)
{
    next_layout next = next_of(p, p->w[0]->ne[2]);
    char *y = p->y[0]->data;
    const float **norms[] = {&a->norm_gate, &a->norm_up};
    float *measured = (float *)(void *)(l->scratch + s->norms);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < 2 && status == TN_OK; i++) status = norm_of(l, p->w[i], measured + i, norms[i]);
    a->y_power = (float *)(void *)(l->scratch + s->power);
    a->y_scale = (float *)(void *)(y + next.scale);
    a->slots = (int32_t)(p->m / s->m);
    a->table = table_at(y, &next.table);
    return status;
}

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
        .sorters = (int32_t)TN_MIN(tn_div_up(p->m, SORTED), MOST_SORTERS),
        .table = table_at(l->scratch, &s->table),
    };
    tn_status status = l->writes_packed16 ? set_next(l, p, s, &a) : TN_OK;
    if (status != TN_OK) return status;
    int64_t blocks = TN_MIN(tn_div_up(s->m, WARPS), PREPARE_BLOCKS * (int64_t)l->cuda->n_sms);
    tn_cuda_grid grid = {.x = (uint32_t)(a.sorters + blocks),
                         .y = 1,
                         .z = 1,
                         .threads = TN_EXPERTS_PREPARE_THREADS};
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

// Rows of x and the table: in the scratch, or as the gated pair before has left them.
static void set_x(const tn_cuda_launch *l, const tn_product *p, const layout *s, tn_cuda_experts_args *a)
{
    bool leaves = l->writes_packed16, reads = l->reads_packed16;
    char *at = reads ? p->x->data : l->scratch, *y = p->y[0]->data;
    next_layout next = next_of(p, leaves ? p->w[0]->ne[2] : p->k);
    a->x = at;
    a->x_scale = (const float *)(const void *)(at + (reads ? next.scale : s->scale));
    a->table = leaves || reads ? table_at(leaves ? y : at, &next.table) : table_at(at, &s->table);
    a->y_power = (const float *)(const void *)(l->scratch + s->power);
    // r times this is r / slots times 2^32, and too large by less than r times slots.
    if (p->x->ne[2] == 1 && p->ids->ne[3] > 1)
        a->x_factor = (uint32_t)(((1ull << 32) - 1) / p->ids->ne[3] + 1);
}

tn_status tn_cuda_experts_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    layout s = layout_of(&p);
    tn_dtype type = p.w[0]->dtype;
    tn_cuda_experts_args a;
    memset(&a, 0, sizeof a);
    a.n = (int32_t)p.w[0]->ne[2];
    a.n_rows = (int32_t)(p.n_experts * a.n);
    a.k = (int32_t)p.k;
    a.y = p.y[0]->data;
    a.ids = p.ids->data;
    a.n_ids = (int32_t)p.m;
    a.n_groups = (int32_t)p.n_experts;
    a.glu = p.glu != NULL;
    a.act = tn_cuda_gemm_act(&p);
    if (p.glu) a.glu_limit = p.glu->limit, a.glu_alpha = p.glu->alpha;
    a.tiles_n = (int32_t)tn_div_up(a.n, a.glu ? TN_EXPERTS_TILE / 2 : TN_EXPERTS_TILE);
    set_x(l, &p, &s, &a);
    tn_status status = l->reads_packed16 ? TN_OK : prepare(l, &p, &s);
    if (status == TN_OK) status = set_weights(l, &p, &a);
    if (status != TN_OK) return status;
    int32_t rows = a.table.tile_rows, stage = stage_size(type, rows);
    int32_t sums = l->writes_packed16 ? SUMS * rows : 0;
    int32_t fixed = SWIZZLE + BARRIERS + TABLE_ROW * rows + sums;
    a.stages = TN_MIN(TN_EXPERTS_MAX_STAGES, (l->cuda->max_shared - fixed) / stage);
    char name[48];
    const char *next = l->writes_packed16 ? "_next" : "";
    snprintf(name, sizeof name, "tn_experts%s_%s_%d", next, tn_dtype_name(type), rows);
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(max_tiles(&p, rows) * a.tiles_n, l->cuda->n_sms),
                         .y = 1,
                         .z = 1,
                         .threads = TN_EXPERTS_THREADS,
                         .shared = (uint32_t)(a.stages * stage + SWIZZLE + sums)};
    return tn_cuda_run(l, TN_CUDA_MODULE_experts_k, name, &grid, &a);
}
