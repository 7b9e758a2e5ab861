// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How the threads of a team wait for each other and learn that their work was cancelled. Kernels call these
// functions, so they are apart from backend.c, whose table refers to all kernels.
#include "backends/cpu/team.h"

#include "core/context.h"

// --- barrier ---------------------------------------------------------------------------------------

// Spins before it sleeps: a step takes microseconds, and the other threads are usually a few instructions
// away. 1000 pauses are about 50 us on recent x86. When another program holds a core, sleeping lets the late
// thread run: spinning on made two processes on two cores 35 times slower.
enum { SPINS_BEFORE_SLEEP = 1000 };

static void barrier_wait(tn_cpu_barrier *b, int32_t n_threads)
{
    if (n_threads == 1) return;
    uint32_t round = atomic_load_explicit(&b->round, memory_order_relaxed);
    // acq_rel: everything written before the barrier by any thread is seen after it by all; the last
    // arrival publishes through `round`, which the others acquire.
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) == n_threads - 1) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        // Sequentially consistent with `sleepers`: either this thread sees the sleeper, or the sleeper's
        // futex sees the new round.
        atomic_store(&b->round, round + 1);
        if (atomic_load(&b->sleepers) > 0) tn_wake_all(&b->round);
        return;
    }
    for (int32_t spins = 0; atomic_load_explicit(&b->round, memory_order_acquire) == round; spins++) {
        if (spins < SPINS_BEFORE_SLEEP) {
            TN_PAUSE();
            continue;
        }
        atomic_fetch_add(&b->sleepers, 1);
        tn_wait_while(&b->round, round);
        atomic_fetch_sub(&b->sleepers, 1);
    }
}

void tn_cpu_barrier_wait(const tn_cpu_task *task)
{
    barrier_wait(task->barrier, task->nth);
}

// --- cancelling ------------------------------------------------------------------------------------

bool tn_cpu_stopped(const tn_cpu_task *task)
{
    // Relaxed both: neither orders data, the result is thrown away.
    if (!task->stop || !task->stop->cancel ||
        atomic_load_explicit(task->stop->cancel, memory_order_relaxed) == 0)
        return false;
    atomic_store_explicit(&task->stop->seen, true, memory_order_relaxed);
    return true;
}
