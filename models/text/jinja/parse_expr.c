// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Expressions of the template language, by the precedence of Jinja2: if-else, or, and, not, comparisons,
// + -, ~, * / // %, **, signs, and closest the filters, tests, calls and subscripts.
//     node        a            b                     c
//     list, tuple first item
//     dict        first pair (a: key, b: value)
//     compare     left         first operand (op, a)
//     if          then         condition             else or NULL
//     item        object       key or slice (a: start, b: stop, c: step)
//     call        callee       first argument (value: its name, a)
//     filter      input        first argument        (input NULL: the text of a block)
//     test        input        first argument        (op: negated)
#include "models/text/jinja/jinja_impl.h"

enum { HEIGHT_MAX = 900 }; // of a tree, below the depth of evaluation

const tn_jj_token *tn_jj_peek(const tn_jj *j, size_t ahead)
{
    size_t last = j->n_tokens - 1;
    return &j->tokens[ahead < last - j->at ? j->at + ahead : last];
}

tn_jj_node *tn_jj_parse_fail(tn_jj *j, const char *what)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    j->pos = t->pos;
    if ((t->kind == T_NAME || t->kind == T_STRING) && t->value.kind == JJ_STRING)
        tn_jj_error_as(j, TN_ERR_FORMAT, "%s, not '%.*s'", what, (int)TN_MIN(t->value.u.s->n, 60),
                       t->value.u.s->data);
    else
        tn_jj_error_as(j, TN_ERR_FORMAT, "%s", what);
    return NULL;
}

bool tn_jj_next_is(const tn_jj *j, const char *name)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    return t->kind == T_NAME && tn_jj_is(t->value.u.s, name);
}

bool tn_jj_accept_name(tn_jj *j, const char *name)
{
    bool is = j->status == TN_OK && tn_jj_next_is(j, name);
    j->at += is;
    return is;
}

bool tn_jj_next_is_char(const tn_jj *j, char punctuation)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    return t->kind == T_PUNCTUATION && t->op == punctuation;
}

bool tn_jj_accept(tn_jj *j, char punctuation)
{
    bool is = j->status == TN_OK && tn_jj_next_is_char(j, punctuation);
    j->at += is;
    return is;
}

bool tn_jj_expect(tn_jj *j, char punctuation)
{
    char what[] = "expected ' '";
    what[10] = punctuation;
    if (tn_jj_accept(j, punctuation)) return true;
    tn_jj_parse_fail(j, what);
    return false;
}

value tn_jj_expect_name(tn_jj *j)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    if (t->kind != T_NAME || j->status != TN_OK) {
        tn_jj_parse_fail(j, "expected a name");
        return tn_jj_undefined();
    }
    j->at++;
    return t->value;
}

bool tn_jj_nest(tn_jj *j)
{
    if (++j->depth <= j->limits.depth) return j->status == TN_OK;
    tn_jj_parse_fail(j, "nested too deeply here");
    return false;
}

tn_jj_node *tn_jj_node_new(tn_jj *j, tn_jj_node_kind kind, tn_jj_node *a, tn_jj_node *b, tn_jj_node *c)
{
    tn_jj_node *n = tn_jj_alloc(j, sizeof *n);
    int height = 0;
    if (!n) return NULL;
    if (a) height = TN_MAX(height, a->height);
    if (b) height = TN_MAX(height, b->height);
    if (c) height = TN_MAX(height, c->height);
    *n = (tn_jj_node){
        .kind = kind, .height = (int16_t)(height + 1), .pos = tn_jj_peek(j, 0)->pos, .a = a, .b = b, .c = c};
    if (height < HEIGHT_MAX) return n;
    return tn_jj_parse_fail(j, "an expression of too many parts");
}

void tn_jj_chain(tn_jj_node **head, tn_jj_node **last, tn_jj_node *node)
{
    if (!node) return;
    if (*head)
        (*last)->next = node;
    else
        *head = node;
    (*head)->height = TN_MAX((*head)->height, node->height);
    *last = node;
}

