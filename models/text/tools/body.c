// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The body of a call: a JSON object or a list of them, a name with arguments, calls as in Python, or elements
// with parameters.
// It is read from left to right, and a verdict depends on what was read only, so more text never changes it.
#include "models/text/tools/tools.h"

#include <string.h>

typedef struct span {
    const char *at, *end;
} span;

int tn_tool_starts(const char *text, size_t n, const char *marker)
{
    size_t size = strlen(marker);
    if (memcmp(text, marker, TN_MIN(n, size)) != 0) return 0;
    return n >= size ? 1 : -1;
}

static void skip_blanks(span *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at) s->at++;
}

static bool skip(span *s, const char *word)
{
    if (tn_tool_starts(s->at, (size_t)(s->end - s->at), word) != 1) return false;
    s->at += strlen(word);
    return true;
}

// The verdict on a word that has to stand here: DONE and it is passed.
static tn_tool_verdict expect(span *s, const char *word)
{
    int starts = tn_tool_starts(s->at, (size_t)(s->end - s->at), word);
    if (starts == 1) s->at += strlen(word);
    return starts == 1 ? TN_TOOL_DONE : starts < 0 ? TN_TOOL_MORE : TN_TOOL_NO_CALL;
}

// --- JSON ----------------------------------------------------------------------------------------------

bool tn_tool_value_pass(tn_tool_value *v, const char **at, const char *end)
{
    for (; *at < end; ++*at) {
        char c = **at;
        if (v->escaped) {
            v->escaped = false;
            continue;
        }
        if (v->quoted) {
            v->escaped = c == '\\';
            v->quoted = c != '"';
        } else if (c == '"') {
            v->quoted = true;
        } else if (c == '{' || c == '[') {
            v->depth++;
        } else if (c == '}' || c == ']') {
            if (v->depth == 0) return true; // of what contains the value
            v->depth--;
        } else if ((c == ',' || strchr(" \t\r\n:", c)) && v->depth == 0) {
            return true;
        }
        if (v->depth == 0 && !v->quoted && (c == '"' || c == '}' || c == ']')) {
            ++*at;
            return true;
        }
    }
    return false;
}

static tn_tool_verdict skip_value(span *s)
{
    tn_tool_value v = {0};
    return tn_tool_value_pass(&v, &s->at, s->end) ? TN_TOOL_DONE : TN_TOOL_MORE;
}

static void skip_any(span *s, const char *bytes)
{
    while (s->at < s->end && *s->at && strchr(bytes, *s->at)) s->at++;
}

tn_tool_key tn_tool_key_of(const char *key, size_t n)
{
    static const struct {
        const char *text;
        tn_tool_key key;
    } keys[] = {{"name", TN_TOOL_KEY_NAME},
                {"tool_name", TN_TOOL_KEY_NAME},
                {"id", TN_TOOL_KEY_ID},
                {"tool_call_id", TN_TOOL_KEY_ID},
                {"arguments", TN_TOOL_KEY_ARGUMENTS},
                {"parameters", TN_TOOL_KEY_ARGUMENTS}};
    for (size_t i = 0; i < TN_COUNT(keys); i++)
        if (n == strlen(keys[i].text) + 2 && memcmp(key + 1, keys[i].text, n - 2) == 0) return keys[i].key;
    return TN_TOOL_KEY_OTHER;
}

// The first value with such a key in an object that was found valid.
static bool find_member(span o, tn_tool_key key, span *value)
{
    o.at++;
    for (;;) {
        skip_any(&o, " \t\r\n,");
        if (o.at >= o.end || *o.at == '}') return false;
        const char *k = o.at;
        (void)skip_value(&o);
        bool is = tn_tool_key_of(k, (size_t)(o.at - k)) == key;
        skip_any(&o, " \t\r\n:");
        value->at = o.at;
        (void)skip_value(&o);
        value->end = o.at;
        if (is) return true;
    }
}

// The function with this name; NULL: there is none.
static const tn_json *find_tool(const tn_tool_body *b, const char *name)
{
    for (const tn_json *t = b->tools ? b->tools->first : NULL; t; t = t->next) {
        const tn_json *function = tn_json_get(t, "function"), *is = NULL;
        if (function) is = tn_json_get(function, "name");
        if (is && tn_json_is(is, name)) return function;
    }
    return NULL;
}

