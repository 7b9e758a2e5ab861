// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/device.h"

#include "core/context_impl.h"

#include <stdio.h>
#include <string.h>

tn_status tn_device_add(tn_context *ctx, tn_device *device)
{
    if (ctx->n_devices == TN_MAX_DEVICES)
        return tn_fail(ctx, TN_ERR_DEVICE, "more than %d devices", TN_MAX_DEVICES);
    device->ctx = ctx;
    ctx->devices[ctx->n_devices++] = device;
    return TN_OK;
}

void tn_backend_absent(tn_context *ctx, const char *backend, const char *why)
{
    size_t n = strlen(ctx->absent);
    snprintf(ctx->absent + n, sizeof ctx->absent - n, "%s: %s\n", backend, why);
}

static bool wanted(const tn_context *ctx, const tn_backend *backend)
{
    return !ctx->cfg.backend || backend->role != TN_BACKEND_ACCELERATOR ||
           strcmp(backend->name, ctx->cfg.backend) == 0;
}

// With one_backend: an accelerator that is open already, so that no other backend needs to be opened. Else
// NULL.
static const tn_device *open_accelerator(const tn_context *ctx)
{
    for (int32_t i = 0; i < ctx->n_devices && ctx->cfg.one_backend; i++)
        if (!ctx->devices[i]->software && !ctx->devices[i]->host_memory) return ctx->devices[i];
    return NULL;
}

// Whether there is a backend of that name at all, in this build or another.
static tn_status check_name(tn_context *ctx, const char *name)
{
    char known[160] = "";
    size_t used = 0;
    for (int i = 0; tn_backends[i]; i++) {
        if (strcmp(name, tn_backends[i]->name) == 0) return TN_OK;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, " %s", tn_backends[i]->name);
    }
    for (int i = 0; tn_backends_not_built[i]; i++)
        if (strcmp(name, tn_backends_not_built[i]) == 0) return TN_OK;
    return tn_fail(ctx, TN_ERR_ARG, "there is no backend \"%s\"; this build has:%s", name, known);
}

tn_status tn_devices_open(tn_context *ctx)
{
    tn_status named = ctx->cfg.backend ? check_name(ctx, ctx->cfg.backend) : TN_OK;
    if (named != TN_OK) return named;
    for (int i = 0; tn_backends[i]; i++) {
        if (!wanted(ctx, tn_backends[i])) continue;
        const tn_device *enough =
            tn_backends[i]->role == TN_BACKEND_ACCELERATOR ? open_accelerator(ctx) : NULL;
        if (enough && enough->backend != tn_backends[i]) {
            char why[80];
            snprintf(why, sizeof why, "not looked for, as there is %s", enough->name);
            tn_backend_absent(ctx, tn_backends[i]->name, why);
            continue;
        }
        if (ctx->cfg.deterministic && !tn_backends[i]->deterministic) {
            tn_backend_absent(ctx, tn_backends[i]->name, "it has no deterministic mode");
            continue;
        }
        tn_status status = tn_backends[i]->open(ctx);
        if (status != TN_OK) return status;
    }
    for (int i = 0; tn_backends_not_built[i]; i++) {
        char why[160];
        const char *name = tn_backends_not_built[i];
        snprintf(why, sizeof why,
                 "not part of this build; 'meson configure BUILD -D%s=enabled' in its source adds it, or "
                 "says what that needs",
                 name);
        tn_backend_absent(ctx, name, why);
    }
    return TN_OK;
}

void tn_devices_close(tn_context *ctx)
{
    for (int32_t i = ctx->n_devices - 1; i >= 0; i--) {
        tn_device *d = ctx->devices[i];
        d->backend->close(d);
        tn_free(ctx, d);
    }
    ctx->n_devices = 0;
}

int32_t tn_context_n_devices(const tn_context *ctx)
{
    if (!ctx) return 0;
    return ctx->n_devices;
}

tn_device *tn_context_device_get(const tn_context *ctx, int32_t i)
{
    if (!ctx) return NULL;
    return i >= 0 && i < ctx->n_devices ? ctx->devices[i] : NULL;
}

// "cuda" finds "cuda:0" too: the first device of a backend.
tn_device *tn_context_device_by_name(const tn_context *ctx, const char *name)
{
    if (!ctx || !name) return NULL;
    for (int32_t i = 0; i < ctx->n_devices; i++) {
        tn_device *d = ctx->devices[i];
        if (strcmp(d->name, name) == 0 || strcmp(d->backend->name, name) == 0) return d;
    }
    return NULL;
}

tn_device *tn_device_of_role(const tn_context *ctx, tn_backend_role role)
{
    for (int32_t i = 0; i < ctx->n_devices; i++)
        if (ctx->devices[i]->backend->role == role) return ctx->devices[i];
    return NULL;
}

tn_status tn_device_info_get(const tn_device *device, tn_device_info *info)
{
    TN_NEED(NULL, device);
    tn_device_info now = {
        .name = device->name,
        .description = device->description,
        .backend = device->backend->name,
        .memory_total = device->memory_total,
        .memory_free = device->backend->memory_free(device),
    };
    return TN_STRUCT_WRITE(device->ctx, tn_device_info, info, &now);
}

