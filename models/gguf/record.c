// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One key/value record, one tensor info: every rule that a record can break by itself.
#include "core/checked.h"
#include "models/gguf/file.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size; // bytes of an element, 0: varies
    tn_gguf_kind kind;
} types[TN_GGUF_TYPE_COUNT] = {
    // clang-format off
    [TN_GGUF_U8]       = {"u8",     1, TN_GGUF_KIND_UNSIGNED},
    [TN_GGUF_I8]       = {"i8",     1, TN_GGUF_KIND_SIGNED},
    [TN_GGUF_U16]      = {"u16",    2, TN_GGUF_KIND_UNSIGNED},
    [TN_GGUF_I16]      = {"i16",    2, TN_GGUF_KIND_SIGNED},
    [TN_GGUF_U32]      = {"u32",    4, TN_GGUF_KIND_UNSIGNED},
    [TN_GGUF_I32]      = {"i32",    4, TN_GGUF_KIND_SIGNED},
    [TN_GGUF_F32]      = {"f32",    4, TN_GGUF_KIND_FLOAT},
    [TN_GGUF_BOOL]     = {"bool",   1, TN_GGUF_KIND_BOOL},
    [TN_GGUF_STRING]   = {"string", 0, TN_GGUF_KIND_OTHER},
    [TN_GGUF_ARRAY]    = {"array",  0, TN_GGUF_KIND_OTHER},
    [TN_GGUF_U64]      = {"u64",    8, TN_GGUF_KIND_UNSIGNED},
    [TN_GGUF_I64]      = {"i64",    8, TN_GGUF_KIND_SIGNED},
    [TN_GGUF_F64]      = {"f64",    8, TN_GGUF_KIND_FLOAT},
    // clang-format on
};

// The smallest a string (its length) and an array inside an array (type, count) can be.
enum { STRING_MIN_SIZE = 8, ARRAY_MIN_SIZE = 12 };

const char *tn_gguf_type_name(int32_t type)
{
    return type >= 0 && type < TN_GGUF_TYPE_COUNT ? types[type].name : "?";
}

size_t tn_gguf_type_size(int32_t type)
{
    return type >= 0 && type < TN_GGUF_TYPE_COUNT ? types[type].size : 0;
}

tn_gguf_kind tn_gguf_type_kind(int32_t type)
{
    return type >= 0 && type < TN_GGUF_TYPE_COUNT ? types[type].kind : TN_GGUF_KIND_OTHER;
}

const char *tn_gguf_show(tn_gguf_str s, tn_gguf_shown *shown)
{
    size_t n = TN_MIN(s.size, 64);
    for (size_t i = 0; i < n; i++) {
        char c = s.data[i];
        shown->text[i] = c >= 0x20 && c < 0x7f ? c : '?';
    }
    memcpy(shown->text + n, n < s.size ? "..." : "", n < s.size ? 4 : 1);
    return shown->text;
}

