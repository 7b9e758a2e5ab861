// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Phases of parts on several threads; the contract is in thread_pool.h.
#include "core/threads/thread_pool.h"

#include "core/context_impl.h"
#include "core/os/library.h"
#include "core/threads/thread.h"

#include <stdio.h>

#ifdef _OPENMP
#include <omp.h>
#endif

// Nanoseconds that a thread polls before it sleeps: about what a sleep and a wake-up cost. The limit is a
// time, because a pause takes 17 ns on some processors and 60 on others.
static const uint64_t SPIN = 50000;
// Waking takes the one who rings microseconds, and the one who sleeps some 40.
static const uint64_t RING_AGAIN = 100000;
static const uint64_t SHORT = 100000; // a work of which measuring would be a noticeable part

enum {
    PAUSES = 16,        // between two readings of the clock
    WAKE_BRANCH = 2,    // each thread wakes so many, so that no single one wakes all
    MEASURE_SHORT = 8,  // one of so many short works is measured
    UPDATE_PHASES = 16, // between two checks of whether the width could rise
};

// --- the word of a phase ---------------------------------------------------------------------------------

enum { COUNT_BITS = 20 };
static const uint64_t COUNT_MASK = ((uint64_t)1 << COUNT_BITS) - 1;

static uint64_t phase_word(uint32_t number, uint32_t n_parts, uint32_t n_taken)
{
    return (uint64_t)number << 2 * COUNT_BITS | (uint64_t)n_parts << COUNT_BITS | n_taken;
}

static uint32_t phase_parts(uint64_t phase)
{
    return (uint32_t)(phase >> COUNT_BITS & COUNT_MASK);
}

static uint32_t phase_taken(uint64_t phase)
{
    return (uint32_t)(phase & COUNT_MASK);
}

static bool phase_has_parts(uint64_t phase)
{
    return phase_taken(phase) < phase_parts(phase);
}

// --- waking ----------------------------------------------------------------------------------------------

static void ring(tn_pool *p, int32_t n)
{
    atomic_fetch_add(&p->bell, 1);
    tn_wake(&p->bell, n);
}

static void ring_caller(tn_pool *p)
{
    atomic_fetch_add(&p->caller_bell, 1);
    tn_wake_all(&p->caller_bell);
}

// There are parts for those that sleep. They will be late for this phase, but not for the ones after it.
static void wake_some(tn_pool *p)
{
    // Sequentially consistent with the word of the phase: either this thread sees the sleeper, or the sleeper
    // sees the phase.
    bool caller = atomic_load(&p->caller_sleeps);
    if (atomic_load(&p->n_sleeping) == 0 && !caller) return;
    uint64_t now = tn_time_ns();
    bool first = atomic_exchange_explicit(&p->first_phase, false, memory_order_relaxed);
    if (!first && now - atomic_load_explicit(&p->rung_ns, memory_order_relaxed) < RING_AGAIN) return;
    atomic_store_explicit(&p->rung_ns, now, memory_order_relaxed);
    ring(p, WAKE_BRANCH);
    if (caller) ring_caller(p);
}

// --- phases ----------------------------------------------------------------------------------------------

static void work_ended(tn_pool *p)
{
    bool shared = p->shared; // another call may change it once it sees that this one's work is done
    atomic_store(&p->phase, phase_word(++p->n_phases, 0, 0));
    if (atomic_load(&p->caller_sleeps)) ring_caller(p);
    if (shared && atomic_load(&p->n_sleeping) > 0) ring(p, INT32_MAX);
}

// Wakes the threads that a larger width includes.
static void update_width(tn_pool *p)
{
    if (p->shared || !tn_pool_width_update(&p->width, tn_time_ns())) return;
    atomic_fetch_add(&p->idle_bell, 1);
    tn_wake_all(&p->idle_bell);
}

static void do_all_parts(const tn_work *work, int32_t n, int32_t slot)
{
    for (int32_t i = 0; i < n; i++) work->part(work->arg, i, slot);
}

// Opens the next phase with more than one part; phases of one part are done here. Called by the thread that
// ended the last part of the phase before.
static void open_phase(tn_context *ctx, int32_t slot)
{
    tn_pool *p = &ctx->pool;
    for (;;) {
        int32_t width = atomic_load_explicit(&p->width.now, memory_order_relaxed);
        int32_t n = p->work.next(p->work.arg, width);
        if (n <= 0) {
            work_ended(p);
            return;
        }
        if (++p->n_opened % UPDATE_PHASES == 0) update_width(p);
        if (n == 1 || width == 1) {
            uint64_t failures = tn_fail_count();
            do_all_parts(&p->work, n, slot);
            if (tn_fail_count() != failures) tn_fail_take(ctx, p->failure);
            continue;
        }
        atomic_store_explicit(&p->n_unfinished, n, memory_order_relaxed);
        atomic_store(&p->phase, phase_word(++p->n_phases, (uint32_t)n, 0));
        wake_some(p);
        return;
    }
}

