// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/rerank: documents by how well they answer a query, in the form of Jina, and in that of text
// embeddings inference ("texts").
#include "tools/server/api/vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked {
    size_t index;
    double score;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

// The class that means "relevant": the one that is called yes, else the first.
static int32_t relevant_class(const model *m, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const char *label = tn_model_class_label(m->r.model, i);
        if (label && strcmp(label, "yes") == 0) return i;
    }
    return 0;
}

// Its probability: the logistic function of a single score, else softmax.
static double relevance(const float *scores, int32_t n, int32_t k)
{
    double sum = 0;
    if (n == 1) return 1 / (1 + exp(-(double)scores[0]));
    for (int32_t i = 0; i < n; i++) sum += exp((double)scores[i] - (double)scores[k]);
    return 1 / sum;
}

static void put_result(json *j, const vectors *v, const ranked *r)
{
    json_object(j, NULL);
    json_size(j, "index", r->index);
    json_number(j, v->bare ? "score" : "relevance_score", r->score);
    if (v->with_text && v->bare) json_text(j, "text", v->documents[r->index]);
    if (v->with_text && !v->bare) {
        json_object(j, "document");
        json_text(j, "text", v->documents[r->index]);
        json_end_object(j);
    }
    json_end_object(j);
}

static void answer(vectors *v)
{
    server *s = v->s;
    int32_t width = tn_embedder_width(v->m->embedder), k = relevant_class(v->m, width);
    ranked *list = calloc(v->n, sizeof *list);
    char id[48];
    if (!list) {
        reply_error(s, v->x, ERROR_OWN, NULL, "out of memory");
        return;
    }
    for (size_t i = 0; i < v->n; i++) list[i] = (ranked){i, relevance(v->rows + i * (size_t)width, width, k)};
    qsort(list, v->n, sizeof *list, by_score);
    reply_id(s, v->x, "rerank-", id, sizeof id);
    json *j = reply_json(s);
    if (!v->bare) {
        json_object(j, NULL);
        json_text(j, "id", id);
        json_text(j, "model", v->m->name);
        json_text(j, "object", "list");
        json_object(j, "usage");
        json_size(j, "prompt_tokens", v->n_tokens);
        json_size(j, "total_tokens", v->n_tokens);
        json_end_object(j);
    }
    json_array(j, v->bare ? NULL : "results");
    for (size_t i = 0; i < v->n && i < v->top; i++) put_result(j, v, &list[i]);
    json_end_array(j);
    if (!v->bare) json_end_object(j);
    reply_send(s, v->x, 200);
    free(list);
}

static bool add_document(fields *f, vectors *v, const node *query, const node *document, const char *name)
{
    const node *text = document->kind == NODE_OBJECT ? node_get(document, "text") : document;
    size_t n = 0, i = v->n;
    int32_t *ids = NULL;
    if (!text || text->kind != NODE_TEXT) {
        field_fail(f, ERROR_FIELD, name, "each item must be a string, or an object with text");
        return false;
    }
    tn_status status =
        tn_tokenize_pair(f->m->r.model, query->text, query->n_text, text->text, text->n_text, 0, &ids, &n);
    if (status != TN_OK) {
        field_fail(f, ERROR_KIND, name, "this model joins no query and document");
        return false;
    }
    bool ok = vectors_add(f, v, ids, n, name);
    if (ok && v->with_text) v->documents[i] = strdup(text->text);
    return ok;
}

static vectors *read_documents(fields *f)
{
    const node *query = field_of(f, "query", NODE_TEXT), *texts = field_of(f, "texts", NODE_LIST);
    const node *list = texts ? texts : field_of(f, "documents", NODE_LIST);
    const char *name = texts ? "texts" : "documents";
    if (!query && !f->failed) field_fail(f, ERROR_FIELD, "query", "a string is expected");
    if (!list || list->n == 0 || list->n > TEXTS_MAX)
        field_fail(f, ERROR_FIELD, name, "a list of 1 to %d texts is expected", TEXTS_MAX);
    int64_t top = field_int(f, "top_n", 0, INT32_MAX, 0);
    bool with_text = field_bool(f, texts ? "return_text" : "return_documents", false);
    vectors *v = f->failed ? NULL : vectors_new(f, list->n);
    if (!v) return NULL;
    v->with_text = with_text;
    v->bare = texts != NULL;
    v->top = top > 0 ? (size_t)top : list->n;
    for (const node *item = list->first; item; item = item->next) {
        if (add_document(f, v, query, item, name)) continue;
        vectors_free(v);
        return NULL;
    }
    return v;
}

void route_rerank(fields *f)
{
    const model *m = f->m;
    if (!m->embedder || tn_embedder_pooling(m->embedder) != TN_POOLING_RANK) {
        field_fail(f, ERROR_KIND, "model", "%s does not compare texts", m->name);
        return;
    }
    vectors *v = read_documents(f);
    if (v) vectors_start(f, v, answer);
}
