// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul_id_glu (fused): glu of two matmul_id products. Sources x, w_gate, w_up [n_expert, n, k], ids.
#include "ops/ops.h"
#include "ops/matmul.h"

tn_status tn_infer_matmul_id_glu(tn_context *ctx, tn_step *step)
{
    tn_status status = tn_infer_matmul_id(ctx, step);
    if (status == TN_OK) status = tn_infer_matmul_id_common(ctx, step, 2, 3);
    if (status == TN_OK && !tn_view_same_shape(&step->src[1], &step->src[2]))
        status = tn_fail(ctx, TN_ERR_SHAPE, "matmul_id_glu: gate and up differ in shape");
    return status;
}

void tn_ref_matmul_id_glu(const tn_step *step)
{
    const tn_matmul_id_glu_params *p = step->params;
    const tn_view *x = &step->src[0], *ids = &step->src[3], *y = &step->dst[0];
    for (int64_t t = 0; t < y->ne[1]; t++)
        for (int64_t u = 0; u < y->ne[2]; u++)
            for (int64_t j = 0; j < y->ne[3]; j++) {
                // Rounded like the unfused form, whose products are stored as f32.
                double gate = (float)tn_ref_dot_id(&step->src[1], x, ids, t, u, j);
                double up = (float)tn_ref_dot_id(&step->src[2], x, ids, t, u, j);
                tn_view_set(y, 0, t, u, j, tn_scalar_glu(&p->glu, gate, up));
            }
}
