// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts of a request that an embedder evaluates on the thread of the worker, a request at a time.
#ifndef TENON_TOOLS_SERVER_API_VECTORS_H
#define TENON_TOOLS_SERVER_API_VECTORS_H

#include "tools/server/api/fields.h"

enum { TEXTS_MAX = 2048 };

typedef struct vectors {
    worker_task task; // first: the worker knows only this
    server *s;
    model *m;
    exchange *x; // NULL: the client is gone
    void (*answer)(struct vectors *v);
    tn_text_ids *texts;
    size_t n, n_tokens;
    float *rows; // of each text, tn_embedder_width values
    tn_status status;
    char message[256];
    bool base64, ollama;
    bool given; // the texts are token ids of the request, from malloc
    // of rerank
    size_t top;
    bool with_text, bare;
    char **documents;
} vectors;

// Memory for n texts; NULL: `failed`.
vectors *vectors_new(fields *f, size_t n);
// Takes ids from the tokenizer. False: too long or empty, `failed`.
bool vectors_add(fields *f, vectors *v, int32_t *ids, size_t n, const char *param);
// The outcome: they go to the worker, and `answer` is called at the end if the client is still there.
void vectors_start(fields *f, vectors *v, void (*answer)(vectors *v));
void vectors_free(vectors *v);

#endif
