// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_weights: weights of the chosen experts (Shazeer et al. 2017; gating kinds in params.h).
// x [T, E] router logits (or probabilities with gating none), ids I32 [T, U] -> [T, U].
#include "ops/ops.h"

#include <math.h>

tn_status tn_infer_moe_weights(tn_context *ctx, tn_step *step)
{
    const tn_moe_weights_params *p = step->params;
    const tn_view *x = &step->src[0], *ids = &step->src[1];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK) status = tn_need_dtype(ctx, step, 1, TN_TYPE_I32);
    if (status != TN_OK) return status;
    if (x->n_dims != 2 || ids->n_dims != 2 || x->ne[2] != ids->ne[2])
        return tn_fail(ctx, TN_ERR_SHAPE, "moe_weights: x and ids must have one row per token");
    if (p->gating < TN_GATING_NONE || p->gating > TN_GATING_SOFTMAX_SELECTED)
        return tn_fail(ctx, TN_ERR_ARG, "moe_weights: gating %d", p->gating);
    tn_step_set_dst(step, 0, TN_TYPE_F32, 2, ids->ne);
    return TN_OK;
}

static double chosen(const tn_step *step, int64_t t, int64_t u)
{
    int64_t e = (int64_t)tn_view_get_row(&step->src[1], t, u);
    return e >= 0 && e < step->src[0].ne[3] ? tn_view_get_row(&step->src[0], t, e) : -INFINITY;
}

// Maximum and sum of exponentials over all experts, or over the chosen ones.
static void softmax_terms(const tn_step *step, int64_t t, bool selected, double *max, double *sum)
{
    int64_t n = selected ? step->src[1].ne[3] : step->src[0].ne[3];
    *max = -INFINITY;
    *sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        *max = fmax(*max, selected ? chosen(step, t, i) : tn_view_get_row(&step->src[0], t, i));
    for (int64_t i = 0; i < n; i++)
        *sum += exp((selected ? chosen(step, t, i) : tn_view_get_row(&step->src[0], t, i)) - *max);
}

static double weight(const tn_step *step, int64_t t, int64_t u, double max, double sum)
{
    const tn_moe_weights_params *p = step->params;
    double x = chosen(step, t, u);
    if (p->gating == TN_GATING_SIGMOID) return 1.0 / (1.0 + exp(-x));
    return p->gating == TN_GATING_NONE ? x : exp(x - max) / sum;
}

void tn_ref_moe_weights(const tn_step *step)
{
    const tn_moe_weights_params *p = step->params;
    const tn_view *y = &step->dst[0];
    for (int64_t t = 0; t < y->ne[2]; t++) {
        double max, sum, total = 0.0;
        softmax_terms(step, t, p->gating == TN_GATING_SOFTMAX_SELECTED, &max, &sum);
        for (int64_t u = 0; u < y->ne[3]; u++) total += weight(step, t, u, max, sum);
        double scale = p->scale != 0.0f ? p->scale : 1.0;
        if (p->normalise) scale /= fmax(total, 6.103515625e-5); // 2^-14, smallest normal f16
        for (int64_t u = 0; u < y->ne[3]; u++) tn_view_set_row(y, t, u, weight(step, t, u, max, sum) * scale);
    }
}
