// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tiles a product on tensor cores is cut into, and its launch: wgmma where the device has it, mma.sync
// elsewhere.
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/runtime/tensor_map.h"

#include "core/compiler.h"
#include "core/context.h"

#include <stdio.h>

enum {
    BK = 64,                   // packed16 of k of a stage
    THREADS = 384,             // of a block of gemm_wgmma.cuh: a warpgroup that copies and two that multiply
    MMA_THREADS = 256,         // of a block of gemm_mma.cu
    MMA_COLUMNS = 128,         // of its tile
    ALIGN_TILES = 1024,        // bytes that swizzled tiles are aligned to
    RESULTS = 8 * 16 * 64 * 4, // bytes through which eight warps write results of 16 rows by 64 columns
    // Rows of tiles that are walked through together, so that their operands stay in L2.
    GROUP_TILES = 16,
};

// A kernel of gemm_wgmma.cu or gemm_e4m3.cu: columns of a tile, bytes of shared memory, and the rate of a
// multiprocessor against that of the widest tile, as measured on an H200.
typedef struct shape {
    int32_t columns, shared;
    double rate;
} shape;

#define RING(columns, stages) ((TN_GEMM_ROWS + (columns)) * BK * 2 * (stages) + RESULTS + ALIGN_TILES)
static const shape shapes[] = {
    {256, RING(256, 4), 1.00},
    {192, RING(192, 4), 0.93},
    {128, RING(128, 6), 0.95},
};

// In the names of kernels.
static const char *const types[] = {
    [TN_GEMM_BF16] = "bf16", [TN_GEMM_F16] = "f16",   [TN_GEMM_BF16X3] = "bf16",
    [TN_GEMM_TF32] = "tf32", [TN_GEMM_E4M3] = "e4m3",
};

// Time of the product, in times of a 128 x 256 tile: full waves of blocks, one for each multiprocessor.
static double cost(const tn_cuda_gemm_args *a, const shape *s, int64_t columns, int32_t n_sms)
{
    int64_t tiles = tn_div_up(a->m, TN_GEMM_ROWS) * tn_div_up(columns, s->columns);
    return (double)tn_div_up(tiles, n_sms) * (double)s->columns / 256.0 / s->rate;
}

// The shape of the least cost among those that the kernels of a mode are instantiated for: a rarely needed
// activation (`any`) and tf32 have the narrowest one alone. A gated pair in e4m3 has the widest alone, whose
// 128 columns share a scale where it writes e4m3; other products in e4m3 have these two.
static const shape *select_shape(const tn_cuda_gemm_args *a, int64_t columns, int32_t mode, bool any,
                                 bool glu, int32_t n_sms)
{
    const shape *widest = &shapes[0], *narrowest = &shapes[TN_COUNT(shapes) - 1], *best = widest;
    if (any || mode == TN_GEMM_TF32) return narrowest;
    if (mode == TN_GEMM_E4M3 && glu) return widest;
    for (const shape *s = widest + 1; s <= narrowest; s++)
        if ((mode != TN_GEMM_E4M3 || s == narrowest) &&
            cost(a, s, columns, n_sms) < cost(a, best, columns, n_sms))
            best = s;
    return best;
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

static tn_status make_maps(const tn_cuda_launch *l, tn_cuda_gemm_args *a, const shape *s, bool glu)
{
    tn_status status = tn_cuda_gemm_map(l, &a->x_map, a->x, (int64_t[]){a->m, a->ld}, TN_GEMM_ROWS);
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
    const shape *s = select_shape(a, columns, mode, any, glu, l->cuda->n_sms);
    tn_status status = make_maps(l, a, s, glu);
    if (status != TN_OK) return status;
    a->tiles_m = (int32_t)tn_div_up(a->m, TN_GEMM_ROWS);
    a->tiles_n = (int32_t)tn_div_up(columns, s->columns);
    a->group_m = GROUP_TILES;
    char name[48];
    snprintf(name, sizeof name, "tn_gemm_wgmma_%s_%d%s%s", types[mode], s->columns, any ? "_any" : "",
             glu ? "_glu" : "");
    tn_cuda_grid grid = {.y = 1, .z = 1, .threads = THREADS, .shared = (uint32_t)s->shared};
    grid.x = (uint32_t)TN_MIN((int64_t)a->tiles_m * a->tiles_n, l->cuda->n_sms);
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
