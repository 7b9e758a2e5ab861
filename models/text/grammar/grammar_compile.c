// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The tree of a grammar to a program over bytes, in the manner of Thompson 1968 with calls for rules. An item
// that is repeated becomes a rule of its own, so that {m,n} costs only calls: one or two instructions per
// repetition.
#include "models/text/grammar/grammar_impl.h"

#include <string.h>

enum { NO_TARGET = -1, COUNTED_MIN = 8 };

// A counted repetition in the program: min items of one instruction each, then n_more, each behind a SPLIT.
typedef struct counted {
    int32_t start, min, n_more;
} counted;

typedef struct compiler {
    tn_gtree *t;
    tn_grammar *g;
    counted *counted; // in the arena
    int32_t n_counted, counted_capacity;
} compiler;

static tn_status emit(compiler *c, tn_ginstr instr)
{
    tn_grammar *g = c->g;
    if (g->n_code >= TN_GRAMMAR_STATES_MAX)
        return tn_fail(g->ctx, TN_ERR_ARG, "%s: the grammar needs more than %d states; repeat less",
                       c->t->what, (int)TN_GRAMMAR_STATES_MAX);
    g->code[g->n_code++] = instr;
    return TN_OK;
}

static tn_status emit_node(compiler *c, const tn_gnode *node);

// --- classes -----------------------------------------------------------------------------------------

static size_t encode(uint32_t cp, uint8_t out[4])
{
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6) out[i] = (uint8_t)(0x80 | (cp & 0x3f));
    out[0] = (uint8_t)(leads[n] | cp);
    return n;
}

// One alternative of a class: bytes within the bounds, place by place.
static tn_status emit_byte_ranges(compiler *c, tn_grange r)
{
    uint8_t lo[4], hi[4];
    size_t n = encode(r.lo, lo);
    encode(r.hi, hi);
    int32_t split = c->g->n_code;
    tn_status status = emit(c, (tn_ginstr){.op = TN_GOP_SPLIT, .x = split + 1});
    for (size_t i = 0; i < n && status == TN_OK; i++)
        status = emit(c, (tn_ginstr){.op = TN_GOP_BYTE, .lo = lo[i], .hi = hi[i]});
    if (status == TN_OK) status = emit(c, (tn_ginstr){.op = TN_GOP_RETURN});
    if (status == TN_OK) c->g->code[split].y = c->g->n_code;
    return status;
}

// Cuts a range of code points where lengths or leading bytes change, so that all bytes vary freely.
static tn_status emit_range(compiler *c, tn_grange r)
{
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
    tn_status status = TN_OK;
    while (r.lo <= r.hi && status == TN_OK) {
        uint32_t hi = r.hi;
        size_t n = 0;
        while (r.lo > ends[n]) n++;
        hi = TN_MIN(hi, ends[n]);
        for (size_t i = 1; i <= n; i++) {
            uint32_t low_bits = (1u << (6 * i)) - 1;
            if ((r.lo & ~low_bits) == (hi & ~low_bits)) continue;
            if (r.lo & low_bits)
                hi = r.lo | low_bits;
            else if ((hi & low_bits) != low_bits)
                hi = (hi & ~low_bits) - 1;
        }
        status = emit_byte_ranges(c, (tn_grange){r.lo, hi});
        r.lo = hi + 1;
    }
    return status;
}

// A class with characters beyond ASCII: a rule of alternatives, ended by an empty set.
static tn_status emit_class_rule(compiler *c, const tn_gclass *class)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < class->n && status == TN_OK; i++) status = emit_range(c, class->ranges[i]);
    return status == TN_OK ? emit(c, (tn_ginstr){.op = TN_GOP_BYTE, .lo = 1, .hi = 0}) : status;
}

static tn_status emit_class(compiler *c, int32_t index)
{
    const tn_gclass *class = &c->t->classes[index];
    if (class->set < 0) return emit(c, (tn_ginstr){.op = TN_GOP_CALL, .x = class->rule});
    if (class->n == 1)
        return emit(c, (tn_ginstr){.op = TN_GOP_BYTE,
                                   .lo = (uint8_t) class->ranges[0].lo,
                                   .hi = (uint8_t) class->ranges[0].hi});
    return emit(c, (tn_ginstr){.op = TN_GOP_SET, .x = class->set});
}

static void fill_sets(const tn_gtree *t, tn_grammar *g)
{
    for (int32_t i = 0; i < t->n_classes; i++) {
        const tn_gclass *class = &t->classes[i];
        for (int32_t k = 0; class->set >= 0 && k < class->n; k++)
            for (uint32_t b = class->ranges[k].lo; b <= class->ranges[k].hi; b++)
                g->sets[class->set].bits[b / 64] |= (uint64_t)1 << (b % 64);
    }
}

// --- nodes -------------------------------------------------------------------------------------------