bool tn_gguf_str_is(tn_gguf_str s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

static tn_status read_str(tn_context *ctx, tn_cursor *c, tn_gguf_str *out)
{
    size_t start = c->pos;
    uint64_t size;
    const uint8_t *p;
    if (!tn_cursor_u64(c, &size))
        return tn_fail(ctx, TN_ERR_FORMAT, "file ends inside a string at byte %zu", start);
    if (size > TN_GGUF_STRING_MAX || !tn_cursor_bytes(c, size, &p))
        return tn_fail(ctx, TN_ERR_FORMAT, "string of %" PRIu64 " bytes at byte %zu, but %zu bytes are left",
                       size, start, tn_cursor_left(c));
    *out = (tn_gguf_str){.data = (const char *)p, .size = (size_t)size};
    return TN_OK;
}

// --- values ----------------------------------------------------------------------------------------

static tn_status read_type(tn_context *ctx, tn_cursor *c, int32_t *out)
{
    size_t start = c->pos;
    uint32_t type;
    if (!tn_cursor_u32(c, &type))
        return tn_fail(ctx, TN_ERR_FORMAT, "file ends inside a value at byte %zu", start);
    if (type >= TN_GGUF_TYPE_COUNT)
        return tn_fail(ctx, TN_ERR_FORMAT, "unknown value type %" PRIu32 " at byte %zu", type, start);
    *out = (int32_t)type;
    return TN_OK;
}

// Element type and count of an array. It is checked here already that the elements can fit into the file.
static tn_status read_array_head(tn_context *ctx, tn_cursor *c, int32_t *elem_type, uint64_t *count)
{
    size_t start = c->pos;
    tn_status status = read_type(ctx, c, elem_type);
    if (status != TN_OK) return status;
    if (!tn_cursor_u64(c, count))
        return tn_fail(ctx, TN_ERR_FORMAT, "file ends inside an array at byte %zu", start);
    size_t elem_size = tn_gguf_type_size(*elem_type), size;
    if (*elem_type == TN_GGUF_STRING) elem_size = STRING_MIN_SIZE;
    if (*elem_type == TN_GGUF_ARRAY) elem_size = ARRAY_MIN_SIZE;
    if (*count > TN_GGUF_COUNT_MAX || !tn_mul_size((size_t)*count, elem_size, &size) ||
        size > tn_cursor_left(c))
        return tn_fail(ctx, TN_ERR_FORMAT,
                       "array of %" PRIu64 " values (%s) at byte %zu, but %zu bytes are left", *count,
                       tn_gguf_type_name(*elem_type), start, tn_cursor_left(c));
    return TN_OK;
}

// Steps over `count` values of a type; an array at depth d holds arrays at depth d + 1.
static tn_status skip_values(tn_context *ctx, tn_cursor *c, int32_t type, uint64_t count, int depth)
{
    tn_status status = TN_OK;
    if (type != TN_GGUF_STRING && type != TN_GGUF_ARRAY) {
        size_t start = c->pos, size;
        const uint8_t *p;
        if (!tn_mul_size((size_t)count, tn_gguf_type_size(type), &size) || !tn_cursor_bytes(c, size, &p))
            status = tn_fail(ctx, TN_ERR_FORMAT, "file ends inside a value at byte %zu", start);
        return status;
    }
    if (type == TN_GGUF_ARRAY && depth >= TN_GGUF_DEPTH_MAX)
        return tn_fail(ctx, TN_ERR_FORMAT, "arrays nested deeper than %d at byte %zu", TN_GGUF_DEPTH_MAX,
                       c->pos);
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        if (type == TN_GGUF_STRING) {
            tn_gguf_str s;
            status = read_str(ctx, c, &s);
        } else {
            int32_t elem_type;
            uint64_t n;
            status = read_array_head(ctx, c, &elem_type, &n);
            if (status == TN_OK) status = skip_values(ctx, c, elem_type, n, depth + 1);
        }
    }
    return status;
}

static tn_status read_key(tn_context *ctx, tn_cursor *c, tn_gguf_str *key)
{
    size_t start = c->pos;
    tn_status status = read_str(ctx, c, key);
    if (status != TN_OK) return tn_fail_at(ctx, status, "key");
    if (key->size == 0) return tn_fail(ctx, TN_ERR_FORMAT, "empty key at byte %zu", start);
    if (key->size > TN_GGUF_KEY_MAX)
        return tn_fail(ctx, TN_ERR_FORMAT, "key of %zu bytes at byte %zu, at most %d are allowed", key->size,
                       start, TN_GGUF_KEY_MAX);
    if (memchr(key->data, 0, key->size))
        return tn_fail(ctx, TN_ERR_FORMAT, "zero byte in a key at byte %zu", start);
    return TN_OK;
}

tn_status tn_gguf_read_kv(tn_context *ctx, tn_cursor *c, tn_gguf_kv *out)
{
    tn_gguf_kv kv = {.elem_type = -1, .count = 1};
    tn_gguf_shown shown;
    tn_status status = read_key(ctx, c, &kv.key);
    if (status != TN_OK) return status;
    int depth = 0;
    int32_t type = 0;
    status = read_type(ctx, c, &kv.type);
    if (status != TN_OK) goto fail;
    type = kv.type;
    if (kv.type == TN_GGUF_ARRAY) {
        status = read_array_head(ctx, c, &kv.elem_type, &kv.count);
        if (status != TN_OK) goto fail;
        type = kv.elem_type;
        depth = 1;
    }
    size_t start = c->pos;
    status = skip_values(ctx, c, type, kv.count, depth);
    if (status != TN_OK) goto fail;
    kv.data = c->data + start;
    kv.size = c->pos - start;
    *out = kv;
    return TN_OK;
fail:
    return tn_fail_at(ctx, status, "key \"%s\"", tn_gguf_show(kv.key, &shown));
}

// --- tensor infos ----------------------------------------------------------------------------------

