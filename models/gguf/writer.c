// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Writing: keys and tensor infos are collected in memory, begin() lays out the file, payloads follow in
// order, each padded to the alignment with zeros. Numbers are copied as they lie in memory: hosts are
// little endian, as tensor data in a mapping requires anyway.
#include "core/checked.h"
#include "core/strbuf.h"
#include "models/gguf/file.h"

#include <inttypes.h>
#include <string.h>

// A key or a tensor.
typedef struct writer_item {
    size_t name_off, name_size; // in the buffer of names
    size_t offset, size;        // of the payload, from the start of the data section
} writer_item;

struct tn_gguf_writer {
    tn_context *ctx;
    tn_file_writer *file;    // NULL: into memory
    tn_strbuf kvs, infos;    // encoded records
    tn_strbuf names;         // names of keys and tensors, one after the other
    tn_strbuf keys, tensors; // lists of writer_item
    size_t n_keys, n_tensors;
    size_t alignment;
    size_t data_size;        // of the data section, padding included
    size_t data_start;       // of the data section in the file
    uint8_t *bytes;          // the whole file, when into memory
    size_t current, written; // tensor being written, bytes of it so far
    bool begun, placed;
    tn_status failed; // of a write: commit fails after it
};

static const writer_item *item_at(const tn_strbuf *list, size_t i)
{
    return (const writer_item *)(const void *)list->data + i;
}

// --- encoding --------------------------------------------------------------------------------------

static void put_number(tn_strbuf *s, uint64_t v, size_t n_bytes)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)(v >> 8 * i);
    tn_strbuf_append(s, bytes, n_bytes);
}

static void put_str(tn_strbuf *s, tn_gguf_str text)
{
    put_number(s, text.size, 8);
    tn_strbuf_append(s, text.data, text.size);
}

static void add_item(tn_gguf_writer *w, tn_strbuf *list, tn_gguf_str name, size_t offset, size_t size)
{
    writer_item item = {.name_off = w->names.size, .name_size = name.size, .offset = offset, .size = size};
    tn_strbuf_append(&w->names, name.data, name.size);
    tn_strbuf_append(list, &item, sizeof item);
}

// The first failed allocation of any buffer; checked after every call that appends.
static tn_status buffers_status(const tn_gguf_writer *w)
{
    const tn_strbuf *all[] = {&w->kvs, &w->infos, &w->names, &w->keys, &w->tensors};
    for (size_t i = 0; i < TN_COUNT(all); i++)
        if (all[i]->status != TN_OK) return all[i]->status;
    return TN_OK;
}

// --- open, close -----------------------------------------------------------------------------------

static void writer_free(tn_gguf_writer *w)
{
    tn_file_writer_abort(&w->file);
    tn_strbuf_fini(&w->kvs);
    tn_strbuf_fini(&w->infos);
    tn_strbuf_fini(&w->names);
    tn_strbuf_fini(&w->keys);
    tn_strbuf_fini(&w->tensors);
    tn_free(w->ctx, w->bytes);
    tn_free(w->ctx, w);
}

tn_status tn_gguf_writer_open_memory(tn_context *ctx, tn_gguf_writer **out)
{
    tn_gguf_writer *w = tn_calloc(ctx, 1, sizeof *w);
    if (!w) return TN_ERR_MEMORY;
    w->ctx = ctx;
    w->alignment = TN_GGUF_ALIGNMENT;
    tn_strbuf_init(&w->kvs, ctx);
    tn_strbuf_init(&w->infos, ctx);
    tn_strbuf_init(&w->names, ctx);
    tn_strbuf_init(&w->keys, ctx);
    tn_strbuf_init(&w->tensors, ctx);
    *out = w;
    return TN_OK;
}

tn_status tn_gguf_writer_open(tn_context *ctx, const char *path, tn_gguf_writer **out)
{
    if (!path) return tn_fail(ctx, TN_ERR_ARG, "tn_gguf_writer_open: no path");
    tn_gguf_writer *w;
    tn_status status = tn_gguf_writer_open_memory(ctx, &w);
    if (status != TN_OK) return status;
    status = tn_file_writer_open(ctx, path, &w->file);
    if (status == TN_OK)
        *out = w;
    else
        writer_free(w);
    return status;
}

