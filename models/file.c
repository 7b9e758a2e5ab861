// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Inspecting any GGUF file: keys as text, tensors, their values as f32.
//
// Text from files is escaped: bytes that a terminal would act on, and bytes that are no UTF-8, become \n, \t,
// \r or \xNN, and a backslash becomes two. No information is lost, and no text of a file can control a
// terminal.
#include "models/file.h"

#include "core/number.h"
#include "core/os/file_map.h"
#include "core/strbuf.h"
#include "models/gguf/cursor.h"
#include "models/text/tokenizer/unicode.h"
#include "ops/quant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>

struct tn_file {
    tn_context *ctx;
    tn_gguf *gguf;
};

// Values converted at a time. A multiple of every block, so that pieces need not respect rows.
enum { EXPORT_ELEMS = 16384, EXPORT_SIZE = EXPORT_ELEMS * 8 }; // a value has at most 8 bytes

// --- text ------------------------------------------------------------------------------------------

// Whether the character of `size` bytes is well-formed and printable, without an effect on a terminal.
static bool is_shown(uint32_t cp, size_t size)
{
    char again[4];
    if (cp == TN_UNICODE_REPLACEMENT) return size == 3; // size 1: the decoder replaced a broken byte
    if (cp > 0x10ffff || tn_utf8_encode(cp, again) != size) return false;
    uint32_t c = tn_unicode_category(cp);
    return c != TN_GC_CC && c != TN_GC_CF && c != TN_GC_CS && c != TN_GC_ZL && c != TN_GC_ZP;
}

// Appends the character at p; returns how many bytes it has.
static size_t put_char(tn_strbuf *s, const char *p, size_t n, bool quoted)
{
    static const char named[][4] = {"\n\\n", "\t\\t", "\r\\r", "\\\\\\"};
    size_t size;
    uint32_t cp = tn_utf8_decode(p, n, &size);
    for (size_t i = 0; i < TN_COUNT(named); i++) {
        if (*p != named[i][0]) continue;
        tn_strbuf_append(s, named[i] + 1, 2);
        return 1;
    }
    if (quoted && *p == '"') {
        tn_strbuf_puts(s, "\\\"");
    } else if (is_shown(cp, size)) {
        tn_strbuf_append(s, p, size);
    } else {
        for (size_t i = 0; i < size; i++) tn_strbuf_printf(s, "\\x%02x", (unsigned)(unsigned char)p[i]);
    }
    return size;
}

static void put_text(tn_strbuf *s, tn_gguf_str text, int64_t max_items, bool quoted)
{
    int64_t n_shown = 0;
    size_t i = 0;
    if (quoted) tn_strbuf_puts(s, "\"");
    while (i < text.size && s->status == TN_OK && (max_items <= 0 || n_shown < max_items)) {
        i += put_char(s, text.data + i, text.size - i, quoted);
        n_shown++;
    }
    if (quoted) tn_strbuf_puts(s, "\"");
    if (i < text.size) tn_strbuf_puts(s, "...");
}

// The shortest decimal that reads back as the same number.
static void put_float(tn_strbuf *s, double v, bool is_f32)
{
    char text[40];
    int most = is_f32 ? 9 : 17;
    for (int digits = is_f32 ? 6 : 15; digits <= most; digits++) {
        double back = 0;
        snprintf(text, sizeof text, "%.*g", digits, v);
        tn_number_point(text);
        if (tn_number_read(text, strlen(text), &back) && (is_f32 ? (float)back == (float)v : back == v))
            break;
    }
    tn_strbuf_puts(s, text);
}

// Value i of an array, or the value of a scalar as number 0; no strings, no arrays.
static tn_status put_number(const tn_file *file, const tn_gguf_kv *kv, uint64_t i, tn_strbuf *s)
{
    int32_t type = kv->type == TN_GGUF_ARRAY ? kv->elem_type : kv->type;
    tn_status status;
    if (type == TN_GGUF_F32 || type == TN_GGUF_F64) {
        double v = 0;
        status = tn_gguf_array_f64(file->gguf, kv, i, &v);
        if (status == TN_OK) put_float(s, v, type == TN_GGUF_F32);
    } else if (type == TN_GGUF_U64) { // may exceed what tn_gguf_array_i64 can give
        uint64_t v;
        tn_cursor c = {
            .data = kv->data, .size = kv->size, .pos = i <= kv->size / 8 ? (size_t)i * 8 : kv->size};
        if (!tn_cursor_u64(&c, &v))
            return tn_fail(file->ctx, TN_ERR_FORMAT, "array of %zu bytes ends early", kv->size);
        tn_strbuf_printf(s, "%" PRIu64, v);
        status = TN_OK;
    } else {
        int64_t v = 0;
        status = tn_gguf_array_i64(file->gguf, kv, i, &v);
        if (status == TN_OK && type == TN_GGUF_BOOL) tn_strbuf_puts(s, v ? "true" : "false");
        if (status == TN_OK && type != TN_GGUF_BOOL) tn_strbuf_printf(s, "%" PRId64, v);
    }
    return status;
}

