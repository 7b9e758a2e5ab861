// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The one description of a matrix product. Six ops multiply rows by weights: matmul, linear, matmul_multi,
// matmul_glu, matmul_id and matmul_id_glu. They differ in how many weights they have and in what happens
// before (a norm of x) and after (bias, activation, GLU, residual). Everybody who handles matmuls reads them
// through this header, so that the order of sources and the layout of parameters are written down once:
//
//     tn_product p = tn_product_get(step);
//     if (p.n_weights == 0) ...                  // no product
//     for (int32_t i = 0; i < p.n_weights; i++)  // p.w[i], p.bias[i], p.y[i]
//
// Order of the sources: x, weights, biases, residual, norm weight, ids; absent ones leave no gap.
// With every part present: y_i = act(norm(x) w_i^T + bias_i) + residual; with a GLU, weights 0 and 1 are gate
// and up and y_0 = glu(norm(x) gate^T, norm(x) up^T); with ids, each row of ids names the experts of a token.
#ifndef TN_OPS_PRODUCT_H
#define TN_OPS_PRODUCT_H

#include "ops/ops.h"

enum { TN_PRODUCT_MAX_WEIGHTS = 3, TN_PRODUCT_NO_PARAM = -1 };

// What an op can have. The offsets lead from the start of the op's parameters to a field, in bytes;
// TN_PRODUCT_NO_PARAM: the op has no such field.
typedef struct tn_product_form {
    int32_t n_weights;        // 0: the number is a parameter
    bool has_ids;             // x goes to the experts that ids name
    int32_t n_weights_off;    // int32_t
    int32_t act_off;          // int32_t, TN_UNARY_*
    int32_t has_bias_off;     // int32_t for each weight
    int32_t has_residual_off; // int32_t
    int32_t has_norm_off;     // int32_t
    int32_t eps_off;          // float
    int32_t glu_off;          // tn_glu_params
} tn_product_form;

// NULL: the op is no product.
const tn_product_form *tn_product_form_get(int32_t op);

// A parameter of a product op, for code that builds steps. NULL if the op does not have it.
static inline void *tn_product_param(void *params, int32_t offset)
{
    return offset == TN_PRODUCT_NO_PARAM ? NULL : (char *)params + offset;
}

// Indices of the operands among the sources of a step or of a node; -1: absent.
typedef struct tn_product_sources {
    int32_t n_weights; // 0: no product, or its number of weights is out of range
    int32_t count;     // sources altogether
    int32_t x, w[TN_PRODUCT_MAX_WEIGHTS], bias[TN_PRODUCT_MAX_WEIGHTS];
    int32_t residual, norm, ids;
} tn_product_sources;

tn_product_sources tn_product_sources_get(int32_t op, const void *params);

// A step as a product. All pointers lead into the step, and are valid as long as it is; NULL: absent.
typedef struct tn_product {
    // 1 to 3; 0: the step is no product, or has another number of sources than its op wants.
    int32_t n_weights;
    int32_t n_results; // n_weights, or 1 with a GLU
    const tn_view *x;  // F32 [.., m, k]; with ids [tokens, slots or 1, k]
    const tn_view *w[TN_PRODUCT_MAX_WEIGHTS];    // [n, k]; with ids [n_experts, n, k]
    const tn_view *bias[TN_PRODUCT_MAX_WEIGHTS]; // F32 [n]
    const tn_view *y[TN_PRODUCT_MAX_WEIGHTS];    // F32 [.., m, n]; with a GLU gate and up share one result
    const tn_view *residual;                     // F32, shaped like y[0]
    const tn_view *norm; // F32 [k]: x goes through rms_norm with this weight first
    const tn_view *ids;       // I32 [tokens, slots]: which expert each slot of a token uses
    const tn_glu_params *glu; // not NULL: w[0] is gate, w[1] is up
    int32_t act;              // TN_UNARY_* without parameters, or TN_UNARY_NONE
    float eps;                // of the norm
    int64_t m;                // rows of each result; with ids tokens times slots
    int64_t k;                // elements of a row of x
    int64_t n_experts;        // 1 without ids
    tn_product_sources at;
} tn_product;

tn_product tn_product_get(const tn_step *step);

// Parts of the matmuls' shape rule and reference that other ops use.
// Checks x (source 0) against the weight at source `w` [n, k] of any type that can be decoded.
tn_status tn_product_check_weight(tn_context *ctx, const tn_step *step, int32_t w);
// Dot product of a row of w, as it is stored, with row x_row of x.
double tn_product_ref_dot(const tn_view *w, const char *w_row, const tn_view *x, int64_t x_row);

#endif
