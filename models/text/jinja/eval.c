// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Expressions to values.
#include "models/text/jinja/jinja_impl.h"

enum { SCOPE_WORK = 16 }; // bytes of work that looking into one scope counts for

// --- names -------------------------------------------------------------------------------------------------

value tn_jj_lookup_name(tn_jj *j, value name)
{
    value v;
    for (tn_jj_scope *s = j->scope; s; s = s->parent) {
        if (!tn_jj_work(j, SCOPE_WORK)) return tn_jj_undefined();
        if (tn_jj_lookup(j, &s->names, name, &v)) return v;
    }
    const tn_jj_function *row = tn_jj_find_function(j, name.u.s);
    return row ? (value){.kind = JJ_FUNCTION, .u.function = row} : tn_jj_missing(name.u.s);
}

static value eval_const(tn_jj *j, const tn_jj_node *n)
{
    (void)j;
    return n->value;
}

static value eval_name(tn_jj *j, const tn_jj_node *n)
{
    return tn_jj_lookup_name(j, n->value);
}

// --- literals ----------------------------------------------------------------------------------------------

static value eval_list(tn_jj *j, const tn_jj_node *n)
{
    value list = tn_jj_sized(j, n->kind == N_LIST ? JJ_LIST : JJ_TUPLE, 0);
    for (const tn_jj_node *item = n->a; item && j->status == TN_OK; item = item->next)
        tn_jj_append(j, list, tn_jj_eval(j, item));
    return list;
}

static value eval_dict(tn_jj *j, const tn_jj_node *n)
{
    value dict = tn_jj_dict(j);
    for (const tn_jj_node *pair = n->a; pair && j->status == TN_OK; pair = pair->next) {
        value key = tn_jj_eval(j, pair->a), v = tn_jj_eval(j, pair->b);
        if (dict.kind == JJ_DICT) tn_jj_set(j, dict.u.dict, key, v);
    }
    return dict;
}

// --- operators ---------------------------------------------------------------------------------------------

static value eval_unary(tn_jj *j, const tn_jj_node *n)
{
    value v = tn_jj_eval(j, n->a);
    int64_t i;
    j->pos = n->pos;
    if (v.kind == JJ_FLOAT) return tn_jj_float(n->op == OP_SUB ? -v.u.f : v.u.f);
    if (tn_jj_integer(v, &i)) return tn_jj_binary(j, n->op, tn_jj_int(0), tn_jj_int(i));
    if (v.kind == JJ_UNDEFINED) tn_jj_refuse(j, v);
    return tn_jj_error(j, "a sign in front of '%s'", tn_jj_kind_name(v));
}

static value eval_binary(tn_jj *j, const tn_jj_node *n)
{
    value a = tn_jj_eval(j, n->a), b = tn_jj_eval(j, n->b);
    j->pos = n->pos;
    return j->status == TN_OK ? tn_jj_binary(j, n->op, a, b) : tn_jj_undefined();
}

static value eval_and(tn_jj *j, const tn_jj_node *n)
{
    value a = tn_jj_eval(j, n->a);
    return tn_jj_truth(a) ? tn_jj_eval(j, n->b) : a;
}

static value eval_or(tn_jj *j, const tn_jj_node *n)
{
    value a = tn_jj_eval(j, n->a);
    return tn_jj_truth(a) ? a : tn_jj_eval(j, n->b);
}

static value eval_not(tn_jj *j, const tn_jj_node *n)
{
    return tn_jj_bool(!tn_jj_truth(tn_jj_eval(j, n->a)));
}

static value eval_compare(tn_jj *j, const tn_jj_node *n)
{
    value left = tn_jj_eval(j, n->a);
    bool holds = true;
    for (const tn_jj_node *o = n->b; o && holds && j->status == TN_OK; o = o->next) {
        value right = tn_jj_eval(j, o->a);
        j->pos = n->pos;
        holds = j->status == TN_OK && tn_jj_compare_op(j, o->op, left, right);
        left = right;
    }
    return tn_jj_bool(holds);
}

static value eval_if(tn_jj *j, const tn_jj_node *n)
{
    if (tn_jj_truth(tn_jj_eval(j, n->b))) return tn_jj_eval(j, n->a);
    return n->c ? tn_jj_eval(j, n->c) : tn_jj_undefined();
}

// --- members -----------------------------------------------------------------------------------------------

static value eval_attr(tn_jj *j, const tn_jj_node *n)
{
    value v = tn_jj_eval(j, n->a);
    j->pos = n->pos;
    return j->status == TN_OK ? tn_jj_attr(j, v, n->value) : tn_jj_undefined();
}

