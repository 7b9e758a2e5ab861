// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads of the system: those of the pool of a context, and that of an engine.
#ifndef TN_CORE_THREAD_H
#define TN_CORE_THREAD_H

#include "core/context.h"

typedef struct tn_thread tn_thread;

// Signals are blocked there, so that the handlers of the program run on its own threads (glibc 2.32 or later;
// elsewhere the thread has the mask of its creator). `name`: at most 15 bytes, shown by debuggers.
// TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_thread_create(tn_context *ctx, const char *name, void (*run)(void *arg), void *arg,
                                       tn_thread **out);
void tn_thread_join(tn_thread **thread); // waits for its end; clears *thread, NULL is fine
// In a process that was forked: the thread is not there. Frees what is left of it.
void tn_thread_forget(tn_thread **thread);

// The calling thread gets processor time only where others leave it. Systems without that ignore it.
void tn_thread_set_background(void);
// Time that the calling thread has run on a processor, in nanoseconds; 0 if the system does not say.
uint64_t tn_thread_cpu_ns(void);

// A number of this process; a forked child has another one.
uint64_t tn_process_id(void);

#endif
