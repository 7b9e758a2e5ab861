// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of few rows, and of rows with experts, by matvec.comp. What follows a product is the same
// for all that go through shaders/product.glsl.
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

enum { FEW_ROWS = 8, ROWS_AT_ONCE = 4, SUBGROUPS = 4 };
// Constants of the shaders.
enum { C_TYPE, C_TYPE_UP, C_ROWS, C_ALIGNED, C_THREADS, C_COLUMNS };

// Word of the parameters that has the epsilon of the norm of x; -1: there is none. The norm's weight is the
// last source.
static int32_t norm_of(const tn_step *step)
{
    size_t at = 0;
    bool has = false;
    if (step->op == TN_OP_linear) {
        has = ((const tn_linear_params *)step->params)->has_norm != 0;
        at = offsetof(tn_linear_params, eps);
    } else if (step->op == TN_OP_matmul_multi) {
        has = ((const tn_matmul_multi_params *)step->params)->has_norm != 0;
        at = offsetof(tn_matmul_multi_params, eps);
    } else if (step->op == TN_OP_matmul_glu) {
        has = ((const tn_matmul_glu_params *)step->params)->has_norm != 0;
        at = offsetof(tn_matmul_glu_params, eps);
    }
    return has ? (int32_t)(at / sizeof(int32_t)) : -1;
}

bool tn_vk_accepts_gemm_tile(const tn_step *step)
{
    return tn_vk_accepts_indexable(step) && norm_of(step) < 0;
}

bool tn_vk_accepts_gemv_generic(const tn_step *step)
{
    return tn_view_n_rows(&step->src[0]) <= FEW_ROWS && tn_vk_accepts_indexable(step);
}

bool tn_vk_aligned_rows(const tn_view *v)
{
    uint64_t bits =
        (uint64_t)(uintptr_t)v->data | (uint64_t)v->nb[0] | (uint64_t)v->nb[1] | (uint64_t)v->nb[2];
    return v->ne[3] % 16 == 0 && bits % 16 == 0;
}

static void set_weight(const tn_step *step, int32_t src, int32_t i, tn_vk_dispatch *d)
{
    tn_vk_weight_planes(&step->src[src], &d->args.weight[i]);
    d->constants[i] = step->src[src].dtype;
}

int32_t tn_vk_set_product(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int32_t *n = d->args.n, multi = step->op == TN_OP_matmul_multi ? i : 0;
    n[TN_VK_N_EPS] = norm_of(step);
    if (n[TN_VK_N_EPS] >= 0) n[TN_VK_N_NORM] = step->n_src - 1;
    n[TN_VK_N_COLUMNS] = (int32_t)step->src[1 + multi].ne[2];
    n[TN_VK_N_ROWS] = (int32_t)tn_view_n_rows(&step->dst[multi]);
    n[TN_VK_N_RESULT] = multi;
    set_weight(step, 1 + multi, 0, d);
    set_weight(step, 1 + multi, 1, d); // one pipeline for both
    if (step->op == TN_OP_matmul_glu || step->op == TN_OP_matmul_id_glu) {
        set_weight(step, 2, 1, d);
        n[TN_VK_N_GLU] = 0;
    }
    if (step->op == TN_OP_matmul_id || step->op == TN_OP_matmul_id_glu) {
        n[TN_VK_N_IDS] = step->n_src - 1;
        n[TN_VK_N_EXPERTS] = (int32_t)step->src[1].ne[1];
    }
    if (step->op == TN_OP_linear) {
        const tn_linear_params *p = step->params;
        if (p->has_bias) n[TN_VK_N_BIAS] = 2;
        if (p->has_residual) n[TN_VK_N_RESIDUAL] = 2 + (p->has_bias != 0);
        n[TN_VK_N_ACT] = p->act;
    }
    if (step->op != TN_OP_matmul_multi) return 1;
    const tn_matmul_multi_params *p = step->params;
    int32_t bias = 1 + p->n_weights;
    for (int32_t k = 0; k < i; k++) bias += p->has_bias[k] != 0;
    if (p->has_bias[i]) n[TN_VK_N_BIAS] = bias;
    return p->n_weights;
}

// How many columns a team takes: few where there are few, so that all of a device has work. A software driver
// has little to fill, and gains by every load of x that is saved.
static int32_t columns_at_once(const tn_vk *v, int64_t columns, int32_t rows)
{
    int32_t most = TN_MAX(1, 4 / rows);
    if (v->device->software) return TN_MIN(most, 2);
    return TN_MIN(most, columns >= 16384 ? 4 : columns >= 4096 ? 2 : 1);
}

// A software driver compiles slowly: few variants there.
static int32_t rows_at_once(const tn_vk_dispatch *d, int64_t rows)
{
    if (d->args.n[TN_VK_N_IDS] >= 0 || rows <= 1) return 1; // each has its expert
    return rows == 2 && !d->v->device->software ? 2 : ROWS_AT_ONCE;
}

static int32_t launch_matvec(const tn_step *step, int32_t i, int32_t teams, tn_vk_dispatch *d)
{
    int32_t count = tn_vk_set_product(step, i, d), *c = d->constants;
    int64_t rows = d->args.n[TN_VK_N_ROWS], columns = d->args.n[TN_VK_N_COLUMNS];
    int32_t weight = 1 + (step->op == TN_OP_matmul_multi ? i : 0);
    const tn_view *w = &step->src[weight];
    bool aligned = tn_vk_aligned_rows(&step->src[0]) && tn_vk_aligned_rows(w);
    if (d->args.n[TN_VK_N_GLU] >= 0) aligned = aligned && tn_vk_aligned_rows(&step->src[2]);
    if (d->args.n[TN_VK_N_NORM] >= 0)
        aligned = aligned && tn_vk_aligned_rows(&step->src[d->args.n[TN_VK_N_NORM]]);
    c[C_ROWS] = rows_at_once(d, rows);
    c[C_ALIGNED] = aligned;
    c[C_COLUMNS] = columns_at_once(d->v, d->like->src[weight].ne[2], c[C_ROWS]);
    int64_t across = (columns + c[C_COLUMNS] - 1) / c[C_COLUMNS], blocks = (rows + c[C_ROWS] - 1) / c[C_ROWS];
    d->groups = blocks * ((across + teams - 1) / teams);
    return count;
}

int32_t tn_vk_launch_gemv_generic(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    d->shader = TN_VK_SHADER_gemv_generic;
    return launch_matvec(step, i, 1, d);
}

int32_t tn_vk_launch_gemv_generic_subgroups(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    d->shader = TN_VK_SHADER_gemv_generic_subgroups;
    d->constants[C_THREADS] = SUBGROUPS * (int32_t)d->v->subgroup;
    return launch_matvec(step, i, SUBGROUPS, d);
}
