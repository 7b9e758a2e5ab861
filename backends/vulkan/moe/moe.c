// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Routes of experts, and sums of their results, on moe.comp.
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"
#include "ops/ops.h"

enum { MAX_GROUPS = 256, MAX_CHOSEN = 256 }; // as in the shader
enum { C_OP, C_THREADS = 4 };                // its constants

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

// Whether all rows of n elements of a sum can be read in vectors of four.
static bool in_fours(const tn_step *step)
{
    bool fours = tn_vk_aligned_elems(&step->dst[0], 4);
    for (int32_t i = 0; i < step->n_src && fours; i++)
        fours = !tn_step_has_src(step, i) || step->src[i].ne[3] != step->dst[0].ne[3] ||
                tn_vk_aligned_elems(&step->src[i], 4);
    return fours;
}

int32_t tn_vk_launch_moe(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    enum { ALONE = 64, ROUTING = 256 };
    TN_UNUSED(i);
    const tn_view *y = &step->dst[0];
    bool elements = step->op == TN_OP_moe_sum || step->op == TN_OP_moe_combine;
    // Routes compare each score with all others, so more threads take less time.
    int32_t threads = elements || d->v->device->software || d->v->max_threads < ROUTING ? ALONE : ROUTING;
    bool fours = elements && in_fours(step);
    d->stages = d->wants_staged && fours && tn_vk_stages_fours(d->v) && y->ne[3] % TN_VK_QUANTISED_GROUP == 0;
    d->shader = d->stages ? TN_VK_SHADER_moe_stages : TN_VK_SHADER_moe;
    d->constants[C_OP] = step->op;
    d->constants[C_THREADS] = threads;
    d->constants[TN_VK_LAYOUT] = fours;
    d->groups = elements ? tn_vk_div_up(tn_view_n_elems(y), threads * (fours ? 4 : 1)) : tn_view_n_rows(y);
    return 1;
}
