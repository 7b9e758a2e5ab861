// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax: y_j = exp(s_j - max s) / sum, s = scale * x (+ mask); a row of -inf only gives zeros.
// x [.., n], mask broadcast over the outer dimensions.
#include "ops/ops.h"

#include <math.h>

tn_status tn_infer_softmax(tn_context *ctx, tn_step *step)
{
    const tn_view *x = &step->src[0];
    for (int32_t i = 0; i < step->n_src; i++) {
        tn_status status = tn_need_float_rows(ctx, step, i);
        if (status != TN_OK) return status;
    }
    if (tn_step_has_src(step, 1)) {
        const tn_view *m = &step->src[1];
        for (int d = 0; d < TN_MAX_DIMS; d++)
            if (m->ne[d] != x->ne[d] && (m->ne[d] != 1 || d == 3))
                return tn_fail(ctx, TN_ERR_SHAPE, "softmax: the mask does not broadcast over the rows");
    }
    tn_step_set_dst(step, 0, TN_TYPE_F32, x->n_dims, x->ne);
    return TN_OK;
}

static double score(const tn_step *step, const int64_t i[4])
{
    const tn_softmax_params *p = step->params;
    double s = tn_view_get(&step->src[0], i[0], i[1], i[2], i[3]) * (p->scale != 0.0f ? p->scale : 1.0);
    if (!tn_step_has_src(step, 1)) return s;
    const tn_view *m = &step->src[1];
    return s +
           tn_view_get(m, m->ne[0] == 1 ? 0 : i[0], m->ne[1] == 1 ? 0 : i[1], m->ne[2] == 1 ? 0 : i[2], i[3]);
}

static void softmax_row(const tn_step *step, int64_t i[4])
{
    const tn_view *y = &step->dst[0];
    double max = -INFINITY, sum = 0.0;
    for (i[3] = 0; i[3] < y->ne[3]; i[3]++) max = fmax(max, score(step, i));
    if (max > -INFINITY)
        for (i[3] = 0; i[3] < y->ne[3]; i[3]++) sum += exp(score(step, i) - max);
    for (i[3] = 0; i[3] < y->ne[3]; i[3]++)
        tn_view_set(y, i[0], i[1], i[2], i[3], max > -INFINITY ? exp(score(step, i) - max) / sum : 0.0);
}

void tn_ref_softmax(const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    int64_t i[4];
    for (i[0] = 0; i[0] < y->ne[0]; i[0]++)
        for (i[1] = 0; i[1] < y->ne[1]; i[1]++)
            for (i[2] = 0; i[2] < y->ne[2]; i[2]++) softmax_row(step, i);
}
