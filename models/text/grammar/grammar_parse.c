// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GBNF text to a tree. The syntax follows the "GBNF Guide" of llama.cpp; token references are refused.
#include "models/text/grammar/grammar_impl.h"
#include "models/text/tokenizer/unicode.h"

#include <stdio.h>
#include <string.h>

enum { RULE_TABLE = 1 << 17, CLASS_RANGES_MAX = 1024, REPEAT_MAX = 100000 };

typedef struct parser {
    tn_gtree *t;
    const char *p, *end;
    int32_t *table; // [RULE_TABLE] rule + 1 by the hash of its name
} parser;

tn_status tn_grammar_fail(const tn_gtree *t, const char *at, const char *fmt, ...)
{
    char why[256];
    size_t line = 1, column = 1;
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    for (const char *p = t->text; p < at; p++) {
        column = *p == '\n' ? 1 : column + (((unsigned char)*p & 0xc0) != 0x80);
        line += *p == '\n';
    }
    return tn_fail(t->arena->ctx, TN_ERR_ARG, "%s: line %zu, column %zu: %s", t->what, line, column, why);
}

static bool at(const parser *s, char c)
{
    return s->p < s->end && *s->p == c;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip_space(parser *s, bool lines)
{
    while (s->p < s->end) {
        char c = *s->p;
        if (c == '#')
            while (s->p < s->end && *s->p != '\n' && *s->p != '\r') s->p++;
        else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
            s->p++;
        else
            return;
    }
}

// --- rules and nodes ---------------------------------------------------------------------------------

static tn_status grow(tn_gtree *t, void **array, int32_t n, int32_t *capacity, size_t item)
{
    if (n < *capacity) return TN_OK;
    int32_t more = *capacity ? *capacity * 2 : 64;
    void *p = tn_arena_array(t->arena, (size_t)more, item);
    if (!p) return TN_ERR_MEMORY;
    if (n) memcpy(p, *array, (size_t)n * item);
    *array = p;
    *capacity = more;
    return TN_OK;
}

tn_status tn_grammar_add_rule(tn_gtree *t, const char *name, size_t size, const char *where, int32_t *index)
{
    if (t->n_rules >= TN_GRAMMAR_RULES_MAX)
        return tn_grammar_fail(t, where, "more than %d rules", (int)TN_GRAMMAR_RULES_MAX);
    void *rules = t->rules;
    tn_status status = grow(t, &rules, t->n_rules, &t->rules_capacity, sizeof *t->rules);
    t->rules = rules;
    if (status != TN_OK) return status;
    t->rules[t->n_rules] = (tn_grule){.name = name, .size = size, .at = where, .of_class = -1, .entry = -1};
    *index = t->n_rules++;
    return TN_OK;
}

static tn_status rule_by_name(parser *s, const char *name, size_t size, int32_t *index)
{
    uint32_t hash = 0x811c9dc5u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)name[i]) * 0x01000193u;
    for (hash %= RULE_TABLE; s->table[hash]; hash = (hash + 1) % RULE_TABLE) {
        const tn_grule *r = &s->t->rules[s->table[hash] - 1];
        if (r->size != size || memcmp(r->name, name, size) != 0) continue;
        *index = s->table[hash] - 1;
        return TN_OK;
    }
    tn_status status = tn_grammar_add_rule(s->t, name, size, name, index);
    if (status == TN_OK) s->table[hash] = *index + 1;
    return status;
}

