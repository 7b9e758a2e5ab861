// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/responses: an answer is a list of items (thought, message, calls), and a stream reports how each
// of them begins, grows and ends. Nothing is kept behind the answer.
#include "tools/server/api/openai.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

typedef enum item_kind { ITEM_THOUGHT, ITEM_MESSAGE, ITEM_CALL } item_kind;

typedef struct output_item {
    item_kind kind;
    text_buf text; // of a call: its arguments
    int32_t call;  // index of it
} output_item;

typedef struct response {
    char *echo; // JSON object of the members that repeat the request
    output_item *items;
    int32_t n_items;
    bool open;        // the last one grows
    int64_t sequence; // of the next event
} response;

// How the parts of thoughts and messages are called.
static const struct {
    const char *prefix, *type, *part, *delta, *done;
} kinds[] = {
    [ITEM_THOUGHT] = {"rs", "reasoning", "reasoning_text", "response.reasoning_text.delta",
                      "response.reasoning_text.done"},
    [ITEM_MESSAGE] = {"msg", "message", "output_text", "response.output_text.delta",
                      "response.output_text.done"},
    [ITEM_CALL] = {"fc", "function_call", NULL, "response.function_call_arguments.delta",
                   "response.function_call_arguments.done"},
};

static void free_response(void *state)
{
    response *r = state;
    if (!r) return;
    for (int32_t i = 0; i < r->n_items; i++) free(r->items[i].text.data);
    free(r->items);
    free(r->echo);
    free(r);
}

// --- items -----------------------------------------------------------------------------------------------

static void put_item_id(const job *j, json *out, const char *key, int32_t i)
{
    char id[64];
    const response *r = j->state;
    snprintf(id, sizeof id, "%s_%s_%d", kinds[r->items[i].kind].prefix, j->id + strlen("resp_"), (int)i);
    json_text(out, key, id);
}

// The content of a thought or a message; `begun`: it has no text yet.
static void put_part(json *out, const char *key, const output_item *item, bool begun)
{
    bool empty = begun || item->text.n == 0;
    json_object(out, key);
    json_text(out, "type", kinds[item->kind].part);
    json_bytes(out, "text", empty ? "" : item->text.data, empty ? 0 : item->text.n);
    if (item->kind == ITEM_MESSAGE) {
        json_array(out, "annotations");
        json_end_array(out);
        json_array(out, "logprobs");
        json_end_array(out);
    }
    json_end_object(out);
}

static void put_item(const job *j, json *out, const char *key, int32_t i, const char *status)
{
    const response *r = j->state;
    const output_item *item = &r->items[i];
    bool begun = strcmp(status, "in_progress") == 0;
    json_object(out, key);
    json_text(out, "type", kinds[item->kind].type);
    put_item_id(j, out, "id", i);
    json_text(out, "status", status);
    if (item->kind == ITEM_CALL) {
        const tool_call *call = &j->choices[0].answer.calls[item->call];
        json_text(out, "call_id", call->id);
        json_text(out, "name", call->name);
        json_text(out, "arguments", begun ? "" : call->arguments);
    } else {
        if (item->kind == ITEM_MESSAGE) {
            json_text(out, "role", "assistant");
        } else {
            json_array(out, "summary");
            json_end_array(out);
        }
        json_array(out, "content");
        if (!begun) put_part(out, NULL, item, false);
        json_end_array(out);
    }
    json_end_object(out);
}

// --- the response ----------------------------------------------------------------------------------------

static void put_usage(const job *j, json *out)
{
    int32_t n = job_n_generated(j);
    json_object(out, "usage");
    json_size(out, "input_tokens", j->n_prompt);
    json_object(out, "input_tokens_details");
    json_int(out, "cached_tokens", j->n_cached);
    json_end_object(out);
    json_int(out, "output_tokens", n);
    json_object(out, "output_tokens_details");
    json_int(out, "reasoning_tokens", job_n_thought(j));
    json_end_object(out);
    json_size(out, "total_tokens", j->n_prompt + (size_t)n);
    json_end_object(out);
}

// False: a call that was cut off, or is none.
static bool is_whole(const job *j, int32_t i)
{
    const output_item *item = &((const response *)j->state)->items[i];
    return item->kind != ITEM_CALL || j->choices[0].answer.calls[item->call].complete;
}

