// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Extended regular expressions by backtracking, because Windows has none: | ( ) * + ? {n,m} . [ ] ^ $ and \c.
// Names of tensors are short, so its time does not matter; a limit of steps ends patterns that explode, as no
// match.
#include "tools/system/system.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1 << 20, DEPTH_MAX = 200 };

struct sys_pattern {
    char *text;
};

typedef struct matcher matcher;
// What follows a part of the pattern: a chain of parts.
typedef struct rest {
    bool (*go)(matcher *m, const struct rest *r, const char *at);
    const char *p, *end; // a part of the pattern
    const struct rest *next;
    int count;              // of a repetition, so far
    const char *last_start; // where its last turn began
} rest;
struct matcher {
    const char *begin;
    long steps;
};

typedef struct range {
    int least, most; // -1: no limit
} range;

// --- the pattern's text ------------------------------------------------------------------------------------

// Behind a bracket expression that begins at p; NULL: it does not end.
static const char *bracket_end(const char *p, const char *end)
{
    p += p + 1 < end && p[1] == '^' ? 2 : 1;
    if (p < end && *p == ']') p++;
    for (; p < end && *p != ']'; p++)
        if (*p == '[' && p + 1 < end && strchr(":.=", p[1])) {
            char kind = p[1];
            for (p += 2; p + 1 < end && !(p[0] == kind && p[1] == ']');) p++;
            if (p + 1 >= end) return NULL;
            p++;
        }
    return p < end ? p + 1 : NULL;
}

// Behind the atom at p: a character, a bracket expression or a group; NULL: it does not end.
static const char *atom_end(const char *p, const char *end)
{
    if (*p == '\\') return p + 2 <= end ? p + 2 : NULL;
    if (*p == '[') return bracket_end(p, end);
    if (*p != '(') return p + 1;
    int depth = 0;
    while (p && p < end) {
        if (*p == '(') {
            depth++;
            p++;
        } else if (*p == ')') {
            p++;
            if (--depth == 0) return p;
        } else {
            p = atom_end(p, end);
        }
    }
    return NULL;
}

// Reads the repetition at *p, if one stands there.
static range read_range(const char **p, const char *end)
{
    if (*p == end) return (range){1, 1};
    char c = **p, *after;
    if (c == '*' || c == '+' || c == '?') {
        ++*p;
        return (range){c == '+', c == '?' ? 1 : -1};
    }
    if (c != '{' || *p + 1 == end || !isdigit((unsigned char)(*p)[1])) return (range){1, 1};
    range r;
    r.least = r.most = (int)strtol(*p + 1, &after, 10);
    if (*after == ',') {
        bool open = after[1] == '}';
        r.most = open ? -1 : (int)strtol(after + 1, &after, 10);
        if (open) after++;
    }
    *p = *after == '}' ? after + 1 : end + 1; // behind the end: it is not right
    return r;
}

// The "|" at the level of p, or the end.
static const char *alternative_end(const char *p, const char *end)
{
    while (p && p < end && *p != '|') p = atom_end(p, end);
    return p ? p : end;
}

// --- matching ----------------------------------------------------------------------------------------------

static bool match_sequence(matcher *m, const char *p, const char *end, const char *at, const rest *next);

static bool go_on(matcher *m, const rest *r, const char *at)
{
    return !r || r->go(m, r, at);
}

static bool match_alternatives(matcher *m, const char *p, const char *end, const char *at, const rest *next)
{
    for (;;) {
        const char *bar = alternative_end(p, end);
        if (match_sequence(m, p, bar, at, next)) return true;
        if (bar >= end) return false;
        p = bar + 1;
    }
}

static bool in_class(const char *name, size_t n, unsigned char c)
{
    static const struct {
        const char *name;
        int (*is)(int c);
    } classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"digit", isdigit}, {"lower", islower},
                   {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i].name) == n && memcmp(name, classes[i].name, n) == 0) return classes[i].is(c);
    return false;
}

