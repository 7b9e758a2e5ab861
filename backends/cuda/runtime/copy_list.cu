// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies inputs to the device before a plan and small results back to the host after it. It is a kernel
// instead of copy nodes, because nodes of another kind in a captured graph break the chain of dependent
// launches. A warp crosses the bus with one transaction per 32 words. A decoding step moves some KiB, so its
// time is the latency of the bus: 2 us on an NVIDIA H200, 2026-11-21.
#include "backends/cuda/common.cuh"

TN_ENTRY tn_copy_list(const __grid_constant__ tn_cuda_copy_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
    for (int k = 0; k < a.n; k++)
        for (int64_t i = first; i < a.copy[k].n; i += step) a.copy[k].to[i] = a.copy[k].from[i];
}
