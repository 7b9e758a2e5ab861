// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/keys/keys.h"

#include "models/config.h"
#include "models/text/tokenizer/tokenizer_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenon/params.h>

enum { KEY_SIZE = 160 };

// Largest size of a factor: with it the square of any activation stays finite in f32.
#define TN_MAX_FACTOR 1000000000000

static const tn_key_row rows[] = {
#define TN_KEY(name, kind, least, most) {name, TN_KEY_##kind, least, most},
#include "models/keys/keys.def"
};

const tn_key_row *tn_key_row_at(size_t i)
{
    return i < TN_COUNT(rows) ? &rows[i] : NULL;
}

// --- one value -------------------------------------------------------------------------------------

static tn_status refuse_int(tn_context *ctx, const char *key, int64_t v, int64_t least, int64_t most)
{
    return tn_fail(ctx, TN_ERR_FORMAT, "key %s is %lld, must be %lld to %lld", key, (long long)v,
                   (long long)least, (long long)most);
}

static bool is_array_of(const tn_gguf_kv *kv, const tn_key_row *row)
{
    if (kv->type != TN_GGUF_ARRAY) return false;
    int32_t type = kv->elem_type;
    switch (row->kind) {
    case TN_KEY_TEXTS:
        return type == TN_GGUF_STRING;
    case TN_KEY_F32S:
        return type == TN_GGUF_F32;
    case TN_KEY_BYTES:
        return type == TN_GGUF_U8 || type == TN_GGUF_I8;
    default:
        return type != TN_GGUF_STRING && type != TN_GGUF_ARRAY && type != TN_GGUF_F32 && type != TN_GGUF_F64;
    }
}

static tn_status check_array(const tn_gguf *gguf, const char *key, const tn_gguf_kv *kv,
                             const tn_key_row *row)
{
    static const char *const names[] = {[TN_KEY_TEXTS] = "str",
                                        [TN_KEY_F32S] = "f32",
                                        [TN_KEY_BYTES] = "u8 or i8",
                                        [TN_KEY_INTS] = "integers",
                                        [TN_KEY_LAYERS] = "integers"};
    tn_context *ctx = tn_gguf_context(gguf);
    if (!is_array_of(kv, row))
        return tn_fail(ctx, TN_ERR_FORMAT, "key %s is %s%s, must be an array of %s", key,
                       kv->type == TN_GGUF_ARRAY ? "an array of " : "",
                       tn_gguf_type_name(kv->type == TN_GGUF_ARRAY ? kv->elem_type : kv->type),
                       names[row->kind]);
    if (row->kind != TN_KEY_INTS && row->kind != TN_KEY_LAYERS) return TN_OK;
    for (uint64_t i = 0; i < kv->count; i++) {
        int64_t v = 0;
        tn_status status = tn_gguf_array_i64(gguf, kv, i, &v);
        if (status != TN_OK) return status;
        if (v < row->least || v > row->most)
            return tn_fail(ctx, TN_ERR_FORMAT, "key %s: value %llu is %lld, must be %lld to %lld", key,
                           (unsigned long long)i, (long long)v, (long long)row->least, (long long)row->most);
    }
    return TN_OK;
}

static tn_status check_float(const tn_gguf *gguf, const char *key, const tn_key_row *row)
{
    tn_context *ctx = tn_gguf_context(gguf);
    float v = 0.0f;
    tn_status status = tn_gguf_get_f32(gguf, key, &v);
    if (status != TN_OK) return status;
    if (!isfinite(v)) return tn_fail(ctx, TN_ERR_FORMAT, "key %s is not finite", key);
    if ((double)v < (double)row->least || (double)v > (double)row->most)
        return tn_fail(ctx, TN_ERR_FORMAT, "key %s is %g, must be %g to %g", key, (double)v,
                       (double)row->least, (double)row->most);
    return TN_OK;
}

