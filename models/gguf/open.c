// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Opening and closing: the first file, the other files of a split model, one table of tensors for all of
// them.
#include "core/checked.h"
#include "models/gguf/file.h"

#include <string.h>

static tn_status sum_tensors(tn_gguf *gguf, size_t *names_size)
{
    bool fits = true;
    for (int32_t i = 0; i < gguf->n_files; i++) {
        fits = fits && tn_add_size(gguf->n_tensors, gguf->files[i].n_tensors, &gguf->n_tensors);
        fits = fits && tn_add_size(*names_size, gguf->files[i].names_size, names_size);
    }
    return fits ? TN_OK : tn_fail(gguf->ctx, TN_ERR_FORMAT, "too many tensors");
}

// All files are scanned: one table for the tensors of all of them.
static tn_status load_tensors(tn_gguf *gguf)
{
    size_t names_size = 0, first = 0, twice;
    tn_status status = sum_tensors(gguf, &names_size);
    if (status != TN_OK || gguf->n_tensors == 0) return status;
    gguf->tensors = tn_calloc(gguf->ctx, gguf->n_tensors, sizeof *gguf->tensors);
    gguf->tensor_names = tn_alloc(gguf->ctx, names_size);
    if (!gguf->tensors || !gguf->tensor_names) return TN_ERR_MEMORY;
    char *names = gguf->tensor_names;
    for (int32_t i = 0; i < gguf->n_files; i++) {
        tn_gguf_file *file = &gguf->files[i];
        status = tn_gguf_tensors_load(gguf->ctx, file, gguf->tensors + first, &names);
        if (status != TN_OK && i > 0)
            status = tn_fail_at(gguf->ctx, status, "file %d of %d", i + 1, gguf->n_files);
        if (status != TN_OK) return status;
        for (size_t k = 0; k < file->n_tensors; k++) gguf->tensors[first + k].file = i;
        first += file->n_tensors;
    }
    tn_name_list list = tn_gguf_tensor_list(gguf);
    status = tn_name_index_build(gguf->ctx, &gguf->tensor_index, &list, &twice);
    if (status != TN_OK || twice == gguf->n_tensors) return status;
    return tn_fail(gguf->ctx, TN_ERR_FORMAT, "tensor \"%s\" occurs twice", gguf->tensors[twice].name);
}

// Everything after the first file was opened.
static tn_status load(tn_gguf *gguf)
{
    tn_status status = tn_gguf_file_scan(gguf->ctx, &gguf->files[0]);
    if (status == TN_OK) status = tn_gguf_keys_load(gguf->ctx, &gguf->files[0], &gguf->keys);
    if (status == TN_OK) status = tn_gguf_split_open(gguf);
    if (status == TN_OK) status = load_tensors(gguf);
    return status == TN_OK ? TN_OK : tn_fail_at(gguf->ctx, status, "%s", gguf->name);
}

static tn_status create(tn_context *ctx, const char *name, tn_gguf **out)
{
    tn_gguf *gguf = tn_calloc(ctx, 1, sizeof *gguf);
    if (!gguf) return TN_ERR_MEMORY;
    gguf->ctx = ctx;
    gguf->name = tn_strdup(ctx, name);
    gguf->files = tn_calloc(ctx, 1, sizeof *gguf->files);
    if (!gguf->name || !gguf->files) {
        tn_gguf_close(&gguf);
        return TN_ERR_MEMORY;
    }
    gguf->n_files = 1;
    *out = gguf;
    return TN_OK;
}

tn_status tn_gguf_open_source(tn_context *ctx, const tn_gguf_source *source, tn_gguf **out)
{
    tn_gguf *gguf;
    if (source->data && (uintptr_t)source->data % TN_GGUF_ALIGNMENT_MIN != 0)
        return tn_fail(ctx, TN_ERR_ARG, "%s: bytes in memory must be aligned to %d", source->name,
                       TN_GGUF_ALIGNMENT_MIN);
    tn_status status = create(ctx, source->name, &gguf);
    if (status != TN_OK) return status;
    tn_gguf_source own = *source;
    own.name = gguf->name;
    status = tn_gguf_file_open(ctx, &own, &gguf->files[0]);
    if (status == TN_OK) status = load(gguf);
    if (status == TN_OK)
        *out = gguf;
    else
        tn_gguf_close(&gguf);
    return status;
}

tn_status tn_gguf_open(tn_context *ctx, const char *path, tn_gguf **out)
{
    if (!path) return tn_fail(ctx, TN_ERR_ARG, "tn_gguf_open: no path");
    const tn_gguf_source source = {.name = path, .descriptor = -1, .mapped = true};
    return tn_gguf_open_source(ctx, &source, out);
}

tn_status tn_gguf_open_memory(tn_context *ctx, const void *data, size_t size, const char *name, tn_gguf **out)
{
    static const _Alignas(TN_GGUF_ALIGNMENT_MIN) char nothing[TN_GGUF_ALIGNMENT_MIN];
    if (!name) name = "memory";
    if (!data && size > 0) return tn_fail(ctx, TN_ERR_ARG, "%s: no data", name);
    const tn_gguf_source source = {
        .name = name, .data = data ? data : nothing, .size = size, .descriptor = -1};
    return tn_gguf_open_source(ctx, &source, out);
}

void tn_gguf_close(tn_gguf **gguf)
{
    if (!gguf || !*gguf) return;
    tn_gguf *g = *gguf;
    tn_context *ctx = g->ctx;
    tn_name_index_fini(ctx, &g->tensor_index);
    tn_free(ctx, g->tensor_names);
    tn_free(ctx, g->tensors);
    tn_gguf_keys_fini(ctx, &g->keys);
    tn_free(ctx, g->overridden);
    for (int32_t i = 0; i < g->n_files; i++) tn_gguf_file_close(ctx, &g->files[i]);
    tn_free(ctx, g->files);
    tn_free(ctx, g->name);
    tn_free(ctx, g);
    *gguf = NULL;
}
