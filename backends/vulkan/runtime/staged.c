// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/staged.h"
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

enum { MAX_ROWS = 8, GROUP = 32, ALIGNMENT = 256 };

// Elements of a row as the reader has them: heads of attention side by side.
static int64_t row_of(const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    if (step->op == TN_OP_attention) return y->ne[2] * y->ne[3];
    bool product = step->op == TN_OP_matmul || step->op == TN_OP_linear || step->op == TN_OP_matmul_glu;
    return product ? y->ne[3] : 0;
}

size_t tn_vk_staged_size(const tn_step *step)
{
    int64_t k = row_of(step), rows = k > 0 ? tn_view_n_elems(&step->dst[0]) / k : 0;
    if (rows == 0 || rows > MAX_ROWS || k % GROUP != 0) return 0;
    return (size_t)((rows * tn_vk_quantised_size(k) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

bool tn_vk_reads_staged(const tn_vk *v, const tn_step *step, const tn_step *next, uint64_t *norm)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(v, next, NULL);
    const tn_view *x = &next->src[0], *y = &step->dst[0];
    bool product = next->op == TN_OP_matmul || next->op == TN_OP_linear || next->op == TN_OP_matmul_multi ||
                   next->op == TN_OP_matmul_glu;
    if (!product || !k || !(k->needs & TN_VK_INT8_DOT) || tn_vk_staged_size(step) == 0) return false;
    if (x->data != y->data || x->ne[3] != row_of(step) || tn_view_n_elems(x) != tn_view_n_elems(y))
        return false;
    if (!tn_view_contiguous(x) || !tn_view_contiguous(y)) return false;
    tn_vk_dispatch d = {.v = v, .like = next};
    tn_vk_args_of(next, &d.args);
    tn_vk_set_product(next, 0, &d);
    int32_t source = d.args.n[TN_VK_N_NORM];
    *norm = source >= 0 ? (uint64_t)(uintptr_t)next->src[source].data : 0;
    return true;
}
