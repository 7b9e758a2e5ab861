// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of 65 and more rows whose weights of block types are multiplied as they are
// (gemm_blocks.cuh): which products those are, and how they are cut into tiles and shares.
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/runtime/tensor_map.h"

#include "core/compiler.h"

#include <stdio.h>
#include <string.h>

enum {
    MIN_ROWS = 65, // product/skinny has kernels for fewer
    // With more rows and short k, expanding the weights to memory once costs less than expanding them for
    // each 256 rows: prefill of 1B Q4_K_M in batches of 2048 ran at 178k tokens per second here, at 194k so.
    // With k of 4096 and 14336 this is faster: 8B Q4_K_M in such batches 35.6k, expanded 33.6k (H200).
    MAX_ROWS_SHORT = 1024,
    LONG_K = 4096,
    SWIZZLE = 1024,       // bytes that swizzled matrices are aligned to
    SWIZZLE_ROWS = 8,     // rows of such
    STATIC_SHARED = 5120, // barriers, and scales and places of rows for each warpgroup
    MAX_RING = 8,         // slots or stages, GEMM_MAX_RING
    ALIGN = 256,          // of the parts of the scratch, bytes
    SUMS = 128 << 10,     // bytes of sums of a tile that times were measured with
    ADD_THREADS = 256,    // of a block of the kernel that adds shared sums, four floats each
    // Threads of the kernel that makes rows of x: of a block, with one piece of 8 values each, of a
    // multiprocessor.
    X_MOST_THREADS = 1024,
    X_ONE_PIECE = 512,
    X_RESIDENT = 2048,
};

// A tile: rows of weights by rows of x, threads of a block (a warpgroup that copies and those that multiply),
// and how many rows of tiles are walked through together, so that their operands stay in L2.
typedef struct shape {
    int32_t rows, columns, threads, group_m;
    int32_t slice; // ns of a slice of a tile, TN_GEMM_BLOCK_K of k; H200, Q4_K
} shape;
static const shape shapes[] = {
    {128, 256, 384, 8, 2540}, {256, 128, 640, 16, 3500}, {128, 192, 384, 8, 1950}, {128, 160, 384, 8, 1700},
    {128, 176, 384, 8, 1820}, {128, 208, 384, 8, 2100},  {128, 224, 384, 8, 2250}, {128, 240, 384, 8, 2400},
};

// How a product is divided. Either blocks take whole tiles, or each the same number of slices, through
// tiles that follow on each other.
typedef struct cut {
    const shape *shape;
    int64_t tiles_m, tiles_n, blocks;
    int64_t share; // slices of a block; 0: whole tiles
    int64_t time;  // ns, estimated
    int64_t other_tile, first_blocks; // tn_cuda_gemm_blocks_args
} cut;

// What decides how the weights of one type are divided.
typedef struct extent {
    int64_t m, k, n[TN_PRODUCT_MAX_WEIGHTS];
    int32_t n_weights;
    bool glu, any; // any: an activation that the kernel for whole tiles does not know
} extent;

// The types that there are kernels for, the file that has them, and how many of the shapes they have.
static const struct {
    tn_dtype dtype;
    int32_t module, n_shapes;
} types[] = {
    {TN_TYPE_Q4_K, TN_CUDA_MODULE_gemm_blocks, 8},
    {TN_TYPE_Q6_K, TN_CUDA_MODULE_gemm_blocks, 8},
    {TN_TYPE_Q2_K, TN_CUDA_MODULE_gemm_blocks_k, 4},
    {TN_TYPE_Q3_K, TN_CUDA_MODULE_gemm_blocks_k, 4},
    {TN_TYPE_Q5_K, TN_CUDA_MODULE_gemm_blocks_k, 4},
    {TN_TYPE_Q8_0, TN_CUDA_MODULE_gemm_blocks_k, 4},
    {TN_TYPE_Q4_0, TN_CUDA_MODULE_gemm_blocks_legacy, 4},
    {TN_TYPE_Q4_1, TN_CUDA_MODULE_gemm_blocks_legacy, 4},
    {TN_TYPE_Q5_0, TN_CUDA_MODULE_gemm_blocks_legacy, 4},
    {TN_TYPE_Q5_1, TN_CUDA_MODULE_gemm_blocks_legacy, 4},
    {TN_TYPE_IQ4_NL, TN_CUDA_MODULE_gemm_blocks_table, 4},
    {TN_TYPE_IQ4_XS, TN_CUDA_MODULE_gemm_blocks_table, 4},
    {TN_TYPE_MXFP4, TN_CUDA_MODULE_gemm_blocks_table, 4},
};

