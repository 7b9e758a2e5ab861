// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Values of keys that the caller gives instead of those of the file.
#include "core/checked.h"
#include "models/gguf/file.h"

#include <string.h>

// Moves key and data of the value to *to, and *to behind them. Data begins at a multiple of 8 bytes from the
// start of the block, as large as any element.
static void move_value(tn_gguf_kv *kv, uint8_t **to)
{
    uint8_t *p = *to;
    memcpy(p, kv->data, kv->size);
    kv->data = p;
    p += (kv->size + 7) / 8 * 8;
    memcpy(p, kv->key.data, kv->key.size);
    kv->key.data = (const char *)p;
    *to = p + (kv->key.size + 7) / 8 * 8;
}

static size_t moved_size(const tn_gguf_kv *kv)
{
    return (kv->size + 7) / 8 * 8 + (kv->key.size + 7) / 8 * 8;
}

static bool same_key(const tn_gguf_kv *a, const tn_gguf_kv *b)
{
    return a->key.size == b->key.size && memcmp(a->key.data, b->key.data, a->key.size) == 0;
}

// Puts the value where the key is, or behind the others.
static void put(tn_gguf_keys *keys, const tn_gguf_kv *kv)
{
    size_t i = 0;
    while (i < keys->n && !same_key(&keys->kv[i], kv)) i++;
    keys->kv[i] = *kv;
    keys->kv[i].given = true;
    if (i == keys->n) keys->n++;
}

tn_status tn_gguf_override(tn_gguf *gguf, const tn_gguf_kv *values, size_t n)
{
    tn_gguf_keys keys = {.n = gguf->keys.n};
    size_t size = 0, most, twice;
    if (n == 0) return TN_OK;
    if (gguf->overridden) return tn_fail(gguf->ctx, TN_ERR_STATE, "values were overridden before");
    for (size_t i = 0; i < n; i++)
        if (!tn_add_size(size, moved_size(&values[i]), &size)) return TN_ERR_MEMORY;
    if (!tn_add_size(keys.n, n, &most)) return TN_ERR_MEMORY;
    keys.kv = tn_calloc(gguf->ctx, most, sizeof *keys.kv);
    uint8_t *block = tn_alloc(gguf->ctx, size), *to = block;
    tn_status status = keys.kv && block ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        if (keys.n > 0) memcpy(keys.kv, gguf->keys.kv, keys.n * sizeof *keys.kv);
        for (size_t i = 0; i < n; i++) {
            tn_gguf_kv kv = values[i];
            move_value(&kv, &to);
            put(&keys, &kv);
        }
        status = tn_gguf_keys_index(gguf->ctx, &keys, &twice);
    }
    if (status != TN_OK) {
        tn_gguf_keys_fini(gguf->ctx, &keys);
        tn_free(gguf->ctx, block);
        return status;
    }
    tn_gguf_keys_fini(gguf->ctx, &gguf->keys);
    gguf->keys = keys;
    gguf->overridden = block;
    return TN_OK;
}