// The number of a part that is the calling thread's now; -1: none is left. Acquire: what was written before
// the phase was opened.
static int32_t take_part(tn_pool *p)
{
    // Without the first look, threads that poll would count the parts that are taken up without end.
    if (!phase_has_parts(atomic_load_explicit(&p->phase, memory_order_relaxed))) return -1;
    uint64_t phase = atomic_fetch_add_explicit(&p->phase, 1, memory_order_acquire);
    return phase_has_parts(phase) ? (int32_t)phase_taken(phase) : -1;
}

static void report_work(tn_context *ctx, int32_t slot, uint64_t begin, int32_t n_parts)
{
    tn_span span = {.struct_size = sizeof span,
                    .kind = TN_SPAN_WORK,
                    .pool_thread = slot,
                    .name = "work",
                    .begin_ns = begin,
                    .end_ns = tn_time_ns(),
                    .count = n_parts};
    ctx->cfg.span(ctx->cfg.user, &span);
}

// Does parts of one phase until none is left, and opens the next one if it ends the last; false: there was
// none. From the first part it takes to the last it ends, the phase and the work stay.
static bool do_parts(tn_context *ctx, tn_pool *p, int32_t slot)
{
    int32_t n = 0, part = take_part(p);
    if (part < 0) return false;
    bool watched = !p->shared && atomic_load_explicit(&p->n_watchers, memory_order_relaxed) > 0;
    uint64_t failures = tn_fail_count(), begin = watched ? tn_time_ns() : 0;
    for (; part >= 0; n++, part = take_part(p)) p->work.part(p->work.arg, part, slot);
    if (tn_fail_count() != failures) tn_fail_take(ctx, p->failure);
    if (watched) report_work(ctx, slot, begin, n);
    // Release: what the parts wrote; acquire: what those of the other threads did.
    if (atomic_fetch_sub_explicit(&p->n_unfinished, n, memory_order_acq_rel) == n) open_phase(ctx, slot);
    return true;
}

// Polls until there are parts, or until `end` says that there is something else to do; false: neither came.
static bool poll(tn_pool *p, uint64_t since, bool (*end)(const tn_pool *p, int32_t slot), int32_t slot)
{
    do {
        for (int32_t i = 0; i < PAUSES; i++) {
            uint64_t phase = atomic_load_explicit(&p->phase, memory_order_acquire);
            if (phase_has_parts(phase) || end(p, slot)) return true;
            TN_PAUSE();
        }
    } while (tn_time_ns() - since < SPIN);
    return false;
}

// --- the threads of the pool -----------------------------------------------------------------------------

static bool is_left_out(const tn_pool *p, int32_t slot)
{
    return slot >= atomic_load_explicit(&p->width.now, memory_order_relaxed) ||
           atomic_load_explicit(&p->stopping, memory_order_relaxed);
}

// Sleeps until the width includes this thread again. Whoever needs it rings then. The width may have fallen
// after this thread read it and opened a phase for more threads, all of which sleep: the calling thread does
// the parts then. It is woken here, or sees the phase before it sleeps (sequential consistency).
static void sleep_left_out(tn_pool *p, int32_t slot)
{
    uint32_t bell = atomic_load(&p->idle_bell);
    if (phase_has_parts(atomic_load(&p->phase)) && atomic_load(&p->caller_sleeps)) ring_caller(p);
    if (slot >= atomic_load(&p->width.now) && !atomic_load(&p->stopping)) tn_wait_while(&p->idle_bell, bell);
}

static void sleep_until_work(tn_pool *p)
{
    uint32_t bell = atomic_load(&p->bell);
    atomic_fetch_add(&p->n_sleeping, 1);
    bool sleep = !phase_has_parts(atomic_load(&p->phase)) && !atomic_load(&p->stopping);
    if (sleep) tn_wait_while(&p->bell, bell);
    // Others sleep on: pass the news on, if there is still something to do.
    if (atomic_fetch_sub(&p->n_sleeping, 1) > 1 && phase_has_parts(atomic_load(&p->phase)))
        ring(p, WAKE_BRANCH);
}

static void worker_main(void *arg)
{
    tn_pool_worker *me = arg;
    tn_pool *p = &me->ctx->pool;
    tn_pool_meter meter = {0};
    if (me->ctx->cfg.thread_priority == TN_THREADS_BACKGROUND) tn_thread_set_background();
    tn_pool_meter_begin(&meter, tn_time_ns());
    while (!atomic_load_explicit(&p->stopping, memory_order_acquire)) {
        bool left_out = is_left_out(p, me->slot);
        if (!left_out && do_parts(me->ctx, p, me->slot)) continue;
        uint64_t now = tn_time_ns();
        tn_pool_meter_update(&meter, &p->width, now);
        if (!left_out && poll(p, now, is_left_out, me->slot)) continue;
        tn_pool_meter_end(&meter, &p->width, tn_time_ns());
        if (left_out)
            sleep_left_out(p, me->slot);
        else
            sleep_until_work(p);
        tn_pool_meter_begin(&meter, tn_time_ns());
    }
}

