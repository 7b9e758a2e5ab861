// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"
#include "ops/product.h"

// Rows up to which a GEMV kernel reads the result; alignment in bytes of what lies beside each other in
// scratch.
enum { MAX_ROWS = 8, ALIGNMENT = 256 };

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

size_t tn_vk_staged_size(const tn_step *step)
{
    int64_t k = row_of(step), rows = k > 0 ? tn_view_n_elems(&step->dst[0]) / k : 0;
    if (rows == 0 || rows > MAX_ROWS || k % TN_VK_QUANTISED_GROUP != 0) return 0;
    return (size_t)((rows * tn_vk_quantised_size(k) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

bool tn_vk_reads_staged(const tn_vk *v, const tn_step *step, const tn_step *next, uint64_t *norm)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(v, next, NULL);
    const tn_view *x = &next->src[0], *y = &step->dst[0];
    tn_product p = tn_product_get(next);
    if (p.n_weights == 0 || p.ids || !k || !(k->needs & TN_VK_INT8_DOT) || tn_vk_staged_size(step) == 0)
        return false;
    if (x->data != y->data || x->ne[3] != row_of(step) || tn_view_n_elems(x) != tn_view_n_elems(y))
        return false;
    if (!tn_view_contiguous(x) || !tn_view_contiguous(y)) return false;
    *norm = p.norm ? (uint64_t)(uintptr_t)p.norm->data : 0;
    return true;
}