void tn_gguf_writer_abort(tn_gguf_writer **w)
{
    if (!w || !*w) return;
    writer_free(*w);
    *w = NULL;
}

// --- keys ------------------------------------------------------------------------------------------

static tn_status start_kv(tn_gguf_writer *w, tn_gguf_str key, int32_t type)
{
    tn_gguf_shown shown;
    if (w->begun)
        return tn_fail(w->ctx, TN_ERR_STATE, "key \"%s\" after the data has begun",
                       tn_gguf_show(key, &shown));
    if (key.size == 0 || key.size > TN_GGUF_KEY_MAX || memchr(key.data, 0, key.size))
        return tn_fail(w->ctx, TN_ERR_ARG, "key of %zu bytes, 1 to %d without zeros are allowed", key.size,
                       TN_GGUF_KEY_MAX);
    if (type != TN_GGUF_U32 && tn_gguf_str_is(key, TN_GGUF_ALIGNMENT_KEY))
        return tn_fail(w->ctx, TN_ERR_ARG, "key \"" TN_GGUF_ALIGNMENT_KEY "\" must be u32");
    put_str(&w->kvs, key);
    put_number(&w->kvs, (uint32_t)type, 4);
    add_item(w, &w->keys, key, 0, 0);
    w->n_keys++;
    return TN_OK;
}

static tn_status put_scalar(tn_gguf_writer *w, const char *key, int32_t type, uint64_t v)
{
    tn_status status = start_kv(w, (tn_gguf_str){key, strlen(key)}, type);
    if (status != TN_OK) return status;
    put_number(&w->kvs, v, tn_gguf_type_size(type));
    return buffers_status(w);
}

// The key general.alignment decides the layout, so the writer follows its value.
static tn_status take_alignment(tn_gguf_writer *w, uint64_t v)
{
    if (v < TN_GGUF_ALIGNMENT_MIN || v > TN_GGUF_ALIGNMENT_MAX || (v & (v - 1)) != 0)
        return tn_fail(w->ctx, TN_ERR_ARG, "alignment %" PRIu64 ", must be a power of two from %d to %d", v,
                       TN_GGUF_ALIGNMENT_MIN, TN_GGUF_ALIGNMENT_MAX);
    if (w->n_tensors > 0) return tn_fail(w->ctx, TN_ERR_STATE, "alignment after the first tensor");
    w->alignment = (size_t)v;
    return TN_OK;
}

tn_status tn_gguf_writer_put_u32(tn_gguf_writer *w, const char *key, uint32_t v)
{
    if (!w->begun && strcmp(key, TN_GGUF_ALIGNMENT_KEY) == 0) {
        tn_status status = take_alignment(w, v);
        if (status != TN_OK) return status;
    }
    return put_scalar(w, key, TN_GGUF_U32, v);
}

tn_status tn_gguf_writer_put_f32(tn_gguf_writer *w, const char *key, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return put_scalar(w, key, TN_GGUF_F32, bits);
}

tn_status tn_gguf_writer_put_bool(tn_gguf_writer *w, const char *key, bool v)
{
    return put_scalar(w, key, TN_GGUF_BOOL, v);
}

tn_status tn_gguf_writer_put_str(tn_gguf_writer *w, const char *key, const char *v)
{
    tn_gguf_str text = {v, strlen(v)};
    if (text.size > TN_GGUF_STRING_MAX)
        return tn_fail(w->ctx, TN_ERR_ARG, "key \"%s\": string of %zu bytes", key, text.size);
    tn_status status = start_kv(w, (tn_gguf_str){key, strlen(key)}, TN_GGUF_STRING);
    if (status != TN_OK) return status;
    put_str(&w->kvs, text);
    return buffers_status(w);
}

static tn_status start_array(tn_gguf_writer *w, const char *key, int32_t type, uint64_t count)
{
    if (count > TN_GGUF_COUNT_MAX)
        return tn_fail(w->ctx, TN_ERR_ARG, "key \"%s\": array of %" PRIu64 " values", key, count);
    tn_status status = start_kv(w, (tn_gguf_str){key, strlen(key)}, TN_GGUF_ARRAY);
    if (status != TN_OK) return status;
    put_number(&w->kvs, (uint32_t)type, 4);
    put_number(&w->kvs, count, 8);
    return TN_OK;
}

