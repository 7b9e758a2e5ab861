// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of a few rows of x with 16-bit weights on compute capability 9.0 (dense.cu): all weights
// of a product share a launch.
#include "backends/cuda/product/dense/dense.h"

#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/product/matmul_any.h"

#include <stdio.h>
#include <string.h>

enum {
    // Two rows take 4.4 ms a step of an 8B shape with product/matvec/, 4.9 here (bf16, H200).
    LEAST_ROWS = 3,
    // Above this many rows tiles that several blocks share cost more than product/gemm/ does: 128 rows, 4096
    // columns, k 4096 took 33 us here and 29 there (H200). Gated pairs of 128 rows gained 3 % of a step of an
    // 8B shape, but a 1B shape lost 16 %.
    MAX_ROWS = 64,
    MAX_ROWS_LARGE = 112, // of large weights
    ALIGN = 256,         // of the parts of the scratch, bytes
    ALIGN_WEIGHTS = 16,  // of weights that are copied as tensors, and of their rows
    SWIZZLE_ROWS = 8,    // of a swizzled matrix that follow on each other
};

// --- how a product is cut ----------------------------------------------------------------------------

// Rates of an H200, for one multiprocessor: bytes of memory and of L2 in one ns, clocks in ten ns, clocks of
// a wgmma at least, ns that a panel costs beside its bytes, and that a tile costs whose sums several blocks
// or warpgroups add. The rate of L2 is what copies of rows of 128 bytes reach: 41 to 46 with 64 and 128 rows
// of x, whatever the tile.
enum { MEMORY_RATE = 33, L2_RATE = 42, CLOCK = 17, LEAST_CLOCKS = 40, PANEL = 60, SHARED_TILE = 1000 };

typedef struct cut {
    int32_t columns;  // for rows of x
    int32_t boxes;    // of weights of each warpgroup (dense.cu)
    int32_t box_rows; // a multiple of 8
    int32_t splits;   // blocks that share a tile
    bool shares_box;  // tiles of one box, whose k the warpgroups share
    int32_t n_tiles, blocks;
    int64_t time; // estimated, ns
    bool splits_x;
} cut;

static int32_t boxes_of(const cut *c)
{
    return c->shares_box ? 1 : TN_DENSE_GROUPS * c->boxes;
}

// Rows of weights of a tile; of gate and of up, each.
static int32_t tile_rows(const tn_product *p, const cut *c)
{
    return c->box_rows * boxes_of(c) / (p->glu ? 2 : 1);
}

// Tiles of the weights; with `a` their first tiles are set.
static int32_t count_tiles(const tn_product *p, int32_t rows, tn_cuda_dense_args *a)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_results; i++) {
        if (a) a->seg[i].first_tile = n;
        n += (int32_t)tn_div_up(p->w[i]->ne[2], rows);
    }
    return n;
}

static int64_t time_of(const tn_product *p, const cut *c, int32_t at_once)
{
    int64_t k = p->k / c->splits, rows = boxes_of(c) * c->box_rows;
    int64_t w = rows * k * 2, x = c->columns * k * 2;
    int64_t clocks = k / 16 * boxes_of(c) * TN_MAX(c->columns / 2, LEAST_CLOCKS);
    int64_t time = TN_MAX(TN_MAX(w / MEMORY_RATE, (w + x) / L2_RATE), clocks * 10 / CLOCK);
    time += tn_div_up(k, TN_DENSE_K) * PANEL;
    return tn_div_up(c->n_tiles, at_once) * time + (c->splits > 1 || c->shares_box ? SHARED_TILE : 0);
}

// The number of rows of a box with the least time, for so many blocks that share a tile.
static void try_cut(const tn_cuda *cuda, const tn_product *p, cut c, cut *best)
{
    // TURNS: numbers of tiles of a block that are tried, from the least possible on. LEAST_PANELS: of a part.
    enum { TURNS = 4, LEAST_PANELS = 4 };
    int64_t rows = 0;
    for (int32_t i = 0; i < p->n_results; i++) rows += p->w[i]->ne[2];
    int32_t at_once = cuda->n_sms / c.splits, boxes = boxes_of(&c) / (p->glu ? 2 : 1);
    if (at_once < 1 || (c.splits > 1 && tn_div_up(p->k, TN_DENSE_K) < LEAST_PANELS * c.splits)) return;
    int64_t least = tn_div_up(rows, (int64_t)at_once * boxes * TN_DENSE_BOX);
    for (int64_t turns = least; turns < least + TURNS; turns++) {
        c.box_rows = (int32_t)tn_div_up(tn_div_up(rows, at_once * turns), 8 * boxes) * 8;
        c.n_tiles = count_tiles(p, tile_rows(p, &c), NULL);
        if (c.box_rows > TN_DENSE_BOX || ((c.splits > 1 || c.shares_box) && c.n_tiles > at_once)) continue;
        c.blocks = TN_MIN(c.n_tiles, at_once) * c.splits;
        c.time = time_of(p, &c, at_once);
        if (c.time < best->time) *best = c;
    }
}

