// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The op table, and what is known of an op from its row. Helpers of the ops themselves are in step.c.
#include "ops/ops.h"

#include "ops/product.h"

#define PARAMS_P(name) sizeof(tn_##name##_params)
#define PARAMS_N(name) 0
#define V TN_OP_VIEW
#define A TN_OP_ALIAS
#define B TN_OP_ALIAS_1
#define F TN_OP_FUSED
#define I TN_OP_INPLACE
#define M TN_OP_PRODUCT
static const tn_op_info ops[TN_OP_COUNT] = {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                      \
    {#name, TN_FAMILY_##family, src_min,      src_max, n_dst, PARAMS_##par(name), tol,                       \
     flags, tn_infer_##name,    tn_ref_##name},
#include <tenon/ops.def>
};
// ops/product.c knows matmuls by their family, other files by this flag.
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                      \
    _Static_assert((((flags) & TN_OP_PRODUCT) != 0) == (TN_FAMILY_##family == TN_FAMILY_product), #name);
#include <tenon/ops.def>
#undef V
#undef A
#undef B
#undef F
#undef I
#undef M

const tn_op_info *tn_op_info_get(int32_t op)
{
    return &ops[op];
}

const char *tn_family_name(int32_t family)
{
    static const char *const names[TN_FAMILY_COUNT] = {
#define TN_FAMILY(name, set) #name,
#include "ops/families.def"
    };
    return names[family];
}

bool tn_op_set_has(int32_t set, int32_t op)
{
    if (set < TN_OP_COUNT) return set == op;
    if (set < TN_OP_COUNT + TN_FAMILY_COUNT) return ops[op].family == set - TN_OP_COUNT;
    const tn_product_form *f = tn_product_form_get(op);
    if (!f) return false;
    if (set == TN_SET_PRODUCT_ID) return f->has_ids;
    return !f->has_ids && (set == TN_SET_PRODUCT_DENSE || f->glu_off == TN_PRODUCT_NO_PARAM);
}
