// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/api/input.h"

#include "tools/server/job.h"

#include <stdlib.h>
#include <string.h>

typedef struct translator {
    fields *f;
    chat_input *in;
    json *out;
    size_t item;       // of `input`
    bool open, called; // a turn of the model that further items may join; within its calls
    text_buf thought;  // before the next turn of the model
} translator;

static const char *text_at(const node *object, const char *key)
{
    const node *v = node_get(object, key);
    return v && v->kind == NODE_TEXT ? v->text : NULL;
}

static void wrong(translator *t, error_id id, const char *what, const char *why)
{
    char path[96];
    snprintf(path, sizeof path, "input[%zu]%s", t->item, what);
    field_fail(t->f, id, path, "%s", why);
}

static void put_raw(translator *t, const char *key, const node *value)
{
    char *raw = node_copy(value);
    if (!raw) field_fail(t->f, ERROR_OWN, key, "out of memory");
    json_raw(t->out, key, raw ? raw : "null");
    free(raw);
}

// --- items -----------------------------------------------------------------------------------------------

static void close_turn(translator *t)
{
    if (!t->open) return;
    if (t->called) json_end_array(t->out);
    json_end_object(t->out);
    t->open = t->called = false;
}

static void begin_turn(translator *t, const char *role, int32_t item)
{
    close_turn(t);
    t->in->items[t->in->n_items++] = item;
    json_object(t->out, NULL);
    json_text(t->out, "role", role);
    t->open = strcmp(role, "assistant") == 0;
    if (t->open && t->thought.n > 0) json_text(t->out, "reasoning_content", t->thought.data);
    t->thought.n = 0;
}

static void put_message(translator *t, const node *item)
{
    const char *role = text_at(item, "role");
    const node *content = node_get(item, "content");
    if (!role || (strcmp(role, "tool") == 0)) {
        wrong(t, ERROR_FIELD, ".role", "it must be system, developer, user or assistant");
        return;
    }
    begin_turn(t, role, (int32_t)t->item);
    if (content) put_raw(t, "content", content);
    if (!t->open) json_end_object(t->out);
}

static void put_call(translator *t, const node *item)
{
    const char *id = text_at(item, "call_id"), *name = text_at(item, "name");
    if (!id || !name) {
        wrong(t, ERROR_FIELD, id ? ".name" : ".call_id", "a string is expected");
        return;
    }
    if (!t->open) begin_turn(t, "assistant", (int32_t)t->item);
    if (!t->called) json_array(t->out, "tool_calls");
    t->called = true;
    const char *arguments = text_at(item, "arguments");
    json_object(t->out, NULL);
    json_text(t->out, "id", id);
    json_text(t->out, "type", "function");
    json_object(t->out, "function");
    json_text(t->out, "name", name);
    json_text(t->out, "arguments", arguments ? arguments : "");
    json_end_object(t->out);
    json_end_object(t->out);
}

static void put_result(translator *t, const node *item)
{
    const char *id = text_at(item, "call_id");
    const node *output = node_get(item, "output");
    if (!id || !output || (output->kind != NODE_TEXT && output->kind != NODE_LIST)) {
        wrong(t, ERROR_FIELD, id ? ".output" : ".call_id",
              id ? "a string or a list of parts is expected" : "a string is expected");
        return;
    }
    begin_turn(t, "tool", (int32_t)t->item);
    json_text(t->out, "tool_call_id", id);
    put_raw(t, "content", output);
    json_end_object(t->out);
}

// What the model thought before its next item: of the parts those with text.
static void take_thought(translator *t, const node *item)
{
    static const char *const lists[] = {"content", "summary"};
    size_t before = t->thought.n;
    for (size_t i = 0; i < 2 && t->thought.n == before; i++) {
        const node *list = node_get(item, lists[i]);
        for (const node *part = list ? list->first : NULL; part; part = part->next) {
            const char *text = text_at(part, "text");
            if (text && !text_add(&t->thought, text, strlen(text)))
                field_fail(t->f, ERROR_OWN, "input", "out of memory");
        }
    }
    close_turn(t);
}

