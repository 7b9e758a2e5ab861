// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The optional check of tensor data: finds values and block scales that no correct converter writes.
#include "models/gguf/gguf.h"
#include "ops/quant.h"

#include <inttypes.h>

static tn_status check_tensor(const tn_gguf *gguf, const tn_gguf_tensor *t)
{
    tn_context *ctx = tn_gguf_context(gguf);
    tn_status status = tn_gguf_fetch(gguf, t, NULL, NULL);
    if (status != TN_OK) return status;
    // The reader has checked that rows are whole blocks and that the rows fill the tensor.
    int64_t row_elems = t->ne[t->n_dims - 1];
    size_t row_size = tn_dtype_row_size(t->dtype, row_elems);
    if (row_size == 0) return tn_fail(ctx, TN_ERR_INTERNAL, "tensor \"%s\" has rows of no bytes", t->name);
    for (size_t row = 0; row < t->size / row_size; row++) {
        if (tn_quant_row_valid(t->dtype, t->data + row * row_size, row_elems)) continue;
        return tn_fail(ctx, TN_ERR_FORMAT,
                       "tensor \"%s\" (%s): row %zu at byte %" PRIu64
                       " has a value or scale that is not finite",
                       t->name, tn_dtype_name(t->dtype), row, t->file_offset + row * row_size);
    }
    return TN_OK;
}

tn_status tn_gguf_check_data(const tn_gguf *gguf)
{
    tn_context *ctx = tn_gguf_context(gguf);
    for (int64_t i = 0; i < tn_gguf_n_tensors(gguf); i++) {
        tn_status status = check_tensor(gguf, tn_gguf_tensor_at(gguf, i));
        if (status != TN_OK) return tn_fail_at(ctx, status, "%s", tn_gguf_name(gguf));
    }
    return TN_OK;
}
