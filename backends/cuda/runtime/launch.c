// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The launch of one kernel. All kernels of the backend go through here.
#include "backends/cuda/runtime/kernel.h"

tn_status tn_cuda_run(const tn_cuda_launch *l, int32_t module, const char *entry, const tn_cuda_grid *grid,
                      const void *args)
{
    tn_cuda *c = l->cuda;
    if (grid->x == 0 || grid->y == 0 || grid->z == 0) return TN_OK;
    if (l->sink) return l->sink->put(l->sink->user, entry);
    CUfunction f;
    tn_status status = tn_cuda_function(c, module, entry, &f);
    // Above 48 KiB the limit of the kernel has to be raised once (CUDA C++ Programming Guide, shared memory).
    // Raising it again is cheap, and launches are captured once.
    // What a block has without asking, less the variables that kernels declare, which count too.
    enum { GIVEN = (48 - 16) * 1024 };
    if (status == TN_OK && grid->shared > GIVEN)
        status = tn_cuda_check(
            c, c->driver.function_set(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)grid->shared),
            entry);
    if (status != TN_OK) return status;
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {
        .gridDimX = grid->x,
        .gridDimY = grid->y,
        .gridDimZ = grid->z,
        .blockDimX = grid->threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = grid->shared,
        .hStream = c->stream,
        .attrs = attributes,
    };
    // Kernels wait for their predecessor themselves (common.cuh), from compute capability 9.0 on.
    if (c->compute >= 90 && !grid->alone && !l->alone) {
        attributes[config.numAttrs++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                .value.programmaticStreamSerializationAllowed = 1};
    }
    if (grid->cluster > 1) {
        attributes[config.numAttrs++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                            .value.clusterDim = {grid->cluster, 1, 1}};
    }
    void *params[] = {(void *)(uintptr_t)args};
    return tn_cuda_check(c, c->driver.launch(&config, f, params, NULL), entry);
}
