// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed access to values. Converters differ in the widths they write, so integers of every width are accepted
// if the value fits. The file is checked again at every access: it may be a mapping that changes.
#include "core/checked.h"
#include "core/fp16.h"
#include "models/gguf/file.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

// One plain value as it is stored.
typedef struct value {
    tn_gguf_kind kind; // never OTHER
    int64_t i;         // SIGNED
    uint64_t u;        // UNSIGNED, BOOL (0 or 1)
    double f;          // FLOAT
} value;

static tn_status fail_key(tn_context *ctx, const tn_gguf_kv *kv, const char *wanted)
{
    tn_gguf_shown shown;
    return tn_fail(ctx, TN_ERR_FORMAT, "key \"%s\": %s%s found, %s expected", tn_gguf_show(kv->key, &shown),
                   tn_gguf_type_name(kv->type == TN_GGUF_ARRAY ? kv->elem_type : kv->type),
                   kv->type == TN_GGUF_ARRAY ? " array" : "", wanted);
}

static double float_from_bits(uint64_t u, size_t size)
{
    if (size == 4) return (double)tn_f32_from_bits((uint32_t)u);
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}

// A plain value of `size` bytes.
static value decode(int32_t type, const uint8_t *p, size_t size)
{
    value v = {.kind = tn_gguf_type_kind(type), .u = tn_load_le(p, size)};
    uint64_t sign = 1ull << (8 * size - 1);
    if (v.kind == TN_GGUF_KIND_SIGNED) v.i = (int64_t)((v.u ^ sign) - sign);
    if (v.kind == TN_GGUF_KIND_FLOAT) v.f = float_from_bits(v.u, size);
    if (v.kind == TN_GGUF_KIND_BOOL) v.u = v.u != 0;
    return v;
}

// Value i of an array, or of a scalar as a list of one.
static tn_status get_value(tn_context *ctx, const tn_gguf_kv *kv, uint64_t i, const char *wanted, value *v)
{
    tn_gguf_shown shown;
    int32_t type = kv->type == TN_GGUF_ARRAY ? kv->elem_type : kv->type;
    size_t size = tn_gguf_type_size(type), offset, end;
    if (size == 0) return fail_key(ctx, kv, wanted);
    if (i >= kv->count || i > SIZE_MAX || !tn_mul_size((size_t)i, size, &offset) ||
        !tn_add_size(offset, size, &end) || end > kv->size)
        return tn_fail(ctx, TN_ERR_FORMAT, "key \"%s\": value %" PRIu64 " wanted, there are %" PRIu64,
                       tn_gguf_show(kv->key, &shown), i, kv->count);
    *v = decode(type, kv->data + offset, size);
    return TN_OK;
}

static tn_status fail_range(tn_context *ctx, const tn_gguf_kv *kv, const char *wanted)
{
    tn_gguf_shown shown;
    return tn_fail(ctx, TN_ERR_FORMAT, "key \"%s\": the value does not fit %s", tn_gguf_show(kv->key, &shown),
                   wanted);
}

static tn_status to_i64(tn_context *ctx, const tn_gguf_kv *kv, const value *v, int64_t *out)
{
    if (v->kind == TN_GGUF_KIND_FLOAT) return fail_key(ctx, kv, "an integer");
    if (v->kind != TN_GGUF_KIND_SIGNED && v->u > INT64_MAX) return fail_range(ctx, kv, "63 bits");
    *out = v->kind == TN_GGUF_KIND_SIGNED ? v->i : (int64_t)v->u;
    return TN_OK;
}

static tn_status to_f64(tn_context *ctx, const tn_gguf_kv *kv, const value *v, double *out)
{
    switch (v->kind) {
    case TN_GGUF_KIND_FLOAT:
        *out = v->f;
        return TN_OK;
    case TN_GGUF_KIND_SIGNED:
        *out = (double)v->i;
        return TN_OK;
    case TN_GGUF_KIND_UNSIGNED:
        *out = (double)v->u;
        return TN_OK;
    default:
        return fail_key(ctx, kv, "a number");
    }
}

static tn_status get_scalar(tn_context *ctx, const tn_gguf_kv *kv, const char *wanted, value *v)
{
    return kv->type == TN_GGUF_ARRAY ? fail_key(ctx, kv, wanted) : get_value(ctx, kv, 0, wanted, v);
}

