// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts to vectors, and texts to scores of classes. For encoders (bert) and for decoders.
//
//     tn_embedder *e;
//     tn_embedder_create(model, NULL, &e);
//     tn_text_ids texts[2] = {{ids_a, n_a}, {ids_b, n_b}};  // from tn_tokenize
//     float *vectors = malloc(2 * sizeof(float) * (size_t)tn_embedder_width(e));
//     tn_embedder_run(e, texts, 2, vectors);
//     tn_embedder_destroy(&e);
//
// An embedder belongs to one thread at a time; only tn_embedder_cancel may come from any thread or from a
// signal handler.
#ifndef TENON_EMBED_H
#define TENON_EMBED_H

#include <tenon/model.h>
#include <tenon/precision.h>

TN_EXTERN_C_BEGIN

// How the rows of a text become one. Numbers as files write them.
enum {
    TN_POOLING_NONE, // they stay separate: a row per token
    TN_POOLING_MEAN, // average of all tokens
    TN_POOLING_CLS,  // first token
    TN_POOLING_LAST, // last token
    TN_POOLING_RANK, // scores of the classification head
    TN_POOLING_DEFAULT = -1
};

typedef struct tn_embedder_config {
    size_t struct_size;
    // TN_POOLING_*; TN_POOLING_DEFAULT (default): as the file says; if it says nothing: MEAN for models of
    // whole texts, LAST for others
    int32_t pooling;
    int32_t normalize;   // non-zero (default): vectors get length 1; scores stay as they are
    int32_t max_tokens;  // of a text; 0 (default): the trained context of the model
    // tokens that are evaluated at a time, 1..65536, and more for a longer text that must not be cut; 0
    // (default): a value for the device, as in sessions
    int32_t n_batch;
    // texts at a time, 1..256; 0 (default): as many as fill a batch with short texts, of 32 tokens in causal
    // models and of 8 in encoders, but at least 32
    int32_t n_seq;
    int32_t fusion;      // default 1
    tn_dtype cache_type_k, cache_type_v; // of models with a cache; default F16
    // TN_PRECISION_* (precision.h) of matmuls; default TN_PRECISION_auto. A device that does not have it:
    // TN_ERR_UNSUPPORTED with the first text
    int32_t precision;
    int32_t reserved;
} tn_embedder_config;
TN_API void tn_embedder_config_init(tn_embedder_config *cfg, size_t struct_size);
static inline void tn_embedder_config_default(tn_embedder_config *cfg)
{
    tn_embedder_config_init(cfg, sizeof *cfg);
}

typedef struct tn_embedder tn_embedder;
// cfg may be NULL. Memory for evaluating is allocated with the first text, and again with a longer one.
// TN_ERR_ARG; TN_ERR_UNSUPPORTED: RANK and the model has no classification head; TN_ERR_STATE (metadata-only
// model); TN_ERR_MEMORY.
TN_API TN_MUST_USE tn_status tn_embedder_create(tn_model *model, const tn_embedder_config *cfg,
                                                tn_embedder **out);
TN_API void tn_embedder_destroy(tn_embedder **embedder); // clears *embedder; NULL is fine
TN_API int32_t tn_embedder_pooling(const tn_embedder *embedder);    // TN_POOLING_NONE to TN_POOLING_RANK
// values per row: n_embd, or the number of classes
TN_API int32_t tn_embedder_width(const tn_embedder *embedder);
TN_API int32_t tn_embedder_max_tokens(const tn_embedder *embedder); // of a text
TN_API int32_t tn_embedder_n_batch(const tn_embedder *embedder);    // tokens at a time

typedef struct tn_text_ids {
    const int32_t *ids;
    int32_t n; // at least 1
} tn_text_ids;
// One row of tn_embedder_width floats per text, in their order; without pooling one per token. Several texts
// are evaluated at a time, without padding to the longest: every 4096 texts are dealt out to batches by their
// lengths. So many texts in one call are faster than one call each.
// TN_ERR_CONTEXT_FULL: a text is longer than max_tokens, named by its index; TN_ERR_ARG: an empty text, a
// token outside the vocabulary; TN_ERR_MEMORY; TN_ERR_CANCELLED. On failure `out` is undefined.
TN_API TN_MUST_USE tn_status tn_embedder_run(tn_embedder *embedder, const tn_text_ids *texts, int32_t n,
                                             float *out);
// on = 1: the running and every following run ends with TN_ERR_CANCELLED, until on = 0.
TN_API void tn_embedder_cancel(tn_embedder *embedder, int32_t on);

// Name of class i, NULL if the file names none.
TN_API const char *tn_model_class_label(const tn_model *model, int32_t i);

TN_EXTERN_C_END
#endif
