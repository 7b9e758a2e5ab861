// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of up to 8 rows, or of rows with their own experts, with weights of Q4_K, Q5_K and Q6_K: the form
// of gemv_int8 for what decoding does most. Up to 4 rows run in gemv_k_quant.comp, more in gemm_k_quant.comp.
#include "backends/vulkan/product/product.h"
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"

#include <string.h>

enum {
    GROUP = TN_VK_QUANTISED_GROUP,
    CHUNK = 64
}; // CHUNK: elements of a row of weights that a lane multiplies at once
// Constants of the shader.
enum { C_TYPE, C_FORM, C_SPLIT, C_THREADS = 4, C_RESULTS, C_DEPTH, C_LANES, C_ROWS };
enum { MOST_ROWS = 4 }; // of gemv_k_quant.comp, whose lanes have all of them in registers

bool tn_vk_is_in_chunks(tn_dtype type)
{
    return type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
}

// Shared memory of gemm_k_quant.comp with so many subgroups: a block of x for each, sums of `columns` of each
// split, staged results.
static int64_t gemm_shared(int32_t teams, int32_t split, int32_t columns, int64_t rows)
{
    enum { BLOCK_OF_ROW = 256 + 64 };
    return teams * split * rows * BLOCK_OF_ROW +
           (split * columns + GROUP + 1) * rows * (int64_t)sizeof(float);
}

bool tn_vk_gemv_k_quant_runs(const tn_vk_dispatch *d, tn_dtype type, int64_t rows)
{
    // Of several rows a lane has one of the sums. LARGEST: rows of weights of a workgroup, one for each lane.
    enum { LEAST_LANES = 4, LEAST_WITH_ROWS = 8, LARGEST = 2 * GROUP };
    int32_t lanes = (int32_t)d->v->subgroup;
    return tn_vk_is_in_chunks(type) && d->v->has & TN_VK_SHUFFLE &&
           lanes >= (rows > 1 ? LEAST_WITH_ROWS : LEAST_LANES) &&
           (rows <= MOST_ROWS ||
            gemm_shared(TN_MAX(1, LARGEST / lanes), 1, LARGEST, rows) <= (int64_t)d->v->max_shared);
}

// How a product is divided: most subgroups of a workgroup, its results, and the rows of weights that a lane
// has in flight (even with a GLU, whose rows of gate and up take turns). With more than 4 rows of x: that it
// multiplies at once.
typedef struct division {
    int32_t subgroups, results, depth;
} division;

// A large device hides the latency of loads behind other subgroups, not behind more rows of one subgroup:
// measured on an H200. A workgroup that stages its results needs a whole group of them.
static const division *select_division(const tn_vk_dispatch *d, int64_t columns, bool gated, int32_t rows)
{
    enum { MANY_COLUMNS = 8192 };
    enum { GATED_STAGING, GATED_ALONE, WIDE_STAGING, NARROW_STAGING, WIDE, NARROW, KINDS };
    static const division software = {4, GROUP, 2};
    static const division forms[][KINDS] = {
        // 1 row of x, 2, 4, 8
        {{8, GROUP, 2}, {8, 8, 2}, {8, GROUP, 2}, {32, GROUP, 1}, {4, 16, 1}, {8, 16, 2}},
        {{4, GROUP, 2}, {4, GROUP, 2}, {16, GROUP, 2}, {16, GROUP, 2}, {2, GROUP, 2}, {8, 16, 2}},
        {{2, GROUP, 2}, {2, GROUP, 2}, {16, GROUP, 2}, {16, GROUP, 2}, {4, GROUP, 2}, {4, 16, 2}},
        {{2, GROUP, 4}, {2, GROUP, 4}, {4, GROUP, 4}, {8, GROUP, 2}, {4, GROUP, 4}, {4, GROUP, 4}},
    };
    if (d->v->device->software) return &software;
    int32_t form = rows <= 1   ? 0
                   : rows <= 2 ? 1
                   : rows <= 4 ? 2
                               : 3,
            kind = gated                    ? (d->stages ? GATED_STAGING : GATED_ALONE)
                   : columns < MANY_COLUMNS ? (d->stages ? NARROW_STAGING : NARROW)
                                            : (d->stages ? WIDE_STAGING : WIDE);
    return &forms[form][kind];
}