static tn_status put_array(const tn_file *file, const tn_gguf_kv *kv, int64_t max_items, tn_strbuf *s)
{
    if (kv->elem_type == TN_GGUF_ARRAY) {
        tn_strbuf_printf(s, "[... %" PRIu64 " arrays]", kv->count);
        return TN_OK;
    }
    uint64_t n = max_items > 0 && (uint64_t)max_items < kv->count ? (uint64_t)max_items : kv->count;
    size_t cursor = 0;
    tn_strbuf_puts(s, "[");
    for (uint64_t i = 0; i < n && s->status == TN_OK; i++) {
        tn_gguf_str text;
        tn_status status;
        if (i > 0) tn_strbuf_puts(s, ", ");
        if (kv->elem_type == TN_GGUF_STRING) {
            status = tn_gguf_array_next_str(file->gguf, kv, &cursor, &text);
            if (status == TN_OK) put_text(s, text, max_items, true);
        } else {
            status = put_number(file, kv, i, s);
        }
        if (status != TN_OK) return status;
    }
    if (n < kv->count) tn_strbuf_printf(s, ", ... %" PRIu64 " more", kv->count - n);
    tn_strbuf_puts(s, "]");
    return TN_OK;
}

static tn_status put_value(const tn_file *file, const tn_gguf_kv *kv, int64_t max_items, tn_strbuf *s)
{
    if (kv->type == TN_GGUF_ARRAY) return put_array(file, kv, max_items, s);
    if (kv->type != TN_GGUF_STRING) return put_number(file, kv, 0, s);
    size_t cursor = 0;
    tn_gguf_str text;
    tn_status status = tn_gguf_array_next_str(file->gguf, kv, &cursor, &text);
    if (status == TN_OK) put_text(s, text, max_items, false);
    return status;
}

static const char *type_name(int32_t type)
{
    return type == TN_GGUF_STRING ? "str" : tn_gguf_type_name(type);
}

static tn_status fail_index(const tn_file *file, const char *what, int64_t i, int64_t n)
{
    return tn_fail(file->ctx, TN_ERR_ARG, "%s %" PRId64 " of %" PRId64, what, i, n);
}

tn_status tn_file_key(const tn_file *file, int64_t i, int64_t max_items, char **name, const char **type,
                      const char **value)
{
    TN_NEED(NULL, file);
    TN_NEED(file->ctx, name);
    TN_NEED(file->ctx, type);
    TN_NEED(file->ctx, value);
    int64_t n = tn_gguf_n_kv(file->gguf);
    if (i < 0 || i >= n) return fail_index(file, "key", i, n);
    const tn_gguf_kv *kv = tn_gguf_kv_at(file->gguf, i);
    tn_strbuf s;
    tn_strbuf_init(&s, file->ctx);
    put_text(&s, kv->key, 0, false);
    tn_strbuf_append(&s, "", 1);
    size_t type_off = s.size;
    bool array = kv->type == TN_GGUF_ARRAY;
    tn_strbuf_printf(&s, array ? "[%s]" : "%s", type_name(array ? kv->elem_type : kv->type));
    tn_strbuf_append(&s, "", 1);
    size_t value_off = s.size;
    tn_status status = put_value(file, kv, max_items, &s);
    if (status == TN_OK) status = s.status;
    if (status == TN_OK) {
        *name = s.data;
        *type = s.data + type_off;
        *value = s.data + value_off;
        s.data = NULL;
    }
    tn_strbuf_fini(&s);
    return status;
}

// --- files -----------------------------------------------------------------------------------------

