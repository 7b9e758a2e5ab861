// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Building cases, and the cases of elementwise ops, row-wise ops and copies.
#include "ops/quant.h"
#include "tests/check/check.h"

#include <math.h>

// Around vector widths, blocks and unrolled loops; model widths.
static const int64_t sizes_full[] = {1,  2,  3,  7,   8,   9,   15,  16,  17,  31,   32,   33,   63,
                                     64, 65, 96, 127, 128, 129, 255, 256, 257, 1000, 2048, 4096, 5120};
static const int64_t sizes_quick[] = {1, 7, 16, 33, 64, 257, 2048};

typedef struct size_list {
    const int64_t *n;
    size_t count;
} size_list;

static size_list sizes(const check_run *run)
{
    if (run->options.quick) return (size_list){sizes_quick, TN_COUNT(sizes_quick)};
    return (size_list){sizes_full, TN_COUNT(sizes_full)};
}

// --- building --------------------------------------------------------------------------------------

void check_begin(check_case *c, int32_t op)
{
    *c = (check_case){.op = op, .type = TN_TYPE_F32};
}

check_operand *check_src(check_case *c, tn_dtype type, int32_t n_dims, const int64_t *shape)
{
    check_operand *o = &c->src[c->n_src++];
    *o = (check_operand){.dtype = type, .n_dims = n_dims, .hi = 1.0};
    for (int32_t d = 0; d < TN_MAX_DIMS; d++) {
        int32_t i = d - (TN_MAX_DIMS - n_dims);
        o->ne[d] = o->parent[d] = i >= 0 ? shape[i] : 1;
        o->axes[d] = d;
    }
    return o;
}

check_operand *check_vec(check_case *c, tn_dtype type, int64_t n)
{
    return check_src(c, type, 1, &n);
}

check_operand *check_mat(check_case *c, tn_dtype type, int64_t m, int64_t n)
{
    return check_src(c, type, 2, (int64_t[]){m, n});
}

check_operand *check_cube(check_case *c, tn_dtype type, int64_t a, int64_t b, int64_t n)
{
    return check_src(c, type, 3, (int64_t[]){a, b, n});
}

void check_absent(check_case *c)
{
    c->src[c->n_src++] = (check_operand){0};
}

void check_strided(check_operand *o)
{
    int64_t unit = tn_dtype_block_elems(o->dtype) > 1 ? tn_dtype_block_elems(o->dtype) : 3;
    o->parent[3] += 3 * unit;
    o->start[3] = unit;
}

void check_permuted(check_operand *o, int32_t a, int32_t b)
{
    int64_t n = o->parent[a];
    o->parent[a] = o->parent[b];
    o->parent[b] = n;
    o->axes[a] = b;
    o->axes[b] = a;
}

void check_range(check_operand *o, check_fill fill, double lo, double hi)
{
    o->fill = fill;
    o->lo = lo;
    o->hi = hi;
    o->special = CHECK_ALL_SPECIAL;
}

// --- elementwise -----------------------------------------------------------------------------------

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
    size_list s = sizes(run);
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
    size_list s = sizes(run);
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
                                   TN_UNARY_SIGMOID, TN_UNARY_TANH, TN_UNARY_SQUARE, TN_UNARY_SOFTPLUS,
                                   TN_UNARY_AFFINE,  TN_UNARY_CLAMP};
    TN_UNUSED(op);
    size_list s = sizes(run);
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

// --- rows ------------------------------------------------------------------------------------------

static void cases_reduce(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    size_list s = sizes(run);
    for (int32_t kind = 0; kind < TN_REDUCE_COUNT; kind++) {
        for (size_t i = 0; i < s.count + 3; i++) {
            check_case c;
            check_begin(&c, TN_OP_reduce);
            c.params.reduce.kind = kind;
            check_operand *x = check_cube(&c, TN_TYPE_F32, 2, 3, i < s.count ? s.n[i] : 100);
            if (i == s.count) check_range(x, CHECK_EXTREME, -30, 30);
            if (i == s.count + 1) check_range(x, CHECK_SPECIAL, 0, 0);
            if (i == s.count + 2) check_strided(x);
            snprintf(c.note, sizeof c.note, "kind %d", kind);
            check_emit(run, &c);
        }
    }
}