static tn_status check_value(const tn_gguf *gguf, const char *key, const tn_gguf_kv *kv,
                             const tn_key_row *row)
{
    tn_gguf_str text;
    int64_t v = 0;
    bool yes;
    tn_status status;
    switch (row->kind) {
    case TN_KEY_TEXT:
        return tn_gguf_get_str(gguf, key, &text);
    case TN_KEY_BOOL:
        return tn_gguf_get_bool(gguf, key, &yes);
    case TN_KEY_FLOAT:
        return check_float(gguf, key, row);
    case TN_KEY_LAYERS:
        if (kv->type == TN_GGUF_ARRAY) return check_array(gguf, key, kv, row);
        break;
    case TN_KEY_INT:
        break;
    default:
        return check_array(gguf, key, kv, row);
    }
    status = tn_gguf_get_i64(gguf, key, &v);
    if (status != TN_OK || (v >= row->least && v <= row->most)) return status;
    return refuse_int(tn_gguf_context(gguf), key, v, row->least, row->most);
}

tn_status tn_key_check(const tn_gguf *gguf, const char *key, const tn_key_row *row)
{
    return check_value(gguf, key, tn_gguf_find(gguf, key), row);
}

// --- the keys of the file and of the tokenizer -------------------------------------------------------

static tn_status check_rows(const tn_gguf *gguf)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < TN_COUNT(rows) && status == TN_OK; i++) {
        if (rows[i].name[0] == '.') continue;
        const tn_gguf_kv *kv = tn_gguf_find(gguf, rows[i].name);
        if (kv) status = check_value(gguf, rows[i].name, kv, &rows[i]);
    }
    return status;
}

// `type` is what a file without the key is taken for.
static tn_status check_type(tn_context *ctx, const tn_gguf *gguf, const char *type, const char *wanted)
{
    tn_gguf_str found = {type, strlen(type)};
    tn_status status = tn_gguf_get_str(gguf, "general.type", &found);
    if (status != TN_OK || (found.size == strlen(wanted) && memcmp(found.data, wanted, found.size) == 0))
        return status;
    return tn_fail(ctx, TN_ERR_MODEL, "general.type is \"%.*s\": the file is no %s",
                   (int)TN_MIN(found.size, 32), found.data, wanted);
}

tn_status tn_keys_check(tn_context *ctx, const tn_gguf *gguf)
{
    tn_status status = check_rows(gguf);
    return status == TN_OK ? check_type(ctx, gguf, "model", "model") : status;
}

tn_status tn_keys_check_adapter(tn_context *ctx, const tn_gguf *gguf)
{
    tn_status status = check_rows(gguf);
    return status == TN_OK ? check_type(ctx, gguf, "model", "adapter") : status;
}

// --- keys of the architecture ------------------------------------------------------------------------

static const char *full_name(const tn_keys *k, const char *name, char text[KEY_SIZE])
{
    snprintf(text, KEY_SIZE, "%s.%s", k->arch, name);
    return text;
}

const tn_gguf_kv *tn_keys_find(const tn_keys *k, const char *name)
{
    char text[KEY_SIZE];
    return tn_gguf_find(k->gguf, full_name(k, name, text));
}

static const tn_key_row *row_of(const char *name)
{
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        if (rows[i].name[0] == '.' && strcmp(rows[i].name + 1, name) == 0) return &rows[i];
    return NULL;
}

// *kv is NULL if the key is absent, which is an error if it is required.
static tn_status find_checked(const tn_keys *k, const char *name, tn_key_kind kind, int32_t flags,
                              char text[KEY_SIZE], const tn_gguf_kv **kv)
{
    const tn_key_row *row = row_of(name);
    full_name(k, name, text);
    if (!row || (row->kind != kind && !(row->kind == TN_KEY_LAYERS && kind == TN_KEY_INT)))
        return tn_fail(k->ctx, TN_ERR_INTERNAL, "key %s has no row of its kind", text);
    *kv = tn_gguf_find(k->gguf, text);
    if (!*kv)
        return (flags & TN_KEY_REQUIRED) ? tn_fail(k->ctx, TN_ERR_FORMAT, "key %s is missing", text) : TN_OK;
    if (k->read) k->read[*kv - tn_gguf_kv_at(k->gguf, 0)] = true;
    return check_value(k->gguf, text, *kv, row);
}