bool tn_tool_is_known(const tn_tool_body *b, const char *name)
{
    return !b->tools || find_tool(b, name);
}

static tn_tool_verdict verdict_of(tn_status status)
{
    return status == TN_OK ? TN_TOOL_DONE : status == TN_ERR_MEMORY ? TN_TOOL_NO_MEMORY : TN_TOOL_NO_CALL;
}

static tn_tool_verdict copy(tn_tool_body *b, const char *text, size_t n, const char **out)
{
    char *place = tn_arena_array(b->arena, n + 1, 1);
    if (!place) return TN_TOOL_NO_MEMORY;
    if (n > 0) memcpy(place, text, n);
    place[n] = 0;
    *out = place;
    return TN_TOOL_DONE;
}

// One more call; its arguments are an object, or the text of one.
static tn_tool_verdict add_call(tn_tool_body *b, const char *name, const char *id, const char *arguments,
                                size_t n)
{
    const tn_json *value;
    if (b->n_calls == TN_TOOL_CALLS_MAX || !tn_tool_is_known(b, name)) return TN_TOOL_NO_CALL;
    tn_tool_verdict v = verdict_of(tn_json_read(b->arena, "arguments", arguments, n, &value));
    if (v != TN_TOOL_DONE) return v;
    if (value->kind == TN_JSON_STRING) {
        const char *inside = value->text;
        n = value->size;
        arguments = inside;
        v = verdict_of(tn_json_read(b->arena, "arguments", inside, n, &value));
        if (v != TN_TOOL_DONE) return v;
    } else if (value->kind == TN_JSON_NULL) {
        arguments = "{}";
        n = 2;
    }
    if (value->kind != TN_JSON_OBJECT && value->kind != TN_JSON_NULL) return TN_TOOL_NO_CALL;
    tn_tool_call *call = &b->calls[b->n_calls++];
    *call = (tn_tool_call){.name = name, .id = id, .n_arguments = n};
    return copy(b, arguments, n, &call->arguments);
}

tn_tool_verdict tn_tool_string_read(tn_tool_body *b, const char *json, size_t n, const char **out)
{
    const tn_json *value;
    tn_tool_verdict v = verdict_of(tn_json_read(b->arena, "call", json, n, &value));
    if (v != TN_TOOL_DONE) return v;
    if (value->kind != TN_JSON_STRING || value->size == 0 || strlen(value->text) != value->size)
        return TN_TOOL_NO_CALL;
    *out = value->text;
    return TN_TOOL_DONE;
}

static tn_tool_verdict add_object(tn_tool_body *b, span object)
{
    const tn_json *o;
    const char *name, *id = NULL;
    span value;
    tn_tool_verdict v =
        verdict_of(tn_json_read(b->arena, "call", object.at, (size_t)(object.end - object.at), &o));
    if (v != TN_TOOL_DONE) return v;
    if (o->kind != TN_JSON_OBJECT || !find_member(object, TN_TOOL_KEY_NAME, &value)) return TN_TOOL_NO_CALL;
    v = tn_tool_string_read(b, value.at, (size_t)(value.end - value.at), &name);
    if (v != TN_TOOL_DONE) return v;
    if (find_member(object, TN_TOOL_KEY_ID, &value))
        v = tn_tool_string_read(b, value.at, (size_t)(value.end - value.at), &id);
    if (v == TN_TOOL_NO_MEMORY) return v;
    if (find_member(object, TN_TOOL_KEY_ARGUMENTS, &value))
        return add_call(b, name, id, value.at, (size_t)(value.end - value.at));
    return add_call(b, name, id, "{}", 2);
}

// The next call of a list, or the end of the list.
static tn_tool_verdict read_listed(tn_tool_body *b, span *s)
{
    skip_blanks(s);
    if (s->at == s->end) return TN_TOOL_MORE;
    if (b->n_listed > 0 && skip(s, "]")) {
        b->in_list = false;
        return TN_TOOL_DONE;
    }
    if (b->n_listed > 0) {
        if (b->n_listed == TN_TOOL_CALLS_MAX || !skip(s, ",")) return TN_TOOL_NO_CALL;
        skip_blanks(s);
        if (s->at == s->end) return TN_TOOL_MORE;
    }
    if (*s->at != '{') return TN_TOOL_NO_CALL;
    span one = *s;
    tn_tool_verdict v = skip_value(s);
    one.end = s->at;
    return v == TN_TOOL_DONE ? add_object(b, one) : v;
}

