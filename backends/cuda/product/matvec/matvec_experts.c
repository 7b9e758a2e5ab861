// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of experts for few tokens on tensor cores (matvec_experts.cu): gate and up, which can do the
// routing of the step before, and the product back to the width of the model, which can do the sum after it.
#include "backends/cuda/product/matvec/matvec.h"

#include "backends/cuda/moe/moe.h"
#include "ops/operands.h"

#include <stdio.h>
#include <string.h>

enum {
    SMALL_THREADS = 256, // of small blocks
    MOST_SMALL = 2,      // of them on a multiprocessor at a time
    BLOCK_SHARED = 1024, // bytes of shared memory that the driver takes of each block
};

// Whether a view is what a step before has written to `y`, in the same order.
static bool is_same(const tn_view *v, const tn_view *y)
{
    return memcmp(v->ne, y->ne, sizeof v->ne) == 0 && tn_view_contiguous(v) && tn_view_contiguous(y);
}

// --- gate and up -------------------------------------------------------------------------------------

// Time of a launch with so many blocks for each of `pairs` pairs of token and expert, each of `shares` rows
// of tiles, in rows of tiles of a multiprocessor. A block has a fixed part, of about two of them.
static int64_t time_of(const tn_cuda *cuda, int64_t pairs, int64_t shares, int64_t blocks)
{
    return tn_div_up(blocks * pairs, cuda->n_sms) * (tn_div_up(shares, blocks) + 2);
}

// Where one block of 16 warps for each multiprocessor leaves many of those idle, smaller blocks, of which a
// multiprocessor has several at a time. False: it does not.
static bool plan_small_blocks(const tn_cuda *cuda, tn_cuda_matvec_args *a, tn_cuda_grid *grid)
{
    int64_t pairs = grid->y, shares = a->n_virtual / TN_MATVEC_MMA_ROWS,
            least = time_of(cuda, pairs, shares, grid->x);
    int64_t most = MOST_SMALL * (int64_t)cuda->n_sms / pairs, best = 0;
    for (int64_t n = grid->x + 1; n <= TN_MIN(most, shares); n++) {
        int64_t time = time_of(cuda, pairs, shares, n);
        if (time < least) best = n, least = time;
    }
    if (best == 0) return false;
    grid->x = (uint32_t)best, grid->threads = SMALL_THREADS;
    a->block_rows = (int32_t)(shares / best) * TN_MATVEC_MMA_ROWS, a->more_rows = (int32_t)(shares % best);
    return true;
}

// As tn_cuda_matvec_plan_tiles(), for groups of warps that share the tiles of both weights.
static bool plan_glu(const tn_cuda *cuda, tn_cuda_matvec_glu_args *s, tn_dtype type, tn_cuda_grid *grid)
{
    tn_cuda_matvec_args *a = &s->of;
    if (!a->ids || !a->is_glu || !tn_cuda_matvec_plan_tiles(cuda, cuda->n_sms, a, type, grid)) return false;
    bool small = plan_small_blocks(cuda, a, grid);
    int32_t rows = 2 * (a->block_rows / TN_MATVEC_MMA_ROWS + (a->more_rows > 0));
    a->is_glu = 0; // sums of both count as rows
    bool fits = tn_cuda_matvec_slice_tiles(a, (int32_t)grid->threads / 32, rows);
    a->is_glu = 1;
    int32_t shared = small ? cuda->max_shared / MOST_SMALL - BLOCK_SHARED : cuda->max_shared;
    if (fits) s->filled = tn_cuda_matvec_fit_rings(shared, a, type, rows, grid);
    return fits;
}

bool tn_cuda_matvec_runs_route(const tn_cuda *cuda, const tn_step *step, const tn_step *route)
{
    if (route->op != TN_OP_moe_route || step->op != TN_OP_matmul_id_glu) return false;
    const tn_moe_route_params *r = route->params;
    tn_moe_route_sources at = tn_moe_route_sources_get(r);
    tn_product p = tn_product_get(step);
    bool simple = r->has_product && r->top_k.n_groups <= 1 && !r->has_choice_bias &&
                  route->src[at.router].ne[2] <= TN_MATVEC_CHOICE;
    bool same = is_same(p.ids, &route->dst[TN_DST_moe_route_ids]) &&
                tn_view_contiguous(&route->dst[TN_DST_moe_route_weights]);
    if (!simple || !same || !tn_cuda_matvec_aligned(&p)) return false;
    tn_cuda_matvec_glu_args s = {.of = tn_cuda_matvec_args_get(&p, p.w[0]->dtype)};
    tn_cuda_grid grid = {.y = (uint32_t)tn_view_n_rows(p.y[0]), .z = 1};
    return plan_glu(cuda, &s, p.w[0]->dtype, &grid);
}