static void stop_workers(tn_pool *p)
{
    atomic_store(&p->stopping, true);
    ring(p, INT32_MAX);
    atomic_fetch_add(&p->idle_bell, 1);
    tn_wake_all(&p->idle_bell);
    for (int32_t i = 0; i < p->n_workers; i++) tn_thread_join(&p->workers[i].thread);
}

static void free_workers(tn_context *ctx)
{
    tn_pool *p = &ctx->pool;
    for (int32_t i = 0; i < p->n_workers; i++) tn_thread_forget(&p->workers[i].thread);
    tn_free(ctx, p->workers);
    p->workers = NULL;
    p->n_workers = 0;
    atomic_store(&p->stopping, false);
    atomic_store(&p->n_sleeping, 0);
}

// All but the calling thread.
static tn_status start_workers(tn_context *ctx)
{
    tn_pool *p = &ctx->pool;
    int32_t n = p->width.n_threads - 1;
    if (p->workers) return TN_OK;
    p->workers = tn_calloc(ctx, (size_t)n, sizeof *p->workers);
    if (!p->workers) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        char name[24];
        snprintf(name, sizeof name, "tenon-%d", (int)(i + 1));
        tn_pool_worker *w = &p->workers[i];
        *w = (tn_pool_worker){.ctx = ctx, .slot = i + 1};
        tn_status status = tn_thread_create(ctx, name, worker_main, w, &w->thread);
        if (status != TN_OK) {
            stop_workers(p);
            free_workers(ctx);
            return tn_fail_at(ctx, status, "thread %d of %d", (int)(i + 2), (int)(n + 1));
        }
        p->n_workers = i + 1;
    }
    return TN_OK;
}

// --- the calling thread ----------------------------------------------------------------------------------

static bool is_ended(const tn_pool *p, int32_t slot)
{
    TN_UNUSED(slot);
    return phase_parts(atomic_load_explicit(&p->phase, memory_order_acquire)) == 0;
}

static void caller_sleep(tn_pool *p)
{
    uint32_t bell = atomic_load(&p->caller_bell);
    atomic_store(&p->caller_sleeps, true);
    uint64_t phase = atomic_load(&p->phase);
    if (phase_parts(phase) > 0 && !phase_has_parts(phase)) tn_wait_while(&p->caller_bell, bell);
    atomic_store(&p->caller_sleeps, false);
}

static void run_as_caller(tn_context *ctx)
{
    tn_pool *p = &ctx->pool;
    tn_pool_meter *meter = &p->caller_meter;
    uint64_t start = tn_time_ns();
    // Measuring takes a microsecond, so of works that are that short it is done for some.
    bool measured = !p->last_was_short || ++p->n_short % MEASURE_SHORT == 0;
    if (measured) tn_pool_meter_begin(meter, start);
    while (!is_ended(p, 0)) {
        if (do_parts(ctx, p, 0)) continue;
        uint64_t now = tn_time_ns();
        if (measured) tn_pool_meter_update(meter, &p->width, now);
        if (poll(p, now, is_ended, 0)) continue;
        if (measured) tn_pool_meter_end(meter, &p->width, tn_time_ns());
        caller_sleep(p);
        if (measured) tn_pool_meter_begin(meter, tn_time_ns());
    }
    uint64_t end = tn_time_ns();
    if (measured) tn_pool_meter_end(meter, &p->width, end);
    p->last_was_short = end - start < SHORT;
}

// Threads of others: they come once for each work, and leave when it is done.
static void run_as_guest(void *arg, int32_t slot)
{
    tn_context *ctx = arg;
    tn_pool *p = &ctx->pool;
    while (!is_ended(p, slot)) {
        if (do_parts(ctx, p, slot) || poll(p, tn_time_ns(), is_ended, slot)) continue;
        uint32_t bell = atomic_load(&p->bell);
        atomic_fetch_add(&p->n_sleeping, 1);
        uint64_t phase = atomic_load(&p->phase);
        if (phase_parts(phase) > 0 && !phase_has_parts(phase)) tn_wait_while(&p->bell, bell);
        atomic_fetch_sub(&p->n_sleeping, 1);
    }
}

