// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_weights, moe_sum, moe_combine (moe.cu).
#include "backends/cuda/moe/moe_args.h"
#include "backends/cuda/product/matvec/matvec.h"
#include "backends/cuda/runtime/rows.h"
#include "core/compiler.h"
#include "ops/operands.h"

enum { WARP = 32, THREAD_ELEMS = 4 };

bool tn_cuda_moe_weights_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *x = &step->src[TN_SRC_moe_weights_x], *ids = &step->src[TN_SRC_moe_weights_ids];
    return tn_cuda_f32_rows(x) && ids->dtype == TN_TYPE_I32 && tn_cuda_f32_rows(&step->dst[0]) &&
           x->ne[3] <= INT32_MAX && x->ne[2] <= INT32_MAX;
}

tn_status tn_cuda_moe_weights_launch(const tn_cuda_launch *l)
{
    const tn_moe_weights_params *p = l->step->params;
    const tn_view *y = &l->step->dst[0];
    tn_cuda_moe_args a = {.x = tn_cuda_view_of(&l->step->src[TN_SRC_moe_weights_x]),
                          .ids = tn_cuda_view_of(&l->step->src[TN_SRC_moe_weights_ids]),
                          .y = tn_cuda_view_of(y),
                          .n_tokens = (uint32_t)y->ne[2],
                          .gating = p->gating,
                          .normalise = p->normalise,
                          .scale = p->scale != 0.0f ? p->scale : 1.0f};
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(y->ne[2], TN_CUDA_MOE_WARPS),
                         .y = 1,
                         .z = 1,
                         .threads = WARP * TN_CUDA_MOE_WARPS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe, "tn_moe_weights", &grid, &a);
}

// Operands of moe_sum, and of moe_combine, which is a sum with more added to it.
static tn_moe_combine_sources sum_sources(const tn_step *step)
{
    static const tn_moe_combine_params nothing_added = {0};
    return tn_moe_combine_sources_get(step->op == TN_OP_moe_combine ? step->params : &nothing_added);
}

bool tn_cuda_moe_sum_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    tn_moe_combine_sources at = sum_sources(step);
    const tn_view *y = &step->dst[0], *factor = tn_step_source(step, at.factor);
    bool ok = step->src[at.x].dtype == TN_TYPE_F32 && step->src[at.w].dtype == TN_TYPE_F32 &&
              tn_cuda_f32_rows(y) && (!factor || tn_cuda_f32_rows(factor));
    for (size_t i = 0; i < TN_COUNT(at.added); i++) {
        const tn_view *added = tn_step_source(step, at.added[i]);
        ok = ok && (!added || tn_cuda_f32_rows(added));
    }
    return ok && y->ne[2] * tn_div_up(y->ne[3], THREAD_ELEMS * TN_CUDA_MOE_THREADS) <= INT32_MAX;
}

tn_status tn_cuda_moe_sum_launch(const tn_cuda_launch *l)
{
    if (l->product) return tn_cuda_matvec_sum_launch(l);
    tn_moe_combine_sources at = sum_sources(l->step);
    const tn_view *y = &l->step->dst[0], *factor = tn_step_source(l->step, at.factor);
    tn_cuda_moe_args a = {.x = tn_cuda_view_of(&l->step->src[at.x]),
                          .w = tn_cuda_view_of(&l->step->src[at.w]),
                          .y = tn_cuda_view_of(y),
                          .n_tokens = (uint32_t)y->ne[2],
                          .n_chunks = (uint32_t)tn_div_up(y->ne[3], THREAD_ELEMS * TN_CUDA_MOE_THREADS)};
    bool aligned = y->ne[3] % 4 == 0 && tn_cuda_aligned(&a.x, 4) && tn_cuda_aligned(&a.y, 4);
    for (size_t i = 0; i < TN_COUNT(at.added); i++) {
        const tn_view *added = tn_step_source(l->step, at.added[i]);
        if (!added) continue;
        a.added[i] = tn_cuda_view_of(added);
        aligned = aligned && tn_cuda_aligned(&a.added[i], 4);
    }
    if (factor) a.factor = tn_cuda_view_of(factor);
    if (l->quantised_y) a.quantised_y = *l->quantised_y;
    tn_cuda_grid grid = {.x = a.n_tokens * a.n_chunks, .y = 1, .z = 1, .threads = TN_CUDA_MOE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_moe, aligned ? "tn_moe_sum_aligned" : "tn_moe_sum_any", &grid, &a);
}
