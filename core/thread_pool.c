// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Running a task on all threads: those of OpenMP, or the executor of the host program.
#include "core/context_impl.h"

#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct lent_task {
    tn_parallel_fn task;
    void *arg;
    int32_t n;
} lent_task;

static void run_lent(void *arg, int32_t i)
{
    const lent_task *t = arg;
    t->task(t->arg, i, t->n);
}

void tn_parallel(tn_context *ctx, int32_t n, tn_parallel_fn task, void *arg)
{
    if (n <= 1) {
        task(arg, 0, 1);
    } else if (ctx->cfg.executor.run) {
        lent_task lent = {task, arg, n};
        ctx->cfg.executor.run(ctx->cfg.executor.user, n, run_lent, &lent);
    } else {
#ifdef _OPENMP
        // The team may be smaller than requested (a thread limit of the host), so each task gets its real
        // size. LLVM's runtime prints a warning if more threads are requested than that limit allows.
        int limit = omp_get_thread_limit(), team = n < limit ? n : limit;
#pragma omp parallel num_threads(team)
        task(arg, (int32_t)omp_get_thread_num(), (int32_t)omp_get_num_threads());
#else
        task(arg, 0, 1);
#endif
    }
}
