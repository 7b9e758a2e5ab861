// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel as runtime/ sees it: a row of kernels.def, what its launch function is given, and the launch
// itself.
#ifndef TN_CUDA_KERNEL_H
#define TN_CUDA_KERNEL_H

#include "backends/cuda/runtime/args.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/layout.h"
#include "ops/step.h"

// What a launch function is given. The steps before `step` that are not NULL here are done by this launch
// too.
typedef struct tn_cuda_launch {
    tn_cuda *cuda;
    // Not NULL: the launches are only listed. Addresses lead nowhere then, and the driver is not called.
    const tn_launch_sink *sink;
    const tn_step *step; // operands are bound: data are addresses on the device
    char *scratch;       // as many bytes as the row's scratch function asks for, aligned to 256 bytes
    // What step->join says, ready for use. Quantised rows (staged.h), NULL: none. quantised_x: x as the step
    // that made it has written it, to be read instead of x. quantised_y: where the result goes in this form
    // as well.
    const tn_cuda_quantised *quantised_x, *quantised_y;
    const tn_step *rope;    // the rope_cache step before
    const tn_step *product; // the matmul_id step before, whose results this launch sums
    const tn_step *route; // the moe_route step before: its logits are in the scratch, and this launch routes
    bool defers_route;    // this step is such a moe_route: it leaves logits in the scratch and routes nothing
    // The result, or x, is rows as the product that reads them multiplies them, one after another: bf16, e4m3
    // followed by its scales, or f16 in the order of product/gemm/gemm_blocks.cuh, those of a gated pair
    // followed by their scales, of experts also by their sorted ids (product/experts/experts_write.cuh).
    bool writes_packed16, reads_packed16;
    bool packs_f16; // with writes_packed16: the reader rounds to f16
    // No step of the plan writes the step's integers (lengths, block tables, positions), nor with `rope` the
    // caches before, so they can be read before the predecessor has ended.
    bool early;
    // The launch waits until all that was launched before has ended. True for the first launch of a run, and
    // where weights are results of steps, because kernels load weights before they wait for their
    // predecessor.
    bool alone;
} tn_cuda_launch;

typedef struct tn_cuda_grid {
    uint32_t x, y, z; // blocks
    uint32_t threads; // of a block
    uint32_t shared;  // dynamic shared memory of a block, bytes
    uint32_t cluster; // blocks along x in a cluster; 0 or 1: none
    bool alone;       // the kernel starts only when its predecessor has ended
} tn_cuda_grid;

// Launches a kernel (launch.c). Launch functions call it once per kernel, with the name of an entry point of
// the module and its one argument struct. Inside a capture nothing runs yet. Zero blocks launch nothing.
TN_MUST_USE tn_status tn_cuda_run(const tn_cuda_launch *l, int32_t module, const char *entry,
                                  const tn_cuda_grid *grid, const void *args);

// Flags of kernels.def: to what precision a kernel of a matrix product rounds its operands (the check tool
// judges it on operands rounded the same way), and what it can share with the steps beside it.
enum {
    TN_CUDA_NO_FLAGS = 0,
    TN_CUDA_ROUNDS_I8 = 1,            // x: int8 with one scale per 16 elements, max|x| / 127
    TN_CUDA_ROUNDS_BF16 = 2,          // x and expanded weights
    TN_CUDA_ROUNDS_F16 = 4,           // x, each row scaled by a power of two
    TN_CUDA_ROUNDS_WEIGHTS_F16 = 8,   // and the weights, once expanded
    TN_CUDA_ROUNDS_Q6_K = 0x8000,     // of Q6_K an integer times its scale, of 12 bits, to 11
    TN_CUDA_ROUNDS_TF32 = 0x100,      // x and weights
    TN_CUDA_ROUNDS_E4M3 = 0x200,      // x in runs of 128 and rows of weights, scaled by powers of two
    TN_CUDA_FINITE_ROWS = 0x80,       // a row of x with values that are not finite counts as a row of NaN
    TN_CUDA_WRITES_QUANTISED = 16,    // can write its result as quantised rows too (staged.h)
    TN_CUDA_READS_QUANTISED = 32,     // can read such rows instead of x
    TN_CUDA_WRITES_PACKED16 = 0x2000, // can leave its result as rows that its reader multiplies
    TN_CUDA_READS_PACKED16 = 0x4000,  // is such a product, or such attention
    TN_CUDA_FUSES_ROPE = 64,          // can do the rope_cache step before it
    TN_CUDA_FUSES_PRODUCT = 0x400,    // can do the matmul_id step before it, if that has READS_QUANTISED
    TN_CUDA_DEFERS_ROUTE = 0x800,     // can leave routing to the matmul_id_glu step after it, likewise
    // Never runs but where tuning found it the fastest, and after prepare_tuned of the table has succeeded:
    // cuBLASLt.
    TN_CUDA_ONLY_TUNED = 0x1000,
};

// A row of kernels.def. Data pointers of the step are NULL in accepts and scratch.
typedef struct tn_cuda_kernel {
    int32_t set; // TN_SET_*: the ops that it can run
    const char *name;
    bool (*accepts)(const tn_cuda *cuda, const tn_step *step);
    size_t (*scratch)(const tn_cuda *cuda, const tn_step *step); // bytes
    tn_status (*launch)(const tn_cuda_launch *l);
    int32_t flags;
} tn_cuda_kernel;

// All kernels, as runtime/ is given them (backends/cuda/kernels.c): it knows no family by name.
typedef struct tn_cuda_kernel_table {
    const tn_cuda_kernel *rows;
    int32_t n_rows;
    // What kernels with TN_CUDA_ONLY_TUNED need before they run a step. Called outside of captures, operands
    // bound; on failure the step has to run by another kernel.
    tn_status (*prepare_tuned)(const tn_cuda *cuda, const tn_step *step);
    // Derives from weights of the step, operands bound, what the launch of the kernel looks for (derived.h).
    // Called outside of captures.
    tn_status (*derive_weights)(tn_cuda *cuda, const tn_step *step, const tn_cuda_kernel *kernel);
    // Bytes that this takes. Data pointers of the step are NULL.
    size_t (*derived_size)(const tn_step *step, const tn_cuda_kernel *kernel);
    // Whether the operands of a step, with data bound, are aligned as what it shares with others needs. The
    // step before it in the program lies before it in memory.
    bool (*join_holds)(const tn_cuda *cuda, const tn_step *step);
} tn_cuda_kernel_table;

// The functions that kernels.def names.
#define TN_CUDA_KERNEL(set, kernel, scratch, launch, ...)                                                    \
    bool tn_cuda_##kernel##_accepts(const tn_cuda *cuda, const tn_step *step);                               \
    size_t tn_cuda_##scratch##_scratch(const tn_cuda *cuda, const tn_step *step);                            \
    tn_status tn_cuda_##launch##_launch(const tn_cuda_launch *l);
#include "backends/cuda/kernels.def"

static inline tn_cuda_view tn_cuda_view_of(const tn_view *v)
{
    return (tn_cuda_view){
        v->data, {v->ne[0], v->ne[1], v->ne[2], v->ne[3]}, {v->nb[0], v->nb[1], v->nb[2], v->nb[3]}};
}

static inline int64_t tn_div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
