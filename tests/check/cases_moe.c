// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the ops around the experts of a mixture. Which experts are chosen is an integer, and no
// tolerance covers it: values keep apart what may differ in the last bits, or tie exactly.
#include "tests/check/check.h"

#include <math.h>

typedef struct route_shape {
    int64_t n_tokens, n_experts;
    int32_t k, groups, used;
} route_shape;

static const route_shape route_shapes[] = {
    {1, 1, 1, 0, 0},     {3, 8, 2, 0, 0},    {5, 60, 4, 1, 1},    {1, 128, 8, 0, 0},  {17, 128, 8, 0, 0},
    {2, 160, 6, 8, 3},   {3, 256, 8, 8, 4},  {6, 64, 6, 16, 2},   {2, 512, 10, 0, 0}, {9, 257, 33, 0, 0},
    {2, 1000, 40, 0, 0}, {1, 1500, 4, 3, 2}, {1, 4096, 32, 0, 0},
};
static const route_shape route_shapes_quick[] = {
    {1, 128, 8, 0, 0}, {5, 60, 4, 0, 0}, {2, 160, 6, 8, 3}, {1, 1500, 33, 0, 0}};

static void begin_route(check_case *c, const route_shape *s, int32_t form)
{
    check_begin(c, TN_OP_moe_route);
    tn_moe_route_params *p = &c->params.moe_route;
    p->top_k = (tn_top_k_params){s->k, s->groups, s->used};
    p->weights = (tn_moe_weights_params){form % 4, form / 4 % 2, form / 8 % 2 == 0 ? 0.0f : 2.5f};
    p->choice = form % 3;
    p->has_choice_bias = form / 3 % 2;
    snprintf(c->note, sizeof c->note, "k %d, %d of %d groups, gating %d normalise %d, choice %d", s->k,
             s->used, s->groups, p->weights.gating, p->weights.normalise, p->choice);
}

enum { FORMS = 24 };

// From logits.
static void route_case(check_run *run, const route_shape *s, int32_t form)
{
    check_case c;
    begin_route(&c, s, form);
    tn_moe_route_params *p = &c.params.moe_route;
    check_operand *x = check_mat(&c, TN_TYPE_F32, s->n_tokens, s->n_experts);
    bool ties = form % 8 >= 6;
    if (ties) check_range(x, CHECK_TIES, 0, 0);
    // Sums of two probabilities may meet those of other two by rounding only.
    if (ties && s->groups > 1) p->choice = TN_GATING_NONE;
    if (form % 8 == 5 && s->n_experts >= 60)
        check_range(x, CHECK_SPECIAL, 0, 0), x->special = CHECK_ZERO | CHECK_NEG_INF;
    // Weights that are logits keep their sum away from zero.
    if (p->weights.gating == TN_GATING_NONE && !ties) check_range(x, CHECK_NORMAL, 3.0, 0.5);
    if (p->weights.gating == TN_GATING_NONE && ties) p->weights.normalise = 0;
    if (form % 5 == 3) check_strided(x);
    if (p->has_choice_bias)
        check_range(check_vec(&c, TN_TYPE_F32, s->n_experts), ties ? CHECK_TIES : CHECK_NORMAL, 0, 1);
    check_emit(run, &c);
}

// From rows that the router is multiplied with, normed or not. Ties: sums of a handful of different values
// are exact, and so is a norm whose weights are 1.
static void product_case(check_run *run, const route_shape *s, int64_t k, tn_dtype type, int32_t form)
{
    check_case c;
    begin_route(&c, s, form);
    c.type = type;
    tn_moe_route_params *p = &c.params.moe_route;
    bool ties = form % 8 >= 6 && tn_dtype_block_elems(type) == 1;
    p->has_product = 1;
    p->has_bias = form / 2 % 2;
    p->has_norm = form % 2 || form / 4 % 2;
    p->eps = 1e-6f;
    if (p->weights.gating == TN_GATING_NONE) p->weights.normalise = 0;
    check_operand *x = check_mat(&c, TN_TYPE_F32, s->n_tokens, k), *w = check_mat(&c, type, s->n_experts, k);
    w->hi = 1.0 / sqrt((double)k);
    if (ties) check_range(x, CHECK_TIES, 0, 0), check_range(w, CHECK_TIES, 0, 0), p->choice = TN_GATING_NONE;
    if (form % 5 == 3) check_strided(x);
    if (p->has_bias)
        check_range(check_vec(&c, TN_TYPE_F32, s->n_experts), ties ? CHECK_CONST : CHECK_NORMAL, 0, 0.5);
    if (p->has_choice_bias)
        check_range(check_vec(&c, TN_TYPE_F32, s->n_experts), ties ? CHECK_CONST : CHECK_NORMAL, 0, 0.5);
    if (p->has_norm) check_range(check_vec(&c, TN_TYPE_F32, k), ties ? CHECK_CONST : CHECK_NORMAL, 1.0, 0.2);
    check_emit(run, &c);
}