// Two types whose weights can share a launch, the file that has its kernels, and how many of the shapes.
static const struct {
    tn_dtype type, other;
    int32_t module, n_shapes;
} pair = {TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_CUDA_MODULE_gemm_blocks_pair, 4};

// The row of a type; -1: there are no kernels for it.
static int32_t row_of(tn_dtype type)
{
    for (size_t i = 0; i < TN_COUNT(types); i++)
        if (types[i].dtype == type) return (int32_t)i;
    return -1;
}

// Bytes of a row that a plane has for TN_GEMM_BLOCK_K elements.
static int32_t plane_bytes(tn_dtype type, int32_t plane)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(type, &layout);
    return layout.plane_bytes[plane] * (int32_t)(TN_GEMM_BLOCK_K / tn_dtype_block_elems(type));
}

static bool is_copied(tn_dtype type, int32_t plane)
{
    return plane_bytes(type, plane) > 0 && plane_bytes(type, plane) % 16 == 0;
}

// Rows of planes that tensor copies bring start at multiples of 16 bytes.
static bool rows_aligned(const tn_view *w)
{
    tn_cuda_weight planes = tn_cuda_weight_planes(w);
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        if (is_copied(w->dtype, p) && planes.row_size[p] % 16 != 0) return false;
    return true;
}

static bool is_any(const tn_product *p)
{
    bool silu = p->glu && p->glu->act == TN_UNARY_SILU && p->glu->limit <= 0.0f && p->glu->alpha <= 0.0f;
    return p->glu ? !silu : p->act != TN_UNARY_NONE;
}

// Whether threads of a block can hold a row of x; data may be NULL.
static bool rows_held(const tn_product *p)
{
    int64_t stride = tn_cuda_row_stride(p->x);
    const void *norm = p->norm ? p->norm->data : NULL;
    return p->k / 8 <= 2 * X_MOST_THREADS && stride > 0 && stride % 16 == 0 &&
           ((uintptr_t)p->x->data | (uintptr_t)norm) % 16 == 0;
}

bool tn_cuda_gemm_blocks_fits(const tn_cuda *cuda, const tn_product *p, int32_t mode)
{
    if (cuda->compute != 90 || mode != TN_GEMM_F16 || p->k % TN_GEMM_BLOCK_K != 0) return false;
    if (p->glu && p->w[0]->dtype != p->w[1]->dtype) return false;
    for (int32_t i = 0; i < p->n_weights; i++)
        if (row_of(p->w[i]->dtype) < 0 || !rows_aligned(p->w[i])) return false;
    return true;
}

bool tn_cuda_gemm_blocks_accepts(const tn_cuda *cuda, const tn_product *p, int32_t mode)
{
    bool rows_fit = p->m >= MIN_ROWS && (p->m <= MAX_ROWS_SHORT || p->k >= LONG_K);
    return !p->ids && rows_fit && tn_cuda_gemm_blocks_fits(cuda, p, mode);
}

// Of a gated pair its x goes through the kernel that holds rows in registers, which makes the powers of two.
bool tn_cuda_gemm_blocks_packs(const tn_cuda *cuda, const tn_step *step)
{
    enum { RUN = 16 }; // columns whose order changes
    tn_product p = tn_product_get(step);
    bool accepts = tn_cuda_gemm_operands_fit(cuda, &p) &&
                   tn_cuda_gemm_blocks_accepts(cuda, &p, tn_cuda_gemm_mode(cuda, &p, step->precision));
    if (!accepts || !p.glu) return accepts;
    return !is_any(&p) && !p.bias[0] && !p.bias[1] && p.w[0]->ne[2] % RUN == 0 && rows_held(&p);
}

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

