// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types on the device. They have the same bytes as in the file, but sorted into planes
// (backends/planes.def): plane 0 has the codes of all blocks, others have high bits or scales. So loads are
// aligned, 16 bytes wide where a field has as many, and neighbouring invocations read neighbouring bytes. The
// host sorts them when weights are loaded.
#include "backends/vulkan/runtime/args.h"
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"

#include <string.h>

enum { MAX_PIECES = 6, ROWS_BYTES = 4 << 20 };

typedef struct piece {
    int16_t start, size, plane, at;
} piece;

typedef struct layout {
    tn_dtype dtype;
    piece pieces[MAX_PIECES];
} layout;

static const layout layouts[] = {
#define TN_PLANES(dtype, ...) {TN_TYPE_##dtype, {__VA_ARGS__}},
#include "backends/planes.def"
};

static const layout *find_layout(tn_dtype dtype)
{
    for (size_t i = 0; i < TN_COUNT(layouts); i++)
        if (layouts[i].dtype == dtype) return &layouts[i];
    return NULL;
}

bool tn_vk_weight_planes(const tn_view *w, tn_vk_weight *out)
{
    const layout *l = find_layout(w->dtype);
    int64_t block_bytes[TN_VK_MAX_PLANES] = {0}, size = (int64_t)tn_dtype_block_size(w->dtype);
    if (!l) block_bytes[0] = size;
    for (int32_t i = 0; l && i < MAX_PIECES; i++) block_bytes[l->pieces[i].plane] += l->pieces[i].size;
    // Of a part: blocks of the whole that its buffer holds, and those before the part.
    int64_t n_blocks = tn_view_n_elems(w) / tn_dtype_block_elems(w->dtype), first = 0;
    uint64_t at = (uint64_t)(uintptr_t)w->data;
    if (l && w->buffer && w->buffer->weight_size > 0) {
        int64_t before = (int64_t)w->offset - (int64_t)w->buffer->weight_offset;
        n_blocks = (int64_t)w->buffer->weight_size / size;
        first = before / size;
        at -= (uint64_t)before;
    }
    for (int32_t p = 0; p < TN_VK_MAX_PLANES; p++) {
        out->plane[p] = at + (uint64_t)(first * block_bytes[p]);
        out->row_size[p] = w->ne[3] / tn_dtype_block_elems(w->dtype) * block_bytes[p];
        at += (uint64_t)(n_blocks * block_bytes[p]);
    }
    return l != NULL;
}

// Rows [r0, r0 + n) of one plane, one after the other, into `to`.
static void gather(const layout *l, int32_t plane, size_t block_size, int64_t blocks, const char *from,
                   char *to)
{
    int64_t block_bytes = 0;
    for (int32_t i = 0; i < MAX_PIECES; i++)
        block_bytes += l->pieces[i].plane == plane ? l->pieces[i].size : 0;
    for (int32_t i = 0; i < MAX_PIECES; i++) {
        const piece *p = &l->pieces[i];
        if (p->plane != plane || p->size == 0) continue;
        for (int64_t b = 0; b < blocks; b++)
            memcpy(to + b * block_bytes + p->at, from + (size_t)b * block_size + p->start, (size_t)p->size);
    }
}

void tn_vk_weight_sort(const tn_view *there, const void *bytes, char *to)
{
    tn_vk_weight planes;
    int64_t n_rows = tn_view_n_rows(there), blocks = there->ne[3] / tn_dtype_block_elems(there->dtype);
    if (!tn_vk_weight_planes(there, &planes)) {
        memcpy(to, bytes, tn_dtype_row_size(there->dtype, there->ne[3]) * (size_t)n_rows);
        return;
    }
    for (int32_t p = 0; p < TN_VK_MAX_PLANES && planes.row_size[p] > 0; p++)
        gather(find_layout(there->dtype), p, tn_dtype_block_size(there->dtype), n_rows * blocks, bytes,
               to + (planes.plane[p] - planes.plane[0]));
}

tn_status tn_vk_weight_write(tn_buffer *buffer, size_t offset, const tn_view *weight, const void *bytes)
{
    tn_context *ctx = buffer->device->ctx;
    tn_view at = *weight;
    at.data = (void *)(uintptr_t)offset; // planes as offsets into the buffer
    at.buffer = NULL;                    // a whole
    tn_vk_weight planes;
    const layout *l = tn_vk_weight_planes(&at, &planes) ? find_layout(weight->dtype) : NULL;
    size_t row_size = tn_dtype_row_size(weight->dtype, weight->ne[3]),
           block_size = tn_dtype_block_size(weight->dtype);
    int64_t n_rows = tn_view_n_rows(weight), blocks = weight->ne[3] / tn_dtype_block_elems(weight->dtype);
    if (!l) return tn_vk_buffer_write(buffer, offset, bytes, row_size * (size_t)n_rows);
    int64_t step = TN_MAX(1, (int64_t)(ROWS_BYTES / row_size));
    char *sorted = tn_alloc(ctx, (size_t)TN_MIN(step, TN_MAX(n_rows, 1)) * row_size);
    if (!sorted) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (int64_t r = 0; r < n_rows && status == TN_OK; r += step) {
        int64_t rows = TN_MIN(step, n_rows - r);
        for (int32_t p = 0; p < TN_VK_MAX_PLANES && planes.row_size[p] > 0 && status == TN_OK; p++) {
            gather(l, p, block_size, rows * blocks, (const char *)bytes + (size_t)r * row_size, sorted);
            status = tn_vk_buffer_write(buffer, (size_t)planes.plane[p] + (size_t)(r * planes.row_size[p]),
                                        sorted, (size_t)(rows * planes.row_size[p]));
        }
    }
    tn_free(ctx, sorted);
    if (status != TN_OK) return status;
    buffer->weight_offset = offset;
    buffer->weight_size = row_size * (size_t)n_rows;
    return TN_OK;
}
