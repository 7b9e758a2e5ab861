// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries with cooperative matrices (attention_coopmat.comp).
#include "backends/vulkan/runtime/kernel.h"
#include "ops/operands.h"

// Fewer queries than MIN_TOKENS would leave most of a matrix empty. SIZE: rows and columns of a matrix.
// MAX_WIDTH: elements of a head that fit into registers. ROWS: queries of a workgroup.
enum { MIN_TOKENS = 16, SIZE = 16, MAX_WIDTH = 128, ROWS = 64 };
enum { C_TYPE_K, C_TYPE_V, C_MATRICES }; // constants of the shader
enum { MATRICES_V_SHIFT = 4 };           // C_MATRICES: along a row of k, and above that of v

// Caches whose values f16 represents well. BF16 and F32 have a larger range.
static bool is_f16_type(tn_dtype type)
{
    return type == TN_TYPE_F16 || type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_0;
}

static bool is_whole(int64_t width)
{
    return width % SIZE == 0 && width > 0 && width <= MAX_WIDTH;
}

bool tn_vk_accepts_attention_coopmat(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    return tn_vk_accepts_attention(step) && q->ne[1] >= MIN_TOKENS && is_f16_type(k->dtype) &&
           is_f16_type(v->dtype) && is_whole(q->ne[3]) && is_whole(v->ne[3]);
}

int32_t tn_vk_launch_attention_coopmat(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    d->shader = TN_VK_SHADER_attention_coopmat;
    d->constants[C_TYPE_K] = k->dtype;
    d->constants[C_TYPE_V] = v->dtype;
    d->constants[C_MATRICES] = (int32_t)(q->ne[3] / SIZE) | (int32_t)(v->ne[3] / SIZE) << MATRICES_V_SHIFT;
    d->constants[TN_VK_LAYOUT] = tn_vk_aligned_elems(k, 1) && tn_vk_aligned_elems(v, 1);
    d->groups = tn_vk_div_up(q->ne[1], ROWS) * q->ne[2];
    return 1;
}