static tn_status emit_choice(compiler *c, const tn_gnode *node)
{
    int32_t jumps = NO_TARGET; // a list of jumps to the end, linked through x
    tn_status status = TN_OK;
    for (const tn_gnode *k = node->first; k && status == TN_OK; k = k->next) {
        int32_t split = c->g->n_code;
        if (!k->next) {
            status = emit_node(c, k);
            break;
        }
        status = emit(c, (tn_ginstr){.op = TN_GOP_SPLIT, .x = split + 1});
        if (status == TN_OK) status = emit_node(c, k);
        if (status == TN_OK) status = emit(c, (tn_ginstr){.op = TN_GOP_JUMP, .x = jumps});
        if (status != TN_OK) break;
        jumps = c->g->n_code - 1;
        c->g->code[split].y = c->g->n_code;
    }
    while (status == TN_OK && jumps != NO_TARGET) {
        int32_t next = c->g->code[jumps].x;
        c->g->code[jumps].x = c->g->n_code;
        jumps = next;
    }
    return status;
}

static bool is_short(const tn_gnode *node)
{
    while ((node->kind == TN_G_SEQUENCE || node->kind == TN_G_CHOICE) && node->first && !node->first->next)
        node = node->first;
    return node->kind == TN_G_CLASS || node->kind == TN_G_RULE ||
           (node->kind == TN_G_BYTES && node->n_bytes <= 1);
}

static tn_status emit_once(compiler *c, const tn_gnode *node, int32_t rule)
{
    return rule < 0 ? emit_node(c, node) : emit(c, (tn_ginstr){.op = TN_GOP_CALL, .x = rule});
}

// For a small number of repetitions a rule of its own would not save instructions.
static tn_status note_counted(compiler *c, counted r)
{
    if (r.min < COUNTED_MIN && r.n_more < COUNTED_MIN) return TN_OK;
    if (c->n_counted == c->counted_capacity) {
        int32_t capacity = TN_MAX(16, 2 * c->counted_capacity);
        counted *more = tn_arena_array(c->t->arena, (size_t)capacity, sizeof *more);
        if (!more) return TN_ERR_MEMORY;
        if (c->n_counted > 0) memcpy(more, c->counted, (size_t)c->n_counted * sizeof *more);
        c->counted = more;
        c->counted_capacity = capacity;
    }
    c->counted[c->n_counted++] = r;
    return TN_OK;
}

static tn_status emit_repeat(compiler *c, const tn_gnode *node)
{
    tn_gnode *item = node->first;
    int32_t n = node->max < 0 ? node->min + 1 : node->max, rule = -1, splits = NO_TARGET,
            start = c->g->n_code;
    tn_status status = TN_OK;
    if (n > 1 && !is_short(item)) {
        status = tn_grammar_add_rule(c->t, NULL, 0, c->t->text, &rule);
        if (status == TN_OK) c->t->rules[rule].body = item;
    }
    for (int32_t i = 0; i < node->min && status == TN_OK; i++) status = emit_once(c, item, rule);
    if (node->max < 0 && status == TN_OK) {
        int32_t loop = c->g->n_code;
        status = emit(c, (tn_ginstr){.op = TN_GOP_SPLIT, .x = loop + 1});
        if (status == TN_OK) status = emit_once(c, item, rule);
        if (status == TN_OK) status = emit(c, (tn_ginstr){.op = TN_GOP_JUMP, .x = loop});
        if (status == TN_OK) c->g->code[loop].y = c->g->n_code;
        if (status == TN_OK && loop == start + node->min)
            status = note_counted(c, (counted){start, node->min, 0});
        return status;
    }
    for (int32_t i = node->min; i < node->max && status == TN_OK; i++) {
        int32_t split = c->g->n_code;
        status = emit(c, (tn_ginstr){.op = TN_GOP_SPLIT, .x = split + 1, .y = splits});
        splits = split;
        if (status == TN_OK) status = emit_once(c, item, rule);
    }
    while (status == TN_OK && splits != NO_TARGET) {
        int32_t next = c->g->code[splits].y;
        c->g->code[splits].y = c->g->n_code;
        splits = next;
    }
    int32_t n_more = node->max - node->min;
    bool single = c->g->n_code == start + node->min + 2 * n_more; // an empty literal has no instruction
    return status == TN_OK && single ? note_counted(c, (counted){start, node->min, n_more}) : status;
}

static tn_status emit_node(compiler *c, const tn_gnode *node)
{
    tn_status status = TN_OK;
    switch (node->kind) {
    case TN_G_BYTES:
        for (size_t i = 0; i < node->n_bytes && status == TN_OK; i++) {
            uint8_t b = (uint8_t)node->bytes[i];
            status = emit(c, (tn_ginstr){.op = TN_GOP_BYTE, .lo = b, .hi = b});
        }
        return status;
    case TN_G_CLASS:
        return emit_class(c, node->index);
    case TN_G_RULE:
        return emit(c, (tn_ginstr){.op = TN_GOP_CALL, .x = node->index});
    case TN_G_SEQUENCE:
        for (const tn_gnode *k = node->first; k && status == TN_OK; k = k->next) status = emit_node(c, k);
        return status;
    case TN_G_CHOICE:
        return emit_choice(c, node);
    case TN_G_REPEAT:
        return emit_repeat(c, node);
    }
    return TN_ERR_INTERNAL;
}

