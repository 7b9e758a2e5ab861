// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of quantised weights with few rows read activations as int8. Where the kernel that makes the
// activations is one that can write them so too (TN_CUDA_WRITES_QUANTISED of kernels.def), it does, next to the
// plain result: else every block of the product would read and round all of them before it can begin (2 to 3
// of the 6 microseconds of a product on an H200).
//
// Products of many rows round activations to 16 bits. A gated pair does that in its own result's place where only
// such a product reads it (TN_CUDA_WRITES_PACKED16): a pass over the widest rows of a layer less, and half the bytes.
//
// Steps can also share a launch: rope_cache is done by the attention after it, the last product of experts by
// the sum of its results.
#ifndef TN_CUDA_HANDOVER_H
#define TN_CUDA_HANDOVER_H

#include "backends/cuda/runtime/kernel.h"

// What steps hand on, by step: rows NULL where nothing.
typedef struct tn_cuda_handover {
    tn_cuda_quantised in, out;
    bool rope, product; // the step before is done here
    bool skipped;       // done by the step after
    bool defers_route, routes;
    bool writes_packed16, reads_packed16;
    bool early;    // its integers, and those of the step done here, are there before it may start; with `rope` the caches too
    bool computed; // a step writes what others load as weights: nothing may be read ahead
} tn_cuda_handover;

// Bytes of the memory that the rows of a program take at most; a multiple of 256.
size_t tn_cuda_handover_size(const tn_program *program);
// Finds who hands rows on to whom, given the kernels of the steps (data of views are bound); nobody if memory
// is NULL. `handover` has n_steps zeroed entries.
void tn_cuda_handover_plan(const tn_cuda *cuda, const tn_program *program,
                           const tn_cuda_kernel *const *kernels, char *memory, tn_cuda_handover *handover);

#endif
