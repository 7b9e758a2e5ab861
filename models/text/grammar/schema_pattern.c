// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// "pattern" of JSON schema: the part of ECMA 262 regular expressions that grammars can express. Alternatives,
// groups ( ) and (?: ), classes, . \d \w \s \D \W \S, escapes, * + ? {m} {m,} {m,n} (also lazy), ^ and $ at
// the ends of an alternative. Where dialects differ, only text that all of them match is generated: \d \w \s
// are ASCII.
#include "models/text/grammar/schema.h"
#include "models/text/tokenizer/unicode.h"

#include <string.h>

// A grammar takes some hundred bytes of memory for each byte of a pattern.
enum { RANGES_MAX = 256, GROUPS_MAX = 64, PATTERN_SIZE_MAX = 64 << 10 };

typedef struct range {
    uint32_t lo, hi;
} range;

typedef struct class
{
    range ranges[RANGES_MAX];
    int32_t n;
    bool ascii; // a part of it is known for ASCII only
} class;

// Characters that a part of the pattern matches, or repetitions; max -1: no bound.
typedef struct span {
    int64_t min, max;
} span;

typedef struct expression {
    tn_schema *s;
    const tn_json *pattern;
    const char *p, *end;
    int depth;
    span length; // of the part that was written last
    // Of the alternatives at the top: how many; parts of varying length, and the repetitions of the last one
    // of them; whether all of those repeat one character; characters in the other parts.
    int32_t n_choices, n_varying;
    span varying;
    bool simple;
    int64_t fixed;
    const span *instead; // repetitions of the only varying part, NULL: as the pattern says
} expression;

static tn_status unsupported(const expression *e, const char *why)
{
    return tn_schema_fail(e->s, TN_ERR_UNSUPPORTED, e->pattern, "pattern, at byte %zu: %s",
                          (size_t)(e->p - e->pattern->text), why);
}

static bool at(const expression *e, char c)
{
    return e->p < e->end && *e->p == c;
}

// --- lengths -----------------------------------------------------------------------------------------

enum { LENGTH_MAX = 1 << 24 }; // longer counts are treated as unbounded

static int64_t times(int64_t a, int64_t b)
{
    if (a == 0 || b == 0) return 0;
    return a < 0 || b < 0 || a > LENGTH_MAX / b ? -1 : a * b;
}

static int64_t plus(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || a + b > LENGTH_MAX ? -1 : a + b;
}

static span sum(span a, span b)
{
    return (span){TN_MIN(a.min + b.min, LENGTH_MAX), plus(a.max, b.max)};
}

static span repeated(span a, span counts)
{
    int64_t min = times(a.min, counts.min);
    return (span){min < 0 ? LENGTH_MAX : min, times(a.max, counts.max)};
}

static void put_counts(tn_strbuf *out, span counts)
{
    if (counts.max < 0)
        tn_strbuf_printf(out, "{%lld,} ", (long long)counts.min);
    else
        tn_strbuf_printf(out, "{%lld,%lld} ", (long long)counts.min, (long long)counts.max);
}

// A part of an alternative at the top: `item` is repeated `counts` times.
static void note_part(expression *e, span item, span counts)
{
    span length = repeated(item, counts);
    if (length.max >= 0 && length.min == length.max) {
        e->fixed += length.min;
        return;
    }
    e->n_varying++;
    e->varying = counts;
    e->simple = e->simple && item.min == 1 && item.max == 1;
}

// Any text, where the pattern is not anchored.
static void put_anything(expression *e)
{
    const span any = {0, -1};
    tn_strbuf_puts(e->s->out, "char");
    put_counts(e->s->out, e->instead ? *e->instead : any);
    note_part(e, (span){1, 1}, any);
}

// --- characters --------------------------------------------------------------------------------------

static bool holds(const class *c, uint32_t cp)
{
    for (int32_t i = 0; i < c->n; i++)
        if (cp >= c->ranges[i].lo && cp <= c->ranges[i].hi) return true;
    return false;
}

static tn_status add(const expression *e, class *c, uint32_t lo, uint32_t hi)
{
    if (c->n == RANGES_MAX) return unsupported(e, "a class of more than 256 ranges");
    c->ranges[c->n++] = (range){lo, hi};
    return TN_OK;
}

// One code point as the inside of a JSON string: an alternative of its own where it needs an escape.
static void put_escape(tn_strbuf *out, uint32_t cp)
{
    char bytes[4], text[16];
    size_t n = tn_utf8_encode(cp, bytes);
    tn_strbuf json;
    tn_strbuf_init(&json, out->ctx);
    tn_strbuf_json(&json, bytes, n);
    if (json.status == TN_OK && json.size < sizeof text)
        tn_schema_put_literal(out, json.data, json.size);
    else
        out->status = json.status == TN_OK ? TN_ERR_INTERNAL : json.status;
    tn_strbuf_fini(&json);
}

