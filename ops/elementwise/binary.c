// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// binary: elementwise, each extent equal or one of them 1 (broadcast); kinds in params.h.
#include "ops/ops.h"

static double apply(int32_t kind, double a, double b)
{
    switch (kind) { // the definitions themselves: one line each
    case TN_BINARY_ADD: return a + b;
    case TN_BINARY_SUB: return a - b;
    case TN_BINARY_MUL: return a * b;
    case TN_BINARY_DIV: return a / b;
    case TN_BINARY_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

tn_status tn_infer_binary(tn_context *ctx, tn_step *step)
{
    const tn_binary_params *p = step->params;
    const tn_view *a = &step->src[0], *b = &step->src[1];
    if (p->kind < 0 || p->kind >= TN_BINARY_COUNT)
        return tn_fail(ctx, TN_ERR_ARG, "binary: kind %d", p->kind);
    for (int32_t i = 0; i < 2; i++) {
        tn_status status = tn_need_dtype(ctx, step, i, TN_TYPE_F32);
        if (status != TN_OK) return status;
    }
    int64_t ne[TN_MAX_DIMS];
    for (int d = 0; d < TN_MAX_DIMS; d++) {
        ne[d] = a->ne[d] == 1 ? b->ne[d] : a->ne[d];
        if (b->ne[d] != 1 && b->ne[d] != ne[d]) {
            char ta[96], tb[96];
            return tn_fail(ctx, TN_ERR_SHAPE, "binary: %s and %s do not broadcast",
                           tn_view_text(a, ta, sizeof ta), tn_view_text(b, tb, sizeof tb));
        }
    }
    tn_step_set_dst(step, 0, TN_TYPE_F32, TN_MAX(a->n_dims, b->n_dims), ne);
    return TN_OK;
}

static double get(const tn_view *v, const int64_t i[4])
{
    return tn_view_get(v, v->ne[0] == 1 ? 0 : i[0], v->ne[1] == 1 ? 0 : i[1], v->ne[2] == 1 ? 0 : i[2],
                       v->ne[3] == 1 ? 0 : i[3]);
}

void tn_ref_binary(const tn_step *step)
{
    const tn_binary_params *p = step->params;
    const tn_view *y = &step->dst[0];
    int64_t i[4];
    for (i[0] = 0; i[0] < y->ne[0]; i[0]++)
        for (i[1] = 0; i[1] < y->ne[1]; i[1]++)
            for (i[2] = 0; i[2] < y->ne[2]; i[2]++)
                for (i[3] = 0; i[3] < y->ne[3]; i[3]++)
                    tn_view_set(y, i[0], i[1], i[2], i[3],
                                apply(p->kind, get(&step->src[0], i), get(&step->src[1], i)));
}
