// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types on the device: the same bytes as in the file, fields sorted into planes.
#ifndef TN_CUDA_LAYOUT_H
#define TN_CUDA_LAYOUT_H

#include "backends/cuda/runtime/args.h"
#include "ops/step.h"

#include <stddef.h>

// Pieces and units of the type; false if the type is stored as in the file.
bool tn_cuda_layout_get(tn_dtype dtype, tn_cuda_pack_args *out);
// Where the planes of a weight, or of a part of one, start, and how long their rows; a part knows its whole from its buffer.
tn_cuda_weight tn_cuda_weight_planes(const tn_view *weight);
// The view is a weight that was written as such, or a part of one; types that are not split may lie anywhere.
bool tn_cuda_weight_holds(const tn_view *weight);
// Its planes start at multiples of 16 bytes, as those of whole weights do.
bool tn_cuda_weight_aligned(const tn_view *weight);

#endif