tn_status tn_gguf_writer_put_array(tn_gguf_writer *w, const char *key, int32_t type, const void *elems,
                                   uint64_t count)
{
    size_t elem_size = tn_gguf_type_size(type), size;
    if (elem_size == 0)
        return tn_fail(w->ctx, TN_ERR_ARG, "key \"%s\": array of %s", key, tn_gguf_type_name(type));
    if (count > SIZE_MAX || !tn_mul_size((size_t)count, elem_size, &size))
        return tn_fail(w->ctx, TN_ERR_ARG, "key \"%s\": array of %" PRIu64 " values", key, count);
    tn_status status = start_array(w, key, type, count);
    if (status != TN_OK) return status;
    tn_strbuf_append(&w->kvs, elems, size);
    return buffers_status(w);
}

tn_status tn_gguf_writer_put_strs(tn_gguf_writer *w, const char *key, const char *const *v, uint64_t count)
{
    tn_status status = start_array(w, key, TN_GGUF_STRING, count);
    if (status != TN_OK) return status;
    for (uint64_t i = 0; i < count; i++) put_str(&w->kvs, (tn_gguf_str){v[i], strlen(v[i])});
    return buffers_status(w);
}

tn_status tn_gguf_writer_copy_kv(tn_gguf_writer *w, const tn_gguf_kv *kv)
{
    tn_status status = TN_OK;
    if (!w->begun && kv->type == TN_GGUF_U32 && tn_gguf_str_is(kv->key, TN_GGUF_ALIGNMENT_KEY))
        status = take_alignment(w, tn_load_le(kv->data, 4));
    if (status == TN_OK) status = start_kv(w, kv->key, kv->type);
    if (status != TN_OK) return status;
    if (kv->type == TN_GGUF_ARRAY) {
        put_number(&w->kvs, (uint32_t)kv->elem_type, 4);
        put_number(&w->kvs, kv->count, 8);
    }
    tn_strbuf_append(&w->kvs, kv->data, kv->size);
    return buffers_status(w);
}

// --- tensors ---------------------------------------------------------------------------------------

static tn_status check_tensor(tn_gguf_writer *w, const char *name, tn_gguf_tensor *t, const int64_t *ne)
{
    size_t name_size = strlen(name);
    if (w->begun) return tn_fail(w->ctx, TN_ERR_STATE, "tensor \"%s\" after the data has begun", name);
    if (name_size == 0 || name_size > TN_GGUF_NAME_MAX)
        return tn_fail(w->ctx, TN_ERR_ARG, "tensor name of %zu bytes, 1 to %d are allowed", name_size,
                       TN_GGUF_NAME_MAX);
    if (tn_dtype_file_id(t->dtype) < 0)
        return tn_fail(w->ctx, TN_ERR_ARG, "tensor \"%s\": type %s cannot be stored", name,
                       tn_dtype_name(t->dtype));
    if (t->n_dims < 1 || t->n_dims > TN_MAX_DIMS)
        return tn_fail(w->ctx, TN_ERR_ARG, "tensor \"%s\": %" PRId32 " dimensions", name, t->n_dims);
    memcpy(t->ne, ne, (size_t)t->n_dims * sizeof *ne);
    return tn_gguf_tensor_size(w->ctx, t, &t->size) == TN_OK
               ? TN_OK
               : tn_fail_at(w->ctx, TN_ERR_ARG, "tensor \"%s\"", name);
}

