// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/staged.h"

#include "ops/operands.h"
#include "ops/product.h"

tn_step tn_cuda_step_nowhere(const tn_step *step)
{
    tn_step s = *step;
    for (int32_t k = 0; k < s.n_src; k++)
        if (s.src[k].ne[3] > 0) s.src[k].data = (void *)(uintptr_t)(TN_CUDA_NOWHERE + s.src[k].offset);
    for (int32_t k = 0; k < s.n_dst; k++)
        s.dst[k].data = (void *)(uintptr_t)(TN_CUDA_NOWHERE + s.dst[k].offset);
    tn_view *staged[] = {&s.join.staged_x, &s.join.staged_y, &s.join.staged_norm};
    for (size_t k = 0; k < TN_COUNT(staged); k++)
        if (staged[k]->ne[3] > 0) staged[k]->data = (void *)(uintptr_t)(TN_CUDA_NOWHERE + staged[k]->offset);
    return s;
}

int32_t tn_cuda_staged_result(const tn_step *step)
{
    bool norms = step->op == TN_OP_moe_route && step->n_dst > TN_DST_moe_route_normed;
    return norms ? TN_DST_moe_route_normed : 0;
}

int64_t tn_cuda_staged_elems(const tn_step *step)
{
    const tn_view *y = &step->dst[tn_cuda_staged_result(step)];
    return step->op == TN_OP_attention ? y->ne[2] * y->ne[3] : y->ne[3];
}

size_t tn_cuda_staged_size(const tn_device *device, const tn_step *step)
{
    TN_UNUSED(device);
    int64_t k = tn_cuda_staged_elems(step), n = tn_view_n_elems(&step->dst[tn_cuda_staged_result(step)]) / k;
    return (size_t)n * (size_t)TN_QUANTISED_ROW_SIZE(k);
}

static tn_cuda_quantised staged(const tn_view *rows, int64_t k, const tn_view *norm)
{
    if (rows->ne[3] == 0) return (tn_cuda_quantised){0};
    return (tn_cuda_quantised){.rows = rows->data,
                               .row_size = TN_QUANTISED_ROW_SIZE(k),
                               .norm = norm ? norm->data : NULL,
                               .k = (int32_t)k};
}

tn_cuda_quantised tn_cuda_quantised_x(const tn_step *step)
{
    return staged(&step->join.staged_x, step->src[0].ne[3], tn_product_get(step).norm);
}

tn_cuda_quantised tn_cuda_quantised_y(const tn_step *step)
{
    const tn_view *norm = &step->join.staged_norm;
    return staged(&step->join.staged_y, tn_cuda_staged_elems(step), norm->ne[3] > 0 ? norm : NULL);
}

static bool is_product(const tn_step *step)
{
    return tn_product_form_get(step->op) != NULL;
}

int32_t tn_cuda_join_flags(const tn_step *step)
{
    const tn_step_join *j = &step->join;
    int32_t flags = 0;
    if (j->staged_x.ne[3] > 0) flags |= TN_CUDA_READS_QUANTISED;
    if (j->staged_y.ne[3] > 0) flags |= TN_CUDA_WRITES_QUANTISED;
    if (j->previous & TN_JOIN_FOLD)
        flags |= step->op == TN_OP_attention ? TN_CUDA_FUSES_ROPE : TN_CUDA_FUSES_PRODUCT;
    if ((j->next & TN_JOIN_FOLD) && is_product(step)) flags |= TN_CUDA_READS_QUANTISED;
    if (j->next & TN_JOIN_DEFER) flags |= TN_CUDA_DEFERS_ROUTE;
    if (j->previous & TN_JOIN_DEFER) flags |= TN_CUDA_READS_QUANTISED;
    if (j->next & TN_JOIN_PACK) flags |= TN_CUDA_WRITES_PACKED16;
    if (j->previous & TN_JOIN_PACK) flags |= TN_CUDA_READS_PACKED16;
    return flags;
}
