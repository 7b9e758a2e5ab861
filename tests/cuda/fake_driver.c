// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A driver library for tests: device memory is host memory between pages that nobody may touch, and any call
// can be told to fail. It counts what is alive, so that leaks show. Built as libcuda.so.1; fake.h steers it,
// and says what kernels do.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "tests/cuda/fake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static fake_state state = {
    .memory = 1u << 30, .compute = 90, .n_sms = 132, .l2_size = 50 << 20, .host_ms = 1.0f};

EXPORT fake_state *fake_get(void)
{
    return &state;
}

// In programs that do not know of this library: the device is lost while the file that TN_FAKE_LOST names
// exists, and a new one is there when it is gone.
static void look_for_loss(void)
{
    static CUresult given = CUDA_SUCCESS;
    const char *file = getenv("TN_FAKE_LOST");
    if (!file) return;
    if (access(file, F_OK) == 0)
        state.lost = given = CUDA_ERROR_LAUNCH_FAILED;
    else if (given != CUDA_SUCCESS)
        state.lost = given = CUDA_SUCCESS;
}

// Counts the call; the error that it has been told to give, or CUDA_SUCCESS.
static CUresult call(const char *name)
{
    state.n_calls++;
    look_for_loss();
    if (state.lost != CUDA_SUCCESS) return state.lost;
    if (state.fail_at == 0 || state.n_calls != state.fail_at) return CUDA_SUCCESS;
    snprintf(state.failed, sizeof state.failed, "%s", name);
    if (state.fail_stays) state.lost = state.error;
    return state.error;
}

// The stream is given work.
static void work(void)
{
    state.n_works++;
}

static bool hangs(void)
{
    return state.hang_at != 0 && state.n_works >= state.hang_at;
}

static CUresult not_ready(void)
{
    state.asked_at = state.n_calls;
    return CUDA_ERROR_NOT_READY;
}

// A call that waits for all work of the device, or in which the driver may do so.
#define MAY_BLOCK()                                                                                          \
    do {                                                                                                     \
        if (!hangs()) break;                                                                                 \
        state.n_blocked++;                                                                                   \
        return CUDA_ERROR_LAUNCH_TIMEOUT;                                                                    \
    } while (0)

#define CALL()                                                                                               \
    do {                                                                                                     \
        CUresult r = call(__func__);                                                                         \
        if (r != CUDA_SUCCESS) return r;                                                                     \
    } while (0)

// Launches, in order: of a stream that captures, and of graphs.
typedef struct launch {
    struct launch *next;
    fake_grid grid;
    const void *function;
    void *args;
    size_t args_size;
    fake_host_function *host; // instead of a kernel, and what it writes
    void *written;
    size_t n_written;
} launch;

// Contexts, streams, graphs, events, modules; a double release aborts in free.
typedef struct object {
    launch *first, **end;
    const void *image; // of a module
    bool captures;     // a stream
    int64_t n_host;    // an event: of functions of the host before it
    int64_t n_works;   // an event: of works before it
    // of all
    struct object *previous, *next;
} object;
static object objects = {.previous = &objects, .next = &objects};

static CUresult make(void *out)
{
    object *p = calloc(1, sizeof *p);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    p->end = &p->first;
    p->previous = objects.previous;
    p->next = &objects;
    objects.previous->next = p;
    objects.previous = p;
    memcpy(out, &p, sizeof p);
    state.n_alive++;
    return CUDA_SUCCESS;
}

static void clear(object *p)
{
    while (p->first) {
        launch *l = p->first;
        p->first = l->next;
        free(l->args);
        free(l);
    }
    p->end = &p->first;
}

// What a call of the driver made and gives up itself.
static void undo(object *p)
{
    state.n_alive--;
    clear(p);
    p->previous->next = p->next;
    p->next->previous = p->previous;
    free(p);
}

// Releasing works on a lost device too, and where the call reports an error: nothing may leak there.
static CUresult drop(const char *name, void *at)
{
    CUresult r = call(name);
    MAY_BLOCK();
    undo(at);
    return r;
}

enum { ARGS_ALIGN = 64 };

