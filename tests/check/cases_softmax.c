// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the ops that reduce rows: reduce, softmax, argmax.
#include "tests/check/check.h"

#include <math.h>

static void cases_reduce(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    check_size_list s = check_sizes(run);
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
    check_size_list s = check_sizes(run);
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
    check_size_list s = check_sizes(run);
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

static void cases_sample(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    check_cases_sample(run);
}

void check_cases_softmax(check_run *run, int32_t op)
{
    static const check_cases_fn cases[TN_OP_COUNT] = {
        [TN_OP_reduce] = cases_reduce,
        [TN_OP_softmax] = cases_softmax,
        [TN_OP_argmax] = cases_argmax,
        [TN_OP_argmax_logprob] = cases_argmax,
        [TN_OP_sample] = cases_sample,
    };
    if (cases[op]) cases[op](run, op);
}
