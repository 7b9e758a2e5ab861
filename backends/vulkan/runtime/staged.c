// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"
#include "ops/product.h"

// Rows up to which a GEMV kernel reads the result, and of experts, where each row is a slot of a token.
enum { MAX_ROWS = 8, MAX_SLOTS = 64 };

int64_t tn_vk_quantised_size(int64_t k)
{
    return (k + k / 4 + k / 8 + 15) / 16 * 16; // integers, scale and sums of each group, its sum of squares
}

// The result that is staged, and the elements of a row as products read it (heads of attention stand side by
// side); 0: no result is.
static const tn_view *staged_of(const tn_step *step, int64_t *k)
{
    const tn_view *y = &step->dst[step->op == TN_OP_add_rms_norm ? 1 : 0];
    bool sums = step->op == TN_OP_add_rms_norm || step->op == TN_OP_moe_combine;
    *k = step->op == TN_OP_attention                   ? y->ne[2] * y->ne[3]
         : sums || tn_product_get(step).n_results == 1 ? y->ne[3]
                                                       : 0;
    return y;
}

size_t tn_vk_staged_size(const tn_device *device, const tn_step *step)
{
    TN_UNUSED(device);
    int64_t k;
    const tn_view *y = staged_of(step, &k);
    int64_t rows = k > 0 ? tn_view_n_elems(y) / k : 0, most = tn_product_get(step).ids ? MAX_SLOTS : MAX_ROWS;
    if (rows == 0 || rows > most || k % TN_VK_QUANTISED_GROUP != 0) return 0;
    return (size_t)(rows * tn_vk_quantised_size(k));
}

bool tn_vk_stages_fours(const tn_vk *v)
{
    enum { INVOCATIONS = 8, WORKGROUP = 64 }; // of a group; the smallest workgroup that stages
    return (v->has & TN_VK_SHUFFLE) && (v->has & TN_VK_SUBGROUPS) && v->subgroup >= INVOCATIONS &&
           v->subgroup <= WORKGROUP;
}

tn_step tn_vk_step_nowhere(const tn_step *step)
{
    enum { NOWHERE = 1 << 20 };
    tn_step s = *step;
    for (int32_t i = 0; i < s.n_src; i++)
        if (s.src[i].ne[3] > 0) s.src[i].data = (void *)(uintptr_t)(NOWHERE + s.src[i].offset);
    for (int32_t i = 0; i < s.n_dst; i++) s.dst[i].data = (void *)(uintptr_t)(NOWHERE + s.dst[i].offset);
    return s;
}

// Whether the first kernel of the step writes a staged result if the next step wants it.
static bool stages(const tn_vk *v, const tn_step *step)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(v, step, NULL);
    tn_step s = tn_vk_step_nowhere(step);
    bool writes = false;
    for (int32_t i = 0, n = 1; k && i < n; i++) {
        tn_vk_dispatch d = {.v = v, .like = &s, .wants_staged = true};
        tn_vk_args_of(&s, &d.args);
        n = k->launch(&s, i, &d);
        writes = writes || d.stages;
    }
    return writes;
}

uint32_t tn_vk_joins(const tn_device *device, const tn_step_pair *pair)
{
    const tn_vk *v = tn_vk_of(device);
    const tn_step *step = pair->maker, *next = pair->reader;
    const tn_vk_kernel *k = tn_vk_find_kernel(v, next, NULL);
    int64_t n;
    const tn_view *x = &next->src[0], *y = staged_of(step, &n);
    if (tn_product_get(next).n_weights == 0 || !k || !(k->needs & TN_VK_INT8_DOT)) return 0;
    bool same = pair->from[0] == y - step->dst && x->ne[3] == n && tn_view_n_elems(x) == tn_view_n_elems(y);
    bool fits = same && tn_view_contiguous(x) && tn_view_contiguous(y) && tn_vk_staged_size(device, step) > 0;
    return fits && stages(v, step) ? TN_JOIN_STAGE : 0;
}
