// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul_multi (fused): two or three products of one x: y_i = norm(x) w_i^T (+ bias_i).
// Sources x, w0, w1 [, w2], then the biases that exist, then the norm weight; results y0, y1 [, y2].
#include "ops/matmul.h"

tn_status tn_infer_matmul_multi(tn_context *ctx, tn_step *step)
{
    const tn_matmul_multi_params *p = step->params;
    const tn_view *x = &step->src[0];
    if (p->n_weights < 2 || p->n_weights > 3) return tn_fail(ctx, TN_ERR_ARG, "matmul_multi: %d weights", p->n_weights);
    step->n_dst = p->n_weights;
    int32_t next = 1 + p->n_weights;
    for (int32_t i = 0; i < p->n_weights; i++) {
        tn_status status = tn_infer_matmul_common(ctx, step, 1 + i);
        if (status == TN_OK && p->has_bias[i]) status = tn_need_vector(ctx, step, next++, step->src[1 + i].ne[2]);
        if (status != TN_OK) return status;
        int64_t ne[TN_MAX_DIMS] = {x->ne[0], x->ne[1], x->ne[2], step->src[1 + i].ne[2]};
        tn_step_set_dst(step, i, TN_TYPE_F32, x->n_dims, ne);
    }
    if (p->has_norm) {
        tn_status status = tn_infer_norm_weight(ctx, step, next++);
        if (status != TN_OK) return status;
    }
    return step->n_src == next ? TN_OK : tn_fail(ctx, TN_ERR_ARG, "matmul_multi: %d sources", step->n_src);
}

void tn_ref_matmul_multi(const tn_step *step)
{
    const tn_matmul_multi_params *p = step->params;
    int32_t next = 1 + p->n_weights;
    for (int32_t i = 0; i < p->n_weights; i++) {
        tn_linear_params linear = {.act = TN_UNARY_NONE, .has_bias = p->has_bias[i], .has_norm = p->has_norm, .eps = p->eps};
        tn_step one = {.op = TN_OP_linear, .n_src = 2, .n_dst = 1, .params = &linear};
        one.src[0] = step->src[0];
        one.src[1] = step->src[1 + i];
        if (p->has_bias[i]) one.src[one.n_src++] = step->src[next++];
        if (p->has_norm) one.src[one.n_src++] = step->src[step->n_src - 1];
        one.dst[0] = step->dst[i];
        tn_ref_linear(&one);
    }
}