static tn_tool_verdict read_json(tn_tool_body *b, span *s)
{
    span all = *s;
    if (b->single && skip(s, "[")) {
        b->in_list = true;
        return read_listed(b, s);
    }
    tn_tool_verdict v = skip_value(s);
    if (v != TN_TOOL_DONE) return v;
    all.end = s->at;
    if (*all.at == '{') return add_object(b, all);
    const tn_json *list; // so that the elements can be found by their brackets
    v = verdict_of(tn_json_read(b->arena, "calls", all.at, (size_t)(all.end - all.at), &list));
    if (v == TN_TOOL_DONE && list->count == 0) v = TN_TOOL_NO_CALL;
    for (all.at++; v == TN_TOOL_DONE;) {
        skip_any(&all, " \t\r\n,");
        if (*all.at == ']') return v;
        span one = all;
        (void)skip_value(&all);
        one.end = all.at;
        v = add_object(b, one);
    }
    return v;
}

// --- a name, then arguments ----------------------------------------------------------------------------

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-.:/", c));
}

static tn_tool_verdict read_name(tn_tool_body *b, span *s, const char **name)
{
    skip_blanks(s);
    const char *at = s->at;
    while (s->at < s->end && is_name_byte(*s->at)) s->at++;
    if (s->at == s->end) return s->at - at > TN_TOOL_NAME_MAX ? TN_TOOL_NO_CALL : TN_TOOL_MORE;
    if (s->at == at || s->at - at > TN_TOOL_NAME_MAX) return TN_TOOL_NO_CALL;
    return copy(b, at, (size_t)(s->at - at), name);
}

// "functions.NAME:3": the name in it; the whole is the id.
static tn_tool_verdict split_id(tn_tool_body *b, const char **name, const char **id)
{
    static const char prefix[] = "functions.";
    const char *colon = strrchr(*name, ':');
    if (strncmp(*name, prefix, sizeof prefix - 1) != 0 || !colon) return TN_TOOL_DONE;
    *id = *name;
    const char *first = *name + sizeof prefix - 1;
    return colon > first ? copy(b, first, (size_t)(colon - first), name) : TN_TOOL_NO_CALL;
}

static const char fence[] = "```";

// Passes what stands before the { of arguments.
static tn_tool_verdict open_arguments(span *s, bool *fenced)
{
    skip_blanks(s);
    tn_tool_verdict v = expect(s, fence);
    *fenced = v == TN_TOOL_DONE;
    if (v == TN_TOOL_MORE) return v;
    if (*fenced) {
        v = expect(s, "json");
        if (v == TN_TOOL_MORE) return v;
        skip_blanks(s);
    }
    if (s->at == s->end) return TN_TOOL_MORE;
    return *s->at == '{' ? TN_TOOL_DONE : TN_TOOL_NO_CALL;
}

// Passes what a header may have between the name and the separator: " <|constrain|>json".
static tn_tool_verdict skip_header(span *s, const char *separator)
{
    enum { HEADER_MAX = 256 };
    static const char *const parts[] = {"<|channel|>", "<|constrain|>"};
    for (const char *from = s->at; s->at < s->end && s->at - from <= HEADER_MAX;) {
        if (*s->at != '<') {
            s->at++;
            continue;
        }
        int starts = tn_tool_starts(s->at, (size_t)(s->end - s->at), separator);
        if (starts > 0) return TN_TOOL_DONE;
        bool passed = false, part = starts < 0;
        for (size_t i = 0; i < TN_COUNT(parts) && !passed; i++) {
            part |= tn_tool_starts(s->at, (size_t)(s->end - s->at), parts[i]) < 0;
            passed = skip(s, parts[i]);
        }
        if (!passed) return part ? TN_TOOL_MORE : TN_TOOL_NO_CALL;
    }
    return s->at == s->end ? TN_TOOL_MORE : TN_TOOL_NO_CALL;
}

