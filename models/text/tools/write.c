// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The grammar of answers that call tools. Each tool has a rule for its call, in which the schema of its
// parameters is a grammar of its own, with names of rules that no other tool has.
#include "models/text/grammar/grammar.h"
#include "models/text/grammar/schema.h"
#include "models/text/tools/tools.h"

#include <stdio.h>
#include <string.h>

// Calls in one answer, so that a model that only repeats a call comes to an end; bytes of `begin`, of `head`
// and of a marker.
enum { CALLS_MAX = 64, MARKUP_MAX = 80 };

typedef struct writer {
    tn_context *ctx;
    const tn_tool_format_row *format;
    tn_arena arena;
    tn_strbuf out;
    int64_t work; // on all schemas
} writer;

void tn_tool_grammar_config_init(tn_tool_grammar_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_tool_grammar_config, cfg, struct_size, {.format = NULL});
}

static void put_literal(writer *w, const char *text, size_t n)
{
    if (n > 0) tn_schema_put_literal(&w->out, text, n);
}

// --- the arguments ---------------------------------------------------------------------------------------

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A grammar whose rules get the prefix. Its texts are literals and classes; everything else that begins with
// a letter is the name of a rule.
static void put_renamed(tn_strbuf *out, const char *text, size_t n, const char *prefix)
{
    char close = 0; // of the literal or class
    bool in_name = false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (close && c == '\\' && i + 1 < n) {
            tn_strbuf_append(out, text + i++, 1);
        } else if (close) {
            if (c == close) close = 0;
        } else if (c == '"' || c == '[') {
            close = c == '"' ? '"' : ']';
            in_name = false;
        } else {
            if (is_letter(c) && !in_name) tn_strbuf_puts(out, prefix);
            in_name = is_letter(c) || (in_name && c >= '0' && c <= '9');
        }
        tn_strbuf_append(out, text + i, 1);
    }
}

// The schema of the arguments: an object, also where the tool does not say so.
static tn_status read_schema(writer *w, const tn_json *function, tn_json *type, tn_json *schema)
{
    static const char any_object[] = "{\"type\":\"object\"}",
                      nothing[] = "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";
    const tn_json *given = tn_json_get(function, "parameters"), *read;
    bool absent = !given || given->kind == TN_JSON_NULL;
    if (!absent && given->kind != TN_JSON_OBJECT)
        return tn_fail(w->ctx, TN_ERR_ARG, "the parameters are %s, a schema is an object",
                       tn_json_kind_name(given->kind));
    if (absent || given->count == 0) {
        const char *text = absent ? nothing : any_object;
        tn_status status = tn_json_read(&w->arena, "parameters", text, strlen(text), &read);
        if (status == TN_OK) *schema = *read;
        return status;
    }
    const tn_json *is = tn_json_get(given, "type");
    *schema = *given;
    if (is && !tn_json_is(is, "object"))
        return tn_fail(w->ctx, TN_ERR_ARG, "the parameters must be of type object");
    if (is) return TN_OK;
    *type = (tn_json){.kind = TN_JSON_STRING,
                      .text = "object",
                      .size = 6,
                      .key = "type",
                      .key_size = 4,
                      .next = given->first};
    schema->first = type;
    schema->count++;
    return TN_OK;
}

// A schema with what grammars cannot express is one of any object, unless the tool is strict.
static tn_status put_arguments(writer *w, const tn_json *function, const char *prefix)
{
    static const char any_object[] = "{\"type\":\"object\"}";
    const tn_json *strict = tn_json_get(function, "strict");
    bool is_strict = strict && strict->kind == TN_JSON_BOOL && strict->is_true;
    tn_json type, schema;
    tn_strbuf rules;
    tn_strbuf_init(&rules, w->ctx);
    tn_status status = read_schema(w, function, &type, &schema);
    if (status == TN_OK) status = tn_schema_tree_to_gbnf(w->ctx, &schema, &w->work, &rules);
    if (status == TN_ERR_UNSUPPORTED && !is_strict) {
        tn_strbuf_clear(&rules);
        status = tn_schema_to_gbnf(w->ctx, any_object, sizeof any_object - 1, &rules);
    }
    if (status == TN_OK) put_renamed(&w->out, rules.data, rules.size, prefix);
    tn_strbuf_fini(&rules);
    if (status == TN_OK && w->out.size > TN_GRAMMAR_SIZE_MAX)
        status = tn_fail(w->ctx, TN_ERR_UNSUPPORTED, "the grammar of all tools is larger than %d bytes",
                         (int)TN_GRAMMAR_SIZE_MAX);
    return status;
}

