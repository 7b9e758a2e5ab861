// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of 9 to 88 rows (skinny.cuh, skinny_blocks.cuh, skinny_stream.cuh): the weights of each
// type share a launch.
#include "backends/cuda/product/skinny/skinny.h"
#include "backends/cuda/runtime/layout.h"

#include <stdio.h>
#include <string.h>

enum {
    ALIGN = 256, // of the parts of the scratch, bytes
    THREADS = 256,
    BLOCKS_PER_SM = 2,
    MAX_BLOCK_ROWS = 16 * TN_SKINNY_BLOCK_TILES * TN_SKINNY_BLOCK_MAX_WARPS,
    PREPARE_BLOCKS = 16, // for each multiprocessor at most; each then runs through several rows
};

// --- what is accepted --------------------------------------------------------------------------------

bool tn_cuda_skinny_fits(const tn_cuda *cuda, const tn_product *p)
{
    // Copies to shared memory, and more of it than 64 KiB: compute capability 8.0.
    if (cuda->compute < 80 || !tn_cuda_gemm_fits(cuda, p)) return false;
    if (p->m > TN_SKINNY_MAX_ROWS && p->m > tn_cuda_skinny_stream_rows(cuda, p)) return false;
    if (tn_cuda_skinny_uses_stream(cuda, p) && !tn_cuda_skinny_stream_fits(cuda, p)) return false;
    return !p->glu || p->w[0]->dtype == p->w[1]->dtype;
}

bool tn_cuda_skinny_block_type(tn_dtype type)
{
    tn_cuda_pack_args planes; // types that stay as in files run the general kernel
    return tn_cuda_layout_get(type, &planes);
}

bool tn_cuda_skinny_exact_type(tn_dtype type)
{
    return type == TN_TYPE_Q2_K || type == TN_TYPE_Q3_K || type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K ||
           type == TN_TYPE_Q6_K;
}

// --- scratch -----------------------------------------------------------------------------------------

// Where things are in the scratch, which begins with x: bytes from its start.
typedef struct layout {
    size_t scale;   // of rows of x
    size_t arrived; // n_arrived counters, one for each tile
    size_t partial; // partial sums of tiles that several blocks share
    size_t end;
    int64_t n_arrived;
    bool blocks; // weights of block types
} layout;

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

static int64_t row_elems(const tn_product *p)
{
    return tn_div_up(p->k, 8) * 8;
}

// Tiles of 32 rows of x.
static int64_t row_tiles(const tn_product *p)
{
    return tn_div_up(p->m, TN_SKINNY_BLOCK_COLUMNS);
}

size_t tn_cuda_skinny_block_x_size(int64_t n_tiles, int64_t k)
{
    // x has one of two orders; this is the size of the larger one.
    int64_t stage = TN_MAX(TN_SKINNY_BLOCK_STAGE, TN_SKINNY_STREAM_STAGE(TN_SKINNY_BLOCK_COLUMNS));
    return (size_t)(n_tiles * tn_div_up(k, TN_SKINNY_K) * stage);
}

static layout layout_of(const tn_cuda *cuda, const tn_product *p)
{
    int64_t y = row_tiles(p);
    layout s = {.blocks = tn_cuda_skinny_block_type(p->w[0]->dtype)};
    // No tile has fewer rows than this.
    for (int32_t i = 0; i < p->n_weights; i++)
        s.n_arrived += tn_div_up(p->w[i]->ne[2], TN_SKINNY_ROWS / 2) * y;
    // As many blocks as are resident.
    int64_t partial = s.blocks ? (int64_t)cuda->n_sms * 2 * y * TN_SKINNY_BLOCK_COLUMNS * MAX_BLOCK_ROWS
                               : (int64_t)BLOCKS_PER_SM * cuda->n_sms * p->m * TN_SKINNY_ROWS;
    int64_t plain_x = p->m * row_elems(p) * 2;
    s.scale = s.blocks ? aligned((int64_t)tn_cuda_skinny_block_x_size(y, p->k)) : aligned(plain_x);
    s.arrived = s.scale + aligned(y * TN_SKINNY_BLOCK_COLUMNS * 4);
    s.partial = s.arrived + aligned(4 * s.n_arrived);
    s.end = s.partial + aligned(4 * partial);
    return s;
}

size_t tn_cuda_skinny_dense_scratch(const tn_cuda *cuda, const tn_product *p)
{
    return layout_of(cuda, p).end;
}

// --- launches ----------------------------------------------------------------------------------------

