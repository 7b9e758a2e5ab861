// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on tensor cores: what their host files share.
//
// All of them round x into scratch first. A row of x, or of expanded weights, is then `ld` elements of 16
// bits, which are called packed16 whatever they hold: one bf16 or f16, half of a tf32, two e4m3 (TN_GEMM_* in
// gemm_args.h).
#ifndef TN_CUDA_GEMM_H
#define TN_CUDA_GEMM_H

#include "backends/cuda/product/gemm/gemm_blocks_args.h"
#include "backends/cuda/runtime/kernel.h"
#include "ops/product.h"

// --- gemm_prepare.c ----------------------------------------------------------------------------------

bool tn_cuda_weights_are(const tn_product *p, tn_dtype type);
bool tn_cuda_weights_all(const tn_product *p, bool (*is)(tn_dtype type));
bool tn_cuda_gemm_type_known(tn_dtype type);
// The activation of the result, or of gate.
int32_t tn_cuda_gemm_act(const tn_product *p);
bool tn_cuda_gemm_act_known(int32_t act);
// Whether a product without experts has types, sizes and strides that the kernels on tensor cores can
// address.
bool tn_cuda_gemm_operands_fit(const tn_cuda *cuda, const tn_product *p);
// The same, and there are enough rows of x for them.
bool tn_cuda_gemm_fits(const tn_cuda *cuda, const tn_product *p);
// Bytes from one row to the next where that is one number, else 0.
int64_t tn_cuda_row_stride(const tn_view *v);
// The TN_GEMM_* that a product runs in, given the TN_PRECISION_* of its step; -1: this device has no tensor
// cores for what is asked for.
int32_t tn_cuda_gemm_mode(const tn_cuda *cuda, const tn_product *p, int32_t precision);
// Packed16 of a row of k values.
int64_t tn_cuda_gemm_row_packed16(int32_t mode, int64_t k);
// Scales of so many rows of x of k values, f32.
int64_t tn_cuda_gemm_x_scales(int32_t mode, int64_t rows, int64_t k);
// Rows of x are scaled, and those of weights.
bool tn_cuda_gemm_scales_x(int32_t mode);
bool tn_cuda_gemm_scales_w(int32_t mode);
// The weight can be multiplied where it is; _type: if its address is a multiple of 16 bytes.
bool tn_cuda_gemm_direct(int32_t mode, const tn_view *w);
bool tn_cuda_gemm_direct_type(int32_t mode, const tn_view *w);
// x of the product, normed if it has a norm, to rows of packed16: `a` says where and how.
TN_MUST_USE tn_status tn_cuda_gemm_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a,
                                             const tn_product *p);
// Rows of x as the product reads them: in the scratch, or as the step before has written them. Scales of e4m3
// follow at tn_cuda_gemm_x_size.
const void *tn_cuda_gemm_x(const tn_cuda_launch *l, const tn_product *p);
// Bytes of rows of packed16, of `rows` rows of k values, up to where scales of them are.
size_t tn_cuda_gemm_x_size(int32_t mode, int64_t rows, int64_t k);
// Rows of a weight, of each group, to rows of packed16: `a` says which and where.
TN_MUST_USE tn_status tn_cuda_gemm_prepare_w(const tn_cuda_launch *l, tn_cuda_gemm_w_args a, const tn_view *w,
                                             int64_t n_groups);

// Makes the weights of a product in e4m3 once (runtime/derived.h), if `kernel` multiplies those; the bytes
// that takes.
TN_MUST_USE tn_status tn_cuda_gemm_derive_weights(tn_cuda *cuda, const tn_step *step,
                                                  const tn_cuda_kernel *kernel);
size_t tn_cuda_gemm_derived_size(const tn_step *step, const tn_cuda_kernel *kernel);
// What was made from a weight: rows followed by their scales at tn_cuda_gemm_x_size, or for TN_GEMM_NORM the
// largest Euclidean norm of a row; NULL: nothing.
void *tn_cuda_gemm_derived(const tn_cuda_launch *l, int32_t mode, const tn_view *w);
// The largest Euclidean norm of a row of a weight, to memory of the device.
TN_MUST_USE tn_status tn_cuda_gemm_measure(const tn_cuda_launch *l, const tn_view *w, float *norm);

// --- gemm_tiles.c ------------------------------------------------------------------------------------

// Describes a matrix of size[0] rows of size[1] packed16 for copies in boxes of box_rows by 64, with the
// 128-byte swizzle. Copies need not know what the bits mean.
TN_MUST_USE tn_status tn_cuda_gemm_map(const tn_cuda_launch *l, tn_cuda_tensor_map *to, const void *data,
                                       const int64_t *size, int32_t box_rows);
// Whether the e4m3 kernel of a gated pair can leave its result as x of the next product in e4m3.
bool tn_cuda_gemm_writes_e4m3(const tn_cuda *cuda, const tn_step *step);
// Bytes for the sums of tiles whose k several blocks share.
size_t tn_cuda_gemm_partial_size(const tn_cuda *cuda, int32_t mode, int64_t m);
// Multiplies: x, weights, results and sizes of `a` are set, and `partial` if blocks may share tiles. Tiles
// and tensor maps are set here.
TN_MUST_USE tn_status tn_cuda_gemm_run(const tn_cuda_launch *l, tn_cuda_gemm_args *a, int32_t mode, bool glu);

// --- weights of block types as they are (gemm_blocks.c) ----------------------------------------------

// Types, strides and k; accepts: and rows, without experts.
bool tn_cuda_gemm_blocks_fits(const tn_cuda *cuda, const tn_product *p, int32_t mode);
bool tn_cuda_gemm_blocks_accepts(const tn_cuda *cuda, const tn_product *p, int32_t mode);
// Whether it can leave a gated pair as f16 rows for such a product, or multiply such rows; alignment apart.
bool tn_cuda_gemm_blocks_packs(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_gemm_blocks_scratch(const tn_cuda *cuda, const tn_product *p);
TN_MUST_USE tn_status tn_cuda_gemm_blocks_launch(const tn_cuda_launch *l, const tn_product *p);
// Of experts with so many rows of x on average: rows of x of a tile, and the launch for weights of one type.
int32_t tn_cuda_gemm_blocks_tile_rows(tn_dtype type, int64_t rows);
TN_MUST_USE tn_status tn_cuda_gemm_blocks_run(const tn_cuda_launch *l, tn_cuda_gemm_blocks_args *a,
                                              const tn_product *p, int32_t tile_rows);

// --- matmuls without experts (gemm.c), of experts (gemm_id.c) ----------------------------------------

size_t tn_cuda_gemm_dense_scratch(const tn_cuda *cuda, const tn_product *p, int32_t precision);
TN_MUST_USE tn_status tn_cuda_gemm_dense_launch(const tn_cuda_launch *l, const tn_product *p);

// Types, sizes and strides.
bool tn_cuda_gemm_id_fits(const tn_cuda *cuda, const tn_product *p);
// Whether the skinny kernels for block types run it, because experts have at most some 40 rows each.
bool tn_cuda_gemm_id_is_skinny_blocks(const tn_cuda *cuda, const tn_product *p, int32_t precision);
size_t tn_cuda_gemm_id_scratch(const tn_cuda *cuda, const tn_product *p, int32_t precision);
TN_MUST_USE tn_status tn_cuda_gemm_id_launch(const tn_cuda_launch *l, const tn_product *p);

#endif
