// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// sample: a workgroup for each row of logits (sample.comp). Rows with edits or a mask are written once with
// them into the scratch memory by a dispatch before.
#include "ops/sample.h"
#include "backends/vulkan/runtime/kernel.h"
#include "core/device.h"
#include "ops/operands.h"

enum {
    C_EDIT,
    C_THREADS = 4,
    PART_OF_ROW = 4096, // elements that a workgroup edits
    MAX_THREADS = 1024, // and bins, and places in the list
    SOFTWARE_THREADS = 128,
    SMALL_THREADS = 256,
    SHARED = 24 * 1024, // bytes of a workgroup of more threads than that
};

_Static_assert(TN_SAMPLE_BEST == 1 && TN_SAMPLE_DRAW == 2 && TN_SAMPLE_TOP == 20 && TN_WEIGHT_BITS == 40 &&
                   TN_SAMPLE_ROW_WORDS == 16 && TN_SAMPLE_EDIT_WORDS == 4 && TN_SAMPLE_RESULT_WORDS == 48,
               "as in sample.comp and sample.glsl");

static bool edits(const tn_step *step)
{
    return tn_step_has_src(step, TN_SRC_sample_edits) || tn_step_has_src(step, TN_SRC_sample_masks);
}

// A power of two.
static int32_t n_threads(const tn_vk *v)
{
    uint32_t n = v->device->software      ? SOFTWARE_THREADS
                 : v->max_shared < SHARED ? SMALL_THREADS
                                          : MAX_THREADS;
    while (n > v->max_threads) n /= 2;
    return (int32_t)n;
}

bool tn_vk_accepts_sample(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[TN_SRC_sample_x].dtype == TN_TYPE_F32;
}

int32_t tn_vk_launch_sample(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    const tn_view *x = &step->src[TN_SRC_sample_x];
    bool edited = edits(step), first = edited && i == 0;
    int64_t parts = tn_vk_div_up(x->ne[3], PART_OF_ROW);
    d->shader = TN_VK_SHADER_sample;
    d->constants[C_EDIT] = first;
    d->constants[C_THREADS] = n_threads(d->v);
    d->groups = first ? x->ne[2] * parts : x->ne[2];
    d->waits = i == 1;
    d->args.n[TN_VK_N_SAMPLE_PARTS] = (int32_t)parts;
    d->scratch = edited ? x->ne[2] * x->ne[3] * (int64_t)sizeof(float) : 0;
    return edited ? 2 : 1;
}