// --- how a product is divided -----------------------------------------------------------------------

// Whether no weight before has this type: weights of one type share a launch.
static bool is_first(const tn_product *p, int32_t weight)
{
    for (int32_t i = 0; i < weight; i++)
        if (p->w[i]->dtype == p->w[weight]->dtype) return false;
    return true;
}

// Of the weights of a type.
static extent extent_of(const tn_product *p, tn_dtype type)
{
    extent e = {.m = p->m, .k = p->k, .glu = p->glu != NULL, .any = is_any(p)};
    for (int32_t i = 0; i < p->n_weights; i++)
        if (p->w[i]->dtype == type) e.n[e.n_weights++] = p->w[i]->ne[2];
    return e;
}

// Bytes of the sums of a tile.
static int64_t sums_of(const shape *s)
{
    return (int64_t)s->rows * s->columns * (int64_t)sizeof(float);
}

static int64_t tiles_n_of(const extent *e, const shape *s)
{
    int64_t n = 0;
    for (int32_t i = 0; i < e->n_weights; i++) n += tn_div_up(e->n[i], s->rows);
    return e->glu ? tn_div_up(2 * e->n[0], s->rows) : n;
}

// Whole tiles: rounds of them, each with a start and an end (ns; of 128 KB of sums).
static cut whole(const tn_cuda *cuda, const extent *e, const shape *s)
{
    enum { START = 4000, END = 5000 };
    cut c = {.shape = s, .tiles_m = tn_div_up(e->m, s->columns), .tiles_n = tiles_n_of(e, s)};
    int64_t tiles = c.tiles_m * c.tiles_n;
    c.blocks = e->any ? tiles : TN_MIN(tiles, cuda->n_sms);
    c.time =
        tn_div_up(tiles, cuda->n_sms) * (e->k / TN_GEMM_BLOCK_K * s->slice + START + END * sums_of(s) / SUMS);
    return c;
}

// The estimated time of equal shares: the sums of each part of a tile are written to memory, and added by a
// second launch, whose time follows the number of parts of all blocks (ns, H200; with 128 parts 6 us, with
// 356 28).
static void set_time(cut *c, int64_t per_tile)
{
    enum { ENDS = 4000, STORE = 2500, ADD = 85, ADD_LESS = 4500 };
    int64_t tiles = c->tiles_m * c->tiles_n;
    int64_t parts = tn_div_up(c->share - 1, per_tile) + 1; // of tiles that a block may have
    c->time = c->share * c->shape->slice + ENDS - ADD_LESS +
              (parts * STORE + (c->blocks + tiles) * ADD) * sums_of(c->shape) / SUMS;
}

static cut shared(const tn_cuda *cuda, const extent *e, const shape *s)
{
    cut c = whole(cuda, e, s);
    int64_t per_tile = e->k / TN_GEMM_BLOCK_K, slices = c.tiles_m * c.tiles_n * per_tile;
    c.share = tn_div_up(slices, cuda->n_sms);
    c.blocks = tn_div_up(slices, c.share);
    set_time(&c, per_tile);
    return c;
}

// Equal shares of weights of two types: no block has some of both.
static cut shared_pair(const tn_cuda *cuda, const extent *e, const extent *other, const shape *s)
{
    cut c = whole(cuda, e, s);
    int64_t per_tile = e->k / TN_GEMM_BLOCK_K, others = tiles_n_of(other, s);
    int64_t slices[2] = {c.tiles_m * c.tiles_n * per_tile, c.tiles_m * others * per_tile};
    c.other_tile = c.tiles_n, c.tiles_n += others;
    c.share = tn_div_up(slices[0] + slices[1], cuda->n_sms);
    while (tn_div_up(slices[0], c.share) + tn_div_up(slices[1], c.share) > cuda->n_sms) c.share++;
    c.first_blocks = tn_div_up(slices[0], c.share);
    c.blocks = c.first_blocks + tn_div_up(slices[1], c.share);
    set_time(&c, per_tile);
    return c;
}