static bool needs_escape(uint32_t cp)
{
    return cp < 0x20 || cp == '"' || cp == '\\' || cp == 0x7f;
}

// [..] of what needs no escape, then those that do.
static tn_status put_class(expression *e, const class *c, bool complement)
{
    tn_strbuf *out = e->s->out;
    bool plain = false, some = false;
    if (complement) {
        tn_strbuf_puts(out, "([^\"\\\\\\x00-\\x1F\\x7F");
        if (c->ascii) tn_strbuf_puts(out, "-\\U0010FFFF"); // beyond ASCII the dialects differ
        plain = some = true;
    } else {
        tn_strbuf_puts(out, "(");
    }
    for (int32_t i = 0; i < c->n; i++)
        for (uint32_t lo = c->ranges[i].lo, hi = c->ranges[i].hi; lo <= hi;) {
            uint32_t to = lo; // a stretch of plain characters
            if (!complement && needs_escape(lo)) {
                lo++;
                continue;
            }
            if (complement || lo > 0x7f)
                to = hi;
            else
                while (to < hi && !needs_escape(to + 1)) to++;
            if (!plain) tn_strbuf_puts(out, "[");
            plain = some = true;
            tn_strbuf_printf(out, "\\U%08X-\\U%08X", (unsigned)lo, (unsigned)to);
            lo = to + 1;
        }
    if (plain) tn_strbuf_puts(out, "] ");
    for (uint32_t cp = 0; cp < 0x80; cp++) {
        // Control characters are generated if the pattern names them, but not as members of a complement.
        if (!needs_escape(cp) || holds(c, cp) == complement || (complement && cp != '"' && cp != '\\') ||
            cp == 0x7f)
            continue;
        if (some) tn_strbuf_puts(out, "| ");
        put_escape(out, cp);
        some = true;
    }
    tn_strbuf_puts(out, ") ");
    return some ? TN_OK : unsupported(e, "the class holds no character");
}

static tn_status read_hex(expression *e, int32_t n, uint32_t *out)
{
    *out = 0;
    for (int32_t i = 0; i < n; i++, e->p++) {
        char c = e->p < e->end ? *e->p : 0;
        int32_t digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
        if (digit < 0) return unsupported(e, "a hexadecimal digit is missing");
        *out = *out * 16 + (uint32_t)digit;
    }
    return *out >= 0xd800 && *out < 0xe000 ? unsupported(e, "half of a surrogate pair") : TN_OK;
}

// Adds the class of \d and the like, or gives the character of another escape. At the backslash.
static tn_status read_escape(expression *e, class *c, bool *is_class, bool *complement, uint32_t *cp)
{
    static const char from[] = "nrtfv0", to[] = "\n\r\t\f\v";
    e->p++;
    char letter = e->p < e->end ? *e->p++ : 0;
    const char *found = letter ? strchr(from, letter) : NULL;
    tn_status status = TN_OK;
    *is_class = letter && strchr("dwsDWS", letter);
    *complement = letter == 'D' || letter == 'W' || letter == 'S';
    if (*is_class) {
        char kind = *complement ? (char)(letter + 'a' - 'A') : letter;
        c->ascii = true;
        if (kind == 's') {
            status = add(e, c, ' ', ' ');
            // Other white space is not generated for \s, and not for \S either.
            if (status == TN_OK && *complement) status = add(e, c, '\t', '\r');
            return status;
        }
        status = add(e, c, '0', '9');
        if (kind == 'w' && status == TN_OK) status = add(e, c, 'a', 'z');
        if (kind == 'w' && status == TN_OK) status = add(e, c, 'A', 'Z');
        return kind == 'w' && status == TN_OK ? add(e, c, '_', '_') : status;
    }
    if (found) {
        *cp = (uint32_t)(unsigned char)to[found - from];
        return TN_OK;
    }
    if (letter == 'x') return read_hex(e, 2, cp);
    if (letter == 'u') return read_hex(e, 4, cp);
    bool word = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                (letter >= '0' && letter <= '9');
    if (word || (unsigned char)letter < 0x20 || (unsigned char)letter >= 0x7f)
        return unsupported(e, "this escape is not supported");
    *cp = (uint32_t)letter;
    return TN_OK;
}

static uint32_t read_plain(expression *e)
{
    size_t n;
    uint32_t cp = tn_utf8_decode(e->p, (size_t)(e->end - e->p), &n);
    e->p += n;
    return cp;
}

