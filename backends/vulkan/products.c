// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: few rows and rows with experts by matvec.comp, many rows by gemm.comp. What follows a
// product is the same for both (shaders/product.glsl).
#include "backends/vulkan/kernel.h"
#include "core/device.h"
#include "ops/ops.h"

enum { FEW_ROWS = 8, ROWS_AT_ONCE = 4, TILE_COLUMNS = 64, TILE_ROWS = 32 };
// args.n
enum { N_COLUMNS, N_ROWS, N_BIAS, N_RESIDUAL, N_ACT, N_RESULT, N_GLU, N_IDS, N_EXPERTS };

static bool has_norm(const tn_step *step)
{
    return step->op == TN_OP_linear         ? ((const tn_linear_params *)step->params)->has_norm != 0
           : step->op == TN_OP_matmul_multi ? ((const tn_matmul_multi_params *)step->params)->has_norm != 0
           : step->op == TN_OP_matmul_glu   ? ((const tn_matmul_glu_params *)step->params)->has_norm != 0
                                            : false;
}

bool tn_vk_accepts_product(const tn_step *step)
{
    return tn_vk_accepts_rows(step) && !has_norm(step);
}

bool tn_vk_accepts_matvec(const tn_step *step)
{
    return tn_view_n_rows(&step->src[0]) <= FEW_ROWS && tn_vk_accepts_product(step);
}

static void set_weight(const tn_step *step, int32_t src, int32_t i, tn_vk_dispatch *d)
{
    tn_vk_weight_planes(&step->src[src], &d->args.weight[i]);
    d->constants[i] = step->src[src].dtype;
}

// Operands of product i of the step; returns how many products there are.
static int32_t set_product(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int32_t *n = d->args.n, multi = step->op == TN_OP_matmul_multi ? i : 0;
    n[N_COLUMNS] = (int32_t)step->src[1 + multi].ne[2];
    n[N_ROWS] = (int32_t)tn_view_n_rows(&step->dst[multi]);
    n[N_RESULT] = multi;
    set_weight(step, 1 + multi, 0, d);
    d->constants[1] = -1;
    if (step->op == TN_OP_matmul_glu || step->op == TN_OP_matmul_id_glu) {
        set_weight(step, 2, 1, d);
        n[N_GLU] = 0;
    }
    if (step->op == TN_OP_matmul_id || step->op == TN_OP_matmul_id_glu) {
        n[N_IDS] = step->n_src - 1;
        n[N_EXPERTS] = (int32_t)step->src[1].ne[1];
    }
    if (step->op == TN_OP_linear) {
        const tn_linear_params *p = step->params;
        if (p->has_bias) n[N_BIAS] = 2;
        if (p->has_residual) n[N_RESIDUAL] = 2 + (p->has_bias != 0);
        n[N_ACT] = p->act;
    }
    if (step->op != TN_OP_matmul_multi) return 1;
    const tn_matmul_multi_params *p = step->params;
    int32_t bias = 1 + p->n_weights;
    for (int32_t k = 0; k < i; k++) bias += p->has_bias[k] != 0;
    if (p->has_bias[i]) n[N_BIAS] = bias;
    return p->n_weights;
}

int32_t tn_vk_launch_matvec(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int32_t count = set_product(step, i, d), rows = d->args.n[N_ROWS];
    d->shader = TN_VK_SHADER_matvec;
    d->constants[2] = d->args.n[N_IDS] >= 0 ? 1 : TN_MIN(rows, ROWS_AT_ONCE);
    int64_t blocks = (rows + d->constants[2] - 1) / TN_MAX(d->constants[2], 1);
    d->groups = blocks * d->args.n[N_COLUMNS];
    return count;
}

int32_t tn_vk_launch_gemm(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int32_t count = set_product(step, i, d);
    int64_t across = (d->args.n[N_COLUMNS] + TILE_COLUMNS - 1) / TILE_COLUMNS,
            down = (d->args.n[N_ROWS] + TILE_ROWS - 1) / TILE_ROWS;
    d->shader = TN_VK_SHADER_gemm;
    d->groups = across * down;
    return count;
}
