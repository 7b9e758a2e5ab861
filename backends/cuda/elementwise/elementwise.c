// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// unary, binary, glu: any strides of the sources.
#include "backends/cuda/elementwise/elementwise_args.h"
#include "backends/cuda/runtime/rows.h"

// Blocks are counted in 31 bits.
static bool fits(const tn_view *y)
{
    int64_t chunk = 4 * TN_CUDA_SPLIT_THREADS;
    return tn_view_n_rows(y) * tn_div_up(y->ne[3], chunk) <= INT32_MAX &&
           tn_view_n_elems(y) / chunk <= INT32_MAX;
}

static tn_status run(const tn_cuda_launch *l, const char *entry, tn_cuda_elementwise_args *a)
{
    bool two = l->step->n_src > 1;
    tn_cuda_view *views[] = {&a->y, &a->a, &a->b};
    tn_cuda_views_merge(views, two ? 3 : 2, true);
    a->aligned_a = tn_cuda_aligned(&a->a, 4);
    a->aligned_b = two && tn_cuda_aligned(&a->b, 4);
    a->aligned_y = tn_cuda_aligned(&a->y, 4);
    a->split = tn_cuda_split_of(&a->y, tn_div_up(a->y.ne[3], 4));
    tn_cuda_grid grid = tn_cuda_split_grid(&a->split);
    return tn_cuda_run(l, TN_CUDA_MODULE_elementwise, entry, &grid, a);
}

bool tn_cuda_unary_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return step->src[0].dtype == TN_TYPE_F32 && tn_cuda_f32_rows(&step->dst[0]) && fits(&step->dst[0]);
}

tn_status tn_cuda_unary_launch(const tn_cuda_launch *l)
{
    const tn_unary_params *p = l->step->params;
    tn_cuda_elementwise_args a = {
        .a = tn_cuda_view_of(&l->step->src[0]), .y = tn_cuda_view_of(&l->step->dst[0]), .unary = *p};
    return run(l, "tn_unary", &a);
}

bool tn_cuda_binary_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return step->src[0].dtype == TN_TYPE_F32 && step->src[1].dtype == TN_TYPE_F32 &&
           tn_cuda_f32_rows(&step->dst[0]) && fits(&step->dst[0]);
}

tn_status tn_cuda_binary_launch(const tn_cuda_launch *l)
{
    const tn_binary_params *p = l->step->params;
    const tn_view *y = &l->step->dst[0];
    tn_cuda_elementwise_args a = {.a = tn_cuda_view_broadcast(&l->step->src[0], y),
                                  .b = tn_cuda_view_broadcast(&l->step->src[1], y),
                                  .y = tn_cuda_view_of(y),
                                  .kind = p->kind};
    return run(l, "tn_binary", &a);
}

bool tn_cuda_glu_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return tn_cuda_f32_rows(&step->src[0]) && tn_cuda_f32_rows(&step->src[1]) &&
           tn_cuda_f32_rows(&step->dst[0]) && fits(&step->dst[0]);
}

tn_status tn_cuda_glu_launch(const tn_cuda_launch *l)
{
    const tn_glu_params *p = l->step->params;
    tn_cuda_elementwise_args a = {.a = tn_cuda_view_of(&l->step->src[0]),
                                  .b = tn_cuda_view_of(&l->step->src[1]),
                                  .y = tn_cuda_view_of(&l->step->dst[0]),
                                  .glu = *p};
    bool swiglu = p->act == TN_UNARY_SILU && !(p->alpha > 0.0f) && !(p->limit > 0.0f);
    return run(l, swiglu ? "tn_swiglu" : "tn_glu", &a);
}
