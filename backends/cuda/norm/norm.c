// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm, add_rms_norm, layer_norm: threads of a row by the number of rows.
#include "backends/cuda/norm/norm_args.h"
#include "backends/cuda/runtime/rows.h"
#include "ops/operands.h"

enum {
    WARP = 32,
    MOST_RUNS = 4, // of four floats, for each thread
    FILLED = 2,    // blocks of each multiprocessor
    MOST_THREADS = 1024,
    WARPS = 8, // rows of a block while a warp has a row
    ANY_THREADS = 256,
};

static bool accepts(const tn_step *step)
{
    for (int32_t i = 0; i < step->n_src; i++)
        if (tn_step_has_src(step, i) && !tn_cuda_f32_rows(&step->src[i])) return false;
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!tn_cuda_f32_rows(&step->dst[i])) return false;
    return step->dst[0].ne[3] <= INT32_MAX / 4 && tn_view_n_rows(&step->dst[0]) <= INT32_MAX;
}

// All runs of four aligned, and the row within the registers of a block.
static bool fits_registers(const tn_cuda_norm_args *a, bool adds)
{
    bool aligned = a->y.ne[3] % 4 == 0 && tn_cuda_aligned(&a->a, 4) && tn_cuda_aligned(&a->y, 4) &&
                   tn_cuda_pointer_aligned(a->weight) && tn_cuda_pointer_aligned(a->bias);
    if (adds) aligned = aligned && tn_cuda_aligned(&a->b, 4) && tn_cuda_aligned(&a->sum, 4);
    return aligned && a->y.ne[3] <= 4 * MOST_RUNS * MOST_THREADS;
}

static tn_status run(const tn_cuda_launch *l, const char *name, tn_cuda_norm_args *a, bool adds)
{
    tn_cuda_view *views[] = {&a->y, &a->a, &a->b, &a->sum};
    tn_cuda_views_merge(views, adds ? 4 : 2, false);
    int64_t n_rows = a->y.ne[0] * a->y.ne[1] * a->y.ne[2], runs = tn_div_up(a->y.ne[3], 4);
    tn_cuda_grid grid = {.x = (uint32_t)n_rows, .y = 1, .z = 1, .threads = ANY_THREADS};
    a->n_rows = (uint32_t)n_rows;
    char entry[32];
    if (!fits_registers(a, adds)) {
        a->group = ANY_THREADS;
        snprintf(entry, sizeof entry, "tn_%s_any", name);
        return tn_cuda_run(l, TN_CUDA_MODULE_norm, entry, &grid, a);
    }
    // With rows for less than two blocks of each multiprocessor a thread has one run, which is the shortest
    // way through a row. With more rows it has four, so that more loads are in flight.
    int64_t per_thread = n_rows < FILLED * l->cuda->n_sms ? 1 : MOST_RUNS;
    int64_t threads = TN_MIN(tn_div_up(tn_div_up(runs, per_thread), WARP) * WARP, (int64_t)MOST_THREADS);
    per_thread = tn_div_up(runs, threads);
    per_thread = per_thread > 2 ? MOST_RUNS : per_thread;
    a->group = (int32_t)threads;
    if (threads == WARP && n_rows > 1) {
        grid.threads = WARP * WARPS;
        grid.x = (uint32_t)tn_div_up(n_rows, WARPS);
    } else {
        grid.threads = (uint32_t)threads;
    }
    snprintf(entry, sizeof entry, "tn_%s_%d", name, (int)per_thread);
    return tn_cuda_run(l, TN_CUDA_MODULE_norm, entry, &grid, a);
}

bool tn_cuda_rms_norm_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return accepts(step);
}

tn_status tn_cuda_rms_norm_launch(const tn_cuda_launch *l)
{
    const tn_rms_norm_params *p = l->step->params;
    tn_cuda_norm_args a = {.a = tn_cuda_view_of(&l->step->src[TN_SRC_rms_norm_x]),
                           .y = tn_cuda_view_of(&l->step->dst[0]),
                           .weight = tn_cuda_vector(l->step, TN_SRC_rms_norm_w),
                           .eps = p->eps};
    return run(l, "rms", &a, false);
}

bool tn_cuda_add_rms_norm_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return accepts(step);
}

tn_status tn_cuda_add_rms_norm_launch(const tn_cuda_launch *l)
{
    const tn_add_rms_norm_params *p = l->step->params;
    tn_cuda_norm_args a = {.a = tn_cuda_view_of(&l->step->src[TN_SRC_add_rms_norm_a]),
                           .b = tn_cuda_view_of(&l->step->src[TN_SRC_add_rms_norm_b]),
                           .sum = tn_cuda_view_of(&l->step->dst[TN_DST_add_rms_norm_sum]),
                           .y = tn_cuda_view_of(&l->step->dst[TN_DST_add_rms_norm_normed]),
                           .weight = tn_cuda_vector(l->step, TN_SRC_add_rms_norm_w),
                           .eps = p->eps};
    return run(l, "add_rms", &a, true);
}

bool tn_cuda_layer_norm_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return accepts(step);
}

tn_status tn_cuda_layer_norm_launch(const tn_cuda_launch *l)
{
    const tn_layer_norm_params *p = l->step->params;
    tn_cuda_norm_args a = {.a = tn_cuda_view_of(&l->step->src[TN_SRC_layer_norm_x]),
                           .y = tn_cuda_view_of(&l->step->dst[0]),
                           .weight = tn_cuda_vector(l->step, TN_SRC_layer_norm_w),
                           .bias = tn_cuda_vector(l->step, TN_SRC_layer_norm_bias),
                           .eps = p->eps};
    return run(l, "layer", &a, false);
}