static int by_lo(const tn_grange *a, const tn_grange *b)
{
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

// Insertion sort: classes are short. Then the ranges are joined, inverted for a complement, and surrogates
// removed; returns their number.
static int32_t tidy_ranges(tn_grange *r, int32_t n, bool complement, tn_grange *out)
{
    int32_t k = 0, n_out = 0;
    for (int32_t i = 1; i < n; i++) {
        tn_grange x = r[i];
        int32_t j = i;
        for (; j > 0 && by_lo(&x, &r[j - 1]) < 0; j--) r[j] = r[j - 1];
        r[j] = x;
    }
    for (int32_t i = 0; i < n; i++) {
        if (k > 0 && r[i].lo <= r[k - 1].hi + 1)
            r[k - 1].hi = TN_MAX(r[k - 1].hi, r[i].hi);
        else
            r[k++] = r[i];
    }
    uint32_t next = 0;
    for (int32_t i = 0; i <= k; i++) {
        tn_grange x = i < k ? r[i] : (tn_grange){0x110000, 0x110000};
        if (complement) x = (tn_grange){next, x.lo - 1};
        if (i < k) next = r[i].hi + 1;
        if ((!complement && i == k) || x.lo > x.hi || x.hi == UINT32_MAX) continue;
        if (x.lo < 0xd800) out[n_out++] = (tn_grange){x.lo, TN_MIN(x.hi, 0xd7ff)};
        if (x.hi > 0xdfff) out[n_out++] = (tn_grange){TN_MAX(x.lo, 0xe000), x.hi};
    }
    return n_out;
}

tn_status tn_grammar_add_class(tn_gtree *t, tn_grange *ranges, int32_t n, bool complement, const char *where,
                               int32_t *index)
{
    tn_grange *out = tn_arena_array(t->arena, 2 * (size_t)n + 4, sizeof *out);
    if (!out) return TN_ERR_MEMORY;
    int32_t n_out = tidy_ranges(ranges, n, complement, out);
    if (n_out == 0) return tn_grammar_fail(t, where, "the class holds no character");
    for (int32_t i = 0; i < t->n_classes; i++) {
        const tn_gclass *c = &t->classes[i];
        if (c->n != n_out || memcmp(c->ranges, out, (size_t)n_out * sizeof *out) != 0) continue;
        *index = i;
        return TN_OK;
    }
    if (t->n_classes >= 8192) return tn_grammar_fail(t, where, "more than 8192 different classes");
    void *classes = t->classes;
    tn_status status = grow(t, &classes, t->n_classes, &t->classes_capacity, sizeof *t->classes);
    t->classes = classes;
    tn_gclass c = {.ranges = out, .n = n_out, .set = -1, .rule = -1};
    if (status == TN_OK && out[n_out - 1].hi < 0x80) c.set = t->n_sets++;
    if (status == TN_OK && c.set < 0) {
        status = tn_grammar_add_rule(t, NULL, 0, where, &c.rule);
        if (status == TN_OK) t->rules[c.rule].of_class = t->n_classes;
    }
    if (status != TN_OK) return status;
    *index = t->n_classes;
    t->classes[t->n_classes++] = c;
    return TN_OK;
}

static tn_status new_node(parser *s, tn_gkind kind, tn_gnode **out)
{
    tn_gnode *node = tn_arena_alloc(s->t->arena, sizeof *node);
    if (!node) return TN_ERR_MEMORY;
    node->kind = kind;
    *out = node;
    return TN_OK;
}

// --- characters --------------------------------------------------------------------------------------

static tn_status read_hex(parser *s, int32_t n_digits, uint32_t *out)
{
    uint32_t v = 0;
    for (int32_t i = 0; i < n_digits; i++, s->p++) {
        char c = s->p < s->end ? *s->p : 0;
        int32_t digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
        if (digit < 0)
            return tn_grammar_fail(s->t, s->p, "%d hexadecimal digits are wanted here", (int)n_digits);
        v = v * 16 + (uint32_t)digit;
    }
    *out = v;
    return TN_OK;
}

static tn_status read_escape(parser *s, uint32_t *out)
{
    static const char from[] = "nrt\\\"[]-", to[] = "\n\r\t\\\"[]-";
    const char *start = s->p++;
    char c = s->p < s->end ? *s->p++ : 0;
    const char *found = c ? strchr(from, c) : NULL;
    if (found) *out = (uint32_t)to[found - from];
    if (found) return TN_OK;
    int32_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (n == 0)
        return tn_grammar_fail(
            s->t, start,
            "unknown escape; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH");
    tn_status status = read_hex(s, n, out);
    if (status == TN_OK && (*out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000)))
        status = tn_grammar_fail(s->t, start, "U+%X is no character", (unsigned)*out);
    return status;
}

// One character of a literal or class, escaped or not.
static tn_status read_char(parser *s, uint32_t *out)
{
    size_t size;
    char again[4];
    if (at(s, '\\')) return read_escape(s, out);
    *out = tn_utf8_decode(s->p, (size_t)(s->end - s->p), &size);
    if (*out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000) || tn_utf8_encode(*out, again) != size ||
        memcmp(again, s->p, size) != 0)
        return tn_grammar_fail(s->t, s->p, "the text is not UTF-8");
    s->p += size;
    return TN_OK;
}

static tn_status read_literal(parser *s, tn_gnode **out)
{
    const char *start = s->p++, *close = s->p;
    while (close < s->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= s->end) return tn_grammar_fail(s->t, start, "the literal is not closed");
    tn_status status = new_node(s, TN_G_BYTES, out);
    char *bytes = status == TN_OK ? tn_arena_alloc(s->t->arena, (size_t)(close - s->p) * 2 + 4) : NULL;
    if (!bytes) return TN_ERR_MEMORY;
    (*out)->bytes = bytes;
    while (status == TN_OK && s->p < close) {
        uint32_t cp = 0;
        if (*s->p == '\n') return tn_grammar_fail(s->t, start, "the literal is not closed on its line");
        status = read_char(s, &cp);
        if (status == TN_OK) (*out)->n_bytes += tn_utf8_encode(cp, bytes + (*out)->n_bytes);
    }
    s->p = close + 1;
    return status;
}

