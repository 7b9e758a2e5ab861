// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A device with memory of its own, without hardware: the CPU's kernels on pages that nobody can touch outside
// of the device's functions. It counts its bytes, has as many as a test says, and can refuse ops. One at a
// time.
#ifndef TN_TESTS_MODELS_FAR_DEVICE_H
#define TN_TESTS_MODELS_FAR_DEVICE_H

#include "core/device.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tenon/session.h>

extern const tn_backend tn_backend_cpu;

enum { FAR_BUFFERS = 64, FAR_PAGE = 1 << 16 }; // no system has larger pages

static struct {
    tn_backend backend;
    size_t total, used;
    uint64_t refuses; // bit per op
    uint64_t fails;   // bit per op that it accepts, but cannot prepare
    long n_tuned;     // results of products that tuning has overwritten
    long n_foreign;   // operands in memory that is not the device's
    long n_buffers;
    long n_submits, cancel_at; // `cancel` is set after submission cancel_at, counted from 1; 0: never
    tn_session *cancel;
    long write_fails, read_fails; // the copy to or from it that fails, counted from 1 and down; 0: none does
    struct {
        void *data;
        size_t size;
    } buffers[FAR_BUFFERS];
} far;

static inline void far_protect(int how)
{
    for (int i = 0; i < FAR_BUFFERS; i++)
        if (far.buffers[i].data && mprotect(far.buffers[i].data, far.buffers[i].size, how) != 0) abort();
}

static inline uint64_t far_memory_free(const tn_device *device)
{
    TN_UNUSED(device);
    return far.total > far.used ? far.total - far.used : 0;
}

static inline tn_status far_create(tn_device *device, size_t size, tn_buffer *out)
{
    if (size > far_memory_free(device))
        return tn_fail(device->ctx, TN_ERR_MEMORY, "out of memory: %zu bytes wanted on %s, %zu are free",
                       size, device->name, (size_t)far_memory_free(device));
    out->handle = tn_alloc(device->ctx, 1); // so that the allocations of a test can fail here too
    if (!out->handle) return TN_ERR_MEMORY;
    int i = 0;
    while (i < FAR_BUFFERS && far.buffers[i].data) i++;
    size_t whole_pages = (size + FAR_PAGE) / FAR_PAGE * FAR_PAGE;
    out->data = tn_system_alloc(whole_pages, FAR_PAGE);
    if (i == FAR_BUFFERS || !out->data) abort();
    far.buffers[i].data = out->data;
    far.buffers[i].size = whole_pages;
    far_protect(PROT_NONE);
    far.used += size;
    far.n_buffers++;
    return TN_OK;
}

static inline void far_destroy(tn_buffer *buffer)
{
    int i = 0;
    while (i < FAR_BUFFERS && far.buffers[i].data != buffer->data) i++;
    if (i == FAR_BUFFERS) abort();
    if (mprotect(buffer->data, far.buffers[i].size, PROT_READ | PROT_WRITE) != 0) abort();
    tn_system_free(buffer->data);
    far.buffers[i].data = NULL;
    far.used -= buffer->size;
    far.n_buffers--;
    tn_free(buffer->device->ctx, buffer->handle);
}

static inline tn_status far_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n)
{
    if (far.write_fails > 0 && --far.write_fails == 0)
        return tn_fail(buffer->device->ctx, TN_ERR_DEVICE, "a copy to %s failed", buffer->device->name);
    far_protect(PROT_READ | PROT_WRITE);
    if (n > 0) memcpy((char *)buffer->data + offset, bytes, n);
    far_protect(PROT_NONE);
    return TN_OK;
}

static inline tn_status far_zero(tn_buffer *buffer, size_t offset, size_t n, size_t pitch, size_t rows)
{
    far_protect(PROT_READ | PROT_WRITE);
    for (size_t r = 0; r < rows; r++) memset((char *)buffer->data + offset + r * pitch, 0, n);
    far_protect(PROT_NONE);
    return TN_OK;
}

