// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Generations whose tokens someone else evaluates, several of them in one pass (engine/step.c):
//
//     tn_generation_attach(g, ids, n);      // the prompt; nothing is evaluated
//     tn_generation_set_sequence(g, seq);   // the sequence that holds its tokens from now on
//     ...                                   // the prompt is fed to the sequence
//     tn_generation_evaluated(g, row);      // its last token has this row of the last pass
//     tn_generation_step(g, &piece);        // selects a token from that row
//     tn_generation_pending(g);             // the selected token, to be evaluated by the next pass
#ifndef TN_MODELS_GENERATION_H
#define TN_MODELS_GENERATION_H

#include <stdbool.h>
#include <tenon/session.h>

// Begins a text whose sequence will hold exactly these n >= 1 ids. TN_ERR_ARG, TN_ERR_CONTEXT_FULL;
// TN_ERR_UNSUPPORTED: the generation drafts tokens.
TN_MUST_USE tn_status tn_generation_attach(tn_generation *g, const int32_t *ids, int32_t n);
void tn_generation_set_sequence(tn_generation *g, int32_t seq);
// The token that was selected and not evaluated yet; -1: none.
int32_t tn_generation_pending(const tn_generation *g);
// The pending token, or the prompt, is evaluated now, and row `row` of the session's last pass belongs to it.
// The next step has to follow before the session runs another pass.
TN_MUST_USE tn_status tn_generation_evaluated(tn_generation *g, int32_t row);
// Whether a step may run passes of its own (banned texts). Steps of other generations only read the session,
// so they may run at the same time once its logits were read.
bool tn_generation_evaluates(const tn_generation *g);
// While the pass that evaluates it runs: says how the device is to choose from row `row`, if it can. *masked:
// tn_generation_mask has to follow, for which a place in the masks was taken.
void tn_generation_describe(tn_generation *g, int32_t row, bool *masked);
// Steps of several generations may be masked at the same time. A failure is left to the step on the host.
void tn_generation_mask(tn_generation *g, int32_t row);
// Whether a step needs logits, and not just the token that the device may have chosen.
bool tn_generation_reads_logits(const tn_generation *g);
// Row of the last pass that the next step selects from.
int32_t tn_generation_row(const tn_generation *g);

#endif
