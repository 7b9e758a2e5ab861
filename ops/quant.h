// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of every data type to and from f32: the definition that kernels are checked against.
#ifndef TN_OPS_QUANT_H
#define TN_OPS_QUANT_H

#include <stdbool.h>
#include <tenon/base.h>

// x: n elements (n a multiple of the type's block), y: n floats.
typedef void (*tn_dequant_fn)(const void *x, float *y, int64_t n);
// x: n floats -> y: packed. `weights` NULL, or n importance values (mean squared activations).
typedef void (*tn_quant_fn)(const float *x, void *y, int64_t n, const float *weights);

typedef struct tn_quant_info {
    tn_dequant_fn to_f32;
    tn_quant_fn from_f32; // NULL: this type cannot be written
} tn_quant_info;

// Row converters of a type; to_f32 is NULL for types that have no float meaning here yet.
const tn_quant_info *tn_quant_info_get(tn_dtype type);

// Whether all scales and values of a packed row are finite and valid.
bool tn_quant_row_valid(tn_dtype type, const void *x, int64_t n);

#endif
