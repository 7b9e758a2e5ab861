// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The six matrix products: their description, their shape rule and their reference.
//
//   matmul         y = x w^T                                x [.., m, k] F32, w [n, k] of any type -> [.., m,
//   n] linear         y = act(norm(x) w^T + bias) + residual matmul_multi   y_i = norm(x) w_i^T + bias_i two
//   or three weights [n_i, k] matmul_glu     y = glu(norm(x) gate^T, norm(x) up^T)    gate and up [n, k]
//   matmul_id      y[t, u] = x[t, u or 0] w[ids[t, u]]^T    x [T, U or 1, k], w [n_expert, n, k], ids I32 [T,
//   U] matmul_id_glu  glu of two matmul_id                     gate and up [n_expert, n, k]
//
// An id that names no expert gives a row of zeros. All but matmul and matmul_id are fused forms.
#include "ops/operands.h"
#include "ops/product.h"
#include "ops/quant.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// --- description -----------------------------------------------------------------------------------

#define NO            TN_PRODUCT_NO_PARAM
#define AT(op, field) (int32_t) offsetof(tn_##op##_params, field)
/* clang-format off */
static const tn_product_form forms[TN_OP_COUNT] = {
    // weights, ids, offsets of: n_weights, act, has_bias, has_residual, has_norm, eps, glu
    [TN_OP_matmul]    = {1, false, NO, NO, NO, NO, NO, NO, NO},
    [TN_OP_matmul_id] = {1, true,  NO, NO, NO, NO, NO, NO, NO},
    [TN_OP_linear]    = {1, false, NO, AT(linear, act), AT(linear, has_bias), AT(linear, has_residual),
                         AT(linear, has_norm), AT(linear, eps), NO},
    [TN_OP_matmul_multi]  = {0, false, AT(matmul_multi, n_weights), NO, AT(matmul_multi, has_bias), NO,
                             AT(matmul_multi, has_norm), AT(matmul_multi, eps), NO},
    [TN_OP_matmul_glu]    = {2, false, NO, NO, NO, NO, AT(matmul_glu, has_norm), AT(matmul_glu, eps),
                             AT(matmul_glu, glu)},
    [TN_OP_matmul_id_glu] = {2, true, NO, NO, NO, NO, NO, NO, AT(matmul_id_glu, glu)},
};
/* clang-format on */
#undef NO
#undef AT

const tn_product_form *tn_product_form_get(int32_t op)
{
    bool known = op >= 0 && op < TN_OP_COUNT && (tn_op_info_get(op)->flags & TN_OP_PRODUCT);
    return known ? &forms[op] : NULL;
}

// The value of an int32_t among the parameters, or `otherwise` if the op has no such parameter.
static int32_t param_int(const void *params, int32_t offset, int32_t otherwise)
{
    int32_t value;
    if (offset == TN_PRODUCT_NO_PARAM) return otherwise;
    memcpy(&value, (const char *)params + offset, sizeof value);
    return value;
}

tn_product_sources tn_product_sources_get(int32_t op, const void *params)
{
    const tn_product_form *f = tn_product_form_get(op);
    tn_product_sources s = {.w = {-1, -1, -1}, .bias = {-1, -1, -1}, .residual = -1, .norm = -1, .ids = -1};
    int32_t n = f ? param_int(params, f->n_weights_off, f->n_weights) : 0;
    if (n < 1 || n > TN_PRODUCT_MAX_WEIGHTS) return s;
    s.n_weights = n;
    s.count = 1;
    for (int32_t i = 0; i < n; i++) s.w[i] = s.count++;
    for (int32_t i = 0; i < n && f->has_bias_off != TN_PRODUCT_NO_PARAM; i++)
        if (param_int(params, f->has_bias_off + i * (int32_t)sizeof(int32_t), 0)) s.bias[i] = s.count++;
    if (param_int(params, f->has_residual_off, 0)) s.residual = s.count++;
    if (param_int(params, f->has_norm_off, 0)) s.norm = s.count++;
    if (f->has_ids) s.ids = s.count++;
    return s;
}

tn_product tn_product_get(const tn_step *step)
{
    const tn_product_form *f = tn_product_form_get(step->op);
    tn_product p = {.act = TN_UNARY_NONE, .at = tn_product_sources_get(step->op, step->params)};
    if (p.at.n_weights == 0 || step->n_src != p.at.count) return p;
    p.n_weights = p.at.n_weights;
    p.x = tn_step_source(step, p.at.x);
    p.residual = tn_step_source(step, p.at.residual);
    p.norm = tn_step_source(step, p.at.norm);
    p.ids = tn_step_source(step, p.at.ids);
    p.act = param_int(step->params, f->act_off, TN_UNARY_NONE);
    if (f->eps_off != TN_PRODUCT_NO_PARAM)
        memcpy(&p.eps, (const char *)step->params + f->eps_off, sizeof p.eps);
    if (f->glu_off != TN_PRODUCT_NO_PARAM)
        p.glu = (const tn_glu_params *)(const void *)((const char *)step->params + f->glu_off);
    p.n_results = p.glu ? 1 : p.n_weights;
    for (int32_t i = 0; i < p.n_weights; i++) {
        p.w[i] = tn_step_source(step, p.at.w[i]);
        p.bias[i] = tn_step_source(step, p.at.bias[i]);
        p.y[i] = &step->dst[p.glu ? 0 : i];
    }
    p.k = p.x->ne[3];
    p.m = p.ids ? tn_view_n_elems(p.ids) : tn_view_n_rows(p.x);
    p.n_experts = p.ids ? p.w[0]->ne[1] : 1;
    return p;
}

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
    if (p->glu) // the unfused form stores both products as f32
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
