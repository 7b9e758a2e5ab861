// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The description of the six matrix products: where each op keeps its operands and its parameters. Their
// shape rule and their reference are in product/matmul.c.
#include "ops/product.h"

#include "ops/operands.h"

#include <stddef.h>
#include <string.h>

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

// Not from the op table: every op needs this file for its messages, and the table refers to every op.
static const bool is_product[TN_OP_COUNT] = {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                      \
    TN_FAMILY_##family == TN_FAMILY_product,
#include <tenon/ops.def>
};

const tn_product_form *tn_product_form_get(int32_t op)
{
    return op >= 0 && op < TN_OP_COUNT && is_product[op] ? &forms[op] : NULL;
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