tn_status tn_gguf_writer_add_tensor(tn_gguf_writer *w, const char *name, tn_dtype dtype, int32_t n_dims,
                                    const int64_t *ne)
{
    tn_gguf_tensor t = {.dtype = dtype, .n_dims = n_dims};
    tn_status status = check_tensor(w, name, &t, ne);
    if (status != TN_OK) return status;
    size_t offset = w->data_size, end;
    if (!tn_add_size(offset, t.size, &end) || !tn_round_up_size(end, w->alignment, &end))
        return tn_fail(w->ctx, TN_ERR_ARG, "tensor \"%s\": the file would be too large", name);
    // The file has the row length first, and no trailing ones.
    int32_t first = 0;
    while (first < n_dims - 1 && ne[first] == 1) first++;
    tn_gguf_str text = {name, strlen(name)};
    put_str(&w->infos, text);
    put_number(&w->infos, (uint32_t)(n_dims - first), 4);
    for (int32_t i = n_dims; i > first; i--) put_number(&w->infos, (uint64_t)ne[i - 1], 8);
    put_number(&w->infos, (uint32_t)tn_dtype_file_id(dtype), 4);
    put_number(&w->infos, offset, 8);
    add_item(w, &w->tensors, text, offset, t.size);
    w->data_size = end;
    w->n_tensors++;
    return buffers_status(w);
}

// --- layout ----------------------------------------------------------------------------------------

typedef struct named_items {
    const char *names;
    const writer_item *items;
} named_items;

static tn_gguf_str item_name(const void *items, size_t i)
{
    const named_items *list = items;
    return (tn_gguf_str){list->names + list->items[i].name_off, list->items[i].name_size};
}

static tn_status refuse_duplicates(tn_gguf_writer *w, const tn_strbuf *items, size_t n, const char *what)
{
    if (n == 0) return TN_OK;
    named_items named = {w->names.data, item_at(items, 0)};
    tn_name_list list = {&named, n, item_name};
    tn_name_index index = {0};
    tn_gguf_shown shown;
    size_t twice;
    tn_status status = tn_name_index_build(w->ctx, &index, &list, &twice);
    tn_name_index_fini(w->ctx, &index);
    if (status != TN_OK || twice == n) return status;
    return tn_fail(w->ctx, TN_ERR_ARG, "%s \"%s\" added twice", what,
                   tn_gguf_show(item_name(&named, twice), &shown));
}

static tn_status write_bytes(tn_gguf_writer *w, const void *bytes, size_t n)
{
    tn_status status = tn_file_writer_write(w->file, bytes, n);
    if (status != TN_OK) w->failed = status;
    return status;
}

static tn_status write_zeros(tn_gguf_writer *w, size_t n)
{
    static const uint8_t zeros[256];
    tn_status status = TN_OK;
    for (; n > 0 && status == TN_OK; n -= TN_MIN(n, sizeof zeros))
        status = write_bytes(w, zeros, TN_MIN(n, sizeof zeros));
    return status;
}

// Memory for the whole file, whose padding is zero. What will be written is not touched: models of random
// weights have many gigabytes, and the threads that fill them should be the first to touch their pages.
static tn_status make_bytes(tn_gguf_writer *w, size_t size, size_t head)
{
    w->bytes = tn_alloc(w->ctx, size);
    if (!w->bytes) return TN_ERR_MEMORY;
    memset(w->bytes + head, 0, w->data_start - head);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const writer_item *item = item_at(&w->tensors, i);
        size_t end = item->offset + item->size; // add_tensor made sure that it fits
        size_t next = i + 1 < w->n_tensors ? item_at(&w->tensors, i + 1)->offset : w->data_size;
        memset(w->bytes + w->data_start + end, 0, next - end);
    }
    return TN_OK;
}

// Header, keys, infos, padding: into the file, or into the memory that will also hold the data.
static tn_status write_head(tn_gguf_writer *w, const tn_strbuf *header)
{
    const tn_strbuf *parts[] = {header, &w->kvs, &w->infos};
    size_t end = 0, size;
    bool fits = true;
    for (size_t i = 0; i < TN_COUNT(parts); i++) fits = fits && tn_add_size(end, parts[i]->size, &end);
    fits = fits && tn_round_up_size(end, w->alignment, &w->data_start);
    if (!fits || !tn_add_size(w->data_start, w->data_size, &size))
        return tn_fail(w->ctx, TN_ERR_ARG, "the file would be too large");
    tn_status status = w->file ? TN_OK : make_bytes(w, size, end);
    uint8_t *place = w->bytes;
    for (size_t i = 0; i < TN_COUNT(parts) && status == TN_OK; i++) {
        if (parts[i]->size == 0) continue;
        if (w->file) {
            status = write_bytes(w, parts[i]->data, parts[i]->size);
        } else {
            memcpy(place, parts[i]->data, parts[i]->size);
            place += parts[i]->size;
        }
    }
    if (status == TN_OK && w->file) status = write_zeros(w, w->data_start - end);
    return status;
}

