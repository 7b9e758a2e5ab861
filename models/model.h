// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a model, for the models layer.
#ifndef TN_MODELS_MODEL_H
#define TN_MODELS_MODEL_H

#include "core/arena.h"
#include "core/device.h"
#include "models/config.h"
#include "models/text/tokenizer.h"

#include <tenon/model.h>

// A tensor as the graph sees it: type and shape of the file, but one-dimensional tensors are F32 always.
typedef struct tn_weight {
    const char *name;
    tn_dtype dtype;
    int32_t n_dims;
    int64_t ne[TN_MAX_DIMS]; // outermost first, n_dims entries
    tn_buffer host;          // the file, or converted; empty in metadata-only models
    tn_buffer buffer;        // the copy on a device with memory of its own; empty if it is not read there
    bool unused;             // others were made of it
} tn_weight;

struct tn_model {
    _Atomic int32_t refs;
    tn_context *ctx;
    tn_device *device;     // of the last device_layers layers and the head
    tn_device *host;       // of the layers before; the same as device if that has host memory
    int32_t device_layers; // 1 to n_layers
    int32_t n_batch;       // of sessions that leave it to the model
    bool no_fallback;
    tn_gguf *gguf;
    void *owned_file; // bytes of a model made in memory, else NULL
    tn_config config;
    tn_tokenizer *tokenizer; // NULL: none in the file
    tn_weight *weights;      // one per tensor of the file, in its order, then n_derived that were made of them
    int64_t n_weights, n_derived;
    tn_buffer *uploaded;     // n_uploaded: all copies on a device with memory of its own, else NULL
    int32_t n_uploaded;
    size_t device_size;      // bytes that it takes there
    tn_arena arena;          // converted vectors, strings
    const char *name;
    const char **labels; // of classes, config n_classes of them; NULL: the file has none
    int32_t n_labels;
    bool metadata_only, tokenizer_only;
    size_t owned_size;
};

// Takes the bytes (from tn_alloc) whatever the outcome.
TN_MUST_USE tn_status tn_model_open_memory(tn_context *ctx, void *take_data, size_t size, const char *name,
                                           const tn_model_config *cfg, tn_model **out);

tn_context *tn_model_context(const tn_model *m);
const tn_gguf *tn_model_gguf(const tn_model *m);
const tn_tokenizer *tn_model_tokenizer(const tn_model *m); // NULL if the file has none
const tn_config *tn_model_config_of(const tn_model *m);
// Describes the weights, finds how many layers the device takes, and copies theirs there.
TN_MUST_USE tn_status tn_weights_make(tn_model *m, const tn_model_config *cfg);
void tn_weights_destroy(tn_model *m);
// Makes the weights that the decoder wants in another form than the file has; at most tn_weights_derived_max, for which there
// is room behind those of the file.
TN_MUST_USE tn_status tn_weights_derive(tn_model *m);
int64_t tn_weights_derived_max(const tn_model *m);
TN_MUST_USE tn_status tn_weights_progress(tn_model *m, const tn_model_config *cfg, uint64_t done, uint64_t total);
// A weight as the device reads it.
TN_MUST_USE tn_status tn_weights_find(const tn_model *m, const tn_device *device, const char *name, const tn_buffer **out);
// Bytes that are read in host memory.
uint64_t tn_weights_host_size(const tn_model *m);
// Index of a weight by name, -1 if absent.
int32_t tn_model_find_weight(const tn_model *m, const char *name);

struct tn_session;
tn_model *tn_session_model(const struct tn_session *s);
// Whether the device has chosen the best tokens of the last eval: asking for them costs nothing.
bool tn_session_has_best(const struct tn_session *s);
// Rows of one sequence up to so many have the bits that each has in a pass of its own; 0: nothing is promised.
int32_t tn_session_rows_alike(const struct tn_session *s);
// Whether tn_session_cancel is on.
bool tn_session_cancelled(const struct tn_session *s);
// Whether tokens before a cut may have to be evaluated again.
bool tn_session_has_states(const struct tn_session *s);
// Makes the plans of passes over 2 to n tokens of a sequence with all their logits, so that steps need not.
TN_MUST_USE tn_status tn_session_prepare_rows(struct tn_session *s, int32_t n);

#endif
