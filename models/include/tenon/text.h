// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back with a model's tokenizer, and chat turns to prompts.
#ifndef TENON_TEXT_H
#define TENON_TEXT_H

#include <tenon/model.h>

TN_EXTERN_C_BEGIN

enum {
    TN_TEXT_ADD_SPECIAL = 1,   // add BOS/EOS as the model wants
    TN_TEXT_PARSE_SPECIAL = 2, // special tokens in the text become their ids
    TN_TEXT_PRINT_SPECIAL = 4, // detokenize: print special tokens by name
    TN_TEXT_REMOVE_SPECIAL = 8 // detokenize: drop a leading BOS and trailing EOS
};

// Any bytes to ids; *ids is freed by tn_tokens_free. TN_ERR_MODEL: the model has no tokenizer.
TN_API TN_MUST_USE tn_status tn_tokenize(const tn_model *model, const char *text, size_t n, int32_t flags,
                                         int32_t **ids, size_t *n_ids);
TN_API void tn_tokens_free(const tn_model *model, int32_t *ids);
// Ids to bytes; *text is terminated, *n is its length, freed by tn_text_free (graph.h).
// TN_ERR_ARG: an id outside the vocabulary.
TN_API TN_MUST_USE tn_status tn_detokenize(const tn_model *model, const int32_t *ids, size_t n_ids, int32_t flags,
                                           char **text, size_t *n);

typedef struct tn_turn {
    const char *role; // "system", "user" or "assistant"
    const char *content;
} tn_turn;
// The prompt of a conversation by the model's chat template, open for the assistant's answer. What the
// turns say never becomes special tokens. TN_ERR_UNSUPPORTED: a template of unknown shape.
TN_API TN_MUST_USE tn_status tn_chat_tokenize(const tn_model *model, const tn_turn *turns, size_t n_turns,
                                              int32_t **ids, size_t *n_ids);
// Name of the shape ("chatml"), NULL if the model has none that is known or no tokenizer.
TN_API const char *tn_chat_shape_name(const tn_model *model);
// Whether the file itself has a chat template.
TN_API int32_t tn_model_has_chat_template(const tn_model *model);
// Whether generation ends with this token.
TN_API int32_t tn_token_is_end(const tn_model *model, int32_t id);

TN_EXTERN_C_END
#endif