// The name of a call and what follows it up to the { of its arguments.
static tn_tool_verdict read_head(tn_tool_body *b, span *s, const char **name, const char **id, bool *fenced)
{
    const char *separator = b->format->separator;
    if (!separator) return TN_TOOL_NO_CALL;
    tn_tool_verdict v = read_name(b, s, name);
    if (v != TN_TOOL_DONE) return v;
    v = expect(s, "[CALL_ID]");
    if (v == TN_TOOL_DONE)
        v = read_name(b, s, id);
    else if (v == TN_TOOL_NO_CALL)
        v = TN_TOOL_DONE;
    if (v == TN_TOOL_DONE && b->format->header) v = skip_header(s, separator);
    if (v == TN_TOOL_DONE) v = expect(s, separator);
    if (v != TN_TOOL_DONE) return v;
    // "function", the separator, the name, and a fence
    if (s->at == s->end) return TN_TOOL_MORE;
    if (strcmp(*name, "function") == 0 && *s->at != '{') v = read_name(b, s, name);
    if (v == TN_TOOL_DONE) v = split_id(b, name, id);
    return v == TN_TOOL_DONE ? open_arguments(s, fenced) : v;
}

static tn_tool_verdict read_named(tn_tool_body *b, span *s)
{
    const char *name = NULL, *id = NULL;
    bool fenced;
    tn_tool_verdict v = read_head(b, s, &name, &id, &fenced);
    if (v != TN_TOOL_DONE) return v;
    span arguments = *s;
    v = skip_value(s);
    arguments.end = s->at;
    if (v == TN_TOOL_DONE && fenced) {
        skip_blanks(s);
        v = expect(s, fence);
    }
    return v == TN_TOOL_DONE ? add_call(b, name, id, arguments.at, (size_t)(arguments.end - arguments.at))
                             : v;
}

// Reads the members of an object, which are written as JSON, and adds the call with them as its arguments.
typedef tn_tool_verdict (*read_members)(tn_tool_body *b, span *s, const char *tool, tn_strbuf *out);
static tn_tool_verdict add_members(tn_tool_body *b, span *s, const char *name, read_members read)
{
    tn_strbuf out;
    tn_strbuf_init(&out, b->arena->ctx);
    tn_strbuf_puts(&out, "{");
    tn_tool_verdict v = read(b, s, name, &out);
    tn_strbuf_puts(&out, "}");
    if (out.status != TN_OK) v = TN_TOOL_NO_MEMORY;
    if (v == TN_TOOL_DONE) v = add_call(b, name, NULL, out.data, out.size);
    tn_strbuf_fini(&out);
    return v;
}

// --- calls of Python -----------------------------------------------------------------------------------

// The name of parameter number i of a tool, for arguments without one; NULL: there is none.
static const char *parameter_name(const tn_tool_body *b, const char *tool, int32_t i)
{
    const tn_json *function = find_tool(b, tool);
    const tn_json *parameters = function ? tn_json_get(function, "parameters") : NULL;
    const tn_json *properties = parameters ? tn_json_get(parameters, "properties") : NULL;
    if (!properties || properties->kind != TN_JSON_OBJECT) return NULL;
    const tn_json *p = properties->first;
    for (; p && i > 0; i--) p = p->next;
    return p ? p->key : NULL;
}

// "name=", if the argument has one; *name stays NULL otherwise.
static tn_tool_verdict read_keyword(tn_tool_body *b, span *s, const char **name)
{
    const char *at = s->at;
    span after = *s;
    while (after.at < after.end && (is_name_byte(*after.at) && !strchr("-.:/", *after.at))) after.at++;
    size_t n = (size_t)(after.at - at);
    skip_blanks(&after);
    if (after.at == after.end) return TN_TOOL_MORE;
    if (n == 0 || *after.at != '=') return TN_TOOL_DONE;
    s->at = after.at + 1;
    return copy(b, at, n, name);
}

