// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// sample: one block for each row of logits (softmax/sample.cu). Rows with edits or a mask are written once
// with them into the scratch memory.
#include "backends/cuda/runtime/rows.h"
#include "backends/cuda/softmax/softmax_args.h"
#include "ops/operands.h"
#include "ops/sample.h"

_Static_assert((int)TN_CUDA_SAMPLE_WEIGHT_BITS == (int)TN_WEIGHT_BITS &&
                   (int)TN_CUDA_SAMPLE_BEST == (int)TN_SAMPLE_BEST &&
                   (int)TN_CUDA_SAMPLE_DRAW == (int)TN_SAMPLE_DRAW &&
                   (int)TN_CUDA_SAMPLE_TOP == (int)TN_SAMPLE_TOP &&
                   sizeof(tn_cuda_sample_row) == sizeof(tn_sample_row) &&
                   sizeof(tn_cuda_sample_edit) == sizeof(tn_sample_edit) &&
                   sizeof(tn_cuda_sample_result) == sizeof(tn_sample_result),
               "the operands as ops/sample.h describes them");

static int64_t scratch_row(const tn_view *x)
{
    return tn_div_up(x->ne[3], 4) * 4; // floats, so that rows are aligned to 16 bytes
}

static bool edits(const tn_step *step)
{
    return tn_step_has_src(step, TN_SRC_sample_edits) || tn_step_has_src(step, TN_SRC_sample_masks);
}

bool tn_cuda_sample_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    for (int32_t i = 1; i < step->n_src; i++)
        if (tn_step_has_src(step, i) && !tn_cuda_i32_run(&step->src[i])) return false;
    const tn_view *x = &step->src[0];
    return tn_cuda_f32_rows(x) && x->ne[3] >= 1 && x->ne[2] <= INT32_MAX && tn_cuda_i32_run(&step->dst[0]);
}

size_t tn_cuda_sample_scratch(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *x = &step->src[0];
    return edits(step) ? (size_t)(x->ne[2] * scratch_row(x)) * sizeof(float) : 0;
}

tn_status tn_cuda_sample_launch(const tn_cuda_launch *l)
{
    tn_sample_views in = tn_sample_views_get(l->step);
    tn_cuda_sample_args a = {
        .x = tn_cuda_view_of(in.x),
        .rows = in.rows->data,
        .edits = in.edits ? in.edits->data : NULL,
        .masks = in.masks ? in.masks->data : NULL,
        .y = l->step->dst[0].data,
        .edited = edits(l->step) ? (float *)(void *)l->scratch : NULL,
        .edited_row = scratch_row(in.x),
        .mask_words = (int32_t)tn_div_up(in.x->ne[3], 32),
        .n_edits = in.edits ? (int32_t)in.edits->ne[2] : 0,
        .n_masks = in.masks ? (int32_t)in.masks->ne[2] : 0,
    };
    a.aligned = tn_cuda_aligned(&a.x, 4);
    tn_cuda_grid grid = {.x = (uint32_t)in.x->ne[2], .y = 1, .z = 1, .threads = TN_CUDA_SAMPLE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_sample, "tn_sample", &grid, &a);
}