static tn_status read_member(expression *e, class *c, uint32_t *cp, bool *is_class)
{
    bool complement = false;
    *is_class = false;
    if (!at(e, '\\')) {
        *cp = read_plain(e);
        return TN_OK;
    }
    if (e->end - e->p > 1 && e->p[1] == 'b') { // in a class: backspace
        e->p += 2;
        *cp = '\b';
        return TN_OK;
    }
    tn_status status = read_escape(e, c, is_class, &complement, cp);
    return status == TN_OK && complement ? unsupported(e, "\\D \\W \\S within a class") : status;
}

static tn_status put_brackets(expression *e)
{
    class c = {.n = 0};
    e->p++;
    bool complement = at(e, '^');
    e->p += complement;
    while (!at(e, ']')) {
        uint32_t lo = 0, hi;
        bool is_class, hi_class = false;
        if (e->p >= e->end) return unsupported(e, "the class is not closed");
        tn_status status = read_member(e, &c, &lo, &is_class);
        hi = lo;
        if (status == TN_OK && !is_class && e->end - e->p > 1 && e->p[0] == '-' && e->p[1] != ']') {
            e->p++;
            status = read_member(e, &c, &hi, &hi_class);
            if (status == TN_OK && (hi_class || hi < lo)) return unsupported(e, "a range that is none");
        }
        if (status == TN_OK && !is_class) status = add(e, &c, lo, hi);
        if (status != TN_OK) return status;
    }
    e->p++;
    return put_class(e, &c, complement);
}

// --- the expression ----------------------------------------------------------------------------------

static tn_status put_choice(expression *e);

static tn_status put_group(expression *e)
{
    e->p++;
    if (at(e, '?')) {
        if (e->end - e->p < 2 || e->p[1] != ':') return unsupported(e, "only ( and (?: are supported");
        e->p += 2;
    }
    if (++e->depth > GROUPS_MAX) return unsupported(e, "groups nested deeper than 64");
    tn_strbuf_puts(e->s->out, "(");
    tn_status status = put_choice(e);
    if (status == TN_OK && !at(e, ')')) status = unsupported(e, "a ')' is missing");
    e->p++;
    e->depth--;
    tn_strbuf_puts(e->s->out, ") ");
    return status;
}

static tn_status put_atom(expression *e)
{
    static const char any[] =
        "([^\"\\\\\\x00-\\x1F\\x7F-\\x9F\\u2028\\u2029] | \"\\\\\\\"\" | \"\\\\\\\\\") ";
    class c = {.n = 0};
    bool is_class = false, complement = false;
    uint32_t cp = 0;
    if (at(e, '(')) return put_group(e);
    e->length = (span){1, 1};
    if (at(e, '[')) return put_brackets(e);
    if (at(e, '.')) {
        e->p++;
        tn_strbuf_puts(e->s->out, any);
        return TN_OK;
    }
    if (at(e, '^') || at(e, '$')) return unsupported(e, "^ and $ are supported at the ends only");
    if (strchr("*+?{}]", *e->p) && *e->p) return unsupported(e, "this needs a backslash before it");
    tn_status status = TN_OK;
    if (at(e, '\\'))
        status = read_escape(e, &c, &is_class, &complement, &cp);
    else
        cp = read_plain(e);
    if (status != TN_OK) return status;
    if (is_class) return put_class(e, &c, complement);
    if (cp == 0x7f)
        tn_strbuf_puts(e->s->out, "\"\\x7F\" ");
    else
        put_escape(e->s->out, cp);
    return TN_OK;
}

// "{m}", "{m,}" or "{m,n}" of digits, which a grammar takes too.
static bool read_counts(const char *p, span *out)
{
    enum { COUNT_MAX = 100000 };
    span c = {0, -1};
    for (p++; *p >= '0' && *p <= '9'; p++) c.min = TN_MIN(10 * c.min + *p - '0', LENGTH_MAX);
    if (*p != ',') {
        c.max = c.min;
    } else {
        if (p[1] != '}') c.max = 0;
        for (p++; *p >= '0' && *p <= '9'; p++) c.max = TN_MIN(10 * c.max + *p - '0', LENGTH_MAX);
    }
    *out = c;
    return *p == '}' && c.min <= COUNT_MAX && c.max <= COUNT_MAX && (c.max < 0 || c.min <= c.max);
}

