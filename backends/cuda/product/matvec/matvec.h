// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with up to 8 rows of x, which read weights as they are: what their host files share, and
// what steps beside them ask.
#ifndef TN_CUDA_MATVEC_H
#define TN_CUDA_MATVEC_H

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/runtime/kernel.h"
#include "ops/product.h"

enum { TN_MATVEC_ALIGN = 16 }; // of wide copies, bytes

// --- rows and types (matvec_plan.c) ------------------------------------------------------------------

// Types of which the kernels quantise the activations, and those that they multiply by f32.
bool tn_cuda_matvec_quantises(tn_dtype type);
bool tn_cuda_matvec_plain(tn_dtype type);
// Bytes from one row to the next, counted over all outer dimensions; -1: rows do not lie at equal distances.
int64_t tn_cuda_row_distance(const tn_view *v);
// Whether all weights lie where wide copies can read them.
bool tn_cuda_matvec_aligned(const tn_product *p);
// Arguments of a launch with those weights of the product that have type `type`; nothing is planned yet.
tn_cuda_matvec_args tn_cuda_matvec_args_get(const tn_product *p, tn_dtype type);
// The same with the quantised rows of the launch.
tn_cuda_matvec_args tn_cuda_matvec_launch_args(const tn_cuda_launch *l, const tn_product *p, tn_dtype type);

// --- how rows, slices and shared memory are laid out (matvec_plan.c) ---------------------------------

// A plan fills `a` and the grid, whose y is set before: the number of pairs of token and expert, or 1.
// max_blocks: blocks that run at the same time. Returns false where the operands do not fit, and then nothing
// has to hold of `a`. This one is for n_columns (1, 2, 4, 8) rows of x at a time.
bool tn_cuda_matvec_plan(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type,
                         int32_t n_columns, tn_cuda_grid *grid);
// Whether there are kernels for tiles of these weights on tensor cores.
bool tn_cuda_matvec_has_tiles(const tn_cuda *cuda, const tn_cuda_matvec_args *a, tn_dtype type);
// For one row of x on tensor cores, in tiles of 16 rows of the weight; leaves `a` as it was if it returns
// false.
bool tn_cuda_matvec_plan_tiles(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type,
                               tn_cuda_grid *grid);
// The same for a->n_columns (2 to 8) rows of x at a time.
bool tn_cuda_matvec_plan_rows(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type,
                              tn_cuda_grid *grid);
// The same for rows of x that are stored quantised and come in chunks by the plan above, which `a` has: two
// blocks share k. False: there are no kernels for it, and `a` and the grid are as before.
bool tn_cuda_matvec_plan_halves(const tn_cuda *cuda, tn_cuda_matvec_args *a, tn_dtype type,
                                tn_cuda_grid *grid);
// Cuts the tiles of blocks with so many rows of tiles into slices along k for the warps. False: sums do not
// fit.
bool tn_cuda_matvec_slice_tiles(tn_cuda_matvec_args *a, int32_t warps, int64_t rows);
// Lays the rings of a plan of tiles out anew, with slots for all tiles of a warp where shared memory has
// them: then all copies may be under way at once, and what remains of shared memory is for the next kernel.
// shared: bytes that a block may have; rows: of tiles of a block. Returns the slots to fill first.
int32_t tn_cuda_matvec_fit_rings(int32_t shared, tn_cuda_matvec_args *a, tn_dtype type, int32_t rows,
                                 tn_cuda_grid *grid);

// --- quantised rows (runtime/staged.h); data of the views are bound ---------------------------------------

// Whether a step can write its result as quantised rows too, and whether it can read its x so.
bool tn_cuda_matvec_writes_quantised(const tn_cuda *cuda, const tn_step *step);
bool tn_cuda_matvec_reads_quantised(const tn_step *step);

// --- experts: steps that share a launch with the one before (matvec_experts.c) -----------------------

// Whether a matmul_id_glu step can do the routing of the moe_route step before it, whose result its ids are.
bool tn_cuda_matvec_runs_route(const tn_cuda *cuda, const tn_step *step, const tn_step *route);
// matmul_id_glu on tensor cores. False: tiles do not fit, and nothing was launched.
bool tn_cuda_matvec_glu_launch(const tn_cuda_launch *l, const tn_product *p, tn_status *status);
// Whether a product of experts and the moe_sum or moe_combine after it can be one launch, as to types and
// sizes; data of the views are bound.
bool tn_cuda_matvec_fuses_sum(const tn_cuda *cuda, const tn_step *product, const tn_step *sum);
// l->step is the sum, l->product the product.
TN_MUST_USE tn_status tn_cuda_matvec_sum_launch(const tn_cuda_launch *l);

#endif
