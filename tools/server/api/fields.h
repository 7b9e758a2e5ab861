// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed fields of a request. The first one that is wrong becomes the error of the outcome; the calls after it
// return their defaults, so that a handler asks once, at the end, whether all was well (`failed`). null
// counts as absent.
#ifndef TENON_TOOLS_SERVER_API_FIELDS_H
#define TENON_TOOLS_SERVER_API_FIELDS_H

#include "tools/server/request.h"

typedef struct fields {
    server *s; // only what never changes
    model *m;  // loaded, unless the route asks for facts only
    writer *w;
    outcome *o;
    uint64_t salt; // a random number
    const node *object;
    const char *prefix; // of paths in messages: "options."
    bool failed;
    // The path of a field as the client has it, where the object was made from another one; NULL: it is the
    // same.
    void (*rename)(const void *user, char *path, size_t size);
    const void *user;
} fields;

void field_fail(fields *f, error_id id, const char *name, const char *fmt, ...) PRINTF_LIKE(4, 5);
const node *field(fields *f, const char *name); // NULL: absent
bool field_bool(fields *f, const char *name, bool otherwise);
int64_t field_int(fields *f, const char *name, int64_t least, int64_t most, int64_t otherwise);
double field_number(fields *f, const char *name, double least, double most, double otherwise);
const char *field_text(fields *f, const char *name, const char *otherwise);
// A field of that kind, NULL: absent or wrong.
const node *field_of(fields *f, const char *name, node_kind kind);
// The same request with another object.
fields fields_inner(const fields *f, const node *object, const char *prefix);
// The answer is what was written with f->w.
void fields_send(fields *f);
// The field has so many tokens that they do not fit into the context.
void field_too_long(fields *f, const char *name, size_t n);

// How a request wants its text generated. Memory that it points at lives as long as the body and `own`.
typedef struct request_params {
    tn_generation_config cfg;
    tn_sampling sampling; // of cfg
    const char *stops[16];
    int32_t *bias_tokens; // from malloc
    float *bias_values;
    char *schema;             // from malloc
    const char *schema_field; // its path in the request
    void *state;              // of the protocol, for the job; it takes it
    bool stream, include_usage, logprobs;
    uint64_t salt;                // of the cache of prefixes
    const struct tool_use *tools; // NULL: none
    int32_t n;
} request_params;

// The fields of the OpenAI routes, on top of the options of the server. `chat`: the form of logprobs, and
// the default of max_tokens. False: `failed`.
bool params_read(fields *f, request_params *p, bool chat);
// Those of Ollama's `options` object and `format`.
bool params_read_ollama(fields *f, request_params *p);
void params_fini(request_params *p);

#endif
