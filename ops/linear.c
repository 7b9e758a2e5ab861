// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// linear (fused): y = act(norm(x) w^T + bias) + residual. x [.., m, k], w [n, k], bias [n], residual like y,
// norm weight [k].
#include "ops/ops.h"
#include "ops/matmul.h"

tn_status tn_infer_linear(tn_context *ctx, tn_step *step)
{
    const tn_linear_params *p = step->params;
    tn_status status = tn_infer_matmul(ctx, step);
    int32_t next = 2, want = 2 + (p->has_bias != 0) + (p->has_residual != 0) + (p->has_norm != 0);
    if (status == TN_OK && step->n_src != want) status = tn_fail(ctx, TN_ERR_ARG, "linear: %d sources", step->n_src);
    if (status == TN_OK && p->has_bias) status = tn_need_vector(ctx, step, next++, step->src[1].ne[2]);
    if (status == TN_OK && p->has_residual) {
        status = tn_need_float_rows(ctx, step, next);
        if (status == TN_OK && !tn_view_same_shape(&step->src[next], &step->dst[0]))
            status = tn_fail(ctx, TN_ERR_SHAPE, "linear: the residual differs in shape from the result");
    }
    return status == TN_OK && p->has_norm ? tn_infer_norm_weight(ctx, step, step->n_src - 1) : status;
}

void tn_ref_linear(const tn_step *step)
{
    const tn_linear_params *p = step->params;
    const tn_view *x = &step->src[0], *w = &step->src[1], *y = &step->dst[0];
    const tn_view *bias = &step->src[2], *residual = &step->src[2 + (p->has_bias != 0)];
    tn_ref_norm norm = {p->has_norm ? &step->src[step->n_src - 1] : NULL, p->eps};
    for (int64_t r = 0; r < tn_view_n_rows(x); r++)
        for (int64_t j = 0; j < w->ne[2]; j++) {
            double v = tn_ref_dot_normed(w, (const char *)w->data + j * w->nb[2], x, r, &norm);
            if (p->has_bias) v += tn_view_get_row(bias, 0, j);
            if (p->act != TN_UNARY_NONE) v = tn_scalar_unary(p->act, v, 0.0, 0.0);
            if (p->has_residual) v += tn_view_get_row(residual, r, j);
            tn_view_set_row(y, r, j, v);
        }
}