// `failure`: the message of a failed one, or NULL.
static void put_response(const job *j, json *out, const char *key, const char *status, const char *failure)
{
    const response *r = j->state;
    bool cut = strcmp(status, "incomplete") == 0, begun = strcmp(status, "in_progress") == 0;
    json_object(out, key);
    json_text(out, "id", j->id);
    json_text(out, "object", "response");
    json_int(out, "created_at", j->created);
    json_text(out, "status", status);
    json_text(out, "model", j->model);
    if (failure) {
        json_object(out, "error");
        json_text(out, "code", "server_error");
        json_text(out, "message", failure);
        json_end_object(out);
    } else {
        json_null(out, "error");
    }
    if (cut) {
        json_object(out, "incomplete_details");
        json_text(out, "reason", "max_output_tokens");
        json_end_object(out);
    } else {
        json_null(out, "incomplete_details");
    }
    json_array(out, "output");
    for (int32_t i = 0; i < r->n_items && !begun; i++) {
        bool ended = !(cut || failure) || i + 1 < r->n_items;
        put_item(j, out, NULL, i, ended && is_whole(j, i) ? "completed" : "incomplete");
    }
    json_end_array(out);
    json_members(out, r->echo);
    if (begun)
        json_null(out, "usage");
    else
        put_usage(j, out);
    json_end_object(out);
}

static const char *status_of(const choice *c)
{
    return strcmp(c->reason, "length") == 0 ? "incomplete" : "completed";
}

// --- events ----------------------------------------------------------------------------------------------

static json *begin_event(job *j, const char *type)
{
    response *r = j->state;
    json *out = reply_json(j->s);
    fprintf(j->s->out.f, "event: %s\ndata: ", type);
    json_object(out, NULL);
    json_text(out, "type", type);
    json_int(out, "sequence_number", r->sequence++);
    return out;
}

static void end_event(job *j, json *out)
{
    json_end_object(out);
    job_send_event(j, true);
}

static void send_response(job *j, const char *type, const char *status, const char *failure)
{
    json *out = begin_event(j, type);
    put_response(j, out, "response", status, failure);
    end_event(j, out);
}

static void send_item(job *j, const char *type, const char *status)
{
    const response *r = j->state;
    json *out = begin_event(j, type);
    json_int(out, "output_index", r->n_items - 1);
    put_item(j, out, "item", r->n_items - 1, status);
    end_event(j, out);
}

// An event about the content of the last item; the caller ends it.
static json *begin_part_event(job *j, const char *type)
{
    const response *r = j->state;
    json *out = begin_event(j, type);
    put_item_id(j, out, "item_id", r->n_items - 1);
    json_int(out, "output_index", r->n_items - 1);
    if (r->items[r->n_items - 1].kind != ITEM_CALL) json_int(out, "content_index", 0);
    return out;
}

static void send_part(job *j, const char *type, bool begun)
{
    const response *r = j->state;
    json *out = begin_part_event(j, type);
    put_part(out, "part", &r->items[r->n_items - 1], begun);
    end_event(j, out);
}

static void send_text(job *j, const char *type, const char *key, const char *text, size_t n)
{
    const response *r = j->state;
    json *out = begin_part_event(j, type);
    json_bytes(out, key, text, n);
    if (r->items[r->n_items - 1].kind == ITEM_MESSAGE) {
        json_array(out, "logprobs");
        json_end_array(out);
    }
    end_event(j, out);
}

// --- how items grow --------------------------------------------------------------------------------------

static bool add_item(job *j, item_kind kind, int32_t call)
{
    response *r = j->state;
    output_item *more = realloc(r->items, ((size_t)r->n_items + 1) * sizeof *more);
    if (!more) return false;
    r->items = more;
    more[r->n_items++] = (output_item){.kind = kind, .call = call};
    r->open = true;
    if (!j->stream) return true;
    send_item(j, "response.output_item.added", "in_progress");
    if (kind != ITEM_CALL) send_part(j, "response.content_part.added", true);
    return true;
}

static void end_item(job *j, const char *status)
{
    response *r = j->state;
    if (!r->open) return;
    r->open = false;
    const output_item *item = &r->items[r->n_items - 1];
    if (!j->stream) return;
    if (item->kind == ITEM_CALL) {
        const tool_call *call = &j->choices[0].answer.calls[item->call];
        send_text(j, kinds[item->kind].done, "arguments", call->arguments, call->n_arguments);
    } else {
        send_text(j, kinds[item->kind].done, "text", item->text.n ? item->text.data : "", item->text.n);
        send_part(j, "response.content_part.done", false);
    }
    send_item(j, "response.output_item.done", status);
}

static bool response_piece(job *j, choice *c, const char *text, size_t n, bool is_thought)
{
    response *r = j->state;
    item_kind kind = is_thought ? ITEM_THOUGHT : ITEM_MESSAGE;
    (void)c;
    if (r->open && r->items[r->n_items - 1].kind != kind) end_item(j, "completed");
    if (!r->open && !add_item(j, kind, 0)) return false;
    if (j->stream) send_text(j, kinds[kind].delta, "delta", text, n);
    return text_add(&r->items[r->n_items - 1].text, text, n);
}

