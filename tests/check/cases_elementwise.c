// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of unary, binary and glu.
#include "tests/check/check.h"

#include <math.h>

static void begin_unary(check_case *c, int32_t kind)
{
    check_begin(c, TN_OP_unary);
    c->params.unary = (tn_unary_params){.kind = kind, .a = 0.75f, .b = -0.25f};
    if (kind == TN_UNARY_SOFTCAP) c->params.unary.a = 30.0f;
    if (kind == TN_UNARY_CLAMP) c->params.unary = (tn_unary_params){kind, -0.5f, 0.75f};
    snprintf(c->note, sizeof c->note, "%s", tn_unary_name(kind));
}

// Kinds whose kernels work with a relative error for every argument.
static bool unary_relative(int32_t kind)
{
    return kind == TN_UNARY_AFFINE || kind == TN_UNARY_RELU || kind == TN_UNARY_SQRT ||
           kind == TN_UNARY_SQUARE || kind == TN_UNARY_ABS || kind == TN_UNARY_CLAMP ||
           kind == TN_UNARY_EXP || kind == TN_UNARY_SIGMOID;
}

static void cases_unary_kind(check_run *run, int32_t kind)
{
    // x * sigmoid(x) and its kin are NaN at -inf by their formula, 0 by their limit: left out.
    bool gated = kind == TN_UNARY_SILU || kind == TN_UNARY_GELU || kind == TN_UNARY_GELU_ERF;
    int32_t special = gated ? CHECK_ALL_SPECIAL & ~CHECK_NEG_INF : CHECK_ALL_SPECIAL;
    check_case c;
    for (int32_t form = 0; form < 7; form++) {
        begin_unary(&c, kind);
        check_operand *x = check_mat(&c, TN_TYPE_F32, 3, form == 0 ? 257 : 100);
        if (kind == TN_UNARY_LOG || kind == TN_UNARY_SQRT) check_range(x, CHECK_NORMAL, 5.0, 1.0);
        if (form == 1) check_range(x, CHECK_NORMAL, 0.0, 12.0);
        if (form == 2) check_range(x, CHECK_EXTREME, -30.0, 30.0);
        if (form == 3) check_range(x, CHECK_SPECIAL, 0.0, 0.0);
        if (form == 4) check_strided(x);
        if (form == 5) check_permuted(x, 2, 3);
        x->special = special;
        c.relative = form == 2 && unary_relative(kind);
        c.in_place = form == 6;
        check_emit(run, &c);
    }
}

static void cases_unary(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    check_size_list s = check_sizes(run);
    check_case c;
    for (int32_t kind = 0; kind < TN_UNARY_COUNT; kind++) cases_unary_kind(run, kind);
    for (size_t i = 0; i < s.count; i++) {
        for (int32_t kind = TN_UNARY_AFFINE; kind <= TN_UNARY_GELU; kind++) {
            begin_unary(&c, kind);
            check_mat(&c, TN_TYPE_F32, i % 2 == 0 ? 1 : 5, s.n[i]);
            check_emit(run, &c);
        }
    }
    begin_unary(&c, TN_UNARY_TANH);
    check_strided(check_src(&c, TN_TYPE_F32, 4, (int64_t[]){2, 3, 4, 17}));
    check_emit(run, &c);
}

// Shapes of a and b that broadcast, outermost first.
static const struct {
    int64_t a[4], b[4];
} broadcasts[] = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}},   {{1, 1, 5, 257}, {1, 1, 5, 257}},   {{1, 1, 5, 64}, {1, 1, 1, 64}},
    {{1, 1, 5, 65}, {1, 1, 5, 1}},  {{1, 1, 5, 33}, {1, 1, 1, 1}},      {{1, 1, 1, 31}, {1, 1, 7, 31}},
    {{1, 1, 7, 1}, {1, 1, 1, 96}},  {{2, 3, 4, 17}, {2, 1, 4, 17}},     {{2, 3, 4, 16}, {1, 3, 1, 1}},
    {{1, 3, 4, 32}, {2, 1, 1, 32}}, {{1, 1, 2, 4096}, {1, 1, 2, 4096}}, {{1, 1, 1, 1}, {2, 2, 2, 9}},
};

