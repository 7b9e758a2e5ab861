// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Literals of Python as JSON: 'text', True, None, (1, 2), {'key': 0.5}. What is no literal is refused;
// whether the result is valid JSON is checked by who reads it.
#include "models/text/tools/tools.h"

#include <string.h>

enum { DEPTH_MAX = 32, CODE_POINT_MAX = 0x10ffff, REPLACEMENT = 0xfffd };

typedef struct reader {
    const char *at, *end;
    tn_strbuf *out;
} reader;

static void skip_blanks(reader *r)
{
    while (r->at < r->end && *r->at && strchr(" \t\r\n", *r->at)) r->at++;
}

// --- strings ---------------------------------------------------------------------------------------------

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

// Up to `most` digits of a base; the number of them.
static int read_digits(const char *at, const char *end, int base, int most, uint32_t *value)
{
    int n = 0;
    *value = 0;
    for (; n < most && at + n < end && digit_of(at[n]) < base; n++)
        *value = *value * (uint32_t)base + (uint32_t)digit_of(at[n]);
    return n;
}

static void put_code_point(tn_strbuf *out, uint32_t c)
{
    char bytes[4];
    size_t n = 0;
    if (c > CODE_POINT_MAX || (c >= 0xd800 && c < 0xe000)) c = REPLACEMENT;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else {
        int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
        bytes[n++] = (char)(first[more] | c >> 6 * more);
        while (more-- > 0) bytes[n++] = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
    tn_strbuf_json(out, bytes, n);
}

// \xhh, \uhhhh, \Uhhhhhhhh; `at` is behind the letter. Two halves of a character outside the first plane, as
// JSON writes them, are one. Bytes that were read; 0: not enough digits.
static size_t put_hexadecimal(tn_strbuf *out, char letter, const char *at, const char *end)
{
    int most = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    uint32_t c, low;
    if (read_digits(at, end, 16, most, &c) < most) return 0;
    size_t n = (size_t)most;
    bool half = c >= 0xd800 && c < 0xdc00 && end - at >= 10 && at[4] == '\\' && at[5] == 'u' && letter == 'u';
    if (half && read_digits(at + 6, end, 16, 4, &low) == 4 && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        n += 6;
    }
    put_code_point(out, c);
    return n;
}

// The escape behind a backslash at at[-1]; where it ends.
static const char *put_escape(tn_strbuf *out, const char *at, const char *end)
{
    static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    const char *letter = *at ? strchr(letters, *at) : NULL;
    uint32_t c;
    if (letter) {
        put_code_point(out, (uint32_t)values[letter - letters]);
    } else if (*at == '\n') { // the line goes on
        return at + 1;
    } else if (*at && strchr("\\'\"", *at)) {
        tn_strbuf_json(out, at, 1);
    } else if (*at == 'x' || *at == 'u' || *at == 'U') {
        size_t n = put_hexadecimal(out, *at, at + 1, end);
        if (n == 0) tn_strbuf_json(out, "\\", 1);
        return at + n + (n > 0);
    } else if (*at >= '0' && *at <= '7') {
        int n = read_digits(at, end, 8, 3, &c);
        put_code_point(out, c);
        return at + n;
    } else { // any other one stands for itself
        tn_strbuf_json(out, "\\", 1);
        return at;
    }
    return at + 1;
}

// Where the string ends whose content begins at `at`: 1 and *stop is its closing quote; 0: more is needed.
static bool find_end(const reader *r, const char *quote, const char **stop)
{
    for (const char *p = r->at; p < r->end; p++) {
        if (tn_tool_starts(p, (size_t)(r->end - p), quote) == 1) {
            *stop = p;
            return true;
        }
        p += *p == '\\';
    }
    return false;
}

static tn_tool_verdict read_string(reader *r)
{
    char quote[4] = {*r->at, *r->at, *r->at, 0};
    size_t n = 0;
    while (n < 3 && r->at + n < r->end && r->at[n] == *quote) n++;
    if (n < 3 && r->at + n == r->end) return TN_TOOL_MORE; // empty, or the first quotes of three
    if (n < 3) quote[1] = 0;
    const char *stop, *p;
    r->at += strlen(quote);
    if (n == 2) {
        tn_strbuf_puts(r->out, "\"\"");
        r->at++;
        return TN_TOOL_DONE;
    }
    if (!find_end(r, quote, &stop)) return TN_TOOL_MORE;
    tn_strbuf_puts(r->out, "\"");
    for (p = r->at; p < stop;) {
        const char *from = p;
        while (p < stop && *p != '\\') p++;
        tn_strbuf_json(r->out, from, (size_t)(p - from));
        if (p < stop) p = put_escape(r->out, p + 1, stop);
    }
    tn_strbuf_puts(r->out, "\"");
    r->at = stop + strlen(quote);
    return TN_TOOL_DONE;
}

// --- numbers and names -----------------------------------------------------------------------------------

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

// 1_000, .5, 5. and +1 as JSON has them; what is no number stays none.
static void put_number(tn_strbuf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool digit_before = i > 0 && digit_of(text[i - 1]) < 10;
        bool digit_behind = i + 1 < n && digit_of(text[i + 1]) < 10;
        if (text[i] == '_' || (text[i] == '+' && i == 0)) continue;
        if (text[i] == '.' && !digit_before) tn_strbuf_puts(out, "0");
        tn_strbuf_append(out, text + i, 1);
        if (text[i] == '.' && !digit_behind) tn_strbuf_puts(out, "0");
    }
}

