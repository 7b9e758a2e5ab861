// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Values stay in the mapped file; tn_imatrix_read divides sums by counts when a tensor needs them.
#include "models/quantize/imatrix.h"

#include "core/compiler.h"
#include "models/file.h"
#include "models/gguf/cursor.h"

#include <math.h>
#include <string.h>

enum { LEGACY_RECORD_MIN = 12, MESSAGE_NAME_MAX = 64 };

// A column without activations still has to be stored: it gets this share of the mean importance.
static const double floor_share = 1e-6;

typedef struct entry {
    tn_gguf_str name;      // of the tensor
    const uint8_t *sums;   // n values, f32 little endian
    const uint8_t *counts; // n_counts values, f32 little endian; NULL: `count` for all
    uint64_t n, n_counts;
    double count;
} entry;

struct tn_imatrix {
    tn_context *ctx;
    tn_gguf *gguf;   // of the GGUF form
    tn_file_map map; // of the other
    entry *entries;
    int64_t n;
};

static float load_f32(const uint8_t *p)
{
    uint32_t bits = (uint32_t)tn_load_le(p, 4);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// --- GGUF --------------------------------------------------------------------------------------------------

static tn_status add_tensor(tn_imatrix *im, const tn_gguf_tensor *t)
{
    static const char suffix[] = ".in_sum2", counts_suffix[] = ".counts";
    char name[MESSAGE_NAME_MAX + sizeof counts_suffix];
    size_t length = strlen(t->name), tail = sizeof suffix - 1;
    if (length <= tail || strcmp(t->name + length - tail, suffix) != 0) return TN_OK;
    length -= tail;
    if (length >= MESSAGE_NAME_MAX)
        return tn_fail(im->ctx, TN_ERR_FORMAT, "%s: the name \"%s\" is too long", tn_gguf_name(im->gguf),
                       t->name);
    memcpy(name, t->name, length);
    memcpy(name + length, counts_suffix, sizeof counts_suffix);
    const tn_gguf_tensor *counts = tn_gguf_find_tensor(im->gguf, name);
    if (!counts || counts->dtype != TN_TYPE_F32 || t->dtype != TN_TYPE_F32)
        return tn_fail(im->ctx, TN_ERR_FORMAT, "%s: \"%s\" and \"%s\" must be F32 tensors",
                       tn_gguf_name(im->gguf), t->name, name);
    im->entries[im->n++] = (entry){.name = {t->name, length},
                                   .sums = t->data,
                                   .counts = counts->data,
                                   .n = (uint64_t)tn_gguf_tensor_elems(t),
                                   .n_counts = (uint64_t)tn_gguf_tensor_elems(counts)};
    return TN_OK;
}

static tn_status open_gguf(tn_imatrix *im, const char *path)
{
    tn_status status = tn_gguf_open(im->ctx, path, &im->gguf);
    if (status != TN_OK) return status;
    int64_t n = tn_gguf_n_tensors(im->gguf);
    im->entries = tn_calloc(im->ctx, (size_t)n + 1, sizeof *im->entries);
    if (!im->entries) return TN_ERR_MEMORY;
    for (int64_t i = 0; i < n && status == TN_OK; i++)
        status = add_tensor(im, tn_gguf_tensor_at(im->gguf, i));
    if (status == TN_OK && im->n == 0)
        status = tn_fail(im->ctx, TN_ERR_FORMAT,
                         "%s is no importance matrix: it has no tensor named \"...in_sum2\"", path);
    return status;
}

// --- the older form ----------------------------------------------------------------------------------------

static bool read_record(tn_cursor *c, entry *e)
{
    uint32_t length, calls, n;
    const uint8_t *name;
    if (!tn_cursor_u32(c, &length) || length == 0 || length > INT32_MAX || !tn_cursor_bytes(c, length, &name))
        return false;
    if (!tn_cursor_u32(c, &calls) || calls > INT32_MAX || !tn_cursor_u32(c, &n) || n == 0 || n > INT32_MAX)
        return false;
    *e = (entry){.name = {(const char *)name, length}, .n = n, .count = calls > 0 ? (double)calls : 1.0};
    return tn_cursor_bytes(c, 4 * (uint64_t)n, &e->sums);
}

static tn_status open_records(tn_imatrix *im, const char *path)
{
    tn_cursor c = {.data = im->map.data, .size = im->map.size};
    uint32_t n;
    if (!tn_cursor_u32(&c, &n) || n == 0 || n > tn_cursor_left(&c) / LEGACY_RECORD_MIN)
        return tn_fail(im->ctx, TN_ERR_FORMAT, "%s is no importance matrix", path);
    im->entries = tn_calloc(im->ctx, n, sizeof *im->entries);
    if (!im->entries) return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < n; i++, im->n++) {
        if (!read_record(&c, &im->entries[i]))
            return tn_fail(im->ctx, TN_ERR_FORMAT, "%s is no importance matrix, or damaged in its record %u",
                           path, i + 1);
    }
    return TN_OK; // the number of chunks and the name of the text, which follow, are not needed
}

