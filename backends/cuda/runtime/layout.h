// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types on the device have the same bytes as in the file, but the fields of their blocks are
// sorted into planes (../../planes.def): all scales one after another, all 4-bit integers one after another,
// and so on.
#ifndef TN_CUDA_LAYOUT_H
#define TN_CUDA_LAYOUT_H

#include "backends/cuda/runtime/args.h"
#include "ops/step.h"

#include <stddef.h>

// The fields of a block and the planes of the type; false if the type is stored as in the file.
bool tn_cuda_layout_get(tn_dtype dtype, tn_cuda_pack_args *out);
// Where the planes of a weight, or of a part of one, start, and how long their rows are. The buffer of a part
// says where the whole weight lies.
tn_cuda_weight tn_cuda_weight_planes(const tn_view *weight);
// The view is a weight that was written as such, or a part of one; types that are not split may lie anywhere.
bool tn_cuda_weight_holds(const tn_view *weight);
// Its planes start at multiples of 16 bytes, as those of whole weights do.
bool tn_cuda_weight_aligned(const tn_view *weight);

#endif
