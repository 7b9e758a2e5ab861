// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps run one after the other. Each has one or more phases, each phase is cut into parts, and threads take
// parts until none is left (core/threads/thread_pool.h). Kernels call functions of this file, so it is apart
// from backend.c, whose table refers to all kernels.
#include "backends/cpu/run.h"

#include "core/threads/thread_pool.h"

struct tn_cpu_stop {
    const _Atomic int32_t *cancel; // of the submission; NULL: none
    _Atomic bool seen;             // some step was left out or incomplete
};

// What the threads share.
typedef struct run_state {
    const tn_cpu_program *program;
    int32_t at;       // index of the current step
    tn_cpu_task task; // of the current phase; all but the numbers of the part and the thread
    _Atomic int64_t next_item;
    struct tn_cpu_stop stop;
    uint64_t *step_ns; // NULL: nobody wants times
    uint64_t start_ns; // of the current step
} run_state;

// --- cancelling ------------------------------------------------------------------------------------------

static bool is_cancelled(struct tn_cpu_stop *s)
{
    // Relaxed both: neither orders data, the result is thrown away.
    if (!s->cancel || atomic_load_explicit(s->cancel, memory_order_relaxed) == 0) return false;
    atomic_store_explicit(&s->seen, true, memory_order_relaxed);
    return true;
}

bool tn_cpu_stopped(const tn_cpu_task *task)
{
    return task->stop && is_cancelled(task->stop);
}

// --- phases ----------------------------------------------------------------------------------------------

static void begin_step(run_state *r, int32_t i)
{
    r->at = i;
    r->task.step = &r->program->steps[i].step;
    r->task.phase = -1;
}

static void end_step(run_state *r)
{
    if (!r->step_ns) return;
    uint64_t now = tn_time_ns();
    r->step_ns[r->at] += now - r->start_ns;
    r->start_ns = now;
}

// The next phase of the current step, or the first one of a step after it.
static int32_t next_phase(void *arg, int32_t width)
{
    run_state *r = arg;
    for (;;) {
        if (++r->task.phase == 0) r->task.width = width;
        r->task.nth = width;
        int32_t n = r->program->steps[r->at].parts(&r->task);
        if (n > 0) {
            r->task.nth = n;
            atomic_store_explicit(&r->next_item, 0, memory_order_relaxed);
            return n;
        }
        end_step(r);
        if (r->at + 1 == r->program->n_steps || is_cancelled(&r->stop)) return 0;
        begin_step(r, r->at + 1);
    }
}

static void run_part(void *arg, int32_t part, int32_t slot)
{
    const run_state *r = arg;
    tn_cpu_task task = r->task;
    task.ith = part;
    task.thread = slot;
    r->program->steps[r->at].launch(&task);
}

tn_status tn_cpu_run(tn_context *ctx, const tn_cpu_program *program, const tn_submit_options *options)
{
    run_state r = {.program = program,
                   .stop = {.cancel = options ? options->cancel : NULL},
                   .step_ns = options ? options->step_ns : NULL};
    r.task = (tn_cpu_task){.scratch = program->scratch,
                           .n_threads = tn_context_n_threads(ctx),
                           .next_item = &r.next_item,
                           .has_bf16 = program->has_bf16,
                           .alike = program->alike,
                           .level = program->level,
                           .openblas = program->openblas,
                           .stop = &r.stop};
    tn_work work = {.arg = &r, .next = next_phase, .part = run_part};
    if (program->n_steps == 0) return TN_OK;
    begin_step(&r, 0);
    if (r.step_ns) r.start_ns = tn_time_ns();
    tn_status status = is_cancelled(&r.stop) ? TN_OK : tn_pool_run(ctx, &work);
    if (status == TN_OK && atomic_load_explicit(&r.stop.seen, memory_order_relaxed))
        status = tn_fail(ctx, TN_ERR_CANCELLED, "cancelled");
    return status;
}
