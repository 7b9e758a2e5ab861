// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// glu: act(gate) * up, the GLU of Shazeer 2020; the clamped form with alpha is that of gpt-oss.
// gate, up [.., n] of one shape, rows may be strided.
#include "ops/ops.h"

#include <math.h>

double tn_scalar_glu(const tn_glu_params *p, double gate, double up)
{
    if (p->limit > 0.0f) {
        double limit = p->limit;
        if (gate > limit) gate = limit;
        up = up > limit ? limit : up < -limit ? -limit : up;
    }
    if (p->alpha > 0.0f) return gate / (1.0 + exp(-(double)p->alpha * gate)) * (up + 1.0);
    return tn_scalar_unary(p->act, gate, 0.0, 0.0) * up;
}

tn_status tn_infer_glu(tn_context *ctx, tn_step *step)
{
    const tn_glu_params *p = step->params;
    const tn_view *g = &step->src[0], *u = &step->src[1];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK) status = tn_need_float_rows(ctx, step, 1);
    if (status != TN_OK) return status;
    if (!tn_view_same_shape(g, u)) return tn_fail(ctx, TN_ERR_SHAPE, "glu: gate and up differ in shape");
    if (p->act < 0 || p->act >= TN_UNARY_COUNT) return tn_fail(ctx, TN_ERR_ARG, "glu: activation %d", p->act);
    tn_step_set_dst(step, 0, TN_TYPE_F32, g->n_dims, g->ne);
    return TN_OK;
}

void tn_ref_glu(const tn_step *step)
{
    const tn_view *g = &step->src[0], *u = &step->src[1], *y = &step->dst[0];
    for (int64_t r = 0; r < tn_view_n_rows(y); r++)
        for (int64_t j = 0; j < y->ne[3]; j++)
            tn_view_set_row(y, r, j,
                            tn_scalar_glu(step->params, tn_view_get_row(g, r, j), tn_view_get_row(u, r, j)));
}
