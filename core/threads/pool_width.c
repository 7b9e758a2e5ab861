// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The number of threads that take part in work follows the free cores.
#include "core/threads/pool_width.h"

#include "core/cpu_features.h"
#include "core/threads/thread.h"

// Nanoseconds.
static const uint64_t WINDOW = 4000000; // of running, before a thread judges: about a slice of the system
static const uint64_t HOLD_LEAST = 20000000; // a width that fell stays at least so long,
static const uint64_t HOLD_MOST = 640000000; // and at most so long: a failing attempt costs a window of these
static const uint64_t FAILED_SOON =
    60000000; // a width that falls so soon after it rose was an attempt in vain
static const uint64_t COUNT_CORES = 250000000;

enum {
    STEP_PART = 8,  // the width changes by an eighth
    LOST_PART_MOST = 8,
    HOLD_GROWS = 4, // times longer after each attempt in vain
};

void tn_pool_width_init(tn_pool_width *w, int32_t n_threads)
{
    int32_t most = TN_MIN(n_threads, tn_cpu_count());
    w->n_threads = n_threads;
    w->fixed = false;
    // Relaxed here and below: these numbers order nothing, and a width that is seen late does no harm.
    atomic_store_explicit(&w->most, most, memory_order_relaxed);
    atomic_store_explicit(&w->now, most, memory_order_relaxed);
    atomic_store_explicit(&w->hold_ns, HOLD_LEAST, memory_order_relaxed);
    atomic_store_explicit(&w->cores_ns, tn_time_ns(), memory_order_relaxed);
}

// Whether this thread is the one that may change the width; it stays for `hold` then.
static bool claim_change(tn_pool_width *w, uint64_t now, uint64_t hold)
{
    uint64_t next = atomic_load_explicit(&w->next_ns, memory_order_relaxed);
    return now >= next && atomic_compare_exchange_strong_explicit(&w->next_ns, &next, now + hold,
                                                                  memory_order_relaxed, memory_order_relaxed);
}

// An eighth of the threads, so that many of them adapt within some windows.
static int32_t width_step(int32_t n)
{
    return TN_MAX(n / STEP_PART, 1);
}

bool tn_pool_width_update(tn_pool_width *w, uint64_t now_ns)
{
    if (w->fixed) return false;
    if (now_ns - atomic_load_explicit(&w->cores_ns, memory_order_relaxed) > COUNT_CORES) {
        atomic_store_explicit(&w->cores_ns, now_ns, memory_order_relaxed);
        int32_t most = TN_MIN(w->n_threads, tn_cpu_count());
        atomic_store_explicit(&w->most, most, memory_order_relaxed);
        if (atomic_load_explicit(&w->now, memory_order_relaxed) > most)
            atomic_store_explicit(&w->now, most, memory_order_relaxed);
    }
    int32_t most = atomic_load_explicit(&w->most, memory_order_relaxed);
    int32_t n = atomic_load_explicit(&w->now, memory_order_relaxed);
    if (n >= most || !claim_change(w, now_ns, WINDOW)) return false;
    atomic_store_explicit(&w->rose_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&w->now, TN_MIN(n + width_step(n), most), memory_order_relaxed);
    return true;
}

static void narrow(tn_pool_width *w, uint64_t now)
{
    int32_t n = atomic_load_explicit(&w->now, memory_order_relaxed);
    if (w->fixed || n == 1) return;
    uint64_t hold = atomic_load_explicit(&w->hold_ns, memory_order_relaxed);
    bool in_vain = now - atomic_load_explicit(&w->rose_ns, memory_order_relaxed) < FAILED_SOON;
    hold = in_vain ? TN_MIN(HOLD_GROWS * hold, HOLD_MOST) : HOLD_LEAST;
    if (!claim_change(w, now, hold)) return;
    atomic_store_explicit(&w->hold_ns, hold, memory_order_relaxed);
    atomic_store_explicit(&w->now, n - width_step(n), memory_order_relaxed);
}

void tn_pool_meter_begin(tn_pool_meter *m, uint64_t now_ns)
{
    m->wall_ns = now_ns;
    m->cpu_ns = tn_thread_cpu_ns();
}

// All threads wait for one that lost its core in the middle of a part. So of n threads that each lose a part
// L of their time, at different times, all compute for 1 - n L of it, and one thread less is as fast from
// n L = 1 / n on: L = 1 / (2 n) for two threads, and less for more. An eighth is the least: every system has
// some other work.
static void judge(tn_pool_meter *m, tn_pool_width *w, uint64_t now)
{
    if (m->wall_total < WINDOW) return;
    uint64_t lost = m->wall_total > m->cpu_total ? m->wall_total - m->cpu_total : 0;
    uint64_t n = (uint64_t)atomic_load_explicit(&w->now, memory_order_relaxed);
    if (m->cpu_total > 0 && lost > m->wall_total / TN_MIN(2 * n, LOST_PART_MOST)) narrow(w, now);
    m->wall_total = m->cpu_total = 0;
}

void tn_pool_meter_end(tn_pool_meter *m, tn_pool_width *w, uint64_t now_ns)
{
    m->wall_total += now_ns - m->wall_ns;
    m->cpu_total += tn_thread_cpu_ns() - m->cpu_ns;
    judge(m, w, now_ns);
}

void tn_pool_meter_update(tn_pool_meter *m, tn_pool_width *w, uint64_t now_ns)
{
    if (now_ns - m->wall_ns < WINDOW) return;
    tn_pool_meter_end(m, w, now_ns);
    tn_pool_meter_begin(m, now_ns);
}
