// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// argmax and argmax_logprob of rows of logits: how many blocks share a row (softmax/argmax.cu).
#include "backends/cuda/runtime/rows.h"
#include "backends/cuda/softmax/softmax_args.h"
#include "ops/operands.h"

static int64_t n_parts(const tn_view *x)
{
    return tn_div_up(x->ne[3], TN_CUDA_ARGMAX_PART);
}

bool tn_cuda_argmax_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *x = &step->src[0];
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!tn_view_contiguous(&step->dst[i])) return false;
    return x->dtype == TN_TYPE_F32 && x->ne[3] < INT32_MAX && tn_view_n_rows(x) * n_parts(x) <= INT32_MAX;
}

size_t tn_cuda_argmax_scratch(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *x = &step->src[0];
    int64_t rows = TN_MIN(tn_view_n_rows(x), (int64_t)TN_CUDA_ARGMAX_ROWS);
    return n_parts(x) > 1 ? (size_t)(rows * n_parts(x)) * sizeof(tn_cuda_argmax_part) : 0;
}

tn_status tn_cuda_argmax_launch(const tn_cuda_launch *l)
{
    const tn_view *x = &l->step->src[0];
    int64_t n_rows = tn_view_n_rows(x);
    tn_cuda_argmax_args a = {
        .x = tn_cuda_view_of(x),
        .parts = (tn_cuda_argmax_part *)(void *)l->scratch,
        .n_parts = (uint32_t)n_parts(x),
        .best = l->step->dst[0].data,
        .logprob = l->step->n_dst > 1 ? l->step->dst[TN_DST_argmax_logprob_logprob].data : NULL,
    };
    a.aligned = tn_cuda_aligned(&a.x, 4);
    tn_status status = TN_OK;
    int64_t at_once = a.n_parts > 1 ? TN_CUDA_ARGMAX_ROWS : n_rows;
    for (int64_t row = 0; row < n_rows && status == TN_OK; row += at_once) {
        a.first_row = (uint32_t)row;
        tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(at_once, n_rows - row) * a.n_parts,
                             .y = 1,
                             .z = 1,
                             .threads = TN_CUDA_ARGMAX_THREADS};
        status =
            tn_cuda_run(l, TN_CUDA_MODULE_argmax, a.logprob ? "tn_argmax_logprob" : "tn_argmax", &grid, &a);
    }
    return status;
}