tn_status tn_keys_i32(const tn_keys *k, const char *name, int32_t flags, int32_t *out)
{
    return tn_keys_i32_within(k, name, INT32_MIN, INT32_MAX, flags, out);
}

tn_status tn_keys_i32_within(const tn_keys *k, const char *name, int64_t least, int64_t most, int32_t flags,
                             int32_t *out)
{
    char text[KEY_SIZE];
    const tn_gguf_kv *kv = NULL;
    int64_t v = 0;
    tn_status status = find_checked(k, name, TN_KEY_INT, flags, text, &kv);
    if (status != TN_OK || !kv) return status;
    status = tn_gguf_get_i64(k->gguf, text, &v);
    if (status == TN_OK && (v < least || v > most)) return refuse_int(k->ctx, text, v, least, most);
    if (status == TN_OK) *out = (int32_t)v;
    return status;
}

tn_status tn_keys_layer_i32(const tn_keys *k, const char *name, int32_t layer, int32_t n_layers,
                            int64_t least, int64_t most, int32_t flags, int32_t *out)
{
    char text[KEY_SIZE];
    const tn_gguf_kv *kv = tn_keys_find(k, name);
    if (!kv || kv->type != TN_GGUF_ARRAY) return tn_keys_i32_within(k, name, least, most, flags, out);
    int64_t v = 0;
    tn_status status = layer == 0 ? find_checked(k, name, TN_KEY_LAYERS, flags, text, &kv) : TN_OK;
    if (status == TN_OK && kv->count != (uint64_t)n_layers)
        return tn_fail(k->ctx, TN_ERR_FORMAT, "key %s.%s has %llu values for %d layers", k->arch, name,
                       (unsigned long long)kv->count, n_layers);
    if (status == TN_OK) status = tn_gguf_array_i64(k->gguf, kv, (uint64_t)layer, &v);
    if (status == TN_OK && (v < least || v > most))
        return refuse_int(k->ctx, full_name(k, name, text), v, least, most);
    if (status == TN_OK) *out = (int32_t)v;
    return status;
}

tn_status tn_keys_f32(const tn_keys *k, const char *name, int32_t flags, float *out)
{
    char text[KEY_SIZE];
    const tn_gguf_kv *kv = NULL;
    tn_status status = find_checked(k, name, TN_KEY_FLOAT, flags, text, &kv);
    return status == TN_OK && kv ? tn_gguf_get_f32(k->gguf, text, out) : status;
}

tn_status tn_keys_bool(const tn_keys *k, const char *name, bool *out)
{
    char text[KEY_SIZE];
    const tn_gguf_kv *kv = NULL;
    tn_status status = find_checked(k, name, TN_KEY_BOOL, 0, text, &kv);
    return status == TN_OK && kv ? tn_gguf_get_bool(k->gguf, text, out) : status;
}

tn_status tn_keys_str(const tn_keys *k, const char *name, tn_gguf_str *out)
{
    char text[KEY_SIZE];
    const tn_gguf_kv *kv = NULL;
    tn_status status = find_checked(k, name, TN_KEY_TEXT, 0, text, &kv);
    return status == TN_OK && kv ? tn_gguf_get_str(k->gguf, text, out) : status;
}

tn_status tn_keys_texts(const tn_keys *k, const char *name, const tn_gguf_kv **kv)
{
    char text[KEY_SIZE];
    return find_checked(k, name, TN_KEY_TEXTS, 0, text, kv);
}

tn_status tn_keys_ints(const tn_keys *k, const char *name, const tn_gguf_kv **kv)
{
    char text[KEY_SIZE];
    return find_checked(k, name, TN_KEY_INTS, 0, text, kv);
}
