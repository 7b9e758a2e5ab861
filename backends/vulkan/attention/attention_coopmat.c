// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries with matrices of subgroups (shaders/attention_matrix.comp).
#include "backends/vulkan/runtime/kernel.h"

enum { MIN_TOKENS = 16, SIZE = 16, MAX_WIDTH = 128, ROWS = 64 };

// f16 has their range; of bf16 and f32 it would lose some.
static bool is_taken(tn_dtype type)
{
    return type == TN_TYPE_F16 || type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_0;
}

static bool is_whole(int64_t width)
{
    return width % SIZE == 0 && width > 0 && width <= MAX_WIDTH;
}

bool tn_vk_accepts_attention_coopmat(const tn_step *step)
{
    return tn_vk_accepts_attention(step) && step->src[0].ne[1] >= MIN_TOKENS &&
           is_taken(step->src[1].dtype) && is_taken(step->src[2].dtype) && is_whole(step->src[0].ne[3]) &&
           is_whole(step->src[2].ne[3]);
}

static bool aligned(const tn_view *v)
{
    uint64_t bits =
        (uint64_t)(uintptr_t)v->data | (uint64_t)v->nb[0] | (uint64_t)v->nb[1] | (uint64_t)v->nb[2];
    return bits % 16 == 0;
}

int32_t tn_vk_launch_attention_coopmat(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *q = &step->src[0], *k = &step->src[1], *v = &step->src[2];
    d->shader = TN_VK_SHADER_attention_coopmat;
    d->constants[0] = k->dtype;
    d->constants[1] = v->dtype;
    d->constants[2] = (int32_t)(q->ne[3] / SIZE) | (int32_t)(v->ne[3] / SIZE) << 4;
    d->constants[TN_VK_LAYOUT] = aligned(k) && aligned(v);
    d->groups = (q->ne[1] + ROWS - 1) / ROWS * q->ne[2];
    return 1;
}
