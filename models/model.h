// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a model, for the models layer.
#ifndef TN_MODELS_MODEL_H
#define TN_MODELS_MODEL_H

#include "core/memory/arena.h"
#include "core/device.h"
#include "models/config.h"
#include "models/text/tokenizer/tokenizer.h"
#include "ops/ops.h"

#include <tenon/model.h>

enum { TN_WEIGHT_NAME = 96 }; // bytes of the longest name that is looked up, with its end

// Where a weight lies: as its layer does, in host memory, or on the device of the model. Nodes that read it
// run there.
enum { TN_PLACE_LAYER, TN_PLACE_HOST, TN_PLACE_DEVICE };

// A tensor as the graph sees it: type and shape of the file, but one-dimensional tensors are F32 always.
typedef struct tn_weight {
    const char *name;
    tn_dtype dtype;
    int32_t n_dims;
    int64_t ne[TN_MAX_DIMS]; // outermost first, n_dims entries
    tn_buffer host;          // the file, or converted; empty in metadata-only models
    tn_buffer buffer;        // the copy on a device with memory of its own; empty if it is not read there
    bool unused;             // never read: other weights were derived from it
    int8_t place;            // TN_PLACE_*
    bool integers;           // stored as whole numbers, which nothing multiplies: refused where it is read
} tn_weight;

struct tn_model {
    _Atomic int32_t refs;
    tn_context *ctx;
    tn_device *device;     // of the last device_layers layers and the head
    tn_device *host;       // of the layers before; the same as device if that has host memory
    int32_t device_layers; // 1 to n_layers
    int32_t n_batch;       // default of sessions
    bool no_fallback;
    tn_gguf *gguf;
    void *owned_file; // bytes of a model made in memory, else NULL
    tn_config config;
    tn_tokenizer *tokenizer; // NULL: none in the file
    // one per tensor of the file, in its order, then n_derived that were computed from them
    tn_weight *weights;
    int64_t n_weights, n_derived;
    tn_buffer *uploaded;     // n_uploaded: all copies on a device with memory of its own, else NULL
    int32_t n_uploaded;
    size_t device_size;      // bytes of weights on that device
    tn_arena arena;          // converted vectors, strings
    const char *name;
    const char **labels; // names of the n_labels classes; NULL: the file has none
    int32_t n_labels;
    bool metadata_only, tokenizer_only;
    bool reads_map; // some layers read weights in the mapped file
    size_t owned_size;
};

// Owns the bytes (from tn_alloc) from the call on, also if it fails.
TN_MUST_USE tn_status tn_model_open_memory(tn_context *ctx, void *take_data, size_t size, const char *name,
                                           const tn_model_config *cfg, tn_model **out);

tn_context *tn_model_context(const tn_model *m);
const tn_gguf *tn_model_gguf(const tn_model *m);
const tn_tokenizer *tn_model_tokenizer(const tn_model *m); // NULL if the file has none
// --- weights/weights.c ---
// The weight as a tensor of a file describes it, without its memory.
tn_weight tn_weight_of(const tn_gguf_tensor *t);
// Index of a weight by name, -1 if absent.
int32_t tn_model_find_weight(const tn_model *m, const char *name);
// A weight as the device reads it.
TN_MUST_USE tn_status tn_weights_find(const tn_model *m, const tn_device *device, const char *name,
                                      const tn_buffer **out);
