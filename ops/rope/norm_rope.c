// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// norm_rope (fused): rms_norm over each head with weight w [D], then rope.
// x [T, H, D], w [D], pos I32 [T], factors optional.
#include "ops/rope.h"

#include <math.h>

tn_status tn_infer_norm_rope(tn_context *ctx, tn_step *step)
{
    const tn_norm_rope_params *p = step->params;
    tn_status status = tn_need_vector(ctx, step, TN_SRC_norm_rope_w, step->src[TN_SRC_norm_rope_x].ne[3]);
    return status != TN_OK ? status : tn_infer_rope_common(ctx, step, &p->rope, TN_SRC_norm_rope_pos);
}

// The norm is recomputed for every element: slow, and free of state.
static double load_normed(const tn_step *step, int64_t token, int64_t head, int64_t j)
{
    const tn_norm_rope_params *p = step->params;
    const tn_view *x = &step->src[TN_SRC_norm_rope_x];
    double sum = 0.0;
    for (int64_t i = 0; i < x->ne[3]; i++) {
        double v = tn_view_get(x, 0, token, head, i);
        sum += v * v;
    }
    double y = tn_view_get(x, 0, token, head, j) / sqrt(sum / (double)x->ne[3] + p->eps);
    // Rounded like the unfused form, whose norm is stored as f32.
    return (float)(y * tn_view_get_row(&step->src[TN_SRC_norm_rope_w], 0, j));
}

void tn_ref_norm_rope(const tn_step *step)
{
    const tn_norm_rope_params *p = step->params;
    const tn_view *y = &step->dst[0];
    for (int64_t token = 0; token < y->ne[1]; token++)
        for (int64_t head = 0; head < y->ne[2]; head++)
            tn_ref_rotate_row(step, &p->rope, TN_SRC_norm_rope_pos, token, head, load_normed);
}