static tn_tool_verdict read_word(reader *r)
{
    static const struct {
        const char *word, *json;
    } names[] = {{"True", "true"}, {"False", "false"}, {"None", "null"},
                 {"true", "true"}, {"false", "false"}, {"null", "null"}};
    const char *word = r->at;
    if (*r->at == '-' || *r->at == '+') r->at++;
    while (r->at < r->end && (is_word_byte(*r->at) || (strchr("+-", *r->at) && *r->at && r->at > word &&
                                                       (r->at[-1] == 'e' || r->at[-1] == 'E'))))
        r->at++;
    size_t n = (size_t)(r->at - word);
    if (r->at == r->end) return TN_TOOL_MORE;
    for (size_t i = 0; i < TN_COUNT(names); i++)
        if (n == strlen(names[i].word) && memcmp(word, names[i].word, n) == 0) {
            tn_strbuf_puts(r->out, names[i].json);
            return TN_TOOL_DONE;
        }
    bool sign = *word == '-' || *word == '+';
    if (n <= (size_t)sign || (digit_of(word[sign]) > 9 && word[sign] != '.')) return TN_TOOL_NO_CALL;
    put_number(r->out, word, n);
    return TN_TOOL_DONE;
}

// --- lists and dictionaries ------------------------------------------------------------------------------

static tn_tool_verdict read_value(reader *r, int depth);

static tn_tool_verdict read_pair(reader *r, int depth)
{
    if (*r->at != '"' && *r->at != '\'') return TN_TOOL_NO_CALL; // JSON has texts as keys only
    tn_tool_verdict v = read_string(r);
    if (v != TN_TOOL_DONE) return v;
    skip_blanks(r);
    if (r->at == r->end) return TN_TOOL_MORE;
    if (*r->at++ != ':') return TN_TOOL_NO_CALL;
    tn_strbuf_puts(r->out, ":");
    return read_value(r, depth + 1);
}

// From its opening bracket to the closing one; a comma may stand before that.
static tn_tool_verdict read_items(reader *r, char close, int depth)
{
    bool pairs = close == '}';
    r->at++;
    tn_strbuf_puts(r->out, pairs ? "{" : "[");
    for (int64_t n = 0;; n++) {
        skip_blanks(r);
        if (r->at == r->end) return TN_TOOL_MORE;
        if (*r->at == close) break;
        if (n > 0) tn_strbuf_puts(r->out, ",");
        tn_tool_verdict v = pairs ? read_pair(r, depth) : read_value(r, depth + 1);
        if (v != TN_TOOL_DONE) return v;
        skip_blanks(r);
        if (r->at == r->end) return TN_TOOL_MORE;
        if (*r->at == close) break;
        if (*r->at++ != ',') return TN_TOOL_NO_CALL;
    }
    r->at++;
    tn_strbuf_puts(r->out, pairs ? "}" : "]");
    return TN_TOOL_DONE;
}

static tn_tool_verdict read_value(reader *r, int depth)
{
    skip_blanks(r);
    if (r->at == r->end) return TN_TOOL_MORE;
    if (depth > DEPTH_MAX) return TN_TOOL_NO_CALL;
    char c = *r->at;
    if (c == '"' || c == '\'') return read_string(r);
    if (c == '[' || c == '(') return read_items(r, c == '[' ? ']' : ')', depth);
    return c == '{' ? read_items(r, '}', depth) : read_word(r);
}

tn_tool_verdict tn_tool_python_read(const char **at, const char *end, tn_strbuf *out)
{
    reader r = {*at, end, out};
    tn_tool_verdict v = read_value(&r, 0);
    *at = r.at;
    return v == TN_TOOL_DONE && out->status != TN_OK ? TN_TOOL_NO_MEMORY : v;
}
