// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// reshape: the same elements in the same order under another shape; a view. A strided source works as long
// as each new dimension lies inside one run of the old ones (a row slice [T, H*D] becomes [T, H, D]).
#include "ops/ops.h"

// Strides of y over the memory of x. Walks both shapes from the last dimension in groups of equal element
// count; a group of old dimensions must be one run. False if the shape needs a copy.
static bool view_strides(const tn_view *x, tn_view *y)
{
    int a = TN_MAX_DIMS - 1, b = TN_MAX_DIMS - 1;
    while (a >= 0 || b >= 0) {
        int64_t na = a >= 0 ? x->ne[a] : 1, nb = b >= 0 ? y->ne[b] : 1;
        int a0 = a, b0 = b;
        while (na != nb) {
            if (na < nb) na *= x->ne[--a];
            else nb *= y->ne[--b];
        }
        // Dimensions of 1 in front do not matter for being one run.
        int64_t stride = a0 >= 0 ? x->nb[a0] : 0, run = stride * (a0 >= 0 ? x->ne[a0] : 1);
        for (int d = a0 - 1; d >= a; d--) {
            if (x->ne[d] != 1 && x->nb[d] != run) return false;
            run *= x->ne[d];
        }
        for (int d = b0; d >= b && d >= 0; d--) {
            y->nb[d] = stride;
            stride *= y->ne[d];
        }
        a--, b--;
    }
    return true;
}

tn_status tn_infer_reshape(tn_context *ctx, tn_step *step)
{
    const tn_reshape_params *p = step->params;
    const tn_view *x = &step->src[0];
    if (p->n_dims < 1 || p->n_dims > TN_MAX_DIMS)
        return tn_fail(ctx, TN_ERR_ARG, "reshape: rank %d", p->n_dims);
    int64_t ne[TN_MAX_DIMS] = {1, 1, 1, 1}, known = 1, n = tn_view_n_elems(x);
    int free_dim = -1;
    for (int i = 0; i < p->n_dims; i++) {
        int d = TN_MAX_DIMS - p->n_dims + i;
        ne[d] = p->shape[i];
        if (ne[d] == -1 && free_dim < 0) free_dim = d;
        else if (ne[d] < 1 || known > n / ne[d])
            return tn_fail(ctx, TN_ERR_SHAPE, "reshape: %lld elements do not fit", (long long)n);
        else known *= ne[d];
    }
    if (free_dim >= 0) ne[free_dim] = n / known;
    if (free_dim >= 0 ? n % known != 0 : n != known)
        return tn_fail(ctx, TN_ERR_SHAPE, "reshape: %lld elements do not fit a multiple of %lld",
                       (long long)n, (long long)known);
    if (ne[3] % tn_dtype_block_elems(x->dtype) != 0)
        return tn_fail(ctx, TN_ERR_SHAPE, "reshape: rows of %lld cut blocks of %s", (long long)ne[3],
                       tn_dtype_name(x->dtype));
    tn_step_set_dst(step, 0, x->dtype, p->n_dims, ne);
    if (tn_view_contiguous(x)) return TN_OK;
    if (tn_dtype_block_elems(x->dtype) != 1 || !view_strides(x, &step->dst[0]))
        return tn_fail(ctx, TN_ERR_SHAPE, "reshape: the source is strided in a way that needs a copy first");
    return TN_OK;
}

void tn_ref_reshape(const tn_step *step)
{
    TN_UNUSED(step);
}
