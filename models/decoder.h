// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One forward pass of a model as a graph.
#ifndef TN_MODELS_DECODER_H
#define TN_MODELS_DECODER_H

#include "graph/graph.h"
#include "models/model.h"

#include <tenon/adapter.h>

// The numbers that change the shapes of a graph: the key of a plan.
typedef struct tn_plan_key {
    int32_t n_tokens, n_seq, n_outputs;
    int32_t max_blocks; // block ids per sequence in the table, if fewer than tn_decoder_setup has; 0: those
    uint32_t adapters;  // bit per adapter of tn_decoder_setup: whether any token has a scale other than 0
    uint32_t uneven;    // 1: some sequences are much longer than the mean (tn_attention_args.one_query)
    uint32_t apart;     // 1: pieces of prompts are small, with short prefixes (the same)
    uint32_t mixed;     // 1: pieces of prompts are beside many sequences with one token (the same)
} tn_plan_key;

// The parameters that all plans of a session share.
typedef struct tn_decoder_setup {
    int32_t n_blocks, block_size;  // of the cache
    int32_t n_window_blocks;       // of layers with a window; 0: they have the blocks of the others
    const bool *windowed;          // per layer: it has those blocks; NULL: none
    int32_t max_blocks;            // block ids per sequence in the table
    int32_t n_state_slots;         // of recurrent states
    int32_t n_ctx;                 // decides between long and short rope factors
    tn_dtype cache_type_k, cache_type_v;
    // The first layers, with the embedding before them, are requested for device 1 of the plan, all else for
    // device 0.
    int32_t n_host_layers;
    bool places; // there are two devices, and weights may be given to one of them (tn_weight.place)
    // per layer: cache and attention belong to device 1 too; NULL: to the device of the layer
    const bool *host_states;
    int32_t result; // TN_RESULT_* of session.h
    tn_adapter *const *adapters; // n_adapters
    int32_t n_adapters;
    bool *pairs_used; // of the first adapter: the pairs that were recorded; NULL: nobody asks
    // the device also computes the most probable tokens, so that logits need not be copied to the host
    bool best;
} tn_decoder_setup;

// Name of the matrices of adapter I in a graph: "adapter.I." and that of their tensor.
#define TN_ADAPTER_PREFIX "adapter."

// Models of whole texts (encoders) have no cache: K and V of the pass are read in place, as blocks of one
// token, so the block table counts tokens (block_size 1, max_blocks the longest text), and slots are absent.
// Models with segments have an input token_types [T].
//
// Layers that keep no more than their window have blocks of their own, and inputs window_slots and
// window_table for them.
//
// Inputs: tokens [T], positions [T], slots [T], q_start [S+1], kv_len [S], block_table [S, max_blocks],
// out_rows [n_outputs] (I32); for each adapter in use adapter_scale.I [T, 1] (F32); models with a query
// temperature: q_scale [T, 1, 1] (F32); with latent attention: head_ids [T, H] (I32), in each row 0 .. H-1;
// with recurrent layers: state_slots [S, 2] (I32), the slots that are read and written (negative: the
// beginning of a sequence). Weights have their names of the file. States are "cache_k.N" and "cache_v.N"
// [n_blocks or n_window_blocks, KV, block, D]; latent attention has no "cache_v.N", because its values are a
// part of its keys.
// Recurrent layers have "state_conv.N" [slots, C - 1, channels] and "state_delta.N" [slots, heads, S, S]
// (F32) instead of both. Outputs, if there are any rows: logits [n_outputs, n_vocab]; with `best`: best I32
// [n_outputs, 1] and the natural logarithm of its probability, best_logprob F32 [n_outputs, 1]. Other results
// than logits: hidden [n_outputs, n_embd] or scores [n_outputs, classes].
TN_MUST_USE tn_status tn_decoder_record(const tn_model *model, const tn_decoder_setup *setup,
                                        const tn_plan_key *key, tn_graph **out);
// Whether a session of n_ctx tokens rotates keys with the factors of long contexts. Its cache depends on
// that.
bool tn_decoder_long_rope(const tn_config *c, int32_t n_ctx);
// Records a small graph and discards it: that checks whether tensors are complete and fit each other. With an
// adapter (or NULL) used[i] becomes true for each of its pairs that changes a product.
TN_MUST_USE tn_status tn_decoder_check(const tn_model *model, tn_adapter *adapter, bool *used);

#endif