static value eval_item(tn_jj *j, const tn_jj_node *n)
{
    value v = tn_jj_eval(j, n->a);
    if (n->b->kind == N_SLICE) {
        const tn_jj_node *parts[] = {n->b->a, n->b->b, n->b->c};
        value part[3];
        for (int i = 0; i < 3; i++) part[i] = parts[i] ? tn_jj_eval(j, parts[i]) : tn_jj_none();
        j->pos = n->pos;
        return j->status == TN_OK ? tn_jj_slice(j, v, part) : tn_jj_undefined();
    }
    value key = tn_jj_eval(j, n->b);
    j->pos = n->pos;
    return j->status == TN_OK ? tn_jj_item(j, v, key) : tn_jj_undefined();
}

// --- calls -------------------------------------------------------------------------------------------------

bool tn_jj_push(tn_jj *j, value v)
{
    if (j->status == TN_OK && j->sp < JJ_STACK) {
        j->stack[j->sp++] = v;
        return true;
    }
    tn_jj_error(j, "too many arguments");
    return false;
}

bool tn_jj_eval_args(tn_jj *j, const tn_jj_node *list, tn_jj_args *out)
{
    *out = (tn_jj_args){.pos = j->stack + j->sp};
    for (; list && j->status == TN_OK; list = list->next) {
        bool named = list->value.kind == JJ_STRING;
        value v = tn_jj_eval(j, list->a);
        if (named && !tn_jj_push(j, list->value)) return false;
        if (!tn_jj_push(j, v)) return false;
        out->n += !named;
        out->n_named += named;
    }
    return j->status == TN_OK;
}

value tn_jj_call(tn_jj *j, value f, const tn_jj_args *a)
{
    if (j->status != TN_OK) return tn_jj_undefined();
    switch (f.kind) {
    case JJ_FUNCTION:
        return f.u.function->fn(j, f, a);
    case JJ_METHOD:
        return f.u.method->row->fn(j, f.u.method->self, a);
    case JJ_MACRO:
        return tn_jj_call_macro(j, f.u.macro, a);
    case JJ_LOOP:
        return tn_jj_call_loop(j, f.u.loop, tn_jj_arg(a, 0, "iterable"));
    case JJ_JOINER:
        return tn_jj_call_joiner(j, f);
    case JJ_UNDEFINED:
        tn_jj_refuse(j, f);
        return f;
    default:
        return tn_jj_error(j, "'%s' cannot be called", tn_jj_kind_name(f));
    }
}

static value eval_call(tn_jj *j, const tn_jj_node *n)
{
    size_t sp = j->sp;
    tn_jj_args a;
    value f = tn_jj_eval(j, n->a), out = tn_jj_undefined();
    bool ok = tn_jj_eval_args(j, n->b, &a);
    j->pos = n->pos;
    if (ok) out = tn_jj_call(j, f, &a);
    j->sp = sp;
    return out;
}

static value eval_filter(tn_jj *j, const tn_jj_node *n)
{
    size_t sp = j->sp;
    tn_jj_args a;
    value v = n->a ? tn_jj_eval(j, n->a) : j->block, out = tn_jj_undefined();
    bool ok = tn_jj_eval_args(j, n->b, &a);
    j->pos = n->pos;
    if (ok) out = n->row->fn(j, v, &a);
    j->sp = sp;
    return out;
}

static value eval_test(tn_jj *j, const tn_jj_node *n)
{
    size_t sp = j->sp;
    tn_jj_args a;
    value v = tn_jj_eval(j, n->a);
    bool ok = tn_jj_eval_args(j, n->b, &a);
    j->pos = n->pos;
    bool holds = ok && tn_jj_truth(n->row->fn(j, v, &a));
    j->sp = sp;
    return tn_jj_bool(holds != (n->op != 0));
}

// --- all ---------------------------------------------------------------------------------------------------

// clang-format off
static value (*const evals[])(tn_jj *j, const tn_jj_node *n) = {
    [N_CONST] = eval_const, [N_NAME] = eval_name, [N_LIST] = eval_list, [N_TUPLE] = eval_list,
    [N_DICT] = eval_dict,
    [N_UNARY] = eval_unary, [N_BINARY] = eval_binary, [N_AND] = eval_and, [N_OR] = eval_or,
    [N_NOT] = eval_not,
    [N_COMPARE] = eval_compare, [N_IF] = eval_if, [N_ATTR] = eval_attr, [N_ITEM] = eval_item,
    [N_CALL] = eval_call,
    [N_FILTER] = eval_filter, [N_TEST] = eval_test,
};
// clang-format on

value tn_jj_eval(tn_jj *j, const tn_jj_node *n)
{
    value v = tn_jj_undefined();
    j->pos = n->pos;
    if (!tn_jj_step(j)) return v;
    if (tn_jj_enter(j)) v = evals[n->kind](j, n);
    tn_jj_leave(j);
    return j->status == TN_OK ? v : tn_jj_undefined();
}