// --- calls -----------------------------------------------------------------------------------------------

static bool is_writable(const char *name, size_t n)
{
    bool ok = n > 0 && n <= TN_TOOL_NAME_MAX;
    for (size_t i = 0; i < n && ok; i++)
        ok =
            is_letter(name[i]) || (name[i] >= '0' && name[i] <= '9') || (name[i] && strchr("_-.:/", name[i]));
    return ok;
}

static tn_status put_tool(writer *w, const tn_json *tool, int32_t i)
{
    const tn_tool_markup *m = &w->format->markup;
    const tn_json *function = tn_json_get(tool, "function"), *name = tn_json_get(function, "name");
    char prefix[16];
    snprintf(prefix, sizeof prefix, "a%dx", (int)i);
    if (!name || name->kind != TN_JSON_STRING || !is_writable(name->text, name->size))
        return tn_fail(w->ctx, TN_ERR_ARG, "tools[%d]: a function needs a name of 1 to %d of A-Za-z0-9_-.:/",
                       (int)i, TN_TOOL_NAME_MAX);
    tn_strbuf_printf(&w->out, "call%d ::= ", (int)i);
    put_literal(w, name->text, name->size);
    put_literal(w, m->middle, strlen(m->middle));
    tn_strbuf_printf(&w->out, "%sroot ", prefix);
    put_literal(w, m->tail, strlen(m->tail));
    tn_strbuf_puts(&w->out, "\n");
    tn_status status = put_arguments(w, function, prefix);
    return status == TN_OK ? TN_OK : tn_fail_at(w->ctx, status, "tools[%d]: %s", (int)i, name->text);
}

static tn_status put_tools(writer *w, const char *text, int32_t *n)
{
    const tn_json *tools;
    tn_status status = tn_json_read(&w->arena, "tools", text, strlen(text), &tools);
    if (status == TN_OK && (tools->kind != TN_JSON_ARRAY || tools->count == 0))
        status = tn_fail(w->ctx, TN_ERR_FORMAT, "tools: it is no list, or an empty one");
    *n = 0;
    for (const tn_json *t = status == TN_OK ? tools->first : NULL; t && status == TN_OK; t = t->next)
        status = put_tool(w, t, (*n)++);
    return status;
}

// `calls`: all of the calls, but for the first `skip` bytes of the markup.
static void put_calls(writer *w, const char *first, size_t skip, bool single)
{
    const tn_tool_markup *m = &w->format->markup;
    tn_strbuf_puts(&w->out, "calls ::= ");
    put_literal(w, first + skip, strlen(first) - skip);
    tn_strbuf_puts(&w->out, "call ");
    if (!single) {
        tn_strbuf_puts(&w->out, "(");
        put_literal(w, m->between, strlen(m->between));
        put_literal(w, m->head, strlen(m->head));
        tn_strbuf_printf(&w->out, "call){0,%d} ", CALLS_MAX - 1);
    }
    put_literal(w, m->end, strlen(m->end));
    tn_strbuf_puts(&w->out, "\n");
}

// --- text before calls -----------------------------------------------------------------------------------

// Bytes of the character at `text`.
static size_t char_size(const char *text)
{
    size_t n = 1;
    while (((unsigned char)text[n] & 0xc0) == 0x80) n++;
    return n;
}

