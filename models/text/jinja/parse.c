// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tags of the template language.
//     node          a          b          c        d          e
//     cond          condition  body       elif     else
//     for           target     iterable   body     condition  else      (op: recursive)
//     set           target     value
//     set block     target     body       filters
//     macro, param  parameters body                                     (param: a: default)
//     call block    call       body       parameters
//     filter block  filters    body
//     with          sets       body
#include "models/text/jinja/jinja_impl.h"

typedef struct tag_row {
    const char *name;
    tn_jj_node *(*parse)(tn_jj *j);
} tag_row;

static tn_jj_node *parse_until(tn_jj *j, const char *const *ends);

static bool expect_block_end(tn_jj *j)
{
    if (j->status == TN_OK && tn_jj_peek(j, 0)->kind == T_BLOCK_END) {
        j->at++;
        return true;
    }
    tn_jj_parse_fail(j, "expected '%}'");
    return false;
}

// The body of a tag up to {% END %}, which is consumed.
static tn_jj_node *parse_body(tn_jj *j, const char *end)
{
    const char *const ends[] = {end, NULL};
    if (!expect_block_end(j)) return NULL;
    tn_jj_node *body = parse_until(j, ends);
    if (!tn_jj_accept_name(j, end)) return NULL;
    return expect_block_end(j) ? body : NULL;
}

static tn_jj_node *with_height(tn_jj *j, tn_jj_node *n)
{
    const tn_jj_node *more[] = {n ? n->d : NULL, n ? n->e : NULL};
    for (size_t i = 0; i < 2; i++)
        if (more[i]) n->height = (int16_t)TN_MAX(n->height, more[i]->height + 1);
    return j->status == TN_OK ? n : NULL;
}

// --- if, for -----------------------------------------------------------------------------------------------

static const char *const if_ends[] = {"elif", "else", "endif", NULL};

static tn_jj_node *parse_if(tn_jj *j)
{
    tn_jj_node *first = NULL, *last = NULL;
    for (bool more = true; more && j->status == TN_OK;) {
        tn_jj_node *condition = tn_jj_parse_tuple(j, tn_jj_parse_expr);
        if (!expect_block_end(j)) return NULL;
        tn_jj_node *n = tn_jj_node_new(j, N_COND, condition, parse_until(j, if_ends), NULL);
        if (!n) return NULL;
        if (last)
            last->c = n;
        else
            first = n;
        first->height = TN_MAX(first->height, n->height);
        last = n;
        more = tn_jj_accept_name(j, "elif");
    }
    if (tn_jj_accept_name(j, "else")) {
        last->d = parse_body(j, "endif");
        if (last->d) first->height = (int16_t)TN_MAX(first->height, last->d->height + 1);
        return first;
    }
    return tn_jj_accept_name(j, "endif") && expect_block_end(j) ? first : NULL;
}

static const char *const for_ends[] = {"else", "endfor", NULL};

static tn_jj_node *parse_for(tn_jj *j)
{
    tn_jj_node *target = tn_jj_parse_target(j);
    if (!tn_jj_accept_name(j, "in")) return tn_jj_parse_fail(j, "expected 'in'");
    tn_jj_node *n = tn_jj_node_new(j, N_FOR, target, tn_jj_parse_tuple(j, tn_jj_parse_or), NULL);
    if (!n) return NULL;
    if (tn_jj_accept_name(j, "if")) n->d = tn_jj_parse_expr(j);
    n->op = tn_jj_accept_name(j, "recursive");
    if (!expect_block_end(j)) return NULL;
    j->n_loops++;
    n->c = parse_until(j, for_ends);
    j->n_loops--;
    if (n->c) n->height = (int16_t)TN_MAX(n->height, n->c->height + 1);
    if (tn_jj_accept_name(j, "else"))
        n->e = parse_body(j, "endfor");
    else if (!tn_jj_accept_name(j, "endfor") || !expect_block_end(j))
        return NULL;
    return with_height(j, n);
}

