// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the matrix products share.
#ifndef TN_OPS_MATMUL_H
#define TN_OPS_MATMUL_H

#include "ops/ops.h"

// Checks x (source 0) against the weight w_src [n, k].
tn_status tn_infer_matmul_common(tn_context *ctx, tn_step *step, int32_t w_src);
// Same for the experts [n_expert, n, k] at w_src and ids I32 [T, U] at ids_src; x is [T, U or 1, k].
tn_status tn_infer_matmul_id_common(tn_context *ctx, tn_step *step, int32_t w_src, int32_t ids_src);
// An rms_norm that rows of x go through first; weight NULL: none.
typedef struct tn_ref_norm {
    const tn_view *weight;
    double eps;
} tn_ref_norm;
// Checks the norm weight at source i.
tn_status tn_infer_norm_weight(tn_context *ctx, const tn_step *step, int32_t i);
// Dot product of a packed row with row x_row of x, normed first if `norm` has a weight.
double tn_ref_dot_normed(const tn_view *w, const char *w_row, const tn_view *x, int64_t x_row, const tn_ref_norm *norm);
double tn_ref_dot(const tn_view *w, const char *w_row, const tn_view *x, int64_t x_row);
// x[t, u or 0] . w[ids[t, u]][j]; NaN-free zero for ids outside the table.
double tn_ref_dot_id(const tn_view *w, const tn_view *x, const tn_view *ids, int64_t t, int64_t u, int64_t j);

#endif
