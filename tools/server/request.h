// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A POST request from its body to its answer or its job: the JSON is read, a model is chosen and waited for,
// the handler of the route reads the fields and makes token ids of texts, and at last something answers.
//
// Long requests are read on a thread of their own, because making ids of megabytes takes a second in which
// streams would get no tokens. Grammars and schemas are compiled there, too: a hostile one takes 0.1 s. So a
// handler knows neither the exchange nor anything of the server that changes: it leaves its result in an
// `outcome`, and what touches the exchange is done afterwards by the thread of HTTP.
#ifndef TENON_TOOLS_SERVER_REQUEST_H
#define TENON_TOOLS_SERVER_REQUEST_H

#include "tools/server/server.h"

#include <stdatomic.h>

// What a handler leaves: an error, JSON, or how it goes on.
typedef struct outcome {
    bool failed;
    error_id id;
    char param[128]; // "": none
    char message[512];
    size_t n_prompt; // of ERROR_CONTEXT
    char *text;      // the JSON of the answer, from malloc
    size_t n_text;
    // Goes on, on the thread of HTTP; NULL: `text` is the answer. It takes *state, or leaves it to `drop`.
    void (*finish)(server *s, exchange *x, model *m, void **state);
    void *state;
    void (*drop)(void *state);
    // What follows `finish`, where it takes long: `work` on the thread of long requests, or at once unless
    // `slow`; then `worked`, always, on the thread of HTTP. The request and its state live until then.
    void (*work)(void *state);
    void (*worked)(void *state);
    bool slow;
} outcome;

typedef struct request {
    worker_task task; // first: the worker knows only this
    server *s;
    exchange *x; // NULL: the client is gone
    model *m;    // NULL: not chosen yet
    const route *route;
    char *text; // of the body
    size_t n_text;
    body body;
    outcome outcome;
    uint64_t salt;    // a random number
    atomic_bool left; // set when the client is gone: what was not begun is not worth it
    bool is_long, on_thread, held, loads;
    struct request *next, **link, *next_held;
} request;

// The body of the exchange is complete.
void request_begin(server *s, exchange *x);
// Its model is loaded, or could not be.
void request_go_on(request *r);
bool request_needs_facts(const request *r); // and no more than these
// How long its model stays without a user, by the field keep_alive of Ollama; -1: always. False: absent or
// wrong.
bool request_keep_alive(const node *root, int64_t *seconds);
// Requests that have no job yet get this error.
void requests_end(server *s, error_id id, const char *message);
// Several times a second: time limits.
void requests_tick(server *s);
// At the end, when the thread of long requests is gone.
void requests_close(server *s);

#endif