// More rows of tiles than of the widest shape expand the weights more often: estimates are too good.
static bool is_narrow(int64_t m, const shape *s)
{
    return s->rows == shapes[0].rows && tn_div_up(m, s->columns) > tn_div_up(m, shapes[0].columns);
}

static cut select_cut(const tn_cuda *cuda, const extent *e, tn_dtype type)
{
    cut best = {.time = INT64_MAX};
    for (int32_t i = 0; i < types[row_of(type)].n_shapes; i++) {
        if (is_narrow(e->m, &shapes[i])) continue;
        cut all[] = {whole(cuda, e, &shapes[i]), shared(cuda, e, &shapes[i])};
        for (int32_t j = 0; j < 2; j++)
            if (all[j].time < best.time) best = all[j];
    }
    return best;
}

// A launch of the products: the weights of a type, or of two.
typedef struct group {
    tn_dtype type, other; // other: type if there is none
    cut cut;
} group;

// Whether the weights are of the two types of `pair` and take less time together; then `to` is that launch.
static bool select_pair(const tn_cuda *cuda, const tn_product *p, group *to)
{
    extent e = extent_of(p, pair.type), other = extent_of(p, pair.other);
    if (p->glu || e.n_weights == 0 || other.n_weights == 0 || e.n_weights + other.n_weights < p->n_weights)
        return false;
    if (cuda->n_sms < 2) return false; // each type has blocks of its own
    int64_t apart = select_cut(cuda, &e, pair.type).time + select_cut(cuda, &other, pair.other).time;
    *to = (group){pair.type, pair.other, {.time = INT64_MAX}};
    for (int32_t i = 0; i < pair.n_shapes; i++) {
        const shape *s = &shapes[i];
        if (is_narrow(p->m, s) || tn_div_up(p->m, s->columns) > s->group_m) continue;
        cut c = shared_pair(cuda, &e, &other, s);
        if (c.time < to->cut.time) to->cut = c;
    }
    return to->cut.time < apart;
}

// The launches of a product; returns how many there are.
static int32_t select_groups(const tn_cuda *cuda, const tn_product *p,
                             group (*groups)[TN_PRODUCT_MAX_WEIGHTS])
{
    int32_t n = 0;
    if (select_pair(cuda, p, &(*groups)[0])) return 1;
    for (int32_t i = 0; i < p->n_weights; i++) {
        if (!is_first(p, i)) continue;
        tn_dtype type = p->w[i]->dtype;
        extent e = extent_of(p, type);
        (*groups)[n++] = (group){type, type, select_cut(cuda, &e, type)};
    }
    return n;
}

// --- scratch -----------------------------------------------------------------------------------------

// The scratch has rows of x, their scales, powers of two for rows of the result, two norms, and the shared
// sums of the launches, one after another.
static size_t sums_at(const tn_product *p)
{
    return aligned(p->m * p->k * 2) + 2 * aligned(p->m * 4) + ALIGN;
}

static float *powers_at(const tn_cuda_launch *l, const tn_product *p)
{
    return (float *)(void *)(l->scratch + aligned(p->m * p->k * 2) + aligned(p->m * 4));
}

// The place of the sums of a part is the number of its block plus that of its tile (gemm_blocks_sums.cuh).
static size_t sums_size(const cut *c)
{
    return c->share ? (size_t)((c->blocks + c->tiles_m * c->tiles_n) * sums_of(c->shape)) : 0;
}

size_t tn_cuda_gemm_blocks_scratch(const tn_cuda *cuda, const tn_product *p)
{
    group groups[TN_PRODUCT_MAX_WEIGHTS];
    size_t size = sums_at(p);
    int32_t n = select_groups(cuda, p, &groups);
    for (int32_t i = 0; i < n; i++) size += sums_size(&groups[i].cut);
    return size;
}

// --- launches ----------------------------------------------------------------------------------------

