// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/layout.h"

#include "core/backend.h"
#include "core/compiler.h"
#include "ops/ops.h"

#include <string.h>

typedef struct piece {
    int16_t start, size, plane, at;
} piece;

static const struct {
    tn_dtype dtype;
    piece pieces[6];
} rows[] = {
#define TN_PLANES(dtype, ...) {TN_TYPE_##dtype, {__VA_ARGS__}},
#include "backends/planes.def"
};

bool tn_cuda_layout_get(tn_dtype dtype, tn_cuda_pack_args *out)
{
    *out = (tn_cuda_pack_args){.block_size = (int32_t)tn_dtype_block_size(dtype)};
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        if (rows[i].dtype != dtype) continue;
        for (int32_t k = 0; k < (int32_t)TN_COUNT(rows[i].pieces) && rows[i].pieces[k].size > 0; k++) {
            const piece *p = &rows[i].pieces[k];
            memcpy(&out->piece[k], p, sizeof *p);
            out->plane_bytes[p->plane] = (int16_t)(out->plane_bytes[p->plane] + p->size);
            out->n_pieces = k + 1;
        }
        return true;
    }
    out->plane_bytes[0] = (int16_t)out->block_size;
    return false;
}

// Where the whole weight starts that a view is a part of, its blocks, and those before the view.
typedef struct whole {
    const char *data;
    int64_t n_blocks, first;
} whole;

static whole whole_of(const tn_view *w, const tn_cuda_pack_args *layout)
{
    const tn_buffer *b = w->buffer;
    int64_t size = layout->block_size, n_blocks = tn_view_n_elems(w) / tn_dtype_block_elems(w->dtype);
    if (!b || b->weight_size == 0 || layout->n_pieces == 0) return (whole){w->data, n_blocks, 0};
    int64_t before = (int64_t)w->offset - (int64_t)b->weight_offset;
    return (whole){(const char *)w->data - before, (int64_t)b->weight_size / size, before / size};
}

bool tn_cuda_weight_holds(const tn_view *w)
{
    tn_cuda_pack_args layout;
    if (!w->buffer || !tn_cuda_layout_get(w->dtype, &layout)) return true;
    size_t last = tn_dtype_row_size(w->dtype, w->ne[3]);
    for (int32_t d = 0; d < TN_MAX_DIMS - 1; d++) {
        if (w->ne[d] > 1 && w->nb[d] % layout.block_size != 0) return false;
        last += (size_t)(w->ne[d] - 1) * (size_t)w->nb[d];
    }
    const tn_buffer *b = w->buffer;
    return tn_view_n_elems(w) == 0 || (w->offset >= b->weight_offset &&
                                       (w->offset - b->weight_offset) % (size_t)layout.block_size == 0 &&
                                       w->offset + last <= b->weight_offset + b->weight_size);
}

tn_cuda_weight tn_cuda_weight_planes(const tn_view *w)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(w->dtype, &layout);
    int64_t per_row = w->ne[2] > 1 ? w->nb[2] / layout.block_size : w->ne[3] / tn_dtype_block_elems(w->dtype);
    whole all = whole_of(w, &layout);
    tn_cuda_weight out = {{0}, {0}};
    const char *at = all.data;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) {
        out.plane[p] = at + all.first * layout.plane_bytes[p];
        out.row_size[p] = per_row * layout.plane_bytes[p];
        at += all.n_blocks * layout.plane_bytes[p];
    }
    return out;
}

bool tn_cuda_weight_aligned(const tn_view *w)
{
    tn_cuda_pack_args layout;
    if (!tn_cuda_layout_get(w->dtype, &layout)) return true;
    whole all = whole_of(w, &layout);
    bool aligned = true;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        aligned = aligned && all.first * layout.plane_bytes[p] % 16 == 0;
    return aligned;
}
