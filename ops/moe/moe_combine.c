// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_combine (fused): y[t] = sum_u w[t, u] x[t, u] + f[t] a[t] + b[t]: what experts give, a shared expert,
// the residual. x [T, U, n], w [T, U], a [T, n], b [T, n] (optional), f [T, 1] (optional, else 1) -> [T, n].
#include "ops/operands.h"
#include "ops/ops.h"

tn_status tn_infer_moe_combine(tn_context *ctx, tn_step *step)
{
    const tn_moe_combine_params *p = step->params;
    if (p->n_added < 1 || p->n_added > 2 || step->n_src != tn_moe_combine_sources_get(p).count)
        return tn_fail(ctx, TN_ERR_ARG, "moe_combine: %d sources, %d of them added", step->n_src, p->n_added);
    tn_status status = tn_infer_moe_sum(ctx, step);
    const tn_view *y = &step->dst[0];
    tn_moe_combine_sources s = tn_moe_combine_sources_get(p);
    for (int32_t i = s.added[0]; i < s.count && status == TN_OK; i++) {
        status = tn_need_float_rows(ctx, step, i);
        int64_t n = i == s.factor ? 1 : y->ne[3];
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
    tn_moe_combine_sources s = tn_moe_combine_sources_get(p);
    const tn_view *y = &step->dst[0];
    tn_ref_moe_sum(step);
    for (int64_t t = 0; t < y->ne[2]; t++)
        for (int64_t j = 0; j < y->ne[3]; j++) {
            double v = tn_view_get_row(&step->src[s.added[0]], t, j);
            if (p->has_factor) v *= tn_view_get_row(&step->src[s.factor], t, 0);
            v += tn_view_get_row(y, t, j);
            if (p->n_added > 1) v += tn_view_get_row(&step->src[s.added[1]], t, j);
            tn_view_set_row(y, t, j, v);
        }
}
