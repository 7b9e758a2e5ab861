// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_sum: y[t] = sum_u w[t, u] x[t, u]. x [T, U, n], w [T, U] -> [T, n].
#include "ops/ops.h"

tn_status tn_infer_moe_sum(tn_context *ctx, tn_step *step)
{
    const tn_view *x = &step->src[0], *w = &step->src[1];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK) status = tn_need_float_rows(ctx, step, 1);
    if (status != TN_OK) return status;
    if (x->n_dims != 3 || w->n_dims != 2 || x->ne[1] != w->ne[2] || x->ne[2] != w->ne[3])
        return tn_fail(ctx, TN_ERR_SHAPE, "moe_sum: one weight per token and expert");
    int64_t ne[TN_MAX_DIMS] = {1, 1, x->ne[1], x->ne[3]};
    tn_step_set_dst(step, 0, TN_TYPE_F32, 2, ne);
    return TN_OK;
}

void tn_ref_moe_sum(const tn_step *step)
{
    const tn_view *x = &step->src[0], *w = &step->src[1], *y = &step->dst[0];
    for (int64_t t = 0; t < y->ne[2]; t++)
        for (int64_t j = 0; j < y->ne[3]; j++) {
            double sum = 0.0;
            for (int64_t u = 0; u < w->ne[3]; u++)
                sum += tn_view_get_row(w, t, u) * tn_view_get(x, 0, t, u, j);
            tn_view_set_row(y, t, j, sum);
        }
}
