// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the OpenAI routes share: starting, usage, logprobs, ends of streams.
#include "tools/server/api/openai.h"

#include "tools/server/api/messages.h"

#include <math.h>
#include <string.h>
#include <tenon/graph.h>

void openai_start_chat(fields *f, const protocol *proto, request_params *p, const char *id_prefix,
                       const char *param)
{
    messages m = {0};
    if (messages_read(f, &m) && tools_constrain(f, &m.tools, p, m.ids, m.n_ids)) {
        job_prompt prompt = {m.ids, m.n_ids, NULL};
        job_start(f->s, f->x, proto, p, &prompt, 1, id_prefix, param);
    }
    messages_fini(f->s, &m);
}

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
    double ms = j->end_ns > j->first_ns ? (double)(j->end_ns - j->first_ns) * 1e-6 : 0;
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

const char *openai_token_text(server *s, int32_t token, size_t *n, char **owned)
{
    *owned = NULL;
    *n = 0;
    if (tn_detokenize(s->r.model, &token, 1, TN_TEXT_PRINT_SPECIAL, owned, n) == TN_OK) return *owned;
    *n = 0;
    return "";
}

static void put_token(server *s, json *out, int32_t token, float logprob)
{
    char *owned;
    size_t n;
    const char *text = openai_token_text(s, token, &n, &owned);
    json_bytes(out, "token", text, n);
    json_number(out, "logprob", openai_logprob(logprob));
    json_array(out, "bytes");
    for (size_t i = 0; i < n; i++) json_int(out, NULL, (unsigned char)text[i]);
    json_end_array(out);
    tn_text_free(s->r.t.ctx, owned);
}

void openai_put_logprobs(job *j, json *out, choice *c)
{
    json_object(out, "logprobs");
    json_array(out, "content");
    for (size_t i = 0; i < c->n_entries; i++) {
        const token_entry *e = &c->entries[i];
        json_object(out, NULL);
        put_token(j->s, out, e->token, e->logprob);
        json_array(out, "top_logprobs");
        for (int32_t k = 0; k < e->n_top; k++) {
            const tn_logprob *top = &c->tops[e->first_top + k];
            json_object(out, NULL);
            put_token(j->s, out, top->token, top->logprob);
            json_end_object(out);
        }
        json_end_array(out);
        json_end_object(out);
    }
    json_end_array(out);
    json_null(out, "refusal");
    json_end_object(out);
    c->n_entries = c->n_tops = 0;
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