// Of the weights, those from `others` on have the second type.
static tn_status make_maps(const tn_cuda_launch *l, tn_cuda_gemm_blocks_args *a, const group *g,
                           int32_t others)
{
    tn_cuda_boxes x = {.data = a->x,
                       .rows = a->m,
                       .row_bytes = 2 * (int64_t)a->k,
                       .row_stride = 2 * (int64_t)a->k,
                       .box_bytes = TN_GEMM_X_K * 2,
                       .box_rows = a->x_rows,
                       .l2_bytes = 256};
    tn_status status = tn_cuda_map_boxes(l, &x, &a->x_map);
    for (int32_t i = 0; i < a->n_segs; i++)
        for (int32_t p = 0; p < TN_CUDA_MAX_PLANES && status == TN_OK; p++) {
            tn_cuda_gemm_blocks_seg *seg = &a->seg[i];
            tn_dtype type = i < others ? g->type : g->other;
            int32_t bytes = plane_bytes(type, p);
            if (!is_copied(type, p)) continue;
            tn_cuda_boxes w = {.data = seg->w.plane[p],
                               .rows = seg->n_rows,
                               .row_bytes = a->k / TN_GEMM_BLOCK_K * bytes,
                               .row_stride = seg->w.row_size[p],
                               .box_bytes = TN_MIN(bytes, 128),
                               .box_rows = g->cut.shape->rows / 2,
                               .l2_bytes = 256};
            status = tn_cuda_map_boxes(l, &w, &seg->map[p]);
        }
    return status;
}

// Bytes of a slot with weights of a tile.
static int32_t slot_of(const shape *s, tn_dtype type)
{
    int32_t slot = 0;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        slot += (int32_t)tn_div_up(s->rows * plane_bytes(type, p), 128) * 128;
    return (int32_t)tn_div_up(slot, SWIZZLE) * SWIZZLE;
}

// Slots of weights and stages of x: three slots, if four stages fit beside them.
static void set_rings(const tn_cuda *cuda, const group *g, tn_cuda_gemm_blocks_args *a, tn_cuda_grid *grid)
{
    const shape *s = g->cut.shape;
    int32_t slot = TN_MAX(slot_of(s, g->type), slot_of(s, g->other));
    int32_t stage = s->columns * TN_GEMM_X_K * 2, most = cuda->max_shared - SWIZZLE - STATIC_SHARED;
    a->slots = most - 3 * slot >= 4 * stage ? 3 : 2;
    a->stages = TN_MIN(MAX_RING, (most - a->slots * slot) / stage);
    int32_t rings = a->slots * slot + a->stages * stage;
    grid->shared = (uint32_t)(TN_MAX(rings, (int32_t)sums_of(s)) + SWIZZLE);
}

// Adds the sums of tiles that blocks share.
static tn_status add_shares(const tn_cuda_launch *l, const tn_cuda_gemm_blocks_args *a, const cut *c)
{
    char name[48];
    snprintf(name, sizeof name, "tn_gemm_blocks_add_%d%s", c->shape->columns, a->any ? "_any" : "");
    int64_t blocks = c->tiles_m * c->tiles_n * (sums_of(c->shape) / 16 / ADD_THREADS);
    tn_cuda_grid grid = {.x = (uint32_t)blocks, .y = 1, .z = 1, .threads = ADD_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_gemm_blocks, name, &grid, a);
}

