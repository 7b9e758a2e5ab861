// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/layout.h"

#include "core/compiler.h"

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
            out->unit[p->plane] = (int16_t)(out->unit[p->plane] + p->size);
            out->n_pieces = k + 1;
        }
        return true;
    }
    out->unit[0] = (int16_t)out->block_size;
    return false;
}

tn_cuda_weight tn_cuda_weight_planes(const tn_view *w)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(w->dtype, &layout);
    int64_t per_row = w->ne[3] / tn_dtype_block_elems(w->dtype), n_rows = tn_view_n_rows(w);
    tn_cuda_weight out = {{0}, {0}};
    const char *at = w->data;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) {
        out.plane[p] = at;
        out.row_size[p] = per_row * layout.unit[p];
        at += n_rows * out.row_size[p];
    }
    return out;
}
