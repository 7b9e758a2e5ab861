// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul_glu (fused): y = glu(norm(x) w_gate^T, norm(x) w_up^T). Sources x [.., m, k], w_gate [n, k], w_up [n, k],
// norm weight [k].
#include "ops/ops.h"
#include "ops/matmul.h"

tn_status tn_infer_matmul_glu(tn_context *ctx, tn_step *step)
{
    tn_status status = tn_infer_matmul(ctx, step);
    if (status == TN_OK) status = tn_infer_matmul_common(ctx, step, 2);
    if (status == TN_OK && step->src[1].ne[2] != step->src[2].ne[2])
        status = tn_fail(ctx, TN_ERR_SHAPE, "matmul_glu: gate and up differ in shape");
    const tn_matmul_glu_params *p = step->params;
    if (status == TN_OK && step->n_src != 3 + (p->has_norm != 0)) status = tn_fail(ctx, TN_ERR_ARG, "matmul_glu: %d sources", step->n_src);
    return status == TN_OK && p->has_norm ? tn_infer_norm_weight(ctx, step, 3) : status;
}

void tn_ref_matmul_glu(const tn_step *step)
{
    const tn_matmul_glu_params *p = step->params;
    const tn_view *x = &step->src[0], *g = &step->src[1], *u = &step->src[2], *y = &step->dst[0];
    tn_ref_norm norm = {p->has_norm ? &step->src[3] : NULL, p->eps};
    for (int64_t r = 0; r < tn_view_n_rows(x); r++)
        for (int64_t j = 0; j < g->ne[2]; j++) {
            // Rounded like the unfused form, whose products are stored as f32.
            double gate = (float)tn_ref_dot_normed(g, (const char *)g->data + j * g->nb[2], x, r, &norm);
            double up = (float)tn_ref_dot_normed(u, (const char *)u->data + j * u->nb[2], x, r, &norm);
            tn_view_set_row(y, r, j, tn_scalar_glu(&p->glu, gate, up));
        }
}
