// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The thread that loads the model and steps the engine. What the engine gives goes through a queue to the
// thread of HTTP: one lock and one wake-up per step, and no allocation once the queue has its size.
#ifndef TENON_TOOLS_SERVER_WORKER_H
#define TENON_TOOLS_SERVER_WORKER_H

#include <stdbool.h>
#include <tenon/engine.h>

typedef struct worker worker;

// Work between two steps that needs the thread of the engine, such as embeddings.
typedef struct worker_task {
    void (*run)(struct worker_task *task);  // there
    void (*done)(struct worker_task *task); // later, on the thread of HTTP
    struct worker_task *next;
} worker_task;

typedef struct worker_config {
    void *user;
    // On the new thread: makes the engine; 0 or an exit code after a message. *engine may stay NULL.
    int (*open)(void *user, tn_engine **engine, tn_context **ctx);
    void (*wake)(void *user); // the queue has something; on the thread of the engine
} worker_config;

// 0 or an exit code after a message.
int worker_start(const worker_config *cfg, worker **out);
// Ends the thread. What the engine holds ends with it.
void worker_stop(worker **w);
// 1: the engine is there; 0: not yet; otherwise `open` failed, and *code is its exit code.
int worker_opened(worker *w, int *code);

// As tn_engine_submit and tn_engine_cancel, on the thread of HTTP.
tn_status worker_submit(worker *w, const tn_request_config *cfg, uint64_t *id);
void worker_cancel(worker *w, uint64_t id);
void worker_add_task(worker *w, worker_task *task);

enum { WORKER_NOTHING, WORKER_EVENT, WORKER_TASK, WORKER_LOST };
typedef struct worker_item {
    int kind;              // WORKER_*
    tn_engine_event event; // valid until the next call
    uint64_t time_ns;      // of the event
    worker_task *task;
    const char *message; // WORKER_LOST: why no more steps are possible
} worker_item;
// The next item of the queue, on the thread of HTTP.
int worker_next(worker *w, worker_item *out);

typedef struct worker_figures {
    tn_engine_stats stats; // after the last step
    uint64_t step_ns;      // when it was complete, 0: none yet
    uint64_t longest_ns;   // the longest step
    int32_t pending;       // requests and tasks that have not ended
} worker_figures;
void worker_figures_get(worker *w, worker_figures *out);

#endif
