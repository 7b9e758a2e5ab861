// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The ops of the family norm: threads of a row by the number of rows. Nothing here differs from op to op. The
// entries of an op are tn_<op>_1, _2 and _4, by the runs of four floats of a thread, and tn_<op>_any.
#include "backends/cuda/norm/norm_args.h"
#include "backends/cuda/runtime/rows.h"

enum {
    WARP = 32,
    MOST_RUNS = 4, // of four floats, for each thread
    FILLED = 2,    // blocks of each multiprocessor
    MOST_THREADS = 1024,
    WARPS = 8, // rows of a block while a warp has a row
    ANY_THREADS = 256,
};

bool tn_cuda_norm_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    for (int32_t i = 0; i < step->n_src; i++)
        if (tn_step_has_src(step, i) && !tn_cuda_f32_rows(&step->src[i])) return false;
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!tn_cuda_f32_rows(&step->dst[i])) return false;
    return tn_cuda_operands_fit(step) && step->dst[0].ne[3] <= INT32_MAX / 4 &&
           tn_view_n_rows(&step->dst[0]) <= INT32_MAX;
}

// All runs of four aligned, and the row within the registers of a block.
static bool fits_registers(tn_cuda_view *const *views, int32_t n_views, int64_t n)
{
    bool aligned = n % 4 == 0;
    for (int32_t i = 0; i < n_views; i++) aligned = aligned && tn_cuda_aligned(views[i], 4);
    return aligned && n <= 4 * MOST_RUNS * MOST_THREADS;
}

tn_status tn_cuda_norm_launch(const tn_cuda_launch *l)
{
    tn_cuda_norm_args a = {.op = tn_cuda_operands_of(l->step)};
    tn_cuda_view *views[TN_CUDA_MAX_OPERANDS];
    int32_t n_views = tn_cuda_operands_list(l->step, &a.op, views);
    tn_cuda_views_merge(views, n_views, false);
    const tn_cuda_view *y = &a.op.dst[0];
    int64_t n_rows = y->ne[0] * y->ne[1] * y->ne[2], runs = tn_div_up(y->ne[3], 4);
    tn_cuda_grid grid = {.x = (uint32_t)n_rows, .y = 1, .z = 1, .threads = ANY_THREADS};
    a.n_rows = (uint32_t)n_rows;
    char entry[48];
    const char *op = tn_op_name(l->step->op);
    if (!fits_registers(views, n_views, y->ne[3])) {
        a.group = ANY_THREADS;
        snprintf(entry, sizeof entry, "tn_%s_any", op);
        return tn_cuda_run(l, TN_CUDA_MODULE_norm, entry, &grid, &a);
    }
    // With rows for less than two blocks of each multiprocessor a thread has one run, which is the shortest
    // way through a row. With more rows it has four, so that more loads are in flight.
    int64_t per_thread = n_rows < FILLED * l->cuda->n_sms ? 1 : MOST_RUNS;
    int64_t threads = TN_MIN(tn_div_up(tn_div_up(runs, per_thread), WARP) * WARP, (int64_t)MOST_THREADS);
    per_thread = tn_div_up(runs, threads);
    per_thread = per_thread > 2 ? MOST_RUNS : per_thread;
    a.group = (int32_t)threads;
    if (threads == WARP && n_rows > 1) {
        grid.threads = WARP * WARPS;
        grid.x = (uint32_t)tn_div_up(n_rows, WARPS);
    } else {
        grid.threads = (uint32_t)threads;
    }
    snprintf(entry, sizeof entry, "tn_%s_%d", op, (int)per_thread);
    return tn_cuda_run(l, TN_CUDA_MODULE_norm, entry, &grid, &a);
}