static void put_item(translator *t, const node *item)
{
    const char *type = text_at(item, "type");
    if (item->kind != NODE_OBJECT)
        wrong(t, ERROR_FIELD, "", "an object is expected");
    else if (!type || strcmp(type, "message") == 0)
        put_message(t, item);
    else if (strcmp(type, "function_call") == 0)
        put_call(t, item);
    else if (strcmp(type, "function_call_output") == 0)
        put_result(t, item);
    else if (strcmp(type, "reasoning") == 0)
        take_thought(t, item);
    else
        wrong(t, ERROR_VALUE, ".type",
              "messages, function_call, function_call_output and reasoning are read");
}

static void put_messages(translator *t)
{
    const node *input = field(t->f, "input");
    const char *instructions = field_text(t->f, "instructions", "");
    bool list = input && input->kind == NODE_LIST && input->n > 0;
    if (!t->f->failed && !list && (!input || input->kind != NODE_TEXT))
        field_fail(t->f, ERROR_FIELD, "input", "a string or a list of items is expected");
    if (t->f->failed) return;
    t->in->items = calloc((list ? input->n : 1) + 1, sizeof *t->in->items);
    if (!t->in->items) {
        field_fail(t->f, ERROR_OWN, "input", "out of memory");
        return;
    }
    json_array(t->out, "messages");
    if (*instructions) {
        begin_turn(t, "system", -1);
        json_text(t->out, "content", instructions);
        json_end_object(t->out);
    }
    if (!list) {
        begin_turn(t, "user", 0);
        json_bytes(t->out, "content", input->text, input->n_text);
        json_end_object(t->out);
    }
    for (const node *item = list ? input->first : NULL; item && !t->f->failed; item = item->next, t->item++)
        put_item(t, item);
    close_turn(t);
    json_end_array(t->out);
}

// --- the other fields ------------------------------------------------------------------------------------

// Tools that are no functions are those of another server: the model answers without them.
static void put_tools(translator *t)
{
    static const char *const members[] = {"name", "description", "parameters", "strict"};
    const node *list = field_of(t->f, "tools", NODE_LIST);
    int32_t place = 0;
    if (!list || list->n == 0) return;
    t->in->tools = calloc(list->n, sizeof *t->in->tools);
    if (!t->in->tools) {
        field_fail(t->f, ERROR_OWN, "tools", "out of memory");
        return;
    }
    json_array(t->out, "tools");
    for (const node *item = list->first; item && !t->f->failed; item = item->next, place++) {
        const char *type = text_at(item, "type");
        if (type && strcmp(type, "function") != 0) continue;
        t->in->tools[t->in->n_tools++] = place;
        json_object(t->out, NULL);
        if (type) json_text(t->out, "type", type);
        json_object(t->out, "function");
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
            const node *v = node_get(item, members[i]);
            if (v) put_raw(t, members[i], v);
        }
        json_end_object(t->out);
        json_end_object(t->out);
    }
    json_end_array(t->out);
}

static void put_format(translator *t)
{
    const node *text = field_of(t->f, "text", NODE_OBJECT), *format = node_get(text, "format");
    const char *type = text_at(format, "type");
    if (!format) return;
    if (!type || strcmp(type, "json_schema") != 0) {
        put_raw(t, "response_format", format);
        return;
    }
    json_object(t->out, "response_format");
    json_text(t->out, "type", type);
    put_raw(t, "json_schema", format);
    json_end_object(t->out);
}

