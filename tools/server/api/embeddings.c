// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/embeddings, /api/embed and /api/embeddings.
#include "tools/server/api/vectors.h"

#include <stdlib.h>
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

static void answer_single(vectors *e)
{
    json *j = reply_json(e->s);
    json_object(j, NULL);
    put_row(j, "embedding", e->rows, (size_t)tn_embedder_width(e->m->embedder), false);
    json_end_object(j);
    reply_send(e->s, e->x, 200);
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

// As Ollama does: what is too long is cut, but a token that ends every text stays.
static tn_status cut(const model *m, const node *text, int32_t *ids, size_t *n)
{
    size_t most = (size_t)tn_embedder_max_tokens(m->embedder), n_plain = 0;
    int32_t *plain = NULL;
    if (*n <= most || most == 0) return TN_OK;
    tn_status status = tn_tokenize(m->r.model, text->text, text->n_text, 0, &plain, &n_plain);
    if (status != TN_OK) return status;
    if (n_plain == 0 || plain[n_plain - 1] != ids[*n - 1]) ids[most - 1] = ids[*n - 1];
    *n = most;
    tn_tokens_free(m->r.model, plain);
    return TN_OK;
}

static bool add_text(fields *f, vectors *v, const node *text, const char *param, bool cuts)
{
    size_t n = 0;
    int32_t *ids = NULL;
    if (text->kind != NODE_TEXT || (text->n_text == 0 && !v->ollama)) {
        field_fail(f, ERROR_FIELD, param, "each text must be a string that is not empty");
        return false;
    }
    tn_status status = tn_tokenize(f->m->r.model, text->text, text->n_text, TN_TEXT_ADD_SPECIAL, &ids, &n);
    if (status == TN_OK && cuts) status = cut(f->m, text, ids, &n);
    if (status != TN_OK) {
        tn_tokens_free(f->m->r.model, ids);
        field_fail(f, ERROR_OWN, param, "out of memory");
        return false;
    }
    return vectors_add(f, v, ids, n, param);
}

static bool add_ids(fields *f, vectors *v, const node *list)
{
    int32_t *ids = list->kind == NODE_LIST ? calloc(list->n + 1, sizeof *ids) : NULL;
    size_t n = 0;
    if (!ids) {
        bool memory = list->kind == NODE_LIST;
        field_fail(f, memory ? ERROR_OWN : ERROR_FIELD, "input",
                   memory ? "out of memory" : "each text must be a list of token ids, as the first one is");
        return false;
    }
    for (const node *id = list->first; id; id = id->next) {
        if (id->kind != NODE_NUMBER || !id->whole || id->integer < 0 || id->integer >= f->m->r.info.n_vocab) {
            field_fail(f, ERROR_FIELD, "input", "item %zu is no token id from 0 to %d", n,
                       f->m->r.info.n_vocab - 1);
            free(ids);
            return false;
        }
        ids[n++] = (int32_t)id->integer;
    }
    return vectors_add(f, v, ids, n, "input");
}

// A string, a list of strings, a list of token ids, or a list of such lists.
static vectors *read_texts(fields *f, bool ollama)
{
    const node *input = field(f, "input");
    const node *first = input && input->kind == NODE_LIST ? input->first : NULL;
    bool ids = first && !ollama && (first->kind == NODE_NUMBER || first->kind == NODE_LIST);
    bool list = input && input->kind == NODE_LIST && !(ids && first->kind == NODE_NUMBER);
    bool cuts = ollama && field_bool(f, "truncate", true);
    size_t n = list ? input->n : 1;
    if (f->failed) return NULL;
    if (!input || n == 0 || n > TEXTS_MAX || (list && !ids && first->kind != NODE_TEXT)) {
        field_fail(f, ERROR_FIELD, "input", "a string, a list of 1 to %d strings, or token ids are expected",
                   TEXTS_MAX);
        return NULL;
    }
    vectors *v = vectors_new(f, n);
    if (!v) return NULL;
    v->ollama = ollama;
    v->given = ids;
    for (const node *item = list ? input->first : input; item; item = list ? item->next : NULL) {
        if (ids ? add_ids(f, v, item) : add_text(f, v, item, "input", cuts)) continue;
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
    return base64;
}

static void refuse_dimensions(fields *f)
{
    if (field(f, "dimensions"))
        field_fail(f, ERROR_UNSUPPORTED, "dimensions", "the vectors of this model cannot be cut");
}

static bool gives_vectors(fields *f)
{
    const model *m = f->m;
    if (m->embedder && tn_embedder_pooling(m->embedder) != TN_POOLING_RANK) return true;
    field_fail(f, ERROR_KIND, "model", "%s gives no embeddings", m->name);
    return false;
}

static void embed(fields *f, bool ollama)
{
    if (!gives_vectors(f)) return;
    bool base64 = !ollama && read_form(f);
    refuse_dimensions(f);
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

// The older form of Ollama: one text.
void route_ollama_embeddings(fields *f)
{
    if (!gives_vectors(f)) return;
    const node *prompt = field_of(f, "prompt", NODE_TEXT);
    if (!prompt && !f->failed) field_fail(f, ERROR_FIELD, "prompt", "a string is expected");
    vectors *v = f->failed ? NULL : vectors_new(f, 1);
    if (!v) return;
    v->ollama = true;
    if (add_text(f, v, prompt, "prompt", true))
        vectors_start(f, v, answer_single);
    else
        vectors_free(v);
}
