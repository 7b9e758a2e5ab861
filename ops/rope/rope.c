// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope: rotary position embedding (Su et al. 2021, eq. 34) with linear scaling, frequency factors and YaRN
// (Peng et al. 2023, section 3.2). x [T, H, D], pos I32 [T], factors [n_rot/2] optional.
#include "ops/rope.h"

#include <math.h>

static tn_status check_params(tn_context *ctx, const char *op, const tn_rope_params *p, int64_t head_dim)
{
    if (p->n_rot < 2 || p->n_rot % 2 != 0 || p->n_rot > head_dim)
        return tn_fail(ctx, TN_ERR_ARG, "%s: %d rotated elements of %lld", op, p->n_rot, (long long)head_dim);
    if (!(p->base > 0.0f)) return tn_fail(ctx, TN_ERR_ARG, "%s: base %g", op, (double)p->base);
    if (p->mode != TN_ROPE_NORM && p->mode != TN_ROPE_NEOX)
        return tn_fail(ctx, TN_ERR_ARG, "%s: mode %d", op, p->mode);
    return TN_OK;
}

tn_status tn_infer_rope_common(tn_context *ctx, tn_step *step, const tn_rope_params *p, int32_t pos)
{
    const tn_view *x = &step->src[0];
    const char *op = tn_op_name(step->op);
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK) status = tn_need_dtype(ctx, step, pos, TN_TYPE_I32);
    if (status == TN_OK) status = check_params(ctx, op, p, x->ne[3]);
    if (status == TN_OK && tn_step_has_src(step, pos + 1))
        status = tn_need_vector(ctx, step, pos + 1, p->n_rot / 2);
    if (status != TN_OK) return status;
    if (x->n_dims != 3) return tn_fail(ctx, TN_ERR_SHAPE, "%s: x must be [tokens, heads, head size]", op);
    if (tn_view_n_rows(&step->src[pos]) != 1 || step->src[pos].ne[3] != x->ne[1])
        return tn_fail(ctx, TN_ERR_SHAPE, "%s: %lld positions for %lld tokens", op,
                       (long long)step->src[pos].ne[3], (long long)x->ne[1]);
    tn_step_set_dst(step, 0, TN_TYPE_F32, 3, x->ne);
    return TN_OK;
}

tn_status tn_infer_rope(tn_context *ctx, tn_step *step)
{
    return tn_infer_rope_common(ctx, step, step->params, TN_SRC_rope_pos);
}

double tn_scalar_rope_angle(const tn_rope_params *p, int64_t position, int32_t t, double factor)
{
    double phi = pow(p->base, -2.0 * t / p->n_rot) / factor;
    double extra = (double)position * phi;
    double inter = extra * (p->freq_scale != 0.0f ? p->freq_scale : 1.0);
    if (p->yarn_ext == 0.0f) return inter;
    double x = (t - (double)p->yarn_low) / fmax(0.001, (double)p->yarn_high - p->yarn_low);
    double g = (1.0 - (x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x)) * p->yarn_ext;
    return inter * (1.0 - g) + extra * g;
}

void tn_ref_rotate_row(const tn_step *step, const tn_rope_params *p, int32_t pos, int64_t token, int64_t head,
                       double (*load)(const tn_step *, int64_t, int64_t, int64_t))
{
    const tn_view *y = &step->dst[0], *factors = &step->src[pos + 1];
    double m = p->attn_factor != 0.0f ? p->attn_factor : 1.0;
    int64_t position = (int64_t)tn_view_get_row(&step->src[pos], 0, token);
    for (int32_t t = 0; t < p->n_rot / 2; t++) {
        double f = tn_step_has_src(step, pos + 1) ? tn_view_get_row(factors, 0, t) : 1.0;
        double theta = tn_scalar_rope_angle(p, position, t, f), c = cos(theta) * m, s = sin(theta) * m;
        int64_t j0 = p->mode == TN_ROPE_NORM ? 2 * t : t;
        int64_t j1 = p->mode == TN_ROPE_NORM ? 2 * t + 1 : t + p->n_rot / 2;
        double a = load(step, token, head, j0), b = load(step, token, head, j1);
        tn_view_set(y, 0, token, head, j0, a * c - b * s);
        tn_view_set(y, 0, token, head, j1, a * s + b * c);
    }
    for (int64_t j = p->n_rot; j < y->ne[3]; j++)
        tn_view_set(y, 0, token, head, j, load(step, token, head, j));
}

static double load_plain(const tn_step *step, int64_t token, int64_t head, int64_t j)
{
    return tn_view_get(&step->src[0], 0, token, head, j);
}

void tn_ref_rope(const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    for (int64_t token = 0; token < y->ne[1]; token++)
        for (int64_t head = 0; head < y->ne[2]; head++)
            tn_ref_rotate_row(step, step->params, TN_SRC_rope_pos, token, head, load_plain);
}
