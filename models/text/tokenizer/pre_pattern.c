// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/text/tokenizer/pre_pattern.h"

#include "models/text/tokenizer/unicode.h"

#include <string.h>

// --- sets of code points -----------------------------------------------------------------------------

#define GC(x) (1u << TN_GC_##x)
#define GC_L  (GC(LU) | GC(LL) | GC(LT) | GC(LM) | GC(LO))
#define GC_M  (GC(MN) | GC(MC) | GC(ME))
#define GC_N  (GC(ND) | GC(NL) | GC(NO))
#define GC_P  (GC(PC) | GC(PD) | GC(PE) | GC(PF) | GC(PI) | GC(PO) | GC(PS))
#define GC_S  (GC(SC) | GC(SK) | GC(SM) | GC(SO))

// clang-format off
// Script=Han of Unicode 15.1.
static const uint32_t han[][2] = {
    {0x2e80, 0x2e99}, {0x2e9b, 0x2ef3}, {0x2f00, 0x2fd5}, {0x3005, 0x3005}, {0x3007, 0x3007},
    {0x3021, 0x3029},
    {0x3038, 0x303b}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfa6d}, {0xfa70, 0xfad9},
    {0x16fe2, 0x16fe3},
    {0x16ff0, 0x16ff1}, {0x20000, 0x2a6df}, {0x2a700, 0x2b739}, {0x2b740, 0x2b81d}, {0x2b820, 0x2cea1},
    {0x2ceb0, 0x2ebe0}, {0x2ebf0, 0x2ee5d}, {0x2f800, 0x2fa1d}, {0x30000, 0x3134a}, {0x31350, 0x323af}};
// The next four are lists that DeepSeek's tokenizers spell out, without the white space (such as U+3000) that
// some of their ranges cross: it only ever counts as \s.
static const uint32_t han1[][2] = {
    {0x0800, 0x167f}, {0x1681, 0x1fff}, {0x200b, 0x2027}, {0x202a, 0x202e}, {0x2030, 0x205e},
    {0x2060, 0x2fff},
    {0x3001, 0x9fa5}, {0xac00, 0xd7ff}};
static const uint32_t han2[][2] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};
static const uint32_t punct[][2] = {
    {0x21, 0x2f}, {0x3a, 0x7e}, {0x2018, 0x201f}, {0x3001, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
static const uint32_t cased[][2] = {
    {0x41, 0x5a}, {0x61, 0x7a}, {0xb5, 0xb5}, {0xc0, 0xd6}, {0xd8, 0xf6}, {0xf8, 0x1ba}, {0x1bc, 0x1bf},
    {0x1c4, 0x293}, {0x295, 0x2af}, {0x370, 0x373}, {0x376, 0x377}, {0x37b, 0x37d}, {0x37f, 0x37f},
    {0x386, 0x386}, {0x388, 0x38a}, {0x38c, 0x38c}, {0x38e, 0x3a1}, {0x3a3, 0x3f5}, {0x3f7, 0x481},
    {0x48a, 0x52f}, {0x531, 0x556}, {0x10a0, 0x10c5}, {0x13a0, 0x13f5}, {0x13f8, 0x13fd}, {0x1c90, 0x1cba},
    {0x1cbd, 0x1cbf}, {0x1d00, 0x1d2b}, {0x1d6b, 0x1d77}, {0x1d79, 0x1d9a}, {0x1e00, 0x1f15},
    {0x1f18, 0x1f1d},
    {0x1f20, 0x1f45}, {0x1f48, 0x1f4d}, {0x1f50, 0x1f57}, {0x1f59, 0x1f59}, {0x1f5b, 0x1f5b},
    {0x1f5d, 0x1f5d},
    {0x1f5f, 0x1f7d}, {0x1f80, 0x1fb4}, {0x1fb6, 0x1fbc}, {0x1fbe, 0x1fbe}, {0x1fc2, 0x1fc4},
    {0x1fc6, 0x1fcc},
    {0x1fd0, 0x1fd3}, {0x1fd6, 0x1fdb}, {0x1fe0, 0x1fec}, {0x1ff2, 0x1ff4}, {0x1ff6, 0x1ffc},
    {0x2102, 0x2102},
    {0x2107, 0x2107}, {0x210a, 0x2113}, {0x2115, 0x2115}, {0x2119, 0x211d}, {0x2124, 0x2124},
    {0x2126, 0x2126},
    {0x2128, 0x2128}, {0x212a, 0x212d}, {0x212f, 0x2134}, {0x2139, 0x2139}, {0x213c, 0x213f},
    {0x2145, 0x2149},
    {0x214e, 0x214e}, {0x2183, 0x2184}, {0x2c00, 0x2c7b}, {0x2c7e, 0x2ce4}, {0x2ceb, 0x2cee},
    {0x2cf2, 0x2cf3},
    {0xa640, 0xa66d}, {0xa680, 0xa69b}, {0xa722, 0xa76f}, {0xa771, 0xa787}, {0xa78b, 0xa78e},
    {0xab70, 0xabbf},
    {0xfb00, 0xfb06}, {0xfb13, 0xfb17}, {0xff21, 0xff3a}, {0xff41, 0xff5a}, {0x10400, 0x1044f},
    {0x104b0, 0x104d3}, {0x104d8, 0x104fb}, {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df},
    {0x1e900, 0x1e943}};

static const tn_cp_set sets[] = {
    {"L", GC_L, NULL, 0},       {"M", GC_M, NULL, 0},       {"N", GC_N, NULL, 0},       {"P", GC_P, NULL, 0},
    {"S", GC_S, NULL, 0},       {"Lu", GC(LU), NULL, 0},    {"Ll", GC(LL), NULL, 0},
       {"Lt", GC(LT), NULL, 0},
    {"Lm", GC(LM), NULL, 0},    {"Lo", GC(LO), NULL, 0},    {"Nd", GC(ND), NULL, 0},
    {"Han", 0, han, TN_COUNT(han)},       {"Han1", 0, han1, TN_COUNT(han1)},
      {"Han2", 0, han2, TN_COUNT(han2)},
    {"Cased", 0, cased, TN_COUNT(cased)}, {"Punct", 0, punct, TN_COUNT(punct)},
};

// Groups and expressions that are recognised as a whole, with a scanner of their own.
static const struct {
    const char *text;
    int32_t kind;
} groups[] = {
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)", TN_ITEM_SUFFIX},
    {"(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+", TN_ITEM_WORDS},
}, wholes[] = {
    {"\\d{1,3}(?=(\\d{3})*(?!\\d))", TN_PATTERN_DIGIT_GROUPS},
    {"(?=(\\d{3})+(?!\\d))", TN_PATTERN_DIGIT_CUTS},
};
// clang-format on

static bool set_has(const tn_cp_set *set, uint32_t cp, uint32_t gc)
{
    if (set->gc_mask >> gc & 1) return true;
    size_t lo = 0, hi = set->n_ranges;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (cp < set->ranges[mid][0])
            hi = mid;
        else if (cp > set->ranges[mid][1])
            lo = mid + 1;
        else
            return true;
    }
    return false;
}

