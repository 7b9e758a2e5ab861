// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Values of keys that the caller gives as text, as KEY=TYPE:VALUE.
#include "core/number.h"
#include "models/keys/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = 160, MOST = 256 }; // bytes of a key; texts

// A text that was read.
typedef struct given {
    char key[KEY_SIZE]; // the whole name
    const tn_key_row *row;
    tn_gguf_kv kv;
    uint8_t number[8]; // the value, unless it is a string
    uint8_t *text;     // the string with its length before it; else NULL
} given;

static const struct {
    const char *name;
    int32_t type;
} types[] = {{"int", TN_GGUF_I64}, {"float", TN_GGUF_F64}, {"bool", TN_GGUF_BOOL}, {"str", TN_GGUF_STRING}};

static bool fits(const tn_key_row *row, int32_t type)
{
    switch (row->kind) {
    case TN_KEY_TEXT:
        return type == TN_GGUF_STRING;
    case TN_KEY_BOOL:
        return type == TN_GGUF_BOOL;
    case TN_KEY_FLOAT:
        return type == TN_GGUF_F64 || type == TN_GGUF_I64;
    case TN_KEY_INT:
    case TN_KEY_LAYERS:
        return type == TN_GGUF_I64;
    default:
        return false; // arrays
    }
}

// The row of a whole name.
static const tn_key_row *find_row(const char *key, tn_gguf_str arch)
{
    const tn_key_row *row;
    bool of_arch = strlen(key) > arch.size && memcmp(key, arch.data, arch.size) == 0;
    for (size_t i = 0; (row = tn_key_row_at(i)) != NULL; i++)
        if (strcmp(row->name, row->name[0] == '.' && of_arch ? key + arch.size : key) == 0) return row;
    return NULL;
}

static tn_status read_key(tn_context *ctx, const char *text, size_t n, tn_gguf_str arch, given *g)
{
    size_t before = text[0] == '.' ? arch.size : 0;
    if (n == 0 || before + n >= KEY_SIZE)
        return tn_fail(ctx, TN_ERR_ARG, "a key of %zu bytes, must be 1 to %d", before + n, KEY_SIZE - 1);
    if (before > 0) memcpy(g->key, arch.data, before);
    memcpy(g->key + before, text, n);
    g->key[before + n] = 0;
    g->kv.key = (tn_gguf_str){g->key, before + n};
    g->row = find_row(g->key, arch);
    if (!g->row) return tn_fail(ctx, TN_ERR_ARG, "the key %s is none that is read", g->key);
    return TN_OK;
}

static tn_status refuse_value(tn_context *ctx, const char *value, const char *kind)
{
    return tn_fail(ctx, TN_ERR_ARG, "'%.64s' is no %s", value, kind);
}

