// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of 9 to 88 rows: what the host files of the skinny kernels share, and what
// product/gemm/gemm_id.c uses of them.
#ifndef TN_CUDA_SKINNY_H
#define TN_CUDA_SKINNY_H

#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/product/skinny/skinny_stream_args.h"

// Types of skinny_blocks.cuh, which reads x as skinny_prepare.cu writes it.
bool tn_cuda_skinny_block_type(tn_dtype type);
// Those of them whose weights are multiplied without being rounded, but those of Q6_K by skinny_stream.cuh.
bool tn_cuda_skinny_exact_type(tn_dtype type);
// Types of skinny_codebook.cu.
bool tn_cuda_skinny_codebook_type(tn_dtype type);

// Rows of x at most; more with weights of some types that skinny_stream.cuh multiplies.
enum { TN_SKINNY_MAX_ROWS = 64, TN_SKINNY_STREAM_MAX_ROWS = 88 };
// Whether the skinny kernels can run a product without experts, as to everything but types of weights.
bool tn_cuda_skinny_fits(const tn_cuda *cuda, const tn_product *p);
size_t tn_cuda_skinny_dense_scratch(const tn_cuda *cuda, const tn_product *p);
TN_MUST_USE tn_status tn_cuda_skinny_dense_launch(const tn_cuda_launch *l, const tn_product *p);

// Bytes of so many tiles of 32 rows of x, as the kernels for block types read it.
size_t tn_cuda_skinny_block_x_size(int64_t n_tiles, int64_t k);
// x into scratch in this order; `a` says where.
TN_MUST_USE tn_status tn_cuda_skinny_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a,
                                               const tn_product *p);
// Multiplies by the weights in `a`, which have one type. n_row_tiles: tiles of 32 rows of x of all groups;
// without groups those of all rows for block types, and 1 for others.
TN_MUST_USE tn_status tn_cuda_skinny_run(const tn_cuda_launch *l, const tn_product *p, tn_cuda_skinny_args *a,
                                         tn_dtype type, int64_t n_row_tiles);

// --- how a product of block types is cut (skinny_shape.c) --------------------------------------------

typedef struct tn_cuda_skinny_shape {
    int32_t tiles, warps; // tiles of 16 rows of weights of a warp; warps of a block
    int32_t rows;         // of weights of a tile: 16 tiles of all warps
    int32_t slots;        // stages in shared memory
    int32_t n_tiles, blocks;
    int64_t time; // estimated, ns
} tn_cuda_skinny_shape;

// The shape that is estimated to be the fastest, with n_columns tiles of rows of x side by side, or the one
// that tenon-check asks for. Sets the first tiles of the weights in `a`.
tn_cuda_skinny_shape tn_cuda_skinny_shape_select(const tn_cuda *cuda, tn_cuda_skinny_args *a, tn_dtype type,
                                                 int64_t n_columns);
// Dynamic shared memory of a block, bytes.
uint32_t tn_cuda_skinny_shared_size(const tn_cuda_skinny_shape *s, tn_dtype type);
// Sets the first tiles of weights, for tiles of so many rows of weights. Returns the number of tiles.
int32_t tn_cuda_skinny_set_tiles(tn_cuda_skinny_seg *seg, int32_t n_segs, bool glu, int32_t rows);

// --- warps that stream their own weights (skinny_stream.c) -------------------------------------------

// Whether all weights of a product without experts are multiplied by skinny_stream.cuh, so that x has its
// order.
bool tn_cuda_skinny_uses_stream(const tn_cuda *cuda, const tn_product *p);
// Rows of x at most that skinny_stream.cuh has kernels for with the weights of a product; 0: it has none.
int32_t tn_cuda_skinny_stream_rows(const tn_cuda *cuda, const tn_product *p);
// Rows of x that a kernel for m rows computes.
int32_t tn_cuda_skinny_stream_columns(int64_t m);
// Whether a step reads stages of x that the step before it leaves, and the bytes of those of m rows.
bool tn_cuda_skinny_reads_staged(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_skinny_staged_size(int64_t m, int64_t k);
// Whether the weights of a product have two types that can share a launch, in the order of the kernels.
bool tn_cuda_skinny_has_pair(const tn_product *p, tn_dtype *type, tn_dtype *other);
// False where weights of two types have more rows than all blocks of a launch hold: those are not multiplied
// in passes.
bool tn_cuda_skinny_stream_fits(const tn_cuda *cuda, const tn_product *p);
// Multiplies by the weights in `b`, of which the last `others` have the type `other`. others = 0: all of them
// have one type, which is `type` and `other`.
TN_MUST_USE tn_status tn_cuda_skinny_stream_run(const tn_cuda_launch *l, const tn_cuda_skinny_args *b,
                                                tn_dtype type, tn_dtype other, int32_t others);

#endif