static CUresult append(object *to, const launch *from)
{
    launch *l = calloc(1, sizeof *l);
    void *copy = aligned_alloc(ARGS_ALIGN, (from->args_size + ARGS_ALIGN) / ARGS_ALIGN * ARGS_ALIGN);
    if (!l || !copy) {
        free(l);
        free(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(copy, from->args, from->args_size);
    *l = *from;
    l->args = copy;
    l->next = NULL;
    *to->end = l;
    to->end = &l->next;
    return CUDA_SUCCESS;
}

static CUresult append_all(object *to, const object *from)
{
    CUresult r = CUDA_SUCCESS;
    for (const launch *l = from->first; l && r == CUDA_SUCCESS; l = l->next) r = append(to, l);
    return r;
}

static CUresult run_one(const launch *l)
{
    if (!l->host) return fake_run(&l->grid, l->function, l->args);
    state.n_host++;
    if (fake_runs_host()) {
        l->host(l->args);
        fake_memory_written(l->written, l->n_written);
    }
    return CUDA_SUCCESS;
}

// A failure of a kernel ends the context, like on a device. Nothing runs behind work that hangs.
static CUresult run_all(const object *of)
{
    CUresult r = CUDA_SUCCESS;
    if (hangs()) return r;
    for (const launch *l = of->first; l && r == CUDA_SUCCESS; l = l->next) r = run_one(l);
    if (r != CUDA_SUCCESS) state.lost = r;
    return r;
}

static CUresult launch_or_keep(object *stream, const launch *l)
{
    object now = {.end = &now.first};
    state.n_captured += stream->captures;
    CUresult r = append(stream->captures ? stream : &now, l);
    if (!stream->captures) work();
    if (r == CUDA_SUCCESS) r = run_all(&now);
    clear(&now);
    return r;
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
    *name = error == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                                : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_LAUNCH_FAILED ? "a kernel failed" : "told to fail";
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
    CALL();
    snprintf(name, (size_t)size, "Fake");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    CALL();
    *value = 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = state.compute / 10;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = state.compute % 10;
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = state.n_sms;
    if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        *value = state.compute >= 90 ? 232448 : state.compute >= 80 ? 101376 : 65536;
    if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) *value = state.l2_size;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    CALL();
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
    return drop(__func__, context);
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

enum { PAGE = 4096, FENCE = 1 << 20, ALIGN = 256, POISON = 0xff };

// Memory of the device: a page that nobody may touch, what was asked for, up to ALIGN bytes of poison, such a
// page.
typedef struct allocation {
    struct allocation *next;
    char *map, *at;
    size_t map_size, size;
} allocation;
static allocation *allocations;

static size_t tail(const allocation *a)
{
    return (ALIGN - a->size % ALIGN) % ALIGN;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    CALL();
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > state.memory - state.used) return CUDA_ERROR_OUT_OF_MEMORY;
    allocation *a = calloc(1, sizeof *a);
    if (!a) return CUDA_ERROR_OUT_OF_MEMORY;
    a->size = size;
    a->map_size = (size + ALIGN + PAGE - 1) / PAGE * PAGE + 2 * FENCE;
    a->map = mmap(NULL, a->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->map == MAP_FAILED) {
        free(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    a->at = a->map + a->map_size - FENCE - size - tail(a);
    memset(a->at, POISON, size + tail(a)); // NaN, as device memory may well hold
    mprotect(a->map, FENCE, PROT_NONE);
    mprotect(a->map + a->map_size - FENCE, FENCE, PROT_NONE);
    fake_memory_begin(a->at, size);
    a->next = allocations;
    allocations = a;
    state.used += size;
    state.n_alive++;
    *out = (CUdeviceptr)(uintptr_t)a->at;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr at)
{
    allocation **p = &allocations;
    while (*p && (*p)->at != (char *)(uintptr_t)at) p = &(*p)->next;
    allocation *a = *p;
    if (!a) abort();
    CUresult r = call(__func__);
    MAY_BLOCK();
    for (size_t i = a->size; i < a->size + tail(a); i++) {
        if ((unsigned char)a->at[i] == POISON) continue;
        fprintf(stderr, "emulated: %zu bytes of memory were written behind their end\n", a->size);
        r = state.lost = CUDA_ERROR_ILLEGAL_ADDRESS;
        break;
    }
    *p = a->next;
    fake_memory_end(a->at);
    state.used -= a->size;
    state.n_alive--;
    munmap(a->map, a->map_size);
    free(a);
    return r;
}

// Pinned memory of the host.
typedef struct pinned {
    struct pinned *next;
    char *at;
    size_t size;
} pinned;
static pinned *all_pinned;

// Where the entry of `at` is linked, or NULL.
static pinned **find_pinned(const void *at)
{
    pinned **p = &all_pinned;
    while (*p && ((const char *)at < (*p)->at || (const char *)at >= (*p)->at + (*p)->size)) p = &(*p)->next;
    return *p ? p : NULL;
}

static void unpin(pinned **p)
{
    pinned *gone = *p;
    *p = gone->next;
    free(gone->at);
    free(gone);
    state.n_alive--;
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    CALL();
    pinned *p = calloc(1, sizeof *p);
    char *at = malloc(size);
    if (!p || !at) {
        free(p);
        free(at);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *p = (pinned){all_pinned, at, size};
    all_pinned = p;
    *out = at;
    state.n_alive++;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *at)
{
    CUresult r = call(__func__);
    MAY_BLOCK();
    pinned **p = find_pinned(at);
    if (!p || (*p)->at != at) abort();
    unpin(p);
    return r;
}

EXPORT void fake_end(void)
{
    while (objects.next != &objects) undo(objects.next);
    while (all_pinned) unpin(&all_pinned);
    while (allocations) {
        allocation *a = allocations;
        allocations = a->next;
        fake_memory_end(a->at);
        state.used -= a->size;
        state.n_alive--;
        munmap(a->map, a->map_size);
        free(a);
    }
}

// Memory of the host that is not pinned is copied when what the stream was given before has ended.
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    (void)stream;
    CALL();
    if (!find_pinned(from)) MAY_BLOCK();
    work();
    if (hangs()) return CUDA_SUCCESS;
    memcpy((void *)(uintptr_t)to, from, size);
    fake_memory_copied((void *)(uintptr_t)to, size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    (void)stream;
    CALL();
    if (!find_pinned(to)) MAY_BLOCK();
    work();
    if (hangs()) return CUDA_SUCCESS;
    memcpy(to, (const void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream)
{
    (void)stream;
    CALL();
    work();
    if (hangs()) return CUDA_SUCCESS;
    memset((void *)(uintptr_t)at, value, n);
    fake_memory_written((void *)(uintptr_t)at, n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t n, size_t rows,
                                  CUstream stream)
{
    (void)stream;
    CALL();
    work();
    if (hangs()) return CUDA_SUCCESS;
    for (size_t r = 0; r < rows; r++) {
        memset((void *)(uintptr_t)(at + r * pitch), value, n);
        fake_memory_written((void *)(uintptr_t)(at + r * pitch), n);
    }
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
    return drop(__func__, stream);
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
    (void)stream;
    CALL();
    return hangs() ? not_ready() : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)mode;
    CALL();
    ((object *)(void *)stream)->captures = true;
    state.n_captures++;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    object *s = (object *)(void *)stream, *graph;
    state.n_captures--;
    s->captures = false;
    CUresult r = call(__func__);
    if (r == CUDA_SUCCESS) r = make(&graph);
    if (r == CUDA_SUCCESS) {
        r = append_all(graph, s);
        if (r == CUDA_SUCCESS)
            memcpy(out, &graph, sizeof graph);
        else
            undo(graph);
    }
    clear(s);
    return r;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    CALL();
    object *exec;
    CUresult r = make(&exec);
    if (r != CUDA_SUCCESS) return r;
    r = append_all(exec, (object *)(void *)graph);
    if (r == CUDA_SUCCESS)
        memcpy(out, &exec, sizeof exec);
    else
        undo(exec);
    return r;
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
    (void)stream;
    CALL();
    work();
    return run_all((object *)(void *)exec);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return drop(__func__, exec);
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    return drop(__func__, graph);
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    CALL();
    return make(out);
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    return drop(__func__, event);
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    CALL();
    ((object *)(void *)event)->n_host = state.n_host;
    ((object *)(void *)event)->n_works = state.n_works;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    CALL();
    return hangs() && ((object *)(void *)event)->n_works >= state.hang_at ? not_ready() : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    CALL();
    bool host = ((object *)(void *)end)->n_host > ((object *)(void *)start)->n_host;
    *ms = host ? state.host_ms : 0.5f;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    CALL();
    if (!image) return CUDA_ERROR_INVALID_IMAGE;
    object *module;
    CUresult r = make(&module);
    if (r != CUDA_SUCCESS) return r;
    module->image = image;
    memcpy(out, &module, sizeof module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    return drop(__func__, module);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    CALL();
    const void *f = fake_find(((object *)(void *)module)->image, name);
    if (!f) return CUDA_ERROR_NOT_FOUND;
    memcpy(out, &f, sizeof f);
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
    (void)extra;
    CALL();
    // What the driver refuses too.
    bool ok = config->gridDimX > 0 && config->gridDimY > 0 && config->gridDimZ > 0 &&
              config->gridDimY <= 65535 && config->gridDimZ <= 65535 && config->blockDimX > 0 &&
              config->blockDimX <= 1024 && config->sharedMemBytes <= 232448;
    if (!ok) return CUDA_ERROR_INVALID_VALUE;
    fake_grid grid = {config->gridDimX,  config->gridDimY,       config->gridDimZ,
                      config->blockDimX, config->sharedMemBytes, 1};
    bool dependent = false;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            grid.cluster = config->attrs[i].value.clusterDim.x;
        dependent = dependent || config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    }
    if (!dependent) state.n_alone++;
    state.n_launches++;
    launch l = {.grid = grid, .function = function, .args = args[0], .args_size = fake_args_size(function)};
    return launch_or_keep((object *)(void *)config->hStream, &l);
}

EXPORT CUresult fake_launch_host(CUstream stream, fake_host_function *function, const void *args,
                                 size_t args_size, void *written, size_t n)
{
    if (state.lost != CUDA_SUCCESS) return state.lost;
    launch l = {.host = function,
                .args = (void *)(uintptr_t)args,
                .args_size = args_size,
                .written = written,
                .n_written = n};
    return launch_or_keep((object *)(void *)stream, &l);
}

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank,
                                       void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                       const cuuint32_t *box, const cuuint32_t *element_strides,
                                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    (void)element_strides, (void)interleave, (void)promotion, (void)fill;
    CALL();
    memset(out, 0, sizeof *out);
    bool known =
        rank == 2 && (type == CU_TENSOR_MAP_DATA_TYPE_UINT16 || type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 ||
                      type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
    if (!known || box[0] > 256 || box[1] > 256) return CUDA_ERROR_INVALID_VALUE;
    fake_tensor_map map = {.magic = FAKE_TENSOR_MAP_MAGIC,
                           .data = address,
                           .dims = {dims[0], dims[1]},
                           .stride = strides[0],
                           .box = {box[0], box[1]},
                           .element = 2};
    // Of 128 bytes three bits of the address are swizzled, of 64 two, of 32 one.
    map.swizzle = swizzle == CU_TENSOR_MAP_SWIZZLE_128B  ? 3
                  : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 2
                                                         : swizzle == CU_TENSOR_MAP_SWIZZLE_32B;
    // A row of the box fits the swizzled width (CUDA Driver API, cuTensorMapEncodeTiled).
    if (map.swizzle > 0 && box[0] * 2 > 16u << map.swizzle) return CUDA_ERROR_INVALID_VALUE;
    static_assert(sizeof map <= sizeof *out, "a tensor map is 128 bytes");
    memcpy(out, &map, sizeof map);
    bool aligned = (uintptr_t)address % 16 == 0;
    for (cuuint32_t i = 0; i + 1 < rank; i++) aligned = aligned && strides[i] % 16 == 0;
    return aligned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
