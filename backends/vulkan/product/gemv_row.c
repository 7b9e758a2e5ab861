// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV of one row, or of rows with their own experts, with weights of F32, F16 and BF16 (gemv_row.comp): the
// form of gemv_float for what decoding does most.
#include "backends/vulkan/product/product.h"
#include "core/device.h"

#include <string.h>

// Constants of the shader.
enum { C_TYPE, C_FORM, C_THREADS = 4, C_RESULTS, C_DEPTH };

// The rest of the operands decides nothing: the shader has a form for rows that are not aligned, which only
// probes need.
bool tn_vk_gemv_row_runs(const tn_vk_dispatch *d, const tn_product *like, int32_t rows)
{
    return rows == 1 && !d->wants_staged && tn_vk_aligned_elems(like->x, 16);
}

void tn_vk_launch_gemv_row(const tn_product *p, const tn_product *like, int32_t i, tn_vk_dispatch *d)
{
    enum { MOST_SUBGROUPS = 16, DEPTH = 2, MOST_ROWS = 4, ENOUGH = 128 };
    int32_t *c = d->constants, *n = d->args.n, subgroup = (int32_t)d->v->subgroup;
    int32_t rows_of_result = p->glu ? 2 : 1, aligned = c[TN_VK_LAYOUT];
    int64_t slices = tn_vk_div_up(like->k * (int64_t)tn_dtype_block_size(p->w[i]->dtype), 16),
            columns = like->w[i]->ne[2];
    int32_t most = TN_MIN((int32_t)d->v->max_threads / subgroup, MOST_SUBGROUPS);
    // As few rounds as a workgroup needs at most. Eight layers of 8B in bf16 on an H200, tokens/s, by depth
    // and rows of weights: 2 and 4 722, 4 and 4 709, 4 and 2 687, 2 and 2 660, 1 and 4 601, 2 and 1 565; by
    // gemv.comp 676. Rows of 14336 in two rounds of 14 subgroups with 4, 2, 1 rows: 727, 731, 724.
    int64_t in_flight = (int64_t)DEPTH * subgroup, rounds = tn_vk_div_up(slices, in_flight * most);
    int32_t subgroups = (int32_t)tn_vk_div_up(slices, in_flight * rounds);
    int32_t results = MOST_ROWS / rows_of_result;
    while (results > 1 && columns / results < ENOUGH) results /= 2;
    memset(c, 0, sizeof d->constants);
    c[C_TYPE] = p->w[i]->dtype;
    c[C_FORM] = tn_vk_finish_form(p, d);
    c[TN_VK_LAYOUT] = aligned;
    c[C_THREADS] = subgroups * subgroup;
    c[C_RESULTS] = results;
    c[C_DEPTH] = DEPTH;
    d->args.weight[0].plane[1] = p->norm ? (uint64_t)(uintptr_t)p->norm->data : 0;
    d->args.weight[0].plane[2] = (uint64_t)(uintptr_t)p->x->data;
    d->shader = TN_VK_SHADER_gemv_row;
    d->groups = (int64_t)n[TN_VK_N_PRODUCT_ROWS] * tn_vk_div_up(n[TN_VK_N_PRODUCT_COLUMNS], results);
}
