// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Inputs into the device before a plan, small results out of it afterwards: a kernel instead of copies, because
// nodes of another kind in a captured graph break the chain of dependent launches. Words cross the bus one transaction a
// warp; a decoding step moves a few KiB, so latency is all: 2 us.
#include "backends/cuda/common.cuh"

TN_ENTRY tn_copy_list(const __grid_constant__ tn_cuda_copy_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
    for (int k = 0; k < a.n; k++)
        for (int64_t i = first; i < a.copy[k].n; i += step) a.copy[k].to[i] = a.copy[k].from[i];
}
