// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Running a task on all threads: those of OpenMP, or the executor of the host program.
#include "core/context_impl.h"

#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct team_task {
    tn_context *ctx;
    tn_parallel_fn task;
    void *arg;
    int32_t n;
    tn_failure failure; // of the team: messages belong to the thread that called
} team_task;

static void run_one(team_task *t, int32_t i, int32_t n)
{
    uint64_t before = tn_fail_count();
    t->task(t->arg, i, n);
    if (tn_fail_count() != before) tn_fail_take(t->ctx, &t->failure);
}

static void run_lent(void *arg, int32_t i)
{
    team_task *t = arg;
    run_one(t, i, t->n);
}

void tn_parallel(tn_context *ctx, int32_t n, tn_parallel_fn task, void *arg)
{
    if (n <= 1) {
        task(arg, 0, 1);
        return;
    }
    team_task team = {.ctx = ctx, .task = task, .arg = arg, .n = n, .failure = {.taken = ATOMIC_FLAG_INIT}};
    if (ctx->cfg.executor.run) {
        ctx->cfg.executor.run(ctx->cfg.executor.user, n, run_lent, &team);
    } else {
#ifdef _OPENMP
        // The team may be smaller than requested (a thread limit of the host), so each task gets its real
        // size. LLVM's runtime prints a warning if more threads are requested than that limit allows.
        int limit = omp_get_thread_limit(), threads = n < limit ? n : limit;
#pragma omp parallel num_threads(threads)
        run_one(&team, (int32_t)omp_get_thread_num(), (int32_t)omp_get_num_threads());
#else
        task(arg, 0, 1);
#endif
    }
    tn_fail_give(ctx, &team.failure);
}
