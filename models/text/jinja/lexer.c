// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Template source to tokens, with white space handled as the original does under trim_blocks and
// lstrip_blocks: the newline behind a %} and the blanks in front of a {% or {# are removed; - at a border
// strips all white space there, + strips none; one newline at the end of the source is removed.
#include "core/number.h"
#include "models/text/jinja/jinja_impl.h"

#include <stdlib.h>

typedef struct lexer {
    tn_jj *j;
    const char *p, *end;
    size_t capacity;
    bool line_start; // the last token ended with a newline, or there was none
} lexer;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (uint8_t)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blanks(lexer *l)
{
    while (l->p < l->end && is_blank(*l->p)) l->p++;
}

static bool starts(const lexer *l, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(l->end - l->p) >= n && memcmp(l->p, text, n) == 0;
}

static bool push(lexer *l, tn_jj_token_kind kind, int op, const char *at, value v)
{
    tn_jj *j = l->j;
    if (j->n_tokens == l->capacity) {
        size_t capacity = l->capacity * 2 + 256;
        void *tokens = j->tokens;
        if (!tn_jj_resize(j, &tokens, j->n_tokens * sizeof *j->tokens, capacity * sizeof *j->tokens))
            return false;
        j->tokens = tokens;
        l->capacity = capacity;
    }
    j->tokens[j->n_tokens++] = (tn_jj_token){kind, (int16_t)op, (uint32_t)(at - j->source), v};
    return j->status == TN_OK;
}

static bool lex_fail(lexer *l, const char *at, const char *what)
{
    l->j->pos = (uint32_t)(at - l->j->source);
    tn_jj_error_as(l->j, TN_ERR_FORMAT, "%s", what);
    return false;
}

static value slice(lexer *l, const char *from, const char *to)
{
    tn_jj_string *s = tn_jj_alloc(l->j, sizeof *s);
    if (!s) return tn_jj_undefined();
    *s = (tn_jj_string){.data = from, .n = (size_t)(to - from)};
    return (value){.kind = JJ_STRING, .u.s = s};
}

// --- inside of tags ----------------------------------------------------------------------------------------

static size_t put_escape(const char **p, const char *end, char *out)
{
    static const char letters[] = "abfnrtv\\'\"", plain[] = "\a\b\f\n\r\t\v\\'\"";
    char c = *(*p)++;
    const char *at = memchr(letters, c, sizeof letters - 1);
    if (at) {
        *out = plain[at - letters];
        return 1;
    }
    if (c == '\n') return 0; // inside of a line
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0, base = 16;
    if (c >= '0' && c <= '7') {
        digits = 3;
        base = 8;
        --*p;
    }
    uint32_t cp = 0;
    int k = 0;
    for (; k < digits && *p < end; k++, ++*p) {
        char d = **p;
        uint32_t v = is_digit(d)                          ? (uint32_t)(d - '0')
                     : (d | 32) >= 'a' && (d | 32) <= 'f' ? (uint32_t)((d | 32) - 'a' + 10)
                                                          : 99;
        if (v >= (uint32_t)base) break;
        cp = cp * (uint32_t)base + v;
    }
    if (digits && (k == digits || base == 8) && cp <= 0x10ffff) return tn_utf8_encode(cp, out);
    *p -= base == 16 && digits ? k : 0;
    out[0] = '\\';
    out[1] = c;
    return 2;
}

bool tn_jj_unescape(tn_jj *j, const char *p, const char *end, value *out)
{
    char *text = tn_jj_alloc(j, (size_t)(end - p) + 4);
    tn_jj_string *s = tn_jj_alloc(j, sizeof *s);
    if (!text || !s) return false;
    s->data = text;
    while (p < end) {
        if (*p != '\\' || p + 1 == end) {
            text[s->n++] = *p++;
            continue;
        }
        p++;
        s->n += put_escape(&p, end, text + s->n);
    }
    *out = (value){.kind = JJ_STRING, .u.s = s};
    return true;
}

static bool lex_string(lexer *l)
{
    const char *start = l->p;
    char quote = *l->p++;
    bool escaped = false;
    for (; l->p < l->end && *l->p != quote; l->p++)
        if (*l->p == '\\' && l->p + 1 < l->end) {
            escaped = true;
            l->p++;
        }
    if (l->p >= l->end) return lex_fail(l, start, "a string without end");
    value v = tn_jj_undefined();
    if (escaped)
        tn_jj_unescape(l->j, start + 1, l->p, &v);
    else
        v = slice(l, start + 1, l->p);
    l->p++;
    return push(l, T_STRING, 0, start, v);
}

