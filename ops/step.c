// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What shape rules and references share: views, common checks, and access to single elements. Every op calls
// these functions, so nothing here may need the op table (ops.c), which refers to every op.
#include "core/fp16.h"
#include "ops/operands.h"
#include "ops/ops.h"
#include "ops/quant.h"

#include <stdio.h>
#include <string.h>

const char *tn_op_name(int32_t op)
{
    static const char *const names[TN_OP_COUNT] = {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results) #name,
#include <tenon/ops.def>
    };
    return op >= 0 && op < TN_OP_COUNT ? names[op] : "?";
}

void tn_view_set_contiguous(tn_view *v)
{
    v->nb[3] = (int64_t)tn_dtype_block_size(v->dtype);
    int64_t n = (int64_t)tn_dtype_row_size(v->dtype, v->ne[3]);
    for (int d = TN_MAX_DIMS - 2; d >= 0; d--) {
        v->nb[d] = n;
        n = v->ne[d] > 0 && n > INT64_MAX / v->ne[d] ? INT64_MAX : n * v->ne[d];
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
