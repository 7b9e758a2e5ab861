// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of 65 and more rows whose weights of block types are multiplied as they are
// (gemm_blocks.cuh): which products those are, and how they are cut into tiles and clusters.
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/runtime/tensor_map.h"

#include "core/compiler.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MIN_ROWS = 65, // product/skinny has kernels for fewer
    // With more rows expanding the weights to memory once costs less than expanding them for each 256 rows:
    // prefill of 1B Q4_K_M in batches of 2048 ran at 178k tokens per second here and at 194k so, of 8B
    // at 33.5k both ways; at 1024 rows 8B gains 6 % here (H200).
    MAX_ROWS = 1024,
    THREADS = 384,  // of a block: a warpgroup that copies and two that multiply
    SWIZZLE = 1024, // bytes that swizzled matrices are aligned to
    STATIC_SHARED = 1024,
    MAX_RING = 8,         // slots or stages, GEMM_MAX_RING
    ALIGN = 256,          // of the parts of the scratch, bytes
    SUMS = 128 * 256 * 4, // bytes of the sums of a tile
};

// A tile: rows of weights by rows of x, and how many rows of tiles are walked through together, so that
// their operands stay in L2.
typedef struct shape {
    int32_t rows, columns, group_m;
    double stage; // ns of a stage of 64 of k, H200
} shape;
// Measured with Q4_K (2026-11-23).
static const shape shapes[] = {{128, 256, 8, 760.0}, {256, 128, 16, 1050.0}};

typedef struct cut {
    const shape *shape;
    int32_t splits;
    double time; // ns, estimated
} cut;

// The types that there are kernels for, the file that has them, and how many of the shapes they have.
static const struct {
    tn_dtype dtype;
    int32_t module, n_shapes;
} types[] = {
    {TN_TYPE_Q4_K, TN_CUDA_MODULE_gemm_blocks, 2},
    {TN_TYPE_Q6_K, TN_CUDA_MODULE_gemm_blocks, 2},
    {TN_TYPE_Q2_K, TN_CUDA_MODULE_gemm_blocks_k, 1},
    {TN_TYPE_Q3_K, TN_CUDA_MODULE_gemm_blocks_k, 1},
    {TN_TYPE_Q5_K, TN_CUDA_MODULE_gemm_blocks_k, 1},
    {TN_TYPE_Q8_0, TN_CUDA_MODULE_gemm_blocks_k, 1},
    {TN_TYPE_Q4_0, TN_CUDA_MODULE_gemm_blocks_legacy, 1},
    {TN_TYPE_Q4_1, TN_CUDA_MODULE_gemm_blocks_legacy, 1},
    {TN_TYPE_Q5_0, TN_CUDA_MODULE_gemm_blocks_legacy, 1},
    {TN_TYPE_Q5_1, TN_CUDA_MODULE_gemm_blocks_legacy, 1},
    {TN_TYPE_IQ4_NL, TN_CUDA_MODULE_gemm_blocks_table, 1},
    {TN_TYPE_IQ4_XS, TN_CUDA_MODULE_gemm_blocks_table, 1},
    {TN_TYPE_MXFP4, TN_CUDA_MODULE_gemm_blocks_table, 1},
};

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
    return !p->ids && p->m >= MIN_ROWS && p->m <= MAX_ROWS && tn_cuda_gemm_blocks_fits(cuda, p, mode);
}

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

size_t tn_cuda_gemm_blocks_scratch(const tn_product *p)
{
    return aligned(p->m * p->k * 2) + aligned(p->m * 4);
}

// --- how a product is cut ----------------------------------------------------------------------------

static int64_t count_tiles(const tn_cuda_gemm_blocks_args *a, const shape *s)
{
    int64_t n = 0;
    for (int32_t i = 0; i < a->n_segs; i++) n += a->glu ? 0 : tn_div_up(a->seg[i].n, s->rows);
    if (a->glu) n = tn_div_up(2 * (int64_t)a->seg[0].n, s->rows);
    return n * tn_div_up(a->m, s->columns);
}

// Blocks of clusters of 4 and 8 do not fill all multiprocessors, because a cluster lies within one group of
// them: 29 clusters of 4 and 14 of 8 were measured to run at a time on an H200.
static int64_t resident(const tn_cuda *cuda, int32_t splits)
{
    return splits <= 2 ? cuda->n_sms : (cuda->n_sms - cuda->n_sms / 8) / splits * splits;
}