// Calls of rules become calls of instructions. A call at the end of a rule needs no return address.
static void link_calls(const tn_gtree *t, tn_grammar *g)
{
    for (int32_t i = 0; i < g->n_code; i++) {
        if (g->code[i].op != TN_GOP_CALL) continue;
        g->code[i].x = t->rules[g->code[i].x].entry;
        int32_t next = i + 1;
        for (int32_t k = 0; k < 64 && g->code[next].op == TN_GOP_JUMP; k++) next = g->code[next].x;
        g->code[i].tail = g->code[next].op == TN_GOP_RETURN;
    }
    g->entry = t->rules[t->root].entry;
}

// Must come before calls of rules are linked.
static bool takes_nothing(const tn_gtree *t, const tn_ginstr *item)
{
    return item->op == TN_GOP_CALL && t->rules[item->x].nullable;
}

// A byte ends at most one item, so with fewer bytes than remaining items a text does not reach the last one.
static tn_status mark_counted(const compiler *c)
{
    tn_grammar *g = c->g;
    if (c->n_counted == 0) return TN_OK;
    g->counts = tn_alloc(g->ctx, (size_t)g->n_code * sizeof *g->counts);
    if (!g->counts) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_code; i++) g->counts[i] = (tn_gcount){i, INT32_MAX};
    for (int32_t k = 0; k < c->n_counted; k++) {
        counted r = c->counted[k];
        int32_t more = r.start + r.min;
        if (takes_nothing(c->t, &g->code[r.min > 0 ? r.start : more + 1])) continue;
        for (int32_t i = 0; i < r.min; i++) g->counts[r.start + i] = (tn_gcount){r.start, r.min - i};
        for (int32_t i = 0; i < 2 * r.n_more; i++)
            g->counts[more + i] = (tn_gcount){more + i % 2, r.n_more - i / 2};
    }
    return TN_OK;
}

tn_status tn_grammar_compile(tn_gtree *t, tn_grammar *g)
{
    compiler c = {.t = t, .g = g};
    tn_status status = TN_OK;
    g->n_sets = t->n_sets;
    g->sets = tn_calloc(g->ctx, (size_t)t->n_sets, sizeof *g->sets);
    g->code = tn_calloc(g->ctx, TN_GRAMMAR_STATES_MAX, sizeof *g->code);
    if (!g->sets || !g->code) return TN_ERR_MEMORY;
    fill_sets(t, g);
    for (int32_t i = 0; i < t->n_rules && status == TN_OK; i++) { // repetitions add rules
        int32_t class = t->rules[i].of_class;
        t->rules[i].entry = g->n_code;
        status = class >= 0 ? emit_class_rule(&c, &t->classes[class]) : emit_node(&c, t->rules[i].body);
        if (status == TN_OK) status = emit(&c, (tn_ginstr){.op = TN_GOP_RETURN});
    }
    if (status == TN_OK) status = tn_grammar_check(t, g);
    if (status == TN_OK) status = mark_counted(&c);
    if (status != TN_OK) return status;
    link_calls(t, g);
    tn_ginstr *fitting = tn_alloc(g->ctx, (size_t)g->n_code * sizeof *g->code);
    if (!fitting) return TN_ERR_MEMORY;
    memcpy(fitting, g->code, (size_t)g->n_code * sizeof *g->code);
    tn_free(g->ctx, g->code);
    g->code = fitting;
    return TN_OK;
}

// --- life --------------------------------------------------------------------------------------------

tn_status tn_grammar_create(tn_context *ctx, const char *what, const char *gbnf, size_t n, tn_grammar **out)
{
    if (n > TN_GRAMMAR_SIZE_MAX)
        return tn_fail(ctx, TN_ERR_ARG, "%s: %zu bytes, at most %d are taken", what, n,
                       (int)TN_GRAMMAR_SIZE_MAX);
    tn_arena arena;
    tn_grammar *g = tn_calloc(ctx, 1, sizeof *g);
    if (!g) return TN_ERR_MEMORY;
    g->ctx = ctx;
    tn_arena_init(&arena, ctx);
    tn_gtree t = {.arena = &arena, .what = what, .text = gbnf, .n = n};
    tn_status status = tn_grammar_parse(&t);
    if (status == TN_OK) status = tn_grammar_compile(&t, g);
    tn_arena_fini(&arena);
    if (status != TN_OK)
        tn_grammar_destroy(&g);
    else
        *out = g;
    return status;
}

void tn_grammar_destroy(tn_grammar **grammar)
{
    if (!grammar || !*grammar) return;
    tn_grammar *g = *grammar;
    tn_free(g->ctx, g->code);
    tn_free(g->ctx, g->counts);
    tn_free(g->ctx, g->sets);
    tn_free(g->ctx, g);
    *grammar = NULL;
}
