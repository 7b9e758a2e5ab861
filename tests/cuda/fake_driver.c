// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A driver library for tests: device memory is host memory, kernels do nothing, and any call can be told to
// fail. It counts what is alive, so that leaks show. Built as libcuda.so.1; the functions that steer it are in fake.h.
#include "tests/cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static fake_state state = {.memory = 1u << 30, .compute = 90};

EXPORT fake_state *fake_get(void)
{
    return &state;
}

// Counts the call; the error that it has been told to give, or CUDA_SUCCESS.
static CUresult call(const char *name)
{
    state.n_calls++;
    if (state.lost != CUDA_SUCCESS) return state.lost;
    if (state.fail_at == 0 || state.n_calls != state.fail_at) return CUDA_SUCCESS;
    snprintf(state.failed, sizeof state.failed, "%s", name);
    if (state.fail_stays) state.lost = state.error;
    return state.error;
}

#define CALL()                                                                                                 \
    do {                                                                                                       \
        CUresult r = call(__func__);                                                                           \
        if (r != CUDA_SUCCESS) return r;                                                                       \
    } while (0)

// Objects are small blocks; a double release aborts in free.
static CUresult make(void *out)
{
    void *p = malloc(1);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(out, &p, sizeof p);
    state.n_alive++;
    return CUDA_SUCCESS;
}

// Releasing works on a lost device too: nothing may leak there.
static CUresult drop(void *p)
{
    state.n_alive--;
    free(p);
    return state.lost;
}

// The header renames functions to their newest version; the ones that are looked up are these.
#undef cuDeviceTotalMem
#undef cuCtxDestroy
#undef cuMemGetInfo
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuStreamDestroy
#undef cuStreamBeginCapture
#undef cuGraphInstantiate
#undef cuEventDestroy
#undef cuEventElapsedTime

EXPORT CUresult cuInit(unsigned flags)
{
    (void)flags;
    CALL();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    CALL();
    *version = 13000;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    (void)error;
    *text = "told to fail";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    CALL();
    *count = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CALL();
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)size, "Fake");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = state.compute / 10;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = state.compute % 10;
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = 132;
    if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) *value = state.compute >= 90 ? 232448 : state.compute >= 80 ? 101376 : 65536;
    if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) *value = 50 << 20;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = state.memory;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device);
EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    (void)flags;
    (void)device;
    CALL();
    return make(out);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    return drop(context);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    CALL();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CALL();
    *available = state.memory - state.used;
    *total = state.memory;
    return CUDA_SUCCESS;
}

enum { HEADER = 64 };

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    CALL();
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > state.memory - state.used) return CUDA_ERROR_OUT_OF_MEMORY;
    // As aligned as real device memory.
    char *p = aligned_alloc(256, (size + 256 + 255) / 256 * 256);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(p, &size, sizeof size);
    memset(p + 256, 0xff, size); // NaN, as device memory may well hold
    state.used += size;
    state.n_alive++;
    *out = (CUdeviceptr)(uintptr_t)(p + 256);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr at)
{
    char *p = (char *)(uintptr_t)at - 256;
    size_t size;
    memcpy(&size, p, sizeof size);
    state.used -= size;
    return drop(p);
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    CALL();
    *out = malloc(size);
    if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
    state.n_alive++;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *at)
{
    return drop(at);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    (void)stream;
    CALL();
    memcpy((void *)(uintptr_t)to, from, size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    (void)stream;
    CALL();
    memcpy(to, (const void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream)
{
    (void)stream;
    CALL();
    memset((void *)(uintptr_t)at, value, n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t n, size_t rows, CUstream stream)
{
    (void)stream;
    CALL();
    for (size_t r = 0; r < rows; r++) memset((void *)(uintptr_t)(at + r * pitch), value, n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    (void)flags;
    CALL();
    return make(out);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    return drop(stream);
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    CALL();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    CALL();
    state.n_captures++;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    (void)stream;
    state.n_captures--;
    CUresult r = call(__func__);
    return r == CUDA_SUCCESS ? make(out) : r;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    (void)graph;
    (void)flags;
    CALL();
    return make(out);
}

EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    (void)exec;
    (void)stream;
    CALL();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)exec;
    (void)stream;
    CALL();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return drop(exec);
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    return drop(graph);
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    CALL();
    return make(out);
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    return drop(event);
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event;
    (void)stream;
    CALL();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    CALL();
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    (void)start;
    (void)end;
    CALL();
    *ms = 0.5f;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    CALL();
    if (!image) return CUDA_ERROR_INVALID_IMAGE;
    return make(out);
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    return drop(module);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    (void)name;
    CALL();
    memcpy(out, &module, sizeof module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    CALL();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)attribute;
    (void)function;
    CALL();
    *value = state.compute;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **args, void **extra)
{
    (void)function;
    (void)args;
    (void)extra;
    CALL();
    // What the driver refuses too.
    bool ok = config->gridDimX > 0 && config->gridDimY > 0 && config->gridDimZ > 0 && config->gridDimY <= 65535 &&
              config->gridDimZ <= 65535 && config->blockDimX > 0 && config->blockDimX <= 1024 && config->sharedMemBytes <= 232448;
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                       const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                       const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                       CUtensorMapFloatOOBfill fill)
{
    (void)type, (void)box, (void)element_strides, (void)interleave, (void)swizzle, (void)promotion, (void)fill, (void)dims;
    CALL();
    memset(out, 0, sizeof *out);
    bool aligned = (uintptr_t)address % 16 == 0;
    for (cuuint32_t i = 0; i + 1 < rank; i++) aligned = aligned && strides[i] % 16 == 0;
    return aligned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
