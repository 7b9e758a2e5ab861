// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a generation. generation_create.c: what a configuration makes of it; generation.c: its text.
// Below: generations whose tokens someone else evaluates, several of them in one pass (engine/step.c):
//
//     tn_generation_attach(g, ids, n);      // the prompt; nothing is evaluated
//     tn_generation_set_sequence(g, seq);   // the sequence that holds its tokens from now on
//     ...                                   // the prompt is fed to the sequence
//     tn_generation_evaluated(g, row);      // its last token has this row of the last pass
//     tn_generation_step(g, &piece);        // selects a token from that row
//     tn_generation_pending(g);             // the selected token, to be evaluated by the next pass
#ifndef TN_MODELS_GENERATION_H
#define TN_MODELS_GENERATION_H

#include "core/memory/arena.h"
#include "models/run/sampling/bans.h"
#include "models/run/sampling/constraint.h"
#include "models/run/sampling/sampler.h"
#include "models/run/sampling/stops.h"
#include "models/run/shift.h"
#include "models/run/speculate.h"
#include "models/text/tokenizer/tokenizer.h"

#include <stdbool.h>
#include <tenon/session.h>

struct tn_generation {
    tn_session *session;
    tn_context *ctx;
    const tn_tokenizer *tokenizer; // NULL: no text
    tn_generation_config cfg;
    tn_sampling sampling;
    tn_sampler *sampler;
    tn_constraint constraint;
    tn_bans *bans;       // NULL: none
    tn_strbuf ban_piece; // bytes of the token that was chosen last
    int32_t end;         // TN_STOP_* after the tokens that are held back, NONE while generation continues
    int32_t n_returns;   // how often the generation returned because of a banned text
    tn_arena arena;
    tn_stops stops;
    int32_t n_ctx, n_vocab;
    // Logits of the prompt, or of the last token and the guesses after it: [max_rows]. They are copied
    // because the caller may use the session between two steps. When all rows are used, those of the session
    // are read.
    float *logits; // [max_rows, n_vocab]
    int32_t *best; // argmax tokens instead of logits, if the device computes them
    float *best_logprob;
    int32_t row, n_rows, max_rows; // the row to choose from next
    int32_t session_row;           // if none is kept: the row of the last pass of the session
    bool rows_best;
    tn_speculation *speculation; // NULL: off
    int32_t *batch;              // [max_rows] the token evaluated last, then guesses
    // guesses after that token in the session; 0 when one was wrong or all were right
    int32_t n_guesses;
    int32_t guessed_length; // length of the sequence with the guesses
    bool fits_device;       // the sampler can choose on a device
    bool samples;           // and that of the session can
    bool ready;             // between a prompt and the piece that stops
    bool drop_space;        // the next text loses its leading space
    int32_t pending;        // chosen but not evaluated, -1 none
    bool ahead;             // the sequence holds the pending token, or the one that is chosen next
    tn_shift shift;
    int32_t n_dropped; // tokens that were dropped since the last piece
    tn_strbuf text;    // bytes of the last piece, then bytes held back
    size_t n_released;
    tn_generation_stats stats;
};

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
// The token that the next step will select from that row, where a device has selected it already; *token is
// -1 if the text ends with it for certain. False: only the step decides.
bool tn_generation_peek(const tn_generation *g, int32_t *token);
// The token that was peeked at belongs to the sequence already: a pass that evaluates it was launched before
// the step that selects it.
void tn_generation_set_ahead(tn_generation *g, bool ahead);
// Tokens of its sequence, without one that was peeked at.
int32_t tn_generation_length(const tn_generation *g);
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