// `a` has operands and sizes; tiles, rings and maps are set here. `others`: the first weight of the second
// type.
static tn_status run(const tn_cuda_launch *l, tn_cuda_gemm_blocks_args *a, const group *g, int32_t others)
{
    const cut *c = &g->cut;
    // Rows behind the last one cost more time than those that exist (gemm_wgmma.cuh).
    a->x_rows = (int32_t)TN_MIN(tn_div_up(a->m, SWIZZLE_ROWS) * SWIZZLE_ROWS, c->shape->columns);
    tn_status status = make_maps(l, a, g, others);
    if (status != TN_OK) return status;
    for (int32_t i = 0, n = 0; i < a->n_segs; i++) {
        a->seg[i].first_tile = n;
        if (!a->glu) n += (int32_t)tn_div_up(a->seg[i].n, c->shape->rows);
    }
    a->tiles_m = (int32_t)c->tiles_m;
    a->tiles_n = (int32_t)c->tiles_n;
    a->group_m = c->shape->group_m;
    a->share = (int32_t)c->share;
    a->other_tile = (int32_t)c->other_tile, a->first_blocks = (int32_t)c->first_blocks;
    tn_cuda_grid grid = {.x = (uint32_t)c->blocks, .y = 1, .z = 1, .threads = (uint32_t)c->shape->threads};
    set_rings(l->cuda, g, a, &grid);
    char name[64];
    bool two = g->other != g->type;
    snprintf(name, sizeof name, "tn_gemm_blocks_%s%s%s_%d", tn_dtype_name(g->type), two ? "_" : "",
             two ? tn_dtype_name(g->other) : "", c->shape->columns);
    return tn_cuda_run(l, two ? pair.module : types[row_of(g->type)].module, name, &grid, a);
}

// --- experts -----------------------------------------------------------------------------------------

// The shape for experts with so many rows of x on average: the narrower one of the first two that holds them.
static const shape *shape_for(tn_dtype type, int64_t rows)
{
    bool narrow = types[row_of(type)].n_shapes > 1 && rows <= shapes[1].columns;
    return &shapes[narrow ? 1 : 0];
}

int32_t tn_cuda_gemm_blocks_tile_rows(tn_dtype type, int64_t rows)
{
    return shape_for(type, rows)->columns;
}

// How many tiles there are is known on the device alone: a.m is the most rows that there can be.
tn_status tn_cuda_gemm_blocks_run(const tn_cuda_launch *l, tn_cuda_gemm_blocks_args *a, const tn_product *p,
                                  int32_t tile_rows)
{
    tn_dtype type = p->w[0]->dtype;
    extent e = extent_of(p, type);
    e.m = a->m;
    a->x = l->scratch;
    a->any = e.any;
    group g = {type, type, whole(l->cuda, &e, shape_for(type, tile_rows))};
    return run(l, a, &g, a->n_segs);
}

// --- products without experts ------------------------------------------------------------------------

// Adds the weights of a type to the arguments of a launch.
static void add_weights(const tn_product *p, tn_dtype type, tn_cuda_gemm_blocks_args *a)
{
    for (int32_t i = 0; i < p->n_weights; i++) {
        if (p->w[i]->dtype != type) continue;
        const tn_view *y = p->y[p->glu ? 0 : i], *bias = p->bias[i];
        a->seg[a->n_segs++] = (tn_cuda_gemm_blocks_seg){.w = tn_cuda_weight_planes(p->w[i]),
                                                        .y = y->data,
                                                        .bias = bias ? bias->data : NULL,
                                                        .ld = y->ne[3],
                                                        .n = (int32_t)p->w[i]->ne[2],
                                                        .n_rows = (int32_t)p->w[i]->ne[2]};
    }
}

// Arguments of a launch but its weights.
static tn_cuda_gemm_blocks_args args_of(const tn_cuda_launch *l, const tn_product *p)
{
    tn_cuda_gemm_blocks_args a;
    memset(&a, 0, sizeof a);
    a.m = (int32_t)p->m;
    a.k = (int32_t)p->k;
    a.act = tn_cuda_gemm_act(p);
    a.any = is_any(p);
    a.glu = p->glu != NULL;
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    if (p->residual) {
        a.residual = p->residual->data;
        a.residual_ld = tn_cuda_row_stride(p->residual) / (int64_t)sizeof(float);
    }
    a.x = l->scratch;
    a.row_scale = (const float *)(const void *)(l->scratch + aligned(p->m * p->k * 2));
    if (l->reads_packed16) { // attention leaves values as they are
        const char *x = p->x->data;
        bool scaled = tn_product_form_get(l->step[-1].op) != NULL;
        a.x = x;
        a.row_scale = scaled ? (const float *)(const void *)(x + 2 * p->m * p->k) : NULL;
    }
    if (l->writes_packed16) a.y_power = powers_at(l, p);
    return a;
}