// Membership without the ASCII table; `listed` says that the code point stands in the class literally.
static bool class_rule(const tn_cp_class *c, uint32_t cp, uint32_t gc, bool listed)
{
    bool hit = listed || (c->gc_mask >> gc & 1) || (c->space && tn_unicode_is_space(cp));
    for (uint32_t i = 0; !hit && i < c->n_ranges; i++) hit = cp >= c->ranges[i][0] && cp <= c->ranges[i][1];
    for (uint32_t i = 0; !hit && i < c->n_sets; i++) hit = set_has(c->sets[i], cp, gc);
    return hit != c->negated && !(c->except != NULL && set_has(c->except, cp, gc));
}

bool tn_cp_class_has(const tn_cp_class *c, tn_cp cp)
{
    uint32_t value = cp & TN_CP_MASK;
    if (value < 0x80) return c->ascii[value >> 6] >> (value & 63) & 1;
    return class_rule(c, value, cp >> TN_CP_GC_SHIFT & TN_CP_GC_MASK, false);
}

// --- compiler ----------------------------------------------------------------------------------------

typedef struct parser {
    const char *p; // the rest of the expression, terminated
    bool bad;      // a syntax error was found
} parser;

static bool take(parser *s, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(s->p, text, n) != 0) return false;
    s->p += n;
    return true;
}

static uint32_t take_char(parser *s)
{
    size_t size, left = strlen(s->p);
    if (left == 0) {
        s->bad = true;
        return 0;
    }
    uint32_t cp = tn_utf8_decode(s->p, left, &size);
    s->p += size;
    return cp;
}

// "{Name}" after \p.
static const tn_cp_set *take_set(parser *s)
{
    const char *end = strchr(s->p, '}');
    for (size_t i = 0; end != NULL && *s->p == '{' && i < TN_COUNT(sets); i++) {
        size_t n = (size_t)(end - s->p - 1);
        if (strlen(sets[i].name) != n || memcmp(sets[i].name, s->p + 1, n) != 0) continue;
        s->p = end + 1;
        return &sets[i];
    }
    s->bad = true;
    return &sets[0];
}

static void add_range(parser *s, tn_cp_class *c, uint32_t first, uint32_t last)
{
    for (uint32_t cp = first; cp <= last && cp < 0x80; cp++) c->ascii[cp >> 6] |= (uint64_t)1 << (cp & 63);
    if (last < 0x80) return;
    if (c->n_ranges == TN_CP_CLASS_RANGES) {
        s->bad = true;
        return;
    }
    c->ranges[c->n_ranges][0] = first;
    c->ranges[c->n_ranges++][1] = last;
}

static void add_set(parser *s, tn_cp_class *c, const tn_cp_set *set)
{
    c->gc_mask |= set->gc_mask;
    if (set->n_ranges == 0) return;
    if (c->n_sets == TN_CP_CLASS_SETS)
        s->bad = true;
    else
        c->sets[c->n_sets++] = set;
}