// A node with the source position of the token `at`.
static tn_jj_node *node_at(tn_jj *j, size_t at, tn_jj_node_kind kind, tn_jj_node *a, tn_jj_node *b)
{
    tn_jj_node *n = tn_jj_node_new(j, kind, a, b, NULL);
    if (n) n->pos = j->tokens[at].pos;
    return n;
}

static bool failed(const tn_jj *j)
{
    return j->status != TN_OK;
}

// --- primary -----------------------------------------------------------------------------------------------

static tn_jj_node *constant(tn_jj *j, value v)
{
    tn_jj_node *n = tn_jj_node_new(j, N_CONST, NULL, NULL, NULL);
    if (n) n->value = v;
    return n;
}

// Items up to the closing bracket, which is consumed.
static tn_jj_node *parse_items(tn_jj *j, tn_jj_node_kind kind, char closing)
{
    tn_jj_node *head = NULL, *last = NULL, *n = tn_jj_node_new(j, kind, NULL, NULL, NULL);
    while (!failed(j) && !tn_jj_accept(j, closing)) {
        if (head && (!tn_jj_expect(j, ',') || tn_jj_accept(j, closing))) break;
        tn_jj_node *item = tn_jj_parse_expr(j);
        if (kind == N_DICT && tn_jj_expect(j, ':'))
            item = tn_jj_node_new(j, N_PAIR, item, tn_jj_parse_expr(j), NULL);
        tn_jj_chain(&head, &last, item);
    }
    if (!n) return NULL;
    n->a = head;
    n->height = (int16_t)(head ? head->height + 1 : 1);
    return n;
}

// (a), (a,), (a, b), ()
static tn_jj_node *parse_parentheses(tn_jj *j)
{
    if (tn_jj_accept(j, ')')) return tn_jj_node_new(j, N_TUPLE, NULL, NULL, NULL);
    tn_jj_node *n = tn_jj_parse_tuple(j, tn_jj_parse_expr);
    return tn_jj_expect(j, ')') ? n : NULL;
}

static tn_jj_node *parse_strings(tn_jj *j)
{
    value v = tn_jj_peek(j, 0)->value;
    for (j->at++; tn_jj_peek(j, 0)->kind == T_STRING && !failed(j); j->at++)
        v = tn_jj_concat(j, v.u.s, tn_jj_peek(j, 0)->value.u.s);
    return constant(j, v);
}

static tn_jj_node *parse_name(tn_jj *j)
{
    value name = tn_jj_expect_name(j);
    if (name.kind != JJ_STRING) return NULL;
    str s = name.u.s;
    if (tn_jj_is(s, "true") || tn_jj_is(s, "True")) return constant(j, tn_jj_bool(true));
    if (tn_jj_is(s, "false") || tn_jj_is(s, "False")) return constant(j, tn_jj_bool(false));
    if (tn_jj_is(s, "none") || tn_jj_is(s, "None")) return constant(j, tn_jj_none());
    tn_jj_node *n = node_at(j, j->at - 1, N_NAME, NULL, NULL);
    if (n) n->value = name;
    return n;
}

static tn_jj_node *parse_primary(tn_jj *j)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    if (t->kind == T_NAME) return parse_name(j);
    if (t->kind == T_STRING) return parse_strings(j);
    if (t->kind == T_INT || t->kind == T_FLOAT) {
        j->at++;
        return constant(j, t->value);
    }
    if (tn_jj_accept(j, '(')) return parse_parentheses(j);
    if (tn_jj_accept(j, '[')) return parse_items(j, N_LIST, ']');
    if (tn_jj_accept(j, '{')) return parse_items(j, N_DICT, '}');
    return tn_jj_parse_fail(j, "expected an expression");
}

// --- what follows ------------------------------------------------------------------------------------------

