// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tiles a product on tensor cores is cut into, and its launch: wgmma where the device has it, mma.sync
// elsewhere.
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/product/gemm/gemm_tile_rows.h"
#include "backends/cuda/runtime/tensor_map.h"

#include "core/compiler.h"
#include "core/context.h"

#include <stdio.h>

enum {
    BK = 64,               // packed16 of k of a stage
    PRODUCER = 128,        // threads that copy, of a block of gemm_wgmma.cuh
    MMA_THREADS = 256,     // of a block of gemm_mma.cu
    MMA_COLUMNS = 128,     // of its tile
    ALIGN_TILES = 1024,    // bytes that swizzled tiles are aligned to
    RESULTS = 64 * 64 * 4, // bytes through which the warps of 64 rows write results of 64 columns
    // Rows of tiles that are walked through together, so that their operands stay in L2.
    GROUP_TILES = 16,
    MAX_SPLITS = 8, // blocks that share the k of a tile
};

// A kernel of gemm_wgmma.cu or gemm_e4m3.cu: rows of x, which 64 at a time have a warpgroup, and columns of a
// tile, bytes of shared memory, and ns that a multiprocessor of an H200 takes for a stage of k and for what a
// tile costs beside its stages.
typedef struct shape {
    int32_t rows, columns, shared, stage, tile;
} shape;

#define RING(rows, columns, stages)                                                                          \
    (((rows) + (columns)) * BK * 2 * (stages) + (rows) / 64 * RESULTS + ALIGN_TILES)
static const shape shapes[] = {
    {128, 256, RING(128, 256, 4), 617, 7100},
    {128, 192, RING(128, 192, 4), 458, 7100},
    {128, 128, RING(128, 128, 6), 319, 4600},
    {192, 128, RING(192, 128, 4), 478, 5500}, // where it has all rows
};

// In the names of kernels.
static const char *const types[] = {
    [TN_GEMM_BF16] = "bf16", [TN_GEMM_F16] = "f16",   [TN_GEMM_BF16X3] = "bf16",
    [TN_GEMM_TF32] = "tf32", [TN_GEMM_E4M3] = "e4m3",
};

// How a product is cut: its tiles, and how many blocks share the k of each.
typedef struct cut {
    const shape *shape;
    int32_t splits;
    int64_t tiles;
} cut;

// Start and end of a launch; what the sums of one more block take, for 128 columns of a tile (ns, H200); and
// the bytes of weights that all multiprocessors read in one ns. Measured with bf16, 128 to 512 rows and the
// products of 8B and 1B shapes (docs/log/cuda-gemm.md); estimates are within 15 % of that.
enum { LAUNCH = 3500, PART = 3000, MEMORY_RATE = 4200 };

static int64_t time_of(const tn_cuda_gemm_args *a, const cut *c, int64_t columns, int32_t n_sms)
{
    int64_t turns = tn_div_up(c->tiles * c->splits, n_sms),
            stages = tn_div_up(tn_div_up(a->k, BK), c->splits);
    int64_t multiplying = turns * stages * c->shape->stage,
            reading = columns * a->k * (int64_t)sizeof(uint16_t) / MEMORY_RATE;
    return TN_MAX(multiplying, reading) + turns * c->shape->tile + LAUNCH +
           (c->splits - 1) * PART * c->shape->columns / 128;
}

// Whether there are kernels of a mode with this shape for m rows: a rarely needed activation (`any`) and tf32
// have the narrowest one alone, and 192 rows are in one tile, but not with groups. A gated pair in e4m3 has
// the widest alone, whose 128 columns share a scale where it writes e4m3; other products in e4m3 have these
// two.
static bool has_shape(const tn_cuda_gemm_args *a, const shape *s, int32_t mode, bool any, bool glu)
{
    bool high = s->rows > TN_GEMM_ROWS, widest = s->columns == 256, narrowest = s->columns == 128;
    if (high && (any || mode == TN_GEMM_TF32 || mode == TN_GEMM_E4M3 || a->n_groups > 0)) return false;
    if (high) return a->m > TN_GEMM_ROWS && a->m <= s->rows;
    if (any || mode == TN_GEMM_TF32) return narrowest;
    if (mode == TN_GEMM_E4M3) return widest || (narrowest && !glu);
    return true;
}

static cut select_cut(const tn_cuda_gemm_args *a, int64_t columns, int32_t mode, bool any, bool glu,
                      int32_t n_sms)
{
    enum { LEAST_STAGES = 8 }; // of a block that shares a tile
    int32_t most_splits = a->partial && !any && mode != TN_GEMM_TF32 && mode != TN_GEMM_E4M3 ? MAX_SPLITS : 1;
    cut best = {0};
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        if (!has_shape(a, &shapes[i], mode, any, glu)) continue;
        cut c = {&shapes[i], 1, tn_div_up(a->m, shapes[i].rows) * tn_div_up(columns, shapes[i].columns)};
        for (; c.splits <= most_splits; c.splits++) {
            bool fits = c.tiles * c.splits <= n_sms && c.tiles <= TN_GEMM_SPLIT_TILES &&
                        tn_div_up(a->k, BK) >= LEAST_STAGES * c.splits;
            if (c.splits > 1 && !fits) break;
            if (!best.shape || time_of(a, &c, columns, n_sms) < time_of(a, &best, columns, n_sms)) best = c;
        }
    }
    return best;
}

