// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// add_rms_norm (fused): sum = a + b; normed = rms_norm(sum) * w. a, b [.., n] of one shape, w [n] optional.
#include "ops/operands.h"

tn_status tn_infer_add_rms_norm(tn_context *ctx, tn_step *step)
{
    tn_add_rms_norm_views in = tn_add_rms_norm_views_get(step);
    const tn_view *a = in.a;
    tn_status status = tn_need_float_rows(ctx, step, TN_SRC_add_rms_norm_a);
    if (status == TN_OK) status = tn_need_float_rows(ctx, step, TN_SRC_add_rms_norm_b);
    if (status == TN_OK && in.w) status = tn_need_vector(ctx, step, TN_SRC_add_rms_norm_w, a->ne[3]);
    if (status != TN_OK) return status;
    if (!tn_view_same_shape(a, in.b))
        return tn_fail(ctx, TN_ERR_SHAPE, "add_rms_norm: a and b differ in shape");
    for (int32_t i = 0; i < 2; i++) tn_step_set_dst(step, i, TN_TYPE_F32, a->n_dims, a->ne);
    return TN_OK;
}

void tn_ref_add_rms_norm(const tn_step *step)
{
    const tn_add_rms_norm_params *p = step->params;
    tn_add_rms_norm_views in = tn_add_rms_norm_views_get(step);
    tn_step add = {.op = TN_OP_binary, .n_src = 2, .n_dst = 1, .params = &(tn_binary_params){TN_BINARY_ADD}};
    add.src[TN_SRC_binary_a] = *in.a;
    add.src[TN_SRC_binary_b] = *in.b;
    add.dst[0] = step->dst[TN_DST_add_rms_norm_sum];
    tn_ref_binary(&add);
    tn_step norm = {.op = TN_OP_rms_norm, .n_src = 1, .n_dst = 1, .params = &(tn_rms_norm_params){p->eps}};
    norm.src[TN_SRC_rms_norm_x] = step->dst[TN_DST_add_rms_norm_sum];
    if (in.w) norm.src[norm.n_src++] = *in.w;
    norm.dst[0] = step->dst[TN_DST_add_rms_norm_normed];
    tn_ref_rms_norm(&norm);
}
