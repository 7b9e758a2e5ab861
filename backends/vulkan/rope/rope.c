// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope, norm_rope and rope_cache on rope.comp.
#include "backends/vulkan/runtime/kernel.h"
#include "ops/ops.h"

#include <string.h>

enum { MAX_HEAD = 1024 }; // elements of a head, as in the shader

// Words of the parameters of rope, and which operands have what.
static void rope_args(tn_vk_dispatch *d, const tn_rope_params *p, int32_t src, int32_t pos, int32_t norm,
                      int32_t factors, int32_t params, int32_t eps)
{
    d->rope = p;
    const int32_t n[] = {src, pos, norm, factors, params, eps};
    memcpy(d->args.n, n, sizeof n);
    d->shader = TN_VK_SHADER_rope;
    d->constants[0] = TN_TYPE_F32;
}

bool tn_vk_accepts_rope(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[0].ne[3] <= MAX_HEAD;
}

int32_t tn_vk_launch_rope(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    int32_t normed = step->op == TN_OP_norm_rope, pos = 1 + normed;
    int32_t params = normed ? (int32_t)(offsetof(tn_norm_rope_params, rope) / 4) : 0;
    const tn_rope_params *p = normed ? &((const tn_norm_rope_params *)step->params)->rope : step->params;
    rope_args(d, p, 0, pos, normed ? 1 : -1, tn_step_has_src(step, pos + 1) ? pos + 1 : -1, params,
              (int32_t)(offsetof(tn_norm_rope_params, eps) / 4));
    d->args.n[7] = 0;
    d->groups = step->src[0].ne[1] * step->src[0].ne[2];
    return 1;
}

// Sources of rope_cache (ops/rope_cache.c).
enum { CACHE_K, CACHE_V, Q, K, V, POS, SLOTS, NORM_Q, NORM_K, FACTORS };

bool tn_vk_accepts_rope_cache(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && step->src[Q].ne[3] <= MAX_HEAD &&
           step->src[K].ne[3] <= MAX_HEAD && tn_vk_is_cache_type(step->src[CACHE_K].dtype) &&
           tn_vk_is_cache_type(step->src[CACHE_V].dtype);
}

int32_t tn_vk_launch_rope_cache(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_rope_cache_params *p = step->params;
    rope_args(d, &p->rope, Q, POS, tn_step_has_src(step, NORM_Q) ? NORM_Q : -1,
              tn_step_has_src(step, FACTORS) ? FACTORS : -1,
              (int32_t)(offsetof(tn_rope_cache_params, rope) / 4),
              (int32_t)(offsetof(tn_rope_cache_params, eps) / 4));
    d->args.n[6] = tn_step_has_src(step, NORM_K) ? NORM_K : -1;
    d->args.n[7] = 2; // the result for q
    d->args.n[8] = SLOTS;
    d->constants[0] = step->src[CACHE_K].dtype;
    d->constants[1] = step->src[CACHE_V].dtype;
    d->constants[2] = 1;
    d->groups = 0;
    for (int32_t src = Q; src <= V; src++) d->groups += step->src[src].ne[1] * step->src[src].ne[2];
    return 1;
}
