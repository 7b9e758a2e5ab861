// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/completions: text that is continued as it is.
#include "tools/server/api/openai.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

// --- answers ---------------------------------------------------------------------------------------------

// How far a token of the prompt reaches in the echoed text. A token that the tokenizer added, or its leading
// blank, is not there.
static size_t echo_size(const choice *c, size_t offset, const char *text, size_t n)
{
    const char *rest = c->echo && offset <= strlen(c->echo) ? c->echo + offset : "";
    if (strncmp(rest, text, n) == 0) return n;
    return n > 0 && text[0] == ' ' && strncmp(rest, text + 1, n - 1) == 0 ? n - 1 : 0;
}

static void put_tops(const model *m, json *out, const choice *c, const token_entry *e)
{
    char *owned;
    size_t n;
    if (isnan(e->logprob)) { // the first token of a prompt
        json_null(out, NULL);
        return;
    }
    json_object(out, NULL);
    for (int32_t k = 0; k < e->n_top; k++) {
        const tn_logprob *top = &c->tops[e->first_top + k];
        const char *text = openai_token_text(m, top->token, &n, &owned);
        json_number(out, text, openai_logprob(top->logprob));
        tn_text_free(m->r.t.ctx, owned);
    }
    json_end_object(out);
}

static void put_logprob(json *out, float logprob)
{
    if (isnan(logprob))
        json_null(out, NULL);
    else
        json_number(out, NULL, openai_logprob(logprob));
}

// The form of this route: parallel lists.
static void put_logprobs(job *j, json *out, choice *c)
{
    const model *m = j->m;
    char *owned;
    size_t n, offset = c->text_offset;
    json_object(out, "logprobs");
    json_array(out, "tokens");
    for (size_t i = 0; i < c->n_entries; i++) {
        const char *text = openai_token_text(m, c->entries[i].token, &n, &owned);
        json_bytes(out, NULL, text, n);
        tn_text_free(m->r.t.ctx, owned);
    }
    json_end_array(out);
    json_array(out, "token_logprobs");
    for (size_t i = 0; i < c->n_entries; i++) put_logprob(out, c->entries[i].logprob);
    json_end_array(out);
    json_array(out, "top_logprobs");
    for (size_t i = 0; i < c->n_entries; i++) put_tops(m, out, c, &c->entries[i]);
    json_end_array(out);
    json_array(out, "text_offset");
    for (size_t i = 0; i < c->n_entries; i++) {
        json_size(out, NULL, offset);
        const char *text = openai_token_text(m, c->entries[i].token, &n, &owned);
        offset += c->entries[i].of_prompt ? echo_size(c, offset, text, n) : n;
        tn_text_free(m->r.t.ctx, owned);
    }
    json_end_array(out);
    json_end_object(out);
    c->text_offset = offset;
    c->n_entries = c->n_tops = 0;
}

static json *begin_object(job *j)
{
    json *out = reply_json(j->s);
    if (j->stream) fputs("data: ", j->s->out.f);
    json_object(out, NULL);
    json_text(out, "id", j->id);
    json_text(out, "object", "text_completion");
    json_int(out, "created", j->created);
    json_text(out, "model", j->model);
    return out;
}

static void put_choice(job *j, json *out, choice *c, const char *text, size_t n, const char *reason)
{
    json_object(out, NULL);
    json_int(out, "index", c->index);
    json_bytes(out, "text", n ? text : "", n);
    if (j->logprobs && c->n_entries > 0)
        put_logprobs(j, out, c);
    else
        json_null(out, "logprobs");
    json_text(out, "finish_reason", reason);
    json_end_object(out);
}

static void send_choice(job *j, choice *c, const char *text, size_t n, const char *reason)
{
    json *out = begin_object(j);
    json_array(out, "choices");
    put_choice(j, out, c, text, n, reason);
    json_end_array(out);
    json_end_object(out);
    job_send_event(j, true);
}

static void text_begin(job *j, choice *c)
{
    if (c->echo) send_choice(j, c, c->echo, strlen(c->echo), NULL);
}

static bool text_piece(job *j, choice *c, const char *text, size_t n, bool is_thought)
{
    (void)is_thought;
    send_choice(j, c, text, n, NULL);
    return true;
}

static bool text_end_choice(job *j, choice *c)
{
    send_choice(j, c, "", 0, c->reason);
    return true;
}

static void text_end(job *j)
{
    if (j->include_usage) {
        json *out = begin_object(j);
        json_array(out, "choices");
        json_end_array(out);
        openai_put_usage(j, out);
        json_end_object(out);
        job_send_event(j, true);
    }
    openai_done(j);
}

