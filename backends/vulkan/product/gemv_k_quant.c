// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV of one row, or of rows with their own experts, with weights of Q4_K, Q5_K and Q6_K
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
enum { C_TYPE, C_FORM, C_SPLIT, C_THREADS = 4, C_RESULTS, C_DEPTH, C_LANES };

int32_t tn_vk_form_of_one_row(const tn_vk_dispatch *d)
{
    enum { GATED = 1, STAGES = 2, NORMED = 4, BIASED = 8, ACTS = 16 };
    const int32_t *n = d->args.n;
    return (n[TN_VK_N_PRODUCT_GLU] >= 0 ? GATED : 0) | (d->stages ? STAGES : 0) |
           (n[TN_VK_N_PRODUCT_NORM] >= 0 ? NORMED : 0) | (n[TN_VK_N_PRODUCT_BIAS] >= 0 ? BIASED : 0) |
           (n[TN_VK_N_PRODUCT_ACT] >= 0 ? ACTS : 0);
}

bool tn_vk_gemv_k_quant_runs(const tn_vk_dispatch *d, tn_dtype type, int64_t rows)
{
    bool in_chunks = type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
    return in_chunks && rows == 1 && d->v->has & TN_VK_SHUFFLE && d->v->subgroup >= 4;
}

// How a product is divided: most subgroups of a workgroup, its results, and the rows of weights that a lane
// has in flight.
typedef struct division {
    int32_t subgroups, results, depth;
} division;

// A large device hides the latency of loads behind other subgroups, not behind more rows of one subgroup:
// measured on an H200. A workgroup that stages its results needs a whole group of them.
static const division *choose(const tn_vk_dispatch *d, int64_t columns, bool gated)
{
    enum { MANY_COLUMNS = 8192 };
    static const division software = {4, GROUP, 2}, gated_staging = {8, GROUP, 1},
                          many_staging = {8, GROUP, 2}, few_staging = {32, GROUP, 1}, few = {8, 16, 2},
                          many = {4, 16, 1}, gated_alone = {8, 8, 2};
    if (d->v->device->software) return &software;
    if (gated) return d->stages ? &gated_staging : &gated_alone;
    if (d->stages) return columns < MANY_COLUMNS ? &few_staging : &many_staging;
    return columns < MANY_COLUMNS ? &few : &many;
}

void tn_vk_launch_gemv_k_quant(const tn_view *w, bool gated, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, *n = d->args.n, subgroup = (int32_t)d->v->subgroup;
    const division *form = choose(d, w->ne[2], gated);
    int32_t subgroups = form->subgroups, results = form->results, depth = form->depth;
    int32_t chunks_of_lane = (int32_t)tn_vk_div_up(w->ne[3] / CHUNK, subgroup);
    while (subgroups * subgroup > (int32_t)d->v->max_threads) subgroups /= 2;
    int32_t split = d->v->device->software ? 1 : TN_MAX(1, TN_MIN(chunks_of_lane, subgroups)), teams = 1;
    int32_t rows = gated ? 2 * results : results;
    while (2 * teams * split <= subgroups && 2 * teams * depth <= rows) teams *= 2;
    memset(c, 0, sizeof d->constants);
    c[C_TYPE] = w->dtype;
    c[C_FORM] = tn_vk_form_of_one_row(d);
    c[C_SPLIT] = split;
    c[C_THREADS] = teams * split * subgroup;
    c[C_RESULTS] = results;
    c[C_DEPTH] = depth;
    c[C_LANES] = subgroup;
    d->shader = TN_VK_SHADER_gemv_k_quant;
    d->groups = (int64_t)n[TN_VK_N_PRODUCT_ROWS] * tn_vk_div_up(n[TN_VK_N_PRODUCT_COLUMNS], results);
}
