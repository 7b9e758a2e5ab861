// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One GGUF file. First a walk over all records that allocates nothing: after it, the counts of the header
// are facts, and tables of exactly that size are made and filled by a second walk.
#include "core/checked.h"
#include "models/gguf/file.h"

#include <inttypes.h>
#include <string.h>

// Smallest records of the format; a count that the rest of the file cannot hold is refused by them.
enum { KV_MIN_SIZE = 13, INFO_MIN_SIZE = 24 };

static tn_status check_version(tn_context *ctx, uint32_t version)
{
    if (version == 2 || version == TN_GGUF_VERSION) return TN_OK;
    if (version != 0 && (version & 0xffff) == 0)
        return tn_fail(ctx, TN_ERR_FORMAT, "big-endian GGUF file; only little-endian files can be read");
    if (version == 1)
        return tn_fail(ctx, TN_ERR_FORMAT, "GGUF version 1 is obsolete; convert the model again");
    return tn_fail(ctx, TN_ERR_FORMAT, "unknown GGUF version %" PRIu32 "; 2 and 3 can be read", version);
}

static tn_status read_count(tn_context *ctx, uint64_t count, size_t left, size_t min_size, const char *what)
{
    if (count > left / min_size || count > TN_NAMES_MAX)
        return tn_fail(ctx, TN_ERR_FORMAT, "header claims %" PRIu64 " %s, but only %zu bytes follow", count,
                       what, left);
    return TN_OK;
}

static tn_status read_header(tn_context *ctx, tn_cursor *c, tn_gguf_file *file)
{
    const uint8_t *magic;
    uint64_t n_tensors, n_kv;
    if (!tn_cursor_bytes(c, 4, &magic) || memcmp(magic, "GGUF", 4) != 0)
        return tn_fail(ctx, TN_ERR_FORMAT, "not a GGUF file");
    if (!tn_cursor_u32(c, &file->version)) goto ends;
    tn_status status = check_version(ctx, file->version);
    if (status != TN_OK) return status;
    if (!tn_cursor_u64(c, &n_tensors) || !tn_cursor_u64(c, &n_kv)) goto ends;
    status = read_count(ctx, n_tensors, tn_cursor_left(c), INFO_MIN_SIZE, "tensors");
    if (status == TN_OK) status = read_count(ctx, n_kv, tn_cursor_left(c), KV_MIN_SIZE, "keys");
    if (status != TN_OK) return status;
    file->n_tensors = (size_t)n_tensors;
    file->n_kv = (size_t)n_kv;
    return TN_OK;
ends:
    return tn_fail(ctx, TN_ERR_FORMAT, "file of %zu bytes ends inside the header", c->size);
}

static tn_status take_alignment(tn_context *ctx, const tn_gguf_kv *kv, size_t *out)
{
    if (kv->type != TN_GGUF_U32)
        return tn_fail(ctx, TN_ERR_FORMAT, "key \"" TN_GGUF_ALIGNMENT_KEY "\" is %s, must be u32",
                       tn_gguf_type_name(kv->type));
    uint64_t v = tn_load_le(kv->data, 4);
    if (v < TN_GGUF_ALIGNMENT_MIN || v > TN_GGUF_ALIGNMENT_MAX || (v & (v - 1)) != 0)
        return tn_fail(ctx, TN_ERR_FORMAT,
                       "key \"" TN_GGUF_ALIGNMENT_KEY "\" is %" PRIu64
                       ", must be a power of two from %d to %d",
                       v, TN_GGUF_ALIGNMENT_MIN, TN_GGUF_ALIGNMENT_MAX);
    *out = (size_t)v;
    return TN_OK;
}