// Texts in which no marker occurs; behind markers[0] comes the rule `then`. A state is the longest end of the
// text so far that begins a marker: the first `n` bytes of marker `i`, the lowest one with these bytes.
typedef struct text_rules {
    const char *name, *then; // then NULL: markers[0] may not occur either
    const char *markers[TN_TOOL_MARKERS + 1];
    int32_t n_markers;
    bool may_end; // the text may end without a marker
} text_rules;

typedef struct text_state {
    int32_t i;
    size_t n;
} text_state;

static text_state find_state(const text_rules *t, const char *text, size_t n)
{
    for (; n > 0; n -= char_size(text), text += char_size(text))
        for (int32_t i = 0; i < t->n_markers; i++)
            if (strlen(t->markers[i]) >= n && memcmp(t->markers[i], text, n) == 0) return (text_state){i, n};
    return (text_state){0, 0};
}

static void put_in_class(writer *w, const char *text, size_t n)
{
    tn_strbuf_puts(&w->out, strchr("[]\\^-", *text) ? "\\" : "");
    tn_strbuf_append(&w->out, text, n);
}

// The alternatives of a state: each character that leads on, then all others. `excluded`: of a class, what
// is not allowed at all.
static void put_state(writer *w, const text_rules *t, text_state from, const char *excluded)
{
    char others[4 * MARKUP_MAX] = "", text[MARKUP_MAX + 8];
    for (int32_t i = 0; i < t->n_markers; i++)
        for (const char *c = t->markers[i]; *c; c += char_size(c)) {
            size_t size = char_size(c), n = from.n + size;
            memcpy(text, t->markers[from.i], from.n);
            memcpy(text + from.n, c, size);
            text[n] = 0;
            text_state to = find_state(t, text, n);
            snprintf(text, sizeof text, "%.*s", (int)size, c);
            if (to.n == 0 || strstr(others, text)) continue;
            strcat(others, text);
            bool complete = !t->markers[to.i][to.n];
            if (complete && (to.i > 0 || !t->then)) continue;
            put_literal(w, c, size);
            if (complete)
                tn_strbuf_printf(&w->out, "%s | ", t->then);
            else
                tn_strbuf_printf(&w->out, "%s%dx%d | ", t->name, (int)to.i, (int)to.n);
        }
    tn_strbuf_puts(&w->out, "[^");
    tn_strbuf_puts(&w->out, excluded);
    for (const char *c = others; *c; c += char_size(c)) put_in_class(w, c, char_size(c));
    tn_strbuf_printf(&w->out, "] %s0x0\n", t->name);
}

