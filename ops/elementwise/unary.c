// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// unary: an elementwise function of one F32 tensor; kinds in params.h.
#include "ops/ops.h"

#include <math.h>

static const char *const names[TN_UNARY_COUNT] = {
    [TN_UNARY_AFFINE] = "affine", [TN_UNARY_SILU] = "silu",       [TN_UNARY_GELU] = "gelu",
    [TN_UNARY_GELU_ERF] = "gelu_erf", [TN_UNARY_RELU] = "relu",   [TN_UNARY_TANH] = "tanh",
    [TN_UNARY_SIGMOID] = "sigmoid", [TN_UNARY_EXP] = "exp",       [TN_UNARY_LOG] = "log",
    [TN_UNARY_SQRT] = "sqrt",     [TN_UNARY_SQUARE] = "square",   [TN_UNARY_ABS] = "abs",
    [TN_UNARY_SOFTCAP] = "softcap", [TN_UNARY_SOFTPLUS] = "softplus", [TN_UNARY_CLAMP] = "clamp",
};

const char *tn_unary_name(int32_t kind)
{
    return kind >= 0 && kind < TN_UNARY_COUNT ? names[kind] : "none";
}

double tn_scalar_unary(int32_t kind, double x, double a, double b)
{
    switch (kind) { // the definitions themselves: one line each
    case TN_UNARY_AFFINE: return a * x + b;
    case TN_UNARY_SILU: return x / (1.0 + exp(-x));
    case TN_UNARY_GELU: // sqrt(2/pi) = 0.79788456080286535588
        return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case TN_UNARY_GELU_ERF: return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
    case TN_UNARY_RELU: return x > 0.0 || isnan(x) ? x : 0.0;
    case TN_UNARY_TANH: return tanh(x);
    case TN_UNARY_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case TN_UNARY_EXP: return exp(x);
    case TN_UNARY_LOG: return log(x);
    case TN_UNARY_SQRT: return sqrt(x);
    case TN_UNARY_SQUARE: return x * x;
    case TN_UNARY_ABS: return fabs(x);
    case TN_UNARY_SOFTCAP: return a * tanh(x / a);
    case TN_UNARY_SOFTPLUS: return x > 30.0 ? x : log1p(exp(x));
    case TN_UNARY_CLAMP: return x < a ? a : x > b ? b : x;
    default: return x;
    }
}

tn_status tn_infer_unary(tn_context *ctx, tn_step *step)
{
    const tn_unary_params *p = step->params;
    if (p->kind < 0 || p->kind >= TN_UNARY_COUNT) return tn_fail(ctx, TN_ERR_ARG, "unary: kind %d", p->kind);
    if (p->kind == TN_UNARY_SOFTCAP && !(p->a > 0.0f))
        return tn_fail(ctx, TN_ERR_ARG, "unary: softcap of %g", (double)p->a);
    tn_status status = tn_need_dtype(ctx, step, 0, TN_TYPE_F32);
    if (status != TN_OK) return status;
    tn_step_set_dst(step, 0, TN_TYPE_F32, step->src[0].n_dims, step->src[0].ne);
    return TN_OK;
}

void tn_ref_unary(const tn_step *step)
{
    const tn_unary_params *p = step->params;
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    for (int64_t r = 0; r < tn_view_n_rows(y); r++)
        for (int64_t j = 0; j < y->ne[3]; j++)
            tn_view_set_row(y, r, j, tn_scalar_unary(p->kind, tn_view_get_row(x, r, j), p->a, p->b));
}
