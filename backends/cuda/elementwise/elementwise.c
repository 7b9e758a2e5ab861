// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The ops of the family elementwise: any strides of the sources, which are broadcast to the result. Nothing
// here differs from op to op but for a faster form of glu. The entry of an op is tn_<op>.
#include "backends/cuda/elementwise/elementwise_args.h"
#include "backends/cuda/runtime/rows.h"

// Blocks are counted in 31 bits.
static bool fits(const tn_view *y)
{
    int64_t chunk = 4 * TN_CUDA_SPLIT_THREADS;
    return tn_view_n_rows(y) * tn_div_up(y->ne[3], chunk) <= INT32_MAX &&
           tn_view_n_elems(y) / chunk <= INT32_MAX;
}

bool tn_cuda_elementwise_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    for (int32_t i = 0; i < step->n_src; i++)
        if (step->src[i].dtype != TN_TYPE_F32) return false;
    return tn_cuda_operands_fit(step) && tn_cuda_f32_rows(&step->dst[0]) && fits(&step->dst[0]);
}

static tn_status run(const tn_cuda_launch *l, const char *entry)
{
    const tn_step *s = l->step;
    tn_cuda_elementwise_args a = {.op = tn_cuda_operands_of(s)};
    for (int32_t i = 0; i < s->n_src; i++) a.op.src[i] = tn_cuda_view_broadcast(&s->src[i], &s->dst[0]);
    tn_cuda_view *views[TN_CUDA_MAX_OPERANDS], *y = &a.op.dst[0];
    tn_cuda_views_merge(views, tn_cuda_operands_list(s, &a.op, views), true);
    for (int32_t i = 0; i < s->n_src; i++) a.aligned_src[i] = tn_cuda_aligned(&a.op.src[i], 4);
    a.aligned_dst = tn_cuda_aligned(y, 4);
    a.split = tn_cuda_split_of(y, tn_div_up(y->ne[3], 4));
    tn_cuda_grid grid = tn_cuda_split_grid(&a.split);
    return tn_cuda_run(l, TN_CUDA_MODULE_elementwise, entry, &grid, &a);
}

tn_status tn_cuda_elementwise_launch(const tn_cuda_launch *l)
{
    char entry[48];
    snprintf(entry, sizeof entry, "tn_%s", tn_op_name(l->step->op));
    return run(l, entry);
}

bool tn_cuda_swiglu_accepts(const tn_cuda *cuda, const tn_step *step)
{
    const tn_glu_params *p = step->params;
    return p->act == TN_UNARY_SILU && !(p->alpha > 0.0f) && !(p->limit > 0.0f) &&
           tn_cuda_elementwise_accepts(cuda, step);
}

tn_status tn_cuda_swiglu_launch(const tn_cuda_launch *l)
{
    return run(l, "tn_swiglu");
}