static void cases_binary_kind(check_run *run, int32_t kind)
{
    check_case c;
    for (size_t i = 0; i < TN_COUNT(broadcasts); i++) {
        for (int32_t form = 0; form < 6; form++) {
            if (form > 0 && i != 1 && i != 2 && i != 7) continue;
            check_begin(&c, TN_OP_binary);
            c.params.binary.kind = kind;
            check_operand *a = check_src(&c, TN_TYPE_F32, 4, broadcasts[i].a);
            check_operand *b = check_src(&c, TN_TYPE_F32, 4, broadcasts[i].b);
            if (form == 1) check_range(a, CHECK_EXTREME, -30, 30), check_range(b, CHECK_EXTREME, -7, 7);
            if (form == 2) check_range(a, CHECK_SPECIAL, 0, 0), check_range(b, CHECK_SPECIAL, 0, 0);
            if (form == 3) check_strided(a), check_strided(b);
            if (form == 4) check_permuted(a, 2, 3), check_permuted(b, 1, 3);
            c.in_place = form == 5;
            c.relative = form == 1;
            snprintf(c.note, sizeof c.note, "kind %d", kind);
            check_emit(run, &c);
        }
    }
}

static void cases_binary(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    check_size_list s = check_sizes(run);
    for (int32_t kind = 0; kind < TN_BINARY_COUNT; kind++) cases_binary_kind(run, kind);
    for (size_t i = 0; i < s.count; i++) {
        for (int32_t form = 0; form < 3; form++) { // same shape, row, column
            check_case c;
            check_begin(&c, TN_OP_binary);
            c.params.binary.kind = form == 0 ? TN_BINARY_ADD : TN_BINARY_MUL;
            check_mat(&c, TN_TYPE_F32, 4, s.n[i]);
            check_mat(&c, TN_TYPE_F32, form == 1 ? 1 : 4, form == 2 ? 1 : s.n[i]);
            check_emit(run, &c);
        }
    }
}

static void cases_glu(check_run *run, int32_t op)
{
    static const int32_t acts[] = {TN_UNARY_SILU,    TN_UNARY_GELU, TN_UNARY_GELU_ERF, TN_UNARY_RELU,
                                   TN_UNARY_SIGMOID, TN_UNARY_TANH, TN_UNARY_SQUARE,   TN_UNARY_SOFTPLUS,
                                   TN_UNARY_AFFINE,  TN_UNARY_CLAMP};
    TN_UNUSED(op);
    check_size_list s = check_sizes(run);
    check_case c;
    for (size_t i = 0; i < s.count + 6 * TN_COUNT(acts); i++) {
        size_t form = i < s.count ? 0 : (i - s.count) / TN_COUNT(acts);
        int64_t n = i < s.count ? s.n[i] : 129;
        check_begin(&c, TN_OP_glu);
        c.params.glu.act = i < s.count ? TN_UNARY_SILU : acts[(i - s.count) % TN_COUNT(acts)];
        check_operand *g = check_mat(&c, TN_TYPE_F32, 3, n), *u = check_mat(&c, TN_TYPE_F32, 3, n);
        if (form == 1) check_strided(g), check_strided(u);
        if (form == 2) c.params.glu = (tn_glu_params){TN_UNARY_SILU, 7.0f, 1.702f}, g->hi = u->hi = 8.0;
        if (form == 3) c.params.glu.limit = 1.5f, g->hi = 3.0;
        if (form == 4) check_range(g, CHECK_EXTREME, -30, 15), check_range(u, CHECK_EXTREME, -7, 7);
        if (form == 5) c.params.glu.alpha = 1.5f;
        c.in_place = form == 5;
        snprintf(c.note, sizeof c.note, "%s limit %g alpha %g", tn_unary_name(c.params.glu.act),
                 (double)c.params.glu.limit, (double)c.params.glu.alpha);
        check_emit(run, &c);
    }
}

void check_cases_elementwise(check_run *run, int32_t op)
{
    static const check_cases_fn cases[TN_OP_COUNT] = {
        [TN_OP_unary] = cases_unary,
        [TN_OP_binary] = cases_binary,
        [TN_OP_glu] = cases_glu,
    };
    if (cases[op]) cases[op](run, op);
}
