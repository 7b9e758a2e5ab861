// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"
#include "ops/product.h"

enum { MAX_ROWS = 8 }; // up to which a GEMV kernel reads the result

int64_t tn_vk_quantised_size(int64_t k)
{
    return (k + k / 4 + k / 8 + 15) / 16 * 16; // integers, scale and sums of each group, its sum of squares
}

// Elements of a row as the next step reads it (heads of attention stand side by side); 0: the result is never
// staged.
static int64_t row_of(const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    tn_product p = tn_product_get(step);
    if (step->op == TN_OP_attention) return y->ne[2] * y->ne[3];
    return p.n_results == 1 && !p.ids ? y->ne[3] : 0;
}

size_t tn_vk_staged_size(const tn_device *device, const tn_step *step)
{
    TN_UNUSED(device);
    int64_t k = row_of(step), rows = k > 0 ? tn_view_n_elems(&step->dst[0]) / k : 0;
    if (rows == 0 || rows > MAX_ROWS || k % TN_VK_QUANTISED_GROUP != 0) return 0;
    return (size_t)(rows * tn_vk_quantised_size(k));
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

// Only the very next step reads a staged result: another one quantises x itself, as it always did.
uint32_t tn_vk_joins(const tn_device *device, const tn_step_pair *pair)
{
    const tn_vk *v = tn_vk_of(device);
    const tn_step *step = pair->maker, *next = pair->reader;
    const tn_vk_kernel *k = tn_vk_find_kernel(v, next, NULL);
    const tn_view *x = &next->src[0], *y = &step->dst[0];
    tn_product p = tn_product_get(next);
    if (p.n_weights == 0 || p.ids || !k || !(k->needs & TN_VK_INT8_DOT) || !pair->adjacent) return 0;
    bool same = pair->from[0] == 0 && x->ne[3] == row_of(step) && tn_view_n_elems(x) == tn_view_n_elems(y);
    bool fits = same && tn_view_contiguous(x) && tn_view_contiguous(y) && tn_vk_staged_size(device, step) > 0;
    return fits && stages(v, step) ? TN_JOIN_STAGE : 0;
}