tn_status tn_gguf_kv_i64(tn_context *ctx, const tn_gguf_kv *kv, int64_t *out)
{
    value v = {0};
    tn_status status = get_scalar(ctx, kv, "an integer", &v);
    if (status != TN_OK) return status;
    return v.kind == TN_GGUF_KIND_BOOL ? fail_key(ctx, kv, "an integer") : to_i64(ctx, kv, &v, out);
}

tn_status tn_gguf_get_i64(const tn_gguf *gguf, const char *key, int64_t *out)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, key);
    return kv ? tn_gguf_kv_i64(gguf->ctx, kv, out) : TN_OK;
}

tn_status tn_gguf_get_u32(const tn_gguf *gguf, const char *key, uint32_t *out)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, key);
    if (!kv) return TN_OK;
    int64_t v = 0;
    tn_status status = tn_gguf_kv_i64(gguf->ctx, kv, &v);
    if (status != TN_OK) return status;
    if (v < 0 || v > UINT32_MAX) return fail_range(gguf->ctx, kv, "32 bits without sign");
    *out = (uint32_t)v;
    return TN_OK;
}

tn_status tn_gguf_get_f32(const tn_gguf *gguf, const char *key, float *out)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, key);
    if (!kv) return TN_OK;
    value v = {0};
    double f = 0;
    tn_status status = get_scalar(gguf->ctx, kv, "a number", &v);
    if (status == TN_OK) status = to_f64(gguf->ctx, kv, &v, &f);
    if (status != TN_OK) return status;
    // Infinities and NaNs are returned: the caller knows whether they make sense.
    if (isfinite(f) && fabs(f) > (double)FLT_MAX) return fail_range(gguf->ctx, kv, "f32");
    *out = (float)f;
    return TN_OK;
}

tn_status tn_gguf_get_bool(const tn_gguf *gguf, const char *key, bool *out)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, key);
    if (!kv) return TN_OK;
    value v = {0};
    tn_status status = get_scalar(gguf->ctx, kv, "bool", &v);
    if (status != TN_OK) return status;
    if (v.kind != TN_GGUF_KIND_BOOL) return fail_key(gguf->ctx, kv, "bool");
    *out = v.u != 0;
    return TN_OK;
}

tn_status tn_gguf_get_str(const tn_gguf *gguf, const char *key, tn_gguf_str *out)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, key);
    if (!kv) return TN_OK;
    if (kv->type != TN_GGUF_STRING) return fail_key(gguf->ctx, kv, "a string");
    size_t cursor = 0;
    return tn_gguf_array_next_str(gguf, kv, &cursor, out);
}

tn_status tn_gguf_array_i64(const tn_gguf *gguf, const tn_gguf_kv *kv, uint64_t i, int64_t *out)
{
    value v = {0};
    tn_status status = get_value(gguf->ctx, kv, i, "integers", &v);
    return status == TN_OK ? to_i64(gguf->ctx, kv, &v, out) : status;
}

tn_status tn_gguf_array_f64(const tn_gguf *gguf, const tn_gguf_kv *kv, uint64_t i, double *out)
{
    value v = {0};
    tn_status status = get_value(gguf->ctx, kv, i, "numbers", &v);
    return status == TN_OK ? to_f64(gguf->ctx, kv, &v, out) : status;
}

tn_status tn_gguf_array_next_str(const tn_gguf *gguf, const tn_gguf_kv *kv, size_t *cursor, tn_gguf_str *out)
{
    tn_gguf_shown shown;
    uint64_t size;
    const uint8_t *p;
    if (kv->type != TN_GGUF_STRING && (kv->type != TN_GGUF_ARRAY || kv->elem_type != TN_GGUF_STRING))
        return fail_key(gguf->ctx, kv, "strings");
    tn_cursor c = {.data = kv->data, .size = kv->size, .pos = TN_MIN(*cursor, kv->size)};
    if (!tn_cursor_u64(&c, &size) || !tn_cursor_bytes(&c, size, &p))
        return tn_fail(gguf->ctx, TN_ERR_FORMAT, "key \"%s\": no more strings at byte %zu of %zu",
                       tn_gguf_show(kv->key, &shown), *cursor, kv->size);
    *out = (tn_gguf_str){.data = (const char *)p, .size = (size_t)size};
    *cursor = c.pos;
    return TN_OK;
}
