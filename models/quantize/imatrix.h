// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Importance matrices: for each column that a weight matrix reads, the mean square of what it was multiplied
// with while another tool ran the model over a text. Both forms that exist are read: GGUF (general.type =
// imatrix, tensors "<name>.in_sum2" and "<name>.counts"), and the older list of records (count, then name,
// calls, values).
#ifndef TN_MODELS_IMATRIX_H
#define TN_MODELS_IMATRIX_H

#include "models/gguf/gguf.h"

#include <stdbool.h>

typedef struct tn_imatrix tn_imatrix;

// TN_ERR_IO: cannot be read; TN_ERR_FORMAT: neither form, or damaged.
TN_MUST_USE tn_status tn_imatrix_open(tn_context *ctx, const char *path, tn_imatrix **out);
void tn_imatrix_close(tn_imatrix **im); // NULL is fine

bool tn_imatrix_has(const tn_imatrix *im, const char *tensor);
// Weights of a tensor that the file has: out [n_matrices, n_cols], all positive. A matrix without
// activations, as that of an expert to which no token was routed, gets ones. TN_ERR_FORMAT: other sizes, or
// values that are no squares.
TN_MUST_USE tn_status tn_imatrix_read(const tn_imatrix *im, const char *tensor, int64_t n_matrices,
                                      int64_t n_cols, float *out);

#endif