static bool response_call_begin(job *j, choice *c, const tool_call *call)
{
    end_item(j, "completed");
    return add_item(j, ITEM_CALL, (int32_t)(call - c->answer.calls));
}

static bool response_call_arguments(job *j, choice *c, const tool_call *call, const char *text, size_t n)
{
    (void)c;
    (void)call;
    if (j->stream) send_text(j, kinds[ITEM_CALL].delta, "delta", text, n);
    return true;
}

static bool response_call_end(job *j, choice *c, const tool_call *call)
{
    (void)c;
    end_item(j, call->complete ? "completed" : "incomplete");
    return true;
}

static void response_begin(job *j, choice *c)
{
    (void)c;
    send_response(j, "response.created", "in_progress", NULL);
    send_response(j, "response.in_progress", "in_progress", NULL);
}

// An answer without anything has an empty message.
static bool response_end_choice(job *j, choice *c)
{
    const response *r = j->state;
    if (r->n_items == 0 && !add_item(j, ITEM_MESSAGE, 0)) return false;
    end_item(j, status_of(c));
    return true;
}

static void response_end(job *j)
{
    const char *status = status_of(&j->choices[0]);
    send_response(j, strcmp(status, "completed") == 0 ? "response.completed" : "response.incomplete", status,
                  NULL);
}

static void response_whole(job *j)
{
    put_response(j, reply_json(j->s), NULL, status_of(&j->choices[0]), NULL);
    reply_send(j->s, j->x, 200);
}

static void response_broken(job *j, error_id id, const char *message)
{
    const response *r = j->state;
    (void)id;
    if (r->sequence == 0) response_begin(j, &j->choices[0]); // clients expect it first
    send_response(j, "response.failed", "failed", message);
}

static const protocol response_protocol = {
    .stream_type = "text/event-stream",
    .begin = response_begin,
    .piece = response_piece,
    .call_begin = response_call_begin,
    .call_arguments = response_call_arguments,
    .call_end = response_call_end,
    .end_choice = response_end_choice,
    .end = response_end,
    .whole = response_whole,
    .broken = response_broken,
    .free_state = free_response,
    .splits_thoughts = true,
    .collects = true,
};

// --- the request -----------------------------------------------------------------------------------------

// A stream has it three times, and what waits for a client is limited.
enum { ECHO_MAX = 65536 };

static void echo_member(fields *f, json *out, const char *name, const char *otherwise)
{
    const node *v = node_get(f->object, name);
    char *raw = v && v->n_raw <= ECHO_MAX ? node_copy(v) : NULL;
    if (raw) json_one_line(raw);
    json_raw(out, name, raw ? raw : otherwise);
    free(raw);
}

// What the answer repeats of the request, with the values in use where it left them out.
static char *make_echo(fields *f, const request_params *p)
{
    char temperature[32], top_p[32];
    snprintf(temperature, sizeof temperature, "%.7g", (double)p->sampling.temperature);
    snprintf(top_p, sizeof top_p, "%.7g", (double)p->sampling.top_p);
    json *out = writer_json(f->w);
    json_object(out, NULL);
    echo_member(f, out, "instructions", "null");
    echo_member(f, out, "max_output_tokens", "null");
    echo_member(f, out, "metadata", "{}");
    echo_member(f, out, "parallel_tool_calls", "true");
    json_null(out, "previous_response_id");
    echo_member(f, out, "reasoning", "{\"effort\":null,\"summary\":null}");
    json_bool(out, "store", false);
    json_bool(out, "background", false);
    echo_member(f, out, "temperature", temperature);
    echo_member(f, out, "text", "{\"format\":{\"type\":\"text\"}}");
    echo_member(f, out, "tool_choice", "\"auto\"");
    echo_member(f, out, "tools", "[]");
    echo_member(f, out, "top_p", top_p);
    json_text(out, "truncation", "disabled");
    json_end_object(out);
    return writer_copy(f->w);
}

static bool make_state(fields *f, request_params *p)
{
    response *r = calloc(1, sizeof *r);
    p->state = r;
    if (r) r->echo = make_echo(f, p);
    if (r && r->echo) return true;
    field_fail(f, ERROR_OWN, "input", "out of memory");
    return false;
}

void route_responses(fields *f)
{
    fields chat;
    text_request *t = openai_request(f, &response_protocol, "resp_", "input");
    if (!t || !input_read(f, &t->in, &chat) || !params_read(&chat, &t->p, true)) return;
    t->p.schema_field = "text.format.schema";
    if (make_state(f, &t->p)) openai_start_chat(&chat, t);
}
