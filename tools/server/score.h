// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How probable a model finds a text that it is given: what evaluations of models ask for with `echo` and
// `logprobs`. The engine makes results for the last token of a prompt only, so this has a session of its own,
// made for the first such request and kept as long as the model is loaded.
#ifndef TENON_TOOLS_SERVER_SCORE_H
#define TENON_TOOLS_SERVER_SCORE_H

#include "tools/server/models/models.h"

#include <stdatomic.h>

// Calls `take` for each token with its logprob, after the tokens before it, and the n_top most probable ones
// in its place. The first one has none: its logprob is no number. On the thread of long requests. `left`: the
// client is gone, and it ends with TN_ERR_CANCELLED. `take` returns false: out of memory.
TN_MUST_USE tn_status score_prompt(model *m, const int32_t *ids, size_t n, int32_t n_top,
                                   const atomic_bool *left, bool (*take)(void *user, const tn_piece *piece),
                                   void *user);

#endif
