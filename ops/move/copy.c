// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// copy: the elements of any strided tensor as a contiguous one of a plain type.
#include "ops/ops.h"

tn_status tn_infer_copy(tn_context *ctx, tn_step *step)
{
    const tn_copy_params *p = step->params;
    const tn_view *x = &step->src[0];
    bool is_float = p->dtype == TN_TYPE_F32 || p->dtype == TN_TYPE_F16 || p->dtype == TN_TYPE_BF16;
    bool ok = x->dtype == TN_TYPE_I32 ? p->dtype == TN_TYPE_I32 : is_float;
    if (!ok)
        return tn_fail(ctx, TN_ERR_TYPE, "copy: %s to %s", tn_dtype_name(x->dtype), tn_dtype_name(p->dtype));
    tn_step_set_dst(step, 0, p->dtype, x->n_dims, x->ne);
    return TN_OK;
}

void tn_ref_copy(const tn_step *step)
{
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    for (int64_t r = 0; r < tn_view_n_rows(y); r++)
        for (int64_t j = 0; j < y->ne[3]; j++) tn_view_set_row(y, r, j, tn_view_get_row(x, r, j));
}
