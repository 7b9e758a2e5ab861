// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_weights, moe_sum, moe_combine, moe_route.
#include "backends/cuda/moe/moe_args.h"
#include "backends/cuda/softmax/softmax_args.h"
#include "backends/cuda/product/matvec/matvec.h"
#include "backends/cuda/runtime/rows.h"

#include <stdio.h>

enum {
    WARP = 32,
    MOST_CHOSEN = WARP,
    MOST_EXPERTS = 32 * WARP,        // of logits: 32 in each lane
    MOST_MULTIPLIED = 16 * WARP,     // of a router that is multiplied
    RUN = 4 * TN_CUDA_ROUTE_THREADS, // elements that a block reads at once, at most 8 times
};

bool tn_cuda_accepts_moe_weights(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return tn_cuda_f32_rows(&step->src[0]) && step->src[1].dtype == TN_TYPE_I32 && tn_cuda_f32_rows(&step->dst[0]) &&
           step->src[0].ne[3] <= INT32_MAX && step->src[0].ne[2] <= INT32_MAX;
}

tn_status tn_cuda_launch_moe_weights(const tn_cuda_launch *l)
{
    const tn_moe_weights_params *p = l->step->params;
    const tn_view *y = &l->step->dst[0];
    tn_cuda_moe_args a = {.x = tn_cuda_view_of(&l->step->src[0]), .ids = tn_cuda_view_of(&l->step->src[1]), .y = tn_cuda_view_of(y),
                          .n_tokens = (uint32_t)y->ne[2], .gating = p->gating, .normalise = p->normalise,
                          .scale = p->scale != 0.0f ? p->scale : 1.0f};
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(y->ne[2], TN_CUDA_MOE_WARPS), .y = 1, .z = 1, .threads = WARP * TN_CUDA_MOE_WARPS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe, "tn_moe_weights", &grid, &a);
}

bool tn_cuda_accepts_moe_sum(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *y = &step->dst[0];
    return step->src[0].dtype == TN_TYPE_F32 && step->src[1].dtype == TN_TYPE_F32 && tn_cuda_f32_rows(y) &&
           y->ne[2] * tn_div_up(y->ne[3], 4 * TN_CUDA_MOE_THREADS) <= INT32_MAX;
}

tn_status tn_cuda_launch_moe_sum(const tn_cuda_launch *l)
{
    if (l->product) return tn_cuda_launch_matvec_sum(l);
    const tn_view *y = &l->step->dst[0];
    tn_cuda_moe_args a = {.x = tn_cuda_view_of(&l->step->src[0]), .w = tn_cuda_view_of(&l->step->src[1]), .y = tn_cuda_view_of(y),
                          .n_tokens = (uint32_t)y->ne[2], .n_chunks = (uint32_t)tn_div_up(y->ne[3], 4 * TN_CUDA_MOE_THREADS)};
    a.aligned = tn_cuda_aligned(&a.x, 4) && tn_cuda_aligned(&a.y, 4);
    if (l->step->op == TN_OP_moe_combine) {
        const tn_moe_combine_params *p = l->step->params;
        for (int32_t i = 0; i < p->n_added; i++) {
            a.added[i] = tn_cuda_view_of(&l->step->src[2 + i]);
            a.aligned = a.aligned && tn_cuda_aligned(&a.added[i], 4);
        }
        if (p->has_factor) a.factor = tn_cuda_view_of(&l->step->src[2 + p->n_added]);
    }
    if (l->quantised_y) a.quantised_y = *l->quantised_y;
    tn_cuda_grid grid = {.x = a.n_tokens * a.n_chunks, .y = 1, .z = 1, .threads = TN_CUDA_MOE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe, "tn_moe_sum", &grid, &a);
}

bool tn_cuda_accepts_moe_combine(const tn_cuda *cuda, const tn_step *step)
{
    for (int32_t i = 2; i < step->n_src; i++)
        if (!tn_cuda_f32_rows(&step->src[i])) return false;
    return tn_cuda_accepts_moe_sum(cuda, step);
}

// --- moe_route ---------------------------------------------------------------------------------------

