// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_combine (fused): y[t] = sum_u w[t, u] x[t, u] + f[t] a[t] + b[t]: what experts give, a shared expert,
// the residual. x [T, U, n], w [T, U], a [T, n], b [T, n] (optional), f [T, 1] (optional, else 1) -> [T, n].
#include "ops/ops.h"

tn_status tn_infer_moe_combine(tn_context *ctx, tn_step *step)
{
    const tn_moe_combine_params *p = step->params;
    if (p->n_added < 1 || p->n_added > 2 || step->n_src != 2 + p->n_added + (p->has_factor != 0))
        return tn_fail(ctx, TN_ERR_ARG, "moe_combine: %d sources, %d of them added", step->n_src, p->n_added);
    tn_status status = tn_infer_moe_sum(ctx, step);
    const tn_view *y = &step->dst[0];
    for (int32_t i = 2; i < step->n_src && status == TN_OK; i++) {
        status = tn_need_float_rows(ctx, step, i);
        int64_t n = i < 2 + p->n_added ? y->ne[3] : 1;
        const tn_view *v = &step->src[i];
        if (status == TN_OK && (v->ne[0] != 1 || v->ne[1] != 1 || v->ne[2] != y->ne[2] || v->ne[3] != n))
            status = tn_fail(ctx, TN_ERR_SHAPE, "moe_combine: source %d is no %lld x %lld", i,
                             (long long)y->ne[2], (long long)n);
    }
    return status;
}

void tn_ref_moe_combine(const tn_step *step)
{
    const tn_moe_combine_params *p = step->params;
    const tn_view *y = &step->dst[0];
    tn_ref_moe_sum(step);
    for (int64_t t = 0; t < y->ne[2]; t++)
        for (int64_t j = 0; j < y->ne[3]; j++) {
            double v = tn_view_get_row(&step->src[2], t, j);
            if (p->has_factor) v *= tn_view_get_row(&step->src[step->n_src - 1], t, 0);
            v += tn_view_get_row(y, t, j);
            if (p->n_added > 1) v += tn_view_get_row(&step->src[3], t, j);
            tn_view_set_row(y, t, j, v);
        }
}
