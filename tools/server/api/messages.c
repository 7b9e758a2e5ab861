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
        char why[120];
        snprintf(why, sizeof why, "a part of type '%.40s' is not accepted by this model, only text", name);
        wrong(r, ERROR_VALUE, ".content", why);
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

static bool check_calls(reader *r, const node *calls)
{
    char what[64];
    size_t i = 0;
    if (calls->kind != NODE_LIST) {
        wrong(r, ERROR_FIELD, ".tool_calls", "a list is expected");
        return false;
    }
    for (const node *call = calls->first; call; call = call->next, i++) {
        const node *name = node_get(node_get(call, "function"), "name");
        if (name && name->kind == NODE_TEXT) continue;
        snprintf(what, sizeof what, ".tool_calls[%zu].function.name", i);
        wrong(r, ERROR_FIELD, what, "a string is expected");
        return false;
    }
    return true;
}

// The calls as a part of the content, for templates that print no calls.
static void put_calls_into_content(reader *r, const node *calls, tn_turn *turn)
{
    for (const node *call = calls->first; call && !r->f->failed; call = call->next) {
        const node *function = node_get(call, "function"), *arguments = node_get(function, "arguments");
        bool is_text = arguments && arguments->kind == NODE_TEXT;
        char *copy = is_text || !arguments ? NULL : node_copy(arguments);
        const char *text = copy ? copy : is_text && arguments->n_text > 0 ? arguments->text : "{}";
        turn->content = keep(
            r, tools_call_text(r->f->w, &r->m->tools, turn->content, node_get(function, "name")->text, text));
        free(copy);
    }
}

static void read_calls(reader *r, const node *message, tn_turn *turn)
{
    const node *calls = node_get(message, "tool_calls");
    if (!calls || calls->n == 0 || !check_calls(r, calls)) return;
    r->m->tools.n_before += (int32_t)calls->n;
    if (tools_are_content(&r->m->tools)) {
        put_calls_into_content(r, calls, turn);
        return;
    }
    json *j = writer_json(r->f->w);
    json_array(j, NULL);
    for (const node *call = calls->first; call; call = call->next) put_call(j, call);
    json_end_array(j);
    turn->tool_calls = keep(r, writer_copy(r->f->w));
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
    *turn = (tn_turn){.struct_size = sizeof *turn, .role = read_role(r, message)};
    bool assistant = strcmp(turn->role, "assistant") == 0;
    turn->content = read_content(r, message, !assistant);
    if (assistant) read_calls(r, message, turn);
    if (assistant && !turn->content && !turn->tool_calls) {
        turn->content = text_of(r, message, "refusal");
        if (!turn->content) turn->content = "";
    }
    turn->reasoning_content = assistant ? thought : NULL;
    turn->name = text_of(r, message, "name");
    if (!turn->name) turn->name = text_of(r, message, "tool_name");
    turn->tool_call_id = text_of(r, message, "tool_call_id");
    const node *images = node_get(message, "images");
    if (images && images->n > 0) wrong(r, ERROR_VALUE, ".images", "this model reads no images");
}

// Templates without tools: results become turns of the user, and the system turn describes the tools.
static void write_tools(reader *r)
{
    messages *m = r->m;
    bool was_result = false;
    size_t n = 0;
    for (size_t i = 0; i < m->n && !r->f->failed; i++) {
        tn_turn turn = m->turns[i];
        bool is_result = strcmp(turn.role, "tool") == 0, joins = is_result && was_result;
        if (is_result) {
            const char *before = joins ? m->turns[n - 1].content : NULL;
            const char *result = turn.content ? turn.content : "";
            turn = (tn_turn){.struct_size = sizeof(tn_turn),
                             .role = "user",
                             .content = keep(r, tools_result_text(r->f->w, before, result))};
        }
        m->turns[joins ? n - 1 : n++] = turn;
        was_result = is_result;
    }
    m->n = n;
    bool system = strcmp(m->turns[0].role, "system") == 0;
    if (!system) memmove(m->turns + 1, m->turns, m->n++ * sizeof *m->turns);
    const char *before = system ? m->turns[0].content : NULL;
    m->turns[0] = (tn_turn){.struct_size = sizeof(tn_turn),
                            .role = "system",
                            .content = keep(r, tools_describe(r->f->w, &m->tools, before))};
}

static bool read_turns(fields *f, messages *m)
{
    const node *list = field_of(f, "messages", NODE_LIST);
    if (!list || list->n == 0) {
        if (!f->failed)
            field_fail(f, ERROR_FIELD, "messages", "a list with at least one message is expected");
        return false;
    }
    m->turns = calloc(list->n + 1, sizeof *m->turns); // one more for a system turn about tools
    if (!m->turns) {
        field_fail(f, ERROR_OWN, "messages", "out of memory");
        return false;
    }
    reader r = {.f = f, .m = m};
    for (const node *v = list->first; v && !f->failed; v = v->next) {
        snprintf(r.path, sizeof r.path, "messages[%zu]", m->n);
        read_turn(&r, v, &m->turns[m->n++]);
    }
    if (m->tools.generic && !f->failed) write_tools(&r);
    return !f->failed;
}

