// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax, reduce, top_k.
#include "backends/cuda/softmax/softmax_args.h"
#include "backends/cuda/runtime/rows.h"

enum { WARP = 32 };

static bool accepts_rows(const tn_step *step)
{
    for (int32_t i = 0; i < step->n_src; i++)
        if (tn_step_has_src(step, i) && !tn_cuda_f32_rows(&step->src[i])) return false;
    return step->src[0].ne[3] <= INT32_MAX && tn_view_n_rows(&step->src[0]) <= INT32_MAX;
}

// One block for each row. A thread has one run of four elements while there are rows for less than two blocks
// of each multiprocessor, and four runs with more, so that more loads are in flight.
static tn_cuda_grid row_grid(const tn_cuda_launch *l, const tn_view *x)
{
    int64_t runs = tn_div_up(x->ne[3], 4);
    if (tn_view_n_rows(x) >= 2 * l->cuda->n_sms) runs = tn_div_up(runs, TN_CUDA_SOFTMAX_RUNS);
    int64_t threads = TN_MIN(tn_div_up(runs, WARP) * WARP, (int64_t)1024);
    return (tn_cuda_grid){.x = (uint32_t)tn_view_n_rows(x), .y = 1, .z = 1, .threads = (uint32_t)threads};
}

bool tn_cuda_softmax_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return accepts_rows(step) && tn_cuda_f32_rows(&step->dst[0]);
}

tn_status tn_cuda_softmax_launch(const tn_cuda_launch *l)
{
    const tn_softmax_params *p = l->step->params;
    const tn_view *y = &l->step->dst[0];
    tn_cuda_softmax_args a = {.x = tn_cuda_view_of(&l->step->src[0]),
                              .y = tn_cuda_view_of(y),
                              .scale = p->scale != 0.0f ? p->scale : 1.0f};
    if (tn_step_has_src(l->step, 1)) {
        a.mask = tn_cuda_view_broadcast(&l->step->src[1], y);
        a.mask.nb[3] = 4; // of one column, too
    }
    a.aligned =
        tn_cuda_aligned(&a.x, 4) && tn_cuda_aligned(&a.y, 4) && (!a.mask.data || tn_cuda_aligned(&a.mask, 4));
    tn_cuda_grid grid = row_grid(l, y);
    int64_t runs = tn_div_up(y->ne[3], (int64_t)grid.threads * 4);
    const char *entry = runs <= 1                      ? "tn_softmax_1"
                        : runs <= TN_CUDA_SOFTMAX_RUNS ? "tn_softmax_4"
                                                       : "tn_softmax";
    return tn_cuda_run(l, TN_CUDA_MODULE_softmax, entry, &grid, &a);
}

bool tn_cuda_reduce_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return accepts_rows(step) && tn_cuda_f32_rows(&step->dst[0]);
}

tn_status tn_cuda_reduce_launch(const tn_cuda_launch *l)
{
    const tn_reduce_params *p = l->step->params;
    tn_cuda_softmax_args a = {
        .x = tn_cuda_view_of(&l->step->src[0]), .y = tn_cuda_view_of(&l->step->dst[0]), .kind = p->kind};
    a.aligned = tn_cuda_aligned(&a.x, 4);
    tn_cuda_grid grid = row_grid(l, &l->step->src[0]);
    return tn_cuda_run(l, TN_CUDA_MODULE_softmax, "tn_reduce", &grid, &a);
}

// --- top_k -------------------------------------------------------------------------------------------

bool tn_cuda_top_k_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_top_k_params *p = step->params;
    return accepts_rows(step) && step->dst[0].dtype == TN_TYPE_I32 &&
           tn_view_rows_contiguous(&step->dst[0]) && p->n_groups <= TN_CUDA_MAX_GROUPS;
}

tn_status tn_cuda_top_k_launch(const tn_cuda_launch *l)
{
    const tn_top_k_params *p = l->step->params;
    const tn_view *x = &l->step->src[0];
    int64_t n_rows = tn_view_n_rows(x), n = x->ne[3];
    tn_cuda_top_k_args a = {.x = tn_cuda_view_of(x),
                            .y = tn_cuda_view_of(&l->step->dst[0]),
                            .bias = tn_cuda_vector(l->step, 1),
                            .n_rows = (uint32_t)n_rows,
                            .k = p->k,
                            .n_groups = p->n_groups,
                            .n_groups_used = p->n_groups_used};
    tn_cuda_grid grid = {.x = (uint32_t)n_rows, .y = 1, .z = 1, .threads = TN_CUDA_TOP_K_THREADS};
    const char *entry = "tn_top_k_any";
    if (n <= 32 * WARP && p->n_groups > 1) {
        entry = n <= 8 * WARP ? "tn_top_k_groups_8" : "tn_top_k_groups_32";
        grid.threads = WARP;
    } else if (n <= 32 * WARP) {
        entry = n <= 4 * WARP ? "tn_top_k_4" : n <= 8 * WARP ? "tn_top_k_8" : "tn_top_k_32";
        grid.x = (uint32_t)tn_div_up(n_rows, TN_CUDA_TOP_K_WARPS);
        grid.threads = WARP * TN_CUDA_TOP_K_WARPS;
    }
    return tn_cuda_run(l, TN_CUDA_MODULE_top_k, entry, &grid, &a);
}
