// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys of a model file. The table keys.def has the type and range of every key that is read; the functions
// below refuse what does not fit its row.
#ifndef TN_MODELS_KEYS_H
#define TN_MODELS_KEYS_H

#include "models/gguf/gguf.h"

typedef struct tn_keys {
    tn_context *ctx;
    const tn_gguf *gguf;
    const char *arch; // prefix without the dot
    bool *read;       // NULL, or for each key of the file whether a function below has read it
} tn_keys;

enum { TN_KEY_REQUIRED = 1 };

typedef enum tn_key_kind {
    TN_KEY_TEXT,
    TN_KEY_TEXTS,
    TN_KEY_BOOL,
    TN_KEY_INT,
    TN_KEY_INTS,
    TN_KEY_BYTES,
    TN_KEY_LAYERS,
    TN_KEY_FLOAT,
    TN_KEY_F32S,
} tn_key_kind;

typedef struct tn_key_row {
    const char *name; // with a leading dot: of the architecture
    tn_key_kind kind;
    int64_t least, most;
} tn_key_row;

// Row i of the table, NULL past its end.
const tn_key_row *tn_key_row_at(size_t i);

// Whether the file describes a model (general.type), and every key with a name of its own fits its row: those
// of the file and of the tokenizer. Keys of the architecture are checked when they are read.
TN_MUST_USE tn_status tn_keys_check(tn_context *ctx, const tn_gguf *gguf);

// The same of an adapter; the key general.type must be there.
TN_MUST_USE tn_status tn_keys_check_adapter(tn_context *ctx, const tn_gguf *gguf);

// A key that is there, by its whole name, against its row: TN_ERR_FORMAT.
TN_MUST_USE tn_status tn_key_check(const tn_gguf *gguf, const char *key, const tn_key_row *row);

// Gives keys other values than the file has: n texts KEY=TYPE:VALUE, where TYPE is int, float, bool or str
// and a KEY that begins with a dot is one of the architecture. TN_ERR_ARG: a text that has another form, a
// key that the table does not have, a value that does not fit its row.
TN_MUST_USE tn_status tn_keys_override(tn_gguf *gguf, const char *const *texts, int32_t n);

// Notes which keys are read between these two, if some were overridden. A value that the caller gives and
// nothing reads would have no effect: tn_keys_unwatch refuses it with TN_ERR_ARG if `status` is TN_OK.
TN_MUST_USE tn_status tn_keys_watch(tn_keys *k);
TN_MUST_USE tn_status tn_keys_unwatch(tn_keys *k, tn_status status);
// Whether the caller has given the value.
bool tn_keys_is_given(const tn_keys *k, const char *name);

const tn_gguf_kv *tn_keys_find(const tn_keys *k, const char *name);
// `name` is that of a row without the leading dot. Absent and not required: *out is unchanged. A value that
// does not fit the row: TN_ERR_FORMAT naming key and value. A name without a row: TN_ERR_INTERNAL.
TN_MUST_USE tn_status tn_keys_i32(const tn_keys *k, const char *name, int32_t flags, int32_t *out);
// The same with a range that depends on other values of the file, within that of the row.
TN_MUST_USE tn_status tn_keys_i32_within(const tn_keys *k, const char *name, int64_t least, int64_t most,
                                         int32_t flags, int32_t *out);
// Value of a layer: a scalar for all, or element `layer` of an array with n_layers of them.
TN_MUST_USE tn_status tn_keys_layer_i32(const tn_keys *k, const char *name, int32_t layer, int32_t n_layers,
                                        int64_t least, int64_t most, int32_t flags, int32_t *out);
TN_MUST_USE tn_status tn_keys_f32(const tn_keys *k, const char *name, int32_t flags, float *out);
TN_MUST_USE tn_status tn_keys_bool(const tn_keys *k, const char *name, bool *out);
TN_MUST_USE tn_status tn_keys_str(const tn_keys *k, const char *name, tn_gguf_str *out);
// Arrays; *kv is NULL if the key is absent.
TN_MUST_USE tn_status tn_keys_texts(const tn_keys *k, const char *name, const tn_gguf_kv **kv);
TN_MUST_USE tn_status tn_keys_ints(const tn_keys *k, const char *name, const tn_gguf_kv **kv);

#endif