static tn_status scan_keys(tn_context *ctx, tn_cursor *c, tn_gguf_file *file)
{
    file->alignment = TN_GGUF_ALIGNMENT;
    for (size_t i = 0; i < file->n_kv; i++) {
        tn_gguf_kv kv;
        tn_status status = tn_gguf_read_kv(ctx, c, &kv);
        if (status == TN_OK && tn_gguf_str_is(kv.key, TN_GGUF_ALIGNMENT_KEY))
            status = take_alignment(ctx, &kv, &file->alignment);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

static tn_status scan_infos(tn_context *ctx, tn_cursor *c, tn_gguf_file *file)
{
    file->info_pos = c->pos;
    file->names_size = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        tn_gguf_tensor t;
        tn_gguf_str name;
        tn_status status = tn_gguf_read_tensor(ctx, c, &t, &name);
        if (status != TN_OK) return status;
        file->names_size += name.size + 1; // cannot overflow: less than the bytes of the record
    }
    return TN_OK;
}

static tn_cursor cursor_at(const tn_gguf_file *file, size_t pos)
{
    return (tn_cursor){
        .data = file->head, .size = file->size, .pos = pos, .absent = file->size - file->head_size};
}

tn_status tn_gguf_file_scan(tn_context *ctx, tn_gguf_file *file)
{
    if (TN_BIG_ENDIAN)
        return tn_fail(ctx, TN_ERR_UNSUPPORTED,
                       "this processor is big-endian, and GGUF files are read on little-endian ones only");
    tn_cursor c = cursor_at(file, 0);
    tn_status status = read_header(ctx, &c, file);
    if (status == TN_OK) status = scan_keys(ctx, &c, file);
    if (status == TN_OK) status = scan_infos(ctx, &c, file);
    if (status != TN_OK) return status;
    bool fits = tn_round_up_size(c.pos, file->alignment, &file->data_start) && file->data_start <= c.size;
    // Without tensors the padding may be missing.
    if (!fits && file->n_tensors > 0)
        return tn_fail(ctx, TN_ERR_FORMAT,
                       "file of %zu bytes ends before the tensor data (infos end at byte %zu)", c.size,
                       c.pos);
    return TN_OK;
}

// --- keys ------------------------------------------------------------------------------------------

static tn_gguf_str key_name(const void *items, size_t i)
{
    return ((const tn_gguf_kv *)items)[i].key;
}

tn_status tn_gguf_keys_index(tn_context *ctx, tn_gguf_keys *keys, size_t *duplicate)
{
    tn_name_list list = {keys->kv, keys->n, key_name};
    return tn_name_index_build(ctx, &keys->index, &list, duplicate);
}

tn_status tn_gguf_keys_load(tn_context *ctx, const tn_gguf_file *file, tn_gguf_keys *keys)
{
    tn_cursor c = cursor_at(file, TN_GGUF_HEADER_SIZE);
    *keys = (tn_gguf_keys){0};
    if (file->n_kv == 0) return TN_OK;
    keys->kv = tn_calloc(ctx, file->n_kv, sizeof *keys->kv);
    if (!keys->kv) return TN_ERR_MEMORY;
    keys->n = file->n_kv;
    for (size_t i = 0; i < keys->n; i++) {
        tn_status status = tn_gguf_read_kv(ctx, &c, &keys->kv[i]);
        if (status != TN_OK) return status;
    }
    size_t twice;
    tn_status status = tn_gguf_keys_index(ctx, keys, &twice);
    if (status != TN_OK || twice == keys->n) return status;
    tn_gguf_shown shown;
    tn_gguf_str key = keys->kv[twice].key;
    return tn_fail(ctx, TN_ERR_FORMAT, "key \"%s\" at byte %zu occurs twice", tn_gguf_show(key, &shown),
                   (size_t)((const uint8_t *)key.data - c.data));
}

const tn_gguf_kv *tn_gguf_keys_find(const tn_gguf_keys *keys, const char *key)
{
    tn_name_list list = {keys->kv, keys->n, key_name};
    int64_t i = tn_name_index_find(&keys->index, &list, (tn_gguf_str){key, strlen(key)});
    return i < 0 ? NULL : &keys->kv[i];
}

void tn_gguf_keys_fini(tn_context *ctx, tn_gguf_keys *keys)
{
    tn_name_index_fini(ctx, &keys->index);
    tn_free(ctx, keys->kv);
    *keys = (tn_gguf_keys){0};
}

// --- tensors ---------------------------------------------------------------------------------------

static tn_status place_tensor(tn_context *ctx, tn_gguf_file *file, tn_gguf_tensor *t)
{
    uint64_t offset = t->file_offset; // from the start of the data section
    size_t start, end;
    if (offset % file->alignment != 0)
        return tn_fail(ctx, TN_ERR_FORMAT, "tensor \"%s\": offset %" PRIu64 " is not a multiple of %zu",
                       t->name, offset, file->alignment);
    if (offset > SIZE_MAX || !tn_add_size(file->data_start, (size_t)offset, &start) ||
        !tn_add_size(start, t->size, &end) || end > file->size)
        return tn_fail(ctx, TN_ERR_FORMAT,
                       "tensor \"%s\": %zu bytes at offset %" PRIu64
                       " of the data (byte %zu) end after the file "
                       "of %zu bytes",
                       t->name, t->size, offset, file->data_start, file->size);
    t->file_offset = start;
    file->data_end = TN_MAX(file->data_end, end);
    t->data = file->map.data ? file->map.data + start : NULL;
    return TN_OK;
}

static void sift_down(uint32_t *order, size_t i, size_t n, const tn_gguf_tensor *tensors)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) return;
        if (child + 1 < n && tensors[order[child + 1]].file_offset > tensors[order[child]].file_offset)
            child++;
        if (tensors[order[i]].file_offset >= tensors[order[child]].file_offset) return;
        uint32_t swap = order[i];
        order[i] = order[child];
        order[child] = swap;
        i = child;
    }
}

