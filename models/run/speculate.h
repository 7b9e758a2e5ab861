// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Guessing the next tokens of a sequence, so that the model checks several in one pass (Leviathan et al.
// 2023, Chen et al. 2023). Guesses come from the text itself (what followed its last few tokens before:
// prompt lookup, Saxena 2023), or from a smaller model. They decide nothing: the sampler of the generation
// chooses each token from the logits of the model, with the random numbers that it would draw anyway, and a
// guess only saves the pass where it is that token. So the text has exactly the model's distribution, and for
// a seed it is the same text as without guesses.
//
// How many tokens are guessed follows from how often the text foretold them or guesses were right, never from
// time: the same seed makes the same passes.
#ifndef TN_MODELS_SPECULATE_H
#define TN_MODELS_SPECULATE_H

#include "core/context.h"

#include <tenon/session.h>

typedef struct tn_speculation tn_speculation;

// NULL in *out where cfg asks for none. TN_ERR_ARG, TN_ERR_MODEL (the vocabularies
// differ), TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_speculation_create(tn_session *session, const tn_generation_config *cfg,
                                            tn_speculation **out);
void tn_speculation_destroy(tn_speculation **s);
int32_t tn_speculation_max(const tn_speculation *s); // most tokens of a guess

// The sequence to guess from: another one than before; the first n tokens of what the session holds; one more
// that was chosen.
void tn_speculation_reset(tn_speculation *s);
void tn_speculation_follow(tn_speculation *s, int32_t n);
void tn_speculation_push(tn_speculation *s, int32_t token);
// Guesses up to `room` tokens that follow; *n may be 0. Allocates nothing. Failures are those of the smaller
// model.
TN_MUST_USE tn_status tn_speculation_guess(tn_speculation *s, int32_t room, int32_t *out, int32_t *n);
// How the last guess of n tokens ended: the first n_right were right, and the next was wrong if `wrong`.
void tn_speculation_learn(tn_speculation *s, int32_t n_right, bool wrong);

#endif
