// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA backend: devices, buffers, errors. Each context has driver contexts of its own, so that what
// breaks one leaves the others alone.
#include "core/backend.h"

#include "backends/cuda/product/gemm/cublas.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/tune.h"
#include "core/device.h"

#include <stdio.h>
#include <string.h>

extern const tn_backend tn_backend_cuda;

// Embedded by runtime/embed.sh.
#define TN_CUDA_MODULE(folder, stem, capabilities) extern const char tn_cuda_image_##stem[];
#include "backends/cuda/modules.def"
static const char *const images[TN_CUDA_MODULE_COUNT] = {
#define TN_CUDA_MODULE(folder, stem, capabilities) [TN_CUDA_MODULE_##stem] = tn_cuda_image_##stem,
#include "backends/cuda/modules.def"
};

// --- errors ----------------------------------------------------------------------------------------

// After these the driver context answers every call with the same error (CUDA Driver API, CUresult).
static bool ends_context(CUresult r)
{
    static const CUresult fatal[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED,    CUDA_ERROR_LAUNCH_TIMEOUT,     CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC, CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_EXTERNAL_DEVICE, CUDA_ERROR_NO_DEVICE, CUDA_ERROR_UNKNOWN,
    };
    for (size_t i = 0; i < TN_COUNT(fatal); i++)
        if (r == fatal[i]) return true;
    return false;
}

tn_status tn_cuda_check(tn_cuda *c, CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS) return TN_OK;
    const char *name = "unknown error", *text = "";
    c->driver.error_name(r, &name);
    c->driver.error_string(r, &text);
    if (ends_context(r)) {
        int32_t none = 0;
        // Relaxed: the first error wins, it orders nothing.
        atomic_compare_exchange_strong_explicit(&c->lost, &none, (int32_t)r, memory_order_relaxed, memory_order_relaxed);
    }
    tn_status status = r == CUDA_ERROR_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_DEVICE;
    return tn_fail(c->device->ctx, status, "%s: %s: %s (%s)", c->device->name, what, text ? text : "", name ? name : "");
}

tn_status tn_cuda_enter(tn_cuda *c)
{
    int32_t lost = atomic_load_explicit(&c->lost, memory_order_relaxed);
    if (lost != 0) {
        const char *name = NULL;
        c->driver.error_name((CUresult)lost, &name);
        return tn_fail(c->device->ctx, TN_ERR_DEVICE, "%s: the device was lost after %s; sessions on it have to be made anew in a new context",
                       c->device->name, name ? name : "an error");
    }
    return tn_cuda_check(c, c->driver.ctx_set(c->context), "making the context current");
}

tn_status tn_cuda_function(tn_cuda *c, int32_t module, const char *name, CUfunction *out)
{
    if (!c->modules[module]) {
        tn_status status = tn_cuda_check(c, c->driver.module_load(&c->modules[module], images[module]), "loading kernels");
        if (status != TN_OK) return status;
    }
    return tn_cuda_check(c, c->driver.module_function(out, c->modules[module], name), name);
}

// --- devices ---------------------------------------------------------------------------------------

static int32_t attribute(const tn_cuda *c, CUdevice_attribute which)
{
    int value = 0;
    c->driver.device_attribute(&value, which, c->id);
    return value;
}

static void destroy(tn_cuda *c)
{
    tn_context *ctx = c->device->ctx;
    if (c->context) {
        c->driver.ctx_set(c->context);
        tn_cuda_upload_free(c);
        tn_cuda_blas_free(c);
        for (int32_t i = 0; i < TN_CUDA_MODULE_COUNT; i++)
            if (c->modules[i]) c->driver.module_unload(c->modules[i]);
        if (c->stream) c->driver.stream_destroy(c->stream);
        c->driver.ctx_destroy(c->context);
    }
    tn_cuda_blas_free(c);
    tn_cuda_tuning_free(c);
    tn_cuda_driver_close(&c->driver);
    tn_free(ctx, c);
}

// Weights that are expanded before they are multiplied, and tiles of 128 rows, want more than 512: on an H200 (8B, 4096 tokens)
// batches of 512, 2048 and 4096 reach 33.7k, 38.5k and 37.9k tok/s with bf16, 24.8k, 32.8k and 34.2k with Q4_K_M.
enum { BATCH = 2048 };
// Multiplications of one graph for each multiprocessor: some 14 ms on an H200, 90 on small cards. Between graphs work can be cancelled; each
// costs some 100 us.
static const double work_each = 3.5e10;

