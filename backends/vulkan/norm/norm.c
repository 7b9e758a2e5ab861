// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm, layer_norm and add_rms_norm on norm.comp.
#include "backends/vulkan/runtime/kernel.h"
#include "core/device.h"
#include "ops/ops.h"

enum { MAX_IN_REGISTERS = 4 * 128 * 16 }; // elements of a row that a workgroup holds in registers

int32_t tn_vk_launch_norm(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    // A software driver gains nothing by it, and compiles it slowly.
    bool in_registers =
        step->op != TN_OP_layer_norm && !d->v->device->software && step->src[0].ne[3] <= MAX_IN_REGISTERS;
    for (int32_t k = 0; k < step->n_src && in_registers; k++)
        in_registers = !tn_step_has_src(step, k) || tn_vk_aligned_elems(&step->src[k], 4);
    for (int32_t k = 0; k < step->n_dst && in_registers; k++)
        in_registers = tn_vk_aligned_elems(&step->dst[k], 4);
    d->constants[TN_VK_LAYOUT] = in_registers;
    d->shader = TN_VK_SHADER_norm;
    d->constants[0] = step->op;
    d->groups = tn_view_n_rows(&step->src[0]);
    return 1;
}
