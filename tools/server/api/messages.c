// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/api/messages.h"

#include <stdlib.h>
#include <string.h>

enum { PATH_TEXT = 96 };

typedef struct reader {
    fields *f;
    messages *m;
    char path[PATH_TEXT]; // "messages[2]"
} reader;

static void wrong(reader *r, error_id id, const char *what, const char *why)
{
    char path[PATH_TEXT + 32];
    snprintf(path, sizeof path, "%s%s", r->path, what);
    field_fail(r->f, id, path, "%s", why);
}

// A copy that lives as long as the turns.
static char *keep(reader *r, char *text)
{
    char **more = text ? realloc(r->m->texts, (r->m->n_texts + 1) * sizeof *more) : NULL;
    if (!more) {
        free(text);
        wrong(r, ERROR_OWN, "", "out of memory");
        return NULL;
    }
    r->m->texts = more;
    return more[r->m->n_texts++] = text;
}

// --- content ---------------------------------------------------------------------------------------------

static const node *part_text(reader *r, const node *part)
{
    static const char *const kinds[] = {"text", "input_text", "output_text"};
    const node *type = node_get(part, "type"), *text = node_get(part, "text");
    const char *name = type && type->kind == NODE_TEXT ? type->text : "";
    bool known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) known |= strcmp(name, kinds[i]) == 0;
    if (strcmp(name, "refusal") == 0) {
        known = true;
        text = node_get(part, "refusal");
    }
    if (!known) {
        wrong(r, ERROR_VALUE, ".content", "only parts of type text are accepted by this model");
        return NULL;
    }
    if (text && text->kind == NODE_TEXT) return text;
    wrong(r, ERROR_FIELD, ".content", "a part has no text");
    return NULL;
}

static const char *join_parts(reader *r, const node *list)
{
    size_t n = 0;
    for (const node *part = list->first; part; part = part->next) {
        const node *text = part_text(r, part);
        if (!text) return NULL;
        n += text->n_text;
    }
    char *out = keep(r, malloc(n + 1)), *to = out;
    if (!out) return NULL;
    for (const node *part = list->first; part; part = part->next) {
        const node *text = part_text(r, part);
        memcpy(to, text->text, text->n_text);
        to += text->n_text;
    }
    *to = 0;
    return out;
}

static const char *read_content(reader *r, const node *message, bool required)
{
    const node *v = node_get(message, "content");
    if (!v) {
        if (required) wrong(r, ERROR_FIELD, ".content", "a string or a list of parts is expected");
        return NULL;
    }
    if (v->kind == NODE_TEXT) return v->text;
    if (v->kind == NODE_LIST) return join_parts(r, v);
    wrong(r, ERROR_FIELD, ".content", "a string or a list of parts is expected");
    return NULL;
}

// --- calls of tools in the history -----------------------------------------------------------------------

// The template wants the arguments as an object; the API has them as text of JSON.
static void put_call(json *j, const node *call)
{
    const node *id = node_get(call, "id"), *function = node_get(call, "function");
    const node *name = node_get(function, "name"), *arguments = node_get(function, "arguments");
    body parsed = {0};
    json_object(j, NULL);
    if (id && id->kind == NODE_TEXT) json_text(j, "id", id->text);
    json_text(j, "type", "function");
    json_object(j, "function");
    json_text(j, "name", name && name->kind == NODE_TEXT ? name->text : "");
    if (!arguments || (arguments->kind == NODE_TEXT && arguments->n_text == 0)) {
        json_raw(j, "arguments", "{}");
    } else if (arguments->kind != NODE_TEXT) {
        char *raw = node_copy(arguments);
        json_raw(j, "arguments", raw ? raw : "{}");
        free(raw);
    } else if (body_parse(&parsed, arguments->text, arguments->n_text) && parsed.root->kind == NODE_OBJECT) {
        json_raw(j, "arguments", arguments->text);
    } else {
        json_text(j, "arguments", arguments->text);
    }
    body_fini(&parsed);
    json_end_object(j);
    json_end_object(j);
}

static const char *read_calls(reader *r, const node *message)
{
    const node *calls = node_get(message, "tool_calls");
    size_t n;
    if (!calls || calls->n == 0) return NULL;
    if (calls->kind != NODE_LIST) {
        wrong(r, ERROR_FIELD, ".tool_calls", "a list is expected");
        return NULL;
    }
    json *j = reply_json(r->f->s);
    json_array(j, NULL);
    for (const node *call = calls->first; call; call = call->next) put_call(j, call);
    json_end_array(j);
    const char *text = reply_text(r->f->s, &n);
    char *out = malloc(n + 1);
    if (out) {
        memcpy(out, text, n);
        out[n] = 0;
    }
    return keep(r, out);
}

// --- turns -----------------------------------------------------------------------------------------------

static const char *text_of(reader *r, const node *message, const char *key)
{
    const node *v = node_get(message, key);
    char what[40];
    if (!v || v->kind == NODE_TEXT) return v ? v->text : NULL;
    snprintf(what, sizeof what, ".%s", key);
    wrong(r, ERROR_FIELD, what, "a string is expected");
    return NULL;
}

