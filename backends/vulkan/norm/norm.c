// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm, layer_norm and add_rms_norm on norm.comp.
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"
#include "ops/ops.h"

// The threads of a workgroup, and the vectors of 4 that each holds in registers. A single row takes least
// time with one vector for each thread: what is done for each of them is code that the device reads for the
// first time (H200: 16.4 us for a row of 2048 with 128 threads, of which 9 for quantising four vectors).
enum { THREADS = 128, MOST_THREADS = 512, MAX_VECTORS = 16 };

enum { C_THREADS = 4 }; // the constant of the shader

int32_t tn_vk_launch_norm(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    // A software driver gains nothing by it, and compiles it slowly.
    bool in_registers = step->op != TN_OP_layer_norm && (d->wants_staged || !d->v->device->software) &&
                        step->src[0].ne[3] <= 4 * THREADS * MAX_VECTORS;
    for (int32_t k = 0; k < step->n_src && in_registers; k++)
        in_registers = !tn_step_has_src(step, k) || tn_vk_aligned_elems(&step->src[k], 4);
    for (int32_t k = 0; k < step->n_dst && in_registers; k++)
        in_registers = tn_vk_aligned_elems(&step->dst[k], 4);
    d->constants[TN_VK_LAYOUT] = in_registers;
    d->stages = d->wants_staged && in_registers && tn_vk_stages_fours(d->v) &&
                step->src[0].ne[3] % TN_VK_QUANTISED_GROUP == 0;
    d->shader = d->stages ? TN_VK_SHADER_norm_stages : TN_VK_SHADER_norm;
    d->constants[0] = step->op;
    int64_t vectors = d->like->src[0].ne[3] / 4;
    int32_t threads = THREADS;
    while (in_registers && threads < MOST_THREADS && threads < vectors &&
           2 * threads <= (int32_t)d->v->max_threads)
        threads *= 2;
    d->constants[1] = in_registers ? (int32_t)tn_vk_div_up(vectors, threads) : 1;
    d->constants[C_THREADS] = threads;
    d->groups = tn_view_n_rows(&step->src[0]);
    return 1;
}