static bool lex_based(lexer *l, const char *start)
{
    char form = (char)(start[1] | 32);
    uint64_t base = form == 'x' ? 16 : form == 'o' ? 8 : 2, v = 0;
    l->p += 2;
    for (; l->p < l->end; l->p++) {
        char d = (char)(*l->p | 32);
        uint64_t digit = is_digit(*l->p)        ? (uint64_t)(*l->p - '0')
                         : d >= 'a' && d <= 'f' ? (uint64_t)(d - 'a' + 10)
                                                : 99;
        if (*l->p == '_') continue;
        if (digit >= base) break;
        if (v > ((uint64_t)INT64_MAX - digit) / base)
            return lex_fail(l, start, "a number of more than 63 bits");
        v = v * base + digit;
    }
    return push(l, T_INT, 0, start, tn_jj_int((int64_t)v));
}

static void skip_digits(lexer *l)
{
    while (l->p < l->end && (is_digit(*l->p) || (*l->p == '_' && l->p + 1 < l->end && is_digit(l->p[1]))))
        l->p++;
}

static bool lex_number(lexer *l)
{
    const char *start = l->p;
    if (*start == '0' && l->end - start > 2 && start[1] && strchr("xXoObB", start[1]))
        return lex_based(l, start);
    skip_digits(l);
    bool real = false;
    if (l->end - l->p > 1 && *l->p == '.' && is_digit(l->p[1])) {
        real = true;
        l->p++;
        skip_digits(l);
    }
    size_t sign = l->end - l->p > 2 && (l->p[1] == '+' || l->p[1] == '-');
    if (l->end - l->p > 1 + (ptrdiff_t)sign && (*l->p | 32) == 'e' && is_digit(l->p[1 + sign])) {
        real = true;
        l->p += 1 + sign;
        skip_digits(l);
    }
    char text[64];
    size_t n = 0;
    for (const char *q = start; q < l->p; q++)
        if (*q != '_' && n + 1 < sizeof text) text[n++] = *q;
    text[n] = 0;
    double f = 0;
    if (n + 1 == sizeof text) return lex_fail(l, start, "a number of too many digits");
    if (real)
        return tn_number_read(text, n, &f) ? push(l, T_FLOAT, 0, start, tn_jj_float(f))
                                              : lex_fail(l, start, "not a number");
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (v > (INT64_MAX - (text[i] - '0')) / 10)
            return lex_fail(l, start, "a number of more than 63 bits");
        v = v * 10 + (text[i] - '0');
    }
    return push(l, T_INT, 0, start, tn_jj_int(v));
}

