// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV with subgroups (gemv.comp): quantised weights with int8 activations, which quantise_int8.comp makes
// once for all weights of the step, and float weights with x as it is.
#include "backends/vulkan/product/product.h"
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"

#include <string.h>

enum {
    GROUP = TN_VK_QUANTISED_GROUP,
    GROUPS = 32,
    SUBGROUPS = 4
}; // GROUPS: of a workgroup of quantise_int8.comp
// Constants of gemv.comp.
enum { C_TYPE, C_GATED, C_ROWS, C_ALIGNED, C_THREADS, C_COLUMNS, C_SPLIT, C_DEPTH, C_TURNS };

// The slice of a row of weights that a lane loads at once (lane_slice_int8.glsl): its elements, and the
// 32-bit registers that it fills.
typedef struct lane_slice {
    tn_dtype type;
    int32_t elems, registers;
} lane_slice;

// NULL: there is no int8 kernel for the type.
static const lane_slice *slice_of(tn_dtype type)
{
    static const lane_slice slices[] = {
        {TN_TYPE_Q4_0, 32, 5},  {TN_TYPE_Q4_1, 32, 5},  {TN_TYPE_Q5_0, 32, 6},   {TN_TYPE_Q5_1, 32, 6},
        {TN_TYPE_Q8_0, 16, 5},  {TN_TYPE_Q2_K, 64, 7},  {TN_TYPE_Q3_K, 64, 12},  {TN_TYPE_Q4_K, 32, 8},
        {TN_TYPE_Q5_K, 32, 12}, {TN_TYPE_Q6_K, 32, 11}, {TN_TYPE_IQ4_NL, 32, 5}, {TN_TYPE_IQ4_XS, 32, 6},
        {TN_TYPE_MXFP4, 32, 5},
    };
    for (size_t i = 0; i < TN_COUNT(slices); i++)
        if (slices[i].type == type) return &slices[i];
    return NULL;
}

bool tn_vk_accepts_gemv_int8(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    if (step->precision != TN_PRECISION_auto && step->precision != TN_PRECISION_int8) return false;
    for (int32_t i = 0; i < p.n_weights; i++)
        if (!slice_of(p.w[i]->dtype)) return false;
    if (p.glu && p.w[0]->dtype != p.w[1]->dtype) return false;
    return tn_vk_product_is_gemv(step, &p);
}

// K-quants of up to 8 rows run before GEMM with matrices does. Eight layers of 8B in Q4_K_M on an H200,
// tokens/s with 2, 4, 8 rows: 2516, 3889, 5633; before, by gemv.comp (2 rows) and gemm_fragment.comp, 1399,
// 2634, 5183.
bool tn_vk_accepts_gemv_k_quant(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    for (int32_t i = 0; i < p.n_weights; i++)
        if (!tn_vk_is_in_chunks(p.w[i]->dtype)) return false;
    return !p.ids && tn_vk_accepts_gemv_int8(step);
}

bool tn_vk_accepts_gemv_float(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    for (int32_t i = 0; i < p.n_weights; i++) {
        tn_dtype type = p.w[i]->dtype;
        if (type != TN_TYPE_F32 && type != TN_TYPE_F16 && type != TN_TYPE_BF16) return false;
    }
    if (p.glu && p.w[0]->dtype != p.w[1]->dtype) return false;
    return tn_vk_product_is_gemv(step, &p);
}

// How the work is divided. A large device needs some thousand subgroups, and several loads of each lane in
// flight. A software driver has few threads, compiles slowly, and gains by every load of x that is saved.
static void choose(tn_vk_dispatch *d, const tn_view *w, const lane_slice *slice, int32_t rows, bool gated)
{
    enum { ENOUGH_SUBGROUPS = 4096, WIDE = 4096, VERY_WIDE = 8192, LOADS = 4, FEW_REGISTERS = 8 };
    int32_t *c = d->constants;
    int64_t columns = w->ne[2], rounds = w->ne[3] / slice->elems / d->v->subgroup;
    bool software = d->v->device->software, is_float = d->shader == TN_VK_SHADER_gemv_float;
    c[C_ROWS] = rows <= 2 ? rows : rows <= 4 || software ? 4 : TN_VK_GEMV_MAX_ROWS;
    c[C_COLUMNS] = gated || columns >= WIDE || software ? 2 : 1;
    c[C_SPLIT] = c[C_DEPTH] = 1;
    if (software) return;
    // Activations in f32 cost as many loads as weights, so four columns share them.
    if (is_float && columns >= VERY_WIDE && rows <= 2) c[C_COLUMNS] = 4;
    // Each result needs a lane that finishes it.
    if (!gated && c[C_ROWS] * c[C_COLUMNS] > (int32_t)d->v->subgroup) c[C_COLUMNS] = 1;
    // One row of bf16 on an H100, dispatches one after the other: 4096 columns by 2 with two subgroups each
    // and two loads of a lane took 43.8 us at k 14336 and 16.5 at k 4096, with one subgroup and four
    // loads 54.4 and 19.3, with four subgroups 45.5 and 17.8, with four loads 51.2 and 19.1.
    bool one_row = is_float && rows <= 2;
    int64_t teams = one_row && !gated ? columns / c[C_COLUMNS] : columns;
    while (!d->stages && c[C_SPLIT] < SUBGROUPS && teams * c[C_SPLIT] < ENOUGH_SUBGROUPS &&
           rounds >= 4 * c[C_SPLIT])
        c[C_SPLIT] *= 2;
    // Weights with few columns make few subgroups, and float slices need few registers: there a lane has
    // twice as many loads in flight.
    bool deep = is_float || (!gated && columns < VERY_WIDE && slice->registers <= FEW_REGISTERS);
    int32_t most = rows > 2 || (one_row && c[C_COLUMNS] > 1)
                       ? 2
                       : TN_MIN((deep ? 2 * LOADS : LOADS) / c[C_COLUMNS], LOADS);
    while (c[C_DEPTH] < most && rounds >= 2 * c[C_SPLIT] * c[C_DEPTH]) c[C_DEPTH] *= 2;
}