// Fields that have the same form in both requests.
static void put_same(translator *t)
{
    static const char *const names[][2] = {
        {"stream", "stream"},
        {"tool_choice", "tool_choice"},
        {"parallel_tool_calls", "parallel_tool_calls"},
        {"max_output_tokens", "max_completion_tokens"},
        {"temperature", "temperature"},
        {"top_p", "top_p"},
        {"top_k", "top_k"},
        {"min_p", "min_p"},
        {"typical_p", "typical_p"},
        {"seed", "seed"},
        {"stop", "stop"},
        {"logit_bias", "logit_bias"},
        {"repeat_penalty", "repeat_penalty"},
        {"repeat_last_n", "repeat_last_n"},
        {"frequency_penalty", "frequency_penalty"},
        {"presence_penalty", "presence_penalty"},
        {"grammar", "grammar"},
        {"ignore_eos", "ignore_eos"},
        {"cache_salt", "cache_salt"},
        {"chat_template_kwargs", "chat_template_kwargs"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const node *v = field(t->f, names[i][0]);
        if (v) put_raw(t, names[i][1], v);
    }
    const node *effort = node_get(field_of(t->f, "reasoning", NODE_OBJECT), "effort");
    if (effort) put_raw(t, "reasoning_effort", effort);
}

static void check_offered(fields *f)
{
    static const char *const absent[] = {"previous_response_id", "conversation", "prompt"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (field(f, absent[i])) field_fail(f, ERROR_UNSUPPORTED, absent[i], "answers are not kept here");
    if (field_bool(f, "background", false))
        field_fail(f, ERROR_UNSUPPORTED, "background", "this is not offered");
}

// --- names in errors -------------------------------------------------------------------------------------

static bool replace(char *path, size_t size, const char *from, const char *to)
{
    char rest[128];
    size_t n = strlen(from);
    if (strncmp(path, from, n) != 0) return false;
    snprintf(rest, sizeof rest, "%s", path + n);
    snprintf(path, size, "%s%s", to, rest);
    return true;
}

// "messages[3].content" is "input[2].content", "tools[0].function.name" may be "tools[1].name".
static void rename_path(const void *user, char *path, size_t size)
{
    const chat_input *in = user;
    char from[48] = "", to[48];
    int i = 0;
    if (sscanf(path, "messages[%d]", &i) == 1 && i >= 0 && (size_t)i < in->n_items) {
        snprintf(from, sizeof from, "messages[%d]", i);
        snprintf(to, sizeof to, "input[%d]", (int)in->items[i]);
        replace(path, size, from, in->items[i] < 0 ? "instructions" : to);
    } else if (sscanf(path, "tools[%d]", &i) == 1 && i >= 0 && (size_t)i < in->n_tools) {
        snprintf(from, sizeof from, "tools[%d]", i);
        snprintf(to, sizeof to, "tools[%d]", (int)in->tools[i]);
        char function[64];
        snprintf(function, sizeof function, "%s.function", from);
        if (!replace(path, size, function, to)) replace(path, size, from, to);
    } else if (!replace(path, size, "messages", "input") &&
               !replace(path, size, "response_format.json_schema", "text.format") &&
               !replace(path, size, "response_format", "text.format") &&
               !replace(path, size, "max_completion_tokens", "max_output_tokens")) {
        replace(path, size, "reasoning_effort", "reasoning.effort");
    }
}

// --- the whole -------------------------------------------------------------------------------------------

bool input_read(fields *f, chat_input *in, fields *chat)
{
    translator t = {.f = f, .in = in, .out = writer_json(f->w)};
    check_offered(f);
    json_object(t.out, NULL);
    put_messages(&t);
    put_tools(&t);
    put_format(&t);
    put_same(&t);
    json_end_object(t.out);
    free(t.thought.data);
    if (f->failed) return false;
    in->text = writer_copy(f->w);
    if (!in->text) {
        field_fail(f, ERROR_OWN, "input", "out of memory");
        return false;
    }
    if (!body_parse(&in->b, in->text, strlen(in->text))) {
        field_fail(f, in->b.no_memory ? ERROR_OWN : ERROR_FIELD, "input", "%s", in->b.why);
        return false;
    }
    *chat = fields_inner(f, in->b.root, NULL);
    chat->rename = rename_path;
    chat->user = in;
    return true;
}

void input_fini(chat_input *in)
{
    body_fini(&in->b);
    free(in->text);
    free(in->items);
    free(in->tools);
    *in = (chat_input){.text = NULL};
}