// Heapsort: no allocation of its own and no bad case, as qsort may have.
static void sort_by_offset(uint32_t *order, size_t n, const tn_gguf_tensor *tensors)
{
    for (size_t i = n / 2; i > 0; i--) sift_down(order, i - 1, n, tensors);
    for (size_t last = n; last > 1; last--) {
        uint32_t swap = order[0];
        order[0] = order[last - 1];
        order[last - 1] = swap;
        sift_down(order, 0, last - 1, tensors);
    }
}

static tn_status check_neighbours(tn_context *ctx, const tn_gguf_tensor *a, const tn_gguf_tensor *b)
{
    // The end was checked against the file, so the sum fits.
    if (a->file_offset + a->size <= b->file_offset) return TN_OK;
    return tn_fail(ctx, TN_ERR_FORMAT, "tensors \"%s\" and \"%s\" overlap at byte %" PRIu64, a->name, b->name,
                   b->file_offset);
}

static tn_status check_overlap(tn_context *ctx, const tn_gguf_tensor *tensors, size_t n)
{
    size_t i = 1;
    while (i < n && tensors[i - 1].file_offset <= tensors[i].file_offset) i++;
    bool sorted = i >= n; // as nearly all files are
    uint32_t *order = NULL;
    if (!sorted) {
        order = tn_alloc(ctx, n * sizeof *order); // cannot overflow: the tensors themselves are larger
        if (!order) return TN_ERR_MEMORY;
        for (i = 0; i < n; i++) order[i] = (uint32_t)i;
        sort_by_offset(order, n, tensors);
    }
    tn_status status = TN_OK;
    for (i = 1; i < n && status == TN_OK; i++)
        status =
            check_neighbours(ctx, &tensors[sorted ? i - 1 : order[i - 1]], &tensors[sorted ? i : order[i]]);
    tn_free(ctx, order);
    return status;
}

tn_status tn_gguf_tensors_load(tn_context *ctx, tn_gguf_file *file, tn_gguf_tensor *tensors, char **names)
{
    tn_cursor c = cursor_at(file, file->info_pos);
    char *limit = *names + file->names_size;
    for (size_t i = 0; i < file->n_tensors; i++) {
        tn_gguf_str name;
        tn_status status = tn_gguf_read_tensor(ctx, &c, &tensors[i], &name);
        if (status != TN_OK) return status;
        if (name.size >= (size_t)(limit - *names))
            return tn_fail(ctx, TN_ERR_IO, "the file changed while it was being read");
        memcpy(*names, name.data, name.size);
        (*names)[name.size] = 0;
        tensors[i].name = *names;
        *names += name.size + 1;
        status = place_tensor(ctx, file, &tensors[i]);
        if (status != TN_OK) return status;
    }
    *names = limit;
    return check_overlap(ctx, tensors, file->n_tensors);
}