static tn_status read_name(tn_context *ctx, tn_cursor *c, tn_gguf_str *name)
{
    size_t start = c->pos;
    tn_status status = read_str(ctx, c, name);
    if (status != TN_OK) return tn_fail_at(ctx, status, "tensor name");
    if (name->size == 0) return tn_fail(ctx, TN_ERR_FORMAT, "empty tensor name at byte %zu", start);
    if (name->size > TN_GGUF_NAME_MAX)
        return tn_fail(ctx, TN_ERR_FORMAT, "tensor name of %zu bytes at byte %zu, at most %d are allowed",
                       name->size, start, TN_GGUF_NAME_MAX);
    if (memchr(name->data, 0, name->size))
        return tn_fail(ctx, TN_ERR_FORMAT, "zero byte in a tensor name at byte %zu", start);
    return TN_OK;
}

// The file has the row length first; here the order is flipped, once and for all.
static tn_status read_dims(tn_context *ctx, tn_cursor *c, tn_gguf_tensor *t)
{
    size_t start = c->pos;
    uint32_t n_dims;
    if (!tn_cursor_u32(c, &n_dims)) goto ends;
    if (n_dims > TN_MAX_DIMS)
        return tn_fail(ctx, TN_ERR_FORMAT, "%" PRIu32 " dimensions at byte %zu, at most %d are allowed",
                       n_dims, start, TN_MAX_DIMS);
    t->n_dims = n_dims > 0 ? (int32_t)n_dims : 1;
    t->ne[0] = 1;
    for (uint32_t i = n_dims; i > 0; i--) {
        uint64_t dim;
        if (!tn_cursor_u64(c, &dim)) goto ends;
        if (dim == 0 || dim > INT64_MAX)
            return tn_fail(ctx, TN_ERR_FORMAT, "dimension %" PRIu32 " is %" PRIu64 " at byte %zu", n_dims - i,
                           dim, start);
        t->ne[i - 1] = (int64_t)dim;
    }
    return TN_OK;
ends:
    return tn_fail(ctx, TN_ERR_FORMAT, "file ends inside the dimensions at byte %zu", start);
}

tn_status tn_gguf_tensor_size(tn_context *ctx, const tn_gguf_tensor *t, size_t *out)
{
    int64_t row = t->ne[t->n_dims - 1], block = tn_dtype_block_elems(t->dtype), total = 1;
    for (int32_t i = 0; i < t->n_dims; i++) {
        if (t->ne[i] <= 0) return tn_fail(ctx, TN_ERR_FORMAT, "dimension of %" PRId64, t->ne[i]);
        if (total > INT64_MAX / t->ne[i])
            return tn_fail(ctx, TN_ERR_FORMAT, "too many elements: 2^63 or more");
        total *= t->ne[i];
    }
    if (row % block != 0)
        return tn_fail(ctx, TN_ERR_FORMAT, "rows of %" PRId64 " elements, but blocks of %s have %" PRId64,
                       row, tn_dtype_name(t->dtype), block);
    uint64_t n_blocks = (uint64_t)(total / block);
    if (n_blocks > SIZE_MAX || !tn_mul_size((size_t)n_blocks, tn_dtype_block_size(t->dtype), out))
        return tn_fail(ctx, TN_ERR_FORMAT, "too large: %" PRIu64 " blocks of %s", n_blocks,
                       tn_dtype_name(t->dtype));
    return TN_OK;
}

tn_status tn_gguf_read_tensor(tn_context *ctx, tn_cursor *c, tn_gguf_tensor *out, tn_gguf_str *name)
{
    tn_gguf_tensor t = {0};
    tn_gguf_shown shown;
    uint32_t type_id = 0;
    size_t start = c->pos;
    tn_status status = read_name(ctx, c, name);
    if (status != TN_OK) return status;
    status = read_dims(ctx, c, &t);
    if (status != TN_OK) goto fail;
    if (!tn_cursor_u32(c, &type_id) || !tn_cursor_u64(c, &t.file_offset)) {
        status = tn_fail(ctx, TN_ERR_FORMAT, "file ends inside the record");
        goto fail;
    }
    t.dtype = tn_dtype_by_file_id(type_id);
    if (t.dtype < 0) {
        status = tn_fail(ctx, TN_ERR_FORMAT, "unknown or removed tensor type %" PRIu32, type_id);
        goto fail;
    }
    status = tn_gguf_tensor_size(ctx, &t, &t.size);
    if (status != TN_OK) goto fail;
    *out = t;
    return TN_OK;
fail:
    return tn_fail_at(ctx, status, "tensor \"%s\" (info at byte %zu)", tn_gguf_show(*name, &shown), start);
}
