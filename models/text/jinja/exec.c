// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tags: output, branches, loops, assignments, macros. Scopes follow Jinja2: a loop, a macro and a block with
// text have their own, an if has none; variables that are set inside do not exist after it, except members of
// a namespace.
#include "models/text/jinja/jinja_impl.h"

// --- scopes and captured text ------------------------------------------------------------------------------

static tn_jj_scope *scope_new(tn_jj *j, tn_jj_scope *parent)
{
    tn_jj_scope *s = tn_jj_alloc(j, sizeof *s);
    if (s) s->parent = parent;
    return s;
}

// A scope that may be used later keeps all scopes around it as well.
static void capture_scope(tn_jj_scope *s)
{
    for (; s && !s->captured; s = s->parent) s->captured = true;
}

// What the body prints, in a scope of its own below `parent`.
static value captured_text(tn_jj *j, const tn_jj_node *body, tn_jj_scope *scope)
{
    tn_jj_builder *out = j->out, text;
    tn_jj_scope *around = j->scope;
    if (!scope) return tn_jj_undefined();
    tn_jj_build(&text, j);
    j->out = &text;
    j->scope = scope;
    tn_jj_exec(j, body);
    j->scope = around;
    j->out = out;
    return tn_jj_built(&text);
}

static void put(tn_jj *j, value v)
{
    tn_jj_print(j->out, v);
    if (j->out->n > j->limits.output_size)
        tn_jj_error(j, "more than %zu KiB of output", j->limits.output_size >> 10);
}

// --- assignments -------------------------------------------------------------------------------------------

static void assign_member(tn_jj *j, const tn_jj_node *target, value v)
{
    value object = tn_jj_lookup_name(j, target->a->value);
    if (object.kind == JJ_NAMESPACE)
        tn_jj_set(j, object.u.dict, target->value, v);
    else if (object.kind == JJ_UNDEFINED)
        tn_jj_refuse(j, object);
    else
        tn_jj_error(j, "only members of a namespace can be set, not of '%s'", tn_jj_kind_name(object));
}

static void assign(tn_jj *j, const tn_jj_node *target, value v)
{
    const value *items;
    size_t n, i = 0;
    if (j->status != TN_OK) return;
    if (target->kind == N_NAME) {
        tn_jj_set(j, &j->scope->names, target->value, v);
    } else if (target->kind == N_ATTR) {
        assign_member(j, target, v);
    } else if (tn_jj_items(j, v, &items, &n) && tn_jj_enter(j)) {
        const tn_jj_node *t = target->a;
        for (; t && i < n; t = t->next) assign(j, t, items[i++]);
        if (t || i < n) tn_jj_error(j, "%zu values for another number of names", n);
        tn_jj_leave(j);
    }
}

static void exec_set(tn_jj *j, const tn_jj_node *n)
{
    value v = tn_jj_eval(j, n->b);
    j->pos = n->pos;
    assign(j, n->a, v);
}

// The text of a block through its filters.
static value filtered(tn_jj *j, const tn_jj_node *filters, value text)
{
    value before = j->block;
    j->block = text;
    value v = filters ? tn_jj_eval(j, filters) : text;
    j->block = before;
    return v;
}

static void exec_set_block(tn_jj *j, const tn_jj_node *n)
{
    value text = captured_text(j, n->b, scope_new(j, j->scope));
    assign(j, n->a, filtered(j, n->c, text));
}

static void exec_filter_block(tn_jj *j, const tn_jj_node *n)
{
    value text = captured_text(j, n->b, scope_new(j, j->scope));
    put(j, filtered(j, n->a, text));
}

static void exec_in_scope(tn_jj *j, const tn_jj_node *sets, const tn_jj_node *body)
{
    tn_jj_scope *around = j->scope, *own = scope_new(j, around);
    if (!own) return;
    for (; sets && j->status == TN_OK; sets = sets->next) {
        value v = tn_jj_eval(j, sets->b); // evaluated in the scope outside
        j->scope = own;
        assign(j, sets->a, v);
        j->scope = around;
    }
    j->scope = own;
    tn_jj_exec(j, body);
    j->scope = around;
}

static void exec_scope(tn_jj *j, const tn_jj_node *n)
{
    exec_in_scope(j, NULL, n->a);
}

static void exec_with(tn_jj *j, const tn_jj_node *n)
{
    exec_in_scope(j, n->a, n->b);
}

// --- output and branches -----------------------------------------------------------------------------------

static void exec_data(tn_jj *j, const tn_jj_node *n)
{
    put(j, n->value);
}

static void exec_print(tn_jj *j, const tn_jj_node *n)
{
    value v = tn_jj_eval(j, n->a);
    j->pos = n->pos;
    if (j->status == TN_OK) put(j, v);
}

static void exec_do(tn_jj *j, const tn_jj_node *n)
{
    tn_jj_eval(j, n->a);
}

static void exec_cond(tn_jj *j, const tn_jj_node *n)
{
    bool holds = tn_jj_truth(tn_jj_eval(j, n->a));
    while (!holds && n->c && j->status == TN_OK) {
        n = n->c;
        holds = tn_jj_truth(tn_jj_eval(j, n->a));
    }
    if (j->status == TN_OK) tn_jj_exec(j, holds ? n->b : n->d);
}

