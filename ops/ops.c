// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The op table and what shape rules and references share.
#include "ops/ops.h"

#include "core/fp16.h"
#include "ops/operands.h"
#include "ops/product.h"
#include "ops/quant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PARAMS_P(name) sizeof(tn_##name##_params)
#define PARAMS_N(name) 0
#define V TN_OP_VIEW
#define A TN_OP_ALIAS
#define B TN_OP_ALIAS_1
#define F TN_OP_FUSED
#define I TN_OP_INPLACE
#define M TN_OP_PRODUCT
static const tn_op_info ops[TN_OP_COUNT] = {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags)                                        \
    {#name, TN_FAMILY_##family, src_min,      src_max, n_dst, PARAMS_##par(name), tol,                       \
     flags, tn_infer_##name,    tn_ref_##name},
#include <tenon/ops.def>
};
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

const char *tn_op_name(int32_t op)
{
    return op >= 0 && op < TN_OP_COUNT ? ops[op].name : "?";
}

void tn_view_set_contiguous(tn_view *v)
{
    v->nb[3] = (int64_t)tn_dtype_block_size(v->dtype);
    int64_t n = (int64_t)tn_dtype_row_size(v->dtype, v->ne[3]);
    for (int d = TN_MAX_DIMS - 2; d >= 0; d--) {
        v->nb[d] = n;
        n *= v->ne[d];
    }
}

void tn_step_set_dst(tn_step *step, int32_t i, tn_dtype dtype, int32_t n_dims, const int64_t *ne)
{
    tn_view *v = &step->dst[i];
    *v = (tn_view){.dtype = dtype, .n_dims = n_dims};
    for (int d = 0; d < TN_MAX_DIMS; d++) v->ne[d] = ne[d];
    tn_view_set_contiguous(v);
}

const char *tn_view_text(const tn_view *v, char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, "%s [", tn_dtype_name(v->dtype));
    for (int d = TN_MAX_DIMS - v->n_dims; d < TN_MAX_DIMS && n < size; d++)
        n += (size_t)snprintf(buf + n, size - n, "%lld%s", (long long)v->ne[d],
                              d + 1 < TN_MAX_DIMS ? ", " : "");
    if (n < size) snprintf(buf + n, size - n, "]");
    return buf;
}

bool tn_view_same_shape(const tn_view *a, const tn_view *b)
{
    return memcmp(a->ne, b->ne, sizeof a->ne) == 0;
}

static const char *source_name(const tn_step *step, int32_t src, char (*buf)[32])
{
    return tn_source_name(step->op, step->params, src, *buf, sizeof *buf);
}

tn_status tn_need_dtype(tn_context *ctx, const tn_step *step, int32_t src, tn_dtype dtype)
{
    char name[32];
    if (step->src[src].dtype == dtype) return TN_OK;
    return tn_fail(ctx, TN_ERR_TYPE, "%s: %s is %s, must be %s", tn_op_name(step->op),
                   source_name(step, src, &name), tn_dtype_name(step->src[src].dtype), tn_dtype_name(dtype));
}

tn_status tn_need_float_rows(tn_context *ctx, const tn_step *step, int32_t src)
{
    char name[32];
    tn_status status = tn_need_dtype(ctx, step, src, TN_TYPE_F32);
    if (status != TN_OK) return status;
    if (!tn_view_rows_contiguous(&step->src[src]))
        return tn_fail(ctx, TN_ERR_SHAPE, "%s: the last dimension of %s is strided; copy it first",
                       tn_op_name(step->op), source_name(step, src, &name));
    return TN_OK;
}

tn_status tn_need_vector(tn_context *ctx, const tn_step *step, int32_t src, int64_t n)
{
    char name[32];
    tn_status status = tn_need_float_rows(ctx, step, src);
    if (status != TN_OK) return status;
    const tn_view *v = &step->src[src];
    if (tn_view_n_rows(v) == 1 && v->ne[3] == n) return TN_OK;
    return tn_fail(ctx, TN_ERR_SHAPE, "%s: %s has %lld x %lld values, must be a vector of %lld",
                   tn_op_name(step->op), source_name(step, src, &name), (long long)tn_view_n_rows(v),
                   (long long)v->ne[3], (long long)n);
}

static char *element(const tn_view *v, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    return (char *)v->data + i0 * v->nb[0] + i1 * v->nb[1] + i2 * v->nb[2] + i3 * v->nb[3];
}

// Quantised rows are read a block at a time: slow, and obviously right.
static double get_quantised(const tn_view *v, const char *row, int64_t j)
{
    float block[256];
    int64_t n = tn_dtype_block_elems(v->dtype);
    const char *p = row + j / n * (int64_t)tn_dtype_block_size(v->dtype);
    tn_quant_info_get(v->dtype)->to_f32(p, block, n);
    return block[j % n];
}

double tn_view_get(const tn_view *v, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    const char *p = element(v, i0, i1, i2, i3);
    switch (v->dtype) {
    case TN_TYPE_F32: {
        float f;
        memcpy(&f, p, sizeof f);
        return f;
    }
    case TN_TYPE_I32: {
        int32_t i;
        memcpy(&i, p, sizeof i);
        return i;
    }
    case TN_TYPE_F16: return tn_load_f16(p);
    case TN_TYPE_BF16: return tn_bf16_to_f32(tn_load_u16(p));
    default:
        if (tn_dtype_block_elems(v->dtype) == 1) return get_quantised(v, p, 0); // rows may be strided
        return get_quantised(v, element(v, i0, i1, i2, 0), i3);
    }
}

void tn_view_set(const tn_view *v, int64_t i0, int64_t i1, int64_t i2, int64_t i3, double value)
{
    char *p = element(v, i0, i1, i2, i3);
    if (v->dtype == TN_TYPE_F16) {
        tn_store_u16(p, tn_f32_to_f16((float)value));
    } else if (v->dtype == TN_TYPE_BF16) {
        tn_store_u16(p, tn_f32_to_bf16((float)value));
    } else if (v->dtype == TN_TYPE_I32) {
        int32_t i = (int32_t)value;
        memcpy(p, &i, sizeof i);
    } else {
        float f = (float)value;
        memcpy(p, &f, sizeof f);
    }
}

static void row_index(const tn_view *v, int64_t r, int64_t i[3])
{
    i[2] = r % v->ne[2];
    i[1] = r / v->ne[2] % v->ne[1];
    i[0] = r / v->ne[2] / v->ne[1];
}

double tn_view_get_row(const tn_view *v, int64_t r, int64_t j)
{
    int64_t i[3];
    row_index(v, r, i);
    return tn_view_get(v, i[0], i[1], i[2], j);
}

void tn_view_set_row(const tn_view *v, int64_t r, int64_t j, double value)
{
    int64_t i[3];
    row_index(v, r, i);
    tn_view_set(v, i[0], i[1], i[2], j, value);
}

double tn_step_work(const tn_step *step)
{
    double n = 0.0, each = 1.0;
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!tn_op_aliases(tn_op_info_get(step->op)->flags, i)) n += (double)tn_view_n_elems(&step->dst[i]);
    if (step->op == TN_OP_attention) // all keys that there may be, half of them by causality
        each = (double)step->src[TN_SRC_attention_block_table].ne[3] *
               (double)step->src[TN_SRC_attention_k].ne[2];
    else if (tn_op_takes_weights(step->op) && step->n_src > 1)
        each = (double)step->src[0].ne[3]; // products; too much for others, which are small
    return n * each;
}
