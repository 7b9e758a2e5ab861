// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the norms.
#include "tests/check/check.h"

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
    check_size_list s = check_sizes(run);
    for (size_t i = 0; i < s.count; i++)
        for (int32_t form = 0; form < 8; form++)
            if (form < 2 || s.n[i] == 257 || s.n[i] == 64) norm_case(run, op, s.n[i], form);
}

void check_cases_norm(check_run *run, int32_t op)
{
    static const check_cases_fn cases[TN_OP_COUNT] = {
        [TN_OP_rms_norm] = cases_norm,
        [TN_OP_layer_norm] = cases_norm,
        [TN_OP_add_rms_norm] = cases_norm,
    };
    if (cases[op]) cases[op](run, op);
}