// From behind the opening parenthesis to behind the closing one.
static tn_tool_verdict read_keywords(tn_tool_body *b, span *s, const char *tool, tn_strbuf *out)
{
    for (int32_t i = 0;; i++) {
        const char *name = NULL;
        skip_blanks(s);
        if (s->at == s->end) return TN_TOOL_MORE;
        if (skip(s, ")")) return TN_TOOL_DONE;
        tn_tool_verdict v = read_keyword(b, s, &name);
        if (v == TN_TOOL_DONE && !name) name = parameter_name(b, tool, i);
        if (v == TN_TOOL_DONE && !name) v = TN_TOOL_NO_CALL;
        if (v != TN_TOOL_DONE) return v;
        tn_strbuf_puts(out, i > 0 ? ",\"" : "\"");
        tn_strbuf_json(out, name, strlen(name));
        tn_strbuf_puts(out, "\":");
        v = tn_tool_python_read(&s->at, s->end, out);
        if (v != TN_TOOL_DONE) return v;
        skip_blanks(s);
        if (s->at == s->end) return TN_TOOL_MORE;
        if (!skip(s, ",") && *s->at != ')') return TN_TOOL_NO_CALL;
    }
}

static tn_tool_verdict read_python_call(tn_tool_body *b, span *s)
{
    const char *name;
    tn_tool_verdict v = read_name(b, s, &name);
    if (v != TN_TOOL_DONE) return v;
    skip_blanks(s);
    v = expect(s, "(");
    if (v != TN_TOOL_DONE) return v;
    return add_members(b, s, name, read_keywords);
}

// [add(a=1), now()], or one call without brackets.
static tn_tool_verdict read_python(tn_tool_body *b, span *s)
{
    if (!skip(s, "[")) return read_python_call(b, s);
    for (;;) {
        tn_tool_verdict v = read_python_call(b, s);
        if (v != TN_TOOL_DONE) return v;
        skip_blanks(s);
        if (s->at == s->end) return TN_TOOL_MORE;
        if (skip(s, "]")) return TN_TOOL_DONE;
        if (!skip(s, ",")) return TN_TOOL_NO_CALL;
    }
}

// Whether a list has calls of Python, and none of JSON: 1, 0, -1: more decides.
static int is_python(const tn_tool_body *b, span s)
{
    if (!b->format->python || *s.at == '{' || *s.at == '<') return 0;
    if (*s.at != '[') return 1;
    s.at++;
    skip_blanks(&s);
    return s.at == s.end ? -1 : *s.at != '{' && *s.at != ']';
}

// --- elements ------------------------------------------------------------------------------------------

// Texts of parameters that are strings by the schema are taken as they are, others are JSON where they can
// be.
static tn_tool_verdict put_parameter(tn_tool_body *b, tn_strbuf *out, const char *tool, const char *name,
                                     span value)
{
    const tn_json *parsed, *type = find_tool(b, tool);
    static const char *const path[] = {"parameters", "properties", NULL, "type"};
    for (size_t i = 0; i < TN_COUNT(path) && type; i++) type = tn_json_get(type, path[i] ? path[i] : name);
    if (value.at < value.end && *value.at == '\n') value.at++;
    if (value.at < value.end && value.end[-1] == '\n') value.end--;
    size_t n = (size_t)(value.end - value.at);
    tn_tool_verdict v = TN_TOOL_NO_CALL;
    if (!type || !tn_json_is(type, "string"))
        v = verdict_of(tn_json_read(b->arena, name, value.at, n, &parsed));
    if (v == TN_TOOL_NO_MEMORY) return v;
    tn_strbuf_puts(out, out->size > 1 ? ",\"" : "\"");
    tn_strbuf_json(out, name, strlen(name));
    tn_strbuf_puts(out, v == TN_TOOL_DONE ? "\":" : "\":\"");
    if (v == TN_TOOL_DONE)
        tn_strbuf_append(out, value.at, n);
    else
        tn_strbuf_json(out, value.at, n);
    if (v != TN_TOOL_DONE) tn_strbuf_puts(out, "\"");
    return out->status == TN_OK ? TN_TOOL_DONE : TN_TOOL_NO_MEMORY;
}

static bool find_text(const span *s, const char *text, const char **at)
{
    size_t size = strlen(text);
    for (const char *p = s->at; (size_t)(s->end - p) >= size; p++)
        if (memcmp(p, text, size) == 0) {
            *at = p;
            return true;
        }
    return false;
}

