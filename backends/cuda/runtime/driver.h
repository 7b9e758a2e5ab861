// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver library, opened at run time: a table of its functions (CUDA Driver API reference, 12.x).
// Nothing links against it, so the program starts on machines that have none.
#ifndef TN_CUDA_DRIVER_H
#define TN_CUDA_DRIVER_H

#include "core/context.h"
#include "core/os/library.h"

#include <cuda.h>

typedef struct tn_cuda_driver {
    void *library;
#define TN_CUDA_FN(member, symbol, params) CUresult(CUDAAPI *member) params;
#include "backends/cuda/runtime/driver.def"
} tn_cuda_driver;

// Fills the table. On failure `why` (a text that lives as long as the program, or is written to `buf`) says
// what is missing, and nothing stays open.
bool tn_cuda_driver_open(tn_cuda_driver *driver, char *why, size_t why_size);
void tn_cuda_driver_close(tn_cuda_driver *driver);

#endif
