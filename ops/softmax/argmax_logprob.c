// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// argmax_logprob: per row the index of the first largest value, as argmax, and the logarithm of its softmax:
// -log sum_j exp(x_j - max). x [.., n] -> I32 [.., 1], F32 [.., 1]. NaN counts as the smallest value.
#include "ops/ops.h"

#include <math.h>

tn_status tn_infer_argmax_logprob(tn_context *ctx, tn_step *step)
{
    const tn_view *x = &step->src[0];
    tn_status status = tn_infer_argmax(ctx, step);
    if (status != TN_OK) return status;
    int64_t ne[TN_MAX_DIMS] = {x->ne[0], x->ne[1], x->ne[2], 1};
    tn_step_set_dst(step, 1, TN_TYPE_F32, x->n_dims, ne);
    return TN_OK;
}

void tn_ref_argmax_logprob(const tn_step *step)
{
    const tn_view *x = &step->src[0];
    tn_ref_argmax(step);
    for (int64_t r = 0; r < tn_view_n_rows(x); r++) {
        double max = tn_view_get_row(x, r, (int64_t)tn_view_get_row(&step->dst[0], r, 0)), sum = 0.0;
        for (int64_t j = 0; j < x->ne[3]; j++) {
            double v = tn_view_get_row(x, r, j);
            if (!isnan(v)) sum += v == max ? 1.0 : exp(v - max);
        }
        tn_view_set_row(&step->dst[1], r, 0, -log(sum));
    }
}
