// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The op table: shape rules and references, one row per op, generated from ops.def. Below it the helpers that
// shape rules and references share, which are in step.c.
//
// A shape rule reads the shapes of the sources (data pointers are NULL) and fills type and shape of the
// results; strides of results are set by the caller (contiguous) except for views, which set strides and
// offset themselves. It rejects everything the reference cannot compute, with a message.
#ifndef TN_OPS_OPS_H
#define TN_OPS_OPS_H

#include "core/context.h"
#include "ops/step.h"

typedef tn_status (*tn_infer_fn)(tn_context *ctx, tn_step *step);
typedef void (*tn_ref_fn)(const tn_step *step);

// Families (families.def), by which files and kernels are grouped.
enum {
#define TN_FAMILY(name, set) TN_FAMILY_##name,
#include "ops/families.def"
    TN_FAMILY_COUNT
};

// Sets of ops, so that one row of a backend's kernels.def can serve several: each op is a set by itself, each
// family is one, and some parts of the family `product` are.
enum {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results) TN_SET_##name,
#include <tenon/ops.def>
#define TN_FAMILY(name, set) TN_SET_##set,
#include "ops/families.def"
    TN_SET_PRODUCT_DENSE,  // matmuls without experts
    TN_SET_PRODUCT_ID,     // matmuls with experts
    TN_SET_PRODUCT_LINEAR, // matmuls without experts and without GLU
    TN_SET_COUNT
};
bool tn_op_set_has(int32_t set, int32_t op); // both in range

enum {
    TN_OP_VIEW = 1,
    TN_OP_ALIAS = 2,
    TN_OP_FUSED = 4,
    TN_OP_INPLACE = 8,
    TN_OP_ALIAS_1 = 16,
    TN_OP_PRODUCT = 32
};

typedef struct tn_op_info {
    const char *name;
    int32_t family; // TN_FAMILY_*
    int32_t n_src_min, n_src_max, n_dst;
    size_t params_size; // 0: none
    double nmse;        // tolerance of kernels against the reference
    int32_t flags;
    tn_infer_fn infer;
    tn_ref_fn ref; // NULL for views
} tn_op_info;

const tn_op_info *tn_op_info_get(int32_t op); // op must be in range
const char *tn_family_name(int32_t family);   // "norm"; family must be in range

// Sets dst i of the step to a contiguous tensor.
void tn_step_set_dst(tn_step *step, int32_t i, tn_dtype dtype, int32_t n_dims, const int64_t *ne);
// Fills strides of a contiguous view of its type and shape; those of a shape that no memory holds end at
// INT64_MAX.
void tn_view_set_contiguous(tn_view *v);
// "[2, 3] F32" into buf, for messages; returns buf.
const char *tn_view_text(const tn_view *v, char *buf, size_t size);
// True if a and b have the same four extents.
bool tn_view_same_shape(const tn_view *a, const tn_view *b);
// Result i has the storage of source i by the rule of the op.
static inline bool tn_op_aliases(int32_t flags, int32_t i)
{
    return (i == 0 && (flags & TN_OP_ALIAS)) || (i == 1 && (flags & TN_OP_ALIAS_1));
}
// Whether block types among the sources are weights, which devices may keep in a layout of their own; caches
// are quantised too, but by kernels, and stay raw blocks.
static inline bool tn_op_takes_weights(int32_t op)
{
    return op != TN_OP_attention && op != TN_OP_cache_write && op != TN_OP_rope_cache;
}
// Source i is given (optional sources may be missing).
static inline bool tn_step_has_src(const tn_step *step, int32_t i)
{
    return i < step->n_src && step->src[i].ne[3] > 0;
}

// Common checks of shape rules; each returns TN_OK or fails with a message that names the op.
tn_status tn_need_dtype(tn_context *ctx, const tn_step *step, int32_t src, tn_dtype dtype);
tn_status tn_need_float_rows(tn_context *ctx, const tn_step *step, int32_t src); // F32, last dim contiguous
tn_status tn_need_vector(tn_context *ctx, const tn_step *step, int32_t src, int64_t n); // F32 [n]

// Reading and writing single elements of any plain type, and rows of any type, in references.
double tn_view_get(const tn_view *v, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
void tn_view_set(const tn_view *v, int64_t i0, int64_t i1, int64_t i2, int64_t i3, double value);
// Element j of outer row r.
double tn_view_get_row(const tn_view *v, int64_t r, int64_t j);
void tn_view_set_row(const tn_view *v, int64_t r, int64_t j, double value);

// Scalar definitions used by several references.
double tn_scalar_unary(int32_t kind, double x, double a, double b);
double tn_scalar_glu(const tn_glu_params *p, double gate, double up);
const char *tn_unary_name(int32_t kind);

#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                      \
    tn_status tn_infer_##name(tn_context *ctx, tn_step *step);                                               \
    void tn_ref_##name(const tn_step *step);
#include <tenon/ops.def>

#endif