// gemm_k_quant.comp: each four lanes of a subgroup have `wide` rows of weights, more if otherwise shared
// memory does not suffice.
static void launch_gemm(const division *form, int64_t k, bool gated, int32_t rows_of_x, tn_vk_dispatch *d)
{
    enum { BLOCK = 256, CHUNKS = BLOCK / CHUNK, WIDEST = 4 };
    int32_t *c = d->constants, lanes = (int32_t)d->v->subgroup, wide = form->depth,
            rows = gated ? 2 * form->results : form->results;
    int64_t shared = (int64_t)d->v->max_shared;
    while (wide > (gated ? 2 : 1) && lanes / CHUNKS * wide > rows) wide /= 2;
    while (wide < WIDEST && gemm_shared(rows / (lanes / CHUNKS * wide), 1, rows, rows_of_x) > shared)
        wide *= 2;
    int32_t teams = TN_MAX(1, rows / (lanes / CHUNKS * wide)),
            split = (int32_t)TN_MIN(TN_MAX(1, form->subgroups / teams), k / BLOCK);
    while (split > 1 && (teams * split * lanes > (int32_t)d->v->max_threads ||
                         gemm_shared(teams, split, rows, rows_of_x) > shared))
        split--;
    c[C_SPLIT] = split;
    c[C_THREADS] = teams * split * lanes;
    c[C_DEPTH] = wide;
    d->shader = TN_VK_SHADER_gemm_k_quant;
}

static void launch_gemv(const division *form, int64_t k, bool gated, int32_t rows_of_x, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, lanes = (int32_t)d->v->subgroup, subgroups = form->subgroups,
            depth = TN_MAX(form->depth, gated ? 2 : 1), rows = gated ? 2 * form->results : form->results;
    while (depth > 1 && depth * MOST_ROWS > lanes && rows_of_x > 1) depth /= 2;
    int32_t chunks_of_lane = (int32_t)tn_vk_div_up(k / CHUNK, lanes);
    while (subgroups * lanes > (int32_t)d->v->max_threads) subgroups /= 2;
    int32_t split = d->v->device->software ? 1 : TN_MAX(1, TN_MIN(chunks_of_lane, subgroups)), teams = 1;
    while (2 * teams * split <= subgroups && 2 * teams * depth <= rows) teams *= 2;
    c[C_SPLIT] = split;
    c[C_THREADS] = teams * split * lanes;
    c[C_DEPTH] = depth;
    d->shader = TN_VK_SHADER_gemv_k_quant;
}

void tn_vk_launch_gemv_k_quant(const tn_product *p, int32_t i, int32_t rows, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, *n = d->args.n;
    const tn_view *w = p->w[i];
    const division *form = select_division(d, w->ne[2], p->glu != NULL, rows);
    memset(c, 0, sizeof d->constants);
    c[C_TYPE] = w->dtype;
    c[C_FORM] = tn_vk_finish_form(p, d);
    c[C_RESULTS] = form->results;
    c[C_LANES] = (int32_t)d->v->subgroup;
    c[C_ROWS] = rows;
    if (rows > MOST_ROWS)
        launch_gemm(form, w->ne[3], p->glu != NULL, rows, d);
    else
        launch_gemv(form, w->ne[3], p->glu != NULL, rows, d);
    d->groups =
        (int64_t)n[TN_VK_N_PRODUCT_ROWS] / rows * tn_vk_div_up(n[TN_VK_N_PRODUCT_COLUMNS], form->results);
}
