// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The type of every tensor of a file that is quantised: that of the mix, unless the caller wants another one.
#ifndef TN_MODELS_QUANTIZE_TYPES_H
#define TN_MODELS_QUANTIZE_TYPES_H

#include "models/gguf/gguf.h"
#include "models/quantize/quantize_mix.h"

#include <tenon/file.h>

// Fills types[n tensors of the file]. TN_ERR_ARG: a rule of the caller is malformed, or no tensor matches it.
TN_MUST_USE tn_status tn_quantize_pick_types(tn_context *ctx, const tn_gguf *in,
                                             const tn_quantize_config *cfg, const tn_quant_mix *mix,
                                             const tn_quant_mix_model *model, tn_dtype *types);

// Whether part of `name` matches: * stands for any characters, ? for one. The first `length` characters are
// the pattern.
bool tn_quantize_name_matches(const char *pattern, size_t length, const char *name);

#endif
