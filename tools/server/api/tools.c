// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/api/tools.h"

#include "tools/chat/thoughts.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <tenon/tools.h>

enum { TOOLS_MAX = 256, TOOL_NAME_MAX = 128, FIELD_PATH = 96 };

static const char *text_at(const node *object, const char *key)
{
    const node *v = node_get(object, key);
    return v && v->kind == NODE_TEXT ? v->text : "";
}

// --- the list --------------------------------------------------------------------------------------------

static const char *name_of(const node *item)
{
    return text_at(node_get(item, "function"), "name");
}

static bool is_name(const char *name)
{
    static const char known[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/";
    size_t n = strlen(name);
    return n > 0 && n <= TOOL_NAME_MAX && strspn(name, known) == n;
}

static void wrong(fields *f, error_id id, size_t i, const char *what, const char *why)
{
    char path[FIELD_PATH];
    snprintf(path, sizeof path, "tools[%zu]%s", i, what);
    field_fail(f, id, path, "%s", why);
}

static void check_tool(fields *f, const node *item, size_t i)
{
    const node *function = node_get(item, "function"), *parameters = node_get(function, "parameters");
    const node *strict = node_get(function, "strict"), *description = node_get(function, "description");
    if (item->kind != NODE_OBJECT)
        wrong(f, ERROR_FIELD, i, "", "an object is expected");
    else if (strcmp(text_at(item, "type"), "function") != 0)
        wrong(f, node_get(item, "type") ? ERROR_VALUE : ERROR_FIELD, i, ".type", "it must be function");
    else if (!function || function->kind != NODE_OBJECT)
        wrong(f, ERROR_FIELD, i, ".function", "an object is expected");
    else if (!is_name(name_of(item)))
        wrong(f, ERROR_FIELD, i, ".function.name", "1 to 128 of the characters A-Za-z0-9_-.:/ are expected");
    else if (parameters && parameters->kind != NODE_OBJECT)
        wrong(f, ERROR_FIELD, i, ".function.parameters", "a schema is expected, which is an object");
    else if (description && description->kind != NODE_TEXT)
        wrong(f, ERROR_FIELD, i, ".function.description", "a string is expected");
    else if (strict && strict->kind != NODE_BOOL)
        wrong(f, ERROR_FIELD, i, ".function.strict", "a boolean is expected");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_list(fields *f, const node *list)
{
    const char *names[TOOLS_MAX];
    size_t n = 0;
    if (list->n > TOOLS_MAX) {
        field_fail(f, ERROR_FIELD, "tools", "at most %d tools are accepted", TOOLS_MAX);
        return false;
    }
    for (const node *item = list->first; item && !f->failed; item = item->next) {
        check_tool(f, item, n);
        if (!f->failed) names[n++] = name_of(item);
    }
    if (f->failed) return false;
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            field_fail(f, ERROR_FIELD, "tools", "two of them have the name %.100s", names[i]);
    return !f->failed;
}

// --- which of them ---------------------------------------------------------------------------------------

static const node *find_tool(const node *list, const char *name)
{
    for (const node *item = list ? list->first : NULL; item; item = item->next)
        if (strcmp(name_of(item), name) == 0) return item;
    return NULL;
}

// {"type": "function", "function": {"name": ...}}, or with the name beside the type.
static const char *chosen_name(const node *choice)
{
    const char *name = name_of(choice);
    return *name ? name : text_at(choice, "name");
}

static void check_chosen(fields *f, const node *list, const node *choice, const char *path)
{
    const char *name = chosen_name(choice);
    if (strcmp(text_at(choice, "type"), "function") != 0 || !*name)
        field_fail(f, ERROR_FIELD, path, "a function with its name is expected");
    else if (!find_tool(list, name))
        field_fail(f, ERROR_FIELD, path, "there is no tool of the name %.100s", name);
}

// Which tools may be called: one, or those of `*listed`; both NULL: all.
typedef struct selection {
    const char *one;
    const node *listed;
    bool none;
} selection;

static void read_mode(fields *f, tool_use *t, selection *chosen, const char *mode, const char *path)
{
    chosen->none = strcmp(mode, "none") == 0;
    t->required = strcmp(mode, "required") == 0 || strcmp(mode, "any") == 0;
    if (!chosen->none && !t->required && strcmp(mode, "auto") != 0)
        field_fail(f, ERROR_FIELD, path, "it must be none, auto, required or a function");
}

static void read_choice(fields *f, tool_use *t, const node *list, selection *chosen)
{
    const node *choice = field(f, "tool_choice");
    if (!choice) return;
    if (choice->kind == NODE_TEXT) {
        read_mode(f, t, chosen, choice->text, "tool_choice");
    } else if (choice->kind != NODE_OBJECT) {
        field_fail(f, ERROR_FIELD, "tool_choice", "%s was found, a string or an object is expected",
                   node_kind_name(choice));
    } else if (strcmp(text_at(choice, "type"), "allowed_tools") == 0) {
        const node *inner = node_get(choice, "allowed_tools"), *tools;
        inner = inner ? inner : choice;
        tools = node_get(inner, "tools");
        read_mode(f, t, chosen, text_at(inner, "mode"), "tool_choice.allowed_tools.mode");
        if (!tools || tools->kind != NODE_LIST || tools->n == 0)
            field_fail(f, ERROR_FIELD, "tool_choice.allowed_tools.tools", "a list of functions is expected");
        for (const node *v = !f->failed ? tools->first : NULL; v && !f->failed; v = v->next)
            check_chosen(f, list, v, "tool_choice.allowed_tools.tools");
        chosen->listed = tools;
    } else {
        check_chosen(f, list, choice, "tool_choice");
        chosen->one = chosen_name(choice);
        t->required = true;
    }
    if (!list && t->required) field_fail(f, ERROR_FIELD, "tool_choice", "it needs tools");
}

static bool is_allowed(const selection *chosen, const char *name)
{
    if (chosen->one) return strcmp(chosen->one, name) == 0;
    if (!chosen->listed) return true;
    for (const node *v = chosen->listed->first; v; v = v->next)
        if (strcmp(chosen_name(v), name) == 0) return true;
    return false;
}

static bool select_tools(fields *f, tool_use *t, const node *list, const selection *chosen)
{
    const char *separator = "";
    int32_t i = 0;
    t->all = node_copy(list);
    t->places = calloc(list->n, sizeof *t->places);
    writer_json(f->w);
    fputc('[', f->w->f);
    for (const node *item = list->first; item && t->places; item = item->next, i++) {
        const node *strict = node_get(node_get(item, "function"), "strict");
        if (!is_allowed(chosen, name_of(item))) continue;
        t->strict = t->strict || (strict && strict->truth);
        t->places[t->n_allowed++] = i;
        char *copy = node_copy(item);
        if (!copy) field_fail(f, ERROR_OWN, "tools", "out of memory");
        fprintf(f->w->f, "%s%s", separator, copy ? copy : "");
        free(copy);
        separator = ",";
    }
    fputc(']', f->w->f);
    t->allowed = writer_copy(f->w);
    if (!t->all || !t->places || !t->allowed) field_fail(f, ERROR_OWN, "tools", "out of memory");
    return !f->failed;
}

bool tools_read(fields *f, tool_use *t)
{
    const node *list = field_of(f, "tools", NODE_LIST);
    selection chosen = {0};
    if (list && list->n == 0) list = NULL;
    if (list && !check_list(f, list)) return false;
    read_choice(f, t, list, &chosen);
    t->single = !field_bool(f, "parallel_tool_calls", true);
    if (f->failed || !list || chosen.none) {
        t->required = false;
        return !f->failed;
    }
    t->format = tn_chat_tool_format(f->m->r.model, &f->m->r.chat);
    t->generic = !t->format;
    if (t->generic && opt_flag(f->s->opt, OPT_STRICT_TOOLS)) {
        field_fail(f, ERROR_VALUE, "tools",
                   "the chat template of this model has no calls of tools that are known");
        return false;
    }
    if (t->generic) t->format = "hermes";
    return select_tools(f, t, list, &chosen);
}

void tools_fini(const model *m, tool_use *t)
{
    free(t->all);
    free(t->allowed);
    free(t->places);
    tn_text_free(m->r.t.ctx, t->grammar);
    *t = (tool_use){0};
}

// --- constraints -----------------------------------------------------------------------------------------

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    while (n > 0 && strchr(" \t\n", text[n - 1])) n--;
    return n >= m && strncmp(text + n - m, end, m) == 0;
}

// Whether the vocabulary has a token for the beginning of a thought that is text for the parser of answers.
static bool knows_thoughts(const run_state *r)
{
    static const char begin[] = "<think>";
    int32_t *ids = NULL;
    char *text = NULL;
    size_t n = 0, n_text = 0;
    const tn_model *m = r->model;
    bool known = tn_tokenize(m, begin, sizeof begin - 1, TN_TEXT_PARSE_SPECIAL, &ids, &n) == TN_OK &&
                 n == 1 && tn_detokenize(m, ids, 1, 0, &text, &n_text) == TN_OK && strcmp(text, begin) == 0;
    tn_text_free(r->t.ctx, text);
    tn_tokens_free(m, ids);
    return known;
}

// How an answer may begin: inside of a thought that the prompt has begun, or with one of its own. Prompts
// that end behind a thought have turned it off.
static bool find_thoughts(const model *m, const int32_t *ids, size_t n_ids, tn_tool_grammar_config *c)
{
    thoughts t = {0};
    char *end = NULL;
    if (answer_prompt_end(&m->r, ids, n_ids, &end) != TN_OK) return false;
    thoughts_begin(&t, end, true);
    c->in_thought = thoughts_inside(&t);
    c->may_think = !c->in_thought && !ends_with(end, "</think>") && knows_thoughts(&m->r);
    tn_text_free(m->r.t.ctx, end);
    return true;
}

// A message "tools[2]: why" is about the schema of the allowed tool with that number, "schema: why" about the
// one of the answer.
static void refuse(fields *f, const tool_use *t, const request_params *p, tn_status status)
{
    char message[400] = "", path[FIELD_PATH] = "tools";
    (void)tn_context_error(f->m->r.t.ctx, message, sizeof message);
    int i = 0;
    if (strncmp(message, "schema: ", 8) == 0)
        snprintf(path, sizeof path, "%s", p->schema_field);
    else if (sscanf(message, "tools[%d]", &i) == 1 && i >= 0 && i < t->n_allowed)
        snprintf(path, sizeof path, "tools[%d].function.parameters", (int)t->places[i]);
    field_fail(f, status == TN_ERR_MEMORY ? ERROR_OWN : ERROR_SCHEMA, path, "%s",
               message[0] ? message : tn_status_text(status));
}

static void set_grammar(fields *f, tool_use *t, request_params *p, const tn_tool_grammar_config *c)
{
    tn_status status = tn_tool_grammar(f->m->r.t.ctx, c, &t->grammar);
    if (status != TN_OK) refuse(f, t, p, status);
    p->cfg.grammar = t->grammar;
    p->cfg.json_schema = NULL;
}

// Without tools: a schema is one of the answer, not of the thought before it.
static void constrain_schema(fields *f, tool_use *t, request_params *p, const int32_t *ids, size_t n_ids)
{
    tn_tool_grammar_config c;
    tn_tool_grammar_config_default(&c);
    c.json_schema = p->cfg.json_schema;
    const char *format = tn_chat_tool_format(f->m->r.model, &f->m->r.chat);
    bool harmony = format && strcmp(format, "harmony") == 0; // its thoughts have other markers
    if (!c.json_schema || harmony) return;
    if (!find_thoughts(f->m, ids, n_ids, &c))
        field_fail(f, ERROR_OWN, p->schema_field, "out of memory");
    else if (c.in_thought || c.may_think)
        set_grammar(f, t, p, &c);
}

bool tools_constrain(fields *f, tool_use *t, request_params *p, const int32_t *ids, size_t n_ids)
{
    bool fits = n_ids < (size_t)f->m->facts.n_ctx; // else it is refused, without the time for a grammar
    if (!t->all) {
        if (fits) constrain_schema(f, t, p, ids, n_ids);
        return !f->failed;
    }
    p->tools = t;
    p->cfg.print_special = 1; // markers of calls are special tokens in many models
    if (p->cfg.grammar) {
        field_fail(f, ERROR_FIELD, "grammar", "it excludes tools");
        return false;
    }
    if (!fits || (!t->required && !t->strict && !p->cfg.json_schema)) return true;
    tn_tool_grammar_config c;
    tn_tool_grammar_config_default(&c);
    c.format = t->format;
    c.tools = t->allowed;
    c.single = t->single;
    c.json_schema = t->required ? NULL : p->cfg.json_schema;
    c.text = !t->required && !c.json_schema;
    if (!c.text && !find_thoughts(f->m, ids, n_ids, &c))
        field_fail(f, ERROR_OWN, "tools", "out of memory");
    else
        set_grammar(f, t, p, &c);
    return !f->failed;
}

// --- text for templates without tools --------------------------------------------------------------------

char *tools_describe(writer *w, const tool_use *t, const char *before)
{
    writer_json(w);
    if (before && *before) fprintf(w->f, "%s\n\n", before);
    fprintf(
        w->f,
        "You can call tools. This is the JSON list of them:\n<tools>\n%s\n</tools>\n"
        "To call one of them, write its name and its arguments as a JSON object inside of <tool_call> and "
        "</tool_call>:\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": {}}\n</tool_call>\n"
        "The result comes inside of <tool_response> and </tool_response>.",
        t->all);
    return writer_copy(w);
}

bool tools_are_content(const tool_use *t)
{
    return t->generic || (t->format && strcmp(t->format, "lfm2") == 0);
}

char *tools_call_text(writer *w, const tool_use *t, const char *before, const char *name,
                      const char *arguments)
{
    writer_json(w);
    if (before && *before) fprintf(w->f, "%s\n", before);
    fprintf(w->f,
            t->generic ? "<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>"
                       : "<|tool_call_start|>[{\"name\": \"%s\", \"arguments\": %s}]<|tool_call_end|>",
            name, arguments);
    return writer_copy(w);
}

char *tools_result_text(writer *w, const char *before, const char *result)
{
    writer_json(w);
    if (before && *before) fprintf(w->f, "%s\n", before);
    fprintf(w->f, "<tool_response>\n%s\n</tool_response>", result);
    return writer_copy(w);
}
