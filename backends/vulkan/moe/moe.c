// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Routes of experts, and sums of their results, on moe.comp.
#include "backends/vulkan/runtime/kernel.h"
#include "ops/ops.h"

enum { MOE_GROUP = 64, MAX_GROUPS = 256, MAX_CHOSEN = 256 }; // as in the shader

bool tn_vk_accepts_top_k(const tn_step *step)
{
    const tn_top_k_params *p = step->params;
    return tn_vk_accepts_indexable(step) && p->n_groups <= MAX_GROUPS;
}

bool tn_vk_accepts_moe_route(const tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    return tn_vk_accepts_indexable(step) && !p->has_product && p->top_k.n_groups <= MAX_GROUPS &&
           p->top_k.k <= MAX_CHOSEN;
}

int32_t tn_vk_launch_moe(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *y = &step->dst[0];
    bool elements = step->op == TN_OP_moe_sum || step->op == TN_OP_moe_combine;
    d->shader = TN_VK_SHADER_moe;
    d->constants[0] = step->op;
    d->groups = elements ? tn_vk_div_up(tn_view_n_elems(y), MOE_GROUP) : tn_view_n_rows(y);
    return 1;
}
