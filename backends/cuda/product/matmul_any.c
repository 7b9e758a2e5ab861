// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of any type, size and number of rows: operands of the six ops, and the general kernel.
#include "backends/cuda/product/matvec/matvec.h"
#include "ops/quant.h"

tn_matvec_operands tn_matvec_operands_get(const tn_step *step)
{
    tn_matvec_operands o = {.x = &step->src[0], .n_w = 1, .act = TN_UNARY_NONE};
    int32_t next = 1, has_bias[TN_MATVEC_MAX_WEIGHTS] = {0}, has_residual = 0, has_norm = 0;
    if (step->op == TN_OP_linear) {
        const tn_linear_params *p = step->params;
        o.act = p->act, o.eps = p->eps;
        has_bias[0] = p->has_bias, has_residual = p->has_residual, has_norm = p->has_norm;
    } else if (step->op == TN_OP_matmul_multi) {
        const tn_matmul_multi_params *p = step->params;
        o.n_w = p->n_weights, o.eps = p->eps;
        for (int32_t i = 0; i < o.n_w; i++) has_bias[i] = p->has_bias[i];
        has_norm = p->has_norm;
    } else if (step->op == TN_OP_matmul_glu) {
        const tn_matmul_glu_params *p = step->params;
        o.n_w = 2, o.glu = &p->glu, o.eps = p->eps;
        has_norm = p->has_norm;
    } else if (step->op == TN_OP_matmul_id_glu) {
        const tn_matmul_id_glu_params *p = step->params;
        o.n_w = 2, o.glu = &p->glu;
    }
    for (int32_t i = 0; i < o.n_w; i++) o.w[i] = &step->src[next++];
    for (int32_t i = 0; i < o.n_w; i++)
        if (has_bias[i]) o.bias[i] = &step->src[next++];
    if (has_residual) o.residual = &step->src[next++];
    if (has_norm) o.norm = &step->src[next++];
    if (step->op == TN_OP_matmul_id || step->op == TN_OP_matmul_id_glu) o.ids = &step->src[next++];
    return o;
}

static bool f32_rows(const tn_view *v)
{
    return !v || (v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v));
}

bool tn_matvec_addressable(const tn_step *step, const tn_matvec_operands *o)
{
    bool ok = f32_rows(o->x) && f32_rows(o->residual) && f32_rows(o->norm) && o->x->ne[3] <= INT32_MAX;
    for (int32_t i = 0; i < o->n_w; i++) {
        const tn_view *w = o->w[i], *y = &step->dst[o->glu ? 0 : i];
        ok = ok && tn_quant_info_get(w->dtype)->to_f32 && tn_view_contiguous(w) && w->ne[0] == 1 && (o->ids || w->ne[1] == 1);
        ok = ok && w->ne[3] == o->x->ne[3] && w->ne[2] == y->ne[3] && w->ne[2] <= INT32_MAX / 4 && f32_rows(y) && f32_rows(o->bias[i]);
        ok = ok && tn_view_n_rows(y) <= INT32_MAX;
    }
    return ok && (!o->ids || o->ids->dtype == TN_TYPE_I32);
}

tn_cuda_matmul_args tn_matmul_args_get(const tn_step *step, const tn_matvec_operands *o)
{
    tn_cuda_matmul_args a = {
        .x = tn_cuda_view_of(o->x), .eps = o->eps, .act = o->act, .n_parts = o->n_w, .is_glu = o->glu != NULL,
        .k = (int32_t)o->x->ne[3], .n_rows = (int32_t)tn_view_n_rows(&step->dst[0]), .n_experts = 1, .x_used = 1,
    };
    for (int32_t i = 0; i < o->n_w; i++) {
        a.part[i] = (tn_cuda_matmul_weight){
            .w = tn_cuda_weight_planes(o->w[i]), .y = tn_cuda_view_of(&step->dst[o->glu ? 0 : i]), .bias = o->bias[i] ? o->bias[i]->data : NULL,
            .type = o->w[i]->dtype, .n = (int32_t)o->w[i]->ne[2],
        };
    }
    if (o->residual) a.residual = tn_cuda_view_of(o->residual);
    if (o->norm) a.norm = o->norm->data;
    if (o->glu) a.glu = *o->glu;
    if (o->ids) {
        a.ids = tn_cuda_view_of(o->ids);
        a.n_experts = (int32_t)o->w[0]->ne[1];
        a.x_used = (int32_t)o->x->ne[2];
    }
    return a;
}

bool tn_cuda_accepts_matmul_any(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    tn_matvec_operands o = tn_matvec_operands_get(step);
    return tn_matvec_addressable(step, &o);
}

tn_status tn_cuda_launch_matmul_any(const tn_cuda_launch *l)
{
    enum { WARPS = 8, ROWS = 4 };
    tn_matvec_operands o = tn_matvec_operands_get(l->step);
    tn_cuda_matmul_args a = tn_matmul_args_get(l->step, &o);
    int64_t n = 0;
    for (int32_t i = 0; i < a.n_parts; i++) n += a.is_glu && i > 0 ? 0 : a.part[i].n;
    int64_t rows = o.ids ? a.n_rows : tn_div_up(a.n_rows, ROWS);
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(n, WARPS), .y = (uint32_t)TN_MIN(rows, 65535), .z = 1, .threads = WARPS * 32};
    return tn_cuda_run(l, TN_CUDA_MODULE_matmul_any, "tn_matmul_any", &grid, &a);
}
