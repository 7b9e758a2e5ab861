// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread for what takes long and is no pass of the engine: loading the model, and tasks such as embeddings.
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
    int (*open)(void *user);  // first of all, on the new thread; 0 or an exit code after a message
    void (*wake)(void *user); // `open` or a task has ended; on the thread of the worker
} worker_config;

// 0 or an exit code after a message.
int worker_start(const worker_config *cfg, worker **out);
// Ends the thread after what it does now. Tasks that wait are forgotten.
void worker_stop(worker **w);
// 1: `open` has succeeded; 0: it still runs; -1: it failed, and *code is its exit code.
int worker_opened(worker *w, int *code);

// The next calls are for the thread of HTTP.
void worker_add_task(worker *w, worker_task *task);
// Calls `done` of the tasks that have ended.
void worker_end_tasks(worker *w);
int32_t worker_n_tasks(worker *w); // that have not ended

#endif
