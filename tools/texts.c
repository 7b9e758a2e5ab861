// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON strings are decoded in place: the decoded text is never longer.
#include "tools/texts.h"

#include <stdlib.h>
#include <string.h>

enum { FORM_AUTO, FORM_LINES, FORM_JSON, FORM_TEXT, SKIP_DEPTH = 32 };

int texts_open(text_source *s, const options *o, const char *const *args, int n_args)
{
    *s = (text_source){.name = "the text"};
    if (n_args > 0 && opt_is_set(o, OPT_FILE))
        return fail(EXIT_USAGE, "more than one input: give words after the model or -f");
    if (n_args > 0) {
        s->whole = true;
        int code = join_args(args, n_args, &s->data);
        s->size = code ? 0 : strlen(s->data);
        return code;
    }
    const char *path = opt_is_set(o, OPT_FILE) ? opt_text(o, OPT_FILE) : "-";
    s->name = strcmp(path, "-") == 0 ? "standard input" : path;
    int64_t form = opt_int(o, OPT_INPUT);
    int code = read_input(path, &s->data, &s->size);
    if (code) return code;
    s->whole = form == FORM_TEXT;
    s->json = form == FORM_JSON || (form == FORM_AUTO && s->data[strspn(s->data, " \t\r\n")] == '{');
    return 0;
}

void texts_close(text_source *s)
{
    free(s->data);
    s->data = NULL;
}

// --- one line of JSON ------------------------------------------------------------------------------------

typedef struct parser {
    char *p;
    const char *error;
} parser;

static void skip_blanks(parser *j)
{
    j->p += strspn(j->p, " \t\r");
}

static bool take(parser *j, char c)
{
    skip_blanks(j);
    if (*j->p != c) return false;
    j->p++;
    return true;
}

static bool broken(parser *j, const char *what)
{
    if (!j->error) j->error = what;
    return false;
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int d = p[i] >= '0' && p[i] <= '9'                 ? p[i] - '0'
                : (p[i] | 32) >= 'a' && (p[i] | 32) <= 'f' ? (p[i] | 32) - 'a' + 10
                                                           : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0u) | c);
    return n;
}

// What follows a backslash, at j->p; writes it and moves on.
static bool unescape(parser *j, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = *j->p++;
    const char *at = c ? strchr(names, c) : NULL;
    if (at) {
        *(*out)++ = values[at - names];
        return true;
    }
    int first = c == 'u' ? hex4(j->p) : -1;
    if (first < 0) return broken(j, "an escape that JSON does not have");
    j->p += 4;
    uint32_t cp = (uint32_t)first;
    if (first >= 0xd800 && first < 0xdc00 && j->p[0] == '\\' && j->p[1] == 'u') {
        int second = hex4(j->p + 2);
        if (second >= 0xdc00 && second < 0xe000) {
            cp = 0x10000 + ((uint32_t)(first - 0xd800) << 10 | (uint32_t)(second - 0xdc00));
            j->p += 6;
        }
    }
    if (cp >= 0xd800 && cp < 0xe000) cp = 0xfffd; // half of a pair
    *out += put_utf8(*out, cp);
    return true;
}

static bool read_string(parser *j, char **text, size_t *n)
{
    if (!take(j, '"')) return broken(j, "no string where one must be");
    char *out = *text = j->p;
    while (*j->p != '"') {
        if (*j->p == 0) return broken(j, "a string does not end");
        if (*j->p != '\\') {
            *out++ = *j->p++;
            continue;
        }
        j->p++;
        if (!unescape(j, &out)) return false;
    }
    j->p++;
    *n = (size_t)(out - *text);
    return true;
}

// Skips a value without changing it.
static bool skip_value(parser *j)
{
    int depth = 0;
    skip_blanks(j);
    do {
        char c = *j->p;
        if (c == 0) return broken(j, "the line ends inside of a value");
        if (c == '"') {
            for (j->p++; *j->p && *j->p != '"'; j->p++)
                if (*j->p == '\\' && j->p[1]) j->p++;
            if (*j->p == 0) return broken(j, "a string does not end");
            j->p++;
        } else if (c == '{' || c == '[') {
            if (++depth > SKIP_DEPTH) return broken(j, "values are nested too deeply");
            j->p++;
        } else if (c == '}' || c == ']') {
            depth--;
            j->p++;
        } else {
            size_t n = strcspn(j->p, depth > 0 ? "\"{}[]" : ",} \t\r");
            if (n == 0) return broken(j, "a value is missing");
            j->p += n;
        }
    } while (depth > 0);
    return depth == 0 ? true : broken(j, "brackets do not match");
}

static bool read_member(parser *j, text_item *item)
{
    char *key, *text;
    size_t n_key, n;
    if (!read_string(j, &key, &n_key)) return false;
    if (!take(j, ':')) return broken(j, "no colon behind a name");
    skip_blanks(j);
    bool is_text = (n_key == 4 && memcmp(key, "text", 4) == 0) ||
                   (n_key == 6 && memcmp(key, "prompt", 6) == 0) ||
                   (n_key == 8 && memcmp(key, "document", 8) == 0);
    bool is_query = n_key == 5 && memcmp(key, "query", 5) == 0;
    if (is_text || is_query) {
        if (!read_string(j, &text, &n)) return false;
        if (is_text)
            item->text = text, item->n_text = n;
        else
            item->query = text, item->n_query = n;
        return true;
    }
    const char *start = j->p;
    if (!skip_value(j)) return false;
    // Accepts strings and numbers, which are recognised by their first and all further characters.
    size_t length = (size_t)(j->p - start);
    bool plain = *start == '"' || strspn(start, "0123456789+-.eE") >= length;
    if (n_key == 2 && memcmp(key, "id", 2) == 0 && plain) item->id = start, item->n_id = length;
    return true;
}

static bool read_object(parser *j, text_item *item)
{
    if (!take(j, '{')) return broken(j, "no object");
    if (take(j, '}')) return broken(j, "no \"text\"");
    do {
        skip_blanks(j);
        if (!read_member(j, item)) return false;
    } while (take(j, ','));
    if (!take(j, '}')) return broken(j, "no comma or closing brace behind a value");
    skip_blanks(j);
    if (*j->p) return broken(j, "something stands behind the object");
    return item->text ? true : broken(j, "no \"text\", \"prompt\" or \"document\"");
}

int texts_next(text_source *s, text_item *item, int *code)
{
    *item = (text_item){.line = ++s->line};
    if (s->whole) {
        if (s->line > 1) return 0;
        item->text = s->data;
        item->n_text = s->size;
        return 1;
    }
    for (;; item->line = ++s->line) {
        if (s->at >= s->size) return 0;
        char *line = s->data + s->at;
        char *end = memchr(line, '\n', s->size - s->at);
        if (!end) end = s->data + s->size;
        s->at = (size_t)(end - s->data) + 1;
        if (end > line && end[-1] == '\r') *--end = 0;
        *end = 0;
        item->text = line;
        item->n_text = (size_t)(end - line);
        if (!s->json) return 1;
        if (line[strspn(line, " \t")]) break; // blank lines between objects are skipped
    }
    parser j = {.p = (char *)(uintptr_t)item->text};
    item->text = NULL;
    if (read_object(&j, item)) return 1;
    *code = fail(EXIT_FAILED, "%s, line %zu: %s; each line is an object like {\"text\": \"...\"}", s->name,
                 item->line, j.error);
    return -1;
}
