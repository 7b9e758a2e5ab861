// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Writing of the cache (cache_write.comp), and attention on every device (attention.comp).
#include "backends/vulkan/runtime/kernel.h"

enum { CACHE_GROUP = 64, CACHE_BLOCK = 32, CACHE_RUN = 4, MAX_HEAD = 1024 }; // as in the shaders

static void launch_cache(const tn_step *step, int32_t cache, int32_t x, int32_t slots, tn_vk_dispatch *d)
{
    // Blocks are made whole; else many invocations, none of which waits long.
    int64_t run = tn_dtype_block_elems(step->src[cache].dtype) > 1 ? CACHE_BLOCK : CACHE_RUN;
    d->shader = TN_VK_SHADER_cache_write;
    d->constants[0] = step->src[cache].dtype;
    d->args.n[0] = cache;
    d->args.n[1] = x;
    d->args.n[2] = slots;
    d->groups = tn_vk_div_up(
        step->src[x].ne[1] * step->src[x].ne[2] * tn_vk_div_up(step->src[cache].ne[3], run), CACHE_GROUP);
}

bool tn_vk_accepts_cache_write(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && tn_vk_is_cache_type(step->src[0].dtype);
}

int32_t tn_vk_launch_cache_write(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    launch_cache(step, 0, 1, 2, d);
    return 1;
}

bool tn_vk_accepts_attention(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && tn_vk_is_cache_type(step->src[1].dtype) &&
           tn_vk_is_cache_type(step->src[2].dtype) && step->src[0].ne[3] <= MAX_HEAD &&
           step->src[2].ne[3] <= MAX_HEAD;
}

int32_t tn_vk_launch_attention(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_attention;
    d->constants[0] = step->src[1].dtype;
    d->constants[1] = step->src[2].dtype;
    d->groups = step->src[0].ne[1] * step->src[0].ne[2];
    return 1;
}