static tn_jj_node *parse_loop_control(tn_jj *j, tn_jj_node_kind kind)
{
    if (j->n_loops == 0) return tn_jj_parse_fail(j, "break and continue belong in a loop");
    tn_jj_node *n = tn_jj_node_new(j, kind, NULL, NULL, NULL);
    return expect_block_end(j) ? n : NULL;
}

static tn_jj_node *parse_break(tn_jj *j)
{
    return parse_loop_control(j, N_BREAK);
}

static tn_jj_node *parse_continue(tn_jj *j)
{
    return parse_loop_control(j, N_CONTINUE);
}

// --- set, with, do -----------------------------------------------------------------------------------------

// The body of a macro or call block: break and continue in it do not refer to loops around it.
static tn_jj_node *parse_own_body(tn_jj *j, const char *end)
{
    int32_t loops = j->n_loops;
    j->n_loops = 0;
    tn_jj_node *body = parse_body(j, end);
    j->n_loops = loops;
    return body;
}

static tn_jj_node *parse_set(tn_jj *j)
{
    tn_jj_node *target = tn_jj_parse_target(j);
    if (tn_jj_accept(j, '=')) {
        tn_jj_node *n = tn_jj_node_new(j, N_SET, target, tn_jj_parse_tuple(j, tn_jj_parse_expr), NULL);
        return expect_block_end(j) ? n : NULL;
    }
    tn_jj_node *filters = tn_jj_next_is_char(j, '|') ? tn_jj_parse_filters(j, NULL, false) : NULL;
    return tn_jj_node_new(j, N_SET_BLOCK, target, parse_body(j, "endset"), filters);
}

static tn_jj_node *parse_with(tn_jj *j)
{
    tn_jj_node *head = NULL, *last = NULL;
    while (tn_jj_peek(j, 0)->kind != T_BLOCK_END && j->status == TN_OK) {
        if (head && !tn_jj_expect(j, ',')) return NULL;
        tn_jj_node *target = tn_jj_parse_target(j);
        if (!tn_jj_expect(j, '=')) return NULL;
        tn_jj_chain(&head, &last, tn_jj_node_new(j, N_SET, target, tn_jj_parse_expr(j), NULL));
    }
    return tn_jj_node_new(j, N_WITH, head, parse_body(j, "endwith"), NULL);
}

static tn_jj_node *parse_do(tn_jj *j)
{
    tn_jj_node *n = tn_jj_node_new(j, N_DO, tn_jj_parse_tuple(j, tn_jj_parse_expr), NULL, NULL);
    return expect_block_end(j) ? n : NULL;
}

static tn_jj_node *parse_filter_block(tn_jj *j)
{
    tn_jj_node *filters = tn_jj_parse_filters(j, NULL, true);
    return tn_jj_node_new(j, N_FILTER_BLOCK, filters, parse_body(j, "endfilter"), NULL);
}

static tn_jj_node *parse_generation(tn_jj *j)
{
    return tn_jj_node_new(j, N_SCOPE, parse_body(j, "endgeneration"), NULL, NULL);
}

// --- macro, call -------------------------------------------------------------------------------------------

// Behind the opening parenthesis.
static tn_jj_node *parse_params(tn_jj *j)
{
    tn_jj_node *head = NULL, *last = NULL;
    while (!tn_jj_accept(j, ')')) {
        if (head && (!tn_jj_expect(j, ',') || tn_jj_accept(j, ')'))) break;
        tn_jj_node *param = tn_jj_node_new(j, N_PARAM, NULL, NULL, NULL);
        value name = tn_jj_expect_name(j);
        if (j->status != TN_OK || !param) return NULL;
        param->value = name;
        if (tn_jj_accept(j, '=')) {
            param->a = tn_jj_parse_expr(j);
            if (param->a) param->height = (int16_t)(param->a->height + 1);
        }
        tn_jj_chain(&head, &last, param);
    }
    return head;
}

