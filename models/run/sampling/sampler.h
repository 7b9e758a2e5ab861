// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// From logits to a token: logit bias, then the stages in the order of the user, then a draw. Choosing and
// accepting are two calls, and accepted tokens can be removed again:
// from any row; changes only the state of the random numbers
//     tn_sampler_choose(s, logits, &token, &logprob);
//     tn_sampler_push(s, token);                      // the sequence continues with it
//     tn_sampler_set_length(s, n);                    // the sequence has n tokens again
// A sampler belongs to one thread at a time and allocates nothing after its creation.
#ifndef TN_MODELS_SAMPLER_H
#define TN_MODELS_SAMPLER_H

#include "core/context.h"
#include "models/text/grammar/grammar.h"
#include "ops/sample.h"

#include <tenon/session.h>

typedef struct tn_sampler tn_sampler;

// Allowed values of one field of a parameter struct. NaN is in no range.
typedef struct tn_param_range {
    const char *name;
    size_t offset;
    bool is_int; // int32_t, else float
    double min, max;
} tn_param_range;
// TN_ERR_ARG naming the first field out of range: "sampling: top_p is 2, allowed 0..1".
TN_MUST_USE tn_status tn_params_check(tn_context *ctx, const char *what, const void *params,
                                      const tn_param_range *ranges, size_t n);
// All fields of tn_sampling, the bias list included. top_k above n_vocab is allowed and means off.
TN_MUST_USE tn_status tn_sampling_check(tn_context *ctx, const tn_sampling *sampling, int32_t n_vocab);

// The texts that end repetitions for DRY: those given, or the default ones.
const char *const *tn_sampling_breakers(const tn_sampling *c, int32_t *n);

// n_history: tokens that the list for the penalties can hold (the longest sequence). Copies what `sampling`
// points at. TN_ERR_ARG, TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_sampler_create(tn_context *ctx, const tn_sampling *sampling, int32_t n_vocab,
                                        int32_t n_history, tn_sampler **out);
void tn_sampler_destroy(tn_sampler **sampler);
// DRY searches its breakers in the texts of tokens; without a tokenizer there are none. Tokens that the file
// suppresses are never chosen from now on. Call it at most once for each sampler. TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_sampler_set_tokenizer(tn_sampler *s, const tn_tokenizer *tokenizer);

// Chooses from n_vocab logits; does not push the token. NaN and -inf are never chosen; +inf counts as the
// largest float. *logprob: natural log of the token's probability under the given logits.
// *token is -1 if a grammar or exclusions leave no token at all.
// TN_ERR_INTERNAL: no logit is above -inf. TN_ERR_ARG: the bias list excludes every token.
// TN_ERR_UNSUPPORTED: the grammar is too ambiguous for its tables.
TN_MUST_USE tn_status tn_sampler_choose(tn_sampler *s, const float *logits, int32_t *token, float *logprob);
// The tn_sampling.n_logprobs most probable tokens of the last choice, best first, lower id first among
// equals.
const tn_logprob *tn_sampler_logprobs(const tn_sampler *s, int32_t *n);

// Generated text has to follow a grammar. The matcher is borrowed; it advances and returns together with the
// list.
void tn_sampler_set_matcher(tn_sampler *s, tn_matcher *matcher);
// generated: tokens pushed from now on are generated text, where the grammar begins; else they are the
// prompt.
void tn_sampler_mark_text(tn_sampler *s, bool generated);
// Reserves memory for n exclusions. TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_sampler_reserve_excluded(tn_sampler *s, int32_t n);
// The token is not chosen at the present length. The exclusion ends when the list becomes shorter than that.
void tn_sampler_exclude(tn_sampler *s, int32_t token);

// Whether it always chooses the most probable token of the unchanged logits, and reports nothing else: then
// the argmax of the device is enough, and logits are not needed.
bool tn_sampler_is_greedy(const tn_sampler *s);

// --- choices of a device (sampler_device.c) ---
//     if (tn_sampler_fits_device(s)) ...             // once
//     tn_sampler_describe(s, &row, edits, most);     // for each choice; draws its random number
//     tn_sampler_mask(s, words);                     // if tn_sampler_masks(s)
//     tn_sampler_chosen(s, &result, &token, &logprob); // or tn_sampler_choose, with the same random number
// Whether the device can choose what tn_sampler_choose does.
bool tn_sampler_fits_device(const tn_sampler *s);
// The parameters at the present length. False: there are more than `most` edits, and nothing was drawn.
bool tn_sampler_describe(tn_sampler *s, tn_sample_row *row, tn_sample_edit *edits, int32_t most);
bool tn_sampler_masks(const tn_sampler *s);
// The allowed tokens as bits. Fails as tn_sampler_choose does.
TN_MUST_USE tn_status tn_sampler_mask(tn_sampler *s, uint32_t *words);
TN_MUST_USE tn_status tn_sampler_chosen(tn_sampler *s, const tn_sample_result *y, int32_t *token,
                                        float *logprob);

// The list of tokens that penalties and DRY read mirrors the sequence. -1 stands for a token that is not
// known; tokens beyond n_history are not kept.
void tn_sampler_push(tn_sampler *s, int32_t token);
// Drops the newest tokens, or appends unknown ones, until there are n.
void tn_sampler_set_length(tn_sampler *s, int32_t n);
// The maximum surprise of Mirostat in bits, 0 if it is off.
float tn_sampler_mu(const tn_sampler *s);

#endif
