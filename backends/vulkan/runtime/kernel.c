// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which row of the table of kernels runs a step, and what all of them are given.
#include "backends/vulkan/runtime/kernel.h"
#include "ops/ops.h"

#include <string.h>

const tn_vk_kernel *tn_vk_find_kernel(const tn_vk *v, const tn_step *step, const tn_vk_kernel *after)
{
    for (const tn_vk_kernel *k = after ? after + 1 : v->kernels; k < v->kernels + v->n_kernels; k++)
        if (tn_op_set_has(k->set, step->op) && !(k->needs & ~v->has) && k->accepts(step)) return k;
    return NULL;
}

static void view_of(const tn_view *v, tn_vk_view *out)
{
    *out = (tn_vk_view){.data = (uint64_t)(uintptr_t)v->data, .dtype = v->dtype};
    for (int32_t d = 0; d < TN_MAX_DIMS; d++) {
        out->ne[d] = (int32_t)v->ne[d];
        out->nb[d] = v->nb[d];
    }
}

void tn_vk_args_of(const tn_step *step, tn_vk_args *a)
{
    memset(a, 0, sizeof *a);
    for (int32_t i = 0; i < step->n_src; i++) view_of(&step->src[i], &a->src[i]);
    for (int32_t i = 0; i < step->n_dst; i++) view_of(&step->dst[i], &a->dst[i]);
    size_t size = tn_op_info_get(step->op)->params_size;
    if (step->params && size > 0) memcpy(a->params, step->params, TN_MIN(size, sizeof a->params));
    for (int32_t i = 0; i < TN_VK_NUMBERS; i++) a->n[i] = -1;
}

bool tn_vk_accepts_indexable(const tn_step *step)
{
    for (int32_t i = 0; i < step->n_src; i++)
        for (int32_t d = 0; d < TN_MAX_DIMS; d++)
            if (step->src[i].ne[d] > INT32_MAX) return false;
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!tn_op_aliases(tn_op_info_get(step->op)->flags, i) && tn_view_n_elems(&step->dst[i]) > INT32_MAX)
            return false;
    return tn_op_info_get(step->op)->params_size <= TN_VK_PARAMS * sizeof(int32_t);
}

bool tn_vk_is_cache_type(tn_dtype t)
{
    return t == TN_TYPE_F32 || t == TN_TYPE_F16 || t == TN_TYPE_BF16 || t == TN_TYPE_Q8_0 ||
           t == TN_TYPE_Q4_0;
}

bool tn_vk_aligned_elems(const tn_view *v, int64_t elems)
{
    enum { VECTOR = 16 }; // bytes of the widest load
    uint64_t bits =
        (uint64_t)(uintptr_t)v->data | (uint64_t)v->nb[0] | (uint64_t)v->nb[1] | (uint64_t)v->nb[2];
    return v->ne[3] % elems == 0 && bits % VECTOR == 0;
}
