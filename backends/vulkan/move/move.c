// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// copy and concat on move.comp; rows of tables, and copies of quantised weights, on get_rows.comp.
#include "backends/vulkan/runtime/kernel.h"
#include "core/device.h"
#include "ops/operands.h"
#include "ops/ops.h"

// Of a workgroup, as in the shaders: elements of move.comp, runs of 16 elements of get_rows.comp.
enum { ELEMENTS = 256, RUNS = 64, RUN = 16 };
// Invocations of a workgroup of cache_write.comp, and elements of each: a block, or some elements.
enum { CACHE_GROUP = 64, CACHE_BLOCK = 32, CACHE_ELEMS = 4 };

bool tn_vk_accepts_copy(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && tn_dtype_block_elems(step->src[0].dtype) == 1;
}

int32_t tn_vk_launch_move(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_move;
    d->constants[0] = step->op;
    d->constants[1] = step->src[0].dtype;
    d->constants[2] = step->dst[0].dtype;
    if (step->op == TN_OP_concat) {
        const tn_concat_params *p = step->params;
        d->args.n[TN_VK_N_MOVE_AXIS] = TN_MAX_DIMS - step->dst[0].n_dims + p->axis;
    }
    d->groups = tn_vk_div_up(tn_view_n_elems(&step->dst[0]), ELEMENTS);
    return 1;
}

bool tn_vk_accepts_get_rows(const tn_step *step)
{
    const tn_view *table = &step->src[0];
    if (step->op == TN_OP_copy && tn_dtype_block_elems(table->dtype) == 1) return false;
    return tn_vk_accepts_indexable(step) &&
           (tn_dtype_block_elems(table->dtype) == 1 || tn_view_contiguous(table));
}

int32_t tn_vk_launch_get_rows(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_get_rows;
    d->constants[0] = step->src[0].dtype;
    d->args.n[TN_VK_N_GET_ROWS_OP] = step->op;
    tn_vk_weight_planes(&step->src[0], &d->args.weight[0]);
    d->groups = tn_vk_div_up(tn_view_n_rows(&step->dst[0]) * tn_vk_div_up(step->dst[0].ne[3], RUN), RUNS);
    return 1;
}

bool tn_vk_accepts_cache_write(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && tn_vk_is_cache_type(step->src[TN_SRC_cache_write_cache].dtype);
}

int32_t tn_vk_launch_cache_write(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *cache = &step->src[TN_SRC_cache_write_cache], *x = &step->src[TN_SRC_cache_write_x];
    // An invocation writes a whole block, or else a few elements, so that there are many invocations and none
    // waits long.
    int64_t elems = tn_dtype_block_elems(cache->dtype) > 1 ? CACHE_BLOCK : CACHE_ELEMS;
    d->shader = TN_VK_SHADER_cache_write;
    d->constants[0] = cache->dtype;
    d->groups = tn_vk_div_up(x->ne[1] * x->ne[2] * tn_vk_div_up(cache->ne[3], elems), CACHE_GROUP);
    return 1;
}