static void describe(tn_cuda *c, int ordinal)
{
    tn_device *d = c->device;
    char name[96] = "";
    int version = 0;
    size_t total = 0;
    c->driver.device_name(name, sizeof name, c->id);
    c->driver.driver_version(&version);
    c->driver.device_total(&total, c->id);
    c->compute = 10 * attribute(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + attribute(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    c->n_sms = attribute(c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    c->max_shared = attribute(c, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    c->l2_size = (size_t)attribute(c, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    d->memory_total = total;
    d->n_batch = BATCH;
    d->max_work = work_each * c->n_sms;
    snprintf(d->name, sizeof d->name, "cuda:%d", ordinal);
    snprintf(d->description, sizeof d->description, "%s, compute capability %d.%d, %d multiprocessors, CUDA driver %d.%d", name,
             c->compute / 10, c->compute % 10, c->n_sms, version / 1000, version % 1000 / 10);
}

// The driver table is small: every device has a copy, and a handle on the library.
static tn_status open_device(tn_context *ctx, int ordinal)
{
    char why[256];
    tn_device *d = tn_calloc(ctx, 1, sizeof *d);
    tn_cuda *c = tn_calloc(ctx, 1, sizeof *c);
    if (!d || !c || !tn_cuda_driver_open(&c->driver, why, sizeof why)) {
        tn_free(ctx, c);
        tn_free(ctx, d);
        return TN_ERR_MEMORY;
    }
    *d = (tn_device){.backend = &tn_backend_cuda, .ctx = ctx, .impl = c};
    c->device = d;
    atomic_init(&c->lost, 0);
    snprintf(d->name, sizeof d->name, "cuda:%d", ordinal);
    tn_status status = tn_cuda_check(c, c->driver.device_get(&c->id, ordinal), "opening the device");
    if (status == TN_OK) describe(c, ordinal);
    if (status == TN_OK) tn_cuda_blas_init(c);
    if (status == TN_OK) tn_cuda_tuning_load(c);
    if (status == TN_OK) status = tn_device_add(ctx, d);
    if (status == TN_OK) return TN_OK;
    destroy(c);
    tn_free(ctx, d);
    return status;
}

static tn_status cuda_open(tn_context *ctx)
{
    tn_cuda_driver driver;
    char why[256];
    if (!tn_cuda_driver_open(&driver, why, sizeof why)) {
        tn_backend_absent(ctx, "cuda", why);
        return TN_OK;
    }
    int count = 0;
    CUresult r = driver.init(0);
    if (r == CUDA_SUCCESS) r = driver.device_count(&count);
    if (r != CUDA_SUCCESS || count == 0) {
        const char *text = NULL;
        if (r != CUDA_SUCCESS) driver.error_string(r, &text);
        snprintf(why, sizeof why, "the NVIDIA driver finds no device%s%s", text ? ": " : "", text ? text : "");
        tn_backend_absent(ctx, "cuda", why);
    }
    tn_status status = TN_OK;
    for (int i = 0; r == CUDA_SUCCESS && i < count && status == TN_OK; i++) status = open_device(ctx, i);
    tn_cuda_driver_close(&driver);
    return status;
}

static void cuda_close(tn_device *device)
{
    destroy(tn_cuda_of(device));
}

// The driver context is made at first use: listing devices stays quick, and takes no memory of the device.
static tn_status activate(tn_cuda *c)
{
    if (c->stream) return tn_cuda_enter(c);
    tn_status status = TN_OK;
    if (!c->context) status = tn_cuda_check(c, c->driver.ctx_create(&c->context, CU_CTX_SCHED_AUTO, c->id), "making a context");
    if (status == TN_OK) status = tn_cuda_enter(c);
    if (status == TN_OK) status = tn_cuda_check(c, c->driver.stream_create(&c->stream, CU_STREAM_NON_BLOCKING), "making a stream");
    return status;
}

static uint64_t cuda_memory_free(const tn_device *device)
{
    tn_cuda *c = tn_cuda_of(device);
    size_t free = 0, total = 0;
    if (activate(c) != TN_OK || c->driver.mem_info(&free, &total) != CUDA_SUCCESS) return 0;
    return free;
}

// --- buffers ---------------------------------------------------------------------------------------

static tn_status cuda_buffer_create(tn_device *device, size_t size, tn_buffer *out)
{
    tn_cuda *c = tn_cuda_of(device);
    CUdeviceptr at = 0;
    tn_status status = activate(c);
    if (status != TN_OK) return status;
    CUresult r = c->driver.mem_alloc(&at, TN_MAX(size, 1));
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return tn_fail(device->ctx, TN_ERR_MEMORY, "%s: out of memory: %zu MiB are wanted, %zu MiB are free", device->name,
                       size >> 20, (size_t)(cuda_memory_free(device) >> 20));
    status = tn_cuda_check(c, r, "allocating");
    if (status != TN_OK) return status;
    out->data = (void *)(uintptr_t)at;
    return TN_OK;
}

static void cuda_buffer_destroy(tn_buffer *buffer)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    c->driver.ctx_set(c->context);
    c->driver.stream_synchronize(c->stream); // work that was submitted may still use it
    c->driver.mem_free((CUdeviceptr)(uintptr_t)buffer->data);
}

static CUdeviceptr address(const tn_buffer *b, size_t offset)
{
    return (CUdeviceptr)(uintptr_t)b->data + offset;
}

// In order with the work on the stream; the host's bytes have been copied when the call returns, because
// they are pageable (CUDA Driver API, synchronisation behaviour of memcpy).
static tn_status cuda_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK || n == 0) return status;
    return tn_cuda_check(c, c->driver.copy_to_device(address(buffer, offset), bytes, n, c->stream), "copying to the device");
}

static tn_status cuda_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK || n == 0) return status;
    status = tn_cuda_check(c, c->driver.copy_to_host(bytes, address(buffer, offset), n, c->stream), "copying to the host");
    return status == TN_OK ? tn_cuda_check(c, c->driver.stream_synchronize(c->stream), "copying to the host") : status;
}