static bool in_brackets(const char *p, const char *end, unsigned char c)
{
    bool negated = p[1] == '^', found = false;
    const char *first = p + (negated ? 2 : 1), *last = end - 1;
    for (p = first; p < last;) {
        if (p[0] == '[' && p[1] == ':') {
            const char *close = strstr(p, ":]");
            found = found || in_class(p + 2, (size_t)(close - p) - 2, c);
            p = close + 2;
        } else if (p + 2 < last && p[1] == '-') {
            found = found || (c >= (unsigned char)p[0] && c <= (unsigned char)p[2]);
            p += 3;
        } else {
            found = found || c == (unsigned char)*p;
            p++;
        }
    }
    return found != negated;
}

static bool match_character(const char *p, const char *end, char c)
{
    if (!c) return false;
    if (*p == '[') return in_brackets(p, end, (unsigned char)c);
    if (*p == '\\') return p[1] == c;
    return *p == '.' || *p == c;
}

// One atom, and what follows it.
static bool match_atom(matcher *m, const char *p, const char *end, const char *at, const rest *next)
{
    if (*p == '(') return match_alternatives(m, p + 1, end - 1, at, next);
    if (*p == '^') return at == m->begin && go_on(m, next, at);
    if (*p == '$') return !*at && go_on(m, next, at);
    return match_character(p, end, *at) && go_on(m, next, at + 1);
}

// The atom of r->p once more, or what follows all its turns: as many turns as possible first.
static bool repeat(matcher *m, const rest *r, const char *at)
{
    const char *end = atom_end(r->p, r->end), *after = end;
    range times = read_range(&after, r->end);
    if (++m->steps > STEPS_MAX) return false;
    bool useless = r->count > times.least && at == r->last_start; // a turn that matched nothing
    if ((times.most < 0 || r->count < times.most) && !useless) {
        rest again = *r;
        again.count++;
        again.last_start = at;
        if (match_atom(m, r->p, end, at, &again)) return true;
    }
    return r->count >= times.least && match_sequence(m, after, r->end, at, r->next);
}

static bool match_sequence(matcher *m, const char *p, const char *end, const char *at, const rest *next)
{
    if (p >= end) return go_on(m, next, at);
    rest r = {repeat, p, end, next, 0, NULL};
    return repeat(m, &r, at);
}

// --- the border --------------------------------------------------------------------------------------------

// NULL, or what is wrong.
static const char *check(const char *p, const char *end, int depth)
{
    if (depth > DEPTH_MAX) return "groups are nested too deeply";
    while (p < end) {
        if (strchr("*+?", *p)) return "a repetition without what it repeats";
        if (*p == ')') return "a ) without its (";
        if (*p == '|') {
            p++;
            continue;
        }
        const char *after = atom_end(p, end);
        if (!after)
            return *p == '(' ? "a ( without its )" : *p == '[' ? "a [ without its ]" : "a \\ at the end";
        const char *wrong = *p == '(' ? check(p + 1, after - 1, depth + 1) : NULL;
        if (wrong) return wrong;
        range r = read_range(&after, end);
        if (after > end || (r.most >= 0 && r.most < r.least)) return "braces with wrong numbers";
        p = after;
    }
    return NULL;
}

sys_pattern *sys_pattern_create(const char *text, char *why, size_t why_size)
{
    const char *wrong = check(text, text + strlen(text), 0);
    sys_pattern *p = wrong ? NULL : malloc(sizeof *p);
    if (p) p->text = strdup(text);
    if (p && p->text) return p;
    free(p);
    snprintf(why, why_size, "%s", wrong ? wrong : "out of memory");
    return NULL;
}

bool sys_pattern_matches(const sys_pattern *p, const char *text)
{
    matcher m = {.begin = text};
    for (const char *at = text;; at++) {
        if (match_alternatives(&m, p->text, p->text + strlen(p->text), at, NULL)) return true;
        if (!*at) return false;
    }
}

void sys_pattern_destroy(sys_pattern *p)
{
    if (!p) return;
    free(p->text);
    free(p);
}