static void products(check_run *run, tn_dtype type)
{
    static const struct {
        route_shape s;
        int64_t k;
    } list[] = {
        {{1, 128, 8, 0, 0}, 2048}, {{1, 32, 4, 0, 0}, 2880},  {{4, 60, 4, 0, 0}, 256}, {{8, 8, 2, 0, 0}, 512},
        {{2, 256, 8, 8, 4}, 768},  {{1, 257, 10, 0, 0}, 256}, {{9, 16, 1, 0, 0}, 512},
    };
    for (size_t i = 0; i < TN_COUNT(list); i++) {
        bool quick = run->options.quick && i > 0;
        for (int32_t form = (int32_t)i; form < (int32_t)i + (quick ? 3 : 8); form++) {
            int64_t k = list[i].k, block = tn_dtype_block_elems(type);
            product_case(run, &list[i].s, (k + block - 1) / block * block, type, form);
        }
    }
    if (tn_dtype_block_elems(type) > 1) return;
    static const int64_t odd[] = {1, 3, 33, 1025, 4098, 8196};
    for (size_t i = 0; i < TN_COUNT(odd); i++)
        product_case(run, &(route_shape){2, 5, 2, 0, 0}, odd[i], type, (int32_t)i);
}

static void cases_moe_route(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    bool quick = run->options.quick;
    const route_shape *list = quick ? route_shapes_quick : route_shapes;
    for (size_t i = 0; i < (quick ? TN_COUNT(route_shapes_quick) : TN_COUNT(route_shapes)); i++)
        for (int32_t form = 0; form < FORMS; form++) route_case(run, &list[i], form);
    static const tn_dtype types[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_K};
    for (size_t i = 0; i < TN_COUNT(types); i++) products(run, types[i]);
}

static void cases_moe_combine(check_run *run, int32_t op)
{
    static const int64_t sizes[] = {1, 7, 33, 64, 257, 1024, 2048, 2880, 5120};
    TN_UNUSED(op);
    for (size_t i = 0; i < TN_COUNT(sizes); i++) {
        for (int32_t form = 0; form < 6; form++) {
            check_case c;
            check_begin(&c, TN_OP_moe_combine);
            c.params.moe_combine = (tn_moe_combine_params){1 + form % 2, form / 2 % 2};
            int64_t n_tokens = form < 2 ? 1 : 5, n_used = form == 0 ? 8 : 1 + form;
            check_operand *x = check_cube(&c, TN_TYPE_F32, n_tokens, n_used, sizes[i]);
            check_operand *w = check_mat(&c, TN_TYPE_F32, n_tokens, n_used);
            if (form == 4) check_strided(x), check_strided(w);
            for (int32_t k = 0; k < c.params.moe_combine.n_added; k++) {
                check_operand *a = check_mat(&c, TN_TYPE_F32, n_tokens, sizes[i]);
                if (form >= 4 && k == form % 2) check_strided(a);
            }
            if (c.params.moe_combine.has_factor) check_mat(&c, TN_TYPE_F32, n_tokens, 1);
            snprintf(c.note, sizeof c.note, "%d added%s", c.params.moe_combine.n_added,
                     c.params.moe_combine.has_factor ? ", factor" : "");
            check_emit(run, &c);
        }
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
    check_size_list s = check_sizes(run);
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

void check_cases_moe(check_run *run, int32_t op)
{
    static const check_cases_fn cases[TN_OP_COUNT] = {
        [TN_OP_top_k] = cases_top_k,
        [TN_OP_moe_weights] = cases_moe_weights,
        [TN_OP_moe_sum] = cases_moe_sum,
        [TN_OP_moe_route] = cases_moe_route,
        [TN_OP_moe_combine] = cases_moe_combine,
    };
    if (cases[op]) cases[op](run, op);
}