static tn_status cuda_buffer_zero(tn_buffer *buffer, size_t offset, size_t n, size_t pitch, size_t rows)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK || n == 0) return status;
    CUresult r = rows > 1 ? c->driver.fill_rows(address(buffer, offset), pitch, 0, n, rows, c->stream)
                          : c->driver.fill(address(buffer, offset), 0, n, c->stream);
    return tn_cuda_check(c, r, "clearing");
}

static tn_status cuda_host_create(tn_device *device, size_t size, void **out)
{
    tn_cuda *c = tn_cuda_of(device);
    tn_status status = activate(c);
    // Under unified addressing kernels reach it by the same address (CUDA Driver API, cuMemHostAlloc).
    if (status == TN_OK) status = tn_cuda_check(c, c->driver.host_alloc(out, TN_MAX(size, 1), CU_MEMHOSTALLOC_PORTABLE), "pinning memory");
    if (status == TN_OK) memset(*out, 0, size);
    return status;
}

static void cuda_host_destroy(tn_device *device, void *host)
{
    tn_cuda *c = tn_cuda_of(device);
    c->driver.ctx_set(c->context);
    c->driver.stream_synchronize(c->stream);
    c->driver.host_free(host);
}

const tn_backend tn_backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .memory_free = cuda_memory_free,
    .buffer_create = cuda_buffer_create,
    .buffer_destroy = cuda_buffer_destroy,
    .buffer_write = cuda_buffer_write,
    .buffer_read = cuda_buffer_read,
    .buffer_zero = cuda_buffer_zero,
    .host_create = cuda_host_create,
    .host_destroy = cuda_host_destroy,
    .weight_write = tn_cuda_weight_write,
    .precisions = tn_cuda_precisions,
    .accepts = tn_cuda_accepts,
    .prepare = tn_cuda_prepare,
    .scratch_size = tn_cuda_scratch_size,
    .executable_destroy = tn_cuda_executable_destroy,
    .kernel_name = tn_cuda_kernel_name,
    .rounding = tn_cuda_rounding,
    .submit = tn_cuda_submit,
    .wait = tn_cuda_wait,
};
