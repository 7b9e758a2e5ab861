// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Split models: <prefix>-00001-of-00003.gguf and its siblings. The first file has the metadata of all;
// the others only say which part they are. No path is made from file text: the prefix is that of the
// path of the caller, the numbers are generated.
#include "core/checked.h"
#include "models/gguf/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SUFFIX_SIZE = sizeof "-00001-of-00003.gguf",
    SPLIT_COUNT_MAX = UINT16_MAX, // split.count is u16
};

// A required key with an integer in [min, max].
static tn_status get_number(tn_context *ctx, const tn_gguf_keys *keys, const char *key, int64_t max,
                            int64_t *out)
{
    const tn_gguf_kv *kv = tn_gguf_keys_find(keys, key);
    if (!kv) return tn_fail(ctx, TN_ERR_FORMAT, "split model without the key \"%s\"", key);
    tn_status status = tn_gguf_kv_i64(ctx, kv, out);
    if (status != TN_OK) return status;
    if (*out < 0 || *out > max) return tn_fail(ctx, TN_ERR_FORMAT, "key \"%s\" is %" PRId64, key, *out);
    return TN_OK;
}

// A key that the parts may repeat: if it is there, it must say the same as in the first file.
static tn_status check_same(tn_context *ctx, const tn_gguf_keys *keys, const char *key, int64_t expected)
{
    int64_t v;
    if (!tn_gguf_keys_find(keys, key)) return TN_OK;
    tn_status status = get_number(ctx, keys, key, INT64_MAX, &v);
    if (status != TN_OK || v == expected) return status;
    return tn_fail(ctx, TN_ERR_FORMAT, "key \"%s\" is %" PRId64 ", but %" PRId64 " in the first file", key, v,
                   expected);
}

// split.count of an unsplit file is absent, 0 or 1.
static tn_status read_count(tn_gguf *gguf, int64_t *count)
{
    *count = 1;
    if (!tn_gguf_keys_find(&gguf->keys, "split.count")) return TN_OK;
    tn_status status = get_number(gguf->ctx, &gguf->keys, "split.count", SPLIT_COUNT_MAX, count);
    if (status == TN_OK && *count == 0) *count = 1;
    return status;
}

// Grows the table by one file. It grows with the files that exist, not with the count that a file claims.
static tn_status grow(tn_gguf *gguf)
{
    size_t n = (size_t)gguf->n_files, old_size, new_size;
    if ((n & (n - 1)) != 0) return TN_OK; // capacities are powers of two
    if (!tn_mul_size(n, sizeof *gguf->files, &old_size) || !tn_mul_size(old_size, 2, &new_size))
        return tn_fail(gguf->ctx, TN_ERR_MEMORY, "%zu files: too many", n);
    tn_gguf_file *files = tn_realloc(gguf->ctx, gguf->files, old_size, new_size);
    if (!files) return TN_ERR_MEMORY;
    gguf->files = files;
    return TN_OK;
}

static tn_status open_part(tn_gguf *gguf, const char *path, int64_t count, int64_t n_tensors)
{
    tn_status status = grow(gguf);
    if (status != TN_OK) return status;
    tn_gguf_file *file = &gguf->files[gguf->n_files];
    const tn_gguf_source source = {.name = path, .descriptor = -1, .mapped = gguf->files[0].source.mapped};
    int64_t part = gguf->n_files++, no; // tn_gguf_close closes it
    status = tn_gguf_file_open(gguf->ctx, &source, file);
    file->source.name = gguf->name; // the path is that of the loop
    if (status != TN_OK) return status;
    tn_gguf_keys keys = {0};
    status = tn_gguf_file_scan(gguf->ctx, file);
    if (status == TN_OK) status = tn_gguf_keys_load(gguf->ctx, file, &keys);
    if (status == TN_OK) status = get_number(gguf->ctx, &keys, "split.no", SPLIT_COUNT_MAX, &no);
    if (status == TN_OK && no != part)
        status =
            tn_fail(gguf->ctx, TN_ERR_FORMAT, "key \"split.no\" is %" PRId64 ", must be %" PRId64, no, part);
    if (status == TN_OK) status = check_same(gguf->ctx, &keys, "split.count", count);
    if (status == TN_OK) status = check_same(gguf->ctx, &keys, "split.tensors.count", n_tensors);
    tn_gguf_keys_fini(gguf->ctx, &keys);
    return status == TN_OK ? TN_OK : tn_fail_at(gguf->ctx, status, "%s", path);
}

// Puts the suffix of a part into text, SUFFIX_SIZE bytes.
static void put_suffix(char *text, int64_t part, int64_t count)
{
    snprintf(text, SUFFIX_SIZE, "-%05d-of-%05d.gguf", (int)(part + 1), (int)count);
}

static tn_status open_parts(tn_gguf *gguf, int64_t count, int64_t n_tensors)
{
    char suffix[SUFFIX_SIZE];
    size_t name_size = strlen(gguf->name) + 1;
    put_suffix(suffix, 0, count);
    if (name_size < SUFFIX_SIZE || strcmp(gguf->name + name_size - SUFFIX_SIZE, suffix) != 0)
        return tn_fail(gguf->ctx, TN_ERR_FORMAT, "split model: the name must end with \"%s\"", suffix);
    char *path = tn_strdup(gguf->ctx, gguf->name);
    if (!path) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (int64_t part = 1; part < count && status == TN_OK; part++) {
        put_suffix(path + name_size - SUFFIX_SIZE, part, count);
        status = open_part(gguf, path, count, n_tensors);
    }
    tn_free(gguf->ctx, path);
    return status;
}

tn_status tn_gguf_split_open(tn_gguf *gguf)
{
    const tn_gguf_source *source = &gguf->files[0].source;
    bool has_path = !source->data && !source->read && source->descriptor < 0;
    int64_t count, no, n_tensors, found = 0;
    tn_status status = read_count(gguf, &count);
    if (status != TN_OK || count == 1) return status;
    status = get_number(gguf->ctx, &gguf->keys, "split.no", SPLIT_COUNT_MAX, &no);
    if (status != TN_OK) return status;
    if (no != 0)
        return tn_fail(gguf->ctx, TN_ERR_FORMAT,
                       "part %" PRId64 " of %" PRId64 " of a split model; open the first", no + 1, count);
    if (!has_path)
        return tn_fail(gguf->ctx, TN_ERR_UNSUPPORTED,
                       "a model split into %" PRId64 " files can only be opened by its path", count);
    status = get_number(gguf->ctx, &gguf->keys, "split.tensors.count", INT64_MAX, &n_tensors);
    if (status == TN_OK) status = open_parts(gguf, count, n_tensors);
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < gguf->n_files; i++) found += (int64_t)gguf->files[i].n_tensors;
    if (found != n_tensors)
        return tn_fail(gguf->ctx, TN_ERR_FORMAT,
                       "key \"split.tensors.count\" is %" PRId64 ", but the files have %" PRId64, n_tensors,
                       found);
    return TN_OK;
}
