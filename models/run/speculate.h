// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Speculative decoding: guessing the next tokens of a sequence (a draft), so that the model verifies several
// in one pass (Leviathan et al. 2023, Chen et al. 2023). Guesses come from the text itself (the tokens that
// followed an earlier occurrence of its last tokens: prompt lookup, Saxena 2023), or from a smaller model.
// They never change the text: the sampler of the generation chooses each token from the logits of the model,
// with the random numbers that it would draw anyway, and a guess only saves a pass if it is that token. So
// the text has exactly the distribution of the model, and for a seed it is the same text as without guesses.
//
// The number of guessed tokens depends on how often guesses were right before, never on measured time: the
// same seed makes the same passes.
#ifndef TN_MODELS_SPECULATE_H
#define TN_MODELS_SPECULATE_H

#include "core/context.h"

#include <tenon/session.h>

typedef struct tn_speculation tn_speculation;

// *out is NULL if cfg requests no speculation. TN_ERR_ARG, TN_ERR_MODEL (the vocabularies
// differ), TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_speculation_create(tn_session *session, const tn_generation_config *cfg,
                                            tn_speculation **out);
void tn_speculation_destroy(tn_speculation **s);
int32_t tn_speculation_max(const tn_speculation *s); // the most tokens of one guess

// The sequence to guess from: reset starts with another one, the others keep the first n tokens or append a
// chosen one.
void tn_speculation_reset(tn_speculation *s);
void tn_speculation_follow(tn_speculation *s, int32_t n);
void tn_speculation_push(tn_speculation *s, int32_t token);
// Guesses up to `capacity` tokens that follow; *n may be 0. Allocates nothing. Failures are those of the
// smaller model.
TN_MUST_USE tn_status tn_speculation_guess(tn_speculation *s, int32_t capacity, int32_t *out, int32_t *n);
// Reports the outcome of the last guess of n tokens: the first n_right were right, and the next was wrong if
// `wrong`.
void tn_speculation_learn(tn_speculation *s, int32_t n_right, bool wrong);

#endif