// Weights of 16 bits: blocks that share a tile. The fewest waves of stages are selected; each block adds the
// cost of about two stages for its start and end.
static int32_t select_splits(const tn_cuda *cuda, int64_t n_tiles, int64_t n_stages)
{
    enum { START_AND_END = 2 };
    int32_t best = 1;
    int64_t least = INT64_MAX, resident = (int64_t)BLOCKS_PER_SM * cuda->n_sms;
    for (int32_t s = 1; s <= TN_SKINNY_MAX_SPLITS && s <= n_stages; s++) {
        int64_t cost = tn_div_up(n_tiles * s, resident) * (tn_div_up(n_stages, s) + START_AND_END);
        if (cost < least && (s == 1 || n_tiles * s <= resident)) best = s, least = cost;
    }
    return best;
}

// The kernel starts only when its predecessor has ended, unless tenon-check says otherwise: 32 sequences of
// 8B on an H200 take 8.0 ms a step with programmatic dependent launch, with kernels one after another 6.4.
static tn_status run_blocks(const tn_cuda_launch *l, tn_cuda_skinny_args *a, tn_dtype type,
                            int64_t n_row_tiles)
{
    int64_t columns = a->tile_group ? 1 : n_row_tiles; // blocks run through groups
    tn_cuda_skinny_shape s = tn_cuda_skinny_shape_select(l->cuda, a, type, columns);
    a->slots = s.slots;
    char name[48];
    snprintf(name, sizeof name, "tn_skinny_%s_%d", tn_dtype_name(type), s.rows);
    tn_cuda_grid grid = {.x = a->tile_group ? (uint32_t)l->cuda->n_sms : (uint32_t)s.blocks,
                         .y = (uint32_t)columns,
                         .z = 1,
                         .threads = 32 * (uint32_t)s.warps,
                         .shared = tn_cuda_skinny_shared_size(&s, type),
                         .alone = !l->cuda->variant.skinny_switch_dependent};
    int32_t module =
        tn_cuda_skinny_codebook_type(type) ? TN_CUDA_MODULE_skinny_codebook : TN_CUDA_MODULE_skinny_blocks;
    return tn_cuda_run(l, module, name, &grid, a);
}

static tn_status run_plain(const tn_cuda_launch *l, tn_cuda_skinny_args *a, tn_dtype type,
                           int64_t n_row_tiles)
{
    a->n_tiles = tn_cuda_skinny_set_tiles(a->seg, a->n_segs, a->glu, TN_SKINNY_ROWS);
    int32_t columns = a->m <= 32 ? 32 : 64;
    size_t stages = (size_t)TN_SKINNY_STAGES * (size_t)columns * (TN_SKINNY_K + TN_SKINNY_PAD) * 2;
    size_t sums = (size_t)4 * TN_SKINNY_ROWS * (size_t)(columns + TN_SKINNY_PAD) * sizeof(float);
    bool shares = n_row_tiles == 1 && a->arrived;
    a->splits = shares ? select_splits(l->cuda, a->n_tiles, tn_div_up(a->k, TN_SKINNY_K)) : 1;
    char name[48];
    snprintf(name, sizeof name, "tn_skinny_%s_%d", tn_dtype_name(type), columns);
    tn_cuda_grid grid = {.x = (uint32_t)(a->n_tiles * a->splits),
                         .y = (uint32_t)n_row_tiles,
                         .z = 1,
                         .alone = true,
                         .threads = THREADS,
                         .shared = (uint32_t)TN_MAX(stages, sums)};
    return tn_cuda_run(l, TN_CUDA_MODULE_skinny, name, &grid, a);
}

tn_status tn_cuda_skinny_run(const tn_cuda_launch *l, const tn_product *p, tn_cuda_skinny_args *a,
                             tn_dtype type, int64_t n_row_tiles)
{
    if (!tn_cuda_skinny_block_type(type)) return run_plain(l, a, type, n_row_tiles);
    if (!a->tile_group && tn_cuda_skinny_uses_stream(l->cuda, p))
        return tn_cuda_skinny_stream_run(l, a, type, type, 0);
    return run_blocks(l, a, type, n_row_tiles);
}

tn_status tn_cuda_skinny_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a, const tn_product *p)
{
    enum { WARP = 32, THREAD_ELEMS = 16, MOST_THREADS = 1024 };
    a.x = tn_cuda_view_of(p->x);
    a.norm = p->norm ? p->norm->data : NULL;
    a.eps = p->eps;
    a.k = (int32_t)p->k;
    bool dense = !a.row_from; // not of experts
    bool stream = dense && tn_cuda_skinny_uses_stream(l->cuda, p);
    a.tile_rows = stream ? tn_cuda_skinny_stream_columns(a.m) : TN_SKINNY_BLOCK_COLUMNS;
    int64_t rows = tn_div_up(a.m, a.tile_rows) * a.tile_rows;
    int64_t elems = tn_div_up(a.k, TN_SKINNY_K) * TN_SKINNY_K;
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(rows, PREPARE_BLOCKS * (int64_t)l->cuda->n_sms),
                         .y = 1,
                         .z = 1,
                         .threads =
                             (uint32_t)TN_MIN(MOST_THREADS, tn_div_up(elems, THREAD_ELEMS * WARP) * WARP)};
    return tn_cuda_run(l, TN_CUDA_MODULE_skinny_prepare, stream ? "tn_skinny_x_stream" : "tn_skinny_x", &grid,
                       &a);
}