// --- both --------------------------------------------------------------------------------------------------

tn_status tn_imatrix_open(tn_context *ctx, const char *path, tn_imatrix **out)
{
    tn_imatrix *im = tn_calloc(ctx, 1, sizeof *im);
    if (!im) return TN_ERR_MEMORY;
    im->ctx = ctx;
    tn_status status = tn_file_map_open(ctx, path, &im->map);
    if (status == TN_OK) {
        bool gguf = im->map.size >= 4 && memcmp(im->map.data, "GGUF", 4) == 0;
        status = gguf ? open_gguf(im, path) : open_records(im, path);
    }
    if (status == TN_OK)
        *out = im;
    else
        tn_imatrix_close(&im);
    return status;
}

void tn_imatrix_close(tn_imatrix **im)
{
    if (!*im) return;
    tn_context *ctx = (*im)->ctx;
    tn_gguf_close(&(*im)->gguf);
    tn_file_map_close(ctx, &(*im)->map);
    tn_free(ctx, (*im)->entries);
    tn_free(ctx, *im);
    *im = NULL;
}

static const entry *find(const tn_imatrix *im, const char *tensor)
{
    size_t length = strlen(tensor);
    for (int64_t i = 0; i < im->n; i++) {
        const entry *e = &im->entries[i];
        if (e->name.size == length && memcmp(e->name.data, tensor, length) == 0) return e;
    }
    return NULL;
}

bool tn_imatrix_has(const tn_imatrix *im, const char *tensor)
{
    return find(im, tensor) != NULL;
}

// One matrix; false if values are no mean squares.
static bool read_columns(const uint8_t *sums, double count, int64_t n, float *out)
{
    double mean = 0;
    if (!(count >= 0) || isinf(count)) return false;
    for (int64_t i = 0; i < n; i++) {
        float sum = load_f32(sums + 4 * i);
        if (!isfinite(sum) || sum < 0.0f) return false;
        out[i] = count > 0 ? (float)(sum / count) : 0.0f;
        if (!isfinite(out[i])) return false;
        mean += out[i] / (double)n;
    }
    float least = (float)(mean * floor_share);
    for (int64_t i = 0; i < n; i++) out[i] = least > 0.0f ? TN_MAX(out[i], least) : 1.0f;
    return true;
}

tn_status tn_imatrix_read(const tn_imatrix *im, const char *tensor, int64_t n_matrices, int64_t n_cols,
                          float *out)
{
    const entry *e = find(im, tensor);
    if (!e)
        return tn_fail(im->ctx, TN_ERR_ARG, "the importance matrix has nothing about tensor \"%s\"", tensor);
    bool fits = e->n / (uint64_t)n_cols == (uint64_t)n_matrices && e->n % (uint64_t)n_cols == 0;
    if (!fits || (e->counts && e->n_counts != 1 && e->n_counts != (uint64_t)n_matrices))
        return tn_fail(im->ctx, TN_ERR_FORMAT,
                       "the importance matrix has %llu values for tensor \"%s\", which has %lld times %lld "
                       "columns; was it made for another model?",
                       (unsigned long long)e->n, tensor, (long long)n_matrices, (long long)n_cols);
    for (int64_t m = 0; m < n_matrices; m++) {
        double count = e->counts ? load_f32(e->counts + (e->n_counts == 1 ? 0 : 4 * m)) : e->count;
        if (!read_columns(e->sums + 4 * m * n_cols, count, n_cols, out + m * n_cols))
            return tn_fail(im->ctx, TN_ERR_FORMAT,
                           "the importance matrix has values for tensor \"%s\" that are no mean squares",
                           tensor);
    }
    return TN_OK;
}