// Estimated time: waves of blocks, and for a cluster the exchange of its sums.
static cut cut_of(const tn_cuda *cuda, const tn_cuda_gemm_blocks_args *a, const shape *s, int32_t splits)
{
    int64_t waves = tn_div_up(count_tiles(a, s) * splits, resident(cuda, splits));
    double stages = (double)tn_div_up(a->k / TN_GEMM_BLOCK_K, splits) * (TN_GEMM_BLOCK_K / TN_GEMM_X_K);
    double ends = splits > 2 ? 7000.0 : splits > 1 ? 5000.0 : 3000.0;
    return (cut){s, splits, (double)waves * (stages * s->stage + ends)};
}

static cut select_cut(const tn_cuda *cuda, const tn_cuda_gemm_blocks_args *a, tn_dtype type)
{
    cut best = {.time = INFINITY};
    for (int32_t i = 0; i < types[row_of(type)].n_shapes; i++)
        for (int32_t s = 1; s <= TN_GEMM_MAX_SPLITS && s <= a->k / TN_GEMM_BLOCK_K; s *= 2) {
            cut c = cut_of(cuda, a, &shapes[i], s);
            if (c.time < best.time) best = c;
        }
    return best;
}

// --- launches ----------------------------------------------------------------------------------------

static tn_status make_maps(const tn_cuda_launch *l, tn_cuda_gemm_blocks_args *a, const shape *s,
                           tn_dtype type)
{
    tn_cuda_boxes x = {.data = l->scratch,
                       .rows = a->m,
                       .row_bytes = 2 * (int64_t)a->k,
                       .row_stride = 2 * (int64_t)a->k,
                       .box_bytes = TN_GEMM_X_K * 2,
                       .box_rows = s->columns,
                       .l2_bytes = 256};
    tn_status status = tn_cuda_map_boxes(l, &x, &a->x_map);
    for (int32_t i = 0; i < a->n_segs; i++)
        for (int32_t p = 0; p < TN_CUDA_MAX_PLANES && status == TN_OK; p++) {
            tn_cuda_gemm_blocks_seg *seg = &a->seg[i];
            int32_t bytes = plane_bytes(type, p);
            if (!is_copied(type, p)) continue;
            tn_cuda_boxes w = {.data = seg->w.plane[p],
                               .rows = seg->n_rows,
                               .row_bytes = a->k / TN_GEMM_BLOCK_K * bytes,
                               .row_stride = seg->w.row_size[p],
                               .box_bytes = TN_MIN(bytes, 128),
                               .box_rows = s->rows / 2,
                               .l2_bytes = 256};
            status = tn_cuda_map_boxes(l, &w, &seg->map[p]);
        }
    return status;
}

// Slots of weights and stages of x: three slots, if four stages fit beside them.
static void set_rings(const tn_cuda *cuda, const shape *s, tn_dtype type, tn_cuda_gemm_blocks_args *a,
                      tn_cuda_grid *grid)
{
    int32_t slot = 0, stage = s->columns * TN_GEMM_X_K * 2, most = cuda->max_shared - SWIZZLE - STATIC_SHARED;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        slot += (int32_t)tn_div_up(s->rows * plane_bytes(type, p), 128) * 128;
    slot = (int32_t)tn_div_up(slot, SWIZZLE) * SWIZZLE;
    a->slots = most - 3 * slot >= 4 * stage ? 3 : 2;
    a->stages = TN_MIN(MAX_RING, (most - a->slots * slot) / stage);
    int32_t rings = a->slots * slot + a->stages * stage;
    grid->shared = (uint32_t)(TN_MAX(rings, SUMS) + SWIZZLE);
}

