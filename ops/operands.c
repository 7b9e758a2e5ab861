// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of operands, and positions in ops that leave no gap for absent sources.
#include "ops/operands.h"

#include "ops/product.h"

#include <stdio.h>

#define TN_SOURCE_NAME(op, name) [TN_SRC_##op##_##name] = #name,
#define TN_OP(op, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                        \
    [TN_OP_##op] = {TN_LIST(TN_SOURCE_NAME, op, TN_NAMES sources)},
static const char *const source_names[TN_OP_COUNT][TN_MAX_SRC] = {
#include <tenon/ops.def>
};

tn_moe_route_sources tn_moe_route_sources_get(const tn_moe_route_params *p)
{
    tn_moe_route_sources s = {.router = -1, .bias = -1, .choice_bias = -1, .norm = -1, .count = 1};
    if (p->has_product) s.router = s.count++;
    if (p->has_bias) s.bias = s.count++;
    if (p->has_choice_bias) s.choice_bias = s.count++;
    if (p->has_norm) s.norm = s.count++;
    return s;
}

tn_moe_combine_sources tn_moe_combine_sources_get(const tn_moe_combine_params *p)
{
    tn_moe_combine_sources s = {.w = 1, .added = {-1, -1}, .factor = -1, .count = 2};
    for (int32_t i = 0; i < p->n_added && i < 2; i++) s.added[i] = s.count++;
    if (p->has_factor) s.factor = s.count++;
    return s;
}

static const char *product_name(const tn_product_sources *s, int32_t i, char *buf, size_t size)
{
    if (i == s->x) return "x";
    if (i == s->residual) return "residual";
    if (i == s->norm) return "norm";
    if (i == s->ids) return "ids";
    for (int32_t k = 0; k < s->n_weights; k++) {
        if (i == s->w[k]) snprintf(buf, size, s->n_weights > 1 ? "w%d" : "w", k);
        if (i == s->bias[k]) snprintf(buf, size, s->n_weights > 1 ? "bias%d" : "bias", k);
    }
    return buf;
}

static const char *route_name(const tn_moe_route_params *p, int32_t i)
{
    tn_moe_route_sources s = tn_moe_route_sources_get(p);
    if (i == s.router) return "router";
    if (i == s.bias) return "bias";
    if (i == s.choice_bias) return "choice_bias";
    return i == s.norm ? "norm" : i == s.x ? "x" : NULL;
}

static const char *combine_name(const tn_moe_combine_params *p, int32_t i)
{
    tn_moe_combine_sources s = tn_moe_combine_sources_get(p);
    if (i == s.added[0]) return "added0";
    if (i == s.added[1]) return "added1";
    return i == s.factor ? "factor" : i == s.w ? "w" : i == s.x ? "x" : NULL;
}

const char *tn_source_name(int32_t op, const void *params, int32_t i, char *buf, size_t size)
{
    const char *name = i >= 0 && i < TN_MAX_SRC ? source_names[op][i] : NULL;
    if (!name && op == TN_OP_moe_route) name = route_name(params, i);
    if (!name && op == TN_OP_moe_combine) name = combine_name(params, i);
    if (name) return name;
    snprintf(buf, size, "source %d", i);
    if (!tn_product_form_get(op)) return buf;
    tn_product_sources s = tn_product_sources_get(op, params);
    return product_name(&s, i, buf, size);
}
