// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_weights, moe_sum.
#include "backends/cuda/args_select.h"
#include "backends/cuda/rows.h"

enum { WARP = 32 };

bool tn_cuda_accepts_moe_weights(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return tn_cuda_f32_rows(&step->src[0]) && step->src[1].dtype == TN_TYPE_I32 && tn_cuda_f32_rows(&step->dst[0]) &&
           step->src[0].ne[3] <= INT32_MAX && step->src[0].ne[2] <= INT32_MAX;
}

tn_status tn_cuda_launch_moe_weights(const tn_cuda_launch *l)
{
    const tn_moe_weights_params *p = l->step->params;
    const tn_view *y = &l->step->dst[0];
    tn_cuda_moe_args a = {.x = tn_cuda_view_of(&l->step->src[0]), .ids = tn_cuda_view_of(&l->step->src[1]), .y = tn_cuda_view_of(y),
                          .n_tokens = (uint32_t)y->ne[2], .gating = p->gating, .normalise = p->normalise,
                          .scale = p->scale != 0.0f ? p->scale : 1.0f};
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(y->ne[2], TN_CUDA_MOE_WARPS), .y = 1, .z = 1, .threads = WARP * TN_CUDA_MOE_WARPS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe, "tn_moe_weights", &grid, &a);
}

bool tn_cuda_accepts_moe_sum(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *y = &step->dst[0];
    return step->src[0].dtype == TN_TYPE_F32 && step->src[1].dtype == TN_TYPE_F32 && tn_cuda_f32_rows(y) &&
           y->ne[2] * tn_div_up(y->ne[3], 4 * TN_CUDA_MOE_THREADS) <= INT32_MAX;
}

tn_status tn_cuda_launch_moe_sum(const tn_cuda_launch *l)
{
    const tn_view *y = &l->step->dst[0];
    tn_cuda_moe_args a = {.x = tn_cuda_view_of(&l->step->src[0]), .w = tn_cuda_view_of(&l->step->src[1]), .y = tn_cuda_view_of(y),
                          .n_tokens = (uint32_t)y->ne[2], .n_chunks = (uint32_t)tn_div_up(y->ne[3], 4 * TN_CUDA_MOE_THREADS)};
    a.aligned = tn_cuda_aligned(&a.x, 4) && tn_cuda_aligned(&a.y, 4);
    tn_cuda_grid grid = {.x = a.n_tokens * a.n_chunks, .y = 1, .z = 1, .threads = TN_CUDA_MOE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe, "tn_moe_sum", &grid, &a);
}
