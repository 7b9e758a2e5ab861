// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON text to values of the template engine: RFC 8259, with the depth of the engine's limits.
#include "core/number.h"
#include "models/text/jinja/jinja_impl.h"

typedef struct json_reader {
    tn_jj *j;
    const char *what, *start, *p, *end;
    bool user;
} json_reader;

static value read_value(json_reader *r);

static value json_fail(json_reader *r, const char *why)
{
    return tn_jj_error_as(r->j, TN_ERR_ARG, "%s is no JSON: %s at byte %zu", r->what, why,
                          (size_t)(r->p - r->start));
}

static void skip(json_reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) r->p++;
}

static bool take(json_reader *r, char c)
{
    skip(r);
    bool is = r->p < r->end && *r->p == c && r->j->status == TN_OK;
    r->p += is;
    return is;
}

static bool take_word(json_reader *r, const char *word)
{
    size_t n = strlen(word);
    bool is = (size_t)(r->end - r->p) >= n && memcmp(r->p, word, n) == 0;
    if (is) r->p += n;
    return is;
}

static bool read_hex(json_reader *r, uint32_t *out)
{
    uint32_t v = 0;
    if (r->end - r->p < 4) return false;
    for (int i = 0; i < 4; i++) {
        char c = *r->p++, l = (char)(c | 32);
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint32_t)(c - '0');
        else if (l >= 'a' && l <= 'f')
            v = v << 4 | (uint32_t)(l - 'a' + 10);
        else
            return false;
    }
    *out = v;
    return true;
}

// Behind the backslash; bytes written, 0 on failure.
static size_t read_escape(json_reader *r, char *out)
{
    static const char letters[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    char c = *r->p++;
    const char *at = memchr(letters, c, sizeof letters - 1);
    uint32_t cp, low;
    if (at) {
        *out = plain[at - letters];
        return 1;
    }
    if (c != 'u' || !read_hex(r, &cp)) return 0;
    if (cp >= 0xd800 && cp < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
        const char *before = r->p;
        r->p += 2;
        if (read_hex(r, &low) && low >= 0xdc00 && low < 0xe000)
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        else
            r->p = before;
    }
    return tn_utf8_encode(cp >= 0xd800 && cp < 0xe000 ? TN_UNICODE_REPLACEMENT : cp, out);
}

// Behind the quote.
static value read_string(json_reader *r)
{
    const char *close = r->p;
    while (close < r->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= r->end) return json_fail(r, "a string without end");
    char *text = tn_jj_alloc(r->j, (size_t)(close - r->p) + 4);
    tn_jj_string *s = tn_jj_alloc(r->j, sizeof *s);
    if (!text || !s) return tn_jj_undefined();
    *s = (tn_jj_string){.data = text, .user = r->user};
    while (r->p < close) {
        if ((uint8_t)*r->p < 0x20) return json_fail(r, "a control character");
        if (*r->p != '\\') {
            text[s->n++] = *r->p++;
            continue;
        }
        r->p++;
        size_t n = read_escape(r, text + s->n);
        if (n == 0 || r->p > close) return json_fail(r, "an unknown escape");
        s->n += n;
    }
    r->p++;
    return (value){.kind = JJ_STRING, .u.s = s};
}

static void digits(json_reader *r)
{
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') r->p++;
}

static value read_number(json_reader *r)
{
    const char *from = r->p;
    bool real = false, negative = *r->p == '-';
    r->p += negative;
    const char *first = r->p;
    digits(r);
    if (r->p == first || (*first == '0' && r->p > first + 1)) return json_fail(r, "an unknown value");
    if (r->end - r->p > 1 && *r->p == '.') {
        real = true;
        r->p++;
        digits(r);
    }
    if (r->end - r->p > 1 && (*r->p | 32) == 'e') {
        real = true;
        r->p += r->p[1] == '+' || r->p[1] == '-' ? 2 : 1;
        digits(r);
    }
    int64_t i = 0;
    for (const char *p = first; p < r->p && !real; p++) {
        real = i > (INT64_MAX - (*p - '0')) / 10;
        if (!real) i = i * 10 + (*p - '0');
    }
    if (!real) return tn_jj_int(negative ? -i : i);
    double f;
    if (!tn_number_read(from, (size_t)(r->p - from), &f))
        return json_fail(r, "a number that cannot be read");
    return tn_jj_float(f);
}

static value read_list(json_reader *r)
{
    value list = tn_jj_list(r->j);
    if (take(r, ']')) return list;
    do tn_jj_append(r->j, list, read_value(r));
    while (take(r, ','));
    return take(r, ']') ? list : json_fail(r, "expected ',' or ']'");
}

static value read_dict(json_reader *r)
{
    value dict = tn_jj_dict(r->j);
    if (take(r, '}')) return dict;
    do {
        if (!take(r, '"')) return json_fail(r, "expected a key");
        value key = read_string(r);
        if (!take(r, ':')) return json_fail(r, "expected ':'");
        value v = read_value(r);
        if (r->j->status == TN_OK) tn_jj_set(r->j, dict.u.dict, key, v);
    } while (take(r, ','));
    return take(r, '}') ? dict : json_fail(r, "expected ',' or '}'");
}

static value read_value(json_reader *r)
{
    value v = tn_jj_undefined();
    skip(r);
    r->j->depth++;
    if (r->j->status != TN_OK || r->p >= r->end)
        json_fail(r, "it ends too early");
    else if (r->j->depth > r->j->limits.depth)
        json_fail(r, "nested too deeply");
    else if (take(r, '{'))
        v = read_dict(r);
    else if (take(r, '['))
        v = read_list(r);
    else if (take(r, '"'))
        v = read_string(r);
    else if (take_word(r, "true") || take_word(r, "false"))
        v = tn_jj_bool(r->p[-2] == 'u');
    else if (take_word(r, "null"))
        v = tn_jj_none();
    else
        v = read_number(r);
    r->j->depth--;
    return v;
}

tn_status tn_jj_json(tn_jj *j, const char *text, size_t n, const char *what, bool user, value *out)
{
    json_reader r = {.j = j, .what = what, .start = text, .p = text, .end = text + n, .user = user};
    value v = read_value(&r);
    skip(&r);
    if (j->status == TN_OK && r.p != r.end) json_fail(&r, "more behind its end");
    if (j->status == TN_OK) *out = v;
    return j->status;
}