static inline tn_status far_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n)
{
    if (far.read_fails > 0 && --far.read_fails == 0)
        return tn_fail(buffer->device->ctx, TN_ERR_DEVICE, "a copy from %s failed", buffer->device->name);
    far_protect(PROT_READ | PROT_WRITE);
    if (n > 0) memcpy(bytes, (const char *)buffer->data + offset, n);
    far_protect(PROT_NONE);
    return TN_OK;
}

static inline bool far_accepts(const tn_device *device, const tn_step *step)
{
    return !(far.refuses >> step->op & 1) && tn_backend_cpu.accepts(device, step);
}

// Where the context tunes, a device runs the products of a plan as it is made, with whatever lies in their
// sources, as CUDA does to time its kernels: their results are overwritten.
static inline void far_tune(const tn_program *program)
{
    far_protect(PROT_READ | PROT_WRITE);
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_step *s = &program->steps[i];
        bool product = s->op == TN_OP_matmul || s->op == TN_OP_linear || s->op == TN_OP_matmul_multi ||
                       s->op == TN_OP_matmul_glu;
        for (int32_t k = 0; k < s->n_dst && product; k++) {
            const tn_view *v = &s->dst[k];
            int64_t n_rows = v->data ? v->ne[0] * v->ne[1] * v->ne[2] : 0;
            size_t size = tn_dtype_row_size(v->dtype, v->ne[3]);
            for (int64_t r = 0; r < n_rows; r++) {
                int64_t at[] = {r / (v->ne[1] * v->ne[2]), r / v->ne[2] % v->ne[1], r % v->ne[2]};
                memset((char *)v->data + at[0] * v->nb[0] + at[1] * v->nb[1] + at[2] * v->nb[2], 0x41, size);
            }
            far.n_tuned += n_rows > 0;
        }
    }
    far_protect(PROT_NONE);
}

static inline tn_status far_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                                    tn_executable **out)
{
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_step *s = &program->steps[i];
        if (far.fails >> s->op & 1)
            return tn_fail(device->ctx, TN_ERR_DEVICE, "no kernel of %s is right", tn_op_name(s->op));
        for (int32_t k = 0; k < s->n_src; k++)
            far.n_foreign += s->src[k].data && s->src[k].buffer->device != device;
        for (int32_t k = 0; k < s->n_dst; k++)
            far.n_foreign += s->dst[k].data && s->dst[k].buffer->device != device;
    }
    if (tn_context_tunes(device->ctx)) far_tune(program);
    return tn_backend_cpu.prepare(device, program, scratch, out);
}

static inline tn_status far_submit(tn_device *device, tn_executable *e, const tn_submit_options *options)
{
    far_protect(PROT_READ | PROT_WRITE);
    tn_status status = tn_backend_cpu.submit(device, e, options);
    far_protect(PROT_NONE);
    if (++far.n_submits == far.cancel_at) tn_session_cancel(far.cancel, 1);
    return status;
}

static inline void far_close(tn_device *device)
{
    TN_UNUSED(device); // its impl is the CPU's
}

// Adds the device "far" to the context, which owns it.
static inline tn_device *far_add(tn_context *ctx, size_t total)
{
    tn_device *d = tn_calloc(ctx, 1, sizeof *d);
    if (!d) abort();
    memset(&far, 0, sizeof far);
    *d = *tn_context_device_by_name(ctx, "cpu");
    far.total = total;
    far.backend = *d->backend;
    far.backend.name = "far";
    far.backend.role = TN_BACKEND_ACCELERATOR;
    far.backend.close = far_close;
    far.backend.memory_free = far_memory_free;
    far.backend.buffer_create = far_create;
    far.backend.buffer_destroy = far_destroy;
    far.backend.buffer_write = far_write;
    far.backend.buffer_read = far_read;
    far.backend.buffer_zero = far_zero;
    far.backend.accepts = far_accepts;
    far.backend.prepare = far_prepare;
    far.backend.submit = far_submit;
    d->backend = &far.backend;
    d->host_memory = false;
    d->memory_total = total;
    memcpy(d->name, "far", 4);
    if (tn_device_add(ctx, d) != TN_OK) abort();
    return d;
}

#define FAR_REFUSE(op) ((uint64_t)1 << TN_OP_##op)

#endif
