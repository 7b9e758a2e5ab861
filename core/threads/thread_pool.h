// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Work on several threads: those of the context's own pool, of the host's executor, or of OpenMP.
//
// Work comes in phases of numbered parts. Threads take parts from a counter until none is left, and whoever
// ends the last part of a phase opens the next one. So a phase needs no certain number of threads: a thread
// that the system does not run, or that has not woken up yet, costs its help, and holds up the others with
// the one part at most that it has begun.
//
// A thread of the pool that finds no part polls for SPIN_NS and then sleeps until work comes. The number of
// threads that take part, the width, follows the cores that are free (pool_width.h).
#ifndef TN_CORE_THREAD_POOL_H
#define TN_CORE_THREAD_POOL_H

#include "core/context.h"
#include "core/threads/pool_width.h"

enum { TN_POOL_MAX_PARTS = 1 << 16 }; // of a phase

typedef struct tn_work {
    void *arg;
    // The number of parts of the next phase, which `width` threads would share; 0: the work is done. Called
    // by one thread at a time, after all parts of the phase before have ended.
    int32_t (*next)(void *arg, int32_t width);
    // Does a part. No two threads have the same `slot` at the same time; slots are below the context's number
    // of threads, and the calling thread has slot 0.
    void (*part)(void *arg, int32_t part, int32_t slot);
} tn_work;

// A thread of the pool.
typedef struct tn_pool_worker {
    tn_context *ctx;
    struct tn_thread *thread;
    int32_t slot;
} tn_pool_worker;

// The pool of a context. It starts its threads when there is work for them.
typedef struct tn_pool {
    // The phase that is open: its number (24 bits), how many parts it has (20) and how many of them are taken
    // (20; threads that come too late count it up further). One word, so that who takes a part knows of which
    // phase. No parts: no work. Everything else about a phase is written before it and read after it.
    TN_ALIGNED(64) _Atomic uint64_t phase;
    TN_ALIGNED(64) _Atomic int32_t n_unfinished; // parts of the phase
    TN_ALIGNED(64) _Atomic uint32_t bell;        // rings for threads that sleep until there is work
    _Atomic int32_t n_sleeping;
    _Atomic bool first_phase;                    // nobody has been woken for this work yet
    _Atomic uint64_t rung_ns;                    // when the bell rang last
    _Atomic uint32_t idle_bell;                  // for those that the width leaves out
    TN_ALIGNED(64) _Atomic uint32_t caller_bell; // for the thread that called
    _Atomic bool caller_sleeps;
    TN_ALIGNED(64) tn_pool_width width;
    // Written by the calling thread before the first phase.
    tn_work work;
    struct tn_failure *failure; // of a part, for the calling thread
    bool shared;                // threads of others take part, and have to get away at the end
    _Atomic int32_t n_watchers; // of passes whose spans of work are wanted. Relaxed: it orders nothing
    // Written by the thread that opens the next phase.
    uint32_t n_phases, n_opened; // with several parts; all
    tn_pool_meter caller_meter;  // of the calling thread, whichever it is
    bool last_was_short;
    uint32_t n_short;
    // Held while there is work. A call that finds it taken does its work alone.
    atomic_flag busy;
    _Atomic bool stopping;
    uint64_t process_id; // of the process that started the threads
    tn_pool_worker *workers;
    int32_t n_workers;
} tn_pool;

void tn_pool_init(tn_context *ctx);
// Ends and joins the threads.
void tn_pool_fini(tn_context *ctx);

// Does the work on the calling thread and all that join it; the message of a part that failed becomes that of
// the calling thread. It fails, before any part, if a thread cannot be started: TN_ERR_MEMORY. Any thread;
// while another thread's call is at work, and from inside a part, the work is done by the caller alone.
TN_MUST_USE tn_status tn_pool_run(tn_context *ctx, const tn_work *work);

// For tests, which need so many threads however many cores there are: the width is n from now on.
void tn_pool_fix_width(tn_context *ctx, int32_t n);

#endif
