// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The null backend: accepts every op and computes nothing. It tests passes without kernels and measures
// what the host spends on a step.
#include "core/backend.h"

#include "core/device.h"
#include "ops/step.h"

#include <stdio.h>
#include <string.h>

extern const tn_backend tn_backend_null;

static tn_status null_open(tn_context *ctx)
{
    tn_device *d = tn_calloc(ctx, 1, sizeof *d);
    if (!d) return TN_ERR_MEMORY;
    d->backend = &tn_backend_null;
    d->host_memory = true;
    snprintf(d->name, sizeof d->name, "null");
    snprintf(d->description, sizeof d->description, "computes nothing; for tests");
    tn_status status = tn_device_add(ctx, d);
    if (status != TN_OK) tn_free(ctx, d);
    return status;
}

static void null_close(tn_device *device)
{
    TN_UNUSED(device);
}

static uint64_t null_memory_free(const tn_device *device)
{
    TN_UNUSED(device);
    return 0;
}

static tn_status null_buffer_create(tn_device *device, size_t size, tn_buffer *out)
{
    out->data = tn_calloc(device->ctx, 1, size);
    return out->data ? TN_OK : TN_ERR_MEMORY;
}

static void null_buffer_destroy(tn_buffer *buffer)
{
    tn_free(buffer->device->ctx, buffer->data);
}

static tn_status null_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n)
{
    if (n > 0) memcpy((char *)buffer->data + offset, bytes, n);
    return TN_OK;
}

static tn_status null_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n)
{
    if (n > 0) memcpy(bytes, (const char *)buffer->data + offset, n);
    return TN_OK;
}

static uint32_t null_precisions(const tn_device *device)
{
    TN_UNUSED(device);
    return (1u << TN_PRECISION_COUNT) - 1;
}

static bool null_accepts(const tn_device *device, const tn_step *step)
{
    TN_UNUSED(device);
    TN_UNUSED(step);
    return true;
}

static size_t null_scratch_size(tn_device *device, const tn_program *program)
{
    TN_UNUSED(device);
    TN_UNUSED(program);
    return 0;
}

static tn_status null_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                              tn_executable **out)
{
    TN_UNUSED(program);
    TN_UNUSED(scratch);
    *out = tn_calloc(device->ctx, 1, 1); // it holds nothing, but is allocated and freed like any other
    return *out ? TN_OK : TN_ERR_MEMORY;
}

static void null_executable_destroy(tn_device *device, tn_executable *e)
{
    tn_free(device->ctx, e);
}

static const char *null_kernel_name(const tn_device *device, const tn_step *step)
{
    TN_UNUSED(device);
    TN_UNUSED(step);
    return "null";
}

static tn_status null_submit(tn_device *device, tn_executable *e, const tn_submit_options *options)
{
    TN_UNUSED(e);
    if (options && options->cancel && atomic_load(options->cancel))
        return tn_fail(device->ctx, TN_ERR_CANCELLED, "cancelled");
    return TN_OK;
}

static tn_status null_wait(tn_device *device, tn_executable *e)
{
    TN_UNUSED(device);
    TN_UNUSED(e);
    return TN_OK;
}

const tn_backend tn_backend_null = {
    .name = "null",
    .role = TN_BACKEND_NOOP,
    .deterministic = true,
    .open = null_open,
    .close = null_close,
    .memory_free = null_memory_free,
    .buffer_create = null_buffer_create,
    .buffer_destroy = null_buffer_destroy,
    .buffer_write = null_buffer_write,
    .buffer_read = null_buffer_read,
    .precisions = null_precisions,
    .accepts = null_accepts,
    .prepare = null_prepare,
    .scratch_size = null_scratch_size,
    .executable_destroy = null_executable_destroy,
    .kernel_name = null_kernel_name,
    .submit = null_submit,
    .wait = null_wait,
};
