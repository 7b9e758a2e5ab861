// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands by name. TN_SRC_<op>_<operand> is an index into the sources of a step or node,
// TN_DST_<op>_<result> one into its results; tn_<op>_views has the sources of a step as named views. All come
// from the names in ops.def. Matmuls: product.h.
//
//     tn_attention_views in = tn_attention_views_get(step);
//     // in.q and in.block_table lead into the step; in.sinks is NULL if absent
#ifndef TN_OPS_OPERANDS_H
#define TN_OPS_OPERANDS_H

#include "ops/ops.h"

// TN_LIST(f, op, a, b, ...): f(op, a) f(op, b) ..., for up to TN_MAX_SRC names.
/* clang-format off */
#define TN_LIST_1(f, op, a)       f(op, a)
#define TN_LIST_2(f, op, a, ...)  f(op, a) TN_LIST_1(f, op, __VA_ARGS__)
#define TN_LIST_3(f, op, a, ...)  f(op, a) TN_LIST_2(f, op, __VA_ARGS__)
#define TN_LIST_4(f, op, a, ...)  f(op, a) TN_LIST_3(f, op, __VA_ARGS__)
#define TN_LIST_5(f, op, a, ...)  f(op, a) TN_LIST_4(f, op, __VA_ARGS__)
#define TN_LIST_6(f, op, a, ...)  f(op, a) TN_LIST_5(f, op, __VA_ARGS__)
#define TN_LIST_7(f, op, a, ...)  f(op, a) TN_LIST_6(f, op, __VA_ARGS__)
#define TN_LIST_8(f, op, a, ...)  f(op, a) TN_LIST_7(f, op, __VA_ARGS__)
#define TN_LIST_9(f, op, a, ...)  f(op, a) TN_LIST_8(f, op, __VA_ARGS__)
#define TN_LIST_10(f, op, a, ...) f(op, a) TN_LIST_9(f, op, __VA_ARGS__)
#define TN_LIST_PICK(a, b, c, d, e, f, g, h, i, j, n, ...) TN_LIST_##n
#define TN_LIST_NAME(...)   TN_LIST_PICK(__VA_ARGS__, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TN_LIST(f, op, ...) TN_LIST_NAME(__VA_ARGS__)(f, op, __VA_ARGS__)
// The names in a column of ops.def, without the parentheses around them.
#define TN_NAMES(...) __VA_ARGS__
/* clang-format on */

enum {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                      \
    TN_SRC_MIN_##name = src_min,
#include <tenon/ops.def>
};

// Source i of a step; NULL if it is optional and absent. Required sources are there even if they are empty.
static inline const tn_view *tn_step_operand(const tn_step *step, int32_t i, int32_t n_required)
{
    return i < n_required || tn_step_has_src(step, i) ? &step->src[i] : NULL;
}

// For each op the indices of its sources, and a struct of its sources as views.
#define TN_SOURCE_INDEX(op, name)  TN_SRC_##op##_##name,
#define TN_RESULT_INDEX(op, name)  TN_DST_##op##_##name,
#define TN_SOURCE_MEMBER(op, name) const tn_view *name;
#define TN_SOURCE_VIEW(op, name)   .name = tn_step_operand(step, TN_SRC_##op##_##name, TN_SRC_MIN_##op),
#define TN_OP(op, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                        \
    enum { TN_LIST(TN_SOURCE_INDEX, op, TN_NAMES sources) TN_SRC_##op##_COUNT };                             \
    enum { TN_LIST(TN_RESULT_INDEX, op, TN_NAMES results) TN_DST_##op##_COUNT };                             \
    typedef struct tn_##op##_views {                                                                         \
        TN_LIST(TN_SOURCE_MEMBER, op, TN_NAMES sources)                                                      \
    } tn_##op##_views;                                                                                       \
    static inline tn_##op##_views tn_##op##_views_get(const tn_step *step)                                   \
    {                                                                                                        \
        return (tn_##op##_views){TN_LIST(TN_SOURCE_VIEW, op, TN_NAMES sources)};                             \
    }
#include <tenon/ops.def>

// "block_table": what source i of the op is called; "w1" for a weight of a product; "source 3" if it has no
// name, into buf. params may be NULL only if the op has none.
const char *tn_source_name(int32_t op, const void *params, int32_t i, char *buf, size_t size);

// Sources of moe_route; -1: absent.
typedef struct tn_moe_route_sources {
    int32_t x;           // logits, or the rows that the router multiplies
    int32_t router;      // [n_experts, k]
    int32_t bias;        // [n_experts], of the router
    int32_t choice_bias; // [n_experts], added to the scores by which the experts are ranked
    int32_t norm;        // [k]
    int32_t count;
} tn_moe_route_sources;
tn_moe_route_sources tn_moe_route_sources_get(const tn_moe_route_params *params);

// Sources of moe_combine; -1: absent.
typedef struct tn_moe_combine_sources {
    int32_t x, w;
    int32_t added[2];
    int32_t factor; // of added[0]
    int32_t count;
} tn_moe_combine_sources;
tn_moe_combine_sources tn_moe_combine_sources_get(const tn_moe_combine_params *params);

// The view at an index of tn_product_sources, tn_moe_route_sources or tn_moe_combine_sources; NULL for -1.
static inline const tn_view *tn_step_source(const tn_step *step, int32_t i)
{
    return i < 0 ? NULL : &step->src[i];
}

#endif
