// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Left recursion: a rule that calls itself before any text was matched would call itself without end. The
// check walks the program from the entry of each rule over all instructions that match no byte.
#include "models/text/grammar/grammar_impl.h"

#include <string.h>

// How many instructions all walks may visit; a usual grammar needs a handful of visits per instruction.
enum { WORK_MAX = 50000000 };

typedef struct checker {
    tn_gtree *t;
    const tn_grammar *g;
    int32_t *seen; // [n_code] number of the last walk that visited it
    int32_t *pending; // [n_code]
    int32_t walk;
    int64_t work;
    uint8_t *color;  // [n_rules] 0 new, 1 on the path, 2 done
    int32_t *path;   // [n_rules]
    int32_t *called; // [n_code + 1] rules called by the walks of the path, one after the other
    int32_t *next;   // [n_rules + 1] for each path element: its next rule in `called`
} checker;

static void visit(checker *c, int32_t pc, int32_t *n)
{
    if (c->seen[pc] == c->walk) return;
    c->seen[pc] = c->walk;
    c->pending[(*n)++] = pc;
}

// Walks from the entry of a rule over all instructions that match no byte. True if it can return without
// text. called: rules met on the way, n_called of them are added; NULL: not wanted.
static bool walk_rule(checker *c, int32_t rule, int32_t *called, int32_t *n_called)
{
    int32_t n = 0;
    bool returns = false;
    c->walk++;
    visit(c, c->t->rules[rule].entry, &n);
    while (n > 0) {
        int32_t pc = c->pending[--n];
        const tn_ginstr *i = &c->g->code[pc];
        c->work++;
        switch ((tn_gop)i->op) {
        case TN_GOP_SPLIT:
            visit(c, i->x, &n);
            visit(c, i->y, &n);
            break;
        case TN_GOP_JUMP:
            visit(c, i->x, &n);
            break;
        case TN_GOP_CALL:
            if (called) called[(*n_called)++] = i->x;
            if (c->t->rules[i->x].nullable) visit(c, pc + 1, &n);
            break;
        case TN_GOP_RETURN:
            returns = true;
            break;
        case TN_GOP_BYTE:
        case TN_GOP_SET:
            break;
        }
    }
    return returns;
}

static tn_status too_much(const checker *c)
{
    return tn_fail(c->g->ctx, TN_ERR_ARG, "%s: too many rules that match nothing; write them simpler",
                   c->t->what);
}

static tn_status find_nullable(checker *c)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = c->t->n_rules - 1; i >= 0; i--) {
            tn_grule *r = &c->t->rules[i];
            if (r->nullable || r->of_class >= 0) continue;
            r->nullable = walk_rule(c, i, NULL, NULL);
            changed |= r->nullable;
            if (c->work > WORK_MAX) return too_much(c);
        }
    }
    return TN_OK;
}

static tn_status recursive(const checker *c, int32_t rule)
{
    const tn_grule *r = &c->t->rules[rule];
    if (!r->name) return tn_fail(c->g->ctx, TN_ERR_ARG, "%s: left recursion within a repetition", c->t->what);
    return tn_grammar_fail(c->t, r->at, "left recursion: %.*s can begin with itself",
                           (int)TN_MIN(r->size, 64), r->name);
}

// Depth first from one rule, with the path in arrays instead of calls.
static tn_status search(checker *c, int32_t rule)
{
    int32_t depth = 0, n_called = 0;
    c->path[0] = rule;
    c->color[rule] = 1;
    c->next[0] = 0;
    walk_rule(c, rule, c->called, &n_called);
    while (depth >= 0) {
        if (c->work > WORK_MAX) return too_much(c);
        if (c->next[depth] == n_called) {
            c->color[c->path[depth]] = 2;
            depth--;
            continue;
        }
        int32_t to = c->called[--n_called];
        if (c->color[to] == 1) return recursive(c, to);
        if (c->color[to] == 2) continue;
        c->color[to] = 1;
        c->path[++depth] = to;
        c->next[depth] = n_called;
        walk_rule(c, to, c->called, &n_called);
    }
    return TN_OK;
}

tn_status tn_grammar_check(tn_gtree *t, const tn_grammar *g)
{
    size_t n_code = (size_t)g->n_code, n_rules = (size_t)t->n_rules;
    checker c = {.t = t, .g = g};
    c.seen = tn_arena_array(t->arena, n_code, sizeof *c.seen);
    c.pending = tn_arena_array(t->arena, n_code, sizeof *c.pending);
    c.color = tn_arena_array(t->arena, n_rules, sizeof *c.color);
    c.path = tn_arena_array(t->arena, n_rules + 1, sizeof *c.path);
    c.called = tn_arena_array(t->arena, n_code + 1, sizeof *c.called);
    c.next = tn_arena_array(t->arena, n_rules + 2, sizeof *c.next);
    if (!c.seen || !c.pending || !c.color || !c.path || !c.called || !c.next) return TN_ERR_MEMORY;
    tn_status status = find_nullable(&c);
    for (int32_t i = 0; i < t->n_rules && status == TN_OK; i++)
        if (c.color[i] == 0) status = search(&c, i);
    return status;
}
