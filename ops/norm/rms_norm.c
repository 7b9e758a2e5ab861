// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm: y = x / sqrt(mean(x^2) + eps) * w over the last dimension (Zhang and Sennrich 2019, eq. 4).
// x [.., n], w [n] optional.
#include "ops/ops.h"

#include <math.h>

tn_status tn_infer_rms_norm(tn_context *ctx, tn_step *step)
{
    const tn_view *x = &step->src[0];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK && tn_step_has_src(step, 1)) status = tn_need_vector(ctx, step, 1, x->ne[3]);
    if (status != TN_OK) return status;
    tn_step_set_dst(step, 0, TN_TYPE_F32, x->n_dims, x->ne);
    return TN_OK;
}

void tn_ref_rms_norm(const tn_step *step)
{
    const tn_rms_norm_params *p = step->params;
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    int64_t n = x->ne[3];
    for (int64_t r = 0; r < tn_view_n_rows(x); r++) {
        double sum = 0.0;
        for (int64_t j = 0; j < n; j++) {
            double v = tn_view_get_row(x, r, j);
            sum += v * v;
        }
        double scale = 1.0 / sqrt(sum / (double)n + p->eps);
        for (int64_t j = 0; j < n; j++) {
            double w = tn_step_has_src(step, 1) ? tn_view_get_row(&step->src[1], 0, j) : 1.0;
            tn_view_set_row(y, r, j, tn_view_get_row(x, r, j) * scale * w);
        }
    }
}
