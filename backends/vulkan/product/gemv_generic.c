// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV with weights of any type (gemv_generic.comp): the kernel behind all others that multiply up to eight
// rows.
#include "backends/vulkan/product/product.h"
#include "core/device.h"

enum { ROWS_AT_ONCE = 4, SUBGROUPS = 4 };
// Constants of the shader.
enum { C_TYPE, C_TYPE_UP, C_ROWS, C_ALIGNED, C_THREADS, C_COLUMNS };

bool tn_vk_accepts_gemv_generic(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return tn_vk_product_is_gemv(step, &p);
}

// Columns that a team of invocations multiplies at once. One where the weight has not many columns, so that
// all of a device has work. A software driver has few threads, and gains by every load of x that is saved.
static int32_t columns_at_once(const tn_vk *v, int64_t columns, int32_t rows)
{
    int32_t most = TN_MAX(1, 4 / rows);
    if (v->device->software) return TN_MIN(most, 2);
    return TN_MIN(most, columns >= 16384 ? 4 : columns >= 4096 ? 2 : 1);
}

// A software driver compiles slowly, so it gets fewer variants.
static int32_t rows_at_once(const tn_vk *v, const tn_product *p, int64_t rows)
{
    if (p->ids || rows <= 1) return 1; // each row has its own expert
    return rows == 2 && !v->device->software ? 2 : ROWS_AT_ONCE;
}

static int32_t launch(const tn_step *step, int32_t i, int32_t teams, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step), like = tn_product_get(d->like);
    int32_t *c = d->constants;
    tn_vk_product_bind(step, &p, i, d);
    int64_t rows = d->args.n[TN_VK_N_PRODUCT_ROWS], columns = d->args.n[TN_VK_N_PRODUCT_COLUMNS];
    c[C_ROWS] = rows_at_once(d->v, &p, rows);
    c[C_ALIGNED] = tn_vk_aligned_elems(p.x, 16) && tn_vk_aligned_elems(p.w[i], 16) &&
                   (!p.glu || tn_vk_aligned_elems(p.w[1], 16)) &&
                   (!p.norm || tn_vk_aligned_elems(p.norm, 16));
    c[C_COLUMNS] = columns_at_once(d->v, like.w[i]->ne[2], c[C_ROWS]);
    int64_t across = tn_vk_div_up(columns, c[C_COLUMNS]), blocks = tn_vk_div_up(rows, c[C_ROWS]);
    d->groups = blocks * tn_vk_div_up(across, teams);
    return p.n_results;
}

int32_t tn_vk_launch_gemv_generic(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    d->shader = TN_VK_SHADER_gemv_generic;
    return launch(step, i, 1, d);
}

int32_t tn_vk_launch_gemv_generic_subgroups(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    d->shader = TN_VK_SHADER_gemv_generic_subgroups;
    d->constants[C_THREADS] = SUBGROUPS * (int32_t)d->v->subgroup;
    return launch(step, i, SUBGROUPS, d);
}