static tn_jj_node *parse_macro(tn_jj *j)
{
    value name = tn_jj_expect_name(j);
    if (!tn_jj_expect(j, '(')) return NULL;
    tn_jj_node *params = parse_params(j), *body = parse_own_body(j, "endmacro");
    tn_jj_node *n = tn_jj_node_new(j, N_MACRO, params, body, NULL);
    if (n) n->value = name;
    return n;
}

static tn_jj_node *parse_call_block(tn_jj *j)
{
    tn_jj_node *params = tn_jj_accept(j, '(') ? parse_params(j) : NULL;
    tn_jj_node *call = tn_jj_parse_expr(j);
    if (!call || call->kind != N_CALL) return tn_jj_parse_fail(j, "'call' needs a call");
    tn_jj_node *n = tn_jj_node_new(j, N_CALL_BLOCK, call, parse_own_body(j, "endcall"), params);
    if (n) n->value = tn_jj_literal(j, "caller");
    return n;
}

// --- all ---------------------------------------------------------------------------------------------------

// clang-format off
static const tag_row tags[] = {
    {"if", parse_if}, {"for", parse_for}, {"set", parse_set}, {"macro", parse_macro},
    {"call", parse_call_block},
    {"filter", parse_filter_block}, {"with", parse_with}, {"do", parse_do}, {"generation", parse_generation},
    {"break", parse_break}, {"continue", parse_continue},
};
// clang-format on

static tn_jj_node *parse_tag(tn_jj *j)
{
    size_t at = j->at;
    value name = tn_jj_expect_name(j);
    if (name.kind != JJ_STRING) return NULL;
    for (size_t i = 0; i < TN_COUNT(tags); i++) {
        if (!tn_jj_is(name.u.s, tags[i].name)) continue;
        tn_jj_node *n = tags[i].parse(j);
        if (n) n->pos = j->tokens[at].pos;
        return n;
    }
    j->at = at;
    return tn_jj_parse_fail(j, "expected the name of a tag");
}

static tn_jj_node *parse_one(tn_jj *j)
{
    const tn_jj_token *t = tn_jj_peek(j, 0);
    j->at++;
    if (t->kind == T_DATA) {
        tn_jj_node *n = tn_jj_node_new(j, N_DATA, NULL, NULL, NULL);
        if (n) n->value = t->value;
        return n;
    }
    if (t->kind == T_BLOCK_BEGIN) return parse_tag(j);
    tn_jj_node *n = tn_jj_node_new(j, N_PRINT, tn_jj_parse_tuple(j, tn_jj_parse_expr), NULL, NULL);
    if (tn_jj_peek(j, 0)->kind != T_PRINT_END) return tn_jj_parse_fail(j, "expected '}}'");
    j->at++;
    return n;
}

// Nodes up to a tag with one of the names; the name is next then. NULL without nodes, too.
static tn_jj_node *parse_until(tn_jj *j, const char *const *ends)
{
    tn_jj_node *head = NULL, *last = NULL;
    size_t opened = j->at ? j->at - 1 : 0;
    for (bool ended = !tn_jj_nest(j); !ended && j->status == TN_OK;) {
        const tn_jj_token *t = tn_jj_peek(j, 0);
        if (t->kind == T_END && ends) {
            j->at = opened;
            tn_jj_parse_fail(j, "a tag without its end");
        }
        if (t->kind == T_END) break;
        if (t->kind == T_BLOCK_BEGIN && ends) {
            j->at++;
            for (size_t i = 0; ends[i] && !ended; i++) ended = tn_jj_next_is(j, ends[i]);
            if (ended) break;
            j->at--;
        }
        tn_jj_chain(&head, &last, parse_one(j));
    }
    tn_jj_leave(j);
    return head;
}

tn_jj_node *tn_jj_parse(tn_jj *j)
{
    return parse_until(j, NULL);
}
