// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/derived.h"

#include "core/compiler.h"

#include <string.h>

// Embedded by runtime/embed.sh.
#define TN_CUDA_MODULE(folder, stem, capabilities) extern const char tn_cuda_image_##stem[];
#include "backends/cuda/modules.def"
static const char *const images[TN_CUDA_MODULE_COUNT] = {
#define TN_CUDA_MODULE(folder, stem, capabilities) [TN_CUDA_MODULE_##stem] = tn_cuda_image_##stem,
#include "backends/cuda/modules.def"
};

// --- errors ------------------------------------------------------------------------------------------

// After these the driver context answers every call with the same error (CUDA Driver API, CUresult).
static bool ends_context(CUresult r)
{
    static const CUresult fatal[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_DEVICE_UNAVAILABLE,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_EXTERNAL_DEVICE,
        CUDA_ERROR_NO_DEVICE,
        CUDA_ERROR_UNKNOWN,
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
        atomic_compare_exchange_strong_explicit(&c->lost, &none, (int32_t)r, memory_order_relaxed,
                                                memory_order_relaxed);
    }
    tn_status status = r == CUDA_ERROR_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_DEVICE;
    return tn_fail(c->device->ctx, status, "%s: %s: %s (%s)", c->device->name, what, text ? text : "",
                   name ? name : "");
}

// A failure if the device was lost.
static tn_status refuse_lost(tn_cuda *c)
{
    int32_t lost = atomic_load_explicit(&c->lost, memory_order_relaxed);
    if (lost == 0) return TN_OK;
    if (lost == TN_CUDA_GIVEN_UP) return tn_device_fail_given_up(c->device);
    const char *name = NULL;
    c->driver.error_name((CUresult)lost, &name);
    return tn_fail(c->device->ctx, TN_ERR_DEVICE,
                   "%s: the device was lost after %s; sessions on it have to be made anew in a new context",
                   c->device->name, name ? name : "an error");
}

tn_status tn_cuda_enter(tn_cuda *c)
{
    tn_status status = refuse_lost(c);
    if (status != TN_OK) return status;
    return tn_cuda_check(c, c->driver.ctx_set(c->context), "making the context current");
}

// --- waiting -----------------------------------------------------------------------------------------

bool tn_cuda_is_given_up(const tn_cuda *c)
{
    return atomic_load_explicit(&c->lost, memory_order_relaxed) == TN_CUDA_GIVEN_UP; // orders nothing
}

// The driver's own waits (cuStreamSynchronize, cuEventSynchronize) have no limit, so this asks again and
// again. They poll as well (CU_CTX_SCHED_AUTO), so that a thread sees the end of a pass without a delay. This
// one polls for as long as passes take, and may see the end of longer ones a thousandth of their time late.
static tn_status wait_until(tn_cuda *c, CUevent event, const char *what)
{
    enum { PAUSES = 4, POLL_NS = 100000000, SHARE = 1024, MOST_NS = 1000000 };
    tn_device_wait w = tn_device_wait_begin(c->device);
    for (;;) {
        CUresult r = event ? c->driver.event_query(event) : c->driver.stream_query(c->stream);
        if (r != CUDA_ERROR_NOT_READY) return tn_cuda_check(c, r, what);
        if (tn_cuda_is_given_up(c)) return refuse_lost(c); // another thread has waited longer
        if (tn_device_wait_over(&w)) {
            // Relaxed: it orders nothing.
            atomic_store_explicit(&c->lost, TN_CUDA_GIVEN_UP, memory_order_relaxed);
            return tn_device_wait_fail(c->device, &w, what);
        }
        if (w.waited_ns < POLL_NS)
            for (int32_t i = 0; i < PAUSES; i++) TN_PAUSE();
        else
            tn_sleep(TN_MIN(w.waited_ns / SHARE, (uint64_t)MOST_NS));
    }
}

tn_status tn_cuda_wait_all(tn_cuda *c, const char *what)
{
    return wait_until(c, NULL, what);
}

tn_status tn_cuda_wait_event(tn_cuda *c, CUevent event, const char *what)
{
    return wait_until(c, event, what);
}

bool tn_cuda_settle(tn_cuda *c)
{
    if (tn_cuda_is_given_up(c)) return false;
    c->driver.ctx_set(c->context);
    // On a device that is lost nothing runs, and the message of the loss stays.
    bool waits = c->stream && atomic_load_explicit(&c->lost, memory_order_relaxed) == 0;
    tn_status status = waits ? tn_cuda_wait_all(c, "destroying") : TN_OK;
    TN_UNUSED(status); // the next use of the device tells
    return !tn_cuda_is_given_up(c);
}

void tn_cuda_memory_drop(tn_cuda *c, CUdeviceptr at)
{
    if (!tn_cuda_is_given_up(c)) c->driver.mem_free(at);
}

