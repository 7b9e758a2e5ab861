// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Mixes: which type each tensor of a model gets when the model is quantised ("Q4_K_M"). Pure rules over
// names, shapes and some numbers of the model; two rules count tensors, so the order of calls matters.
//
//     tn_quant_mix_state state = tn_quant_mix_begin(tn_quant_mix_find("q4_k_m"), &model);
//     for each tensor in the order of tn_quant_mix_compare
//         type = tn_quant_mix_pick(&state, name, source_type, n_dims, ne);
#ifndef TN_MODELS_QUANTIZE_MIX_H
#define TN_MODELS_QUANTIZE_MIX_H

#include <stdbool.h>
#include <tenon/base.h>

typedef struct tn_quant_mix tn_quant_mix;

// What the rules look at. n_head_kv is that of the first layer with attention, if layers differ.
typedef struct tn_quant_mix_model {
    const char *arch;
    int64_t n_layer, n_head, n_head_kv;
    int64_t n_expert; // 0 or 1: no mixture of experts
    int64_t n_attn_v; // tensors for which tn_quant_mix_is_attn_v holds
    bool has_output;  // "output.weight" exists; else the token embedding serves as output
    bool has_imatrix; // importance weights are at hand
} tn_quant_mix_model;

typedef struct tn_quant_mix_state {
    const tn_quant_mix *mix;
    const tn_quant_mix_model *model; // borrowed
    int64_t i_attn_v, i_ffn_down;    // such tensors picked so far
} tn_quant_mix_state;

// By name, case-insensitive, or by the file's general.file_type; NULL if unknown.
const tn_quant_mix *tn_quant_mix_find(const char *name);
const tn_quant_mix *tn_quant_mix_by_file_type(int64_t file_type);
const char *tn_quant_mix_name(const tn_quant_mix *mix);
// The value of general.file_type for files of this mix.
uint32_t tn_quant_mix_file_type(const tn_quant_mix *mix);
// Writes all names, separated by ", ", for messages; truncates to size, always terminated. Returns the
// length of the whole text.
size_t tn_quant_mix_list(char *text, size_t size);

// Whether the tensor belongs to the class that n_attn_v counts.
bool tn_quant_mix_is_attn_v(const char *name);
// Order in which tensors must be picked: layer number (tensors outside of layers first), then name.
int tn_quant_mix_compare(const char *a, const char *b);
// Whether the tensor keeps its type in every mix. ne: outermost first.
bool tn_quant_mix_keeps(const char *name, int32_t n_dims, const int64_t *ne);

// `type`, or what takes its place in rows of n elements that are no multiple of its block.
tn_dtype tn_quant_mix_fit(tn_dtype type, int64_t n);

tn_quant_mix_state tn_quant_mix_begin(const tn_quant_mix *mix, const tn_quant_mix_model *model);
// The type for one tensor: `source` if it is never quantised; falls back to a smaller block where rows do
// not fit the rule's type. Never fails.
tn_dtype tn_quant_mix_pick(tn_quant_mix_state *state, const char *name, tn_dtype source, int32_t n_dims,
                           const int64_t *ne);

#endif