// Behind the opening parenthesis.
static tn_jj_node *parse_args(tn_jj *j)
{
    tn_jj_node *head = NULL, *last = NULL;
    bool named = false;
    while (!failed(j) && !tn_jj_accept(j, ')')) {
        if (head && (!tn_jj_expect(j, ',') || tn_jj_accept(j, ')'))) break;
        const tn_jj_token *t = tn_jj_peek(j, 0), *assign = tn_jj_peek(j, 1);
        value name = tn_jj_undefined();
        if (t->kind == T_OP && (t->op == OP_MUL || t->op == OP_POW))
            return tn_jj_parse_fail(j, "* and ** in calls are not supported");
        if (t->kind == T_NAME && assign->kind == T_PUNCTUATION && assign->op == '=') {
            name = t->value;
            named = true;
            j->at += 2;
        } else if (named) {
            return tn_jj_parse_fail(j, "an argument without name behind one with a name");
        }
        tn_jj_node *arg = tn_jj_node_new(j, N_ARG, tn_jj_parse_expr(j), NULL, NULL);
        if (arg) arg->value = name;
        tn_jj_chain(&head, &last, arg);
    }
    return head;
}

static tn_jj_node *parse_slice_part(tn_jj *j)
{
    return tn_jj_next_is_char(j, ':') || tn_jj_next_is_char(j, ']') ? NULL : tn_jj_parse_expr(j);
}

static tn_jj_node *parse_subscript(tn_jj *j)
{
    tn_jj_node *start = parse_slice_part(j), *stop = NULL, *step = NULL;
    if (!tn_jj_accept(j, ':')) {
        if (!start) return tn_jj_parse_fail(j, "expected an expression");
        return tn_jj_expect(j, ']') ? start : NULL;
    }
    stop = parse_slice_part(j);
    if (tn_jj_accept(j, ':')) step = parse_slice_part(j);
    return tn_jj_expect(j, ']') ? tn_jj_node_new(j, N_SLICE, start, stop, step) : NULL;
}

static tn_jj_node *parse_member(tn_jj *j, tn_jj_node *object, size_t at)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    if (t->kind == T_INT) {
        j->at++;
        return node_at(j, at, N_ITEM, object, constant(j, t->value));
    }
    value name = tn_jj_expect_name(j);
    tn_jj_node *n = node_at(j, at, N_ATTR, object, NULL);
    if (n) n->value = name;
    return n;
}

static tn_jj_node *parse_call(tn_jj *j, tn_jj_node *callee, size_t at)
{
    tn_jj_node *n = node_at(j, at, N_CALL, callee, parse_args(j));
    if (n && callee && (callee->kind == N_NAME || callee->kind == N_ATTR)) n->pos = callee->pos;
    return n;
}

tn_jj_node *tn_jj_parse_postfix(tn_jj *j, tn_jj_node *node)
{
    while (!failed(j)) {
        size_t at = j->at;
        if (tn_jj_accept(j, '.'))
            node = parse_member(j, node, at + 1);
        else if (tn_jj_accept(j, '['))
            node = node_at(j, at, N_ITEM, node, parse_subscript(j));
        else if (tn_jj_accept(j, '('))
            node = parse_call(j, node, at);
        else
            return node;
    }
    return NULL;
}

static tn_jj_node *parse_filter(tn_jj *j, tn_jj_node *input)
{
    size_t at = j->at;
    value name = tn_jj_expect_name(j);
    if (name.kind != JJ_STRING) return NULL;
    const tn_jj_function *row = tn_jj_find_filter(name.u.s);
    if (!row) {
        j->at = at;
        return tn_jj_parse_fail(j, "expected the name of a filter");
    }
    tn_jj_node *args = tn_jj_accept(j, '(') ? parse_args(j) : NULL;
    tn_jj_node *n = node_at(j, at, N_FILTER, input, args);
    if (n) n->row = row;
    return n;
}

// Whether an argument without parentheses follows the name of a test: "x is equalto 1".
static bool has_bare_arg(tn_jj *j)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    if (t->kind == T_NAME)
        return !tn_jj_next_is(j, "else") && !tn_jj_next_is(j, "or") && !tn_jj_next_is(j, "and") &&
               !tn_jj_next_is(j, "if") && !tn_jj_next_is(j, "is") && !tn_jj_next_is(j, "in") &&
               !tn_jj_next_is(j, "not") && !tn_jj_next_is(j, "recursive");
    return t->kind == T_STRING || t->kind == T_INT || t->kind == T_FLOAT || tn_jj_next_is_char(j, '[') ||
           tn_jj_next_is_char(j, '{');
}