tn_status tn_cuda_function(tn_cuda *c, int32_t module, const char *name, CUfunction *out)
{
    if (!c->modules[module]) {
        tn_status status =
            tn_cuda_check(c, c->driver.module_load(&c->modules[module], images[module]), "loading kernels");
        if (status != TN_OK) return status;
    }
    return tn_cuda_check(c, c->driver.module_function(out, c->modules[module], name), name);
}

// --- memory ------------------------------------------------------------------------------------------

// The driver context is created at first use, so that listing devices is fast and allocates nothing on them.
static tn_status activate(tn_cuda *c)
{
    if (c->stream) return tn_cuda_enter(c);
    tn_status status = refuse_lost(c);
    if (status == TN_OK && !c->context)
        status =
            tn_cuda_check(c, c->driver.ctx_create(&c->context, CU_CTX_SCHED_AUTO, c->id), "making a context");
    if (status == TN_OK) status = tn_cuda_enter(c);
    if (status == TN_OK)
        status =
            tn_cuda_check(c, c->driver.stream_create(&c->stream, CU_STREAM_NON_BLOCKING), "making a stream");
    return status;
}

uint64_t tn_cuda_memory_free(const tn_device *device)
{
    tn_cuda *c = tn_cuda_of(device);
    size_t free = 0, total = 0;
    if (activate(c) != TN_OK || c->driver.mem_info(&free, &total) != CUDA_SUCCESS) return 0;
    return free;
}

tn_status tn_cuda_buffer_create(tn_device *device, size_t size, tn_buffer *out)
{
    tn_cuda *c = tn_cuda_of(device);
    CUdeviceptr at = 0;
    tn_status status = activate(c);
    if (status != TN_OK) return status;
    CUresult r = c->driver.mem_alloc(&at, TN_MAX(size, 1));
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return tn_fail(device->ctx, TN_ERR_MEMORY, "%s: out of memory: %zu MiB are wanted, %zu MiB are free",
                       device->name, size >> 20, (size_t)(tn_cuda_memory_free(device) >> 20));
    status = tn_cuda_check(c, r, "allocating");
    if (status != TN_OK) return status;
    out->data = (void *)(uintptr_t)at;
    return TN_OK;
}

void tn_cuda_buffer_destroy(tn_buffer *buffer)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_cuda_settle(c);
    tn_cuda_derived_drop(c, buffer->data, buffer->size);
    tn_cuda_memory_drop(c, (CUdeviceptr)(uintptr_t)buffer->data);
}

static CUdeviceptr address(const tn_buffer *b, size_t offset)
{
    return (CUdeviceptr)(uintptr_t)b->data + offset;
}

// In order with the work on the stream; the host's bytes have been copied when the call returns, because
// they are pageable (CUDA Driver API, synchronisation behaviour of memcpy). For that the driver may wait for
// the work before the copy, without a limit, so the wait that has one comes first.
tn_status tn_cuda_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK || n == 0) return status;
    status = tn_cuda_wait_all(c, "copying to the device");
    if (status != TN_OK) return status;
    return tn_cuda_check(c, c->driver.copy_to_device(address(buffer, offset), bytes, n, c->stream),
                         "copying to the device");
}

tn_status tn_cuda_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK || n == 0) return status;
    status = tn_cuda_wait_all(c, "copying to the host");
    if (status != TN_OK) return status;
    status = tn_cuda_check(c, c->driver.copy_to_host(bytes, address(buffer, offset), n, c->stream),
                           "copying to the host");
    return status == TN_OK ? tn_cuda_wait_all(c, "copying to the host") : status;
}

tn_status tn_cuda_buffer_zero(tn_buffer *buffer, size_t offset, size_t n, size_t pitch, size_t rows)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK || n == 0) return status;
    CUresult r = rows > 1 ? c->driver.fill_rows(address(buffer, offset), pitch, 0, n, rows, c->stream)
                          : c->driver.fill(address(buffer, offset), 0, n, c->stream);
    return tn_cuda_check(c, r, "clearing");
}

tn_status tn_cuda_host_create(tn_device *device, size_t size, void **out)
{
    tn_cuda *c = tn_cuda_of(device);
    tn_status status = activate(c);
    // Under unified addressing kernels reach it by the same address (CUDA Driver API, cuMemHostAlloc).
    if (status == TN_OK)
        status = tn_cuda_check(c, c->driver.host_alloc(out, TN_MAX(size, 1), CU_MEMHOSTALLOC_PORTABLE),
                               "pinning memory");
    if (status == TN_OK) memset(*out, 0, size);
    return status;
}

void tn_cuda_host_destroy(tn_device *device, void *host)
{
    tn_cuda *c = tn_cuda_of(device);
    if (tn_cuda_settle(c)) c->driver.host_free(host);
}