static cut cut_of(const tn_cuda *cuda, const tn_product *p)
{
    enum { WIDER = 32, MOST = 112 }; // there are kernels of 16, 32, 64, 96 and 112 columns
    cut c = {.columns = 2 * TN_DENSE_SPLIT, .splits_x = p->m <= TN_DENSE_SPLIT}, best = {.time = INT64_MAX};
    while (c.columns < p->m) c.columns = TN_MIN(c.columns + TN_MIN(c.columns, WIDER), MOST);
    int32_t splits = p->glu ? 1 : TN_DENSE_MAX_SPLITS;
    for (c.boxes = p->glu ? 2 : 1; c.boxes <= 2; c.boxes++)
        for (c.splits = 1; c.splits <= splits; c.splits++)
            for (int32_t shares = c.boxes == 1; shares >= 0; shares--) {
                c.shares_box = shares;
                try_cut(cuda, p, c, &best);
            }
    return best;
}

// --- what is accepted --------------------------------------------------------------------------------

static bool accepts(const tn_cuda *cuda, const tn_step *step, tn_dtype type, int64_t least, int64_t most)
{
    tn_product p = tn_product_get(step);
    return cuda->compute == 90 && p.m >= least && p.m <= most && tn_cuda_gemm_operands_fit(cuda, &p) &&
           tn_cuda_weights_are(&p, type) && p.k * (int64_t)sizeof(uint16_t) % ALIGN_WEIGHTS == 0;
}

// Weights of at least 4096 x 4096. With 65 to 96 rows a step of an 8B shape gained 7 to 9 % over
// product/gemm, one of a 1B shape, whose products are all smaller in one direction, lost 2 to 4 % (H200,
// bf16). With 97, 104 and 112 rows 8B gained 8, 7 and 5 % (H100).
static bool is_large(const tn_step *step)
{
    enum { LEAST = 4096 };
    tn_product p = tn_product_get(step);
    int64_t n = 0;
    for (int32_t i = 0; i < p.n_weights; i++) n += p.w[i]->ne[2];
    return n >= LEAST && p.k >= LEAST;
}

static bool accepts_many(const tn_cuda *cuda, const tn_step *step, tn_dtype type)
{
    return accepts(cuda, step, type, TN_DENSE_SPLIT + 1, MAX_ROWS) ||
           (is_large(step) && accepts(cuda, step, type, MAX_ROWS + 1, MAX_ROWS_LARGE));
}

bool tn_cuda_dense_split_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, TN_TYPE_BF16, LEAST_ROWS, TN_DENSE_SPLIT) ||
           accepts(cuda, step, TN_TYPE_F16, LEAST_ROWS, TN_DENSE_SPLIT);
}

bool tn_cuda_dense_packs(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, TN_TYPE_BF16, LEAST_ROWS, TN_DENSE_SPLIT);
}

bool tn_cuda_dense_bf16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_many(cuda, step, TN_TYPE_BF16);
}

bool tn_cuda_dense_f16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_many(cuda, step, TN_TYPE_F16);
}

// --- scratch -----------------------------------------------------------------------------------------

// Where scales of rows of x are in the scratch, which begins with x.
static size_t scale_at(const tn_product *p)
{
    int64_t rows = p->m <= TN_DENSE_SPLIT ? 2 * TN_DENSE_SPLIT : p->m;
    return (size_t)(tn_div_up(rows * p->k * (int64_t)sizeof(uint16_t), ALIGN) * ALIGN);
}

// Weights at other addresses run by kernels that do not mind.
bool tn_cuda_dense_aligned(const tn_product *p)
{
    for (int32_t i = 0; i < p->n_weights; i++)
        if ((uintptr_t)p->w[i]->data % ALIGN_WEIGHTS != 0) return false;
    return true;
}

size_t tn_cuda_dense_scratch(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    size_t own = scale_at(&p) + (size_t)p.m * sizeof(float);
    size_t other = p.m > TN_DENSE_SPLIT ? tn_cuda_gemm_dense_scratch(cuda, &p, step->precision) : 0;
    return TN_MAX(own, other);
}

// --- launch ------------------------------------------------------------------------------------------

static tn_status prepare_x(const tn_cuda_launch *l, const tn_product *p, const cut *c)
{
    bool f16 = p->w[0]->dtype == TN_TYPE_F16;
    tn_cuda_dense_x_args a = {
        .to = l->scratch,
        .row_scale = f16 ? (float *)(void *)(l->scratch + scale_at(p)) : NULL,
        .ld = p->k,
        .f16 = f16,
        .split = c->splits_x,
    };
    return tn_cuda_dense_prepare_x(l, a, p);
}