static tn_jj_node *parse_test(tn_jj *j, tn_jj_node *input)
{
    bool negated = tn_jj_accept_name(j, "not");
    size_t at = j->at;
    value name = tn_jj_expect_name(j);
    if (name.kind != JJ_STRING) return NULL;
    const tn_jj_function *row = tn_jj_find_test(name.u.s);
    if (!row) {
        j->at = at;
        return tn_jj_parse_fail(j, "expected the name of a test");
    }
    tn_jj_node *args = NULL;
    if (tn_jj_accept(j, '('))
        args = parse_args(j);
    else if (has_bare_arg(j))
        args = tn_jj_node_new(j, N_ARG, tn_jj_parse_postfix(j, parse_primary(j)), NULL, NULL);
    tn_jj_node *n = node_at(j, at, N_TEST, input, args);
    if (!n) return NULL;
    n->row = row;
    n->op = negated;
    return n;
}

tn_jj_node *tn_jj_parse_filters(tn_jj *j, tn_jj_node *node, bool first)
{
    for (; !failed(j); first = false) {
        size_t at = j->at;
        if (first || tn_jj_accept(j, '|'))
            node = parse_filter(j, node);
        else if (node && tn_jj_accept_name(j, "is"))
            node = parse_test(j, node);
        else if (node && tn_jj_accept(j, '('))
            node = parse_call(j, node, at);
        else
            return node;
    }
    return NULL;
}

// --- operators ---------------------------------------------------------------------------------------------

static tn_jj_node *parse_unary(tn_jj *j, bool filters)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    tn_jj_node *n = NULL;
    size_t at = j->at;
    if (tn_jj_nest(j)) {
        if (t->kind == T_OP && (t->op == OP_SUB || t->op == OP_ADD)) {
            j->at++;
            n = node_at(j, at, N_UNARY, parse_unary(j, false), NULL);
            if (n) n->op = t->op;
        } else {
            n = parse_primary(j);
        }
        n = tn_jj_parse_postfix(j, n);
        if (filters) n = tn_jj_parse_filters(j, n, false);
    }
    tn_jj_leave(j);
    return n;
}

// Rising precedence.
static const int16_t levels[][5] = {
    {OP_ADD, OP_SUB}, {OP_CONCAT}, {OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD}, {OP_POW}};

static bool has_op(const int16_t *ops, const tn_jj_token *t)
{
    for (; t->kind == T_OP && *ops != OP_NONE; ops++)
        if (*ops == t->op) return true;
    return false;
}

static tn_jj_node *parse_binary(tn_jj *j, size_t level)
{
    if (level == TN_COUNT(levels)) return parse_unary(j, true);
    tn_jj_node *left = parse_binary(j, level + 1);
    for (const tn_jj_token *t; !failed(j) && has_op(levels[level], t = tn_jj_peek(j, 0));) {
        size_t at = j->at++;
        left = node_at(j, at, N_BINARY, left, parse_binary(j, level + 1));
        if (left) left->op = t->op;
    }
    return failed(j) ? NULL : left;
}

// The next comparison, which is consumed, or OP_NONE.
static int take_comparison(tn_jj *j)
{
    const tn_jj_token *t = tn_jj_peek(j, 0), *second = tn_jj_peek(j, 1);
    if (t->kind == T_OP && t->op >= OP_EQ) {
        j->at++;
        return t->op;
    }
    if (tn_jj_accept_name(j, "in")) return OP_IN;
    if (!tn_jj_next_is(j, "not") || second->kind != T_NAME || !tn_jj_is(second->value.u.s, "in"))
        return OP_NONE;
    j->at += 2;
    return OP_NOT_IN;
}

