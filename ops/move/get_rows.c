// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// get_rows: rows of a table of any type by index, as F32, times scale.
// table [n, k], ids I32 [..] -> y [.., k]; an index outside the table gives a row of zeros.
#include "ops/ops.h"
#include "ops/quant.h"

tn_status tn_infer_get_rows(tn_context *ctx, tn_step *step)
{
    const tn_view *table = &step->src[0], *ids = &step->src[1];
    tn_status status = tn_need_dtype(ctx, step, 1, TN_TYPE_I32);
    if (status != TN_OK) return status;
    if (!tn_quant_info_get(table->dtype)->to_f32)
        return tn_fail(ctx, TN_ERR_TYPE, "get_rows: rows of %s cannot be read", tn_dtype_name(table->dtype));
    if (table->n_dims > 2 || !tn_view_rows_contiguous(table) || ids->n_dims > 3)
        return tn_fail(ctx, TN_ERR_SHAPE, "get_rows: the table must be a matrix with contiguous rows");
    int64_t ne[TN_MAX_DIMS] = {ids->ne[1], ids->ne[2], ids->ne[3], table->ne[3]};
    tn_step_set_dst(step, 0, TN_TYPE_F32, ids->n_dims + 1, ne);
    return TN_OK;
}

void tn_ref_get_rows(const tn_step *step)
{
    const tn_get_rows_params *p = step->params;
    const tn_view *table = &step->src[0], *ids = &step->src[1], *y = &step->dst[0];
    double scale = p->scale != 0.0f ? p->scale : 1.0;
    for (int64_t r = 0; r < tn_view_n_rows(y); r++) {
        int64_t id = (int64_t)tn_view_get_row(ids, r / ids->ne[3], r % ids->ne[3]);
        bool inside = id >= 0 && id < table->ne[2];
        for (int64_t j = 0; j < y->ne[3]; j++)
            tn_view_set_row(y, r, j, inside ? tn_view_get_row(table, id, j) * scale : 0.0);
    }
}
