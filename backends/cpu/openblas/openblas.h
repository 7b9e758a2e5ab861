// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenBLAS, opened at run time where it is installed: one more kernel for matrix products of many rows. It
// runs where tuning has measured it to be faster than the kernels here, and on processors without kernels of
// their own (the level generic), where it need not be measured.
//
// Threads. Each part of the pool multiplies tiles of its own, so the library must compute on the thread that
// calls. Its number of threads is a setting of the whole process, which may be the program's: see
// tn_openblas_open. Types and values of the functions are those of the CBLAS interface.
#ifndef TN_CPU_OPENBLAS_H
#define TN_CPU_OPENBLAS_H

#include "backends/cpu/kernel.h"
#include "core/backend.h"
#include "ops/step.h"

typedef struct tn_openblas_api {
#define TN_OPENBLAS_FN(result, member, symbol, params) result(*member) params;
#include "backends/cpu/openblas/openblas.def"
} tn_openblas_api;

enum {
    TN_CBLAS_ROW_MAJOR = 101,
    TN_CBLAS_PLAIN = 111,
    TN_CBLAS_TRANSPOSED = 112,
};

// Of a device.
typedef struct tn_openblas tn_openblas;

// What the backend knows of its device.
typedef struct tn_openblas_device {
    tn_device *device;           // its description must be complete
    int32_t level;               // TN_ISA_*: the highest in use
    bool has_bf16;               // as in tn_cpu_task
    bool capped;                 // it was asked for, not found
    bool alike;                  // OpenBLAS promises nothing about rows of different batches: never used
    const tn_cpu_kernel *kernel; // the row of kernels.def
    // The kernel of this backend that would run the step.
    const tn_cpu_kernel *(*own)(int32_t level, const tn_step *step);
} tn_openblas_device;

// Reads what was measured. The library itself is opened when a step wants it, or here if the context names
// it, and then it fails if that cannot be used. *out may become NULL: it is switched off.
TN_MUST_USE tn_status tn_openblas_create(const tn_openblas_device *d, tn_openblas **out);
void tn_openblas_destroy(tn_openblas *b); // NULL is fine

// Whether the step should run by OpenBLAS. It may open the library. b NULL: no.
bool tn_openblas_runs(tn_openblas *b, const tn_step *step);
// Whether it may run now: the program may have given the library more threads since it was opened.
bool tn_openblas_is_alone(const tn_openblas *b);
const tn_openblas_api *tn_openblas_api_get(const tn_openblas *b);
size_t tn_openblas_scratch(const tn_step *step, int32_t n_threads);

// Times OpenBLAS and the own kernel on a part of each product that is of a class not yet timed, and keeps the
// faster one in the file. Results of the steps are spoiled.
TN_MUST_USE tn_status tn_openblas_tune(tn_openblas *b, const tn_program *program, void *scratch);
// For the scratch size: whether tuning would run the step.
bool tn_openblas_may_time(tn_openblas *b, const tn_step *step);

// Lines for people: whether it was found, its version and core, and what was measured. Opens it.
size_t tn_openblas_details(tn_openblas *b, char *buf, size_t size);

// Of a device of this backend; NULL: it is not used.
tn_openblas *tn_openblas_of(const tn_device *device);
// For tests: every step that it accepts runs by it. False: it cannot be opened.
bool tn_openblas_force(tn_openblas *b);

#endif
