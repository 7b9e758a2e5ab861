// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// LoRA adapters (Hu et al. 2021): files with two small matrices A and B for some of the weights W of a model.
// A matmul with such a weight becomes  W x + scale * alpha / rank * B (A x).  The weights of the model stay
// as they are, so several adapters can be used at once, and each sequence can have scales of its own.
//
//     tn_adapter *adapter;
//     if (tn_adapter_open(model, "style.gguf", &adapter) != TN_OK) ...
//     tn_adapter_use use = {.struct_size = sizeof use, .adapter = adapter, .scale = 1.0f};
//     tn_session_config cfg;
//     tn_session_config_default(&cfg);
//     cfg.adapters = &use, cfg.n_adapters = 1;
//     tn_session_create(model, &cfg, &session);
//     tn_adapter_unref(&adapter); // the session has a reference of its own
//
// An adapter is immutable, counted by references, and may be used by any thread.
#ifndef TENON_ADAPTER_H
#define TENON_ADAPTER_H

#include <tenon/session.h>

TN_EXTERN_C_BEGIN

typedef struct tn_adapter tn_adapter;

// Opens a GGUF file of general.type "adapter" and adapter.type "lora" for this model, which it keeps a
// reference to. Every tensor is checked against the weight that it changes; on a device with memory of its
// own the matrices are copied to where that weight is. The adapter starts with one reference.
// TN_ERR_IO, TN_ERR_FORMAT (broken file), TN_ERR_MODEL (no adapter, one for another architecture, or tensors
// that do not fit those of the model), TN_ERR_UNSUPPORTED (it changes a weight that is not multiplied as a
// matrix, or is of a kind that is not known), TN_ERR_MEMORY, TN_ERR_DEVICE, TN_ERR_STATE (the model was
// opened for its tokenizer only).
TN_API TN_MUST_USE tn_status tn_adapter_open(tn_model *model, const char *path, tn_adapter **out);
TN_API tn_adapter *tn_adapter_ref(tn_adapter *adapter);
TN_API void tn_adapter_unref(tn_adapter **adapter); // clears *adapter; NULL is fine

typedef struct tn_adapter_info {
    size_t struct_size; // set by the caller
    const char *name;   // general.name, "" if absent; valid as long as the adapter
    int32_t n_weights;  // weights of the model that it changes
    int32_t rank;       // the largest of its ranks
    float alpha;        // 0: scales are not divided by the rank
    int32_t reserved;
    uint64_t file_size;
    uint64_t device_size; // bytes in the memory of the model's device, 0 if that is host memory
} tn_adapter_info;
TN_API tn_status tn_adapter_info_get(const tn_adapter *adapter, tn_adapter_info *out);

// An adapter of a session (tn_session_config.adapters).
typedef struct tn_adapter_use {
    size_t struct_size; // sizeof(tn_adapter_use)
    tn_adapter *adapter;
    // of all sequences at first. Finite; 0: the adapter changes nothing, and the results have the bits of a
    // session without it
    float scale;
    int32_t reserved;
} tn_adapter_use;
enum { TN_SESSION_ADAPTERS = 16 }; // of one session, at most

// The scale of adapter i (in the order of the configuration) for one sequence, from its next token on.
// TN_ERR_STATE: the sequence holds tokens, whose keys and values were computed with another scale; empty it
// by tn_session_truncate first. TN_ERR_ARG.
TN_API TN_MUST_USE tn_status tn_session_adapter_scale(tn_session *session, int32_t seq, int32_t i,
                                                      float scale);

TN_EXTERN_C_END
#endif
