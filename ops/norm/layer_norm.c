// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// layer_norm: y = (x - mean) / sqrt(var + eps) * w + b over the last dimension (Ba et al. 2016), biased
// variance. x [.., n], w [n] and b [n] optional.
#include "ops/operands.h"

#include <math.h>

tn_status tn_infer_layer_norm(tn_context *ctx, tn_step *step)
{
    tn_layer_norm_views in = tn_layer_norm_views_get(step);
    const tn_view *x = in.x;
    tn_status status = tn_need_float_rows(ctx, step, TN_SRC_layer_norm_x);
    if (status == TN_OK && in.w) status = tn_need_vector(ctx, step, TN_SRC_layer_norm_w, x->ne[3]);
    if (status == TN_OK && in.bias) status = tn_need_vector(ctx, step, TN_SRC_layer_norm_bias, x->ne[3]);
    if (status != TN_OK) return status;
    tn_step_set_dst(step, 0, TN_TYPE_F32, x->n_dims, x->ne);
    return TN_OK;
}

void tn_ref_layer_norm(const tn_step *step)
{
    const tn_layer_norm_params *p = step->params;
    tn_layer_norm_views in = tn_layer_norm_views_get(step);
    const tn_view *x = in.x, *y = &step->dst[0];
    int64_t n = x->ne[3];
    for (int64_t r = 0; r < tn_view_n_rows(x); r++) {
        double mean = 0.0, var = 0.0;
        for (int64_t j = 0; j < n; j++) mean += tn_view_get_row(x, r, j);
        mean /= (double)n;
        for (int64_t j = 0; j < n; j++) {
            double d = tn_view_get_row(x, r, j) - mean;
            var += d * d;
        }
        double scale = 1.0 / sqrt(var / (double)n + p->eps);
        for (int64_t j = 0; j < n; j++) {
            double w = in.w ? tn_view_get_row(in.w, 0, j) : 1.0;
            double b = in.bias ? tn_view_get_row(in.bias, 0, j) : 0.0;
            tn_view_set_row(y, r, j, (tn_view_get_row(x, r, j) - mean) * scale * w + b);
        }
    }
}
