// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/derived.h"

#include "core/context.h"

// The share of the device's memory that stays free: caches and sessions made later need it.
enum { FREE_SHARE = 4, SMALL = 4096 }; // SMALL: bytes that are made all the same

typedef struct derived {
    tn_view weight;   // its buffer may be gone when it is dropped: data alone says where it is
    const char *from; // the whole weight that `weight` is a part of
    size_t from_size;
    int32_t form;
    tn_cuda_derive_fn make;
    CUdeviceptr to;
    size_t size; // bytes at `to`
} derived;

struct tn_cuda_derived {
    int32_t n, capacity;
    derived *all;
    uint64_t declined; // bytes that were not made since the last report
    bool reported;
};

static bool same_weight(const tn_view *a, const tn_view *b)
{
    bool same = a->data == b->data && a->dtype == b->dtype;
    for (int32_t d = 0; d < TN_MAX_DIMS; d++) same = same && a->ne[d] == b->ne[d] && a->nb[d] == b->nb[d];
    return same;
}

void *tn_cuda_derived_find(const tn_cuda *c, const tn_view *w, int32_t form)
{
    const struct tn_cuda_derived *list = c->derived;
    for (int32_t i = 0; list && i < list->n; i++)
        if (list->all[i].form == form && same_weight(&list->all[i].weight, w))
            return (void *)(uintptr_t)list->all[i].to;
    return NULL;
}

static bool was_written(const tn_view *w)
{
    const tn_buffer *b = w->buffer;
    return b && b->weight_size > 0 && w->offset >= b->weight_offset &&
           w->offset < b->weight_offset + b->weight_size;
}

static tn_status add_capacity(tn_cuda *c)
{
    tn_context *ctx = c->device->ctx;
    if (!c->derived) c->derived = tn_calloc(ctx, 1, sizeof *c->derived);
    if (!c->derived) return TN_ERR_MEMORY;
    struct tn_cuda_derived *list = c->derived;
    if (list->n < list->capacity) return TN_OK;
    int32_t capacity = 2 * list->capacity + 64;
    derived *all =
        tn_realloc(ctx, list->all, (size_t)list->capacity * sizeof *all, (size_t)capacity * sizeof *all);
    if (!all) return TN_ERR_MEMORY;
    list->all = all;
    list->capacity = capacity;
    return TN_OK;
}

static tn_status decline(tn_cuda *c, size_t size)
{
    c->derived->declined += size;
    return TN_OK;
}

tn_status tn_cuda_derived_make(tn_cuda *c, const tn_view *w, int32_t form, size_t size,
                               tn_cuda_derive_fn make)
{
    if (!was_written(w) || tn_cuda_derived_find(c, w, form)) return TN_OK;
    tn_status status = add_capacity(c);
    if (status != TN_OK) return status;
    bool fits = tn_cuda_memory_free(c->device) >= size + c->device->memory_total / FREE_SHARE;
    if (!fits && size > SMALL) return decline(c, size);
    const tn_buffer *b = w->buffer;
    derived d = {.weight = *w,
                 .from = (const char *)w->data - (w->offset - b->weight_offset),
                 .from_size = b->weight_size,
                 .form = form,
                 .make = make,
                 .size = size};
    CUresult r = c->driver.mem_alloc(&d.to, size);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) return decline(c, size);
    status = tn_cuda_check(c, r, "allocating");
    if (status != TN_OK) return status;
    status = make(c, w, form, (void *)(uintptr_t)d.to);
    if (status == TN_OK)
        c->derived->all[c->derived->n++] = d;
    else
        tn_cuda_memory_drop(c, d.to);
    return status;
}

tn_status tn_cuda_derived_report(tn_cuda *c)
{
    struct tn_cuda_derived *list = c->derived;
    if (!list || list->declined == 0 || list->reported) return TN_OK;
    uint64_t declined = list->declined;
    list->declined = 0;
    list->reported = true;
    return tn_event(c->device->ctx, TN_EVENT_WEIGHTS_CONVERTED,
                    "%s: %llu MiB of weights are converted again in each run: 1/%d of the memory stays free, "
                    "and %llu MiB are",
                    c->device->name, (unsigned long long)(declined >> 20), FREE_SHARE,
                    (unsigned long long)(tn_cuda_memory_free(c->device) >> 20));
}

static bool overlaps(const derived *d, const void *from, size_t n)
{
    const char *first = from;
    return d->from < first + n && first < d->from + d->from_size;
}

uint64_t tn_cuda_derived_kept(const tn_cuda *c, const void *from, size_t n)
{
    uint64_t size = 0;
    for (int32_t i = 0; c->derived && i < c->derived->n; i++)
        if (overlaps(&c->derived->all[i], from, n)) size += c->derived->all[i].size;
    return size;
}

tn_status tn_cuda_derived_update(tn_cuda *c, const void *from, size_t n)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; c->derived && i < c->derived->n && status == TN_OK; i++) {
        const derived *d = &c->derived->all[i];
        if (overlaps(d, from, n)) status = d->make(c, &d->weight, d->form, (void *)(uintptr_t)d->to);
    }
    return status;
}

void tn_cuda_derived_drop(tn_cuda *c, const void *from, size_t n)
{
    struct tn_cuda_derived *list = c->derived;
    int32_t kept = 0;
    for (int32_t i = 0; list && i < list->n; i++) {
        if (overlaps(&list->all[i], from, n))
            tn_cuda_memory_drop(c, list->all[i].to);
        else
            list->all[kept++] = list->all[i];
    }
    if (list) list->n = kept;
}

void tn_cuda_derived_free(tn_cuda *c)
{
    struct tn_cuda_derived *list = c->derived;
    if (!list) return;
    for (int32_t i = 0; i < list->n; i++) tn_cuda_memory_drop(c, list->all[i].to);
    tn_free(c->device->ctx, list->all);
    tn_free(c->device->ctx, list);
    c->derived = NULL;
}
