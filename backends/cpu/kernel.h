// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a CPU kernel is: a launch function that does a part of a step, and the row that says which steps it
// accepts and into how many parts they are cut. Kernels allocate nothing, take no locks and wait for nobody.
#ifndef TN_CPU_KERNEL_H
#define TN_CPU_KERNEL_H

#include "core/compiler.h"
#include "ops/step.h"

#include <stdatomic.h>

// Levels in rising order for each kind of processor; a level includes those of its processor before it, but
// for AVX-VNNI: that is AVX2 and itself.
enum {
    TN_ISA_REFERENCE,  // ops/<op>.c
    TN_ISA_GENERIC,    // portable C
    TN_ISA_AVX2,       // AVX2 + FMA + F16C
    TN_ISA_AVXVNNI,    // AVX2 + dot products of bytes
    TN_ISA_AVX512,     // AVX-512 F, BW, DQ, VL
    TN_ISA_AVX512VNNI, // + VNNI (BF16 is asked for apart)
    TN_ISA_AMX,        // + BF16 and AMX tiles
    TN_ISA_NEON,       // aarch64, all of them
    TN_ISA_DOTPROD,    // + dot products of bytes (SDOT)
    TN_ISA_I8MM,       // + products of 2 x 8 by 8 x 2 bytes (SMMLA)
    TN_ISA_BF16,       // + products of 2 x 4 by 4 x 2 bf16 (BFMMLA)
    TN_ISA_COUNT
};

// Kernels of a processor; those of aarch64 are not in the library in one file (dist/).
#if defined(__aarch64__) && !defined(TN_AMALGAMATED)
#define TN_CPU_ARM
#endif

// A step has one or more phases: all parts of one have ended before the next one begins. Parts run in any
// order, some at the same time, on any thread; nothing may depend on that.
typedef struct tn_cpu_task {
    const tn_step *step;
    int32_t phase;              // of the step, from 0
    int32_t width;              // threads for which to cut the work, the same in all phases of the step
    int32_t ith, nth;           // this part of the phase, and how many there are
    int32_t thread, n_threads;  // whose scratch the part may use, below n_threads: the most that may run
    _Atomic int64_t *next_item; // zero when the phase begins: tn_cpu_next_item
    void *scratch;              // shared by the threads, 64-byte aligned, as many bytes as the row asked for
    bool has_bf16;              // AVX512_BF16 may be used
    bool alike;                 // a row's bits must not depend on how many rows the call has
    int32_t level;              // TN_ISA_*: the highest in use
    const struct tn_openblas_api *openblas; // for kernels with TN_CPU_OPENBLAS
    struct tn_cpu_stop *stop;               // NULL: the work cannot be cancelled
} tn_cpu_task;

// For long steps: true when the work was cancelled, and then the rest of the step may be left out.
bool tn_cpu_stopped(const tn_cpu_task *task);

// For phases whose parts divide a list of items among themselves: the number of an item that no part has yet.
// A part goes on until the list ends, so one part alone would do all items.
static inline int64_t tn_cpu_next_item(const tn_cpu_task *task)
{
    // Relaxed: it orders nothing but itself.
    return atomic_fetch_add_explicit(task->next_item, 1, memory_order_relaxed);
}

// Whether the kernel can run the step (types, shapes, strides). data pointers may be NULL here.
typedef bool (*tn_cpu_accepts_fn)(const tn_step *step);
// Bytes of shared scratch the step needs with that many threads.
typedef size_t (*tn_cpu_scratch_fn)(const tn_step *step, int32_t n_threads);
// Into how many parts to cut task->phase for task->nth threads, at most TN_POOL_MAX_PARTS; 0: there is no
// such phase. Called once for each phase, when the phase before has ended, so it may read what that one
// wrote.
typedef int32_t (*tn_cpu_parts_fn)(const tn_cpu_task *task);
// Does part task->ith of the phase.
typedef void (*tn_cpu_launch_fn)(const tn_cpu_task *task);

enum {
    TN_CPU_QUANTISES = 1, // quantises activations: judged against the reference on the same quantised input
    TN_CPU_ROUNDS_BF16 = 2, // rounds activations and weights to bf16: judged with both rounded
    TN_CPU_OPENBLAS = 4,    // runs only what openblas/choice.c says
};

typedef struct tn_cpu_kernel {
    int32_t set; // TN_SET_*: the ops that it serves
    int32_t isa;
    const char *name;
    tn_cpu_accepts_fn accepts;
    tn_cpu_scratch_fn scratch; // NULL: none
    tn_cpu_parts_fn parts;
    tn_cpu_launch_fn launch;
    int32_t flags;
} tn_cpu_kernel;

// All kernels. A step runs on the highest level in use that has one which accepts it; of several the first.
const tn_cpu_kernel *tn_cpu_kernels(int32_t *count);

// Share of n items for part ith of nth: contiguous, in multiples of `multiple`.
static inline void tn_cpu_split(int64_t n, int64_t multiple, int32_t ith, int32_t nth, int64_t *first,
                                int64_t *last)
{
    int64_t count = (n + multiple - 1) / multiple;
    int64_t a = count * ith / nth * multiple, b = count * (ith + 1) / nth * multiple;
    *first = a < n ? a : n;
    *last = b < n ? b : n;
}

#endif
