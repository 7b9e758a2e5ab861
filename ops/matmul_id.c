// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul_id: each token's rows times the experts it chose: y[t, u] = x[t, u or 0] w[ids[t, u]]^T.
// x [T, U or 1, k], w [n_expert, n, k] of any type, ids I32 [T, U] -> [T, U, n]; an id outside gives zeros.
#include "ops/ops.h"
#include "ops/matmul.h"
#include "ops/quant.h"

tn_status tn_infer_matmul_id_common(tn_context *ctx, tn_step *step, int32_t w_src, int32_t ids_src)
{
    const tn_view *x = &step->src[0], *w = &step->src[w_src], *ids = &step->src[ids_src];
    const char *op = tn_op_name(step->op);
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK) status = tn_need_dtype(ctx, step, ids_src, TN_TYPE_I32);
    if (status != TN_OK) return status;
    if (!tn_quant_info_get(w->dtype)->to_f32)
        return tn_fail(ctx, TN_ERR_TYPE, "%s: weights of %s", op, tn_dtype_name(w->dtype));
    bool ok = x->n_dims == 3 && w->n_dims == 3 && ids->n_dims == 2 && tn_view_contiguous(w) && w->ne[3] == x->ne[3] &&
              ids->ne[2] == x->ne[1] && (x->ne[2] == 1 || x->ne[2] == ids->ne[3]);
    if (!ok) {
        char a[96], b[96], c[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "%s: x %s, w %s, ids %s", op, tn_view_text(x, a, sizeof a),
                       tn_view_text(w, b, sizeof b), tn_view_text(ids, c, sizeof c));
    }
    return TN_OK;
}

tn_status tn_infer_matmul_id(tn_context *ctx, tn_step *step)
{
    tn_status status = tn_infer_matmul_id_common(ctx, step, 1, step->n_src - 1);
    if (status != TN_OK) return status;
    const tn_view *w = &step->src[1], *ids = &step->src[step->n_src - 1];
    int64_t ne[TN_MAX_DIMS] = {1, ids->ne[2], ids->ne[3], w->ne[2]};
    tn_step_set_dst(step, 0, TN_TYPE_F32, 3, ne);
    return TN_OK;
}

double tn_ref_dot_id(const tn_view *w, const tn_view *x, const tn_view *ids, int64_t t, int64_t u, int64_t j)
{
    int64_t e = (int64_t)tn_view_get(ids, 0, 0, t, u);
    if (e < 0 || e >= w->ne[1]) return 0.0;
    return tn_ref_dot(w, (const char *)w->data + e * w->nb[1] + j * w->nb[2], x, t * x->ne[2] + (x->ne[2] > 1 ? u : 0));
}

void tn_ref_matmul_id(const tn_step *step)
{
    const tn_view *x = &step->src[0], *w = &step->src[1], *ids = &step->src[2], *y = &step->dst[0];
    for (int64_t t = 0; t < y->ne[1]; t++)
        for (int64_t u = 0; u < y->ne[2]; u++)
            for (int64_t j = 0; j < y->ne[3]; j++) tn_view_set(y, 0, t, u, j, tn_ref_dot_id(w, x, ids, t, u, j));
}
