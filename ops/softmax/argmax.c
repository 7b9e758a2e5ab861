// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// argmax: index of the first largest value of each row; NaN counts as the smallest.
#include "ops/ops.h"

#include <math.h>

tn_status tn_infer_argmax(tn_context *ctx, tn_step *step)
{
    const tn_view *x = &step->src[0];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status != TN_OK) return status;
    int64_t ne[TN_MAX_DIMS] = {x->ne[0], x->ne[1], x->ne[2], 1};
    tn_step_set_dst(step, 0, TN_TYPE_I32, x->n_dims, ne);
    return TN_OK;
}

void tn_ref_argmax(const tn_step *step)
{
    const tn_view *x = &step->src[0];
    for (int64_t r = 0; r < tn_view_n_rows(x); r++) {
        int64_t best = 0;
        double max = -INFINITY;
        for (int64_t j = 0; j < x->ne[3]; j++) {
            double v = tn_view_get_row(x, r, j);
            if (v > max) max = v, best = j;
        }
        tn_view_set_row(&step->dst[0], r, 0, (double)best);
    }
}
