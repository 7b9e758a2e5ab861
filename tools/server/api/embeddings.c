// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/embeddings and /api/embed. Vectors are computed on the thread of the worker, a request at a time.
#include "tools/server/api/fields.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

enum { TEXTS_MAX = 2048 };

typedef struct embedding {
    worker_task task; // first: the worker knows only this
    server *s;
    exchange *x; // NULL: the client is gone
    tn_text_ids *texts;
    size_t n, n_tokens;
    float *rows;
    tn_status status;
    char message[256];
    bool base64, ollama;
} embedding;

static void free_embedding(embedding *e)
{
    if (e->x) e->x->user = NULL;
    for (size_t i = 0; i < e->n; i++) tn_tokens_free(e->s->r.model, (int32_t *)(uintptr_t)e->texts[i].ids);
    free(e->texts);
    free(e->rows);
    free(e);
}

static void run(worker_task *task)
{
    embedding *e = (embedding *)(void *)task;
    e->status = tn_embedder_run(e->s->embedder, e->texts, (int32_t)e->n, e->rows);
    if (e->status != TN_OK) (void)tn_context_error(e->s->r.t.ctx, e->message, sizeof e->message);
}

// --- answers ---------------------------------------------------------------------------------------------

// RFC 4648, section 4, of the little-endian bytes of the floats.
static void put_base64(FILE *f, const float *row, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size = n * sizeof *row;
    uint32_t bits[1];
    unsigned char group[3];
    for (size_t i = 0; i < size; i += 3) {
        size_t k = size - i < 3 ? size - i : 3;
        memset(group, 0, sizeof group);
        for (size_t b = 0; b < k; b++) {
            memcpy(bits, &row[(i + b) / sizeof *row], sizeof *bits);
            group[b] = (unsigned char)(bits[0] >> 8 * ((i + b) % sizeof *row));
        }
        fputc(digits[group[0] >> 2], f);
        fputc(digits[(group[0] & 3) << 4 | group[1] >> 4], f);
        fputc(k > 1 ? digits[(group[1] & 15) << 2 | group[2] >> 6] : '=', f);
        fputc(k > 2 ? digits[group[2] & 63] : '=', f);
    }
}

static void put_row(json *j, const char *key, const float *row, size_t n, bool base64)
{
    if (base64) {
        json_raw(j, key, "\"");
        put_base64(j->f, row, n);
        fputc('"', j->f);
        return;
    }
    json_array(j, key);
    for (size_t i = 0; i < n; i++) json_number(j, NULL, (double)row[i]);
    json_end_array(j);
}

static void answer(embedding *e)
{
    server *s = e->s;
    json *j = reply_json(s);
    size_t width = (size_t)tn_embedder_width(s->embedder);
    json_object(j, NULL);
    if (!e->ollama) json_text(j, "object", "list");
    json_array(j, e->ollama ? "embeddings" : "data");
    for (size_t i = 0; i < e->n; i++) {
        if (!e->ollama) {
            json_object(j, NULL);
            json_text(j, "object", "embedding");
            json_size(j, "index", i);
        }
        put_row(j, e->ollama ? NULL : "embedding", e->rows + i * width, width, e->base64);
        if (!e->ollama) json_end_object(j);
    }
    json_end_array(j);
    json_text(j, "model", s->name);
    if (e->ollama) {
        json_size(j, "total_duration", now_ns() - e->x->start_ns);
        json_size(j, "load_duration", 0);
        json_size(j, "prompt_eval_count", e->n_tokens);
    } else {
        json_object(j, "usage");
        json_size(j, "prompt_tokens", e->n_tokens);
        json_size(j, "total_tokens", e->n_tokens);
        json_end_object(j);
    }
    json_end_object(j);
    reply_send(s, e->x, 200);
}