static void cases_softmax(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    size_list s = sizes(run);
    for (size_t i = 0; i < s.count; i++) {
        for (int32_t form = 0; form < 9; form++) {
            if (form > 2 && s.n[i] != 257 && s.n[i] != 64) continue;
            check_case c;
            check_begin(&c, TN_OP_softmax);
            c.params.softmax.scale = form == 1 ? 0.125f : 0.0f;
            check_operand *x = check_cube(&c, TN_TYPE_F32, 2, 3, s.n[i]);
            x->hi = form == 1 ? 20.0 : 2.0;
            if (form == 3) check_range(x, CHECK_EXTREME, -30, 30);
            if (form == 4)
                check_range(x, CHECK_SPECIAL, 0, 0), x->special = CHECK_ZERO | CHECK_NEG_INF | CHECK_NAN;
            if (form == 5) check_range(x, CHECK_CONST, -(double)INFINITY, 0);
            if (form == 6) check_strided(x);
            if (form == 2) check_range(check_cube(&c, TN_TYPE_F32, 2, 3, s.n[i]), CHECK_MASK, 0, 0);
            if (form == 7) check_range(check_vec(&c, TN_TYPE_F32, s.n[i]), CHECK_MASK, 0, 0);
            if (form == 8) check_strided(check_cube(&c, TN_TYPE_F32, 2, 1, s.n[i]));
            check_emit(run, &c);
        }
    }
}

static void cases_argmax(check_run *run, int32_t op)
{
    static const struct {
        check_fill fill;
        double lo, hi;
    } fills[] = {{CHECK_NORMAL, 0, 1},
                 {CHECK_TIES, 0, 0},
                 {CHECK_SPECIAL, 0, 0},
                 {CHECK_EXTREME, -30, 30},
                 {CHECK_CONST, -(double)INFINITY, 0}};
    size_list s = sizes(run);
    for (size_t i = 0; i < s.count * TN_COUNT(fills) + 2; i++) {
        check_case c;
        check_begin(&c, op);
        bool big = i >= s.count * TN_COUNT(fills);
        check_operand *x = check_mat(&c, TN_TYPE_F32, big ? 1 : 3, big ? 50257 : s.n[i % s.count]);
        if (!big) check_range(x, fills[i / s.count].fill, fills[i / s.count].lo, fills[i / s.count].hi);
        if (i % 5 == 4) check_strided(x);
        check_emit(run, &c);
    }
}

static void cases_top_k(check_run *run, int32_t op)
{
    static const struct {
        int64_t n;
        int32_t k, groups, used;
    } shapes[] = {{1, 1, 0, 0},   {2, 2, 0, 0},   {8, 2, 0, 0},     {31, 31, 0, 0},  {33, 5, 1, 1},
                  {64, 8, 8, 4},  {60, 6, 4, 1},  {128, 8, 0, 0},   {255, 40, 0, 0}, {256, 8, 8, 4},
                  {256, 8, 8, 8}, {160, 6, 8, 3}, {1000, 64, 0, 0}, {4096, 40, 0, 0}};
    TN_UNUSED(op);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        for (int32_t form = 0; form < 5; form++) {
            check_case c;
            check_begin(&c, TN_OP_top_k);
            c.params.top_k = (tn_top_k_params){shapes[i].k, shapes[i].groups, shapes[i].used};
            check_operand *x = check_mat(&c, TN_TYPE_F32, 5, shapes[i].n);
            if (form == 1) check_range(x, CHECK_TIES, 0, 0);
            if (form == 2)
                check_range(x, CHECK_SPECIAL, 0, 0), x->special = CHECK_ZERO | CHECK_NEG_INF | CHECK_NAN;
            if (form == 3) check_strided(x);
            if (form >= 3)
                check_range(check_vec(&c, TN_TYPE_F32, shapes[i].n), form == 3 ? CHECK_NORMAL : CHECK_TIES, 0,
                            1);
            if (form == 4) check_range(x, CHECK_TIES, 0, 0);
            snprintf(c.note, sizeof c.note, "k %d, %d of %d groups", shapes[i].k, shapes[i].used,
                     shapes[i].groups);
            check_emit(run, &c);
        }
    }
}

// rms_norm, layer_norm, add_rms_norm: x (a, b), then the optional vectors.
static void norm_case(check_run *run, int32_t op, int64_t n, int32_t form)
{
    check_case c;
    check_begin(&c, op);
    float eps = form % 2 == 0 ? 1e-6f : 1e-5f;
    int32_t n_x = op == TN_OP_add_rms_norm ? 2 : 1;
    if (op == TN_OP_rms_norm) c.params.rms_norm.eps = eps;
    if (op == TN_OP_layer_norm) c.params.layer_norm.eps = eps;
    if (op == TN_OP_add_rms_norm) c.params.add_rms_norm.eps = eps;
    for (int32_t i = 0; i < n_x; i++) {
        check_operand *x = form == 3 ? check_src(&c, TN_TYPE_F32, 4, (int64_t[]){2, 3, 2, n})
                                     : check_mat(&c, TN_TYPE_F32, 3, n);
        if (form == 3) check_strided(x);
        // Squares have to stay finite and normal in f32.
        if (form == 4) check_range(x, CHECK_EXTREME, -15, 15);
        if (form == 5) check_range(x, CHECK_CONST, 0, 0);
        if (form == 6) check_range(x, CHECK_NORMAL, 100.0, 1.0);
        if (form == 7) check_range(x, CHECK_SPECIAL, 0, 0);
    }
    if (form != 1)
        check_range(check_vec(&c, TN_TYPE_F32, n), CHECK_NORMAL, 1.0, 0.2);
    else if (op == TN_OP_layer_norm)
        check_absent(&c);
    if (op == TN_OP_layer_norm && form <= 1) check_vec(&c, TN_TYPE_F32, n);
    c.in_place = op == TN_OP_add_rms_norm && form == 2;
    check_emit(run, &c);
}