tn_status tn_file_open(tn_context *ctx, const char *path, tn_file **out)
{
    TN_NEED(NULL, ctx);
    TN_NEED(ctx, path);
    TN_NEED(ctx, out);
    tn_file *file = tn_calloc(ctx, 1, sizeof *file);
    if (!file) return TN_ERR_MEMORY;
    file->ctx = ctx;
    tn_status status = tn_gguf_open(ctx, path, &file->gguf);
    if (status == TN_OK)
        *out = file;
    else
        tn_file_close(&file);
    return status;
}

void tn_file_close(tn_file **file)
{
    if (!file || !*file) return;
    tn_gguf_close(&(*file)->gguf);
    tn_free((*file)->ctx, *file);
    *file = NULL;
}

int64_t tn_file_n_keys(const tn_file *file)
{
    if (!file) return 0;
    return tn_gguf_n_kv(file->gguf);
}

uint64_t tn_file_size(const tn_file *file)
{
    if (!file) return 0;
    return tn_gguf_file_size(file->gguf);
}

uint32_t tn_file_version(const tn_file *file)
{
    if (!file) return 0;
    return tn_gguf_version(file->gguf);
}

int32_t tn_file_n_parts(const tn_file *file)
{
    if (!file) return 0;
    return tn_gguf_n_files(file->gguf);
}

tn_status tn_file_check(const tn_file *file)
{
    TN_NEED(NULL, file);
    return tn_gguf_check_data(file->gguf);
}

tn_status tn_refuse_own_file(const tn_gguf *gguf, const char *path)
{
    static const char suffix[] = "-00001-of-00001.gguf";
    tn_context *ctx = tn_gguf_context(gguf);
    const char *name = tn_gguf_name(gguf);
    int32_t n = tn_gguf_n_files(gguf);
    bool own = tn_same_file(name, path);
    size_t capacity = strlen(name) + 32; // for longer numbers
    char *part = n > 1 && !own ? tn_alloc(ctx, capacity) : NULL;
    if (n > 1 && !own && !part) return TN_ERR_MEMORY;
    // A split model was opened by the path of its first file, which ends in such a suffix.
    int prefix = part ? (int)(strlen(name) - (sizeof suffix - 1)) : 0;
    for (int32_t k = 2; k <= n && !own; k++) {
        snprintf(part, capacity, "%.*s-%05" PRId32 "-of-%05" PRId32 ".gguf", prefix, name, k, n);
        own = tn_same_file(part, path);
    }
    tn_free(ctx, part);
    if (!own) return TN_OK;
    return tn_fail(ctx, TN_ERR_ARG, "%s: the same file is read; give another name for the result", path);
}

// --- tensors ---------------------------------------------------------------------------------------

int64_t tn_file_n_tensors(const tn_file *file)
{
    if (!file) return 0;
    return tn_gguf_n_tensors(file->gguf);
}

tn_status tn_file_tensor_get(const tn_file *file, int64_t i, tn_file_tensor *out)
{
    TN_NEED(NULL, file);
    int64_t n = tn_gguf_n_tensors(file->gguf);
    if (i < 0 || i >= n) return fail_index(file, "tensor", i, n);
    const tn_gguf_tensor *t = tn_gguf_tensor_at(file->gguf, i);
    tn_file_tensor now = {.name = t->name,
                          .dtype = t->dtype,
                          .n_dims = t->n_dims,
                          .size = t->size,
                          .offset = t->file_offset,
                          .file = t->file};
    _Static_assert(TN_COUNT(t->ne) == TN_COUNT(now.shape), "a tensor of the file fits the public form");
    memcpy(now.shape, t->ne, (size_t)t->n_dims * sizeof *t->ne);
    return TN_STRUCT_WRITE(file->ctx, tn_file_tensor, out, &now);
}

int64_t tn_file_find_tensor(const tn_file *file, const char *name)
{
    if (!file || !name) return -1;
    const tn_gguf_tensor *t = tn_gguf_find_tensor(file->gguf, name);
    return t ? t - tn_gguf_tensor_at(file->gguf, 0) : -1;
}

int64_t tn_gguf_tensor_elems(const tn_gguf_tensor *t)
{
    return (int64_t)(t->size / tn_dtype_block_size(t->dtype)) * tn_dtype_block_elems(t->dtype);
}