static tn_status read_text(tn_context *ctx, const char *value, given *g)
{
    size_t n = strlen(value);
    g->text = tn_alloc(ctx, sizeof g->number + n);
    if (!g->text) return TN_ERR_MEMORY;
    for (size_t i = 0; i < sizeof g->number; i++) g->text[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(g->text + sizeof g->number, value, n);
    g->kv.data = g->text;
    g->kv.size = sizeof g->number + n;
    return TN_OK;
}

static tn_status read_value(tn_context *ctx, const char *value, given *g)
{
    double v = 0.0;
    int64_t whole;
    g->kv.data = g->number;
    g->kv.size = sizeof g->number;
    switch (g->kv.type) {
    case TN_GGUF_STRING:
        return read_text(ctx, value, g);
    case TN_GGUF_BOOL:
        g->number[0] = strcmp(value, "true") == 0;
        g->kv.size = 1;
        if (g->number[0] || strcmp(value, "false") == 0) return TN_OK;
        return refuse_value(ctx, value, "true or false");
    case TN_GGUF_I64:
        // No key has a range beyond the whole numbers of a double.
        if (!tn_number_read(value, strlen(value), &v) || floor(v) != v || fabs(v) > 9e15)
            return refuse_value(ctx, value, "integer");
        whole = (int64_t)v;
        memcpy(g->number, &whole, sizeof whole);
        return TN_OK;
    default:
        if (!tn_number_read(value, strlen(value), &v)) return refuse_value(ctx, value, "number");
        memcpy(g->number, &v, sizeof v);
        return TN_OK;
    }
}

static tn_status read_given(tn_context *ctx, const char *text, tn_gguf_str arch, given *g)
{
    const char *equals = text ? strchr(text, '=') : NULL, *colon = equals ? strchr(equals, ':') : NULL;
    size_t k = 0, n = colon ? (size_t)(colon - equals - 1) : 0;
    while (k < TN_COUNT(types) && (strlen(types[k].name) != n || !equals ||
                                   memcmp(types[k].name, equals + 1, n) != 0))
        k++;
    if (!colon || k == TN_COUNT(types))
        return tn_fail(ctx, TN_ERR_ARG, "must be KEY=TYPE:VALUE, where TYPE is int, float, bool or str");
    g->kv.type = types[k].type;
    g->kv.elem_type = -1;
    g->kv.count = 1;
    tn_status status = read_key(ctx, text, (size_t)(equals - text), arch, g);
    if (status != TN_OK) return status;
    if (!fits(g->row, g->kv.type))
        return tn_fail(ctx, TN_ERR_ARG, "the key %s does not have values of type %s", g->key, types[k].name);
    return read_value(ctx, colon + 1, g);
}

static tn_status install(tn_gguf *gguf, const given *list, int32_t n)
{
    tn_context *ctx = tn_gguf_context(gguf);
    tn_gguf_kv *values = tn_alloc(ctx, (size_t)n * sizeof *values);
    if (!values) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) values[i] = list[i].kv;
    tn_status status = tn_gguf_override(gguf, values, (size_t)n);
    tn_free(ctx, values);
    // A value that does not fit is the caller's mistake.
    for (int32_t i = 0; i < n && status == TN_OK; i++)
        if (tn_key_check(gguf, list[i].key, list[i].row) != TN_OK) status = TN_ERR_ARG;
    return status;
}

tn_status tn_keys_override(tn_gguf *gguf, const char *const *texts, int32_t n)
{
    tn_context *ctx = tn_gguf_context(gguf);
    tn_gguf_str arch = {"", 0};
    if (n <= 0) return TN_OK;
    if (!texts || n > MOST)
        return tn_fail(ctx, TN_ERR_ARG, "%d overrides, must be 0 to %d and not NULL", (int)n, MOST);
    tn_status status = tn_gguf_get_str(gguf, "general.architecture", &arch);
    if (status != TN_OK) return status;
    given *list = tn_calloc(ctx, (size_t)n, sizeof *list);
    if (!list) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        status = read_given(ctx, texts[i], arch, &list[i]);
        if (status != TN_OK) status = tn_fail_at(ctx, status, "override '%.100s'", texts[i] ? texts[i] : "");
    }
    if (status == TN_OK) status = install(gguf, list, n);
    for (int32_t i = 0; i < n; i++) tn_free(ctx, list[i].text);
    tn_free(ctx, list);
    return status;
}

tn_status tn_keys_watch(tn_keys *k)
{
    int64_t n = tn_gguf_n_kv(k->gguf), i = 0;
    while (i < n && !tn_gguf_kv_at(k->gguf, i)->given) i++;
    if (i == n) return TN_OK;
    k->read = tn_calloc(k->ctx, (size_t)n, sizeof *k->read);
    return k->read ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn_keys_unwatch(tn_keys *k, tn_status status)
{
    size_t n_arch = strlen(k->arch);
    for (int64_t i = 0; k->read && i < tn_gguf_n_kv(k->gguf) && status == TN_OK; i++) {
        const tn_gguf_kv *kv = tn_gguf_kv_at(k->gguf, i);
        bool of_arch = kv->key.size > n_arch && memcmp(kv->key.data, k->arch, n_arch) == 0 &&
                       kv->key.data[n_arch] == '.';
        if (kv->given && of_arch && !k->read[i])
            status = tn_fail(k->ctx, TN_ERR_ARG, "override of %.*s: this model does not read the key",
                             (int)kv->key.size, kv->key.data);
    }
    tn_free(k->ctx, k->read);
    k->read = NULL;
    return status;
}

bool tn_keys_is_given(const tn_keys *k, const char *name)
{
    const tn_gguf_kv *kv = tn_keys_find(k, name);
    return kv && kv->given;
}