static void cases_norm(check_run *run, int32_t op)
{
    size_list s = sizes(run);
    for (size_t i = 0; i < s.count; i++)
        for (int32_t form = 0; form < 8; form++)
            if (form < 2 || s.n[i] == 257 || s.n[i] == 64) norm_case(run, op, s.n[i], form);
}

static void cases_moe_weights(check_run *run, int32_t op)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {3, 8, 2}, {5, 60, 4}, {17, 128, 8}, {2, 257, 33}}; // T, E, U
    TN_UNUSED(op);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        for (int32_t form = 0; form < 16; form++) {
            check_case c;
            check_begin(&c, TN_OP_moe_weights);
            c.params.moe_weights =
                (tn_moe_weights_params){form % 4, form / 4 % 2, form / 8 == 0 ? 0.0f : 2.5f};
            check_operand *x = check_mat(&c, TN_TYPE_F32, shapes[i][0], shapes[i][1]);
            x->hi = 2.0;
            if (form % 4 == TN_GATING_NONE) check_range(x, CHECK_NORMAL, 0.5, 0.1);
            if (form >= 8) check_strided(x);
            // An id outside has no weight; with ids alone outside there is nothing to choose.
            double lo = form >= 12 && shapes[i][2] > 4 && form % 4 != TN_GATING_NONE ? -1.0 : 0.0;
            check_range(check_mat(&c, TN_TYPE_I32, shapes[i][0], shapes[i][2]), CHECK_INT, lo,
                        (double)shapes[i][1] - 1);
            snprintf(c.note, sizeof c.note, "gating %d normalise %d", form % 4, form / 4 % 2);
            check_emit(run, &c);
        }
    }
}

static void cases_moe_sum(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    size_list s = sizes(run);
    for (size_t i = 0; i < s.count; i++) {
        for (int32_t form = 0; form < 3; form++) {
            check_case c;
            check_begin(&c, TN_OP_moe_sum);
            int64_t n_tokens = form == 0 ? 1 : 5, n_used = form == 0 ? 8 : 2 + form;
            check_operand *x = check_cube(&c, TN_TYPE_F32, n_tokens, n_used, s.n[i]);
            check_operand *w = check_mat(&c, TN_TYPE_F32, n_tokens, n_used);
            if (form == 2) check_strided(x), check_strided(w);
            check_emit(run, &c);
        }
    }
}

// --- moving ----------------------------------------------------------------------------------------

static void copy_case(check_run *run, tn_dtype from, tn_dtype to, int64_t n, int32_t form)
{
    check_case c;
    check_begin(&c, TN_OP_copy);
    c.type = from;
    c.params.copy.dtype = to;
    check_operand *x = check_cube(&c, from, 2, 3, n);
    if (from == TN_TYPE_I32) check_range(x, CHECK_INT, -1e9, 1e9);
    if (form == 1) check_strided(x);
    if (form == 2) check_permuted(x, 1, 2);
    if (form == 3) check_permuted(x, 1, 3);
    if (form == 4) check_range(x, CHECK_SPECIAL, 0, 0);
    if (form == 5) check_range(x, CHECK_EXTREME, -8, 8); // under- and overflows f16
    snprintf(c.note, sizeof c.note, "to %s", tn_dtype_name(to));
    check_emit(run, &c);
}

static void cases_copy(check_run *run, int32_t op)
{
    static const tn_dtype to[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16};
    TN_UNUSED(op);
    size_list s = sizes(run);
    for (size_t i = 0; i < s.count; i++) copy_case(run, TN_TYPE_F32, to[i % 3], s.n[i], 0);
    for (tn_dtype from = 0; from < TN_TYPE_COUNT; from++) {
        int64_t block = tn_dtype_block_elems(from);
        bool plain = from == TN_TYPE_F32 || from == TN_TYPE_F16 || from == TN_TYPE_BF16;
        if (!tn_quant_info_get(from)->to_f32) continue;
        for (size_t t = 0; t < TN_COUNT(to); t++) {
            tn_dtype dst = from == TN_TYPE_I32 ? TN_TYPE_I32 : to[t];
            for (int32_t form = 0; form < (plain ? 6 : block > 1 ? 3 : 4); form++)
                copy_case(run, from, dst, block > 1 ? 2 * block : form % 2 == 0 ? 100 : 33, form);
        }
    }
}

