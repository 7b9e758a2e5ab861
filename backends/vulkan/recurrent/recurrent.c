// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// short_conv and delta_rule on recurrent.comp.
#include "backends/vulkan/runtime/kernel.h"
#include "ops/operands.h"

enum { CONV_GROUP = 64, MAX_KERNEL = 8, MAX_WIDTH = 256 }; // as in the shader

bool tn_vk_accepts_short_conv(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[TN_SRC_short_conv_w].ne[3] <= MAX_KERNEL;
}

bool tn_vk_accepts_delta_rule(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[TN_SRC_delta_rule_q].ne[3] <= MAX_WIDTH;
}

int32_t tn_vk_launch_recurrent(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *s = step->src;
    d->shader = TN_VK_SHADER_recurrent;
    d->constants[0] = step->op;
    if (step->op == TN_OP_short_conv) // an invocation for each channel of a sequence
        d->groups = tn_vk_div_up(s[TN_SRC_short_conv_slots].ne[2] * s[TN_SRC_short_conv_x].ne[3], CONV_GROUP);
    else // a workgroup for each head of a sequence
        d->groups = s[TN_SRC_delta_rule_slots].ne[2] * s[TN_SRC_delta_rule_v].ne[2];
    return 1;
}