static void run_on_openmp(tn_context *ctx, int32_t n)
{
#ifdef _OPENMP
    // The team may be smaller than requested (a thread limit of the host). LLVM's runtime prints a warning if
    // more threads are requested than that limit allows.
    int limit = omp_get_thread_limit(), threads = n < limit ? n : limit;
#pragma omp parallel num_threads(threads)
    run_as_guest(ctx, (int32_t)omp_get_thread_num());
#else
    TN_UNUSED(n);
    run_as_guest(ctx, 0);
#endif
}

static bool uses_own_threads(const tn_context *ctx)
{
    return !ctx->cfg.executor.run && ctx->cfg.threads_by == TN_THREADS_OWN;
}

static tn_status run_alone(const tn_work *work)
{
    int32_t n;
    while ((n = work->next(work->arg, 1)) > 0) do_all_parts(work, n, 0);
    return TN_OK;
}

// In a forked child no thread of the pool is there, whatever state it was in.
static void reset_in_child(tn_context *ctx)
{
    tn_pool *p = &ctx->pool;
    free_workers(ctx);
    atomic_store(&p->phase, 0);
    atomic_store(&p->caller_sleeps, false);
    atomic_flag_clear(&p->busy);
    p->process_id = tn_process_id();
}

static void do_work(tn_context *ctx, const tn_work *work)
{
    tn_pool *p = &ctx->pool;
    tn_failure failure = {.taken = ATOMIC_FLAG_INIT};
    p->work = *work;
    p->failure = &failure;
    p->shared = !uses_own_threads(ctx);
    update_width(p);
    atomic_store_explicit(&p->first_phase, true, memory_order_relaxed);
    open_phase(ctx, 0); // threads of the pool join from here on
    if (is_ended(p, 0)) {
        // There were phases of one part alone, or the others have done everything in the meantime.
    } else if (!p->shared)
        run_as_caller(ctx);
    else if (ctx->cfg.executor.run)
        ctx->cfg.executor.run(ctx->cfg.executor.user, p->width.n_threads, run_as_guest, ctx);
    else
        run_on_openmp(ctx, p->width.n_threads);
    tn_fail_give(ctx, &failure);
}

tn_status tn_pool_run(tn_context *ctx, const tn_work *work)
{
    tn_pool *p = &ctx->pool;
    if (p->width.n_threads == 1) return run_alone(work);
    if (p->process_id != tn_process_id()) reset_in_child(ctx);
    // Acquire and release: what the last call wrote into the pool.
    if (atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire)) return run_alone(work);
    bool needs = uses_own_threads(ctx) && atomic_load_explicit(&p->width.now, memory_order_relaxed) > 1;
    tn_status status = needs ? start_workers(ctx) : TN_OK;
    if (status == TN_OK) do_work(ctx, work);
    atomic_flag_clear_explicit(&p->busy, memory_order_release);
    return status;
}

// --- making a pool ---------------------------------------------------------------------------------------

void tn_pool_init(tn_context *ctx)
{
    tn_pool *p = &ctx->pool; // zeros
    atomic_flag_clear(&p->busy);
    tn_pool_width_init(&p->width, ctx->cfg.n_threads);
    p->process_id = tn_process_id();
    // Threads of others are theirs to schedule.
    if (!uses_own_threads(ctx)) tn_pool_fix_width(ctx, ctx->cfg.n_threads);
#ifdef _OPENMP
    // Its threads never end, so their code must stay when the library is unloaded.
    if (ctx->cfg.threads_by == TN_THREADS_OPENMP) tn_library_keep((void (*)(void))omp_get_thread_limit);
#endif
}

void tn_pool_fini(tn_context *ctx)
{
    tn_pool *p = &ctx->pool;
    if (p->process_id == tn_process_id()) stop_workers(p);
    free_workers(ctx);
}

void tn_pool_fix_width(tn_context *ctx, int32_t n)
{
    tn_pool_width *w = &ctx->pool.width;
    w->fixed = true;
    atomic_store(&w->now, n);
    atomic_store(&w->most, n);
}

// --- tasks -----------------------------------------------------------------------------------------------

typedef struct task_list {
    tn_parallel_fn task;
    void *arg;
    int32_t n;
    bool done;
} task_list;

static int32_t next_tasks(void *arg, int32_t width)
{
    task_list *t = arg;
    TN_UNUSED(width);
    if (t->done) return 0;
    t->done = true;
    return t->n;
}

static void run_task(void *arg, int32_t part, int32_t slot)
{
    const task_list *t = arg;
    TN_UNUSED(slot);
    t->task(t->arg, part, t->n);
}

tn_status tn_parallel(tn_context *ctx, int32_t n, tn_parallel_fn task, void *arg)
{
    task_list tasks = {.task = task, .arg = arg, .n = n};
    tn_work work = {.arg = &tasks, .next = next_tasks, .part = run_task};
    return n <= 1 ? run_alone(&work) : tn_pool_run(ctx, &work);
}