static tn_status read_class(parser *s, tn_gnode **out)
{
    tn_grange ranges[CLASS_RANGES_MAX];
    int32_t n = 0;
    const char *start = s->p++;
    bool complement = at(s, '^');
    s->p += complement;
    while (!at(s, ']')) {
        if (s->p >= s->end || *s->p == '\n') return tn_grammar_fail(s->t, start, "the class is not closed");
        if (n == CLASS_RANGES_MAX) return tn_grammar_fail(s->t, start, "a class of more than 1024 ranges");
        const char *here = s->p;
        tn_grange r = {0, 0};
        tn_status status = read_char(s, &r.lo);
        r.hi = r.lo;
        if (status == TN_OK && s->end - s->p >= 2 && s->p[0] == '-' && s->p[1] != ']') {
            s->p++;
            status = read_char(s, &r.hi);
        }
        if (status == TN_OK && r.hi < r.lo) status = tn_grammar_fail(s->t, here, "the range runs backwards");
        if (status != TN_OK) return status;
        ranges[n++] = r;
    }
    s->p++;
    if (n == 0) return tn_grammar_fail(s->t, start, "the class is empty");
    tn_status status = new_node(s, TN_G_CLASS, out);
    return status == TN_OK ? tn_grammar_add_class(s->t, ranges, n, complement, start, &(*out)->index)
                           : status;
}

static tn_status read_any(parser *s, tn_gnode **out)
{
    tn_grange all = {0, 0x10ffff};
    const char *start = s->p++;
    tn_status status = new_node(s, TN_G_CLASS, out);
    return status == TN_OK ? tn_grammar_add_class(s->t, &all, 1, false, start, &(*out)->index) : status;
}

// --- repetition --------------------------------------------------------------------------------------

static tn_status read_count(parser *s, int32_t *out)
{
    const char *start = s->p;
    *out = 0;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        *out = *out * 10 + (*s->p++ - '0');
        if (*out > REPEAT_MAX) return tn_grammar_fail(s->t, start, "a count above %d", (int)REPEAT_MAX);
    }
    return s->p > start ? TN_OK : tn_grammar_fail(s->t, start, "a count is missing");
}

// At '{'.
static tn_status read_counts(parser *s, tn_gnode *r)
{
    const char *start = s->p++;
    skip_space(s, true);
    tn_status status = read_count(s, &r->min);
    r->max = r->min;
    skip_space(s, true);
    if (status == TN_OK && at(s, ',')) {
        s->p++;
        skip_space(s, true);
        r->max = -1;
        if (!at(s, '}')) status = read_count(s, &r->max);
        skip_space(s, true);
    }
    if (status == TN_OK && !at(s, '}')) status = tn_grammar_fail(s->t, s->p, "a '}' is missing");
    if (status == TN_OK && r->max >= 0 && r->max < r->min)
        status = tn_grammar_fail(s->t, start, "the counts run backwards");
    s->p++;
    return status;
}

static tn_status read_postfix(parser *s, tn_gnode **item, bool lines)
{
    for (;;) {
        skip_space(s, lines);
        if (!at(s, '*') && !at(s, '+') && !at(s, '?') && !at(s, '{')) return TN_OK;
        tn_gnode *r = NULL;
        tn_status status = new_node(s, TN_G_REPEAT, &r);
        if (status != TN_OK) return status;
        r->min = *s->p == '+';
        r->max = *s->p == '?' ? 1 : -1;
        if (*s->p == '{')
            status = read_counts(s, r);
        else
            s->p++;
        if (status != TN_OK) return status;
        r->first = *item;
        *item = r;
    }
}

// --- sequences and choices ---------------------------------------------------------------------------

static tn_status read_choice(parser *s, int depth, tn_gnode **out);

