// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of 9 to 64 rows (product/skinny/skinny.cuh): one launch for the weights of each type.
#include "backends/cuda/product/gemm/gemm.h"
#include "core/compiler.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_ROWS = 64,
    ALIGN = 256,
    THREADS = 256,
    BLOCKS_PER_SM = 2,
    SWIZZLE = 1024, // what swizzled matrices are aligned to
    MAX_BLOCK_ROWS = 16 * TN_SKINNY_BLOCK_TILES * TN_SKINNY_BLOCK_MAX_WARPS
};

// --- steps that are taken ----------------------------------------------------------------------------

static bool takes(const tn_cuda *cuda, const tn_step *step)
{
    // Copies to shared memory, and more of it than 64 KiB: compute capability 8.0.
    if (cuda->compute < 80 || tn_view_n_rows(&step->src[0]) > MAX_ROWS || !tn_cuda_gemm_accepts(cuda, step))
        return false;
    return step->op != TN_OP_matmul_glu || step->src[1].dtype == step->src[2].dtype;
}

bool tn_cuda_skinny_accepts_bf16(const tn_cuda *cuda, const tn_step *step)
{
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        if (step->src[1 + i].dtype != TN_TYPE_BF16) return false;
    return takes(cuda, step);
}

bool tn_cuda_skinny_accepts_f16(const tn_cuda *cuda, const tn_step *step)
{
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        if (step->src[1 + i].dtype != TN_TYPE_F16) return false;
    return takes(cuda, step);
}

bool tn_cuda_skinny_block_type(tn_dtype type)
{
    return tn_dtype_block_elems(type) > 1 && type != TN_TYPE_Q8_1 && type != TN_TYPE_Q8_K;
}

bool tn_cuda_skinny_exact_type(tn_dtype type)
{
    return type == TN_TYPE_Q2_K || type == TN_TYPE_Q3_K || type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K ||
           type == TN_TYPE_Q6_K;
}

bool tn_cuda_skinny_all_weights(const tn_step *step, bool (*is)(tn_dtype type))
{
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        if (!is(step->src[1 + i].dtype)) return false;
    return true;
}

bool tn_cuda_skinny_accepts_blocks(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_skinny_all_weights(step, tn_cuda_skinny_block_type) && takes(cuda, step);
}

bool tn_cuda_skinny_accepts_exact(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_skinny_all_weights(step, tn_cuda_skinny_exact_type) && takes(cuda, step);
}

static int64_t row_elems(const tn_step *step)
{
    return tn_div_up(step->src[0].ne[3], 8) * 8;
}

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

size_t tn_cuda_skinny_block_x_size(int64_t n_tiles, int64_t k)
{
    return (size_t)(n_tiles * tn_div_up(k, TN_SKINNY_K) * TN_SKINNY_MATRIX_STAGE); // of two orders the larger one
}

// Tiles of 32 rows of x.
static int64_t row_tiles(const tn_step *step)
{
    return tn_div_up(tn_view_n_rows(&step->src[0]), TN_SKINNY_BLOCK_COLUMNS);
}

// Types of product/skinny/skinny_wgmma.cu.
static bool is_wgmma(tn_dtype type)
{
    return type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
}

// All weights of the step; x has an order of its own for them.
static bool use_wgmma(const tn_cuda *cuda, const tn_step *step)
{
    return cuda->compute == 90 && cuda->few < 8 && tn_cuda_skinny_all_weights(step, is_wgmma);
}

// Where things are in scratch: bytes from its start, where x is.
typedef struct room {
    size_t scale, arrived, partial, end; // of rows of x; counters; sums of parts of tiles
    int64_t n_arrived;
    bool blocks; // types of blocks
} room;

