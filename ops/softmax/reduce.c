// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// reduce: sum, mean or maximum over the last dimension, which becomes 1.
#include "ops/ops.h"

#include <math.h>

tn_status tn_infer_reduce(tn_context *ctx, tn_step *step)
{
    const tn_reduce_params *p = step->params;
    const tn_view *x = &step->src[0];
    if (p->kind < 0 || p->kind >= TN_REDUCE_COUNT)
        return tn_fail(ctx, TN_ERR_ARG, "reduce: kind %d", p->kind);
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status != TN_OK) return status;
    int64_t ne[TN_MAX_DIMS] = {x->ne[0], x->ne[1], x->ne[2], 1};
    tn_step_set_dst(step, 0, TN_TYPE_F32, x->n_dims, ne);
    return TN_OK;
}

void tn_ref_reduce(const tn_step *step)
{
    const tn_reduce_params *p = step->params;
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    for (int64_t r = 0; r < tn_view_n_rows(x); r++) {
        double sum = 0.0, max = -INFINITY;
        for (int64_t j = 0; j < x->ne[3]; j++) {
            double v = tn_view_get_row(x, r, j);
            sum += v;
            if (v > max) max = v;
        }
        if (p->kind == TN_REDUCE_MEAN) sum /= (double)x->ne[3];
        tn_view_set_row(y, r, 0, p->kind == TN_REDUCE_MAX ? max : sum);
    }
}
