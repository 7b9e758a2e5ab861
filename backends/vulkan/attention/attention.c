// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention that runs on every device (attention.comp).
#include "backends/vulkan/runtime/kernel.h"
#include "ops/operands.h"

enum { MAX_HEAD = 1024 }; // elements of a head, as in the shader

bool tn_vk_accepts_attention(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    return tn_vk_accepts_indexable(step) && tn_vk_is_cache_type(k->dtype) && tn_vk_is_cache_type(v->dtype) &&
           q->ne[3] <= MAX_HEAD && v->ne[3] <= MAX_HEAD;
}

int32_t tn_vk_launch_attention(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *q = &step->src[TN_SRC_attention_q];
    d->shader = TN_VK_SHADER_attention;
    d->constants[0] = step->src[TN_SRC_attention_k].dtype;
    d->constants[1] = step->src[TN_SRC_attention_v].dtype;
    d->groups = q->ne[1] * q->ne[2];
    return 1;
}