static room layout(const tn_cuda *cuda, const tn_step *step)
{
    int64_t m = tn_view_n_rows(&step->src[0]), k = step->src[0].ne[3], y = row_tiles(step);
    room r = {.blocks = tn_cuda_skinny_block_type(step->src[1].dtype)};
    // At most: tiles are wider than this.
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        r.n_arrived += tn_div_up(step->src[1 + i].ne[2], TN_SKINNY_ROWS / 2) * y;
    // As many blocks as are resident.
    int64_t partial = r.blocks ? (int64_t)cuda->n_sms * 2 * y * TN_SKINNY_BLOCK_COLUMNS * MAX_BLOCK_ROWS
                               : (int64_t)BLOCKS_PER_SM * cuda->n_sms * m * TN_SKINNY_ROWS;
    r.scale = r.blocks ? aligned((int64_t)tn_cuda_skinny_block_x_size(y, k)) : aligned(m * row_elems(step) * 2);
    r.arrived = r.scale + aligned(y * TN_SKINNY_BLOCK_COLUMNS * 4);
    r.partial = r.arrived + aligned(4 * r.n_arrived);
    r.end = r.partial + aligned(4 * partial);
    return r;
}

size_t tn_cuda_skinny_scratch(const tn_cuda *cuda, const tn_step *step)
{
    return layout(cuda, step).end;
}

// --- launches ----------------------------------------------------------------------------------------

// Blocks that share a tile: the fewest waves of stages, each block adding the cost of about two for its start
// and end.
static int32_t choose_splits(const tn_cuda *cuda, int64_t n_tiles, int64_t n_stages)
{
    int32_t best = 1;
    int64_t least = INT64_MAX, slots = (int64_t)BLOCKS_PER_SM * cuda->n_sms;
    for (int32_t s = 1; s <= TN_SKINNY_MAX_SPLITS && s <= n_stages; s++) {
        int64_t cost = tn_div_up(n_tiles * s, slots) * (tn_div_up(n_stages, s) + 2);
        if (cost < least && (s == 1 || n_tiles * s <= slots)) best = s, least = cost;
    }
    return best;
}

// Types of product/skinny/skinny_codebook.cu, with one row tile for each warp: they are limited by instructions for
// each weight.
static bool is_codebook(tn_dtype type)
{
    static const tn_dtype types[] = {
        TN_TYPE_IQ4_XS, TN_TYPE_MXFP4,   TN_TYPE_NVFP4, TN_TYPE_IQ2_XXS, TN_TYPE_IQ2_XS,
        TN_TYPE_IQ2_S,  TN_TYPE_IQ3_XXS, TN_TYPE_IQ3_S, TN_TYPE_IQ1_S,   TN_TYPE_IQ1_M,
        TN_TYPE_TQ1_0,  TN_TYPE_TQ2_0,   TN_TYPE_Q1_0,  TN_TYPE_Q2_0,
    };
    for (size_t i = 0; i < TN_COUNT(types); i++)
        if (types[i] == type) return true;
    return false;
}

// How a product of block types is cut.
typedef struct shape {
    int32_t tiles, warps; // row tiles of 16 rows of weights of a warp; warps of a block
    int32_t rows, slots;  // of weights of a tile; stages in shared memory
    int32_t n_tiles, blocks;
    int64_t time;
} shape;

static int64_t slot_size(tn_dtype type, int64_t rows, bool wgmma)
{
    tn_cuda_pack_args planes;
    tn_cuda_layout_get(type, &planes);
    int32_t elems = (int32_t)tn_dtype_block_elems(type), units = 0;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) units += TN_SKINNY_PLANE_UNITS(planes.unit[p], elems);
    return (wgmma ? TN_SKINNY_MATRIX_STAGE : TN_SKINNY_BLOCK_STAGE) + rows * TN_SKINNY_ROW_BYTES(units);
}

// The time of the longest block, and of the last block of a tile, with what the part of each block takes. In
// nanoseconds on an H200: memory gives a multiprocessor 32 bytes in one, the L2 42; 128 rows were measured to
// take 1850 a stage (latency of eight warps), 256 rows with twice the instructions at a time little more. For
// wgmma these are estimates, and so is that the last block reads parts at the rate of the L2.
static int64_t time_of(const shape *s, tn_dtype type, int64_t n_stages, bool wgmma)
{
    int64_t bytes = s->rows * (int64_t)tn_dtype_row_size(type, TN_SKINNY_K), n = s->n_tiles * n_stages;
    int64_t longest = tn_div_up(n, s->blocks);
    bool even = n % s->blocks == 0 && TN_MAX(longest, n_stages) % TN_MIN(longest, n_stages) == 0;
    int64_t parts = !even ? tn_div_up(n_stages, longest) + 1 : longest < n_stages ? n_stages / longest : 0;
    int64_t least = wgmma ? 500 + s->rows * 2 : 1200 + s->rows * 2;
    int64_t stage = TN_MAX(TN_MAX(bytes / 32, (bytes + TN_SKINNY_BLOCK_STAGE) / 42), least);
    return longest * stage + parts * (wgmma ? 100 + 3 * s->rows : 50 + s->rows);
}

