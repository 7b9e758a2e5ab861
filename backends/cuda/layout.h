// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types on the device: the same bytes as in the file, fields sorted into planes.
#ifndef TN_CUDA_LAYOUT_H
#define TN_CUDA_LAYOUT_H

#include "backends/cuda/args.h"
#include "ops/step.h"

#include <stddef.h>

// Pieces and units of the type; false if the type is stored as in the file.
bool tn_cuda_layout_get(tn_dtype dtype, tn_cuda_pack_args *out);
// Where the planes of a whole weight at `data` are, and how long their rows.
tn_cuda_weight tn_cuda_weight_planes(const tn_view *weight);

#endif