bool tn_cuda_accepts_moe_route(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_moe_route_params *p = step->params;
    for (int32_t i = 0; i < step->n_src; i++)
        if (!tn_cuda_f32_rows(&step->src[i])) return false;
    if (p->top_k.k > MOST_CHOSEN || p->top_k.n_groups > TN_CUDA_MAX_GROUPS) return false;
    const tn_view *x = &step->src[0];
    if (!p->has_product) return x->ne[3] <= MOST_EXPERTS && x->ne[2] <= INT32_MAX;
    return step->src[1].ne[2] <= MOST_MULTIPLIED && x->ne[2] <= TN_CUDA_ROUTE_TOKENS && x->ne[3] <= 8 * RUN;
}

size_t tn_cuda_scratch_moe_route(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_moe_route_params *p = step->params;
    return p->has_product ? (size_t)(step->src[0].ne[2] * step->src[1].ne[2]) * sizeof(float) : 0;
}

tn_cuda_expert_route tn_cuda_expert_route_of(const tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    const tn_view *ids = &step->dst[0], *weights = &step->dst[1];
    return (tn_cuda_expert_route){
        .ids = ids->data, .weights = weights->data, .ids_stride = ids->nb[2] / 4, .weights_stride = weights->nb[2] / 4,
        .bias = p->has_choice_bias ? step->src[1 + (p->has_product != 0) + (p->has_bias != 0)].data : NULL,
        .n_experts = (int32_t)(p->has_product ? step->src[1].ne[2] : step->src[0].ne[3]), .k = p->top_k.k, .n_groups = p->top_k.n_groups,
        .n_groups_used = p->top_k.n_groups_used, .choice = p->choice, .gating = p->weights.gating, .normalise = p->weights.normalise,
        .scale = p->weights.scale != 0.0f ? p->weights.scale : 1.0f,
    };
}

static tn_cuda_route_args route_args(const tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    tn_cuda_route_args a = {.x = tn_cuda_view_of(&step->src[0]), .n_tokens = (uint32_t)step->src[0].ne[2], .eps = p->eps, .choice = tn_cuda_expert_route_of(step)};
    int32_t next = 1; // as in ops/moe_route.c
    if (p->has_product) a.w = step->src[next++].data;
    if (p->has_bias) a.bias = step->src[next++].data;
    if (p->has_choice_bias) next++;
    if (p->has_norm) {
        a.norm = step->src[next].data;
        a.normed = tn_cuda_view_of(&step->dst[2]);
    }
    a.aligned = a.x.ne[3] % 4 == 0 && tn_cuda_aligned(&a.x, 4) && tn_cuda_pointer_aligned(a.w) && tn_cuda_pointer_aligned(a.norm) &&
                (!a.normed.data || tn_cuda_aligned(&a.normed, 4));
    return a;
}

tn_status tn_cuda_launch_moe_route(const tn_cuda_launch *l)
{
    tn_cuda_route_args a = route_args(l->step);
    char entry[32];
    if (!a.w) {
        snprintf(entry, sizeof entry, "tn_moe_route_%d", a.choice.n_experts <= 4 * WARP ? 4 : a.choice.n_experts <= 8 * WARP ? 8 : 32);
        tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(a.n_tokens, TN_CUDA_TOP_K_WARPS), .y = 1, .z = 1, .threads = WARP * TN_CUDA_TOP_K_WARPS};
        return tn_cuda_run(l, TN_CUDA_MODULE_moe_route, entry, &grid, &a);
    }
    a.logits = (float *)(void *)l->scratch;
    a.defers_route = l->defers_route;
    if (l->quantised_y) a.quantised_y = *l->quantised_y;
    int64_t runs = tn_div_up(a.x.ne[3], RUN);
    snprintf(entry, sizeof entry, "tn_moe_route_rows_%d_%d", runs <= 2 ? 2 : runs <= 4 ? 4 : 8, a.choice.n_experts <= 4 * WARP ? 4 : 16);
    tn_cuda_grid grid = {.x = (uint32_t)a.choice.n_experts, .y = a.n_tokens, .z = 1, .threads = TN_CUDA_ROUTE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe_route, entry, &grid, &a);
}
