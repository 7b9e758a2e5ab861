// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// top_k: indices of the k largest values of each row, largest first, ties: lower index first.
// x [T, E], bias [E] added for the choice only; groups: DeepSeek-V3 (2024), section 2.1.2.
#include "ops/ops.h"

#include <math.h>

tn_status tn_infer_top_k(tn_context *ctx, tn_step *step)
{
    const tn_top_k_params *p = step->params;
    const tn_view *x = &step->src[0];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK && tn_step_has_src(step, 1)) status = tn_need_vector(ctx, step, 1, x->ne[3]);
    if (status != TN_OK) return status;
    if (p->k < 1 || p->k > x->ne[3])
        return tn_fail(ctx, TN_ERR_ARG, "top_k: %d of %lld", p->k, (long long)x->ne[3]);
    if (p->n_groups > 1) {
        int64_t size = x->ne[3] / p->n_groups;
        if (x->ne[3] % p->n_groups != 0 || p->n_groups_used < 1 || p->n_groups_used > p->n_groups ||
            p->k > size * p->n_groups_used)
            return tn_fail(ctx, TN_ERR_ARG, "top_k: %d of %d groups of %lld values", p->n_groups_used,
                           p->n_groups, (long long)size);
    }
    int64_t ne[TN_MAX_DIMS] = {x->ne[0], x->ne[1], x->ne[2], p->k};
    tn_step_set_dst(step, 0, TN_TYPE_I32, x->n_dims, ne);
    return TN_OK;
}

static double value(const tn_step *step, int64_t r, int64_t j)
{
    double v = tn_view_get_row(&step->src[0], r, j);
    if (tn_step_has_src(step, 1)) v += tn_view_get_row(&step->src[1], 0, j);
    return isnan(v) ? -INFINITY : v;
}

// Sum of the two largest values of a group.
static double group_score(const tn_step *step, int64_t r, int64_t group)
{
    const tn_top_k_params *p = step->params;
    int64_t size = step->src[0].ne[3] / p->n_groups;
    double a = -INFINITY, b = -INFINITY;
    for (int64_t j = group * size; j < (group + 1) * size; j++) {
        double v = value(step, r, j);
        if (v > a) b = a, a = v;
        else if (v > b) b = v;
    }
    return size > 1 ? a + b : a;
}

static bool group_kept(const tn_step *step, int64_t r, int64_t j)
{
    const tn_top_k_params *p = step->params;
    if (p->n_groups <= 1) return true;
    int64_t mine = j / (step->src[0].ne[3] / p->n_groups);
    double score = group_score(step, r, mine);
    int32_t better = 0;
    for (int64_t g = 0; g < p->n_groups; g++) {
        double s = group_score(step, r, g);
        better += s > score || (s == score && g < mine);
    }
    return better < p->n_groups_used;
}

void tn_ref_top_k(const tn_step *step)
{
    const tn_top_k_params *p = step->params;
    const tn_view *x = &step->src[0];
    for (int64_t r = 0; r < tn_view_n_rows(x); r++) {
        double last = INFINITY;
        int64_t last_j = -1;
        for (int32_t i = 0; i < p->k; i++) { // the best one that comes after the last chosen
            double best = -INFINITY;
            int64_t best_j = -1;
            for (int64_t j = 0; j < x->ne[3]; j++) {
                double v = value(step, r, j);
                bool after = v < last || (v == last && j > last_j);
                if (after && (best_j < 0 || v > best) && group_kept(step, r, j)) best = v, best_j = j;
            }
            tn_view_set_row(&step->dst[0], r, i, (double)best_j);
            last = best, last_j = best_j;
        }
    }
}
