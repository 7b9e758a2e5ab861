// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// concat: two F32 or I32 tensors joined along one axis.
#include "ops/ops.h"

tn_status tn_infer_concat(tn_context *ctx, tn_step *step)
{
    const tn_concat_params *p = step->params;
    const tn_view *a = &step->src[0], *b = &step->src[1];
    if (a->dtype != b->dtype || (a->dtype != TN_TYPE_F32 && a->dtype != TN_TYPE_I32))
        return tn_fail(ctx, TN_ERR_TYPE, "concat: %s and %s", tn_dtype_name(a->dtype),
                       tn_dtype_name(b->dtype));
    int32_t n = TN_MAX(a->n_dims, b->n_dims), d = TN_MAX_DIMS - n + p->axis;
    if (p->axis < 0 || p->axis >= n) return tn_fail(ctx, TN_ERR_ARG, "concat: axis %d of %d", p->axis, n);
    int64_t ne[TN_MAX_DIMS];
    for (int i = 0; i < TN_MAX_DIMS; i++) {
        ne[i] = a->ne[i] + (i == d ? b->ne[i] : 0);
        if (i != d && a->ne[i] != b->ne[i])
            return tn_fail(ctx, TN_ERR_SHAPE, "concat: shapes differ outside axis %d", p->axis);
    }
    tn_step_set_dst(step, 0, a->dtype, n, ne);
    return TN_OK;
}

void tn_ref_concat(const tn_step *step)
{
    const tn_concat_params *p = step->params;
    const tn_view *a = &step->src[0], *b = &step->src[1], *y = &step->dst[0];
    int32_t d = TN_MAX_DIMS - y->n_dims + p->axis;
    int64_t i[4];
    for (i[0] = 0; i[0] < y->ne[0]; i[0]++)
        for (i[1] = 0; i[1] < y->ne[1]; i[1]++)
            for (i[2] = 0; i[2] < y->ne[2]; i[2]++)
                for (i[3] = 0; i[3] < y->ne[3]; i[3]++) {
                    int64_t s[4] = {i[0], i[1], i[2], i[3]};
                    const tn_view *x = i[d] < a->ne[d] ? a : b;
                    if (x == b) s[d] -= a->ne[d];
                    tn_view_set(y, i[0], i[1], i[2], i[3], tn_view_get(x, s[0], s[1], s[2], s[3]));
                }
}
