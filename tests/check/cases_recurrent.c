// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the ops that keep a state per sequence.
#include "tests/check/check.h"

#include <math.h>

enum { MAX_SEQS = 4 };

// Lengths of the sequences, and the slots that they read and write; the states have N_SLOTS.
enum { N_SLOTS = 6 };
typedef struct runs {
    int32_t n_seqs, length[MAX_SEQS], slots[MAX_SEQS][2];
} runs;

static const runs all_runs[] = {
    {1, {1}, {{2, 3}}},                                    // decode
    {1, {1}, {{4, 4}}},                                    // in place
    {1, {9}, {{-1, 0}}},                                   // anew
    {1, {33}, {{5, 1}}},                                   // prefill
    {3, {1, 1, 1}, {{0, 3}, {1, 1}, {-1, 5}}},             // several that decode
    {4, {5, 1, 20, 2}, {{0, 4}, {-1, 1}, {2, 2}, {0, 5}}}, // two that go on from one slot
    {3, {4, 3, 2}, {{0, 1}, {2, -1}, {N_SLOTS, 3}}},       // nowhere to write, a slot that is none
    {3, {3, 0, 2}, {{0, 1}, {2, 3}, {4, 4}}},              // no tokens: the state is copied
};

static int64_t n_tokens(const runs *r)
{
    int64_t n = 0;
    for (int32_t i = 0; i < r->n_seqs; i++) n += r->length[i];
    return n;
}

static void add_runs(check_case *c, const runs *r)
{
    int32_t *start = check_ints(c, check_vec(c, TN_TYPE_I32, r->n_seqs + 1), r->n_seqs + 1);
    int32_t *slots = check_ints(c, check_mat(c, TN_TYPE_I32, r->n_seqs, 2), (int64_t)r->n_seqs * 2);
    start[0] = 0;
    for (int32_t i = 0; i < r->n_seqs; i++) {
        start[i + 1] = start[i] + r->length[i];
        slots[2 * i] = r->slots[i][0];
        slots[2 * i + 1] = r->slots[i][1];
    }
}

static void cases_short_conv(check_run *run, int32_t op)
{
    static const int64_t widths[] = {1, 7, 64, 128, 200, 1031};
    for (size_t i = 0; i < TN_COUNT(all_runs); i++)
        for (size_t w = 0; w < TN_COUNT(widths); w++)
            for (int32_t kernel = 2; kernel < 6; kernel++) {
                check_case c;
                check_begin(&c, op);
                check_cube(&c, TN_TYPE_F32, N_SLOTS, kernel - 1, widths[w]);
                check_operand *x = check_mat(&c, TN_TYPE_F32, n_tokens(&all_runs[i]), widths[w]);
                if (kernel == 3) check_strided(x);
                check_mat(&c, TN_TYPE_F32, widths[w], kernel);
                add_runs(&c, &all_runs[i]);
                snprintf(c.note, sizeof c.note, "runs %zu kernel %d", i, kernel);
                check_emit(run, &c);
            }
}

typedef struct delta_shape {
    int64_t heads, key_heads, key, value;
} delta_shape;

static void delta_case(check_run *run, size_t i, const delta_shape *s, int32_t form)
{
    const runs *r = &all_runs[i];
    int64_t n = n_tokens(r);
    check_case c;
    check_begin(&c, TN_OP_delta_rule);
    c.params.delta_rule = (tn_delta_rule_params){.scale = (float)(1.0 / sqrt((double)s->key)),
                                                 .normalise = form != 1,
                                                 .eps = 1e-6f,
                                                 .grouped = form % 2};
    check_src(&c, TN_TYPE_F32, 4, (int64_t[]){N_SLOTS, s->heads, s->key, s->value});
    for (int32_t k = 0; k < 2; k++) {
        check_operand *x = check_cube(&c, TN_TYPE_F32, n, s->key_heads, s->key);
        // Keys that are not normalised are short: the state would grow with each token.
        if (form == 1) check_range(x, CHECK_NORMAL, 0.0, 0.5 / sqrt((double)s->key));
        if (form == 2) x->parent[2] += 3, x->start[2] = 1; // heads of a fused projection
    }
    check_operand *v = check_cube(&c, TN_TYPE_F32, n, s->heads, s->value);
    if (form == 2) v->parent[2] += 2, v->start[2] = 2;
    check_range(check_mat(&c, TN_TYPE_F32, n, s->heads), CHECK_NORMAL, -1.0, 0.3);
    check_operand *beta = check_mat(&c, TN_TYPE_F32, n, s->heads);
    check_range(beta, CHECK_NORMAL, 0.5, 0.1);
    if (form == 2) check_strided(beta);
    add_runs(&c, r);
    snprintf(c.note, sizeof c.note, "runs %zu heads %d of %d, form %d", i, (int)s->heads, (int)s->key_heads,
             form);
    check_emit(run, &c);
}

static void cases_delta_rule(check_run *run, int32_t op)
{
    static const delta_shape shapes[] = {{4, 2, 128, 128}, {2, 2, 32, 32}, {6, 3, 16, 48},
                                         {3, 1, 65, 33},   {1, 1, 1, 1},   {2, 1, 7, 100}};
    TN_UNUSED(op);
    for (size_t i = 0; i < TN_COUNT(all_runs); i++)
        for (size_t k = 0; k < TN_COUNT(shapes); k++)
            for (int32_t form = 0; form < 3; form++) delta_case(run, i, &shapes[k], form);
}

void check_cases_recurrent(check_run *run, int32_t op)
{
    static const check_cases_fn cases[TN_OP_COUNT] = {
        [TN_OP_short_conv] = cases_short_conv,
        [TN_OP_delta_rule] = cases_delta_rule,
    };
    if (cases[op]) cases[op](run, op);
}