// For a gated pair that is left as f16 rows: norms of its weights, which are measured in each run if memory
// did not suffice to keep them, or if steps make the weights.
static tn_status set_packing(const tn_cuda_launch *l, const tn_product *p, tn_cuda_gemm_blocks_x_args *a,
                             bool *measures)
{
    const float **norms[] = {&a->norm_gate, &a->norm_up};
    a->y_power = powers_at(l, p);
    a->y_scale = (float *)(void *)((char *)p->y[0]->data + 2 * tn_view_n_elems(p->y[0]));
    float *measured = a->y_power + aligned(p->m * 4) / sizeof(float);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < 2 && status == TN_OK; i++) {
        *norms[i] = tn_cuda_gemm_derived(l, TN_GEMM_NORM, p->w[i]);
        if (*norms[i]) continue;
        *norms[i] = measured + i;
        *measures = true;
        status = tn_cuda_gemm_measure(l, p->w[i], measured + i);
    }
    return status;
}

// Rows of x into scratch: by threads that hold a row in registers if it is not too long, and aligned.
static tn_status prepare_x(const tn_cuda_launch *l, const tn_product *p)
{
    float *row_scale = (float *)(void *)(l->scratch + aligned(p->m * p->k * 2));
    if (!rows_held(p)) {
        tn_cuda_gemm_x_args x = {.to = l->scratch,
                                 .row_scale = row_scale,
                                 .m = (int32_t)p->m,
                                 .ld = p->k,
                                 .mode = TN_GEMM_F16_EVEN_FIRST};
        return tn_cuda_gemm_prepare_x(l, x, p);
    }
    tn_cuda_gemm_blocks_x_args a = {.x = p->x->data,
                                    .stride = tn_cuda_row_stride(p->x),
                                    .to = (uint16_t *)(void *)l->scratch,
                                    .row_scale = row_scale,
                                    .norm = p->norm ? p->norm->data : NULL,
                                    .eps = p->eps,
                                    .m = (int32_t)p->m,
                                    .k = (int32_t)p->k};
    bool measures = false;
    tn_status status = l->writes_packed16 ? set_packing(l, p, &a, &measures) : TN_OK;
    if (status != TN_OK) return status;
    int64_t pieces = p->k / 8;
    int64_t each = pieces <= X_ONE_PIECE ? 1 : 2, threads = tn_div_up(tn_div_up(pieces, each), 32) * 32;
    int64_t resident = l->cuda->n_sms * (X_RESIDENT / threads);
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(p->m, resident), .y = 1, .z = 1, .threads = (uint32_t)threads};
    grid.alone = measures; // norms are loaded before the predecessor has ended
    const char *name = each == 1 ? "tn_gemm_blocks_x_1" : "tn_gemm_blocks_x_2";
    return tn_cuda_run(l, TN_CUDA_MODULE_gemm_blocks_x, name, &grid, &a);
}

// Shared sums are added after the products of all weights, so that a product does not wait for them.
tn_status tn_cuda_gemm_blocks_launch(const tn_cuda_launch *l, const tn_product *p)
{
    tn_status status = l->reads_packed16 ? TN_OK : prepare_x(l, p);
    tn_cuda_gemm_blocks_args a[TN_PRODUCT_MAX_WEIGHTS];
    group groups[TN_PRODUCT_MAX_WEIGHTS];
    int32_t n = select_groups(l->cuda, p, &groups);
    size_t at = sums_at(p);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        a[i] = args_of(l, p);
        add_weights(p, groups[i].type, &a[i]);
        int32_t others = a[i].n_segs;
        if (groups[i].other != groups[i].type) add_weights(p, groups[i].other, &a[i]);
        a[i].partial = (float *)(void *)(l->scratch + at);
        at += sums_size(&groups[i].cut);
        status = run(l, &a[i], &groups[i], others);
    }
    for (int32_t i = 0; i < n && status == TN_OK; i++)
        if (groups[i].cut.share) status = add_shares(l, &a[i], &groups[i].cut);
    return status;
}