static tn_status read_item(parser *s, int depth, tn_gnode **out)
{
    const char *start = s->p;
    tn_status status;
    switch (*s->p) {
    case '"':
        return read_literal(s, out);
    case '[':
        return read_class(s, out);
    case '.':
        return read_any(s, out);
    case '(':
        if (depth >= TN_GRAMMAR_DEPTH_MAX)
            return tn_grammar_fail(s->t, start, "groups nested deeper than %d", (int)TN_GRAMMAR_DEPTH_MAX);
        s->p++;
        skip_space(s, true);
        status = read_choice(s, depth + 1, out);
        if (status == TN_OK && !at(s, ')')) status = tn_grammar_fail(s->t, start, "the group is not closed");
        s->p++;
        return status;
    default:
        break;
    }
    if (*s->p == '<' || *s->p == '!')
        return tn_grammar_fail(s->t, start, "references to tokens are not supported; write their text");
    if (!is_name_char(*s->p))
        return tn_grammar_fail(s->t, start, "no rule, literal, class or group begins like this");
    while (s->p < s->end && is_name_char(*s->p)) s->p++;
    status = new_node(s, TN_G_RULE, out);
    return status == TN_OK ? rule_by_name(s, start, (size_t)(s->p - start), &(*out)->index) : status;
}

// In groups lines may end anywhere; outside, the end of the line ends the rule.
static tn_status read_sequence(parser *s, int depth, tn_gnode **out)
{
    tn_status status = new_node(s, TN_G_SEQUENCE, out);
    tn_gnode **last = status == TN_OK ? &(*out)->first : NULL;
    while (status == TN_OK) {
        skip_space(s, depth > 0);
        if (s->p >= s->end || strchr("|)\n\r", *s->p)) break;
        if (strchr("*+?{", *s->p) && *s->p)
            return tn_grammar_fail(s->t, s->p, "'%c' has nothing to repeat", *s->p);
        status = read_item(s, depth, last);
        if (status == TN_OK) status = read_postfix(s, last, depth > 0);
        if (status == TN_OK) last = &(*last)->next;
    }
    return status;
}

// A line that begins with | continues the rule before it.
static bool next_alternative(parser *s)
{
    parser look = *s;
    skip_space(&look, true);
    if (!at(&look, '|')) return false;
    look.p++;
    skip_space(&look, true);
    s->p = look.p;
    return true;
}

static tn_status read_choice(parser *s, int depth, tn_gnode **out)
{
    tn_status status = new_node(s, TN_G_CHOICE, out);
    tn_gnode **last = status == TN_OK ? &(*out)->first : NULL;
    while (status == TN_OK) {
        status = read_sequence(s, depth, last);
        if (status != TN_OK || !next_alternative(s)) break;
        last = &(*last)->next;
    }
    return status;
}

static tn_status read_rule(parser *s)
{
    const char *start = s->p;
    int32_t index;
    while (s->p < s->end && is_name_char(*s->p)) s->p++;
    size_t size = (size_t)(s->p - start);
    if (size == 0) return tn_grammar_fail(s->t, start, "the name of a rule is missing");
    skip_space(s, false);
    if (s->end - s->p < 3 || memcmp(s->p, "::=", 3) != 0)
        return tn_grammar_fail(s->t, s->p, "'::=' is missing behind the name of the rule");
    s->p += 3;
    skip_space(s, true);
    tn_gnode *body = NULL;
    tn_status status = rule_by_name(s, start, size, &index);
    if (status == TN_OK && s->t->rules[index].body)
        return tn_grammar_fail(s->t, start, "the rule %.*s is there twice", (int)TN_MIN(size, 64), start);
    if (status == TN_OK) status = read_choice(s, 0, &body);
    if (status != TN_OK) return status;
    s->t->rules[index].body = body;
    if (size == 4 && memcmp(start, "root", 4) == 0) s->t->root = index;
    if (at(s, ')')) return tn_grammar_fail(s->t, s->p, "')' without '('");
    skip_space(s, true);
    return TN_OK;
}

tn_status tn_grammar_parse(tn_gtree *t)
{
    parser s = {.t = t, .p = t->text, .end = t->text + t->n};
    s.table = tn_arena_array(t->arena, RULE_TABLE, sizeof *s.table);
    if (!s.table) return TN_ERR_MEMORY;
    t->root = -1;
    if (memchr(t->text, 0, t->n)) return tn_grammar_fail(t, memchr(t->text, 0, t->n), "a zero byte");
    skip_space(&s, true);
    while (s.p < s.end) {
        tn_status status = read_rule(&s);
        if (status != TN_OK) return status;
    }
    for (int32_t i = 0; i < t->n_rules; i++) {
        const tn_grule *r = &t->rules[i];
        if (!r->body && r->of_class < 0)
            return tn_grammar_fail(t, r->at, "the rule %.*s is not defined", (int)TN_MIN(r->size, 64),
                                   r->name);
    }
    return t->root >= 0 ? TN_OK : tn_grammar_fail(t, s.end, "there is no rule named root");
}