static const char *read_role(reader *r, const node *message)
{
    static const char *const names[][2] = {{"system", "system"}, {"developer", "system"},
                                           {"user", "user"},     {"assistant", "assistant"},
                                           {"tool", "tool"},     {"function", "tool"}};
    const char *role = text_of(r, message, "role");
    for (size_t i = 0; role && i < sizeof names / sizeof *names; i++)
        if (strcmp(role, names[i][0]) == 0) return names[i][1];
    wrong(r, ERROR_FIELD, ".role", "it must be system, developer, user, assistant or tool");
    return "user";
}

static void read_turn(reader *r, const node *message, tn_turn *turn)
{
    if (message->kind != NODE_OBJECT) {
        wrong(r, ERROR_FIELD, "", "an object is expected");
        return;
    }
    const char *thought = text_of(r, message, "reasoning_content");
    if (!thought) thought = text_of(r, message, "reasoning");
    if (!thought) thought = text_of(r, message, "thinking");
    *turn = (tn_turn){.role = read_role(r, message)};
    bool assistant = strcmp(turn->role, "assistant") == 0;
    turn->tool_calls = assistant ? read_calls(r, message) : NULL;
    turn->content = read_content(r, message, !assistant);
    if (assistant && !turn->content && !turn->tool_calls) {
        turn->content = text_of(r, message, "refusal");
        if (!turn->content) turn->content = "";
    }
    turn->reasoning_content = assistant ? thought : NULL;
    turn->name = text_of(r, message, "name");
    turn->tool_call_id = text_of(r, message, "tool_call_id");
    const node *images = node_get(message, "images");
    if (images && images->n > 0) wrong(r, ERROR_VALUE, ".images", "this model reads no images");
}

static bool read_turns(fields *f, messages *m)
{
    const node *list = field_of(f, "messages", NODE_LIST);
    if (!list || list->n == 0) {
        if (!f->failed)
            field_fail(f, ERROR_FIELD, "messages", "a list with at least one message is expected");
        return false;
    }
    m->turns = calloc(list->n, sizeof *m->turns);
    if (!m->turns) {
        field_fail(f, ERROR_OWN, "messages", "out of memory");
        return false;
    }
    reader r = {.f = f, .m = m};
    for (const node *v = list->first; v && !f->failed; v = v->next) {
        snprintf(r.path, sizeof r.path, "messages[%zu]", m->n);
        read_turn(&r, v, &m->turns[m->n++]);
    }
    return !f->failed;
}

// What is not offered must not be ignored where the answer would be another one.
static bool check_offered(fields *f)
{
    static const char *const absent[] = {"functions", "function_call", "audio", "web_search_options"};
    const node *tools = field(f, "tools"), *choice = field(f, "tool_choice");
    bool none = choice && choice->kind == NODE_TEXT && strcmp(choice->text, "none") == 0;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (field(f, absent[i])) field_fail(f, ERROR_UNSUPPORTED, absent[i], "this is not offered");
    if (tools && tools->n > 0 && !none)
        field_fail(f, ERROR_UNSUPPORTED, "tools", "calls of tools are not offered yet");
    return !f->failed;
}

static void set_chat(fields *f, messages *m, tn_chat_config *chat)
{
    const node *variables = field_of(f, "chat_template_kwargs", NODE_OBJECT);
    const node *effort = field(f, "reasoning_effort"), *think = field(f, "think");
    *chat = f->s->r.chat;
    chat->local_time = chat_local_time();
    chat->no_generation_prompt = !field_bool(f, "add_generation_prompt", true);
    bool off = (effort && effort->kind == NODE_TEXT && strcmp(effort->text, "none") == 0) ||
               (think && think->kind == NODE_BOOL && !think->truth);
    if (variables)
        m->variables = node_copy(variables);
    else if (off)
        m->variables = strdup("{\"enable_thinking\":false}");
    else
        return;
    if (!m->variables) field_fail(f, ERROR_OWN, "chat_template_kwargs", "out of memory");
    chat->variables = m->variables;
}

static void refuse(fields *f, tn_status status)
{
    char message[400] = "";
    (void)tn_context_error(f->s->r.t.ctx, message, sizeof message);
    field_fail(f, status == TN_ERR_MEMORY ? ERROR_OWN : ERROR_FIELD, "messages", "the chat template: %s",
               message[0] ? message : tn_status_text(status));
}

bool messages_read(fields *f, messages *m)
{
    tn_chat_config chat;
    if (!check_offered(f) || !read_turns(f, m)) return false;
    set_chat(f, m, &chat);
    if (f->failed) return false;
    tn_status status = tn_chat_tokenize(f->s->r.model, m->turns, m->n, &chat, &m->ids, &m->n_ids);
    if (status != TN_OK) refuse(f, status);
    return !f->failed;
}

bool messages_render(fields *f, messages *m, char **text, size_t *n)
{
    tn_chat_config chat;
    if (!read_turns(f, m)) return false;
    set_chat(f, m, &chat);
    if (f->failed) return false;
    tn_status status = tn_chat_render(f->s->r.model, m->turns, m->n, &chat, text, n);
    if (status != TN_OK) refuse(f, status);
    return !f->failed;
}

void messages_fini(server *s, messages *m)
{
    for (size_t i = 0; i < m->n_texts; i++) free(m->texts[i]);
    free(m->texts);
    free(m->turns);
    free(m->variables);
    tn_tokens_free(s->r.model, m->ids);
    *m = (messages){0};
}