static void put_text(writer *w, const text_rules *t)
{
    for (int32_t i = 0; i < t->n_markers; i++)
        for (size_t n = 0; t->markers[i][n]; n += char_size(t->markers[i] + n)) {
            text_state s = find_state(t, t->markers[i], n);
            if (s.i != i || s.n != n) continue; // the same as one of another marker
            tn_strbuf_printf(&w->out, "%s%dx%d ::= %s", t->name, (int)i, (int)n, t->may_end ? "| " : "");
            put_state(w, t, s, "");
        }
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// Answers that are text, or text and then calls. No other marker that the parser knows may begin a call.
static void put_free_answer(writer *w, const char *first, bool single)
{
    const tn_tool_format_row *f = w->format;
    char marker[2 * MARKUP_MAX];
    text_rules t = {.name = "text", .may_end = true};
    snprintf(marker, sizeof marker, "%s", *f->markup.begin ? first : f->begins[0]);
    // What follows the marker in `begin` ends at a bracket.
    size_t n = *f->markup.begin ? strcspn(marker, "]>") + 1 : strlen(marker);
    bool marked = f->plain || strncmp(first, marker, n) == 0;
    if (marked) {
        marker[n] = 0;
        t.then = "calls";
        t.markers[t.n_markers++] = marker;
    }
    for (int32_t i = 0; i < TN_TOOL_MARKERS && f->begins[i]; i++)
        if (!marked || !ends_with(f->begins[i], marker)) t.markers[t.n_markers++] = f->begins[i];
    put_calls(w, first, marked && !f->plain ? n : 0, single);
    put_text(w, &t);
    if (marked) {
        tn_strbuf_puts(&w->out, f->plain ? "answer ::= calls | " : "answer ::= ");
        if (f->plain) put_literal(w, f->plain, strlen(f->plain));
        tn_strbuf_puts(&w->out, "text0x0\n");
    } else { // calls are all of the answer, and nothing else begins like one
        tn_strbuf_puts(&w->out, "answer ::= [ \\t\\n]* (calls | words)?\nwords ::= ");
        put_state(w, &t, (text_state){0, 0}, " \\t\\n{");
    }
}

// The answer, and the thought before it.
static void put_root(writer *w, const tn_tool_grammar_config *c)
{
    if (!c->in_thought && !c->may_think) {
        tn_strbuf_puts(&w->out, "root ::= answer\n");
        return;
    }
    put_text(w, &(text_rules){.name = "thought", .then = "behind", .markers = {"</think>"}, .n_markers = 1});
    tn_strbuf_puts(&w->out,
                   c->in_thought ? "root ::= thought0x0\n" : "root ::= answer | \"<think>\" thought0x0\n");
    tn_strbuf_puts(&w->out, "behind ::= [ \\t\\n]* answer\n");
}

static tn_status put_answer(writer *w, const tn_tool_grammar_config *c)
{
    char first[2 * MARKUP_MAX];
    tn_status status = TN_OK;
    tn_strbuf schema;
    tn_strbuf_init(&schema, w->ctx);
    snprintf(first, sizeof first, "%s%s", w->format->markup.begin, w->format->markup.head);
    if (!c->tools) {
        tn_strbuf_puts(&w->out, "answer ::= otherroot\n");
    } else if (c->text && !c->json_schema) {
        put_free_answer(w, first, c->single != 0);
    } else {
        put_calls(w, first, 0, c->single != 0);
        tn_strbuf_puts(&w->out, c->json_schema ? "answer ::= calls | " : "answer ::= calls");
        if (c->json_schema && w->format->plain) put_literal(w, w->format->plain, strlen(w->format->plain));
        tn_strbuf_puts(&w->out, c->json_schema ? "otherroot\n" : "\n");
    }
    if (c->json_schema) {
        status = tn_schema_to_gbnf(w->ctx, c->json_schema, strlen(c->json_schema), &schema);
        if (status == TN_OK) put_renamed(&w->out, schema.data, schema.size, "other");
    }
    tn_strbuf_fini(&schema);
    put_root(w, c);
    return status;
}

tn_status tn_tool_grammar(tn_context *ctx, const tn_tool_grammar_config *cfg, char **gbnf)
{
    TN_NEED(NULL, ctx);
    TN_NEED(ctx, gbnf);
    tn_tool_grammar_config c;
    tn_tool_grammar_config_default(&c);
    tn_status status = TN_STRUCT_READ(ctx, tn_tool_grammar_config, cfg, &c);
    if (status != TN_OK) return status;
    writer w = {.ctx = ctx, .format = tn_tool_format_find(c.format)};
    if (!w.format) return tn_fail(ctx, TN_ERR_ARG, "tools: there is no format '%s' of calls", c.format);
    if (!c.tools && !c.json_schema) return tn_fail(ctx, TN_ERR_ARG, "tools: a grammar needs them");
    int32_t n = 0;
    tn_arena_init(&w.arena, ctx);
    tn_strbuf_init(&w.out, ctx);
    if (c.tools) {
        status = put_tools(&w, c.tools, &n);
        tn_strbuf_puts(&w.out, "call ::= ");
        for (int32_t i = 0; i < n; i++) tn_strbuf_printf(&w.out, "%scall%d ", i ? "| " : "", (int)i);
        tn_strbuf_puts(&w.out, "\n");
    }
    if (status == TN_OK) status = put_answer(&w, &c);
    if (status == TN_OK) status = w.out.status;
    if (status == TN_OK)
        *gbnf = w.out.data;
    else
        tn_strbuf_fini(&w.out);
    tn_arena_fini(&w.arena);
    return status;
}