static void cases_concat(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    size_list s = sizes(run);
    for (size_t i = 0; i < s.count; i++) {
        for (int32_t axis = 0; axis < 4; axis++) {
            for (int32_t form = 0; form < 3; form++) {
                check_case c;
                check_begin(&c, TN_OP_concat);
                c.params.concat.axis = axis;
                c.type = form == 1 ? TN_TYPE_I32 : TN_TYPE_F32;
                int64_t shape[4] = {1, 2, 3, TN_MIN(s.n[i], 300)};
                check_operand *a = check_src(&c, c.type, 4, shape);
                shape[axis] += 2;
                check_operand *b = check_src(&c, c.type, 4, shape);
                check_range(a, form == 1 ? CHECK_INT : CHECK_SPECIAL, -1e9, 1e9);
                if (form == 1) check_range(b, CHECK_INT, -5, 5);
                if (form == 2) check_strided(a), check_permuted(b, 1, 2);
                check_emit(run, &c);
            }
        }
    }
}

static void get_rows_case(check_run *run, tn_dtype type, int64_t k, int32_t form)
{
    check_case c;
    check_begin(&c, TN_OP_get_rows);
    c.type = type;
    c.params.get_rows.scale = form == 1 ? 45.25f : 0.0f;
    check_operand *table = check_weight(&c, type, 0, 11, k);
    table->random_blocks = form == 1;
    if (form == 2) check_strided(table);
    check_operand *ids =
        form == 2 ? check_cube(&c, TN_TYPE_I32, 2, 2, 3) : check_vec(&c, TN_TYPE_I32, form == 0 ? 1 : 7);
    check_range(ids, CHECK_INT, form == 1 ? -2 : 0, form == 1 ? 13 : 10);
    check_emit(run, &c);
}

static void cases_get_rows(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        if (!tn_quant_info_get(type)->to_f32) continue;
        int64_t block = tn_dtype_block_elems(type);
        for (int32_t form = 0; form < 3; form++) {
            get_rows_case(run, type, block, form);
            get_rows_case(run, type, block == 1 ? 257 : 3 * block, form);
        }
        get_rows_case(run, type, 2048, 1);
    }
}

// --- table -----------------------------------------------------------------------------------------

static void (*const generators[TN_OP_COUNT])(check_run *run, int32_t op) = {
    [TN_OP_copy] = cases_copy,
    [TN_OP_concat] = cases_concat,
    [TN_OP_unary] = cases_unary,
    [TN_OP_binary] = cases_binary,
    [TN_OP_reduce] = cases_reduce,
    [TN_OP_softmax] = cases_softmax,
    [TN_OP_argmax] = cases_argmax,
    [TN_OP_argmax_logprob] = cases_argmax,
    [TN_OP_top_k] = cases_top_k,
    [TN_OP_get_rows] = cases_get_rows,
    [TN_OP_rms_norm] = cases_norm,
    [TN_OP_layer_norm] = cases_norm,
    [TN_OP_add_rms_norm] = cases_norm,
    [TN_OP_glu] = cases_glu,
    [TN_OP_rope] = check_cases_rope,
    [TN_OP_norm_rope] = check_cases_rope,
    [TN_OP_cache_write] = check_cases_cache_write,
    [TN_OP_rope_cache] = check_cases_rope_cache,
    [TN_OP_attention] = check_cases_attention,
    [TN_OP_matmul] = check_cases_matmul,
    [TN_OP_matmul_id] = check_cases_matmul,
    [TN_OP_linear] = check_cases_matmul,
    [TN_OP_matmul_multi] = check_cases_matmul,
    [TN_OP_matmul_glu] = check_cases_matmul,
    [TN_OP_matmul_id_glu] = check_cases_matmul,
    [TN_OP_moe_weights] = cases_moe_weights,
    [TN_OP_moe_sum] = cases_moe_sum,
    [TN_OP_moe_route] = check_cases_moe_route,
    [TN_OP_moe_combine] = check_cases_moe_combine,
    [TN_OP_short_conv] = check_cases_short_conv,
    [TN_OP_delta_rule] = check_cases_delta_rule,
};

bool check_op_has_cases(int32_t op)
{
    return !(tn_op_info_get(op)->flags & TN_OP_VIEW) && op != TN_OP_transfer;
}

void check_cases(check_run *run, int32_t op)
{
    if (generators[op]) {
        generators[op](run, op);
        return;
    }
    printf("FAIL %s: the op has no cases\n", tn_op_name(op));
    run->n_failed++;
}
