// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_route (moe_route.cu): the experts of each token and their weights, from logits, or from rows that are
// multiplied by the router in the same kernel.
#include "backends/cuda/moe/moe.h"

#include "backends/cuda/runtime/rows.h"
#include "backends/cuda/softmax/softmax_args.h"
#include "ops/operands.h"

#include <stdio.h>

enum {
    WARP = 32,
    MOST_USED = WARP,                // experts of a token: one in each lane
    MOST_EXPERTS = 32 * WARP,        // whose logits are given: 32 in each lane
    MOST_MULTIPLIED = 16 * WARP,     // whose router is multiplied: 16 in each lane
    RUN = 4 * TN_CUDA_ROUTE_THREADS, // elements of a row that a block reads at once
    MOST_RUNS = 8,
};

bool tn_cuda_moe_route_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_moe_route_params *p = step->params;
    tn_moe_route_sources at = tn_moe_route_sources_get(p);
    for (int32_t i = 0; i < step->n_src; i++)
        if (!tn_cuda_f32_rows(&step->src[i])) return false;
    if (p->top_k.k > MOST_USED || p->top_k.n_groups > TN_CUDA_MAX_GROUPS) return false;
    const tn_view *x = &step->src[at.x], *router = tn_step_source(step, at.router);
    if (!router) return x->ne[3] <= MOST_EXPERTS && x->ne[2] <= INT32_MAX;
    return router->ne[2] <= MOST_MULTIPLIED && x->ne[2] <= TN_CUDA_ROUTE_TOKENS &&
           x->ne[3] <= MOST_RUNS * RUN;
}

size_t tn_cuda_moe_route_scratch(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    tn_moe_route_sources at = tn_moe_route_sources_get(step->params);
    const tn_view *router = tn_step_source(step, at.router);
    return router ? (size_t)(step->src[at.x].ne[2] * router->ne[2]) * sizeof(float) : 0;
}

tn_cuda_expert_route tn_cuda_expert_route_of(const tn_step *route)
{
    const tn_moe_route_params *p = route->params;
    tn_moe_route_sources at = tn_moe_route_sources_get(p);
    const tn_view *ids = &route->dst[TN_DST_moe_route_ids], *weights = &route->dst[TN_DST_moe_route_weights];
    const tn_view *router = tn_step_source(route, at.router), *bias = tn_step_source(route, at.choice_bias);
    return (tn_cuda_expert_route){
        .ids = ids->data,
        .weights = weights->data,
        .ids_stride = ids->nb[2] / 4,
        .weights_stride = weights->nb[2] / 4,
        .bias = bias ? bias->data : NULL,
        .n_experts = (int32_t)(router ? router->ne[2] : route->src[at.x].ne[3]),
        .k = p->top_k.k,
        .n_groups = p->top_k.n_groups,
        .n_groups_used = p->top_k.n_groups_used,
        .choice = p->choice,
        .gating = p->weights.gating,
        .normalise = p->weights.normalise,
        .scale = p->weights.scale != 0.0f ? p->weights.scale : 1.0f,
    };
}

static const float *data_of(const tn_step *step, int32_t i)
{
    const tn_view *v = tn_step_source(step, i);
    return v ? v->data : NULL;
}

// *aligned: all rows are of whole pieces of 16 bytes.
static tn_cuda_route_args args_of(const tn_step *step, bool *aligned)
{
    const tn_moe_route_params *p = step->params;
    tn_moe_route_sources at = tn_moe_route_sources_get(p);
    const tn_view *x = &step->src[at.x];
    tn_cuda_route_args a = {.x = tn_cuda_view_of(x),
                            .w = data_of(step, at.router),
                            .bias = data_of(step, at.bias),
                            .norm = data_of(step, at.norm),
                            .n_tokens = (uint32_t)x->ne[2],
                            .eps = p->eps,
                            .choice = tn_cuda_expert_route_of(step)};
    if (a.norm) a.normed = tn_cuda_view_of(&step->dst[TN_DST_moe_route_normed]);
    *aligned = a.x.ne[3] % 4 == 0 && tn_cuda_aligned(&a.x, 4) && tn_cuda_pointer_aligned(a.w) &&
               tn_cuda_pointer_aligned(a.norm) && (!a.normed.data || tn_cuda_aligned(&a.normed, 4));
    return a;
}

// A warp routes a token whose logits are given.
static tn_status route_logits(const tn_cuda_launch *l, const tn_cuda_route_args *a)
{
    int32_t n = a->choice.n_experts;
    char entry[32];
    snprintf(entry, sizeof entry, "tn_moe_route_%d", n <= 4 * WARP ? 4 : n <= 8 * WARP ? 8 : 32);
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(a->n_tokens, TN_CUDA_TOP_K_WARPS),
                         .y = 1,
                         .z = 1,
                         .threads = WARP * TN_CUDA_TOP_K_WARPS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe_route, entry, &grid, a);
}

tn_status tn_cuda_moe_route_launch(const tn_cuda_launch *l)
{
    bool aligned = false;
    tn_cuda_route_args a = args_of(l->step, &aligned);
    if (!a.w) return route_logits(l, &a);
    a.logits = (float *)(void *)l->scratch;
    a.defers_route = l->defers_route;
    if (l->quantised_y) a.quantised_y = *l->quantised_y;
    int64_t runs = tn_div_up(a.x.ne[3], RUN);
    char entry[32];
    snprintf(entry, sizeof entry, "tn_moe_route_rows_%d_%d",
             runs <= 2   ? 2
             : runs <= 4 ? 4
                         : MOST_RUNS,
             a.choice.n_experts <= 4 * WARP ? 4 : 16);
    if (!aligned) snprintf(entry, sizeof entry, "tn_moe_route_rows_any");
    tn_cuda_grid grid = {
        .x = (uint32_t)a.choice.n_experts, .y = a.n_tokens, .z = 1, .threads = TN_CUDA_ROUTE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe_route, entry, &grid, &a);
}
