// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread for what takes long and is no pass of an engine: loading models, reading long requests,
// embeddings.
#ifndef TENON_TOOLS_SERVER_WORKER_H
#define TENON_TOOLS_SERVER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct worker worker;

typedef struct worker_task {
    void (*run)(struct worker_task *task);  // on the thread of the worker
    void (*done)(struct worker_task *task); // later, on the thread of HTTP
    struct worker_task *next;
} worker_task;

typedef struct worker_config {
    void *user;
    void (*wake)(void *user); // a task has ended; on the thread of the worker
} worker_config;

// 0 or an exit code after a message.
int worker_start(const worker_config *cfg, worker **out);
// Ends the thread after what it does now. Clear *w with worker_destroy.
void worker_stop(worker *w);
// Stops it, and calls `done` of all tasks, also of those that were not run. NULL is fine.
void worker_destroy(worker **w);

// The next calls are for the thread of HTTP.
void worker_add_task(worker *w, worker_task *task);
// Calls `done` of the tasks that have ended.
void worker_end_tasks(worker *w);

#endif