tn_status tn_gguf_writer_begin(tn_gguf_writer *w)
{
    if (w->begun) return tn_fail(w->ctx, TN_ERR_STATE, "the data has begun already");
    tn_status status = buffers_status(w);
    if (status == TN_OK) status = refuse_duplicates(w, &w->keys, w->n_keys, "key");
    if (status == TN_OK) status = refuse_duplicates(w, &w->tensors, w->n_tensors, "tensor");
    if (status != TN_OK) return status;
    tn_strbuf header;
    tn_strbuf_init(&header, w->ctx);
    tn_strbuf_append(&header, "GGUF", 4);
    put_number(&header, TN_GGUF_VERSION, 4);
    put_number(&header, w->n_tensors, 8);
    put_number(&header, w->n_keys, 8);
    status = header.status;
    if (status == TN_OK) status = write_head(w, &header);
    tn_strbuf_fini(&header);
    w->begun = status == TN_OK;
    return status;
}

// --- data ------------------------------------------------------------------------------------------

tn_status tn_gguf_writer_data(tn_gguf_writer *w, const void *bytes, size_t n)
{
    if (w->failed != TN_OK) return w->failed;
    if (!w->begun || w->placed || w->current == w->n_tensors)
        return tn_fail(w->ctx, TN_ERR_STATE, "tensor data, but no tensor waits for any");
    const writer_item *item = item_at(&w->tensors, w->current);
    if (n > item->size - w->written)
        return tn_fail(w->ctx, TN_ERR_ARG, "tensor %zu: %zu bytes of data, %zu are missing", w->current, n,
                       item->size - w->written);
    tn_status status = TN_OK;
    if (w->file)
        status = write_bytes(w, bytes, n);
    else if (n > 0)
        memcpy(w->bytes + w->data_start + item->offset + w->written, bytes, n);
    if (status != TN_OK) return status;
    w->written += n;
    if (w->written < item->size) return TN_OK;
    w->written = 0;
    w->current++;
    size_t end = item->offset + item->size; // add_tensor made sure that it fits
    size_t next = w->current < w->n_tensors ? item_at(&w->tensors, w->current)->offset : w->data_size;
    return w->file ? write_zeros(w, next - end) : TN_OK;
}

tn_status tn_gguf_writer_place(tn_gguf_writer *w, int64_t i, void **place)
{
    if (w->file || !w->begun || w->current > 0 || w->written > 0)
        return tn_fail(w->ctx, TN_ERR_STATE,
                       "places are for memory writers, after begin and instead of data");
    if (i < 0 || (uint64_t)i >= w->n_tensors)
        return tn_fail(w->ctx, TN_ERR_ARG, "tensor %" PRId64 " of %zu", i, w->n_tensors);
    w->placed = true;
    *place = w->bytes + w->data_start + item_at(&w->tensors, (size_t)i)->offset;
    return TN_OK;
}

tn_status tn_gguf_writer_commit(tn_gguf_writer **writer, void **data, size_t *size)
{
    tn_gguf_writer *w = *writer;
    tn_status status = w->failed;
    if (status == TN_OK && (!w->begun || (!w->placed && w->current < w->n_tensors)))
        status =
            tn_fail(w->ctx, TN_ERR_STATE, "only %zu of %zu tensors are complete", w->current, w->n_tensors);
    if (status == TN_OK && !w->file && (!data || !size))
        status = tn_fail(w->ctx, TN_ERR_ARG, "no place for the bytes of a memory writer");
    if (status == TN_OK && w->file) {
        status = tn_file_writer_commit(&w->file);
    } else if (status == TN_OK) {
        *data = w->bytes;
        *size = w->data_start + w->data_size;
        w->bytes = NULL;
    }
    tn_gguf_writer_abort(writer);
    return status;
}