static void exec_flow(tn_jj *j, const tn_jj_node *n)
{
    j->flow = n->kind;
}

// --- loops -------------------------------------------------------------------------------------------------

// The scope of the next iteration: the same one, emptied, unless something still refers to it.
static tn_jj_scope *next_scope(tn_jj *j, tn_jj_scope *own, tn_jj_scope *around)
{
    if (!own || own->captured) return scope_new(j, around);
    own->names.n = 0;
    return own;
}

// The items for which the condition of the loop holds.
static bool filter_items(tn_jj *j, const tn_jj_node *n, const value **items, size_t *count)
{
    value kept = tn_jj_list(j);
    tn_jj_scope *around = j->scope, *own = NULL;
    for (size_t i = 0; i < *count && (own = next_scope(j, own, around)) != NULL && tn_jj_step(j); i++) {
        j->scope = own;
        assign(j, n->a, (*items)[i]);
        if (tn_jj_truth(tn_jj_eval(j, n->d))) tn_jj_append(j, kept, (*items)[i]);
        j->scope = around;
    }
    if (j->status != TN_OK) return false;
    *items = kept.u.list->items;
    *count = kept.u.list->n;
    return true;
}

static void run_loop(tn_jj *j, const tn_jj_node *n, value iterable, int32_t level)
{
    tn_jj_loop *loop = tn_jj_alloc(j, sizeof *loop);
    tn_jj_scope *around = j->scope, *own = NULL;
    const value *items;
    size_t count;
    if (!loop || !tn_jj_items(j, iterable, &items, &count)) return;
    if (n->d && !filter_items(j, n, &items, &count)) return;
    *loop =
        (tn_jj_loop){.items = items, .n = count, .level = level, .node = n->op ? n : NULL, .scope = around};
    if (n->op) capture_scope(around);
    value name = tn_jj_literal(j, "loop");
    for (size_t i = 0; i < count && tn_jj_step(j) && (own = next_scope(j, own, around)) != NULL; i++) {
        j->scope = own;
        loop->index = i;
        tn_jj_set(j, &own->names, name, (value){.kind = JJ_LOOP, .u.loop = loop});
        assign(j, n->a, items[i]);
        if (j->status == TN_OK) tn_jj_exec(j, n->c);
        j->scope = around;
        int32_t flow = j->flow;
        j->flow = 0;
        if (flow == N_BREAK) break;
    }
    if (count == 0 && n->e) exec_in_scope(j, NULL, n->e);
}

static void exec_for(tn_jj *j, const tn_jj_node *n)
{
    value iterable = tn_jj_eval(j, n->b);
    j->pos = n->pos;
    if (j->status == TN_OK) run_loop(j, n, iterable, 0);
}

value tn_jj_call_loop(tn_jj *j, tn_jj_loop *loop, value items)
{
    if (!loop->node) return tn_jj_error(j, "the loop is not marked as recursive");
    tn_jj_builder *out = j->out, text;
    tn_jj_scope *around = j->scope;
    tn_jj_build(&text, j);
    j->out = &text;
    j->scope = loop->scope;
    if (tn_jj_enter(j)) run_loop(j, loop->node, items, loop->level + 1);
    tn_jj_leave(j);
    j->scope = around;
    j->out = out;
    return tn_jj_built(&text);
}

// --- macros ------------------------------------------------------------------------------------------------

static value macro_new(tn_jj *j, const tn_jj_node *node)
{
    tn_jj_macro *m = tn_jj_alloc(j, sizeof *m);
    if (!m) return tn_jj_undefined();
    *m = (tn_jj_macro){.node = node, .scope = j->scope};
    capture_scope(j->scope);
    return (value){.kind = JJ_MACRO, .u.macro = m};
}

static void exec_macro(tn_jj *j, const tn_jj_node *n)
{
    tn_jj_set(j, &j->scope->names, n->value, macro_new(j, n));
}

static void exec_call_block(tn_jj *j, const tn_jj_node *n)
{
    // The node of the block is that of a macro but for the places of its parts.
    tn_jj_node *body = tn_jj_alloc(j, sizeof *body);
    size_t sp = j->sp;
    tn_jj_args a;
    if (!body) return;
    *body = (tn_jj_node){.kind = N_MACRO, .pos = n->pos, .value = n->value, .a = n->c, .b = n->b};
    value f = tn_jj_eval(j, n->a->a), out = tn_jj_undefined();
    if (tn_jj_eval_args(j, n->a->b, &a) && tn_jj_push(j, n->value) && tn_jj_push(j, macro_new(j, body))) {
        a.n_named++;
        out = tn_jj_call(j, f, &a);
    }
    j->sp = sp;
    if (j->status == TN_OK) put(j, out);
}

