// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The state that the decoder and its mixers share while they record a graph.
#ifndef TN_MODELS_BUILDER_H
#define TN_MODELS_BUILDER_H

#include "models/decoder.h"

#include <tenon/adapter.h>

typedef struct tn_builder {
    tn_graph *g;
    const tn_model *model;
    const tn_config *c;
    const tn_decoder_setup *setup;
    const tn_plan_key *key;
    tn_status status;     // first missing or misshapen tensor
    tn_tensor **recorded; // per weight of the model, NULL until used
    tn_tensor *tokens, *positions, *slots, *q_start, *kv_len, *block_table, *out_rows, *q_scale;
    tn_tensor *window_slots, *window_table; // instead of slots and block_table, of layers with their own
    tn_tensor *state_slots; // recurrent layers: I32 [S, 2]
    tn_tensor *head_ids; // latent attention: I32 [T, H], the number of each head
    tn_tensor *rope_factors; // or NULL
    tn_tensor **caches;      // K and V of each layer, with the rows of this step in them
    // per adapter of the session that this plan uses: F32 [T, 1], and of the rows of tn_builder_out_rows
    tn_tensor *adapter_scale[TN_SESSION_ADAPTERS], *adapter_scale_out[TN_SESSION_ADAPTERS];
} tn_builder;

// Weight "blk.<layer>.<name>" (layer < 0: "<name>") with that shape, outermost first; NULL if it is absent,
// and then an error unless optional. A dimension of 0 accepts any extent.
enum { TN_WEIGHT_OPTIONAL = 1 };
tn_tensor *tn_builder_weight(tn_builder *b, int32_t layer, const char *name, int32_t flags, int32_t n_dims,
                             int64_t d0, int64_t d1, int64_t d2);
// Keeps the failure and its message, also in the graph: later calls that miss an operand do not replace it.
void tn_builder_refuse(tn_builder *b, tn_status status);
// Index of a weight of the model, -1 if it is absent.
int32_t tn_builder_index(const tn_builder *b, int32_t layer, const char *name);
bool tn_builder_has(const tn_builder *b, int32_t layer, const char *name);
// Length of the rows of a weight and how many dimensions it has; 0 and unchanged if it is absent.
int64_t tn_builder_find(const tn_builder *b, int32_t layer, const char *name, int32_t *n_dims);

// "<name>.scale" [n]: factors by which the results of matmuls with NVFP4 weights, or with the weights of n
// experts, are multiplied, one per matrix. NULL: the file has none.
tn_tensor *tn_builder_scale(tn_builder *b, int32_t layer, const char *name, const tn_tensor *w, int64_t n);

// x w^T (+ bias): tensors "<name>.weight" [n_out, n_in] and, if present, "<name>.bias".
tn_tensor *tn_builder_linear(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, int64_t n_out,
                             int64_t n_in);
// The same for several matrices that multiply one x. What adapters add is recorded behind all of them, so
// that the fusion pass finds the matmuls of one input side by side, with adapters and without.
typedef struct tn_linear_row {
    const char *name;
    int64_t n_out;
} tn_linear_row;
void tn_builder_linears(tn_builder *b, int32_t layer, tn_tensor *x, int64_t n_in, int32_t n,
                        const tn_linear_row *rows, tn_tensor **y);
// The norm of the architecture with "<name>.weight" [width] and, if present, "<name>.bias".
tn_tensor *tn_builder_norm(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, int64_t width);
// Nodes recorded from now on belong to this layer (n_layers: the head): they are requested for the device of
// the layer.
void tn_builder_enter(tn_builder *b, int32_t layer);
// Where a weight was given to the host, nodes recorded from now on belong there, as those that read the
// weight do: what lies between two of them is not transferred back and forth. Returns what tn_graph_want
// takes to end that.
int32_t tn_builder_follow(tn_builder *b, int32_t layer, const char *weight);
// The device of a weight that was given to one, -1: it lies where its layer is.
static inline int32_t tn_builder_home(const tn_builder *b, int32_t weight)
{
    int8_t place = weight >= 0 ? b->model->weights[weight].place : TN_PLACE_LAYER;
    return !b->setup->places || place == TN_PLACE_LAYER ? -1 : place == TN_PLACE_HOST;
}
// The same for the cache of the layer and the nodes that read or write it.
void tn_builder_enter_cache(tn_builder *b, int32_t layer);
// The rows of x for which the caller requested results.
static inline tn_tensor *tn_builder_out_rows(tn_builder *b, tn_tensor *x)
{
    return b->key->n_outputs < b->key->n_tokens ? tn_op_get_rows(b->g, x, b->out_rows, 1.0f) : x;
}

// Whether the cache of the layer has the blocks of windows.
static inline bool tn_builder_windowed(const tn_builder *b, int32_t layer)
{
    return b->setup->n_window_blocks > 0 && b->setup->windowed[layer];
}

// Writes the rows x [T, KV, dim] of this step to the cache of the layer ('k' or 'v'). Rows of the cache may
// be longer, because they consist of whole blocks of its type.
tn_tensor *tn_builder_cache(tn_builder *b, int32_t layer, char which, tn_dtype type, tn_tensor *x);

// --- adapter/record.c ---
// What a weight multiplies: rows of x, with the experts that they go to; or token ids, whose rows of the
// weight are read and multiplied by `scale`.
typedef struct tn_product_input {
    tn_tensor *x, *ids; // ids NULL: no experts
    float scale;
} tn_product_input;
// The scales of the adapters that the plan uses.
void tn_builder_adapter_inputs(tn_builder *b);
// y, the product with a weight of the model, plus what the adapters add to it.
tn_tensor *tn_builder_adapt(tn_builder *b, int32_t weight, const tn_product_input *in, tn_tensor *y);

// Mixers: h [T, E] -> [T, E]. With `select` the result has only the rows of tn_builder_out_rows.
tn_tensor *tn_mixer_attention(tn_builder *b, int32_t layer, tn_tensor *h, bool select);
tn_tensor *tn_mixer_mla(tn_builder *b, int32_t layer, tn_tensor *h, bool select);
tn_tensor *tn_mixer_delta(tn_builder *b, int32_t layer, tn_tensor *h, bool select);
tn_tensor *tn_mixer_ffn(tn_builder *b, int32_t layer, tn_tensor *h);
// The router reads `route`, the experts read h.
tn_tensor *tn_mixer_moe(tn_builder *b, int32_t layer, tn_tensor *h, tn_tensor *route);

#endif
