// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_route (fused): what stands before the experts of a mixture, row by row:
//     normed = rms_norm(x) (if wanted); logits = normed w^T + bias (or x itself); ids = top_k(choice(logits)
//     + choice bias); weights = moe_weights(logits, ids).
// x [T, k] or logits [T, E]; w [E, k], bias [E], choice bias [E], norm weight [k] -> ids I32 [T, U], weights
// [T, U], normed [T, k].
#include "ops/operands.h"
#include "ops/product.h"

static tn_step route_choice(const tn_step *step, const tn_view *scores)
{
    const tn_moe_route_params *p = step->params;
    tn_moe_route_sources s = tn_moe_route_sources_get(p);
    tn_step choice = {.op = TN_OP_top_k, .n_src = 1 + (s.choice_bias > 0), .n_dst = 1, .params = &p->top_k};
    choice.src[TN_SRC_top_k_x] = *scores;
    if (s.choice_bias > 0) choice.src[TN_SRC_top_k_bias] = step->src[s.choice_bias];
    return choice;
}

tn_status tn_infer_moe_route(tn_context *ctx, tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    const tn_view *x = &step->src[0];
    tn_moe_route_sources s = tn_moe_route_sources_get(p);
    if (step->n_src != s.count || ((p->has_bias || p->has_norm) && !p->has_product))
        return tn_fail(ctx, TN_ERR_ARG, "moe_route: %d sources", step->n_src);
    if (p->choice < TN_GATING_NONE || p->choice > TN_GATING_SIGMOID)
        return tn_fail(ctx, TN_ERR_ARG, "moe_route: choice %d", p->choice);
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status == TN_OK && s.router > 0) status = tn_product_check_weight(ctx, step, s.router);
    if (status != TN_OK) return status;
    int64_t n_experts = s.router > 0 ? step->src[s.router].ne[2] : x->ne[3];
    if (x->n_dims != 2)
        return tn_fail(ctx, TN_ERR_SHAPE, "moe_route: x has %d dimensions, must have 2", x->n_dims);
    if (n_experts > TN_MOE_MAX_EXPERTS)
        return tn_fail(ctx, TN_ERR_SHAPE, "moe_route: %lld experts, at most %d", (long long)n_experts,
                       TN_MOE_MAX_EXPERTS);
    if (s.bias > 0) status = tn_need_vector(ctx, step, s.bias, n_experts);
    if (status == TN_OK && s.norm > 0) status = tn_need_vector(ctx, step, s.norm, x->ne[3]);
    if (status != TN_OK) return status;
    tn_step logits = {.n_dst = 1};
    tn_step_set_dst(&logits, 0, TN_TYPE_F32, 2, (int64_t[]){1, 1, x->ne[2], n_experts});
    tn_step choice = route_choice(step, &logits.dst[0]);
    status = tn_infer_top_k(ctx, &choice);
    if (status != TN_OK) return status;
    tn_step weights = {.op = TN_OP_moe_weights,
                       .n_src = 2,
                       .n_dst = 1,
                       .src = {logits.dst[0], choice.dst[0]},
                       .params = &p->weights};
    status = tn_infer_moe_weights(ctx, &weights);
    if (status != TN_OK) return status;
    step->n_dst = p->has_norm ? 3 : 2;
    step->dst[TN_DST_moe_route_ids] = choice.dst[0];
    step->dst[TN_DST_moe_route_weights] = weights.dst[0];
    if (p->has_norm) tn_step_set_dst(step, TN_DST_moe_route_normed, TN_TYPE_F32, 2, x->ne);
    return TN_OK;
}

static tn_view row_of(const tn_view *v, int64_t t)
{
    tn_view row = *v;
    row.data = tn_view_row(v, t);
    row.ne[0] = row.ne[1] = row.ne[2] = 1;
    return row;
}

static tn_view row_at(float *data, int64_t n)
{
    tn_step step = {.n_dst = 1};
    tn_step_set_dst(&step, 0, TN_TYPE_F32, 2, (int64_t[]){1, 1, 1, n});
    step.dst[0].data = data;
    return step.dst[0];
}

// Into y: the logits of row t.
static void make_logits(const tn_step *step, int64_t t, const tn_view *y)
{
    const tn_moe_route_params *p = step->params;
    tn_moe_route_sources s = tn_moe_route_sources_get(p);
    tn_view x = row_of(&step->src[0], t);
    if (p->has_norm) {
        tn_view normed = row_of(&step->dst[TN_DST_moe_route_normed], t);
        tn_step norm = {.op = TN_OP_rms_norm,
                        .n_src = 2,
                        .n_dst = 1,
                        .src = {x, step->src[s.norm]},
                        .dst = {normed},
                        .params = &(tn_rms_norm_params){p->eps}};
        tn_ref_rms_norm(&norm);
        x = normed;
    }
    if (!p->has_product) {
        for (int64_t j = 0; j < y->ne[3]; j++) tn_view_set_row(y, 0, j, tn_view_get_row(&x, 0, j));
        return;
    }
    tn_step product = {
        .op = TN_OP_matmul, .n_src = 2, .n_dst = 1, .src = {x, step->src[s.router]}, .dst = {*y}};
    tn_ref_matmul(&product);
    for (int64_t j = 0; j < y->ne[3] && p->has_bias; j++)
        tn_view_set_row(y, 0, j, tn_view_get_row(y, 0, j) + tn_view_get_row(&step->src[s.bias], 0, j));
}

void tn_ref_moe_route(const tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    tn_moe_route_sources s = tn_moe_route_sources_get(p);
    int64_t n_experts = s.router > 0 ? step->src[s.router].ne[2] : step->src[0].ne[3];
    float logit_row[TN_MOE_MAX_EXPERTS],
        score_row[TN_MOE_MAX_EXPERTS]; // rounded like the values of the unfused form
    tn_view logits = row_at(logit_row, n_experts), scores = row_at(score_row, n_experts);
    for (int64_t t = 0; t < step->src[0].ne[2]; t++) {
        make_logits(step, t, &logits);
        tn_step score = {.n_src = 1, .n_dst = 1, .src = {logits}, .dst = {scores}};
        if (p->choice == TN_GATING_SIGMOID) {
            score.params = &(tn_unary_params){.kind = TN_UNARY_SIGMOID};
            tn_ref_unary(&score);
        } else if (p->choice == TN_GATING_SOFTMAX) {
            score.params = &(tn_softmax_params){0.0f};
            tn_ref_softmax(&score);
        }
        tn_step choice = route_choice(step, p->choice == TN_GATING_NONE ? &logits : &scores);
        choice.dst[0] = row_of(&step->dst[TN_DST_moe_route_ids], t);
        tn_ref_top_k(&choice);
        tn_step weights = {.n_src = 2,
                           .n_dst = 1,
                           .src = {logits, choice.dst[0]},
                           .dst = {row_of(&step->dst[TN_DST_moe_route_weights], t)},
                           .params = &p->weights};
        tn_ref_moe_weights(&weights);
    }
}