static void text_whole(job *j)
{
    json *out = begin_object(j);
    json_text(out, "system_fingerprint", j->m->facts.fingerprint);
    json_array(out, "choices");
    for (int32_t i = 0; i < j->n; i++) {
        choice *c = &j->choices[i];
        text_buf all = {0};
        bool ok = !c->echo ||
                  (text_add(&all, c->echo, strlen(c->echo)) && text_add(&all, c->content.data, c->content.n));
        put_choice(j, out, c, c->echo && ok ? all.data : c->content.data,
                   c->echo && ok ? all.n : c->content.n, c->reason);
        free(all.data);
    }
    json_end_array(out);
    openai_put_usage(j, out);
    openai_put_timings(j, out);
    json_end_object(out);
    reply_send(j->s, j->x, 200);
}

static const protocol text_protocol = {
    .stream_type = "text/event-stream",
    .begin = text_begin,
    .piece = text_piece,
    .end_choice = text_end_choice,
    .end = text_end,
    .whole = text_whole,
    .broken = openai_broken,
};

// --- prompts ---------------------------------------------------------------------------------------------

static void add_text(fields *f, text_request *p, const node *v)
{
    size_t n;
    int32_t flags = TN_TEXT_ADD_SPECIAL | TN_TEXT_PARSE_SPECIAL, i = p->n;
    if (tn_tokenize(f->m->r.model, v->text, v->n_text, flags, &p->ids[i], &n) != TN_OK) {
        field_fail(f, ERROR_OWN, "prompt", "out of memory");
        return;
    }
    p->tokenized[i] = true;
    p->list[i] = (job_prompt){p->ids[i], n, v->text};
    p->n++;
}

static void add_ids(fields *f, text_request *p, const node *list)
{
    int32_t *ids = calloc(list->n + 1, sizeof *ids), i = p->n;
    size_t n = 0;
    if (!ids) {
        field_fail(f, ERROR_OWN, "prompt", "out of memory");
        return;
    }
    p->ids[i] = ids;
    p->n++;
    for (const node *v = list->first; v; v = v->next) {
        if (v->kind != NODE_NUMBER || !v->whole || v->integer < 0 || v->integer >= f->m->r.info.n_vocab) {
            field_fail(f, ERROR_FIELD, "prompt", "item %zu is no token id from 0 to %d", n,
                       f->m->r.info.n_vocab - 1);
            return;
        }
        ids[n++] = (int32_t)v->integer;
    }
    char *text = NULL;
    size_t n_text;
    if (tn_detokenize(f->m->r.model, ids, n, 0, &text, &n_text) == TN_OK) p->echoes[i] = strdup(text);
    tn_text_free(f->m->r.t.ctx, text);
    p->list[i] = (job_prompt){ids, n, p->echoes[i]};
}

static void read_prompts(fields *f, text_request *p)
{
    const node *v = field(f, "prompt");
    bool list = v && v->kind == NODE_LIST && v->n > 0;
    if (v && v->kind == NODE_TEXT) {
        add_text(f, p, v);
    } else if (list && v->first->kind == NODE_NUMBER) {
        add_ids(f, p, v);
    } else if (list && v->n <= PROMPTS_MAX) {
        for (const node *item = v->first; item && !f->failed; item = item->next) {
            if (item->kind == NODE_TEXT)
                add_text(f, p, item);
            else if (item->kind == NODE_LIST && item->n > 0)
                add_ids(f, p, item);
            else
                field_fail(f, ERROR_FIELD, "prompt", "each item must be a string or a list of token ids");
        }
    } else if (!f->failed) {
        field_fail(f, ERROR_FIELD, "prompt",
                   "a string, or a list of at most %d strings, or token ids are "
                   "expected",
                   PROMPTS_MAX);
    }
    for (int32_t i = 0; i < p->n && !f->failed; i++)
        if (p->list[i].n == 0)
            field_fail(f, ERROR_FIELD, "prompt", "it is empty, and the model adds no token to it");
    bool echo = field_bool(f, "echo", false);
    p->scores = echo && p->p.logprobs;
    for (int32_t i = 0; i < p->n && !echo; i++) p->list[i].echo = NULL;
}

void route_completions(fields *f)
{
    text_request *t = openai_request(f, &text_protocol, "cmpl-", "prompt");
    if (!t || !params_read(f, &t->p, false)) return;
    if (field(f, "suffix")) field_fail(f, ERROR_UNSUPPORTED, "suffix", "this is not offered");
    if (field_int(f, "best_of", 0, 20, t->p.n) != t->p.n)
        field_fail(f, ERROR_VALUE, "best_of", "only the value of n is offered");
    read_prompts(f, t);
    if (!f->failed) openai_start(f);
}