// Where rows of x go in the scratch, and the counters that have to be zero.
static tn_cuda_gemm_x_args x_args(const tn_cuda_launch *l, const tn_product *p, const layout *s)
{
    bool f16 = p->w[0]->dtype != TN_TYPE_BF16;
    return (tn_cuda_gemm_x_args){.to = l->scratch,
                                 .m = (int32_t)p->m,
                                 .ld = row_elems(p),
                                 .mode = f16 ? TN_GEMM_F16 : TN_GEMM_BF16,
                                 .row_scale = f16 ? (float *)(void *)(l->scratch + s->scale) : NULL,
                                 .zero = (int32_t *)(void *)(l->scratch + s->arrived),
                                 .n_zero = (int32_t)s->n_arrived,
                                 .finite_rows = tn_cuda_weights_all(p, tn_cuda_skinny_exact_type)};
}

static void set_seg(const tn_product *p, int32_t i, tn_cuda_skinny_args *a)
{
    const tn_view *w = p->w[i];
    bool plain = !tn_cuda_skinny_block_type(w->dtype);
    a->seg[a->n_segs++] = (tn_cuda_skinny_seg){.w = tn_cuda_weight_planes(w),
                                               .y = p->y[i]->data,
                                               .bias = p->bias[i] ? p->bias[i]->data : NULL,
                                               .ld = p->y[i]->ne[3],
                                               .n = (int32_t)w->ne[2]};
    if (plain && ((uintptr_t)w->data % 16 != 0 || p->k % 16 != 0)) a->wide = 0;
}

// Adds the weights of a type, which are marked as done. Returns their number.
static int32_t add_weights(const tn_product *p, tn_dtype type, bool done[TN_PRODUCT_MAX_WEIGHTS],
                           tn_cuda_skinny_args *a)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_weights; i++) {
        if (p->w[i]->dtype != type) continue;
        set_seg(p, i, a);
        done[i] = true;
        n++;
    }
    return n;
}

// Arguments of a launch, without weights.
static tn_cuda_skinny_args common_args(const tn_cuda_launch *l, const tn_product *p, const layout *s,
                                       tn_dtype type)
{
    tn_cuda_skinny_args a;
    memset(&a, 0, sizeof a);
    a.ld = row_elems(p);
    if (p->residual) {
        a.residual = p->residual->data;
        a.residual_ld = tn_cuda_row_stride(p->residual) / (int64_t)sizeof(float);
    }
    a.m = (int32_t)p->m;
    a.k = (int32_t)p->k;
    a.wide = 1;
    a.act = tn_cuda_gemm_act(p);
    a.glu = p->glu != NULL;
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    a.x = l->scratch;
    if (type != TN_TYPE_BF16) a.row_scale = (const float *)(const void *)(l->scratch + s->scale);
    a.partial = (float *)(void *)(l->scratch + s->partial);
    return a;
}

tn_status tn_cuda_skinny_dense_launch(const tn_cuda_launch *l, const tn_product *p)
{
    layout s = layout_of(l->cuda, p);
    tn_cuda_gemm_x_args x = x_args(l, p, &s);
    tn_status status = l->quantised_x ? TN_OK
                       : s.blocks     ? tn_cuda_skinny_prepare_x(l, x, p)
                                      : tn_cuda_gemm_prepare_x(l, x, p);
    int32_t first_tile = 0;
    bool done[TN_PRODUCT_MAX_WEIGHTS] = {false};
    tn_dtype type, other;
    if (status == TN_OK && tn_cuda_skinny_uses_stream(l->cuda, p) &&
        tn_cuda_skinny_has_pair(p, &type, &other)) {
        tn_cuda_skinny_args a = common_args(l, p, &s, type);
        add_weights(p, type, done, &a);
        int32_t others = add_weights(p, other, done, &a);
        return tn_cuda_skinny_stream_run(l, &a, type, other, others);
    }
    for (int32_t i = 0; i < p->n_weights && status == TN_OK; i++) {
        if (done[i]) continue;
        tn_cuda_skinny_args a = common_args(l, p, &s, p->w[i]->dtype);
        add_weights(p, p->w[i]->dtype, done, &a);
        a.arrived = x.zero + first_tile;
        int64_t n_row_tiles = s.blocks ? row_tiles(p) : 1;
        status = tn_cuda_skinny_run(l, p, &a, p->w[i]->dtype, n_row_tiles);
        first_tile += a.n_tiles * (int32_t)n_row_tiles;
    }
    return status;
}
