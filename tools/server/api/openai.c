// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the OpenAI routes share: starting, usage, logprobs, ends of streams.
#include "tools/server/api/openai.h"

#include "tools/server/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

// --- starting --------------------------------------------------------------------------------------------

static void free_text_request(void *state)
{
    text_request *t = state;
    for (int32_t i = 0; i < PROMPTS_MAX; i++) {
        if (t->tokenized[i])
            tn_tokens_free(t->m->r.model, t->ids[i]);
        else
            free(t->ids[i]);
        free(t->echoes[i]);
    }
    messages_fini(t->m, &t->turns);
    if (t->p.state) t->proto->free_state(t->p.state);
    params_fini(&t->p);
    input_fini(&t->in);
    free(t);
}

text_request *openai_request(fields *f, const protocol *proto, const char *id_prefix, const char *param)
{
    text_request *t = calloc(1, sizeof *t);
    if (!t) {
        field_fail(f, ERROR_OWN, param, "out of memory");
        return NULL;
    }
    *t = (text_request){.m = f->m, .proto = proto, .id_prefix = id_prefix, .param = param};
    f->o->state = t;
    f->o->drop = free_text_request;
    return t;
}

static void start(server *s, exchange *x, model *m, void **state)
{
    text_request *t = *state;
    (void)s;
    job_start start = {.proto = t->proto,
                       .params = &t->p,
                       .prompts = t->list,
                       .n_prompts = t->n,
                       .id_prefix = t->id_prefix,
                       .param = t->param};
    t->job = job_begin(m, x, &start);
}

typedef struct prompt_of_job {
    text_request *t;
    int32_t i;
} prompt_of_job;

// The choices of a prompt share its scores.
static bool take_score(void *user, const tn_piece *piece)
{
    const prompt_of_job *p = user;
    int32_t n = p->t->p.n;
    choice *c = &p->t->job->choices[p->i * n];
    bool ok = true;
    for (int32_t k = 0; k < n && ok; k++) ok = job_keep_prompt(&c[k], piece);
    return ok;
}

static void score_prompts(text_request *t)
{
    job *j = t->job;
    for (int32_t i = 0; i < t->n && j->status == TN_OK; i++) {
        prompt_of_job p = {t, i};
        j->status = score_prompt(j->m, t->list[i].ids, t->list[i].n, t->p.sampling.n_logprobs, &j->left,
                                 take_score, &p);
    }
    // The message belongs to this thread.
    if (j->status != TN_OK) (void)tn_context_error(j->m->r.t.ctx, j->message, sizeof j->message);
}

static void submit(void *state)
{
    text_request *t = state;
    if (!t->job) return;
    if (t->scores) score_prompts(t);
    if (t->job->status == TN_OK) job_submit(t->job);
}

static void submitted(void *state)
{
    text_request *t = state;
    if (t->job) job_submitted(t->job);
}

void openai_start(fields *f)
{
    const text_request *t = f->o->state;
    f->o->finish = start;
    f->o->work = submit;
    f->o->worked = submitted;
    f->o->slow = t->p.cfg.grammar || t->p.cfg.json_schema || t->scores;
}

void openai_start_chat(fields *f, text_request *t)
{
    messages *m = &t->turns;
    if (!messages_read(f, m) || !tools_constrain(f, &m->tools, &t->p, m->ids, m->n_ids)) return;
    t->list[t->n++] = (job_prompt){m->ids, m->n_ids, NULL};
    openai_start(f);
}

// --- usage -----------------------------------------------------------------------------------------------

void openai_put_usage(const job *j, json *out)
{
    int32_t n = job_n_generated(j);
    json_object(out, "usage");
    json_size(out, "prompt_tokens", j->n_prompt);
    json_int(out, "completion_tokens", n);
    json_size(out, "total_tokens", j->n_prompt + (size_t)n);
    json_object(out, "prompt_tokens_details");
    json_int(out, "cached_tokens", j->n_cached);
    json_end_object(out);
    json_object(out, "completion_tokens_details");
    json_int(out, "reasoning_tokens", job_n_thought(j));
    json_end_object(out);
    json_end_object(out);
}

void openai_put_timings(const job *j, json *out)
{
    int32_t n = job_n_generated(j);
    double prompt_ms = j->first_ns > j->start_ns ? (double)(j->first_ns - j->start_ns) * 1e-6 : 0;
    double ms = j->first_ns && j->end_ns > j->first_ns ? (double)(j->end_ns - j->first_ns) * 1e-6 : 0;
    json_object(out, "timings");
    json_int(out, "cache_n", j->n_cached);
    json_int(out, "prompt_n", (int64_t)j->n_prompt - j->n_cached);
    json_number(out, "prompt_ms", prompt_ms);
    json_number(out, "prompt_per_second", prompt_ms > 0 ? (double)j->n_prompt * 1e3 / prompt_ms : 0);
    json_int(out, "predicted_n", n);
    json_number(out, "predicted_ms", ms);
    json_number(out, "predicted_per_second", ms > 0 ? n * 1e3 / ms : 0);
    json_end_object(out);
}

// --- logprobs --------------------------------------------------------------------------------------------

double openai_logprob(float value)
{
    enum { LEAST = -9999 };
    return isfinite(value) && value > LEAST ? (double)value : LEAST;
}

const char *openai_token_text(const model *m, int32_t token, size_t *n, char **owned)
{
    *owned = NULL;
    *n = 0;
    if (tn_detokenize(m->r.model, &token, 1, TN_TEXT_PRINT_SPECIAL, owned, n) == TN_OK) return *owned;
    *n = 0;
    return "";
}

static void put_token(const model *m, json *out, int32_t token, float logprob)
{
    char *owned;
    size_t n;
    const char *text = openai_token_text(m, token, &n, &owned);
    json_bytes(out, "token", text, n);
    json_number(out, "logprob", openai_logprob(logprob));
    json_array(out, "bytes");
    for (size_t i = 0; i < n; i++) json_int(out, NULL, (unsigned char)text[i]);
    json_end_array(out);
    tn_text_free(m->r.t.ctx, owned);
}

void openai_put_entries(job *j, json *out, choice *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const token_entry *e = &c->entries[i];
        json_object(out, NULL);
        put_token(j->m, out, e->token, e->logprob);
        json_array(out, "top_logprobs");
        for (int32_t k = 0; k < e->n_top; k++) {
            const tn_logprob *top = &c->tops[e->first_top + k];
            json_object(out, NULL);
            put_token(j->m, out, top->token, top->logprob);
            json_end_object(out);
        }
        json_end_array(out);
        json_end_object(out);
    }
    c->n_entries = c->n_tops = 0;
}

void openai_put_logprobs(job *j, json *out, choice *c)
{
    json_object(out, "logprobs");
    json_array(out, "content");
    openai_put_entries(j, out, c);
    json_end_array(out);
    json_null(out, "refusal");
    json_end_object(out);
}

// --- ends ------------------------------------------------------------------------------------------------

void openai_done(job *j)
{
    static const char done[] = "data: [DONE]\n\n";
    exchange_write(j->x, done, sizeof done - 1);
}

void openai_broken(job *j, error_id id, const char *message)
{
    size_t n;
    char event[2048];
    reply_error_json(j->s, j->x, id, NULL, message);
    const char *text = reply_text(j->s, &n);
    int m = snprintf(event, sizeof event, "data: %.*s\n\n", (int)n, text);
    if (m > 0 && (size_t)m < sizeof event) exchange_write(j->x, event, (size_t)m);
}
