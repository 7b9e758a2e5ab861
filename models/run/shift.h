// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Space in a full context: the first tokens of a text stay, because models need some that they can always
// attend to (attention sinks, Xiao et al. 2023), and so does the second half of what the rest may take. The
// tokens between them are dropped, and those that stay are evaluated anew, at their new positions: exactly
// what a new session makes of them.
#ifndef TN_MODELS_SHIFT_H
#define TN_MODELS_SHIFT_H

#include <stdbool.h>
#include <tenon/session.h>

typedef struct tn_shift {
    int32_t *kept; // [n_ctx] the tokens that stay; NULL: contexts are not shifted
    int32_t n_ctx; // of one sequence, at least 2
    int32_t keep;  // tokens at the beginning that stay, up to half of the context
} tn_shift;

// If a prompt does not fit, it becomes one that is the whole contents of the sequence: a part of itself, or
// of what the sequence holds with the prompt behind it. reuse: it is the whole contents already. Returns how
// many tokens are dropped.
int32_t tn_shift_prompt(const tn_shift *f, const tn_session *s, int32_t seq, const int32_t **ids, size_t *n,
                        bool *reuse);
// Replaces the contents of a sequence by the n_kept tokens in f->kept, evaluated from the first one on, so
// that there is space for at least one more. Cancelled or failed: the sequence holds those of complete
// batches.
TN_MUST_USE tn_status tn_shift_sequence(const tn_shift *f, tn_session *s, int32_t seq, int32_t *n_kept);

#endif
