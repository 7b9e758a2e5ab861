// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// transfer: the same tensor in the memory of another device. Recorded by the place pass only; the runner
// moves the bytes, this reference serves devices that share memory.
#include "ops/ops.h"

#include <string.h>

tn_status tn_infer_transfer(tn_context *ctx, tn_step *step)
{
    const tn_view *x = &step->src[0];
    if (!tn_view_contiguous(x))
        return tn_fail(ctx, TN_ERR_SHAPE, "transfer: the source is strided; copy it first");
    tn_step_set_dst(step, 0, x->dtype, x->n_dims, x->ne);
    return TN_OK;
}

void tn_ref_transfer(const tn_step *step)
{
    const tn_view *x = &step->src[0];
    size_t size = tn_dtype_row_size(x->dtype, x->ne[3]) * (size_t)tn_view_n_rows(x);
    memcpy(step->dst[0].data, x->data, size);
}