static void set_tiles(tn_cuda_skinny_args *a, int32_t rows)
{
    a->n_tiles = 0;
    for (int32_t i = 0; i < a->n_segs; i++) {
        a->seg[i].first_tile = a->glu ? 0 : a->n_tiles;
        a->n_tiles =
            (int32_t)(a->glu ? tn_div_up(a->seg[i].n, rows / 2) : a->n_tiles + tn_div_up(a->seg[i].n, rows));
    }
}

// The quickest of as many blocks as there may be, or fewer with longer stretches; of groups blocks take whole
// tiles, how many is known later.
static shape cut_tiles(shape s, tn_dtype type, int64_t n_stages, int64_t most, bool groups, bool wgmma)
{
    int64_t n = TN_MAX(1, s.n_tiles * n_stages), shortest = tn_div_up(n, TN_MIN(most, n));
    s.time = INT64_MAX;
    if (groups) {
        s.blocks = s.n_tiles;
        s.time = time_of(&s, type, n_stages, wgmma) * s.n_tiles;
        return s;
    }
    for (int64_t longest = shortest; longest <= TN_MAX(shortest, wgmma ? TN_MIN(n_stages, 4 * shortest) : 0);
         longest++) {
        shape next = s;
        next.blocks = (int32_t)tn_div_up(n, longest);
        next.time = time_of(&next, type, n_stages, wgmma);
        if (next.time < s.time) s = next;
    }
    return s;
}

// The quickest for `columns` tiles of rows of x at the same time. Leaves first tiles of it in `a`.
static shape choose_shape(const tn_cuda *cuda, tn_cuda_skinny_args *a, tn_dtype type, int64_t columns,
                          bool wgmma)
{
    // Row tiles of a warp, warps. With wgmma they are as many as hide what each waits for, in groups of four.
    static const int32_t plain_cuts[][2] = {{2, 8}, {1, 8}, {1, 4}},
                         wgmma_cuts[][2] = {{1, 16}, {1, 8}, {0, 0}};
    const int32_t fixed = wgmma ? 512 + SWIZZLE : 64; // shared memory besides slots
    const int32_t(*cuts)[2] = wgmma ? wgmma_cuts : plain_cuts;
    shape best = {.time = INT64_MAX};
    int64_t n_stages = tn_div_up(a->k, TN_SKINNY_K), most = TN_MAX(1, cuda->n_sms / columns);
    for (size_t i = 0; i < TN_COUNT(plain_cuts) && cuts[i][0] > 0; i++) {
        shape s = {.tiles = cuts[i][0], .warps = cuts[i][1]};
        s.rows = 16 * s.tiles * s.warps;
        s.slots = (int32_t)TN_MIN(TN_SKINNY_BLOCK_MAX_SLOTS,
                                  (cuda->max_shared - fixed) / slot_size(type, s.rows, wgmma));
        if (s.slots < (wgmma ? 3 : 2) || (is_codebook(type) && s.tiles > 1) ||
            (s.rows == 64 && type != TN_TYPE_Q8_0))
            continue;
        set_tiles(a, s.rows);
        s.n_tiles = a->n_tiles;
        s = cut_tiles(s, type, n_stages, most, a->tile_group != NULL, wgmma);
        if (cuda->few % 4 == (int32_t)i + 1) s.time = 0;
        if (s.time < best.time) best = s;
    }
    set_tiles(a, best.rows);
    return best;
}

static void set_seg(const tn_step *step, const tn_cuda_gemm_operands *o, int32_t i, tn_cuda_skinny_args *a)
{
    const tn_view *w = &step->src[1 + i], *y = &step->dst[a->glu ? 0 : i];
    bool plain = !tn_cuda_skinny_block_type(w->dtype);
    tn_cuda_skinny_seg *s = &a->seg[a->n_segs++];
    *s = (tn_cuda_skinny_seg){
        .w = tn_cuda_weight_planes(w), .y = y->data, .ld = y->ne[3], .n = (int32_t)w->ne[2]};
    if (o->bias[i]) s->bias = o->bias[i]->data;
    if (plain && ((uintptr_t)w->data % 16 != 0 || w->ne[3] % 16 != 0)) a->wide = 0;
}

