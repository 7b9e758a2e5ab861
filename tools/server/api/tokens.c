// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /tokenize and /detokenize, in the forms of two other servers: {"content"} and {"prompt" or
// "messages"}.
#include "tools/server/api/messages.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

static void put_piece(const model *m, json *j, int32_t id)
{
    char *text = NULL;
    size_t n = 0;
    if (tn_detokenize(m->r.model, &id, 1, TN_TEXT_PRINT_SPECIAL, &text, &n) != TN_OK) n = 0;
    json_bytes(j, NULL, n ? text : "", n);
    tn_text_free(m->r.t.ctx, text);
}

static void put_piece_object(const model *m, json *j, int32_t id)
{
    char *text = NULL;
    size_t n = 0;
    if (tn_detokenize(m->r.model, &id, 1, TN_TEXT_PRINT_SPECIAL, &text, &n) != TN_OK) n = 0;
    json_object(j, NULL);
    json_int(j, "id", id);
    // A token may be a part of a character, which is no text by itself.
    if (n > 0 && !json_is_text(text, n)) {
        json_array(j, "piece");
        for (size_t i = 0; i < n; i++) json_int(j, NULL, (unsigned char)text[i]);
        json_end_array(j);
    } else {
        json_bytes(j, "piece", n ? text : "", n);
    }
    json_end_object(j);
    tn_text_free(m->r.t.ctx, text);
}

static void answer_tokens(fields *f, const int32_t *ids, size_t n, bool pieces)
{
    json *j = writer_json(f->w);
    json_object(j, NULL);
    json_array(j, "tokens");
    for (size_t i = 0; i < n; i++) {
        if (pieces)
            put_piece_object(f->m, j, ids[i]);
        else
            json_int(j, NULL, ids[i]);
    }
    json_end_array(j);
    json_size(j, "count", n);
    json_int(j, "max_model_len", f->m->facts.n_ctx);
    if (field_bool(f, "return_token_strs", false)) {
        json_array(j, "token_strs");
        for (size_t i = 0; i < n; i++) put_piece(f->m, j, ids[i]);
        json_end_array(j);
    }
    json_end_object(j);
    fields_send(f);
}

static void tokenize_text(fields *f)
{
    const node *content = field_of(f, "content", NODE_TEXT), *prompt = field_of(f, "prompt", NODE_TEXT);
    const node *text = content ? content : prompt;
    int32_t *ids, flags = 0;
    size_t n;
    if (!text && !f->failed)
        field_fail(f, ERROR_FIELD, "content", "a string is expected, or prompt, or messages");
    if (field_bool(f, content ? "add_special" : "add_special_tokens", !content)) flags |= TN_TEXT_ADD_SPECIAL;
    if (field_bool(f, "parse_special", true)) flags |= TN_TEXT_PARSE_SPECIAL;
    bool pieces = field_bool(f, "with_pieces", false);
    if (f->failed) return;
    if (tn_tokenize(f->m->r.model, text->text, text->n_text, flags, &ids, &n) != TN_OK) {
        field_fail(f, ERROR_OWN, "content", "out of memory");
        return;
    }
    answer_tokens(f, ids, n, pieces);
    tn_tokens_free(f->m->r.model, ids);
}

void route_tokenize(fields *f)
{
    messages m = {0};
    if (!field(f, "messages"))
        tokenize_text(f);
    else if (messages_read(f, &m))
        answer_tokens(f, m.ids, m.n_ids, field_bool(f, "with_pieces", false));
    messages_fini(f->m, &m);
}

void route_detokenize(fields *f)
{
    const run_state *r = &f->m->r;
    char *text = NULL;
    size_t n = 0, n_text;
    const node *list = field_of(f, "tokens", NODE_LIST);
    if (!list && !f->failed) field_fail(f, ERROR_FIELD, "tokens", "a list of token ids is expected");
    int32_t *ids = list ? calloc(list->n + 1, sizeof *ids) : NULL;
    if (list && !ids) field_fail(f, ERROR_OWN, "tokens", "out of memory");
    for (const node *v = list ? list->first : NULL; v && !f->failed; v = v->next) {
        if (v->kind != NODE_NUMBER || !v->whole || v->integer < 0 || v->integer >= r->info.n_vocab)
            field_fail(f, ERROR_FIELD, "tokens", "item %zu is no token id from 0 to %d", n,
                       r->info.n_vocab - 1);
        else
            ids[n++] = (int32_t)v->integer;
    }
    if (!f->failed && tn_detokenize(r->model, ids, n, TN_TEXT_PRINT_SPECIAL, &text, &n_text) != TN_OK)
        field_fail(f, ERROR_OWN, "tokens", "out of memory");
    if (!f->failed) {
        json *j = writer_json(f->w);
        json_object(j, NULL);
        json_bytes(j, "content", text, n_text);
        json_bytes(j, "prompt", text, n_text);
        json_end_object(j);
        fields_send(f);
    }
    tn_text_free(r->t.ctx, text);
    free(ids);
}