// Whether values of the type can be converted to f32.
static tn_status find_values(const tn_file *file, int64_t i, const tn_gguf_tensor **out)
{
    int64_t n = tn_gguf_n_tensors(file->gguf);
    if (i < 0 || i >= n) return fail_index(file, "tensor", i, n);
    *out = tn_gguf_tensor_at(file->gguf, i);
    if (tn_quant_info_get((*out)->dtype)->to_f32) return TN_OK;
    return tn_fail(file->ctx, TN_ERR_UNSUPPORTED, "tensor \"%s\": values of type %s cannot be read",
                   (*out)->name, tn_dtype_name((*out)->dtype));
}

// The bytes are copied before they are converted: touching pages that the file has lost would end the
// process. bytes: space for EXPORT_ELEMS values.
static tn_status read_values(const tn_file *file, const tn_gguf_tensor *t, int64_t first, int64_t n,
                             uint8_t *bytes, float *out)
{
    tn_status status = TN_OK;
    for (int64_t done = 0; done < n && status == TN_OK; done += EXPORT_ELEMS) {
        int64_t k = TN_MIN(n - done, EXPORT_ELEMS);
        status = tn_gguf_tensor_read(file->gguf, t, tn_dtype_row_size(t->dtype, first + done), bytes,
                                     tn_dtype_row_size(t->dtype, k));
        if (status == TN_OK) tn_quant_info_get(t->dtype)->to_f32(bytes, out + done, k);
    }
    return status;
}

tn_status tn_file_read_tensor(const tn_file *file, int64_t i, int64_t first, int64_t n, float *out)
{
    TN_NEED(NULL, file);
    TN_NEED(file->ctx, out);
    const tn_gguf_tensor *t = NULL;
    tn_status status = find_values(file, i, &t);
    if (status != TN_OK) return status;
    int64_t total = tn_gguf_tensor_elems(t), block = tn_dtype_block_elems(t->dtype);
    if (first < 0 || n < 0 || first > total || n > total - first || first % block != 0 || n % block != 0)
        return tn_fail(file->ctx, TN_ERR_ARG,
                       "tensor \"%s\": %" PRId64 " values from %" PRId64 " on; it has %" PRId64
                       " in blocks of %" PRId64,
                       t->name, n, first, total, block);
    uint8_t *bytes = tn_alloc(file->ctx, EXPORT_SIZE);
    if (!bytes) return TN_ERR_MEMORY;
    status = read_values(file, t, first, n, bytes, out);
    tn_free(file->ctx, bytes);
    return status;
}

static tn_status export_to(const tn_file *file, tn_file_writer *writer, const tn_gguf_tensor *t,
                           uint8_t *bytes, float *values)
{
    int64_t n = tn_gguf_tensor_elems(t);
    for (int64_t first = 0; first < n; first += EXPORT_ELEMS) {
        int64_t piece = TN_MIN(n - first, EXPORT_ELEMS);
        tn_status status = read_values(file, t, first, piece, bytes, values);
        if (status == TN_OK) status = tn_file_writer_write(writer, values, (size_t)piece * sizeof *values);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

tn_status tn_file_export_tensor(const tn_file *file, int64_t i, const char *path)
{
    TN_NEED(NULL, file);
    TN_NEED(file->ctx, path);
    tn_context *ctx = file->ctx;
    const tn_gguf_tensor *t = NULL;
    tn_status status = find_values(file, i, &t);
    if (status != TN_OK) return status;
    if (!path) return tn_fail(ctx, TN_ERR_ARG, "no path to write a tensor to");
    tn_file_writer *writer = NULL;
    float *values = NULL;
    uint8_t *bytes = NULL;
    status = tn_refuse_own_file(file->gguf, path);
    if (status == TN_OK && !(values = tn_alloc(ctx, EXPORT_ELEMS * sizeof *values))) status = TN_ERR_MEMORY;
    if (status == TN_OK && !(bytes = tn_alloc(ctx, EXPORT_SIZE))) status = TN_ERR_MEMORY;
    if (status == TN_OK) status = tn_file_writer_open(ctx, path, &writer);
    if (status == TN_OK) status = export_to(file, writer, t, bytes, values);
    if (status == TN_OK) status = tn_file_writer_commit(&writer);
    tn_file_writer_abort(&writer);
    tn_free(ctx, bytes);
    tn_free(ctx, values);
    return status;
}
