// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/embeddings and /api/embed.
#include "tools/server/api/vectors.h"

#include <string.h>

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

static void answer(vectors *e)
{
    server *s = e->s;
    json *j = reply_json(s);
    size_t width = (size_t)tn_embedder_width(e->m->embedder);
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
    json_text(j, "model", e->m->name);
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

// --- requests --------------------------------------------------------------------------------------------

static bool add_text(fields *f, vectors *v, const node *text)
{
    size_t n = 0;
    int32_t *ids = NULL;
    if (text->kind != NODE_TEXT || (text->n_text == 0 && !v->ollama)) {
        field_fail(f, ERROR_FIELD, "input", "each text must be a string that is not empty");
        return false;
    }
    if (tn_tokenize(f->m->r.model, text->text, text->n_text, TN_TEXT_ADD_SPECIAL, &ids, &n) != TN_OK) {
        field_fail(f, ERROR_OWN, "input", "out of memory");
        return false;
    }
    return vectors_add(f, v, ids, n, "input");
}

static vectors *read_texts(fields *f, bool ollama)
{
    const node *input = field(f, "input");
    bool list = input && input->kind == NODE_LIST;
    size_t n = list ? input->n : 1;
    if (f->failed) return NULL;
    if (!input || n == 0 || n > TEXTS_MAX || (list && input->first->kind != NODE_TEXT)) {
        field_fail(f, ERROR_FIELD, "input", "a string or a list of 1 to %d strings is expected", TEXTS_MAX);
        return NULL;
    }
    vectors *v = vectors_new(f, n);
    if (!v) return NULL;
    v->ollama = ollama;
    for (const node *item = list ? input->first : input; item; item = list ? item->next : NULL) {
        if (add_text(f, v, item)) continue;
        vectors_free(v);
        return NULL;
    }
    return v;
}

static bool read_form(fields *f)
{
    const char *format = field_text(f, "encoding_format", "float");
    bool base64 = strcmp(format, "base64") == 0;
    if (!base64 && strcmp(format, "float") != 0)
        field_fail(f, ERROR_FIELD, "encoding_format", "it must be float or base64");
    if (field(f, "dimensions"))
        field_fail(f, ERROR_UNSUPPORTED, "dimensions", "the vectors of this model cannot be cut");
    return base64;
}

static void embed(fields *f, bool ollama)
{
    const model *m = f->m;
    if (!m->embedder || tn_embedder_pooling(m->embedder) == TN_POOLING_RANK) {
        field_fail(f, ERROR_KIND, "model", "%s gives no embeddings", m->name);
        return;
    }
    bool base64 = !ollama && read_form(f);
    vectors *v = read_texts(f, ollama);
    if (!v) return;
    v->base64 = base64;
    vectors_start(f, v, answer);
}

void route_embeddings(fields *f)
{
    embed(f, false);
}

void route_ollama_embed(fields *f)
{
    embed(f, true);
}
