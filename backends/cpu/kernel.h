// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a CPU kernel is: a launch function that every thread of the team calls for the same step, and the
// row that says which steps it accepts. Kernels allocate nothing and take no locks.
#ifndef TN_CPU_KERNEL_H
#define TN_CPU_KERNEL_H

#include "core/compiler.h"
#include "ops/step.h"

// Levels in rising order; a level includes the ones before it.
enum {
    TN_ISA_REFERENCE,  // ops/<op>.c
    TN_ISA_GENERIC,    // portable C
    TN_ISA_AVX2,       // AVX2 + FMA + F16C
    TN_ISA_AVX512,     // AVX-512 F, BW, DQ, VL
    TN_ISA_AVX512VNNI, // + VNNI (BF16 is asked for apart)
    TN_ISA_COUNT
};

typedef struct tn_cpu_barrier tn_cpu_barrier;

typedef struct tn_cpu_task {
    const tn_step *step;
    int32_t ith, nth;        // this thread, and how many there are
    tn_cpu_barrier *barrier; // for tn_cpu_barrier_wait: all threads of the team, any number of times
    void *scratch;           // shared by the team, 64-byte aligned, as many bytes as the row asked for
    bool has_bf16;           // AVX512_BF16 may be used
    bool alike;              // a row's bits must not depend on how many rows the call has
    struct tn_cpu_stop *stop; // NULL: the work cannot be cancelled
} tn_cpu_task;

// For long steps: true when the work was cancelled, and then the rest of the step may be left out, but no
// barrier.
bool tn_cpu_stopped(const tn_cpu_task *task);

void tn_cpu_barrier_wait(const tn_cpu_task *task);

// Whether the kernel can run the step (types, shapes, strides). data pointers may be NULL here.
typedef bool (*tn_cpu_accepts_fn)(const tn_step *step);
// Bytes of shared scratch the step needs with that many threads.
typedef size_t (*tn_cpu_scratch_fn)(const tn_step *step, int32_t n_threads);
// Does its part of the step. Returning means: this thread is done; a barrier between steps follows.
typedef void (*tn_cpu_launch_fn)(const tn_cpu_task *task);

enum {
    TN_CPU_QUANTISES = 1, // quantises activations: judged against the reference on the same quantised input
};

typedef struct tn_cpu_kernel {
    int32_t set; // TN_SET_*: the ops that it serves
    int32_t isa;
    const char *name;
    tn_cpu_accepts_fn accepts;
    tn_cpu_scratch_fn scratch; // NULL: none
    tn_cpu_launch_fn launch;
    int32_t flags;
} tn_cpu_kernel;

// All kernels. A step runs on the highest level in use that has one which accepts it; of several the first.
const tn_cpu_kernel *tn_cpu_kernels(int32_t *count);

// Share of n items for thread ith of nth: contiguous, in multiples of `multiple`.
static inline void tn_cpu_split(int64_t n, int64_t multiple, int32_t ith, int32_t nth, int64_t *first,
                                int64_t *last)
{
    int64_t count = (n + multiple - 1) / multiple;
    int64_t a = count * ith / nth * multiple, b = count * (ith + 1) / nth * multiple;
    *first = a < n ? a : n;
    *last = b < n ? b : n;
}

#endif
