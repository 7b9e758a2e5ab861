// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a row of kernels.def consists of, and what its launch function is given.
#ifndef TN_CUDA_KERNEL_H
#define TN_CUDA_KERNEL_H

#include "backends/cuda/runtime/args.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/layout.h"
#include "ops/step.h"

typedef struct tn_cuda_launch {
    tn_cuda *cuda;
    const tn_step *step; // operands are bound: data are addresses on the device
    char *scratch;       // at least what the row's scratch() asked for, 256-byte aligned
    // Rows rounded by a step before, to be used instead of x, and those to make of the result (handover.h); NULL: none.
    const tn_cuda_quantised *quantised_x, *quantised_y;
    const tn_step *rope; // a rope_cache step that this launch does too, or NULL
    const tn_step *product; // likewise a matmul_id step whose results this launch sums
    const tn_step *route;   // a moe_route step before that left its logits in the scratch, of which this launch chooses the experts
    bool defers_route;     // such a step
    bool writes_packed16;       // the result is bf16, rows of it one after another, and so is x with reads_packed16
    bool reads_packed16;
    bool early;             // the step's integers (lengths, tables, positions) can be read before the predecessor has ended: no step writes them
    bool alone;             // does not start before all that was launched has ended: the first of a run, and what reads computed matrices ahead
} tn_cuda_launch;

// Blocks, threads of a block, dynamic shared memory of a block.
typedef struct tn_cuda_grid {
    uint32_t x, y, z;
    uint32_t threads;
    uint32_t shared;
    uint32_t cluster; // blocks along x in a cluster; 0 or 1: none
    bool alone;       // does not start before its predecessor has ended
} tn_cuda_grid;

// Launch functions call it, once per kernel, with the name of an entry point of the module and its one
// argument struct. Inside a capture nothing runs yet. Zero blocks launch nothing.
TN_MUST_USE tn_status tn_cuda_run(const tn_cuda_launch *l, int32_t module, const char *entry, const tn_cuda_grid *grid,
                                  const void *args);

typedef bool (*tn_cuda_accepts_fn)(const tn_cuda *cuda, const tn_step *step); // data pointers are NULL
typedef size_t (*tn_cuda_scratch_fn)(const tn_cuda *cuda, const tn_step *step);
typedef tn_status (*tn_cuda_launch_fn)(const tn_cuda_launch *l);

// What a kernel rounds the operands of a matrix product to (the check tool judges it on the same rounded input), and what it can hand on.
enum {
    TN_CUDA_ROUNDS_I8 = 1,   // x: int8 per 16 elements, scale max|x| / 127
    TN_CUDA_ROUNDS_BF16 = 2, // x and expanded weights
    TN_CUDA_ROUNDS_F16 = 4,  // x, of each row times a power of two
    TN_CUDA_ROUNDS_WEIGHTS_F16 = 8, // and the weights, once expanded
    TN_CUDA_WRITES_QUANTISED = 16, // can hand rows on, see handover.h
    TN_CUDA_READS_QUANTISED = 32,
    TN_CUDA_FUSES_ROPE = 64, // can do the rope_cache step before it
    TN_CUDA_FUSES_PRODUCT = 0x400, // can do the matmul_id step before it, if that has TN_CUDA_READS_QUANTISED
    TN_CUDA_DEFERS_ROUTE = 0x800, // can leave choosing to the matmul_id_glu step after it, likewise
    TN_CUDA_ROUNDS_TF32 = 0x100, // x and weights
    TN_CUDA_ROUNDS_E4M3 = 0x200, // x and weights, of each row times a power of two
    TN_CUDA_ONLY_TUNED = 0x1000, // by cuBLASLt (blas.h): never runs but where tuning found it the fastest, and after tn_cuda_blas_prepare
    TN_CUDA_WRITES_PACKED16 = 0x2000, // can leave its result as the bf16 rows that a product with TN_CUDA_READS_PACKED16 multiplies
    TN_CUDA_READS_PACKED16 = 0x4000,
    TN_CUDA_FINITE_ROWS = 128, // a row of activations with values that are not finite counts as NaN
};

typedef struct tn_cuda_kernel {
    int32_t op;
    const char *name;
    tn_cuda_accepts_fn accepts;
    tn_cuda_scratch_fn scratch; // NULL: none
    tn_cuda_launch_fn launch;
    int32_t flags;
} tn_cuda_kernel;

// The row of kernels.def that runs the step: the one found fastest by tuning (tune.h), else the first that takes it; NULL if none does.
const tn_cuda_kernel *tn_cuda_find_kernel(const tn_cuda *cuda, const tn_step *step);
const tn_cuda_kernel *tn_cuda_kernels(int32_t *count);

static inline tn_cuda_view tn_cuda_view_of(const tn_view *v)
{
    return (tn_cuda_view){v->data, {v->ne[0], v->ne[1], v->ne[2], v->ne[3]}, {v->nb[0], v->nb[1], v->nb[2], v->nb[3]}};
}

static inline int64_t tn_div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// Scratch of rows in kernels.def.
size_t tn_cuda_scratch_argmax(const tn_cuda *cuda, const tn_step *step);

#define TN_CUDA_KERNEL(op, name, accepts, scratch, launch, flags)                                              \
    bool accepts(const tn_cuda *cuda, const tn_step *step);                                                    \
    tn_status launch(const tn_cuda_launch *l);
#include "backends/cuda/kernels.def"

// The scratch functions that kernels.def names.
size_t tn_cuda_gemm_scratch(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_blas_scratch(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_skinny_scratch(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_gemm_id_scratch(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_scratch_moe_route(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_attention_decode_scratch(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_attention_wide_scratch(const tn_cuda *cuda, const tn_step *step);

#endif
