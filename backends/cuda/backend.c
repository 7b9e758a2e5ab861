// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA backend: which devices there are. Each tenon context has driver contexts of its own, so that an
// error that breaks one leaves the others alone.
#include "core/backend.h"

#include "backends/cuda/join.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/product/gemm/cublas.h"
#include "backends/cuda/runtime/derived.h"
#include "backends/cuda/runtime/staged.h"
#include "backends/cuda/runtime/tune.h"
#include "core/device.h"

#include <stdio.h>

extern const tn_backend tn_backend_cuda;

// Attributes of the device; *r: the first error of several.
static int32_t attribute(const tn_cuda *c, CUdevice_attribute which, CUresult *r)
{
    int value = 0;
    if (*r == CUDA_SUCCESS) *r = c->driver.device_attribute(&value, which, c->id);
    return value;
}

static void destroy(tn_cuda *c)
{
    tn_context *ctx = c->device->ctx;
    bool there = c->context && tn_cuda_settle(c);
    if (c->context) tn_cuda_upload_free(c);
    tn_cuda_derived_free(c);
    tn_cuda_cublas_free(c);
    for (int32_t i = 0; i < TN_CUDA_MODULE_COUNT && there; i++)
        if (c->modules[i]) c->driver.module_unload(c->modules[i]);
    if (there && c->stream) c->driver.stream_destroy(c->stream);
    if (there) c->driver.ctx_destroy(c->context);
    tn_cuda_tuning_free(c);
    // Closing a library calls it, too.
    if (!tn_cuda_is_given_up(c)) tn_cuda_driver_close(&c->driver);
    tn_free(ctx, c);
}

// Tokens of a prompt at a time. Weights that are expanded before they are multiplied, and tiles of 128 rows,
// need more than 512: on an H200 (8B, 4096 tokens) batches of 512, 2048 and 4096 reach 33.7k, 38.5k and 37.9k
// tok/s with bf16, 24.8k, 32.8k and 34.2k with Q4_K_M.
enum { BATCH = 2048 };
// Multiplications of one graph for each multiprocessor: some 14 ms on an H200, 90 on small cards. Between
// graphs work can be cancelled; each costs some 100 us.
static const double work_each = 3.5e10;

static CUresult describe(tn_cuda *c, int ordinal)
{
    tn_device *d = c->device;
    char name[96] = "";
    int version = 0;
    size_t total = 0;
    CUresult r = c->driver.device_name(name, sizeof name, c->id);
    if (r == CUDA_SUCCESS) r = c->driver.driver_version(&version);
    if (r == CUDA_SUCCESS) r = c->driver.device_total(&total, c->id);
    c->compute = 10 * attribute(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &r) +
                 attribute(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &r);
    c->n_sms = attribute(c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &r);
    c->max_shared = attribute(c, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &r);
    c->l2_size = (size_t)attribute(c, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &r);
    if (r != CUDA_SUCCESS) return r;
    d->memory_total = total;
    d->n_batch = BATCH;
    d->max_work = work_each * c->n_sms;
    snprintf(d->name, sizeof d->name, "cuda:%d", ordinal);
    snprintf(d->description, sizeof d->description,
             "%s, compute capability %d.%d, %d multiprocessors, CUDA driver %d.%d", name, c->compute / 10,
             c->compute % 10, c->n_sms, version / 1000, version % 1000 / 10);
    return CUDA_SUCCESS;
}

// The driver table is small: every device has a copy, and a handle on the library. The context goes on
// without a device that the driver does not open.
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
    c->kernels = &tn_cuda_kernels;
    atomic_init(&c->lost, 0);
    snprintf(d->name, sizeof d->name, "cuda:%d", ordinal);
    CUresult r = c->driver.device_get(&c->id, ordinal);
    if (r == CUDA_SUCCESS) r = describe(c, ordinal);
    tn_status status = TN_OK;
    if (r != CUDA_SUCCESS) {
        const char *text = NULL;
        c->driver.error_string(r, &text);
        snprintf(why, sizeof why, "cuda:%d cannot be opened: %s", ordinal, text ? text : "unknown error");
        tn_backend_absent(ctx, "cuda", why);
    } else {
        tn_cuda_cublas_init(c);
        tn_cuda_tuning_load(c);
        status = tn_device_add(ctx, d);
        if (status == TN_OK) return TN_OK;
    }
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
        snprintf(why, sizeof why, "the NVIDIA driver finds no device%s%s", text ? ": " : "",
                 text ? text : "");
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

const tn_backend tn_backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .memory_free = tn_cuda_memory_free,
    .buffer_create = tn_cuda_buffer_create,
    .buffer_destroy = tn_cuda_buffer_destroy,
    .buffer_write = tn_cuda_buffer_write,
    .buffer_read = tn_cuda_buffer_read,
    .buffer_zero = tn_cuda_buffer_zero,
    .host_create = tn_cuda_host_create,
    .host_destroy = tn_cuda_host_destroy,
    .weight_write = tn_cuda_weight_write,
    .precisions = tn_cuda_precisions,
    .accepts = tn_cuda_accepts,
    .joins = tn_cuda_joins,
    .staged_size = tn_cuda_join_staged_size,
    .prepare = tn_cuda_prepare,
    .scratch_size = tn_cuda_scratch_size,
    .derived_size = tn_cuda_derived_size,
    .derived_used = tn_cuda_derived_used,
    .executable_destroy = tn_cuda_executable_destroy,
    .kernel_name = tn_cuda_kernel_name,
    .launches = tn_cuda_launches,
    .copy_kernel = "tn_copy_list",
    .rounding = tn_cuda_rounding,
    .submit = tn_cuda_submit,
    .wait = tn_cuda_wait,
};
