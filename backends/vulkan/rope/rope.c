// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope, norm_rope and rope_cache on rope.comp.
#include "backends/vulkan/rope/rope.h"
#include "core/device.h"
#include "ops/operands.h"
#include "ops/ops.h"

enum { MAX_HEAD = 1024, WORD = sizeof(int32_t) }; // MAX_HEAD: elements of a head, as in the shader
enum { C_CACHE_K, C_CACHE_V, C_WRITES_CACHE, C_HEADS, C_THREADS }; // constants of the shader

// What all three have. Optional operands that are missing become -1.
static void bind(const tn_step *step, const tn_rope_params *rope, size_t params_off, size_t eps_off,
                 tn_vk_dispatch *d)
{
    int32_t *n = d->args.n;
    const int32_t optional[] = {TN_VK_N_ROPE_NORM, TN_VK_N_ROPE_FACTORS, TN_VK_N_ROPE_NORM_K};
    for (size_t i = 0; i < TN_COUNT(optional); i++)
        if (n[optional[i]] >= 0 && !tn_step_has_src(step, n[optional[i]])) n[optional[i]] = -1;
    n[TN_VK_N_ROPE_PARAMS] = (int32_t)(params_off / WORD);
    n[TN_VK_N_ROPE_EPS] = (int32_t)(eps_off / WORD);
    d->rope = rope;
    d->shader = TN_VK_SHADER_rope;
    d->constants[C_CACHE_K] = TN_TYPE_F32;
}

// Heads of these operands, of all tokens.
static int64_t heads_of(const tn_step *step, int32_t first, int32_t last)
{
    int64_t n = 0;
    for (int32_t src = first; src <= last; src++) n += step->src[src].ne[1] * step->src[src].ne[2];
    return n;
}

// How many heads of a token a workgroup has: more than one only where large devices still have work for all
// their places. A single one has an invocation for each element, so that none waits for two loads.
static void divide(const tn_step *step, int32_t first, int32_t last, tn_vk_dispatch *d)
{
    enum { PLACES = 2048, MOST = 8, THREADS = 64, MOST_THREADS = 256 };
    int64_t each = MOST;
    for (int32_t src = first; src <= last; src++)
        while (each > 1 &&
               (step->src[src].ne[2] % each != 0 || heads_of(d->like, first, last) / each < PLACES))
            each /= 2;
    int32_t threads = THREADS;
    while (each == 1 && !d->v->device->software && threads < MOST_THREADS &&
           threads < d->like->src[first].ne[3])
        threads *= 2;
    while (threads > (int32_t)d->v->max_threads) threads /= 2;
    d->constants[C_THREADS] = threads;
    d->constants[C_HEADS] = (int32_t)each;
    d->groups = heads_of(step, first, last) / each;
}

bool tn_vk_accepts_rope(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[TN_SRC_rope_x].ne[3] <= MAX_HEAD;
}

int32_t tn_vk_launch_rope(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    int32_t *n = d->args.n;
    n[TN_VK_N_ROPE_X] = TN_SRC_rope_x; // of norm_rope too
    n[TN_VK_N_ROPE_RESULT] = 0;
    if (step->op == TN_OP_norm_rope) {
        const tn_norm_rope_params *p = step->params;
        n[TN_VK_N_ROPE_POS] = TN_SRC_norm_rope_pos;
        n[TN_VK_N_ROPE_NORM] = TN_SRC_norm_rope_w;
        n[TN_VK_N_ROPE_FACTORS] = TN_SRC_norm_rope_factors;
        bind(step, &p->rope, offsetof(tn_norm_rope_params, rope), offsetof(tn_norm_rope_params, eps), d);
    } else {
        n[TN_VK_N_ROPE_POS] = TN_SRC_rope_pos;
        n[TN_VK_N_ROPE_FACTORS] = TN_SRC_rope_factors;
        bind(step, step->params, 0, 0, d);
    }
    divide(step, TN_SRC_rope_x, TN_SRC_rope_x, d);
    return 1;
}

bool tn_vk_accepts_rope_cache(const tn_step *step)
{
    const tn_view *s = step->src;
    return tn_vk_accepts_indexable(step) && s[TN_SRC_rope_cache_q].ne[3] <= MAX_HEAD &&
           s[TN_SRC_rope_cache_k].ne[3] <= MAX_HEAD &&
           tn_vk_is_cache_type(s[TN_SRC_rope_cache_cache_k].dtype) &&
           tn_vk_is_cache_type(s[TN_SRC_rope_cache_cache_v].dtype);
}

void tn_vk_bind_rope_cache(const tn_step *step, tn_vk_dispatch *d)
{
    const tn_rope_cache_params *p = step->params;
    int32_t *n = d->args.n;
    n[TN_VK_N_ROPE_X] = TN_SRC_rope_cache_q;
    n[TN_VK_N_ROPE_POS] = TN_SRC_rope_cache_pos;
    n[TN_VK_N_ROPE_NORM] = TN_SRC_rope_cache_norm_q;
    n[TN_VK_N_ROPE_FACTORS] = TN_SRC_rope_cache_factors;
    n[TN_VK_N_ROPE_NORM_K] = TN_SRC_rope_cache_norm_k;
    n[TN_VK_N_ROPE_RESULT] = TN_DST_rope_cache_q;
    n[TN_VK_N_ROPE_SLOTS] = TN_SRC_rope_cache_slots;
    bind(step, &p->rope, offsetof(tn_rope_cache_params, rope), offsetof(tn_rope_cache_params, eps), d);
}

int32_t tn_vk_launch_rope_cache(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    tn_vk_bind_rope_cache(step, d);
    d->constants[C_CACHE_K] = step->src[TN_SRC_rope_cache_cache_k].dtype;
    d->constants[C_CACHE_V] = step->src[TN_SRC_rope_cache_cache_v].dtype;
    d->constants[C_WRITES_CACHE] = 1;
    divide(step, TN_SRC_rope_cache_q, TN_SRC_rope_cache_v, d);
    return 1;
}