static tn_status make_maps(const tn_cuda_launch *l, const tn_product *p, const cut *c, tn_cuda_dense_args *a)
{
    const void *x = l->reads_packed16 ? p->x->data : l->scratch;
    int64_t rows = c->splits_x ? 2 * TN_DENSE_SPLIT : p->m;
    // A gated pair leaves high parts and, behind them, low parts of as many rows as there are.
    if (c->splits_x && l->reads_packed16) a->x_low = (int32_t)p->m, rows = 2 * p->m;
    a->x_rows = a->x_low ? TN_DENSE_SPLIT : (int32_t)tn_div_up(rows, SWIZZLE_ROWS) * SWIZZLE_ROWS;
    tn_status status = tn_cuda_gemm_map(l, &a->x_map, x, (int64_t[]){rows, p->k}, a->x_rows);
    for (int32_t i = 0; i < p->n_weights && status == TN_OK; i++)
        status = tn_cuda_gemm_map(l, &a->w_map[i], p->w[i]->data, (int64_t[]){p->w[i]->ne[2], p->k},
                                  tile_rows(p, c));
    return status;
}

// The ring: stages of as many panels as are worth a barrier, in the shared memory that barriers and a block
// of the kernel for x leave.
static tn_cuda_grid set_ring(const tn_cuda *cuda, const tn_product *p, const cut *c, tn_cuda_dense_args *a)
{
    enum { STAGE = 16 << 10, MAX_PANELS = 4, OTHERS = 6 << 10 };
    int32_t rows = boxes_of(c) * c->box_rows + c->columns;
    // Boxes may have fewer than 64 rows. The instruction reads 64 all the same, past the end of the ring too;
    // what it reads there goes into sums that nobody writes.
    int32_t slack = (TN_DENSE_BOX - c->box_rows) * TN_DENSE_PANEL_ROW + TN_DENSE_ALIGN;
    a->box_rows = c->box_rows;
    a->panel_bytes = rows * TN_DENSE_PANEL_ROW;
    a->panels = (int32_t)TN_MIN(tn_div_up(STAGE, a->panel_bytes), MAX_PANELS / c->boxes);
    a->n_stages = (int32_t)tn_div_up(tn_div_up(p->k, TN_DENSE_K), a->panels);
    a->splits = c->splits;
    a->shares_box = c->shares_box;
    int32_t stage = a->panels * a->panel_bytes;
    a->slots = TN_MIN((cuda->max_shared - OTHERS - slack) / stage, TN_DENSE_MAX_SLOTS);
    return (tn_cuda_grid){.x = (uint32_t)c->blocks,
                          .y = 1,
                          .z = 1,
                          .threads = TN_DENSE_THREADS,
                          .cluster = (uint32_t)c->splits,
                          .shared = (uint32_t)(a->slots * stage + slack)};
}

static tn_status multiply(const tn_cuda_launch *l, const tn_product *p, const cut *c)
{
    tn_cuda_dense_args a;
    memset(&a, 0, sizeof a);
    for (int32_t i = 0; i < p->n_weights; i++) {
        const tn_view *y = p->y[TN_MIN(i, p->n_results - 1)];
        a.seg[i] = (tn_cuda_dense_seg){.y = y->data,
                                       .bias = p->bias[i] ? p->bias[i]->data : NULL,
                                       .ld = y->ne[3],
                                       .n = (int32_t)p->w[i]->ne[2]};
    }
    a.n_segs = p->n_weights;
    a.n_tiles = count_tiles(p, tile_rows(p, c), &a);
    if (p->w[0]->dtype == TN_TYPE_F16) a.row_scale = (const float *)(const void *)(l->scratch + scale_at(p));
    if (p->residual) {
        a.residual = p->residual->data;
        a.residual_ld = tn_cuda_row_stride(p->residual) / (int64_t)sizeof(float);
    }
    a.m = (int32_t)p->m;
    a.splits_x = c->splits_x;
    a.act = tn_cuda_gemm_act(p);
    a.glu = p->glu != NULL;
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    a.writes_packed16 = l->writes_packed16;
    tn_cuda_grid grid = set_ring(l->cuda, p, c, &a);
    tn_status status = make_maps(l, p, c, &a);
    if (status != TN_OK) return status;
    char name[48];
    snprintf(name, sizeof name, "tn_dense_%s_%dx%d", tn_dtype_name(p->w[0]->dtype), c->columns, c->boxes);
    return tn_cuda_run(l, TN_CUDA_MODULE_dense, name, &grid, &a);
}

tn_status tn_cuda_dense_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    if (!tn_cuda_dense_aligned(&p))
        return p.m > TN_DENSE_SPLIT ? tn_cuda_gemm_dense_launch(l, &p) : tn_cuda_matmul_any_launch(l);
    cut c = cut_of(l->cuda, &p);
    tn_status status = l->reads_packed16 ? TN_OK : prepare_x(l, &p, &c);
    return status == TN_OK ? multiply(l, &p, &c) : status;
}
