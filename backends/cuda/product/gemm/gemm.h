// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on tensor cores: what gemm*.c share.
#ifndef TN_CUDA_GEMM_H
#define TN_CUDA_GEMM_H

#include "backends/cuda/product/skinny/skinny_args.h"
#include "backends/cuda/product/gemm/gemm_args.h"
#include "backends/cuda/runtime/kernel.h"

// Where the optional operands of a product are; NULL: absent.
typedef struct tn_cuda_gemm_operands {
    const tn_view *bias[TN_GEMM_MAX_SEGS], *residual, *norm;
    float eps;
    int32_t act;
} tn_cuda_gemm_operands;

tn_cuda_gemm_operands tn_cuda_gemm_find(const tn_step *step);
int32_t tn_cuda_gemm_n_weights(const tn_step *step);
bool tn_cuda_gemm_all_weights(const tn_step *step, tn_dtype type);
bool tn_cuda_gemm_type_known(tn_dtype type);
bool tn_cuda_gemm_act_known(int32_t act);
// TN_GEMM_* that products of the step run in: what its precision asks for; -1: tensor cores of this device have no such.
int32_t tn_cuda_gemm_mode(const tn_cuda *cuda, const tn_step *step);
// Units of a row of k values.
int64_t tn_cuda_gemm_row_units(int32_t mode, int64_t k);
// Rows of x are scaled, and those of weights.
bool tn_cuda_gemm_scales_x(int32_t mode);
bool tn_cuda_gemm_scales_w(int32_t mode);
// The weight itself can be multiplied in this mode.
bool tn_cuda_gemm_direct(int32_t mode, const tn_view *w);
// Products that tensor cores take at all.
bool tn_cuda_gemm_accepts(const tn_cuda *cuda, const tn_step *step);
// Bytes from one row to the next where that is one number, else 0.
int64_t tn_cuda_row_stride(const tn_view *v);
// x of the step, normed if it has a norm, to rows of units: `a` says where and how.
TN_MUST_USE tn_status tn_cuda_gemm_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a, const tn_cuda_gemm_operands *o);
// Rows of x as the product reads them: in the scratch, or as the step before made them.
const void *tn_cuda_gemm_x(const tn_cuda_launch *l);
// Rows of a weight, of each group, to rows of units: `a` says which and where.
TN_MUST_USE tn_status tn_cuda_gemm_prepare_w(const tn_cuda_launch *l, tn_cuda_gemm_w_args a, const tn_view *w, int64_t n_groups);
// Multiplies: x, weights, results and sizes of `a` are set; tiles, clusters and maps are chosen here (gemm_tiles.c).
TN_MUST_USE tn_status tn_cuda_gemm_run(const tn_cuda_launch *l, tn_cuda_gemm_args *a, int32_t mode, bool glu);

// --- 9 to 64 rows (skinny.c) ----------------------------------------------------------------------------

// Types of product/skinny/skinny_blocks.cuh, which wants x as product/skinny/skinny_prepare.cu makes it; of these, those whose weights are not rounded.
bool tn_cuda_skinny_block_type(tn_dtype type);
bool tn_cuda_skinny_exact_type(tn_dtype type);
bool tn_cuda_skinny_all_weights(const tn_step *step, bool (*is)(tn_dtype type));
// Bytes of so many tiles of 32 rows of x; `a` says where they go.
size_t tn_cuda_skinny_block_x_size(int64_t n_tiles, int64_t k);
TN_MUST_USE tn_status tn_cuda_skinny_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a, const tn_cuda_gemm_operands *o);
// Tiles of 32 rows of x in groups, or for block types of all rows.
TN_MUST_USE tn_status tn_cuda_skinny_run(const tn_cuda_launch *l, tn_cuda_skinny_args *a, tn_dtype type, int64_t row_tiles);

#endif