bool tn_cuda_matvec_glu_launch(const tn_cuda_launch *l, const tn_product *p, tn_status *status)
{
    tn_dtype type = p->w[0]->dtype;
    tn_cuda_matvec_glu_args s = {.of = tn_cuda_matvec_launch_args(l, p, type)};
    tn_cuda_grid grid = {.y = (uint32_t)tn_view_n_rows(p->y[0]), .z = 1};
    if (!plan_glu(l->cuda, &s, type, &grid)) return false;
    if (l->route) {
        s.choice = tn_cuda_expert_route_of(l->route);
        s.logits = (const float *)(const void *)l->scratch;
    }
    char name[48];
    snprintf(name, sizeof name, "tn_matvec_glu_%s", tn_dtype_name(type));
    *status = tn_cuda_run(l, TN_CUDA_MODULE_matvec_experts, name, &grid, &s);
    return true;
}

// --- a product and the sum of its results ------------------------------------------------------------

enum { MOST_SUMMED = 32 }; // experts of a token: a lane each

// What a sum adds besides the experts, NULL: nothing.
static const tn_view *residual_of(const tn_step *sum)
{
    if (sum->op != TN_OP_moe_combine) return NULL;
    return tn_step_source(sum, tn_moe_combine_sources_get(sum->params).added[0]);
}

static const tn_view *factors_of(const tn_step *sum)
{
    int32_t i = sum->op == TN_OP_moe_combine ? tn_moe_combine_sources_get(sum->params).w : TN_SRC_moe_sum_w;
    return &sum->src[i];
}

static const tn_view *summed_by(const tn_step *sum)
{
    int32_t i = sum->op == TN_OP_moe_combine ? tn_moe_combine_sources_get(sum->params).x : TN_SRC_moe_sum_x;
    return &sum->src[i];
}

// The rows of all experts of a token are one row, whose k is that of all of them. False where tiles do not
// fit.
static bool plan_sum(const tn_cuda *cuda, const tn_step *product, const tn_step *sum,
                     tn_cuda_matvec_sum_args *s, tn_cuda_grid *grid)
{
    tn_product p = tn_product_get(product);
    tn_dtype type = p.w[0]->dtype;
    const tn_view *factors = factors_of(sum), *y = &sum->dst[0], *residual = residual_of(sum);
    tn_cuda_matvec_args *a = &s->of;
    *a = tn_cuda_matvec_args_get(&p, type);
    s->k = a->k, s->n_tiles = a->k / TN_MATVEC_MMA_K(type);
    if (a->k % TN_MATVEC_MMA_K(type) != 0 || a->n_used > MOST_SUMMED || a->k > INT32_MAX / 2 / MOST_SUMMED)
        return false;
    a->k *= a->n_used;
    a->part[0].y = y->data, a->part[0].y_stride = y->nb[2] / 4;
    if (residual) a->residual = residual->data, a->residual_stride = residual->nb[2] / 4;
    s->factors = factors->data;
    s->factors_stride[0] = factors->nb[2] / 4, s->factors_stride[1] = factors->nb[3] / 4;
    *grid = (tn_cuda_grid){.y = (uint32_t)y->ne[2], .z = 1};
    if (!tn_cuda_matvec_plan_tiles(cuda, cuda->n_sms, a, type, grid)) return false;
    int32_t rows = a->block_rows / TN_MATVEC_MMA_ROWS + (a->more_rows > 0);
    s->filled = tn_cuda_matvec_fit_rings(cuda->max_shared, a, type, rows, grid);
    return true;
}

bool tn_cuda_matvec_fuses_sum(const tn_cuda *cuda, const tn_step *product, const tn_step *sum)
{
    if (product->op != TN_OP_matmul_id) return false;
    tn_product p = tn_product_get(product);
    const tn_moe_combine_params *c = sum->op == TN_OP_moe_combine ? sum->params : NULL;
    bool simple = !c || (c->n_added == 1 && !c->has_factor && tn_cuda_row_distance(residual_of(sum)) >= 0);
    const tn_view *factors = factors_of(sum);
    bool strided = factors->nb[2] % 4 == 0 && factors->nb[3] % 4 == 0 && sum->dst[0].nb[2] % 4 == 0;
    if (!simple || !strided || !is_same(summed_by(sum), p.y[0]) || !tn_cuda_matvec_aligned(&p)) return false;
    tn_cuda_matvec_sum_args s;
    tn_cuda_grid grid;
    return plan_sum(cuda, product, sum, &s, &grid);
}

tn_status tn_cuda_matvec_sum_launch(const tn_cuda_launch *l)
{
    tn_cuda_matvec_sum_args s;
    tn_cuda_grid grid;
    char name[48];
    // The plan is the same as when tn_cuda_matvec_fuses_sum made it.
    if (!plan_sum(l->cuda, l->product, l->step, &s, &grid))
        return tn_fail(l->cuda->device->ctx, TN_ERR_INTERNAL, "sum of experts: does not fit");
    if (l->quantised_x) s.of.quantised_x = *l->quantised_x;
    if (l->quantised_y) s.of.quantised_y = *l->quantised_y;
    snprintf(name, sizeof name, "tn_matvec_sum_%s", tn_dtype_name(tn_product_get(l->product).w[0]->dtype));
    return tn_cuda_run(l, TN_CUDA_MODULE_matvec_experts, name, &grid, &s);
}