static tn_jj_node *parse_comparison(tn_jj *j)
{
    size_t at = j->at;
    tn_jj_node *left = parse_binary(j, 0), *head = NULL, *last = NULL;
    for (int op; !failed(j) && (op = take_comparison(j)) != OP_NONE;) {
        tn_jj_node *operand = tn_jj_node_new(j, N_OPERAND, parse_binary(j, 0), NULL, NULL);
        if (operand) operand->op = (int16_t)op;
        tn_jj_chain(&head, &last, operand);
    }
    return head ? node_at(j, at, N_COMPARE, left, head) : left;
}

static tn_jj_node *parse_not(tn_jj *j)
{
    bool negated = false, any = false;
    size_t at = j->at;
    for (; tn_jj_accept_name(j, "not"); any = true) negated = !negated;
    tn_jj_node *n = parse_comparison(j);
    if (any) n = node_at(j, at, N_NOT, n, NULL);
    return any && !negated ? node_at(j, at, N_NOT, n, NULL) : n;
}

static tn_jj_node *parse_and(tn_jj *j)
{
    tn_jj_node *left = parse_not(j);
    for (size_t at = j->at; tn_jj_accept_name(j, "and"); at = j->at)
        left = node_at(j, at, N_AND, left, parse_not(j));
    return left;
}

tn_jj_node *tn_jj_parse_or(tn_jj *j)
{
    tn_jj_node *left = parse_and(j);
    for (size_t at = j->at; tn_jj_accept_name(j, "or"); at = j->at)
        left = node_at(j, at, N_OR, left, parse_and(j));
    return left;
}

tn_jj_node *tn_jj_parse_expr(tn_jj *j)
{
    tn_jj_node *n = NULL;
    if (tn_jj_nest(j)) {
        n = tn_jj_parse_or(j);
        while (tn_jj_accept_name(j, "if")) {
            tn_jj_node *condition = tn_jj_parse_or(j), *otherwise = NULL;
            if (tn_jj_accept_name(j, "else")) otherwise = tn_jj_parse_expr(j);
            n = tn_jj_node_new(j, N_IF, n, condition, otherwise);
        }
    }
    tn_jj_leave(j);
    return failed(j) ? NULL : n;
}

// Whether the list of a tuple without parentheses ends here.
static bool ends_tuple(const tn_jj *j)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    return t->kind == T_PRINT_END || t->kind == T_BLOCK_END || t->kind == T_END ||
           tn_jj_next_is_char(j, ')') || tn_jj_next_is_char(j, '=') || tn_jj_next_is(j, "in") ||
           tn_jj_next_is(j, "if") || tn_jj_next_is(j, "recursive");
}

tn_jj_node *tn_jj_parse_tuple(tn_jj *j, tn_jj_parse_fn item)
{
    tn_jj_node *head = NULL, *last = NULL;
    bool is_tuple = false;
    tn_jj_chain(&head, &last, item(j));
    while (tn_jj_accept(j, ',')) {
        is_tuple = true;
        if (ends_tuple(j)) break;
        tn_jj_chain(&head, &last, item(j));
    }
    return is_tuple ? tn_jj_node_new(j, N_TUPLE, head, NULL, NULL) : head;
}

// A name, or a member of a namespace; the caller knows whether that is allowed.
static tn_jj_node *parse_target_item(tn_jj *j)
{
    size_t at = j->at;
    if (tn_jj_accept(j, '(')) {
        tn_jj_node *inner = tn_jj_nest(j) ? tn_jj_parse_target(j) : NULL;
        tn_jj_leave(j);
        return tn_jj_expect(j, ')') ? inner : NULL;
    }
    value name = tn_jj_expect_name(j);
    tn_jj_node *n = node_at(j, at, N_NAME, NULL, NULL);
    if (!n || failed(j)) return NULL;
    n->value = name;
    if (!tn_jj_accept(j, '.')) return n;
    value member = tn_jj_expect_name(j);
    n = node_at(j, at, N_ATTR, n, NULL);
    if (n) n->value = member;
    return n;
}

tn_jj_node *tn_jj_parse_target(tn_jj *j)
{
    return tn_jj_parse_tuple(j, parse_target_item);
}
