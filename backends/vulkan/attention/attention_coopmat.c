// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries with cooperative matrices: attention_fragment.comp where it is known which
// elements of a matrix an invocation has, the cache has the type of the matrices, and heads are not wide;
// attention_coopmat.comp otherwise.
#include "backends/vulkan/runtime/kernel.h"
#include "ops/operands.h"

// Fewer queries than MIN_TOKENS, or than MIN_TOKENS_OF_TEXT of each text on average, would leave most of a
// matrix empty. SIZE: rows and columns of a matrix. MAX_WIDTH: elements of a head that fit into registers of
// a subgroup; two share wider ones. ROWS: queries of a workgroup, half as many there.
enum {
    MIN_TOKENS = 16,
    MIN_TOKENS_OF_TEXT = 4,
    SIZE = 16,
    MAX_WIDTH = 128,
    MAX_SHARED_WIDTH = 256,
    ROWS = 64
};
enum { C_TYPE_K, C_TYPE_V, C_MATRICES }; // constants of the shaders
// C_MATRICES: along a row of k, above that of v, and a bit of attention_fragment.comp.
enum { MATRICES_V_SHIFT = 5, FORM_GENERAL = 1 << 10 };
enum { TILE = 32 }; // keys of a tile of attention_fragment.comp, in one block of the cache

// Caches whose values f16 represents well. BF16, which has matrices of its own, and F32 have a larger range.
static bool is_f16_type(tn_dtype type)
{
    return type == TN_TYPE_F16 || type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_0;
}

static bool is_shared(int64_t width_k, int64_t width_v)
{
    return width_k > MAX_WIDTH || width_v > MAX_WIDTH;
}

static bool is_whole(int64_t width, bool shared)
{
    return width > 0 && width % (shared ? 2 * SIZE : SIZE) == 0 && width <= MAX_SHARED_WIDTH;
}

static bool accepts(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *v = &step->src[TN_SRC_attention_v];
    int64_t texts = step->src[TN_SRC_attention_kv_len].ne[3];
    bool shared = is_shared(q->ne[3], v->ne[3]);
    return tn_vk_accepts_attention(step) && q->ne[1] >= MIN_TOKENS &&
           q->ne[1] >= MIN_TOKENS_OF_TEXT * texts && is_whole(q->ne[3], shared) && is_whole(v->ne[3], shared);
}

bool tn_vk_accepts_attention_coopmat(const tn_step *step)
{
    return is_f16_type(step->src[TN_SRC_attention_k].dtype) &&
           is_f16_type(step->src[TN_SRC_attention_v].dtype) && accepts(step);
}

bool tn_vk_accepts_attention_coopmat_bf16(const tn_step *step)
{
    return step->src[TN_SRC_attention_k].dtype == TN_TYPE_BF16 &&
           step->src[TN_SRC_attention_v].dtype == TN_TYPE_BF16 && accepts(step);
}

static bool accepts_fragment(const tn_step *step, tn_dtype type)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    return k->dtype == type && v->dtype == type && !is_shared(q->ne[3], v->ne[3]) && k->ne[2] % TILE == 0 &&
           k->nb[2] <= INT32_MAX && v->nb[2] <= INT32_MAX && tn_vk_aligned_elems(k, 1) &&
           tn_vk_aligned_elems(v, 1) && accepts(step);
}

bool tn_vk_accepts_attention_fragment(const tn_step *step)
{
    return accepts_fragment(step, TN_TYPE_F16);
}

bool tn_vk_accepts_attention_fragment_bf16(const tn_step *step)
{
    return accepts_fragment(step, TN_TYPE_BF16);
}

static int32_t launch(const tn_step *step, int32_t shader, tn_vk_dispatch *d)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    int32_t rows = is_shared(q->ne[3], v->ne[3]) ? ROWS / 2 : ROWS;
    d->shader = shader;
    d->constants[C_TYPE_K] = k->dtype;
    d->constants[C_TYPE_V] = v->dtype;
    d->constants[C_MATRICES] = (int32_t)(q->ne[3] / SIZE) | (int32_t)(v->ne[3] / SIZE) << MATRICES_V_SHIFT;
    d->constants[TN_VK_LAYOUT] = tn_vk_aligned_elems(k, 1) && tn_vk_aligned_elems(v, 1);
    d->groups = tn_vk_div_up(q->ne[1], rows) * q->ne[2];
    return 1;
}

int32_t tn_vk_launch_attention_coopmat(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    return launch(step, TN_VK_SHADER_attention_coopmat, d);
}

int32_t tn_vk_launch_attention_coopmat_bf16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    return launch(step, TN_VK_SHADER_attention_coopmat_bf16, d);
}

static int32_t launch_fragment(const tn_step *step, int32_t shader, tn_vk_dispatch *d)
{
    const tn_attention_params *p = step->params;
    int32_t n = launch(step, shader, d);
    if (!(p->scale > 0.0f) || p->softcap > 0.0f || p->max_bias > 0.0f)
        d->constants[C_MATRICES] |= FORM_GENERAL;
    return n;
}

int32_t tn_vk_launch_attention_fragment(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    return launch_fragment(step, TN_VK_SHADER_attention_fragment, d);
}

int32_t tn_vk_launch_attention_fragment_bf16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    return launch_fragment(step, TN_VK_SHADER_attention_fragment_bf16, d);
}