size_t tn_cuda_gemm_partial_size(const tn_cuda *cuda, int32_t mode, int64_t m)
{
    bool shares = cuda->compute == 90 && mode != TN_GEMM_TF32 && mode != TN_GEMM_E4M3;
    // Tiles that several blocks share are at most half as many as multiprocessors.
    if (!shares || 2 * tn_div_up(m, TN_GEMM_ROWS) > cuda->n_sms) return 0;
    return (size_t)cuda->n_sms * TN_GEMM_ROWS * (size_t)shapes[0].columns * sizeof(float);
}

tn_status tn_cuda_gemm_map(const tn_cuda_launch *l, tn_cuda_tensor_map *to, const void *data,
                           const int64_t *size, int32_t box_rows)
{
    tn_cuda_boxes b = {.data = data,
                       .rows = size[0],
                       .row_bytes = size[1] * 2,
                       .row_stride = size[1] * 2,
                       .box_bytes = BK * 2,
                       .box_rows = box_rows,
                       .l2_bytes = 256};
    return tn_cuda_map_boxes(l, &b, to);
}

static tn_status make_maps(const tn_cuda_launch *l, tn_cuda_gemm_args *a, const shape *s, bool glu,
                           int32_t mode)
{
    int32_t tile_rows = TN_GEMM_ROWS;
    if (a->n_groups == 0 && mode != TN_GEMM_E4M3) tile_rows = TN_GEMM_TILE_ROWS(a->m, a->tiles_m);
    tn_status status = tn_cuda_gemm_map(l, &a->x_map, a->x, (int64_t[]){a->m, a->ld}, tile_rows);
    for (int32_t i = 0; i < a->n_segs && status == TN_OK; i++) {
        int64_t rows = a->n_groups > 0 ? a->n_groups * a->group_rows : a->seg[i].n;
        status = tn_cuda_gemm_map(l, &a->w_map[i], a->seg[i].w, (int64_t[]){rows, a->ld},
                                  glu ? s->columns / 2 : TN_GEMM_TILE64);
    }
    return status;
}

// SiLU and nothing else: gemm_e4m3.cu writes whole runs of such pairs.
bool tn_cuda_gemm_writes_e4m3(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return cuda->compute == 90 && p.glu && p.glu->act == TN_UNARY_SILU && p.glu->limit <= 0.0f &&
           p.glu->alpha <= 0.0f && !p.bias[0] && !p.residual && p.w[0]->ne[2] % TN_GEMM_RUN == 0;
}

static tn_status run_wgmma(const tn_cuda_launch *l, tn_cuda_gemm_args *a, int32_t mode, bool glu)
{
    const tn_cuda_gemm_seg *last = &a->seg[a->n_segs - 1];
    int64_t columns = glu ? 2 * (int64_t)last->n
                          : (last->first_tile64 + tn_div_up(last->n, TN_GEMM_TILE64)) * TN_GEMM_TILE64;
    bool any =
        glu ? a->act != TN_UNARY_SILU || a->glu_limit > 0.0f || a->glu_alpha > 0.0f : a->act != TN_UNARY_NONE;
    cut c = select_cut(a, columns, mode, any, glu, l->cuda->n_sms);
    const shape *s = c.shape;
    a->tiles_m = (int32_t)tn_div_up(a->m, s->rows);
    a->tiles_n = (int32_t)tn_div_up(columns, s->columns);
    tn_status status = make_maps(l, a, s, glu, mode);
    if (status != TN_OK) return status;
    a->group_m = GROUP_TILES;
    a->splits = c.splits;
    char name[48];
    snprintf(name, sizeof name, "tn_gemm_wgmma_%s_%s%d%s%s", types[mode],
             s->rows > TN_GEMM_ROWS ? "192x" : "", s->columns, any ? "_any" : "", glu ? "_glu" : "");
    tn_cuda_grid grid = {.y = 1, .z = 1, .shared = (uint32_t)s->shared};
    grid.threads = (uint32_t)(PRODUCER + 2 * s->rows); // a warpgroup that copies and those that multiply
    grid.x = (uint32_t)TN_MIN(c.tiles * c.splits, l->cuda->n_sms);
    int32_t module = mode == TN_GEMM_E4M3 ? TN_CUDA_MODULE_gemm_e4m3 : TN_CUDA_MODULE_gemm_wgmma;
    return tn_cuda_run(l, module, name, &grid, a);
}

// Each block multiplies one tile, 128 columns wide.
static tn_status run_mma(const tn_cuda_launch *l, tn_cuda_gemm_args *a, int32_t mode, bool glu)
{
    const tn_cuda_gemm_seg *last = &a->seg[a->n_segs - 1];
    a->tiles_m = (int32_t)tn_div_up(a->m, TN_GEMM_ROWS);
    a->tiles_n = (int32_t)(glu ? tn_div_up(last->n, MMA_COLUMNS / 2)
                               : tn_div_up(last->first_tile64 + tn_div_up(last->n, TN_GEMM_TILE64),
                                           MMA_COLUMNS / TN_GEMM_TILE64));
    a->group_m = GROUP_TILES;
    char name[48];
    snprintf(name, sizeof name, "tn_gemm_mma_%s%s", types[mode], glu ? "_glu" : "");
    tn_cuda_grid grid = {
        .x = (uint32_t)a->tiles_m * (uint32_t)a->tiles_n, .y = 1, .z = 1, .threads = MMA_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_gemm_mma, name, &grid, a);
}

tn_status tn_cuda_gemm_run(const tn_cuda_launch *l, tn_cuda_gemm_args *a, int32_t mode, bool glu)
{
    return l->cuda->compute == 90 ? run_wgmma(l, a, mode, glu) : run_mma(l, a, mode, glu);
}