void tn_weights_destroy(tn_model *m);
tn_view tn_weight_view(const tn_weight *w); // contiguous
size_t tn_weight_size(const tn_weight *w);  // bytes
// TN_OK if the values can be multiplied: floats and blocks; else TN_ERR_MODEL naming the tensor.
TN_MUST_USE tn_status tn_weight_check_type(tn_context *ctx, const tn_weight *w);
size_t tn_weight_device_size(const tn_weight *w); // with what alignment adds on a device
// Whether the device reads the weight when the last n layers are there.
bool tn_weights_on_device(const tn_model *m, const tn_weight *w, int32_t n);
// Reads the places that a configuration gives to weights.
TN_MUST_USE tn_status tn_weights_place(tn_model *m, const tn_model_config *cfg);
// Whether it is a matrix of experts that tokens are routed to.
bool tn_weight_is_expert(const tn_weight *w);
// Bytes of weights in host memory although the last n layers, theirs among them, are on the device.
uint64_t tn_weights_placed_size(const tn_model *m, int32_t n);
// Bytes of all weights that the device reads when the last n layers are there.
uint64_t tn_weights_device_size(const tn_model *m, int32_t n);
// Whether layers on the host read the weight.
bool tn_weights_in_host_layers(const tn_model *m, const tn_weight *w);
// Bytes that are read in host memory.
uint64_t tn_weights_host_size(const tn_model *m);

// --- weights/weights_derive.c ---
// Makes the weights that the decoder needs in another form than the file has them: at most
// tn_weights_derived_max, for which the array of weights has space behind those of the file.
TN_MUST_USE tn_status tn_weights_derive(tn_model *m);
int64_t tn_weights_derived_max(const tn_model *m);

// --- weights/weights_load.c ---
// Fills m->weights with the tensors of the file and those derived from them.
TN_MUST_USE tn_status tn_weights_describe(tn_model *m);
// Reads the weights of the layers on the host into memory and copies the others to the device, with progress.
TN_MUST_USE tn_status tn_weights_load(tn_model *m, const tn_model_config *cfg);

// --- run/fit.c ---
// Decides how many of the last layers lie on the device, and how many tokens a session evaluates at once.
TN_MUST_USE tn_status tn_model_fit(tn_model *m, const tn_model_config *cfg);

// What a fit found, and the words for it: how many of the layers are on the device and why not all.
typedef struct tn_fit_facts {
    const char *device, *host; // names
    int32_t n_device, n_layers;
    uint64_t one, all;        // bytes that the last layer takes with a session, and that all layers take
    uint64_t free, margin;    // bytes that are free on the device, and that are never used
    uint64_t without_experts; // bytes of all layers with all experts in host memory; 0: there are no experts
} tn_fit_facts;
void tn_fit_words(const tn_fit_facts *f, char *text, size_t size);

// --- model.c ---
// Name of the output of a TN_RESULT_*, and values per row; 0: the model has none of that kind.
const char *tn_result_name(int32_t result);
int32_t tn_result_width(const tn_model *model, int32_t result);

struct tn_session;
tn_model *tn_session_model(const struct tn_session *s);
// Whether the device computed the argmax tokens of the last eval: reading them then costs nothing.
bool tn_session_has_best(const struct tn_session *s);
// With at most this many rows of one sequence in a pass, each row has the same bits as in a pass of its own;
// 0: no promise.
int32_t tn_session_rows_alike(const struct tn_session *s);
int32_t tn_session_n_seq(const struct tn_session *s);
// Whether the cache has the blocks for n more tokens of a sequence; reuse: for n tokens as its whole
// contents, beginning with the prefix that tn_session_reuse finds without the last token.
bool tn_session_fits(const struct tn_session *s, int32_t seq, const int32_t *tokens, int32_t n, bool reuse);
// Whether tn_session_cancel is on.
bool tn_session_cancelled(const struct tn_session *s);
// Whether the model has recurrent states: tokens before a cut may then have to be evaluated again.
bool tn_session_has_states(const struct tn_session *s);
// tn_session_logits with what went wrong. TN_ERR_STATE, without a message: there is no such row.
TN_MUST_USE tn_status tn_session_row(struct tn_session *s, int32_t row, const float **out);
// Makes the plans of passes over 2 to n tokens of a sequence with all their logits now, so that no step has
// to.
TN_MUST_USE tn_status tn_session_prepare_rows(struct tn_session *s, int32_t n);

#endif