static bool may_stage(const tn_product *p)
{
    return p->n_results == 1 && p->y[0]->ne[3] % GROUP == 0;
}

// Whether rows of the result and of the residual are evenly spaced, as finish.glsl expects.
static bool is_spaced(const tn_product *p, int32_t i)
{
    return tn_view_n_rows(p->y[i]) <= 1 ||
           (tn_vk_row_stride(p->y[i]) > 0 && (!p->residual || tn_vk_row_stride(p->residual) > 0));
}

// Subgroups of a workgroup that also stages its results, for which it needs 32 columns. With few columns a
// large device has a multiprocessor for each workgroup, which then has to hold all loads that the
// multiprocessor can have in flight.
static int32_t staging_subgroups(const tn_vk_dispatch *d, int64_t columns, int32_t wide)
{
    enum { MANY_COLUMNS = 8192, WITH_MANY = 8, WITH_FEW = 16 };
    if (d->v->device->software) return SUBGROUPS;
    int32_t n = columns >= MANY_COLUMNS ? WITH_MANY : WITH_FEW;
    while (n > 1 && (n * wide > GROUP || n * (int32_t)d->v->subgroup > (int32_t)d->v->max_threads)) n /= 2;
    return n;
}

static void launch(const tn_product *p, const tn_product *like, int32_t i, const lane_slice *slice,
                   tn_vk_dispatch *d)
{
    int32_t *n = d->args.n, *c = d->constants, rows = p->ids ? 1 : n[TN_VK_N_PRODUCT_ROWS];
    bool gated = p->glu != NULL, spaced = is_spaced(like, i);
    d->stages = d->wants_staged && may_stage(like);
    if (spaced && d->shader == TN_VK_SHADER_gemv_int8 && tn_vk_gemv_k_quant_runs(d, p->w[i]->dtype, rows)) {
        tn_vk_launch_gemv_k_quant(like, i, rows, d);
        return;
    }
    if (spaced && d->shader == TN_VK_SHADER_gemv_float && tn_vk_gemv_row_runs(d, like, rows)) {
        tn_vk_launch_gemv_row(p, like, i, d);
        return;
    }
    c[C_GATED] = gated;
    choose(d, like->w[i], slice, rows, gated);
    int32_t wide = gated ? c[C_COLUMNS] / 2 : c[C_COLUMNS];
    int32_t subgroups = d->stages ? staging_subgroups(d, like->y[0]->ne[3], wide) : SUBGROUPS,
            each = wide * subgroups / c[C_SPLIT];
    c[C_THREADS] = subgroups * (int32_t)d->v->subgroup;
    if (d->stages) {
        c[C_TURNS] = GROUP / each;
        each = GROUP;
    }
    int64_t blocks = tn_vk_div_up(n[TN_VK_N_PRODUCT_ROWS], c[C_ROWS]);
    d->groups = blocks * tn_vk_div_up(n[TN_VK_N_PRODUCT_COLUMNS], each);
}

int32_t tn_vk_launch_gemv_float(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step), like = tn_product_get(d->like);
    tn_vk_product_bind(step, &p, i, d);
    d->shader = TN_VK_SHADER_gemv_float;
    d->constants[C_ALIGNED] = tn_vk_aligned_elems(p.x, 16) && tn_vk_aligned_elems(p.w[i], 16) &&
                              (!p.glu || tn_vk_aligned_elems(p.w[1], 16)) &&
                              (!p.norm || tn_vk_aligned_elems(p.norm, 16));
    lane_slice slice = {.elems = p.w[i]->dtype == TN_TYPE_F32 ? 4 : 8, .registers = 4};
    launch(&p, &like, i, &slice, d);
    return p.n_results;
}

int32_t tn_vk_launch_gemv_int8(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step), like = tn_product_get(d->like);
    int64_t rows = tn_view_n_rows(p.x);
    int32_t result = TN_MAX(i - 1, 0), count = 1 + p.n_results;
    tn_vk_product_bind(step, &p, result, d);
    d->scratch = d->x_staged ? 0 : tn_vk_quantised_size(p.k) * rows;
    if (i == 0) {
        memset(d->constants, 0, sizeof d->constants);
        d->shader = TN_VK_SHADER_quantise_int8;
        d->groups = d->x_staged ? 0 : tn_vk_div_up(rows * (p.k / GROUP), GROUPS);
        return count;
    }
    d->shader = TN_VK_SHADER_gemv_int8;
    d->waits = i == 1 && !d->x_staged; // the results of one step do not depend on each other
    launch(&p, &like, result, slice_of(p.w[result]->dtype), d);
    return count;
}
