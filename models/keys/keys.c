// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/keys/keys.h"

#include <math.h>
#include <stdio.h>

enum { KEY_SIZE = 160 };

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

static tn_status missing(const tn_keys *k, const char *name)
{
    return tn_fail(k->ctx, TN_ERR_FORMAT, "key %s.%s is missing", k->arch, name);
}

static tn_status set_i32(const tn_keys *k, const char *name, int64_t v, int64_t min, int64_t max,
                         int32_t *out)
{
    if (v < min || v > max)
        return tn_fail(k->ctx, TN_ERR_FORMAT, "key %s.%s is %lld, must be %lld to %lld", k->arch, name,
                       (long long)v, (long long)min, (long long)max);
    *out = (int32_t)v;
    return TN_OK;
}

tn_status tn_keys_i32(const tn_keys *k, const char *name, int64_t min, int64_t max, int32_t flags,
                      int32_t *out)
{
    char text[KEY_SIZE];
    int64_t v = 0;
    if (!tn_keys_find(k, name)) return (flags & TN_KEY_REQUIRED) ? missing(k, name) : TN_OK;
    tn_status status = tn_gguf_get_i64(k->gguf, full_name(k, name, text), &v);
    return status == TN_OK ? set_i32(k, name, v, min, max, out) : status;
}

tn_status tn_keys_layer_i32(const tn_keys *k, const char *name, int32_t layer, int32_t n_layers, int64_t min,
                            int64_t max, int32_t flags, int32_t *out)
{
    const tn_gguf_kv *kv = tn_keys_find(k, name);
    if (!kv || kv->type != TN_GGUF_ARRAY) return tn_keys_i32(k, name, min, max, flags, out);
    if (kv->count != (uint64_t)n_layers)
        return tn_fail(k->ctx, TN_ERR_FORMAT, "key %s.%s has %llu values for %d layers", k->arch, name,
                       (unsigned long long)kv->count, n_layers);
    int64_t v = 0;
    tn_status status = tn_gguf_array_i64(k->gguf, kv, (uint64_t)layer, &v);
    return status == TN_OK ? set_i32(k, name, v, min, max, out) : status;
}

tn_status tn_keys_f32(const tn_keys *k, const char *name, int32_t flags, float *out)
{
    char text[KEY_SIZE];
    float v = 0.0f;
    if (!tn_keys_find(k, name)) return (flags & TN_KEY_REQUIRED) ? missing(k, name) : TN_OK;
    tn_status status = tn_gguf_get_f32(k->gguf, full_name(k, name, text), &v);
    if (status != TN_OK) return status;
    if (!isfinite(v)) return tn_fail(k->ctx, TN_ERR_FORMAT, "key %s.%s is not finite", k->arch, name);
    *out = v;
    return TN_OK;
}

tn_status tn_keys_bool(const tn_keys *k, const char *name, bool *out)
{
    char text[KEY_SIZE];
    return tn_gguf_get_bool(k->gguf, full_name(k, name, text), out);
}

tn_status tn_keys_str(const tn_keys *k, const char *name, tn_gguf_str *out)
{
    char text[KEY_SIZE];
    return tn_gguf_get_str(k->gguf, full_name(k, name, text), out);
}
