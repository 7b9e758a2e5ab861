// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/chat/completions.
#include "tools/server/api/openai.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

// Words of --reasoning-field.
enum { REASONING_CONTENT, REASONING_OTHER, REASONING_NONE };

static const char *thought_field(const job *j)
{
    return opt_int(j->s->opt, OPT_REASONING) == REASONING_OTHER ? "reasoning" : "reasoning_content";
}

static json *begin_chunk(job *j)
{
    json *out = reply_json(j->s);
    fputs("data: ", j->s->out.f);
    json_object(out, NULL);
    json_text(out, "id", j->id);
    json_text(out, "object", "chat.completion.chunk");
    json_int(out, "created", j->created);
    json_text(out, "model", j->model);
    return out;
}

// A chunk with one choice: what `delta` writes, and the reason of the end.
static json *begin_choice(job *j, const choice *c)
{
    json *out = begin_chunk(j);
    json_array(out, "choices");
    json_object(out, NULL);
    json_int(out, "index", c->index);
    json_object(out, "delta");
    return out;
}

static void end_chunk(job *j, json *out, const char *reason, choice *logprobs)
{
    json_end_object(out);
    if (logprobs) openai_put_logprobs(j, out, logprobs);
    json_text(out, "finish_reason", reason);
    json_end_object(out);
    json_end_array(out);
    json_end_object(out);
    job_send_event(j, true);
}

static void chat_begin(job *j, choice *c)
{
    json *out = begin_choice(j, c);
    json_text(out, "role", "assistant");
    json_text(out, "content", "");
    end_chunk(j, out, NULL, NULL);
}

static bool chat_piece(job *j, choice *c, const char *text, size_t n, bool is_thought)
{
    json *out = begin_choice(j, c);
    json_bytes(out, is_thought ? thought_field(j) : "content", text, n);
    end_chunk(j, out, NULL, j->logprobs && !is_thought && c->n_entries > 0 ? c : NULL);
    return true;
}

// The beginning of an element of tool_calls, within its function.
static void begin_call(json *out, const tool_call *call)
{
    json_text(out, "id", call->id);
    json_text(out, "type", "function");
    json_object(out, "function");
    json_text(out, "name", call->name);
}

// A delta of a call; its first one has no arguments yet, and clients add those of the others up.
static bool put_delta(job *j, choice *c, const tool_call *call, bool first, const char *text, size_t n)
{
    json *out = begin_choice(j, c);
    json_array(out, "tool_calls");
    json_object(out, NULL);
    json_int(out, "index", call - c->answer.calls);
    if (first)
        begin_call(out, call);
    else
        json_object(out, "function");
    json_bytes(out, "arguments", text, n);
    json_end_object(out);
    json_end_object(out);
    json_end_array(out);
    end_chunk(j, out, NULL, NULL);
    return true;
}

static bool chat_call_begin(job *j, choice *c, const tool_call *call)
{
    return put_delta(j, c, call, true, "", 0);
}

static bool chat_call_arguments(job *j, choice *c, const tool_call *call, const char *text, size_t n)
{
    return put_delta(j, c, call, false, text, n);
}

static bool chat_end_choice(job *j, choice *c)
{
    end_chunk(j, begin_choice(j, c), c->reason, j->logprobs && c->n_entries > 0 ? c : NULL);
    return true;
}

static void chat_end(job *j)
{
    if (j->include_usage) {
        json *out = begin_chunk(j);
        json_array(out, "choices");
        json_end_array(out);
        openai_put_usage(j, out);
        json_end_object(out);
        job_send_event(j, true);
    }
    openai_done(j);
}

static void put_calls(json *out, const choice *c)
{
    json_array(out, "tool_calls");
    for (int32_t i = 0; i < c->answer.n_calls; i++) {
        const tool_call *call = &c->answer.calls[i];
        json_object(out, NULL);
        begin_call(out, call);
        json_bytes(out, "arguments", call->arguments, call->n_arguments);
        json_end_object(out);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_message(job *j, json *out, choice *c)
{
    json_object(out, NULL);
    json_int(out, "index", c->index);
    json_object(out, "message");
    json_text(out, "role", "assistant");
    if (c->content.n == 0 && c->answer.n_calls > 0)
        json_null(out, "content");
    else
        json_bytes(out, "content", c->content.data ? c->content.data : "", c->content.n);
    if (c->thought.n > 0) json_bytes(out, thought_field(j), c->thought.data, c->thought.n);
    if (c->answer.n_calls > 0) put_calls(out, c);
    json_null(out, "refusal");
    json_end_object(out);
    if (j->logprobs)
        openai_put_logprobs(j, out, c);
    else
        json_null(out, "logprobs");
    json_text(out, "finish_reason", c->reason);
    json_end_object(out);
}

static void chat_whole(job *j)
{
    json *out = reply_json(j->s);
    json_object(out, NULL);
    json_text(out, "id", j->id);
    json_text(out, "object", "chat.completion");
    json_int(out, "created", j->created);
    json_text(out, "model", j->model);
    json_text(out, "system_fingerprint", j->m->facts.fingerprint);
    json_array(out, "choices");
    for (int32_t i = 0; i < j->n; i++) put_message(j, out, &j->choices[i]);
    json_end_array(out);
    openai_put_usage(j, out);
    openai_put_timings(j, out);
    json_end_object(out);
    reply_send(j->s, j->x, 200);
}

static const protocol chat_protocol = {
    .stream_type = "text/event-stream",
    .begin = chat_begin,
    .piece = chat_piece,
    .call_begin = chat_call_begin,
    .call_arguments = chat_call_arguments,
    .end_choice = chat_end_choice,
    .end = chat_end,
    .whole = chat_whole,
    .broken = openai_broken,
    .splits_thoughts = true,
};

// The text as it is, thoughts included.
static const protocol raw_protocol = {
    .stream_type = "text/event-stream",
    .begin = chat_begin,
    .piece = chat_piece,
    .call_begin = chat_call_begin,
    .call_arguments = chat_call_arguments,
    .end_choice = chat_end_choice,
    .end = chat_end,
    .whole = chat_whole,
    .broken = openai_broken,
};

void route_chat(fields *f)
{
    bool raw = opt_int(f->s->opt, OPT_REASONING) == REASONING_NONE;
    const protocol *proto = raw ? &raw_protocol : &chat_protocol;
    text_request *t = openai_request(f, proto, "chatcmpl-", "messages");
    if (t && params_read(f, &t->p, true)) openai_start_chat(f, t);
}

void route_input_tokens(fields *f)
{
    messages m = {0};
    if (messages_read(f, &m)) {
        json *j = writer_json(f->w);
        json_object(j, NULL);
        json_text(j, "object", "response.input_tokens");
        json_size(j, "input_tokens", m.n_ids);
        json_end_object(j);
        fields_send(f);
    }
    messages_fini(f->m, &m);
}

void route_apply_template(fields *f)
{
    messages m = {0};
    char *text = NULL;
    size_t n;
    if (messages_render(f, &m, &text, &n)) {
        json *j = writer_json(f->w);
        json_object(j, NULL);
        text_buf whole = {0};
        bool ok =
            text_add(&whole, text, n) && (!m.continued || text_add(&whole, m.continued, strlen(m.continued)));
        if (ok) json_bytes(j, "prompt", whole.data, whole.n);
        free(whole.data);
        if (!ok) field_fail(f, ERROR_OWN, "messages", "out of memory");
        json_end_object(j);
        fields_send(f);
    }
    tn_text_free(f->m->r.t.ctx, text);
    messages_fini(f->m, &m);
}
