// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul: y = x w^T. x [.., m, k] F32, w [n, k] of any type -> y [.., m, n].
#include "ops/ops.h"
#include "ops/matmul.h"
#include "ops/quant.h"

#include <math.h>
#include <string.h>

tn_status tn_infer_matmul_common(tn_context *ctx, tn_step *step, int32_t w_src)
{
    const tn_view *x = &step->src[0], *w = &step->src[w_src];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status != TN_OK) return status;
    const char *op = tn_op_name(step->op);
    if (!tn_quant_info_get(w->dtype)->to_f32)
        return tn_fail(ctx, TN_ERR_TYPE, "%s: weights of %s", op, tn_dtype_name(w->dtype));
    if (w->n_dims != 2 || !tn_view_contiguous(w) || w->ne[3] != x->ne[3]) {
        char a[96], b[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "%s: x %s, w %s", op, tn_view_text(x, a, sizeof a), tn_view_text(w, b, sizeof b));
    }
    return TN_OK;
}

tn_status tn_infer_matmul(tn_context *ctx, tn_step *step)
{
    tn_status status = tn_infer_matmul_common(ctx, step, 1);
    if (status != TN_OK) return status;
    const tn_view *x = &step->src[0];
    int64_t ne[TN_MAX_DIMS] = {x->ne[0], x->ne[1], x->ne[2], step->src[1].ne[2]};
    tn_step_set_dst(step, 0, TN_TYPE_F32, TN_MAX(x->n_dims, 1), ne);
    return TN_OK;
}

tn_status tn_infer_norm_weight(tn_context *ctx, const tn_step *step, int32_t i)
{
    return tn_need_vector(ctx, step, i, step->src[0].ne[3]);
}

static double norm_scale(const tn_view *x, int64_t x_row, double eps)
{
    double sum = 0.0;
    for (int64_t j = 0; j < x->ne[3]; j++) {
        double v = tn_view_get_row(x, x_row, j);
        sum += v * v;
    }
    return 1.0 / sqrt(sum / (double)x->ne[3] + eps);
}

double tn_ref_dot(const tn_view *w, const char *w_row, const tn_view *x, int64_t x_row)
{
    return tn_ref_dot_normed(w, w_row, x, x_row, &(tn_ref_norm){NULL, 0.0});
}

double tn_ref_dot_normed(const tn_view *w, const char *w_row, const tn_view *x, int64_t x_row, const tn_ref_norm *norm)
{
    double scale = norm->weight ? norm_scale(x, x_row, norm->eps) : 1.0;
    int64_t n = tn_dtype_block_elems(w->dtype), k = w->ne[3];
    if (n == 1) n = 256;
    const char *xr = tn_view_row(x, x_row);
    double sum = 0.0;
    for (int64_t j = 0; j < k; j += n) {
        float buf[256], xs[256];
        int64_t m = TN_MIN(n, k - j);
        tn_quant_info_get(w->dtype)->to_f32(w_row + tn_dtype_row_size(w->dtype, j), buf, m);
        memcpy(xs, xr + (size_t)j * sizeof(float), (size_t)m * sizeof(float));
        // Rounded like the unfused form, whose norm is stored as f32.
        for (int64_t i = 0; i < m && norm->weight; i++)
            xs[i] = (float)((double)xs[i] * scale * tn_view_get_row(norm->weight, 0, j + i));
        for (int64_t i = 0; i < m; i++) sum += (double)xs[i] * (double)buf[i];
    }
    return sum;
}

void tn_ref_matmul(const tn_step *step)
{
    const tn_view *x = &step->src[0], *w = &step->src[1], *y = &step->dst[0];
    for (int64_t r = 0; r < tn_view_n_rows(x); r++)
        for (int64_t j = 0; j < w->ne[2]; j++)
            tn_view_set_row(y, r, j, tn_ref_dot(w, (const char *)w->data + j * w->nb[2], x, r));
}