size_t tn_device_details(tn_device *device, char *buf, size_t size)
{
    if (buf && size > 0) buf[0] = 0;
    if (!device || !device->backend->details) return 0;
    return device->backend->details(device, buf, buf ? size : 0);
}

size_t tn_context_absent_backends(const tn_context *ctx, char *buf, size_t size)
{
    if (!ctx) return 0;
    if (buf && size > 0) snprintf(buf, size, "%s", ctx->absent);
    return strlen(ctx->absent);
}

tn_status tn_buffer_create(tn_device *device, size_t size, tn_buffer *out)
{
    tn_buffer b = {.device = device, .size = size};
    tn_status status = device->backend->buffer_create(device, size, &b);
    if (status == TN_OK) *out = b;
    return status;
}

tn_buffer tn_buffer_borrow(tn_device *device, const void *data, size_t size)
{
    // Kernels never write to weights; the interface has one pointer for both directions.
    return (tn_buffer){.device = device, .data = (void *)(uintptr_t)data, .size = size, .borrowed = true};
}

tn_buffer tn_buffer_part(const tn_buffer *whole, size_t offset, size_t size)
{
    return (tn_buffer){.device = whole->device,
                       .data = (char *)whole->data + offset,
                       .size = size,
                       .borrowed = true,
                       .handle = whole->handle};
}

void tn_buffer_destroy(tn_buffer *buffer)
{
    if (buffer->data && !buffer->borrowed) buffer->device->backend->buffer_destroy(buffer);
    *buffer = (tn_buffer){0};
}

static tn_status check_range(const tn_buffer *b, size_t offset, size_t n)
{
    if (offset > b->size || n > b->size - offset)
        return tn_fail(b->device->ctx, TN_ERR_ARG, "buffer: range %zu + %zu exceeds %zu bytes", offset, n,
                       b->size);
    return TN_OK;
}

tn_status tn_buffer_write(tn_buffer *b, size_t offset, const void *bytes, size_t n)
{
    tn_status status = check_range(b, offset, n);
    return status != TN_OK ? status : b->device->backend->buffer_write(b, offset, bytes, n);
}

tn_status tn_buffer_write_weight(tn_buffer *b, size_t offset, const struct tn_view *weight, const void *bytes,
                                 size_t size)
{
    const tn_backend *backend = b->device->backend;
    tn_status status = check_range(b, offset, size);
    if (status != TN_OK) return status;
    return backend->weight_write ? backend->weight_write(b, offset, weight, bytes)
                                 : backend->buffer_write(b, offset, bytes, size);
}

tn_status tn_buffer_zero_rows(tn_buffer *b, size_t offset, size_t n, size_t pitch, size_t rows)
{
    static const char zeros[65536];
    if (rows == 0 || n == 0) return TN_OK;
    tn_status status = check_range(b, offset, (rows - 1) * pitch + n);
    if (status == TN_OK && b->device->backend->buffer_zero)
        return b->device->backend->buffer_zero(b, offset, n, pitch, rows);
    for (size_t r = 0; r < rows; r++)
        for (size_t at = 0; at < n && status == TN_OK; at += sizeof zeros)
            status = b->device->backend->buffer_write(b, offset + r * pitch + at, zeros,
                                                      TN_MIN(sizeof zeros, n - at));
    return status;
}

tn_status tn_buffer_zero(tn_buffer *b, size_t offset, size_t n)
{
    return tn_buffer_zero_rows(b, offset, n, n, 1);
}

tn_status tn_buffer_read(const tn_buffer *b, size_t offset, void *bytes, size_t n)
{
    tn_status status = check_range(b, offset, n);
    return status != TN_OK ? status : b->device->backend->buffer_read(b, offset, bytes, n);
}

// --- waiting ---------------------------------------------------------------------------------------------

tn_device_wait tn_device_wait_begin(const tn_device *device)
{
    return (tn_device_wait){.limit_ns = tn_context_device_timeout(device->ctx), .last_ns = tn_time_ns()};
}

bool tn_device_wait_over(tn_device_wait *w)
{
    uint64_t now = tn_time_ns();
    w->waited_ns += TN_MIN(now - w->last_ns, (uint64_t)TN_DEVICE_WAIT_SLICE);
    w->last_ns = now;
    return w->waited_ns >= w->limit_ns;
}

uint64_t tn_device_wait_slice(const tn_device_wait *w)
{
    return TN_MIN(w->limit_ns - TN_MIN(w->waited_ns, w->limit_ns), (uint64_t)TN_DEVICE_WAIT_SLICE);
}

tn_status tn_device_wait_fail(const tn_device *device, const tn_device_wait *w, const char *what)
{
    return tn_fail(device->ctx, TN_ERR_DEVICE,
                   "%s: %s: the device was lost: its work did not end within %.3g s, so it was given up",
                   device->name, what, (double)w->waited_ns * 1e-9);
}

tn_status tn_device_fail_given_up(const tn_device *device)
{
    return tn_fail(device->ctx, TN_ERR_DEVICE,
                   "%s: the device was lost: it was given up, because its work did not end within %.3g s; a "
                   "new context may try it again",
                   device->name, (double)tn_context_device_timeout(device->ctx) * 1e-9);
}
