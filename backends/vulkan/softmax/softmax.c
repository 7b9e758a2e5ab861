// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax, reduce and argmax with a workgroup for each row (softmax.comp); argmax of long rows with several
// (argmax_split.comp).
#include "backends/vulkan/runtime/kernel.h"

enum { LONG_ROW = 512, PART_OF_ROW = 1024, MAX_PARTS = 128 }; // as in argmax_split.comp

static int32_t launch_rows(const tn_step *step, int32_t shader, int64_t groups, tn_vk_dispatch *d)
{
    d->shader = shader;
    d->constants[0] = step->op;
    d->groups = groups;
    return 1;
}

// Of its family, softmax.comp does not have `sample`.
bool tn_vk_accepts_softmax(const tn_step *step)
{
    return step->op != TN_OP_sample && tn_vk_accepts_indexable(step);
}

int32_t tn_vk_launch_softmax(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    return launch_rows(step, TN_VK_SHADER_softmax, tn_view_n_rows(&step->src[0]), d);
}

bool tn_vk_accepts_argmax_split(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[0].ne[3] >= LONG_ROW;
}

int32_t tn_vk_launch_argmax_split(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int64_t n_rows = tn_view_n_rows(&step->src[0]);
    int32_t parts = (int32_t)TN_MIN(tn_vk_div_up(d->like->src[0].ne[3], PART_OF_ROW), MAX_PARTS);
    launch_rows(step, TN_VK_SHADER_argmax_split, i == 0 ? n_rows * parts : n_rows, d);
    d->constants[1] = i;
    d->waits = i == 1;
    d->args.n[TN_VK_N_ARGMAX_PARTS] = parts;
    d->scratch = n_rows * parts * 3 * (int64_t)sizeof(float);
    return 2;
}