static tn_status put_quantifier(expression *e)
{
    const char *start = e->p;
    span counts = {1, 1}, item = e->length;
    if (at(e, '*') || at(e, '+') || at(e, '?')) {
        e->p++;
    } else if (at(e, '{')) {
        while (e->p < e->end && *e->p != '}') {
            e->p++;
            if (e->p < e->end && !strchr("0123456789,}", *e->p))
                return unsupported(e, "this needs a backslash before it");
        }
        if (e->p == e->end || e->p - start < 2 || start[1] == ',')
            return unsupported(e, "counts are {m}, {m,} or {m,n}");
        if (!read_counts(start, &counts))
            return unsupported(e, "counts are {m}, {m,} or {m,n}, in this order, up to 100000");
        e->p++;
    }
    if (e->p > start && *start != '{') counts = (span){*start == '+', *start == '?' ? 1 : -1};
    e->length = repeated(item, counts);
    bool varies = e->length.max < 0 || e->length.min != e->length.max;
    if (e->depth == 0) note_part(e, item, counts);
    if (e->p == start) return TN_OK;
    if (e->instead && e->depth == 0 && varies) {
        put_counts(e->s->out, *e->instead);
    } else {
        tn_strbuf_append(e->s->out, start, (size_t)(e->p - start));
        tn_strbuf_puts(e->s->out, " ");
    }
    if (at(e, '?')) e->p++; // lazy: the same texts
    if (at(e, '+') || at(e, '*') || at(e, '{')) return unsupported(e, "two counts for one thing");
    return TN_OK;
}

// An alternative; at the top any text may stand before and after it where it is not anchored.
static tn_status put_sequence(expression *e)
{
    bool top = e->depth == 0, open = false;
    span length = {0, 0};
    if (top) {
        if (at(e, '^')) {
            e->p++;
        } else {
            put_anything(e);
            length.max = -1;
        }
    }
    tn_strbuf_puts(e->s->out, "\"\" ");
    open = top;
    while (e->p < e->end && *e->p != '|' && *e->p != ')') {
        if (top && *e->p == '$' && (e->p + 1 == e->end || e->p[1] == '|')) {
            e->p++;
            open = false;
            break;
        }
        tn_status status = put_atom(e);
        if (status == TN_OK) status = put_quantifier(e);
        if (status != TN_OK) return status;
        length = sum(length, e->length);
    }
    if (open) {
        put_anything(e);
        length.max = -1;
    }
    e->length = length;
    return TN_OK;
}

static tn_status put_choice(expression *e)
{
    tn_status status = put_sequence(e);
    span all = e->length;
    while (status == TN_OK && at(e, '|')) {
        e->p++;
        tn_strbuf_puts(e->s->out, "| ");
        status = put_sequence(e);
        all.min = TN_MIN(all.min, e->length.min);
        all.max = all.max < 0 || e->length.max < 0 ? -1 : TN_MAX(all.max, e->length.max);
        e->n_choices += e->depth == 0;
    }
    e->length = all;
    return status;
}

static tn_status put_whole(expression *e, const span *instead)
{
    *e = (expression){.s = e->s,
                      .pattern = e->pattern,
                      .p = e->pattern->text,
                      .n_choices = 1,
                      .simple = true,
                      .instead = instead};
    e->end = e->p + e->pattern->size;
    tn_strbuf_puts(e->s->out, "(");
    tn_status status = put_choice(e);
    if (status == TN_OK && e->p < e->end) status = unsupported(e, "')' without '('");
    tn_strbuf_puts(e->s->out, ") ");
    return status;
}

// If every match has an allowed length, nothing changes. Otherwise the one part that repeats a character gets
// the count that the other parts leave.
tn_status tn_schema_put_pattern(tn_schema *s, const tn_json *pattern, int32_t min, int32_t max)
{
    if (pattern->kind != TN_JSON_STRING) return tn_schema_fail(s, TN_ERR_ARG, pattern, "pattern is a string");
    if (pattern->size > PATTERN_SIZE_MAX)
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, pattern, "a pattern has at most %d bytes",
                              PATTERN_SIZE_MAX);
    expression e = {.s = s, .pattern = pattern};
    size_t start = s->out->size;
    tn_status status = put_whole(&e, NULL);
    bool kept = e.length.min >= min && (max < 0 || (e.length.max >= 0 && e.length.max <= max));
    if (status != TN_OK || kept) return status;
    if (e.n_choices > 1 || e.n_varying != 1 || !e.simple)
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, pattern,
                              "lengths beside a pattern are supported if it keeps them, or has one part of "
                              "varying length, a repeated character");
    span counts = {TN_MAX(e.varying.min, min - e.fixed), e.varying.max};
    if (max >= 0) counts.max = counts.max < 0 ? max - e.fixed : TN_MIN(counts.max, max - e.fixed);
    if ((max >= 0 || e.varying.max >= 0) && counts.max < counts.min)
        return tn_schema_fail(s, TN_ERR_ARG, pattern, "no text of the lengths matches the pattern");
    s->out->size = start;
    return put_whole(&e, &counts);
}
