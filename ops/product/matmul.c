// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The shape rule and the reference of the six matrix products.
//
// x [.., m, k] is F32; w [n, k] is of any type.
//   matmul         y = x w^T                              [.., m, n]
//   linear         y = act(norm(x) w^T + bias) + residual
//   matmul_multi   y_i = norm(x) w_i^T + bias_i           two or three weights [n_i, k]
//   matmul_glu     y = glu(norm(x) gate^T, norm(x) up^T)  gate and up [n, k]
//   matmul_id      y[t, u] = x[t, u or 0] w[ids[t, u]]^T  x [T, U or 1, k], w [n_expert, n, k], ids [T, U]
//   matmul_id_glu  glu of two matmul_id                   gate and up [n_expert, n, k]
//
// An id that names no expert gives a row of zeros. All but matmul and matmul_id are fused forms.
#include "ops/product.h"
#include "ops/quant.h"

#include <math.h>
#include <string.h>

// --- shape rule ------------------------------------------------------------------------------------

static tn_status check_decodable(tn_context *ctx, const tn_step *step, const tn_view *w)
{
    if (tn_quant_info_get(w->dtype)->to_f32) return TN_OK;
    return tn_fail(ctx, TN_ERR_TYPE, "%s: weights of %s", tn_op_name(step->op), tn_dtype_name(w->dtype));
}

tn_status tn_product_check_weight(tn_context *ctx, const tn_step *step, int32_t w_src)
{
    const tn_view *x = &step->src[0], *w = &step->src[w_src];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK) status = check_decodable(ctx, step, w);
    if (status != TN_OK) return status;
    if (w->n_dims == 2 && tn_view_contiguous(w) && w->ne[3] == x->ne[3]) return TN_OK;
    char a[96], b[96];
    return tn_fail(ctx, TN_ERR_SHAPE, "%s: x %s, w %s", tn_op_name(step->op), tn_view_text(x, a, sizeof a),
                   tn_view_text(w, b, sizeof b));
}

static tn_status check_expert_weight(tn_context *ctx, const tn_step *step, const tn_product *p, int32_t i)
{
    const tn_view *x = p->x, *w = p->w[i], *ids = p->ids;
    tn_status status = tn_need_float_rows(ctx, step, p->at.x);
    if (status == TN_OK) status = tn_need_dtype(ctx, step, p->at.ids, TN_TYPE_I32);
    if (status == TN_OK) status = check_decodable(ctx, step, w);
    if (status != TN_OK) return status;
    bool ok = x->n_dims == 3 && w->n_dims == 3 && ids->n_dims == 2 && tn_view_contiguous(w) &&
              w->ne[3] == x->ne[3] && ids->ne[2] == x->ne[1] && (x->ne[2] == 1 || x->ne[2] == ids->ne[3]);
    if (ok) return TN_OK;
    char a[96], b[96], c[96];
    return tn_fail(ctx, TN_ERR_SHAPE, "%s: x %s, w %s, ids %s", tn_op_name(step->op),
                   tn_view_text(x, a, sizeof a), tn_view_text(w, b, sizeof b),
                   tn_view_text(ids, c, sizeof c));
}

static void set_result(tn_step *step, const tn_product *p, int32_t i)
{
    int64_t n = p->w[i]->ne[2];
    if (p->ids) {
        int64_t ne[TN_MAX_DIMS] = {1, p->ids->ne[2], p->ids->ne[3], n};
        tn_step_set_dst(step, i, TN_TYPE_F32, 3, ne);
    } else {
        int64_t ne[TN_MAX_DIMS] = {p->x->ne[0], p->x->ne[1], p->x->ne[2], n};
        tn_step_set_dst(step, i, TN_TYPE_F32, TN_MAX(p->x->n_dims, 1), ne);
    }
}

static tn_status check_epilogue(tn_context *ctx, const tn_step *step, const tn_product *p)
{
    const char *op = tn_op_name(step->op);
    if (p->glu && !tn_view_same_shape(p->w[0], p->w[1]))
        return tn_fail(ctx, TN_ERR_SHAPE, "%s: gate and up differ in shape", op);
    for (int32_t i = 0; i < p->n_weights; i++) {
        if (!p->bias[i]) continue;
        tn_status status = tn_need_vector(ctx, step, p->at.bias[i], p->w[i]->ne[2]);
        if (status != TN_OK) return status;
    }
    if (p->residual) {
        tn_status status = tn_need_float_rows(ctx, step, p->at.residual);
        if (status != TN_OK) return status;
        if (!tn_view_same_shape(p->residual, p->y[0]))
            return tn_fail(ctx, TN_ERR_SHAPE, "%s: the residual differs in shape from the result", op);
    }
    return p->norm ? tn_need_vector(ctx, step, p->at.norm, p->k) : TN_OK;
}