// `a` has operands and sizes; tiles, rings and maps are set here.
static tn_status run(const tn_cuda_launch *l, tn_cuda_gemm_blocks_args *a, tn_dtype type, cut c)
{
    bool silu = a->act == TN_UNARY_SILU && a->glu_limit <= 0.0f && a->glu_alpha <= 0.0f;
    bool any = a->glu ? !silu : a->act != TN_UNARY_NONE;
    tn_status status = make_maps(l, a, c.shape, type);
    if (status != TN_OK) return status;
    for (int32_t i = 0, n = 0; i < a->n_segs; i++) {
        a->seg[i].first_tile = n;
        if (!a->glu) n += (int32_t)tn_div_up(a->seg[i].n, c.shape->rows);
    }
    int64_t tiles = count_tiles(a, c.shape);
    a->tiles_m = (int32_t)tn_div_up(a->m, c.shape->columns);
    a->tiles_n = (int32_t)(tiles / a->tiles_m);
    a->group_m = c.shape->group_m;
    a->splits = c.splits;
    a->any = any;
    a->by_shared = c.splits > 1 || any;
    // How many tiles of experts there are is known on the device alone.
    int64_t blocks = a->by_shared ? tiles * c.splits : TN_MIN(tiles, l->cuda->n_sms);
    tn_cuda_grid grid = {
        .x = (uint32_t)blocks, .y = 1, .z = 1, .threads = THREADS, .cluster = (uint32_t)c.splits};
    set_rings(l->cuda, c.shape, type, a, &grid);
    char name[48];
    snprintf(name, sizeof name, "tn_gemm_blocks_%s_%d", tn_dtype_name(type), c.shape->columns);
    return tn_cuda_run(l, types[row_of(type)].module, name, &grid, a);
}

// --- experts -----------------------------------------------------------------------------------------

// The shape for experts with so many rows of x on average: the narrowest one that holds them.
static const shape *shape_for(tn_dtype type, int64_t rows)
{
    const shape *best = &shapes[0];
    for (int32_t i = 1; i < types[row_of(type)].n_shapes; i++)
        if (rows <= shapes[i].columns) best = &shapes[i];
    return best;
}

int32_t tn_cuda_gemm_blocks_tile_rows(tn_dtype type, int64_t rows)
{
    return shape_for(type, rows)->columns;
}

tn_status tn_cuda_gemm_blocks_run(const tn_cuda_launch *l, tn_cuda_gemm_blocks_args *a, tn_dtype type,
                                  int32_t tile_rows)
{
    return run(l, a, type, (cut){.shape = shape_for(type, tile_rows), .splits = 1});
}

// --- products without experts ------------------------------------------------------------------------

// Arguments of the launch for the weights from `first` on that have its type, which are marked as done.
static tn_cuda_gemm_blocks_args weights_of(const tn_cuda_launch *l, const tn_product *p, int32_t first,
                                           bool done[TN_PRODUCT_MAX_WEIGHTS])
{
    tn_cuda_gemm_blocks_args a;
    memset(&a, 0, sizeof a);
    a.m = (int32_t)p->m;
    a.k = (int32_t)p->k;
    a.act = tn_cuda_gemm_act(p);
    a.glu = p->glu != NULL;
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    if (p->residual) {
        a.residual = p->residual->data;
        a.residual_ld = tn_cuda_row_stride(p->residual) / (int64_t)sizeof(float);
    }
    a.row_scale = (const float *)(const void *)(l->scratch + aligned(p->m * p->k * 2));
    for (int32_t i = first; i < p->n_weights; i++) {
        if (p->w[i]->dtype != p->w[first]->dtype) continue;
        const tn_view *y = p->y[p->glu ? 0 : i], *bias = p->bias[i];
        a.seg[a.n_segs++] = (tn_cuda_gemm_blocks_seg){.w = tn_cuda_weight_planes(p->w[i]),
                                                      .y = y->data,
                                                      .bias = bias ? bias->data : NULL,
                                                      .ld = y->ne[3],
                                                      .n = (int32_t)p->w[i]->ne[2],
                                                      .n_rows = (int32_t)p->w[i]->ne[2]};
        done[i] = true;
    }
    return a;
}

tn_status tn_cuda_gemm_blocks_launch(const tn_cuda_launch *l, const tn_product *p)
{
    tn_cuda_gemm_x_args x = {.to = l->scratch,
                             .row_scale = (float *)(void *)(l->scratch + aligned(p->m * p->k * 2)),
                             .m = (int32_t)p->m,
                             .ld = p->k,
                             .mode = TN_GEMM_F16_EVEN_FIRST};
    tn_status status = tn_cuda_gemm_prepare_x(l, x, p);
    bool done[TN_PRODUCT_MAX_WEIGHTS] = {false};
    for (int32_t i = 0; i < p->n_weights && status == TN_OK; i++) {
        if (done[i]) continue;
        tn_cuda_gemm_blocks_args a = weights_of(l, p, i, done);
        status = run(l, &a, p->w[i]->dtype, select_cut(l->cuda, &a, p->w[i]->dtype));
    }
    return status;
}