static tn_cuda_skinny_args make_args(const tn_cuda_launch *l, const tn_cuda_gemm_operands *o)
{
    const tn_step *step = l->step;
    tn_cuda_skinny_args a;
    memset(&a, 0, sizeof a);
    a.ld = row_elems(step);
    if (o->residual) {
        a.residual = o->residual->data;
        a.residual_ld = tn_cuda_row_stride(o->residual) / (int64_t)sizeof(float);
    }
    a.m = (int32_t)tn_view_n_rows(&step->src[0]);
    a.k = (int32_t)step->src[0].ne[3];
    a.wide = 1;
    a.act = o->act;
    if (step->op == TN_OP_matmul_glu) {
        const tn_matmul_glu_params *p = step->params;
        a.glu = 1;
        a.glu_limit = p->glu.limit;
        a.glu_alpha = p->glu.alpha;
    }
    return a;
}

static tn_cuda_grid grid_of(const tn_cuda *cuda, const shape *s, tn_dtype type, int64_t columns, bool wgmma)
{
    return (tn_cuda_grid){.x = (uint32_t)s->blocks,
                          .y = (uint32_t)columns,
                          .z = 1,
                          // 32 sequences of 8B on an H200: with mma.sync 8.0 ms a step with dependent launch,
                          // its kernels one by one 6.4; with wgmma dependent launch gains 5 to 8 %.
                          .alone = (cuda->few % 8 < 4) != wgmma,
                          .threads = 32 * (uint32_t)s->warps,
                          .shared =
                              (uint32_t)(s->slots * slot_size(type, s->rows, wgmma) + (wgmma ? SWIZZLE : 0))};
}

static tn_status run_blocks(const tn_cuda_launch *l, tn_cuda_skinny_args *a, tn_dtype type, int64_t row_tiles)
{
    int64_t columns = a->tile_group ? 1 : row_tiles; // blocks run through groups
    bool wgmma = !a->tile_group && use_wgmma(l->cuda, l->step);
    shape s = choose_shape(l->cuda, a, type, columns, wgmma);
    a->slots = s.slots;
    a->early = TN_SKINNY_EARLY;
    char name[48];
    snprintf(name, sizeof name, "tn_skinny_%s%s_%d", wgmma ? "wgmma_" : "", tn_dtype_name(type), s.rows);
    tn_cuda_grid grid = grid_of(l->cuda, &s, type, columns, wgmma);
    if (a->tile_group) grid.x = (uint32_t)l->cuda->n_sms;
    int32_t module = wgmma               ? TN_CUDA_MODULE_skinny_wgmma
                     : is_codebook(type) ? TN_CUDA_MODULE_skinny_codebook
                                         : TN_CUDA_MODULE_skinny_blocks;
    return tn_cuda_run(l, module, name, &grid, a);
}

// Sets where the tiles of the weights begin.
tn_status tn_cuda_skinny_run(const tn_cuda_launch *l, tn_cuda_skinny_args *a, tn_dtype type, int64_t row_tiles)
{
    if (tn_cuda_skinny_block_type(type)) return run_blocks(l, a, type, row_tiles);
    set_tiles(a, TN_SKINNY_ROWS);
    int32_t columns = a->m <= 32 ? 32 : 64;
    size_t stages = (size_t)TN_SKINNY_STAGES * (size_t)columns * (TN_SKINNY_K + TN_SKINNY_PAD) * 2;
    size_t sums = (size_t)4 * TN_SKINNY_ROWS * (size_t)(columns + TN_SKINNY_PAD) * sizeof(float);
    a->splits =
        row_tiles == 1 && a->arrived ? choose_splits(l->cuda, a->n_tiles, tn_div_up(a->k, TN_SKINNY_K)) : 1;
    char name[48];
    snprintf(name, sizeof name, "tn_skinny_%s_%d", tn_dtype_name(type), columns);
    tn_cuda_grid grid = {.x = (uint32_t)(a->n_tiles * a->splits),
                         .y = (uint32_t)row_tiles,
                         .z = 1,
                         .alone = true,
                         .threads = THREADS,
                         .shared = (uint32_t)TN_MAX(stages, sums)};
    return tn_cuda_run(l, TN_CUDA_MODULE_skinny, name, &grid, a);
}

