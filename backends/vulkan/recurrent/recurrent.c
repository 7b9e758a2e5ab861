// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// short_conv and delta_rule on recurrent.comp.
#include "backends/vulkan/runtime/kernel.h"

enum { CONV_GROUP = 64, MAX_KERNEL = 8, MAX_WIDTH = 256 }; // as in the shader

bool tn_vk_accepts_short_conv(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[2].ne[3] <= MAX_KERNEL;
}

bool tn_vk_accepts_delta_rule(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[1].ne[3] <= MAX_WIDTH;
}

int32_t tn_vk_launch_recurrent(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *slots = &step->src[step->n_src - 1];
    bool conv = step->op == TN_OP_short_conv;
    d->shader = TN_VK_SHADER_recurrent;
    d->constants[0] = step->op;
    d->groups = conv ? tn_vk_div_up(slots->ne[2] * step->src[1].ne[3], CONV_GROUP)
                     : slots->ne[2] * step->src[3].ne[2];
    return 1;
}
