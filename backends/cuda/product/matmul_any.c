// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of any type, size and number of rows: the general kernel, which runs what no other one
// accepts.
#include "backends/cuda/product/matmul_any.h"

#include "core/compiler.h"
#include "ops/quant.h"

static bool f32_rows(const tn_view *v)
{
    return !v || (v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v));
}

static bool weight_addressable(const tn_product *p, int32_t i)
{
    const tn_view *w = p->w[i], *y = p->y[i];
    bool shape = w->ne[0] == 1 && (p->ids || w->ne[1] == 1) && w->ne[3] == p->k && w->ne[2] == y->ne[3];
    bool size = w->ne[2] <= INT32_MAX / 4 && tn_view_n_rows(y) <= INT32_MAX;
    return shape && size && tn_quant_info_get(w->dtype)->to_f32 && tn_view_contiguous(w) && f32_rows(y) &&
           f32_rows(p->bias[i]);
}

bool tn_cuda_product_addressable(const tn_product *p)
{
    if (p->n_weights == 0 || p->k > INT32_MAX || (p->ids && p->ids->dtype != TN_TYPE_I32)) return false;
    bool ok = f32_rows(p->x) && f32_rows(p->residual) && f32_rows(p->norm);
    for (int32_t i = 0; i < p->n_weights && ok; i++) ok = weight_addressable(p, i);
    return ok;
}

static tn_cuda_matmul_args args_of(const tn_product *p)
{
    tn_cuda_matmul_args a = {
        .x = tn_cuda_view_of(p->x),
        .norm = p->norm ? p->norm->data : NULL,
        .eps = p->eps,
        .act = p->act,
        .n_parts = p->n_weights,
        .is_glu = p->glu != NULL,
        .k = (int32_t)p->k,
        .n_rows = (int32_t)tn_view_n_rows(p->y[0]),
        .n_experts = (int32_t)p->n_experts,
        .x_used = p->ids ? (int32_t)p->x->ne[2] : 1,
    };
    for (int32_t i = 0; i < p->n_weights; i++) {
        a.part[i] = (tn_cuda_matmul_weight){
            .w = tn_cuda_weight_planes(p->w[i]),
            .y = tn_cuda_view_of(p->y[i]),
            .bias = p->bias[i] ? p->bias[i]->data : NULL,
            .type = p->w[i]->dtype,
            .n = (int32_t)p->w[i]->ne[2],
        };
    }
    if (p->residual) a.residual = tn_cuda_view_of(p->residual);
    if (p->glu) a.glu = *p->glu;
    if (p->ids) a.ids = tn_cuda_view_of(p->ids);
    return a;
}

bool tn_cuda_matmul_any_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    tn_product p = tn_product_get(step);
    return tn_cuda_product_addressable(&p);
}

tn_status tn_cuda_matmul_any_launch(const tn_cuda_launch *l)
{
    // A warp has an element of the result for each of ROWS rows of x, so that they share one reading of the
    // weight.
    enum { WARPS = 8, ROWS = 4, MAX_GRID_Y = 65535 };
    tn_product p = tn_product_get(l->step);
    tn_cuda_matmul_args a = args_of(&p);
    int64_t n = 0;
    for (int32_t i = 0; i < p.n_results; i++) n += a.part[i].n;
    int64_t rows = p.ids ? a.n_rows : tn_div_up(a.n_rows, ROWS);
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(n, WARPS),
                         .y = (uint32_t)TN_MIN(rows, MAX_GRID_Y),
                         .z = 1,
                         .threads = WARPS * 32};
    return tn_cuda_run(l, TN_CUDA_MODULE_matmul_any, "tn_matmul_any", &grid, &a);
}
