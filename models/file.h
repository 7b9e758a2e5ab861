// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers that reading and quantising files share.
#ifndef TN_MODELS_FILE_H
#define TN_MODELS_FILE_H

#include "models/gguf/gguf.h"

// TN_ERR_ARG if `path` is one of the files that `gguf` was opened from: writing there would replace it.
TN_MUST_USE tn_status tn_refuse_own_file(const tn_gguf *gguf, const char *path);
// Elements of a tensor.
int64_t tn_gguf_tensor_elems(const tn_gguf_tensor *t);

#endif