// Arguments without a parameter: varargs and kwargs.
static void bind_rest(tn_jj *j, const tn_jj_args *a, jj_dict *names, size_t n_params)
{
    value varargs = tn_jj_undefined(), kwargs = tn_jj_undefined(), found;
    if (a->n > n_params) varargs = tn_jj_sized(j, JJ_TUPLE, 0);
    for (size_t i = n_params; i < a->n; i++) tn_jj_append(j, varargs, a->pos[i]);
    for (size_t i = 0; i < a->n_named; i++) {
        value name = a->pos[a->n + 2 * i], v = a->pos[a->n + 2 * i + 1];
        bool caller = tn_jj_is(name.u.s, "caller");
        if (tn_jj_lookup(j, names, name, &found)) continue;
        if (caller) {
            tn_jj_set(j, names, name, v);
            continue;
        }
        if (kwargs.kind == JJ_UNDEFINED) kwargs = tn_jj_dict(j);
        if (kwargs.kind == JJ_DICT) tn_jj_set(j, kwargs.u.dict, name, v);
    }
    if (varargs.kind != JJ_UNDEFINED) tn_jj_set(j, names, tn_jj_literal(j, "varargs"), varargs);
    if (kwargs.kind != JJ_UNDEFINED) tn_jj_set(j, names, tn_jj_literal(j, "kwargs"), kwargs);
}

value tn_jj_call_macro(tn_jj *j, const tn_jj_macro *m, const tn_jj_args *a)
{
    tn_jj_scope *around = j->scope, *own = scope_new(j, m->scope);
    size_t i = 0;
    value out = tn_jj_undefined();
    if (!own) return out;
    for (const tn_jj_node *p = m->node->a; p && j->status == TN_OK; p = p->next, i++) {
        value v = tn_jj_missing(p->value.u.s);
        bool given = i < a->n;
        if (given) v = a->pos[i];
        for (size_t k = 0; k < a->n_named && !given; k++) {
            given = tn_jj_same(a->pos[a->n + 2 * k].u.s, p->value.u.s);
            if (given) v = a->pos[a->n + 2 * k + 1];
        }
        if (!given && p->a) {
            j->scope = own; // a default may use the parameters before it
            v = tn_jj_eval(j, p->a);
            j->scope = around;
        }
        tn_jj_set(j, &own->names, p->value, v);
    }
    if (a->n > i || a->n_named) bind_rest(j, a, &own->names, i);
    if (tn_jj_enter(j)) out = captured_text(j, m->node->b, own);
    tn_jj_leave(j);
    return out;
}

// --- all ---------------------------------------------------------------------------------------------------

// clang-format off
static void (*const execs[])(tn_jj *j, const tn_jj_node *n) = {
    [N_DATA] = exec_data, [N_PRINT] = exec_print, [N_COND] = exec_cond, [N_FOR] = exec_for,
    [N_SET] = exec_set,
    [N_SET_BLOCK] = exec_set_block, [N_MACRO] = exec_macro, [N_CALL_BLOCK] = exec_call_block,
    [N_FILTER_BLOCK] = exec_filter_block, [N_SCOPE] = exec_scope, [N_WITH] = exec_with, [N_DO] = exec_do,
    [N_BREAK] = exec_flow, [N_CONTINUE] = exec_flow,
};
// clang-format on

void tn_jj_exec(tn_jj *j, const tn_jj_node *list)
{
    if (tn_jj_enter(j))
        for (; list && j->flow == 0 && tn_jj_step(j); list = list->next) {
            j->pos = list->pos;
            execs[list->kind](j, list);
        }
    tn_jj_leave(j);
}

// Runs of equal marks.
static tn_status list_runs(tn_jj *j, str s, tn_jj_output *out)
{
    size_t n = s->n > 0;
    for (size_t i = 1; s->mask && i < s->n; i++) n += !s->mask[i] != !s->mask[i - 1];
    tn_jj_run *runs = tn_jj_array(j, n, sizeof *runs);
    if (!runs) return j->status;
    n = 0;
    for (size_t i = 1; s->mask && i < s->n; i++)
        if (!s->mask[i] != !s->mask[i - 1]) runs[n++] = (tn_jj_run){i, s->mask[i - 1] != 0};
    if (s->n) runs[n++] = (tn_jj_run){s->n, s->mask ? s->mask[s->n - 1] != 0 : s->user};
    *out = (tn_jj_output){s->data, s->n, runs, n};
    return TN_OK;
}

static const tn_jj_tables tables = {tn_jj_find_filter, tn_jj_find_test, tn_jj_find_method};

tn_status tn_jj_render(tn_jj *j, const char *source, size_t n, tn_jj_output *out)
{
    tn_jj_scope root = {.parent = &j->globals, .captured = true};
    tn_jj_builder text;
    j->tables = &tables;
    j->stack = tn_jj_array(j, JJ_STACK, sizeof *j->stack);
    if (!j->stack || !tn_jj_lex(j, source, n)) return j->status;
    const tn_jj_node *program = tn_jj_parse(j);
    if (j->status != TN_OK) return j->status;
    tn_jj_build(&text, j);
    j->out = &text;
    j->scope = &root;
    tn_jj_exec(j, program);
    j->scope = &j->globals;
    value v = tn_jj_built(&text);
    return j->status == TN_OK ? list_runs(j, v.u.s, out) : j->status;
}