tn_status tn_cuda_skinny_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a,
                                const tn_cuda_gemm_operands *o)
{
    const tn_view *x = &l->step->src[0];
    a.x = tn_cuda_view_of(x);
    a.norm = o->norm ? o->norm->data : NULL;
    a.eps = o->eps;
    a.k = (int32_t)x->ne[3];
    int64_t rows = tn_div_up(a.m, TN_SKINNY_BLOCK_COLUMNS) * TN_SKINNY_BLOCK_COLUMNS;
    bool wgmma = !a.row_from && use_wgmma(l->cuda, l->step); // not of experts
    tn_cuda_grid grid = {
        .x = (uint32_t)TN_MIN(rows, 16 * (int64_t)l->cuda->n_sms),
        .y = 1,
        .z = 1,
        .threads = (uint32_t)TN_MIN(1024, tn_div_up(tn_div_up(a.k, TN_SKINNY_K) * TN_SKINNY_K, 16 * 32) * 32)};
    return tn_cuda_run(l, TN_CUDA_MODULE_skinny_prepare, wgmma ? "tn_skinny_x_matrices" : "tn_skinny_x", &grid, &a);
}

// Where rows of x go and with what.
static tn_cuda_gemm_x_args x_args(const tn_cuda_launch *l, const room *r)
{
    const tn_step *step = l->step;
    bool f16 = step->src[1].dtype != TN_TYPE_BF16;
    return (tn_cuda_gemm_x_args){.to = l->scratch,
                                 .m = (int32_t)tn_view_n_rows(&step->src[0]),
                                 .ld = row_elems(step),
                                 .mode = f16 ? TN_GEMM_F16 : TN_GEMM_BF16,
                                 .row_scale = f16 ? (float *)(void *)(l->scratch + r->scale) : NULL,
                                 .zero = (int32_t *)(void *)(l->scratch + r->arrived),
                                 .n_zero = (int32_t)r->n_arrived,
                                 .finite_rows = tn_cuda_skinny_all_weights(step, tn_cuda_skinny_exact_type)};
}

// The weights from `first` on that have its type, marked as done.
static tn_cuda_skinny_args weights_of(const tn_cuda_launch *l, const tn_cuda_gemm_operands *o, const room *r,
                                   int32_t first, bool done[TN_GEMM_MAX_SEGS])
{
    const tn_step *step = l->step;
    tn_cuda_skinny_args a = make_args(l, o);
    tn_dtype type = step->src[1 + first].dtype;
    for (int32_t k = first; k < tn_cuda_gemm_n_weights(step); k++) {
        if (step->src[1 + k].dtype != type) continue;
        set_seg(step, o, k, &a);
        done[k] = true;
    }
    a.x = l->scratch;
    if (type != TN_TYPE_BF16) a.row_scale = (const float *)(const void *)(l->scratch + r->scale);
    a.partial = (float *)(void *)(l->scratch + r->partial);
    return a;
}

tn_status tn_cuda_skinny_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    tn_cuda_gemm_operands o = tn_cuda_gemm_find(step);
    room r = layout(l->cuda, step);
    tn_cuda_gemm_x_args x = x_args(l, &r);
    tn_status status = r.blocks ? tn_cuda_skinny_prepare_x(l, x, &o) : tn_cuda_gemm_prepare_x(l, x, &o);
    int32_t first_tile = 0;
    bool done[TN_GEMM_MAX_SEGS] = {false};
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step) && status == TN_OK; i++) {
        if (done[i]) continue;
        tn_cuda_skinny_args a = weights_of(l, &o, &r, i, done);
        a.arrived = x.zero + first_tile;
        int64_t y = r.blocks ? row_tiles(step) : 1;
        status = tn_cuda_skinny_run(l, &a, step->src[1 + i].dtype, y);
        first_tile += a.n_tiles * (int32_t)y;
    }
    return status;
}