static tn_tool_verdict read_parameters(tn_tool_body *b, span *s, const char *tool, tn_strbuf *out)
{
    static const char close[] = "</parameter>";
    for (;;) {
        const char *name;
        skip_blanks(s);
        tn_tool_verdict v = expect(s, "</function>");
        if (v != TN_TOOL_NO_CALL) return v;
        v = expect(s, "<parameter=");
        if (v == TN_TOOL_DONE) v = read_name(b, s, &name);
        if (v == TN_TOOL_DONE) v = expect(s, ">");
        if (v != TN_TOOL_DONE) return v;
        span value = *s;
        if (!find_text(s, close, &value.end)) return TN_TOOL_MORE;
        s->at = value.end + sizeof close - 1;
        v = put_parameter(b, out, tool, name, value);
        if (v != TN_TOOL_DONE) return v;
    }
}

static tn_tool_verdict read_function(tn_tool_body *b, span *s, const char **name)
{
    tn_tool_verdict v = expect(s, "<function=");
    if (v == TN_TOOL_DONE) v = read_name(b, s, name);
    return v == TN_TOOL_DONE ? expect(s, ">") : v;
}

static tn_tool_verdict read_element(tn_tool_body *b, span *s)
{
    const char *name;
    tn_tool_verdict v = read_function(b, s, &name);
    return v == TN_TOOL_DONE ? add_members(b, s, name, read_parameters) : v;
}

// --- all of it -----------------------------------------------------------------------------------------

static tn_tool_verdict read_end(const tn_tool_body *b, span *s)
{
    span before = *s;
    skip_blanks(s);
    bool may_follow = s->at == s->end && b->format->ends[0];
    for (size_t i = 0; i < TN_TOOL_MARKERS && b->format->ends[i]; i++) {
        if (skip(s, b->format->ends[i])) return TN_TOOL_DONE;
        may_follow |= tn_tool_starts(s->at, (size_t)(s->end - s->at), b->format->ends[i]) < 0;
    }
    *s = before;
    return may_follow && !b->at_end ? TN_TOOL_OPEN : TN_TOOL_DONE;
}

tn_tool_verdict tn_tool_body_read(tn_tool_body *b, const char *text, size_t n)
{
    span s = {text, text + n};
    b->n_calls = 0;
    skip_blanks(&s);
    if (s.at == s.end) return TN_TOOL_MORE;
    int python = b->in_list ? 0 : is_python(b, s);
    tn_tool_verdict v = b->in_list                     ? read_listed(b, &s)
                        : python < 0                   ? TN_TOOL_MORE
                        : python > 0                   ? read_python(b, &s)
                        : *s.at == '{' || *s.at == '[' ? read_json(b, &s)
                        : *s.at == '<'                 ? read_element(b, &s)
                                                       : read_named(b, &s);
    if (v == TN_TOOL_DONE && !b->in_list) v = read_end(b, &s);
    b->size = (size_t)(s.at - text);
    return v == TN_TOOL_MORE && n > TN_TOOL_BODY_MAX ? TN_TOOL_NO_CALL : v;
}

// Where the text is in a list, from the comma or the bracket on.
static tn_tool_verdict open_listed(const tn_tool_body *b, span *s)
{
    if (!skip(s, b->n_listed > 0 ? "," : "[")) return TN_TOOL_NO_CALL;
    skip_blanks(s);
    return s->at == s->end ? TN_TOOL_MORE : *s->at == '{' ? TN_TOOL_DONE : TN_TOOL_NO_CALL;
}

tn_tool_verdict tn_tool_head_read(tn_tool_body *b, const char *text, size_t n, tn_tool_head *head)
{
    span s = {text, text + n};
    bool fenced;
    *head = (tn_tool_head){.name = NULL};
    skip_blanks(&s);
    if (s.at == s.end) return TN_TOOL_MORE;
    int python = b->in_list ? 0 : is_python(b, s);
    if (python != 0) return python < 0 ? TN_TOOL_MORE : TN_TOOL_NO_CALL;
    head->elements = *s.at == '<' && !b->in_list;
    tn_tool_verdict v = TN_TOOL_DONE;
    if (b->in_list || *s.at == '[')
        v = open_listed(b, &s);
    else if (head->elements)
        v = read_function(b, &s, &head->name);
    else if (*s.at != '{')
        v = read_head(b, &s, &head->name, &head->id, &fenced);
    head->size = (size_t)(s.at - text);
    return v == TN_TOOL_DONE && head->name && !tn_tool_is_known(b, head->name) ? TN_TOOL_NO_CALL : v;
}