static void done(worker_task *task)
{
    embedding *e = (embedding *)(void *)task;
    e->s->figures.prompt_tokens += e->n_tokens;
    if (e->x && e->status != TN_OK)
        reply_error(e->s, e->x, ERROR_OWN, NULL, "%s",
                    e->message[0] ? e->message : tn_status_text(e->status));
    else if (e->x)
        answer(e);
    free_embedding(e);
}

// --- requests --------------------------------------------------------------------------------------------

static bool add_text(fields *f, embedding *e, const node *v)
{
    size_t n, most = (size_t)tn_embedder_max_tokens(f->s->embedder);
    int32_t *ids = NULL;
    if (v->kind != NODE_TEXT || (v->n_text == 0 && !e->ollama)) {
        field_fail(f, ERROR_FIELD, "input", "each text must be a string that is not empty");
        return false;
    }
    if (tn_tokenize(f->s->r.model, v->text, v->n_text, TN_TEXT_ADD_SPECIAL, &ids, &n) != TN_OK || n == 0) {
        tn_tokens_free(f->s->r.model, ids);
        field_fail(f, ERROR_FIELD, "input", "a text without tokens");
        return false;
    }
    e->texts[e->n++] = (tn_text_ids){ids, (int32_t)n};
    e->n_tokens += n;
    if (n <= most) return true;
    f->failed = true;
    reply_too_long(f->s, f->x, "input", n);
    return false;
}

static bool read_texts(fields *f, embedding *e)
{
    const node *v = field(f, "input");
    bool list = v && v->kind == NODE_LIST;
    size_t n = list ? v->n : 1;
    if (!v || n == 0 || n > TEXTS_MAX || (list && v->first->kind != NODE_TEXT)) {
        field_fail(f, ERROR_FIELD, "input", "a string or a list of 1 to %d strings is expected", TEXTS_MAX);
        return false;
    }
    e->texts = calloc(n, sizeof *e->texts);
    e->rows = calloc(n * (size_t)tn_embedder_width(f->s->embedder), sizeof *e->rows);
    if (!e->texts || !e->rows) {
        field_fail(f, ERROR_OWN, "input", "out of memory");
        return false;
    }
    for (const node *item = list ? v->first : v; item; item = list ? item->next : NULL)
        if (!add_text(f, e, item)) return false;
    return true;
}

// Called when the client has left: the vectors have nobody to go to.
static void forget(exchange *x)
{
    embedding *e = x->user;
    e->x = NULL;
}

static void embed(server *s, exchange *x, bool ollama)
{
    body b;
    if (!s->embedder) {
        reply_error(s, x, ERROR_KIND, "model", "%s gives text, not embeddings", s->name);
        return;
    }
    if (!read_body(s, x, &b)) return;
    embedding *e = calloc(1, sizeof *e);
    fields f = {.s = s, .x = x, .object = b.root};
    bool ok = e && check_model(s, x, b.root);
    if (!e) reply_error(s, x, ERROR_OWN, NULL, "out of memory");
    if (e) *e = (embedding){.task = {.run = run, .done = done}, .s = s, .ollama = ollama};
    if (ok && !ollama) {
        const char *format = field_text(&f, "encoding_format", "float");
        e->base64 = strcmp(format, "base64") == 0;
        if (!e->base64 && strcmp(format, "float") != 0)
            field_fail(&f, ERROR_FIELD, "encoding_format", "it must be float or base64");
        if (field(&f, "dimensions"))
            field_fail(&f, ERROR_UNSUPPORTED, "dimensions", "the vectors of this model cannot be cut");
    }
    ok = ok && !f.failed && read_texts(&f, e);
    if (ok) {
        e->x = x;
        x->user = e;
        x->forget = forget;
        worker_add_task(s->w, &e->task);
    } else if (e) {
        free_embedding(e);
    }
    body_fini(&b);
}

void route_embeddings(server *s, exchange *x)
{
    embed(s, x, false);
}

void route_ollama_embed(server *s, exchange *x)
{
    embed(s, x, true);
}
