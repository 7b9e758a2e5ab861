// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys with the architecture's prefix, range-checked.
#ifndef TN_MODELS_KEYS_H
#define TN_MODELS_KEYS_H

#include "models/gguf/gguf.h"

typedef struct tn_keys {
    tn_context *ctx;
    const tn_gguf *gguf;
    const char *arch; // prefix without the dot
} tn_keys;

enum { TN_KEY_REQUIRED = 1 };

const tn_gguf_kv *tn_keys_find(const tn_keys *k, const char *name);
// Absent and not required: *out is unchanged. Outside [min, max]: TN_ERR_FORMAT naming key and value.
TN_MUST_USE tn_status tn_keys_i32(const tn_keys *k, const char *name, int64_t min, int64_t max, int32_t flags,
                                  int32_t *out);
// Value of a layer: a scalar for all, or element `layer` of an array with n_layers of them.
TN_MUST_USE tn_status tn_keys_layer_i32(const tn_keys *k, const char *name, int32_t layer, int32_t n_layers,
                                        int64_t min, int64_t max, int32_t flags, int32_t *out);
TN_MUST_USE tn_status tn_keys_f32(const tn_keys *k, const char *name, int32_t flags, float *out); // finite
TN_MUST_USE tn_status tn_keys_bool(const tn_keys *k, const char *name, bool *out);
TN_MUST_USE tn_status tn_keys_str(const tn_keys *k, const char *name, tn_gguf_str *out);

#endif