static tn_status infer(tn_context *ctx, tn_step *step)
{
    tn_product p = tn_product_get(step);
    if (p.at.n_weights == 0)
        return tn_fail(ctx, TN_ERR_ARG, "%s: the number of weights is out of range", tn_op_name(step->op));
    if (p.n_weights == 0)
        return tn_fail(ctx, TN_ERR_ARG, "%s: %d sources, must be %d", tn_op_name(step->op), step->n_src,
                       p.at.count);
    for (int32_t i = 0; i < p.n_weights; i++) {
        tn_status status =
            p.ids ? check_expert_weight(ctx, step, &p, i) : tn_product_check_weight(ctx, step, p.at.w[i]);
        if (status != TN_OK) return status;
    }
    step->n_dst = p.n_results;
    for (int32_t i = 0; i < p.n_results; i++) set_result(step, &p, i);
    return check_epilogue(ctx, step, &p);
}

// --- reference -------------------------------------------------------------------------------------

// What rms_norm multiplies row x_row with, besides its weight.
static double norm_scale(const tn_view *x, int64_t x_row, double eps)
{
    double sum = 0.0;
    for (int64_t j = 0; j < x->ne[3]; j++) {
        double v = tn_view_get_row(x, x_row, j);
        sum += v * v;
    }
    return 1.0 / sqrt(sum / (double)x->ne[3] + eps);
}

// With a norm weight, x is normed first.
static double dot_normed(const tn_view *w, const char *w_row, const tn_view *x, int64_t x_row,
                         const tn_view *norm, double eps)
{
    double scale = norm ? norm_scale(x, x_row, eps) : 1.0;
    int64_t n = tn_dtype_block_elems(w->dtype), k = w->ne[3];
    if (n == 1) n = 256;
    const char *xr = tn_view_row(x, x_row);
    double sum = 0.0;
    for (int64_t j = 0; j < k; j += n) {
        float buf[256], xs[256];
        int64_t m = TN_MIN(n, k - j);
        tn_quant_info_get(w->dtype)->to_f32(w_row + tn_dtype_row_size(w->dtype, j), buf, m);
        memcpy(xs, xr + (size_t)j * sizeof(float), (size_t)m * sizeof(float));
        // The unfused form stores the norm as f32, so this one rounds to f32 here as well.
        for (int64_t i = 0; i < m && norm; i++)
            xs[i] = (float)((double)xs[i] * scale * tn_view_get_row(norm, 0, j + i));
        for (int64_t i = 0; i < m; i++) sum += (double)xs[i] * (double)buf[i];
    }
    return sum;
}

double tn_product_ref_dot(const tn_view *w, const char *w_row, const tn_view *x, int64_t x_row)
{
    return dot_normed(w, w_row, x, x_row, NULL, 0.0);
}

// Element j of row `row` of the product with weight i, before the epilogue.
static double ref_dot(const tn_product *p, int32_t i, int64_t row, int64_t j)
{
    const tn_view *w = p->w[i], *x = p->x;
    int64_t expert = 0, x_row = row;
    if (p->ids) {
        int64_t token = row / p->ids->ne[3], slot = row % p->ids->ne[3];
        expert = (int64_t)tn_view_get(p->ids, 0, 0, token, slot);
        if (expert < 0 || expert >= p->n_experts) return 0.0;
        x_row = token * x->ne[2] + (x->ne[2] > 1 ? slot : 0);
    }
    return dot_normed(w, (const char *)w->data + expert * w->nb[1] + j * w->nb[2], x, x_row, p->norm, p->eps);
}

static double ref_element(const tn_product *p, int32_t i, int64_t row, int64_t j)
{
    if (p->glu) // the unfused form stores both results as f32
        return tn_scalar_glu(p->glu, (float)ref_dot(p, 0, row, j), (float)ref_dot(p, 1, row, j));
    double v = ref_dot(p, i, row, j);
    if (p->bias[i]) v += tn_view_get_row(p->bias[i], 0, j);
    if (p->act != TN_UNARY_NONE) v = tn_scalar_unary(p->act, v, 0.0, 0.0);
    return p->residual ? v + tn_view_get_row(p->residual, row, j) : v;
}

static void ref(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    for (int32_t i = 0; i < p.n_results; i++)
        for (int64_t row = 0; row < p.m; row++)
            for (int64_t j = 0; j < p.w[i]->ne[2]; j++)
                tn_view_set_row(p.y[i], row, j, ref_element(&p, i, row, j));
}

// --- the ops ---------------------------------------------------------------------------------------

#define PRODUCT(name)                                                                                        \
    tn_status tn_infer_##name(tn_context *ctx, tn_step *step)                                                \
    {                                                                                                        \
        return infer(ctx, step);                                                                             \
    }                                                                                                        \
    void tn_ref_##name(const tn_step *step)                                                                  \
    {                                                                                                        \
        ref(step);                                                                                           \
    }
PRODUCT(matmul)
PRODUCT(linear)
PRODUCT(matmul_multi)
PRODUCT(matmul_glu)
PRODUCT(matmul_id)
PRODUCT(matmul_id_glu)
