// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of 9 and more rows with f32 weights of few columns (narrow.cu), such as the router of experts: a
// tile of the general kernels has as many columns as these weights have altogether, so one block would run
// through all of k alone.
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/product/narrow/narrow_args.h"
#include "backends/cuda/runtime/rows.h"

#include "core/compiler.h"

enum {
    WARP = 32,
    MAX_COLUMNS = 256,
    MAX_TILES = 256, // each block reads x again for its columns; with more of them other kernels win
};

static int64_t count_tiles(const tn_product *p)
{
    return tn_div_up(p->w[0]->ne[2], TN_NARROW_COLUMNS) * tn_div_up(p->m, TN_NARROW_ROWS);
}

// Blocks that share k: two if there are multiprocessors for them, more while half of those suffice, because
// clusters of 4 and 8 do not find place on all; with two steps of k for each warp at least. H200, k 2048, 128
// columns, 1, 2, 4 and 8 blocks, us: 32 rows 12.8, 8.9, 6.2 and 5.2, 128 rows 12.8, 9.0, 6.7 and 10.5, 256
// rows 12.9, 9.2, 12.8 and 16.1, 512 rows 13.3, 10.1, 19.5 and 27.1, 2048 rows 27.9, 38.3, 60.2 and 96.7.
static int32_t splits_of(const tn_cuda *cuda, int64_t steps, int64_t tiles)
{
    int32_t splits = 1;
    if (cuda->compute != 90) return splits;
    while (splits < TN_NARROW_MAX_SPLITS && steps >= 4 * splits &&
           2 * splits * tiles <= (splits == 1 ? cuda->n_sms : cuda->n_sms / 2))
        splits *= 2;
    return splits;
}

bool tn_cuda_narrow_accepts(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    if (!tn_cuda_gemm_fits(cuda, &p) || p.n_weights != 1 || p.glu || p.norm || p.residual) return false;
    if (p.act != TN_UNARY_NONE || p.w[0]->dtype != TN_TYPE_F32 || !tn_view_contiguous(p.w[0])) return false;
    if (p.w[0]->ne[2] > MAX_COLUMNS || count_tiles(&p) > MAX_TILES) return false;
    return tn_cuda_gemm_mode(cuda, &p, step->precision) == TN_GEMM_BF16X3;
}

tn_status tn_cuda_narrow_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    tn_cuda_narrow_args a = {.x = tn_cuda_view_of(p.x),
                             .w = p.w[0]->data,
                             .bias = p.bias[0] ? p.bias[0]->data : NULL,
                             .y = p.y[0]->data,
                             .m = (int32_t)p.m,
                             .n = (int32_t)p.w[0]->ne[2],
                             .k = (int32_t)p.k};
    a.aligned = p.k % 4 == 0 && tn_cuda_aligned(&a.x, 4) && tn_cuda_pointer_aligned(a.w);
    a.splits = splits_of(l->cuda, tn_div_up(p.k, TN_NARROW_K * TN_NARROW_WARPS), count_tiles(&p));
    tn_cuda_grid grid = {.x = (uint32_t)(tn_div_up(a.n, TN_NARROW_COLUMNS) * a.splits),
                         .y = (uint32_t)tn_div_up(a.m, TN_NARROW_ROWS),
                         .z = 1,
                         .threads = WARP * TN_NARROW_WARPS,
                         .cluster = (uint32_t)a.splits};
    bool whole = a.aligned && p.k % (TN_NARROW_K * TN_NARROW_WARPS) == 0;
    return tn_cuda_run(l, TN_CUDA_MODULE_narrow, whole ? "tn_narrow_whole" : "tn_narrow_any", &grid, &a);
}
