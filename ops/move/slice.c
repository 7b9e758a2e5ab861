// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// slice: `length` indices from `start` along one axis; a view.
#include "ops/ops.h"

tn_status tn_infer_slice(tn_context *ctx, tn_step *step)
{
    const tn_slice_params *p = step->params;
    const tn_view *x = &step->src[0];
    if (p->axis < 0 || p->axis >= x->n_dims)
        return tn_fail(ctx, TN_ERR_ARG, "slice: axis %d of %d", p->axis, x->n_dims);
    int32_t d = TN_MAX_DIMS - x->n_dims + p->axis;
    if (p->start < 0 || p->length < 1 || p->start > x->ne[d] || p->length > x->ne[d] - p->start)
        return tn_fail(ctx, TN_ERR_SHAPE, "slice: %lld from %lld of %lld", (long long)p->length,
                       (long long)p->start, (long long)x->ne[d]);
    int64_t block = d == 3 ? tn_dtype_block_elems(x->dtype) : 1;
    if (p->start % block != 0 || p->length % block != 0)
        return tn_fail(ctx, TN_ERR_SHAPE, "slice: cuts a block of %s", tn_dtype_name(x->dtype));
    tn_view y = *x;
    y.ne[d] = p->length;
    y.data = NULL;
    y.offset = (size_t)(p->start / block * x->nb[d]); // relative to the source; the recorder adds it
    step->dst[0] = y;
    return TN_OK;
}

void tn_ref_slice(const tn_step *step)
{
    TN_UNUSED(step);
}
