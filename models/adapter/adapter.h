// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a LoRA adapter.
#ifndef TN_MODELS_ADAPTER_H
#define TN_MODELS_ADAPTER_H

#include "models/model.h"

#include <tenon/adapter.h>

// The two matrices of a weight W [n_out, n_in] of the model, or of its experts [n, n_out, n_in]:
//   a [rank, n_in], b [n_out, rank]          with experts  a [n, rank, n_in], b [n, n_out, rank]
//   a [n_vocab, rank], b [n_embd, rank]      of the token embedding: A is read by rows, as the embedding is
typedef struct tn_adapter_pair {
    int32_t weight; // of the model: its index
    int32_t a, b;   // index into `weights`, -1: not in the file
    int32_t rank;
    int32_t n_experts; // 1: a matrix
    bool rows;         // of the token embedding
} tn_adapter_pair;

struct tn_adapter {
    _Atomic int32_t refs;
    tn_context *ctx;
    tn_model *model;
    tn_gguf *gguf;
    const char *name;
    float alpha;
    tn_weight *weights; // one per tensor of the file, in its order
    tn_adapter_pair *pairs;
    int32_t n_pairs, rank; // rank: the largest
    int32_t *pair_of;      // per weight of the model: its pair, -1: none
    tn_buffer *uploaded;   // copies on a device with memory of its own
    int32_t n_uploaded;
    size_t device_size, host_size; // bytes of the matrices that are read there
    tn_arena arena;
};

// The same from bytes that stay as they are until the adapter is gone.
TN_MUST_USE tn_status tn_adapter_open_memory(tn_model *model, const void *data, size_t size, const char *name,
                                             tn_adapter **out);
// The pair of a weight of the model; NULL: the adapter does not change it.
static inline const tn_adapter_pair *tn_adapter_pair_get(const tn_adapter *a, int32_t weight)
{
    return a->pair_of[weight] < 0 ? NULL : &a->pairs[a->pair_of[weight]];
}
// B (A x) is multiplied by the scale of the sequence and by alpha / rank. The first function is that of the
// largest rank, which is part of the numbers that a session gives to a plan; the second one is the rest for
// pairs of another rank.
static inline float tn_adapter_factor(const tn_adapter *a)
{
    return a->alpha != 0.0f ? a->alpha / (float)a->rank : 1.0f;
}
static inline float tn_adapter_rest(const tn_adapter *a, const tn_adapter_pair *pair)
{
    return a->alpha != 0.0f ? (float)a->rank / (float)pair->rank : 1.0f;
}
// A matrix as the device reads it, by the name of its tensor.
TN_MUST_USE tn_status tn_adapter_find(const tn_adapter *a, const tn_device *device, const char *name,
                                      const tn_buffer **out);

#endif
