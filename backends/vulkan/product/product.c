// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/product/product.h"

static void bind_weight(const tn_view *w, int32_t i, tn_vk_dispatch *d)
{
    tn_vk_weight_planes(w, &d->args.weight[i]);
    d->constants[i] = w->dtype;
}

void tn_vk_product_bind(const tn_step *step, const tn_product *p, int32_t i, tn_vk_dispatch *d)
{
    int32_t *n = d->args.n;
    n[TN_VK_N_PRODUCT_COLUMNS] = (int32_t)p->w[i]->ne[2];
    n[TN_VK_N_PRODUCT_ROWS] = (int32_t)tn_view_n_rows(p->y[i]);
    n[TN_VK_N_PRODUCT_BIAS] = p->at.bias[i];
    n[TN_VK_N_PRODUCT_RESIDUAL] = p->at.residual;
    n[TN_VK_N_PRODUCT_ACT] = p->act;
    n[TN_VK_N_PRODUCT_RESULT] = i;
    n[TN_VK_N_PRODUCT_IDS] = p->at.ids;
    n[TN_VK_N_PRODUCT_RESULT_STRIDE] = (int32_t)tn_vk_row_stride(p->y[i]);
    n[TN_VK_N_PRODUCT_RESIDUAL_STRIDE] = p->residual ? (int32_t)tn_vk_row_stride(p->residual) : 0;
    if (p->glu) n[TN_VK_N_PRODUCT_GLU] = tn_product_form_get(step->op)->glu_off / (int32_t)sizeof(int32_t);
    if (p->ids) n[TN_VK_N_PRODUCT_EXPERTS] = (int32_t)p->n_experts;
    if (p->norm) {
        n[TN_VK_N_PRODUCT_NORM] = p->at.norm;
        n[TN_VK_N_PRODUCT_EPS] = tn_product_form_get(step->op)->eps_off / (int32_t)sizeof(int32_t);
    }
    bind_weight(p->w[i], 0, d);
    bind_weight(p->glu ? p->w[1] : p->w[i], 1,
                d); // without a GLU the same one: one pipeline serves both constants
}

int32_t tn_vk_finish_form(const tn_product *p, const tn_vk_dispatch *d)
{
    enum { GATED = 1, STAGES = 2, NORMED = 4, BIASED = 8, ACTS = 16, EXPERTS = 32, ADDS = 64, GATE_ACT = 8 };
    const int32_t *n = d->args.n;
    bool plain = p->glu && !(p->glu->limit > 0.0f) && !(p->glu->alpha > 0.0f);
    return (plain ? (p->glu->act + 1) << GATE_ACT : 0) | (n[TN_VK_N_PRODUCT_GLU] >= 0 ? GATED : 0) |
           (d->stages ? STAGES : 0) | (n[TN_VK_N_PRODUCT_NORM] >= 0 ? NORMED : 0) |
           (n[TN_VK_N_PRODUCT_BIAS] >= 0 ? BIASED : 0) | (n[TN_VK_N_PRODUCT_ACT] >= 0 ? ACTS : 0) |
           (p->ids ? EXPERTS : 0) | (n[TN_VK_N_PRODUCT_RESIDUAL] >= 0 ? ADDS : 0); // GATE_ACT: a shift
}

bool tn_vk_product_is_gemv(const tn_step *step, const tn_product *p)
{
    if (p->n_weights == 0) return false;
    return (p->ids || tn_view_n_rows(p->x) <= TN_VK_GEMV_MAX_ROWS) && tn_vk_accepts_indexable(step);
}

int64_t tn_vk_row_stride(const tn_view *v)
{
    int64_t stride = v->ne[2] > 1 ? v->nb[2] : v->ne[1] > 1 ? v->nb[1] : v->ne[0] > 1 ? v->nb[0] : v->nb[2];
    bool even = (v->ne[1] == 1 || v->nb[1] == stride * v->ne[2]) &&
                (v->ne[0] == 1 || v->nb[0] == stride * v->ne[2] * v->ne[1]);
    return even && stride > 0 && stride <= INT32_MAX ? stride : 0;
}
