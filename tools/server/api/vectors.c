// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/api/vectors.h"

#include <stdlib.h>

vectors *vectors_new(fields *f, size_t n)
{
    vectors *v = calloc(1, sizeof *v);
    if (v) {
        v->s = f->s;
        v->m = f->m;
        v->texts = calloc(n, sizeof *v->texts);
        v->documents = calloc(n, sizeof *v->documents);
        v->rows = calloc(n * (size_t)tn_embedder_width(f->m->embedder), sizeof *v->rows);
    }
    if (v && v->texts && v->documents && v->rows) return v;
    vectors_free(v);
    field_fail(f, ERROR_OWN, "input", "out of memory");
    return NULL;
}

void vectors_free(vectors *v)
{
    if (!v) return;
    if (v->x) v->x->user = NULL;
    for (size_t i = 0; i < v->n; i++) {
        int32_t *ids = (int32_t *)(uintptr_t)v->texts[i].ids;
        if (v->given)
            free(ids);
        else
            tn_tokens_free(v->m->r.model, ids);
        free(v->documents[i]);
    }
    free(v->texts);
    free(v->documents);
    free(v->rows);
    free(v);
}

bool vectors_add(fields *f, vectors *v, int32_t *ids, size_t n, const char *param)
{
    size_t most = (size_t)tn_embedder_max_tokens(f->m->embedder);
    v->texts[v->n++] = (tn_text_ids){ids, n < INT32_MAX ? (int32_t)n : INT32_MAX};
    v->n_tokens += n;
    if (n > 0 && n <= most) return true;
    if (n == 0) field_fail(f, ERROR_FIELD, param, "a text without tokens");
    field_too_long(f, param, n);
    return false;
}

static void run(worker_task *task)
{
    vectors *v = (vectors *)(void *)task;
    v->status = tn_embedder_run(v->m->embedder, v->texts, (int32_t)v->n, v->rows);
    if (v->status != TN_OK) (void)tn_context_error(v->m->r.t.ctx, v->message, sizeof v->message);
}

static void done(worker_task *task)
{
    vectors *v = (vectors *)(void *)task;
    model *m = v->m;
    v->s->figures.prompt_tokens += v->n_tokens;
    m->counts.prompt_tokens += v->n_tokens;
    const char *message = v->message[0] ? v->message : tn_status_text(v->status);
    bool lost = v->status == TN_ERR_DEVICE;
    if (lost) models_lose(v->s, m, v->status, message);
    if (v->x && v->status != TN_OK)
        reply_error(v->s, v->x, lost ? ERROR_LOST : ERROR_OWN, NULL, "%s", message);
    else if (v->x)
        v->answer(v);
    vectors_free(v);
    model_unuse(m);
}

// The client has left: the vectors have nobody to go to.
static void forget(exchange *x)
{
    vectors *v = x->user;
    v->x = NULL;
}

static void start(server *s, exchange *x, model *m, void **state)
{
    vectors *v = *state;
    (void)s;
    *state = NULL;
    v->task = (worker_task){.run = run, .done = done};
    v->x = x;
    x->user = v;
    x->forget = forget;
    model_use(m);
    worker_add_task(m->w, &v->task);
}

static void drop(void *state)
{
    vectors_free(state);
}

void vectors_start(fields *f, vectors *v, void (*answer)(vectors *v))
{
    v->answer = answer;
    f->o->state = v;
    f->o->drop = drop;
    f->o->finish = start;
}
