// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights on their way to the device: file bytes are read by the thread team into pinned memory, cross the
// bus while the next piece is being copied, and are sorted into planes by a kernel.
#include "backends/cuda/runtime/derived.h"
#include "backends/cuda/runtime/kernel.h"
#include "core/os/file_map.h"

#include <string.h>

// Two pieces in flight hide the copy of the host behind the bus; 16 MiB is long against the start of a copy.
enum { PIECES = 2, PIECE_SIZE = 16 << 20 };

struct tn_cuda_upload {
    char *host[PIECES];        // pinned
    CUdeviceptr stage[PIECES]; // on the device, for types that are sorted
    CUevent done[PIECES];      // the piece has been copied out of the pinned memory
    int32_t next;
};

void tn_cuda_upload_free(tn_cuda *c)
{
    struct tn_cuda_upload *u = c->upload;
    if (!u) return;
    bool there = tn_cuda_settle(c);
    for (int32_t i = 0; i < PIECES && there; i++) {
        if (u->host[i]) c->driver.host_free(u->host[i]);
        if (u->stage[i]) c->driver.mem_free(u->stage[i]);
        if (u->done[i]) c->driver.event_destroy(u->done[i]);
    }
    tn_free(c->device->ctx, u);
    c->upload = NULL;
}

static tn_status make_upload(tn_cuda *c)
{
    if (c->upload) return TN_OK;
    c->upload = tn_calloc(c->device->ctx, 1, sizeof *c->upload);
    if (!c->upload) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < PIECES && status == TN_OK; i++) {
        void *host = NULL;
        status = tn_cuda_check(c, c->driver.host_alloc(&host, PIECE_SIZE, 0), "pinning memory");
        c->upload->host[i] = host;
        if (status == TN_OK)
            status = tn_cuda_check(c, c->driver.mem_alloc(&c->upload->stage[i], PIECE_SIZE), "allocating");
        if (status == TN_OK)
            status = tn_cuda_check(c, c->driver.event_create(&c->upload->done[i], CU_EVENT_DISABLE_TIMING),
                                   "making an event");
    }
    if (status != TN_OK) tn_cuda_upload_free(c);
    return status;
}

typedef struct host_copy {
    tn_context *ctx;
    char *to;
    const char *from;
    size_t n;
    _Atomic int32_t failed; // a tn_status
} host_copy;

static void copy_part(void *arg, int32_t i, int32_t team)
{
    host_copy *h = arg;
    size_t part = (h->n / (size_t)team + 63) / 64 * 64, first = TN_MIN(h->n, (size_t)i * part);
    size_t last = i + 1 == team ? h->n : TN_MIN(h->n, first + part);
    tn_status status =
        first < last ? tn_file_map_copy(h->ctx, h->to + first, h->from + first, last - first) : TN_OK;
    // Relaxed: the end of the team orders it.
    if (status != TN_OK) atomic_store_explicit(&h->failed, (int32_t)status, memory_order_relaxed);
}

static tn_status sort_piece(tn_cuda *c, tn_cuda_pack_args *pack, const tn_cuda_weight *w, CUdeviceptr stage,
                            int64_t first, int64_t n_blocks)
{
    tn_cuda_launch l = {.cuda = c};
    tn_cuda_grid grid = {.x = (uint32_t)(8 * c->n_sms), .y = 1, .z = 1, .threads = 256};
    pack->from = (const uint8_t *)(uintptr_t)stage;
    pack->n_blocks = n_blocks;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        pack->plane[p] = (uint8_t *)(uintptr_t)w->plane[p] + first * pack->plane_bytes[p];
    return tn_cuda_run(&l, TN_CUDA_MODULE_pack, "tn_pack", &grid, pack);
}

tn_status tn_cuda_weight_write(tn_buffer *buffer, size_t offset, const tn_view *weight, const void *bytes)
{
    tn_cuda *c = tn_cuda_of(buffer->device);
    tn_status status = tn_cuda_enter(c);
    if (status == TN_OK) status = make_upload(c);
    if (status != TN_OK) return status;
    tn_view at = *weight;
    at.data = (char *)buffer->data + offset;
    at.buffer = NULL; // a whole
    tn_cuda_pack_args pack;
    bool sorted = tn_cuda_layout_get(weight->dtype, &pack);
    tn_cuda_weight planes = tn_cuda_weight_planes(&at);
    size_t size = tn_dtype_row_size(weight->dtype, weight->ne[3]) * (size_t)tn_view_n_rows(weight);
    size_t block = (size_t)pack.block_size, piece = PIECE_SIZE / block * block;
    for (size_t done = 0; done < size && status == TN_OK; done += piece) {
        struct tn_cuda_upload *u = c->upload;
        int32_t k = u->next++ % PIECES;
        size_t n = TN_MIN(piece, size - done);
        status = tn_cuda_wait_event(c, u->done[k], "copying weights");
        if (status != TN_OK) break;
        host_copy h = {buffer->device->ctx, u->host[k], (const char *)bytes + done, n, TN_OK};
        int32_t n_parts = n > (1 << 20) ? tn_context_n_threads(buffer->device->ctx) : 1;
        status = tn_parallel(buffer->device->ctx, n_parts, copy_part, &h);
        if (status == TN_OK) status = (tn_status)atomic_load_explicit(&h.failed, memory_order_relaxed);
        if (status != TN_OK) break;
        CUdeviceptr to = sorted ? u->stage[k] : (CUdeviceptr)(uintptr_t)at.data + done;
        status = tn_cuda_check(c, c->driver.copy_to_device(to, u->host[k], n, c->stream), "copying weights");
        if (status == TN_OK && sorted)
            status = sort_piece(c, &pack, &planes, to, (int64_t)(done / block), (int64_t)(n / block));
        if (status == TN_OK)
            status = tn_cuda_check(c, c->driver.event_record(u->done[k], c->stream), "copying weights");
    }
    if (status != TN_OK) return status;
    buffer->weight_offset = offset;
    buffer->weight_size = size;
    return tn_cuda_derived_update(c, at.data, size);
}
