// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the thread does that opens, loads and unloads models.
#ifndef TENON_TOOLS_SERVER_LOADER_H
#define TENON_TOOLS_SERVER_LOADER_H

#include "tools/server/server.h"

typedef enum loader_op {
    LOADER_OPEN,   // the context
    LOADER_SURVEY, // the facts of a model
    LOADER_LOAD,
    LOADER_UNLOAD
} loader_op;

typedef struct loader_task {
    worker_task task; // first: the worker knows only this
    server *s;
    model *m; // NULL with LOADER_OPEN
    loader_op op;
    int code; // exit code, after a message
    char failure[512];
    model_facts facts;
    uint64_t start_ns, end_ns;
    void (*ended)(struct loader_task *task); // on the thread of HTTP
} loader_task;

// False: out of memory.
bool loader_run(server *s, model *m, loader_op op, void (*ended)(loader_task *task));
// Frees what a model has while it is loaded; also of one that was loaded in part.
void loader_free(model *m);

#endif
