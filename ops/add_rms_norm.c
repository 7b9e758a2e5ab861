// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// add_rms_norm (fused): sum = a + b; normed = rms_norm(sum) * w. a, b [.., n] of one shape, w [n] optional.
#include "ops/ops.h"

tn_status tn_infer_add_rms_norm(tn_context *ctx, tn_step *step)
{
    const tn_view *a = &step->src[0];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK) status = tn_need_float_rows(ctx, step, 1);
    if (status == TN_OK && tn_step_has_src(step, 2)) status = tn_need_vector(ctx, step, 2, a->ne[3]);
    if (status != TN_OK) return status;
    if (!tn_view_same_shape(a, &step->src[1])) return tn_fail(ctx, TN_ERR_SHAPE, "add_rms_norm: a and b differ in shape");
    for (int32_t i = 0; i < 2; i++) tn_step_set_dst(step, i, TN_TYPE_F32, a->n_dims, a->ne);
    return TN_OK;
}

void tn_ref_add_rms_norm(const tn_step *step)
{
    const tn_add_rms_norm_params *p = step->params;
    tn_step add = {.op = TN_OP_binary, .n_src = 2, .n_dst = 1, .params = &(tn_binary_params){TN_BINARY_ADD}};
    add.src[0] = step->src[0];
    add.src[1] = step->src[1];
    add.dst[0] = step->dst[0];
    tn_ref_binary(&add);
    tn_step norm = {.op = TN_OP_rms_norm, .n_src = step->n_src - 1, .n_dst = 1, .params = &(tn_rms_norm_params){p->eps}};
    norm.src[0] = step->dst[0];
    if (step->n_src > 2) norm.src[1] = step->src[2];
    norm.dst[0] = step->dst[1];
    tn_ref_rms_norm(&norm);
}
