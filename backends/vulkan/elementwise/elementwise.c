// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// unary, binary and glu on elementwise.comp.
#include "backends/vulkan/runtime/kernel.h"

enum { ELEMENTS = 256 }; // of a workgroup, as in the shader

int32_t tn_vk_launch_elementwise(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_elementwise;
    d->constants[0] = step->op;
    d->groups = tn_vk_div_up(tn_view_n_elems(&step->dst[0]), ELEMENTS);
    return 1;
}
