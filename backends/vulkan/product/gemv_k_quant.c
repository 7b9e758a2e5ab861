// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV of up to 8 rows, or of rows with their own experts, with weights of Q4_K, Q5_K and Q6_K
// (gemv_k_quant.comp): the form of gemv_int8 for what decoding does most.
#include "backends/vulkan/product/product.h"
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"

#include <string.h>

enum {
    GROUP = TN_VK_QUANTISED_GROUP,
    CHUNK = 64
}; // CHUNK: elements of a row of weights that a lane multiplies at once
// Constants of the shader.
enum { C_TYPE, C_FORM, C_SPLIT, C_THREADS = 4, C_RESULTS, C_DEPTH, C_LANES, C_TILE };

int32_t tn_vk_form_of_one_row(const tn_vk_dispatch *d)
{
    enum { GATED = 1, STAGES = 2, NORMED = 4, BIASED = 8, ACTS = 16 };
    const int32_t *n = d->args.n;
    return (n[TN_VK_N_PRODUCT_GLU] >= 0 ? GATED : 0) | (d->stages ? STAGES : 0) |
           (n[TN_VK_N_PRODUCT_NORM] >= 0 ? NORMED : 0) | (n[TN_VK_N_PRODUCT_BIAS] >= 0 ? BIASED : 0) |
           (n[TN_VK_N_PRODUCT_ACT] >= 0 ? ACTS : 0);
}

static bool in_chunks(tn_dtype type)
{
    return type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
}

bool tn_vk_gemv_k_quant_runs(const tn_vk_dispatch *d, tn_dtype type, int64_t rows)
{
    enum { LEAST_LANES = 4, LEAST_WITH_ROWS = TN_VK_GEMV_MAX_ROWS }; // a lane has one of the sums of all rows
    return in_chunks(type) && d->v->has & TN_VK_SHUFFLE &&
           d->v->subgroup >= (rows > 1 ? LEAST_WITH_ROWS : LEAST_LANES);
}

// The rows that it runs before GEMM with matrices does. Eight layers of 8B in Q4_K_M on an H200, tokens/s
// with 2, 4, 8 rows: 2389, 3594, 4930, by gemm_fragment.comp and for 2 rows by gemv.comp 1399, 2634, 5183.
bool tn_vk_accepts_gemv_k_quant(const tn_step *step)
{
    enum { MOST_ROWS = 4 };
    tn_product p = tn_product_get(step);
    for (int32_t i = 0; i < p.n_weights; i++)
        if (!in_chunks(p.w[i]->dtype)) return false;
    return !p.ids && tn_vk_accepts_gemv_int8(step) && tn_view_n_rows(p.x) <= MOST_ROWS;
}

// How a product is divided: most subgroups of a workgroup, its results, and the rows of weights that a lane
// has in flight (even with a GLU, whose rows of gate and up take turns).
typedef struct division {
    int32_t subgroups, results, depth;
} division;

// A large device hides the latency of loads behind other subgroups, not behind more rows of one subgroup:
// measured on an H200. A workgroup that stages its results needs a whole group of them.
static const division *choose(const tn_vk_dispatch *d, int64_t columns, bool gated, int32_t rows)
{
    enum { MANY_COLUMNS = 8192 };
    enum { GATED_STAGING, GATED_ALONE, MANY_STAGING, FEW_STAGING, MANY, FEW, KINDS };
    static const division software = {4, GROUP, 2};
    static const division forms[][KINDS] = {
        // 1 row of x, 2, 4, 8
        {{8, GROUP, 2}, {8, 8, 2}, {8, GROUP, 2}, {32, GROUP, 1}, {4, 16, 1}, {8, 16, 2}},
        {{4, GROUP, 2}, {4, GROUP, 2}, {16, GROUP, 2}, {16, GROUP, 2}, {2, GROUP, 2}, {8, 16, 2}},
        {{2, GROUP, 2}, {2, GROUP, 2}, {16, GROUP, 2}, {16, GROUP, 2}, {4, GROUP, 2}, {4, 16, 2}},
        {{8, GROUP, 4}, {8, GROUP, 4}, {16, GROUP, 2}, {16, GROUP, 2}, {4, GROUP, 2}, {8, GROUP, 2}},
    };
    if (d->v->device->software) return &software;
    int32_t form = rows <= 1   ? 0
                   : rows <= 2 ? 1
                   : rows <= 4 ? 2
                               : 3,
            kind = gated                    ? (d->stages ? GATED_STAGING : GATED_ALONE)
                   : columns < MANY_COLUMNS ? (d->stages ? FEW_STAGING : FEW)
                                            : (d->stages ? MANY_STAGING : MANY);
    return &forms[form][kind];
}

void tn_vk_launch_gemv_k_quant(const tn_view *w, bool gated, int32_t rows_of_x, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, *n = d->args.n, subgroup = (int32_t)d->v->subgroup;
    const division *form = choose(d, w->ne[2], gated, rows_of_x);
    int32_t subgroups = form->subgroups, results = form->results, depth = TN_MAX(form->depth, gated ? 2 : 1);
    enum { MOST_ROWS = 4 }; // of a lane, by its registers
    int32_t parts = (int32_t)tn_vk_div_up(rows_of_x, MOST_ROWS),
            each = (int32_t)tn_vk_div_up(rows_of_x, parts);
    while (depth > 1 && depth * MOST_ROWS > subgroup && rows_of_x > 1) depth /= 2;
    int32_t chunks_of_lane = (int32_t)tn_vk_div_up(w->ne[3] / CHUNK, subgroup);
    while (subgroups * subgroup > (int32_t)d->v->max_threads) subgroups /= 2;
    int32_t split = d->v->device->software ? 1 : TN_MAX(1, TN_MIN(chunks_of_lane, subgroups)), teams = 1;
    int32_t rows = gated ? 2 * results : results;
    split = TN_MIN(split, TN_MAX(1, subgroups / parts));
    while (2 * teams * split * parts <= subgroups && 2 * teams * depth <= rows) teams *= 2;
    memset(c, 0, sizeof d->constants);
    c[C_TYPE] = w->dtype;
    c[C_FORM] = tn_vk_form_of_one_row(d);
    c[C_SPLIT] = split;
    c[C_THREADS] = teams * split * parts * subgroup;
    c[C_RESULTS] = results;
    c[C_DEPTH] = depth;
    c[C_LANES] = subgroup;
    c[C_TILE] = each | parts << 8;
    d->shader = TN_VK_SHADER_gemv_k_quant;
    d->groups =
        (int64_t)n[TN_VK_N_PRODUCT_ROWS] / rows_of_x * tn_vk_div_up(n[TN_VK_N_PRODUCT_COLUMNS], results);
}
