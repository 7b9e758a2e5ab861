// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The models of the server. One alone is loaded at the start and stays. Several are loaded when a request
// names them, within a budget of memory, and unloaded when nobody has used them for some time, or when
// another one needs their memory; never while a request runs.
//
// When a device fails, all models that are loaded are lost with what they run, and are unloaded: the library
// makes a device anew when nothing is left on it. The next request loads its model again.
//
// All of this belongs to the thread of HTTP, except that one thread, the loader, opens, loads and unloads
// models, one at a time (loader.c). While it does, `r` and what follows it until `use` are its own.
#ifndef TENON_TOOLS_SERVER_MODELS_H
#define TENON_TOOLS_SERVER_MODELS_H

#include "tools/chat/generate.h"
#include "tools/server/metrics.h"
#include "tools/server/worker.h"

#include <tenon/engine.h>

struct server;
struct request;

enum { NAME_SIZE = 256, MODELS_MAX = 1024 };

typedef enum model_state {
    MODEL_UNLOADED,
    MODEL_LOADING,
    MODEL_READY,
    MODEL_UNLOADING,
    MODEL_LOST // its device has failed; it is unloaded as soon as nothing uses it
} model_state;

// Bytes of one device.
typedef struct device_size {
    const char *device; // its name, valid as long as the context
    uint64_t size;
} device_size;

// What is known of a file.
typedef struct model_facts {
    char arch[64], fingerprint[64];
    char quant[16]; // the type of most weights, as the file says
    int32_t n_vocab, n_ctx_train, n_embd, n_layers, n_ctx, n_seq;
    uint64_t n_params, weight_size, file_size, device_size;
    bool gives_text;
    device_size needs[TN_MEMORY_DEVICES]; // memory of its weights and its session
    int n_needs;                          // 0: not known
} model_facts;

typedef struct model {
    struct server *s;
    char name[NAME_SIZE];
    char *path;
    int64_t modified; // of the file, seconds since 1970
    model_state state;
    bool surveyed;     // the facts, or `failure`, are known
    bool was_lost;     // since it was loaded the last time
    char failure[512]; // why it was not loaded the last time, "": it was
    uint64_t failed_ns;
    model_facts facts;
    // while it is loaded
    run_state r;           // the options, the model, the sampling that requests change
    tn_engine *engine;     // on a thread of its own; NULL: the model gives embeddings
    tn_embedder *embedder; // NULL: the model gives text
    worker *w;             // of the embedder
    tn_session *scorer;    // of score.c, NULL: not needed yet
    void *watch;           // of the engine's events
    // use
    int n_users, n_held; // requests and jobs; those of them that wait until it is loaded
    struct request *held, **held_end;
    uint64_t wanted_ns;   // since when they do; 0: none
    uint64_t idle_ns;     // since when it has no user
    int64_t keep_seconds; // that it stays without a user, -1: always
    bool leaves;          // others need its memory: it takes no more requests
    model_counts counts;
    // of the engine, by ticks: its passes, the tokens in them, the time of the last one, and the longest one
    uint64_t n_steps, n_tokens, progress_ns, longest_ns;
    bool busy_before;
    int n_failures; // passes that failed, one after the other
} model;

typedef struct model_list {
    model *all;
    int n;
    bool single; // given as one file: loaded at the start
    bool lost;   // a device has failed: nothing is loaded before all models are unloaded
    worker *loader;
    struct loader_task *task;            // of the loader, NULL: it waits
    device_size free[TN_MEMORY_DEVICES]; // when none was loaded
    int n_free;
    tn_engine_stats retired; // counts of engines that are gone
} model_list;

// Finds the files that the command line names. 0 or an exit code after a message.
int models_open(struct server *s);
void models_close(struct server *s);
// Starts the loader. 0 or an exit code after a message.
int models_start(struct server *s);
// Several times a second, and after each event: loads and unloads what is due.
void models_update(struct server *s);
// The model of that name, the first one for NULL and ""; NULL: there is none.
model *models_find(struct server *s, const char *name, bool ollama);
// A request or job begins or ends to use it.
void model_use(model *m);
void model_unuse(model *m);
// The request waits until the model is loaded, or its facts are known.
void model_hold(model *m, struct request *r);
void model_forget(model *m, struct request *r);
// "loaded", "loading", "unloaded", "failed" or "lost".
const char *model_status(const model *m);
// When it will be unloaded, seconds since 1970; a date far away: never.
int64_t model_expires(const model *m);
// Bytes that it needs or has on all devices.
uint64_t model_size(const model *m);
bool model_is_stuck(const model *m);
// Whether its device has failed and it cannot be loaded again as yet.
bool model_is_lost(const model *m);
// The device has failed, or with TN_ERR_MEMORY the passes of this model alone: what runs ends with the
// message.
void models_lose(struct server *s, model *m, tn_status status, const char *message);
#endif