// clang-format off
static const struct { const char *text; int op; } operators[] = { // longest first
    {"//", OP_FLOORDIV}, {"**", OP_POW}, {"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE},
    {"+", OP_ADD}, {"-", OP_SUB}, {"*", OP_MUL}, {"/", OP_DIV}, {"%", OP_MOD}, {"~", OP_CONCAT}, {"<", OP_LT},
    {">", OP_GT},
};
// clang-format on

static bool lex_symbol(lexer *l, int *nesting)
{
    const char *start = l->p;
    for (size_t i = 0; i < TN_COUNT(operators); i++)
        if (starts(l, operators[i].text)) {
            l->p += strlen(operators[i].text);
            return push(l, T_OP, operators[i].op, start, tn_jj_undefined());
        }
    if (*start == 0 || !strchr("()[]{}=.:|,;", *start))
        return lex_fail(l, start, "a character that has no meaning here");
    if (strchr("([{", *start)) ++*nesting;
    if (strchr(")]}", *start) && --*nesting < 0)
        return lex_fail(l, start, "a closing bracket that was not opened");
    l->p++;
    return push(l, T_PUNCTUATION, *start, start, tn_jj_undefined());
}

// The border of a tag: its sign and closing text, and the white space that they strip.
static bool close_tag(lexer *l, const char *closing)
{
    bool minus = l->p < l->end && *l->p == '-', plus = l->p < l->end && *l->p == '+';
    bool print = closing[0] == '}';
    const char *start = l->p;
    if (minus || (plus && !print)) l->p++;
    if (!starts(l, closing)) {
        l->p = start;
        return false;
    }
    l->p += 2;
    if (minus)
        skip_blanks(l);
    else if (!plus && !print && l->p < l->end && *l->p == '\n')
        l->p++;
    l->line_start = l->p[-1] == '\n';
    return true;
}

static bool lex_tag(lexer *l, bool print, const char *open)
{
    int nesting = 0;
    if (!push(l, print ? T_PRINT_BEGIN : T_BLOCK_BEGIN, 0, open, tn_jj_undefined())) return false;
    for (;;) {
        skip_blanks(l);
        const char *start = l->p;
        if (start >= l->end) return lex_fail(l, open, print ? "'{{' without '}}'" : "'{%' without '%}'");
        bool ok;
        if (nesting == 0 && close_tag(l, print ? "}}" : "%}"))
            return push(l, print ? T_PRINT_END : T_BLOCK_END, 0, start, tn_jj_undefined());
        if (*start == '"' || *start == '\'') {
            ok = lex_string(l);
        } else if (is_digit(*start)) {
            ok = lex_number(l);
        } else if (is_name(*start)) {
            while (l->p < l->end && (is_name(*l->p) || is_digit(*l->p))) l->p++;
            ok = push(l, T_NAME, 0, start, slice(l, start, l->p));
        } else {
            ok = lex_symbol(l, &nesting);
        }
        if (!ok) return false;
    }
}

// --- between tags ------------------------------------------------------------------------------------------

static bool put_data(lexer *l, const char *from, const char *to)
{
    return to <= from || push(l, T_DATA, 0, from, slice(l, from, to));
}

// End of the data in front of a tag with this sign.
static const char *strip_left(const lexer *l, const char *from, const char *to, char sign, bool print)
{
    const char *p = to;
    if (sign == '-') {
        while (p > from && is_blank(p[-1])) p--;
        return p;
    }
    if (sign == '+' || print) return to;
    while (p > from && p[-1] != '\n' && is_blank(p[-1])) p--;
    return (p > from && p[-1] == '\n') || (p == from && l->line_start) ? p : to;
}

static const char *find_tag(const char *p, const char *end)
{
    for (; end - p >= 2 && (p = memchr(p, '{', (size_t)(end - p) - 1)) != NULL; p++)
        if (p[1] == '{' || p[1] == '%' || p[1] == '#') return p;
    return NULL;
}

static bool lex_comment(lexer *l, const char *open)
{
    while (l->p < l->end) {
        if (close_tag(l, "#}")) return true;
        l->p++;
    }
    return lex_fail(l, open, "'{#' without '#}'");
}

// "raw %}" after the {%, up to its endraw; *raw says whether it was one.
static bool lex_raw(lexer *l, const char *open, bool *raw)
{
    const char *start = l->p;
    skip_blanks(l);
    *raw = starts(l, "raw");
    l->p += *raw ? 3 : 0;
    skip_blanks(l);
    bool minus = starts(l, "-%}");
    *raw = *raw && (minus || starts(l, "%}"));
    if (!*raw) {
        l->p = start;
        return true;
    }
    l->p += minus ? 3 : 2;
    if (minus) skip_blanks(l);
    l->line_start = l->p[-1] == '\n';
    const char *from = l->p;
    for (const char *p = from; (p = find_tag(p, l->end)) != NULL; p++) {
        if (p[1] != '%') continue;
        l->p = p + 2;
        char sign = l->p < l->end && (*l->p == '-' || *l->p == '+') ? *l->p++ : 0;
        skip_blanks(l);
        if (!starts(l, "endraw")) continue;
        l->p += 6;
        skip_blanks(l);
        if (!put_data(l, from, strip_left(l, from, p, sign, false))) return false;
        return close_tag(l, "%}") || lex_fail(l, p, "'endraw' without '%}'");
    }
    return lex_fail(l, open, "'raw' without 'endraw'");
}

static bool lex_all(lexer *l)
{
    for (;;) {
        const char *from = l->p, *open = find_tag(l->p, l->end);
        if (!open) return put_data(l, from, l->end);
        char kind = open[1];
        l->p = open + 2;
        char sign = l->p < l->end && (*l->p == '-' || *l->p == '+') ? *l->p++ : 0;
        if (!put_data(l, from, strip_left(l, from, open, sign, kind == '{'))) return false;
        l->line_start = false;
        bool raw = false, ok = kind != '%' || lex_raw(l, open, &raw);
        if (ok && !raw) ok = kind == '#' ? lex_comment(l, open) : lex_tag(l, kind == '{', open);
        if (!ok) return false;
    }
}

// \r\n and \r become \n.
static bool copy_source(tn_jj *j, const char *source, size_t n)
{
    char *copy = tn_jj_alloc(j, n + 1);
    size_t k = 0;
    if (!copy) return false;
    for (size_t i = 0; i < n; i++) {
        if (source[i] == '\r' && i + 1 < n && source[i + 1] == '\n') continue;
        copy[k++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (k > 0 && copy[k - 1] == '\n') k--;
    j->source = copy;
    j->n_source = k;
    return true;
}

bool tn_jj_lex(tn_jj *j, const char *source, size_t n)
{
    if (n > j->limits.heap_size || n >= UINT32_MAX) {
        tn_jj_error(j, "a template of %zu bytes", n);
        return false;
    }
    if (!copy_source(j, source, n)) return false;
    lexer l = {.j = j, .p = j->source, .end = j->source + j->n_source, .line_start = true};
    return lex_all(&l) && push(&l, T_END, 0, l.end, tn_jj_undefined());
}