// What follows a backslash. *literal is set when it stands for one code point, which may start a range.
static void take_escape(parser *s, tn_cp_class *c, bool *literal, uint32_t *cp)
{
    *literal = false;
    *cp = take_char(s);
    if (*cp == 's')
        c->space = true;
    else if (*cp == 'd')
        c->gc_mask |= GC(ND);
    else if (*cp == 'p')
        add_set(s, c, take_set(s));
    else {
        *literal = true;
        if (*cp == 'n') *cp = '\n';
        if (*cp == 'r') *cp = '\r';
    }
}

// Inside of [...], after the bracket.
static void take_bracket(parser *s, tn_cp_class *c)
{
    c->negated = take(s, "^");
    while (!s->bad && !take(s, "]")) {
        if (take(s, "&&[^\\p")) {
            c->except = take_set(s);
            if (!take(s, "]")) s->bad = true;
            continue;
        }
        bool literal = true;
        uint32_t first;
        if (take(s, "\\"))
            take_escape(s, c, &literal, &first);
        else
            first = take_char(s);
        if (!literal) continue;
        uint32_t last = take(s, "-") ? take_char(s) : first;
        add_range(s, c, first, last);
    }
}

// One class: a bracket, an escape or a literal.
static void take_class(parser *s, tn_cp_class *c)
{
    *c = (tn_cp_class){0};
    bool literal = false;
    uint32_t cp = 0;
    if (take(s, "["))
        take_bracket(s, c);
    else if (take(s, "\\S"))
        c->space = c->negated = true;
    else if (take(s, "\\"))
        take_escape(s, c, &literal, &cp);
    else {
        literal = true;
        cp = take_char(s);
    }
    if (literal) add_range(s, c, cp, cp);
    uint64_t listed[2] = {c->ascii[0], c->ascii[1]}, ascii[2] = {0, 0};
    for (uint32_t i = 0; i < 0x80; i++)
        if (class_rule(c, i, tn_unicode_category(i), listed[i >> 6] >> (i & 63) & 1))
            ascii[i >> 6] |= (uint64_t)1 << (i & 63);
    memcpy(c->ascii, ascii, sizeof ascii);
}

static uint32_t take_number(parser *s)
{
    uint32_t v = 0;
    if (*s->p < '0' || *s->p > '9') s->bad = true;
    for (; *s->p >= '0' && *s->p <= '9' && v < 100000; s->p++) v = v * 10 + (uint32_t)(*s->p - '0');
    return v;
}

static void take_quantifier(parser *s, tn_pattern_item *item)
{
    item->min = item->max = 1;
    if (take(s, "?"))
        item->min = 0;
    else if (take(s, "*"))
        item->min = 0, item->max = UINT32_MAX;
    else if (take(s, "+"))
        item->max = UINT32_MAX;
    else if (take(s, "{")) {
        item->min = item->max = take_number(s);
        if (take(s, ",")) item->max = take_number(s);
        if (!take(s, "}")) s->bad = true;
    }
}

static void take_item(parser *s, tn_pattern_item *item)
{
    for (size_t i = 0; i < TN_COUNT(groups); i++) {
        if (!take(s, groups[i].text)) continue;
        item->kind = groups[i].kind;
        take_quantifier(s, item);
        return;
    }
    if (take(s, "(?!")) {
        item->kind = TN_ITEM_NOT_BEFORE;
        take_class(s, &item->cls);
        if (!take(s, ")")) s->bad = true;
    } else if (take(s, "$")) {
        item->kind = TN_ITEM_END;
    } else {
        item->kind = TN_ITEM_RUN;
        take_class(s, &item->cls);
        take_quantifier(s, item);
    }
}

tn_status tn_pattern_compile(tn_arena *arena, const char *text, tn_pattern *out)
{
    *out = (tn_pattern){.kind = TN_PATTERN_ALTERNATIVES};
    for (size_t i = 0; i < TN_COUNT(wholes); i++) {
        if (strcmp(text, wholes[i].text) != 0) continue;
        out->kind = wholes[i].kind;
        return TN_OK;
    }
    out->items = tn_arena_array(arena, TN_PATTERN_ITEMS, sizeof *out->items);
    if (out->items == NULL) return TN_ERR_MEMORY;
    parser s = {.p = text};
    while (!s.bad && *s.p != 0) {
        if (take(&s, "|")) {
            if (out->n_branches == TN_PATTERN_BRANCHES - 1)
                s.bad = true;
            else
                out->branch_end[out->n_branches++] = out->n_items;
        } else if (out->n_items == TN_PATTERN_ITEMS) {
            s.bad = true;
        } else {
            take_item(&s, &out->items[out->n_items++]);
        }
    }
    out->branch_end[out->n_branches++] = out->n_items;
    if (s.bad)
        return tn_fail(arena->ctx, TN_ERR_INTERNAL, "pre-tokenizer expression not understood: %s", text);
    return TN_OK;
}
