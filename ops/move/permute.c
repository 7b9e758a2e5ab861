// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// permute: result axis i is source axis axes[i]; a view.
#include "ops/ops.h"

tn_status tn_infer_permute(tn_context *ctx, tn_step *step)
{
    const tn_permute_params *p = step->params;
    const tn_view *x = &step->src[0];
    int32_t n = x->n_dims, seen = 0;
    tn_view y = *x;
    for (int32_t i = 0; i < n; i++) {
        int32_t a = p->axes[i];
        if (a < 0 || a >= n || (seen & 1 << a))
            return tn_fail(ctx, TN_ERR_ARG, "permute: axes are no permutation of %d", n);
        seen |= 1 << a;
        y.ne[TN_MAX_DIMS - n + i] = x->ne[TN_MAX_DIMS - n + a];
        y.nb[TN_MAX_DIMS - n + i] = x->nb[TN_MAX_DIMS - n + a];
    }
    if (p->axes[n - 1] != n - 1 && tn_dtype_block_elems(x->dtype) != 1)
        return tn_fail(ctx, TN_ERR_TYPE, "permute: blocks of %s stay in the last dimension",
                       tn_dtype_name(x->dtype));
    y.data = NULL;
    step->dst[0] = y;
    return TN_OK;
}

void tn_ref_permute(const tn_step *step)
{
    TN_UNUSED(step);
}
