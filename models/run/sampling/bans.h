// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Banned texts. Tokens are held back while a banned text may begin in them; when one is complete, the caller
// returns to the token in which it begins and selects another one there. Allocates nothing after its
// creation.
#ifndef TN_MODELS_BANS_H
#define TN_MODELS_BANS_H

#include "core/context.h"

#include <tenon/session.h>

enum { TN_BANS_MAX = 256, TN_BAN_SIZE_MAX = 1024 };

typedef struct tn_bans tn_bans;

// n: at least 1; piece_max: bytes of the longest token. TN_ERR_ARG, TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_bans_create(tn_context *ctx, const char *const *texts, int32_t n, size_t piece_max,
                                     int32_t n_logprobs, tn_bans **out);
void tn_bans_destroy(tn_bans **bans);
// Releases all held tokens. `before`: the token before the text.
void tn_bans_begin(tn_bans *b, int32_t before);
// Holds a token and its bytes. True if a banned text is complete: *at is the held token in which it begins.
bool tn_bans_push(tn_bans *b, const tn_piece *piece, const char *bytes, size_t n, int32_t *at);
// Keeps the first n of the held tokens.
void tn_bans_cut(tn_bans *b, int32_t n);
int32_t tn_bans_held(const tn_bans *b);
bool tn_bans_full(const tn_bans *b);
// Held token i; -1 is the token before them.
int32_t tn_bans_token(const tn_bans *b, int32_t i);
// How many of the held tokens are free: no banned text can begin in them.
int32_t tn_bans_free(const tn_bans *b);
// Removes the first held token. Its log-probabilities are valid until the next push.
void tn_bans_pop(tn_bans *b, tn_piece *piece);

#endif