// What is not offered must not be ignored where the answer would be another one.
static bool check_offered(fields *f)
{
    static const char *const absent[] = {"functions", "function_call", "audio", "web_search_options"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (field(f, absent[i])) field_fail(f, ERROR_UNSUPPORTED, absent[i], "this is not offered");
    const node *kinds = field_of(f, "modalities", NODE_LIST);
    for (const node *v = kinds ? kinds->first : NULL; v; v = v->next)
        if (v->kind != NODE_TEXT || strcmp(v->text, "text") != 0)
            field_fail(f, ERROR_VALUE, "modalities", "only text is offered");
    return !f->failed;
}

// --- the template ----------------------------------------------------------------------------------------

// The strength of thinking that templates know, NULL: nothing is said. *off: none.
static const char *read_effort(fields *f, bool *off)
{
    static const char *const efforts[] = {"minimal", "low", "medium", "high", "xhigh", "max"};
    const node *effort = field_of(f, "reasoning_effort", NODE_TEXT), *think = field(f, "think");
    const char *name = "think", *text = think && think->kind == NODE_TEXT ? think->text : NULL;
    if (think && think->kind != NODE_TEXT && think->kind != NODE_BOOL)
        field_fail(f, ERROR_FIELD, name, "true, false, low, medium, high or max are expected");
    if (effort) name = "reasoning_effort", text = effort->text;
    *off = text ? strcmp(text, "none") == 0 : think && !think->truth;
    for (size_t i = 0; text && i < sizeof efforts / sizeof *efforts; i++)
        if (strcmp(text, efforts[i]) == 0) return efforts[i];
    if (text && !*off)
        field_fail(f, ERROR_FIELD, name, "none, minimal, low, medium, high, xhigh or max are expected");
    return NULL;
}

// What the template gets besides the messages. Fields of the request yield to chat_template_kwargs.
static void set_variables(fields *f, messages *m, tn_chat_config *chat)
{
    const node *given = field_of(f, "chat_template_kwargs", NODE_OBJECT), *think = field(f, "think");
    bool off, on = think && think->kind == NODE_BOOL && think->truth;
    const char *effort = read_effort(f, &off);
    if (f->failed || (!given && !off && !on && !effort)) return;
    char *copy = given ? node_copy(given) : NULL;
    json *j = writer_json(f->w);
    json_object(j, NULL);
    if ((off || on) && !node_get(given, "enable_thinking")) json_bool(j, "enable_thinking", on);
    if (effort && !node_get(given, "reasoning_effort")) json_text(j, "reasoning_effort", effort);
    if (copy && given->n > 0) json_members(j, copy);
    json_end_object(j);
    m->variables = given && !copy ? NULL : writer_copy(f->w);
    free(copy);
    if (!m->variables) field_fail(f, ERROR_OWN, "chat_template_kwargs", "out of memory");
    chat->variables = m->variables;
}

// The last message of the assistant is no turn then: the answer begins with its text.
static void read_continued(fields *f, messages *m)
{
    if (!field_bool(f, "continue_final_message", false) || f->failed) return;
    const tn_turn *last = &m->turns[m->n - 1];
    if (strcmp(last->role, "assistant") != 0 || last->tool_calls || !last->content) {
        field_fail(f, ERROR_FIELD, "continue_final_message",
                   "the last message must be text of the assistant");
        return;
    }
    m->continued = last->content;
    m->n--;
}

bool messages_chat(fields *f, messages *m, tn_chat_config *chat)
{
    *chat = f->m->r.chat;
    chat->local_time = chat_local_time();
    if (m->tools.all && !m->tools.generic) chat->tools = m->tools.all;
    if (m->n > 0) read_continued(f, m);
    bool opens = field_bool(f, "add_generation_prompt", true) || m->continued;
    chat->no_generation_prompt = !opens;
    set_variables(f, m, chat);
    return !f->failed;
}

static void refuse(fields *f, tn_status status)
{
    char message[400] = "";
    (void)tn_context_error(f->m->r.t.ctx, message, sizeof message);
    field_fail(f, status == TN_ERR_MEMORY ? ERROR_OWN : ERROR_FIELD, "messages", "the chat template: %s",
               message[0] ? message : tn_status_text(status));
}

// The ids of the text that the answer continues, behind those of the prompt.
static tn_status join_continued(fields *f, messages *m)
{
    int32_t *more = NULL;
    size_t n = 0;
    tn_status status = tn_tokenize(f->m->r.model, m->continued, strlen(m->continued), 0, &more, &n);
    if (status != TN_OK) return status;
    int32_t *all = malloc((m->n_ids + n + 1) * sizeof *all);
    if (all) {
        memcpy(all, m->ids, m->n_ids * sizeof *all);
        if (n > 0) memcpy(all + m->n_ids, more, n * sizeof *all);
        tn_tokens_free(f->m->r.model, m->ids);
        m->ids = all;
        m->n_ids += n;
        m->joined = true;
    }
    tn_tokens_free(f->m->r.model, more);
    return all ? TN_OK : TN_ERR_MEMORY;
}

bool messages_read(fields *f, messages *m)
{
    tn_chat_config chat;
    if (!check_offered(f) || !tools_read(f, &m->tools) || !read_turns(f, m)) return false;
    if (!messages_chat(f, m, &chat)) return false;
    tn_status status = tn_chat_tokenize(f->m->r.model, m->turns, m->n, &chat, &m->ids, &m->n_ids);
    if (status == TN_OK && m->continued) status = join_continued(f, m);
    if (status != TN_OK) refuse(f, status);
    return !f->failed;
}

bool messages_render(fields *f, messages *m, char **text, size_t *n)
{
    tn_chat_config chat;
    if (!tools_read(f, &m->tools) || !read_turns(f, m)) return false;
    if (!messages_chat(f, m, &chat)) return false;
    tn_status status = tn_chat_render(f->m->r.model, m->turns, m->n, &chat, text, n);
    if (status != TN_OK) refuse(f, status);
    return !f->failed;
}

void messages_fini(const model *of, messages *m)
{
    for (size_t i = 0; i < m->n_texts; i++) free(m->texts[i]);
    free(m->texts);
    free(m->turns);
    free(m->variables);
    if (m->joined)
        free(m->ids);
    else
        tn_tokens_free(of->r.model, m->ids);
    tools_fini(of, &m->tools);
    *m = (messages){0};
}
