// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a session.
#ifndef TN_MODELS_SESSION_H
#define TN_MODELS_SESSION_H

#include "models/decoder.h"
#include "models/model.h"
#include "models/run/cache/cache.h"
#include "models/run/sample.h"
#include "models/adapter/adapter.h"

#include <stdatomic.h>
#include <tenon/session.h>

// How many plans are kept: decode, full batch, and some for the ends of prompts, batches of sequences and
// drafts. An engine with 256 sequences and batches of 2048 tokens has 28 sizes of steps without prompts, and
// up to 14 numbers of tokens with 9 of sequences where prompts are evaluated, of which a load sees a part.
enum { TN_SESSION_SLOTS = 128 };

// A prepared plan with the places of its inputs.
typedef struct tn_session_slot {
    tn_plan_key key;
    tn_plan *plan;
    tn_runner *runner; // NULL: the slot is empty
    uint64_t last_use;
    int32_t in_tokens, in_positions, in_slots, in_q_start, in_kv_len, in_table, in_window_slots,
        in_window_table, in_out_rows, in_q_scale, in_head_ids, in_state_slots, in_types, out_logits, out_best,
        out_logprob;
    int32_t in_adapters[TN_SESSION_ADAPTERS];
    tn_sample_slot samples[TN_SAMPLE_PLANS];
} tn_session_slot;

// A pass that was submitted and not waited for.
typedef struct tn_session_flight {
    tn_session_slot *slot;   // NULL: there is none
    tn_sample_slot *sampled; // submitted behind it; NULL: the device does not sample
    tn_pass_info pass;       // for whoever watches
    bool timed;              // its steps are timed for them
} tn_session_flight;

struct tn_session {
    tn_context *ctx;
    tn_model *model;
    // the targets of plans: the device of the last layers, then that of the first layers
    tn_device *devices[TN_CACHE_DEVICES];
    int32_t n_targets; // how many of them there are
    tn_session_config cfg;
    bool dry;   // plans only: no cache, no activations
    bool quiet; // no events from plans
    // Steps of several sequences are filled up to sizes that come again (run/pad.c). Set by whoever owns the
    // session.
    bool pads;
    tn_decoder_setup setup;
    tn_cache cache;
    bool *host_states; // per layer, see tn_decoder_setup
    bool *windowed;    // [2 * layers] parts of the cache that need no more than a window, then per layer
    int32_t n_devices; // of plans
    // per device: the maximum over the plans made at creation
    size_t *arena_size, *scratch_size, *input_size, *derived_size;
    tn_buffer *arena, *scratch, *inputs; // per device, shared by all plans
    tn_session_slot slots_of_plans[TN_SESSION_SLOTS];
    uint64_t clock;   // of slot uses
    uint64_t n_plans; // plans made since the session was created
    // Host side of the inputs; one allocation.
    int32_t *ints, *tokens, *positions, *slots, *out_rows, *q_start, *kv_len, *table;
    int32_t *window_slots, *window_table; // of layers with blocks of their own; NULL: there are none
    int32_t *types;                       // token types of models with segments: all zero
    // LoRA adapters. Scales of each sequence, [n_seq][n_adapters]; of each token of a step,
    // [n_adapters][n_batch]
    tn_adapter *adapters[TN_SESSION_ADAPTERS];
    int32_t n_adapters;
    float *adapter_scales, *row_scales;
    int32_t *state_slots; // per feed: of recurrent states, read and written
    tn_feed *feeds;       // [n_seq] of the present eval
    float *q_scale;
    int32_t *head_ids;     // latent attention: of a full batch; never changes
    int32_t result, width; // of output rows
    const float *logits;   // of the last eval: in the arena, or logits_copy
    bool *rows_read;       // [n_seq] while `logits` is NULL: rows that logits_copy has
    tn_session_sampling sampling;
    float *logits_copy;
    size_t logits_size;
    // [n_batch] argmax tokens of the last eval, then their log-probabilities; NULL: the device does not
    // compute them
    int32_t *best;
    float *best_logprob;
    tn_session_slot *logits_slot; // has logits that were not read yet
    tn_session_flight flight;
    bool launched; // by tn_session_launch, with these feeds and outputs, and what became of its samples
    int32_t n_launched, n_launched_outputs;
    int32_t n_fed; // tokens of the pass that is next, before it was filled up; 0: not known
    tn_status launch_status;
    int32_t n_outputs;
    uint64_t wait_ns;           // spent waiting for the devices since the session was created
    _Atomic int32_t cancel;     // written by any thread, read between steps
    _Atomic int32_t *cancelled; // where that is read: `cancel`, or the mark of whoever owns the session
    bool profile;
    uint64_t *step_ns;
    int32_t step_ns_count;
    const tn_session_slot *profiled;
};

// fill_inputs of models that take whole texts: nothing is kept, so nothing needs to be taken back.
TN_MUST_USE tn_status tn_session_fill_texts(tn_session *s, const tn_feed *feeds, int32_t n_feeds,
                                            tn_plan_key *key);

TN_MUST_USE tn_status tn_session_text_too_long(tn_session *s, int32_t n);
// Whether the row of token k of a feed is wanted.
static inline bool tn_feed_wants(const tn_feed *f, int32_t k)
{
    return f->outputs == TN_OUTPUT_ALL || (f->outputs == TN_OUTPUT_LAST && k + 1 == f->n_tokens) ||
           (f->outputs == TN_OUTPUT_FIRST && k == 0);
}

// Reads the logits of one row; tn_session_logits then returns them. For callers that need some of many rows.
TN_MUST_USE tn_status tn_session_read_row(tn_session *s, int32_t row);
// How many of these tokens, from the first on, the sequence begins with.
int32_t tn_session_common_prefix(const tn_session *s, int32_t seq, const int32_t *tokens, int32_t n);

// Plans made at creation: the keys of all steps that do not depend on the lengths of prompts.
enum { TN_SESSION_KEYS = 4 };
int32_t tn_session_keys(const tn_session *s, tn_plan_key keys[TN_SESSION_KEYS]);
// sessions[n], n from 1 to the count of layers: bytes that a session takes on the device of the model with
// its last n layers there. cfg may be NULL.
TN_MUST_USE tn_status tn_session_estimate(tn_model *model, const tn_session_config *cfg, uint64_t *sessions);
TN_MUST_USE tn_status tn_session_create_on(tn_model *model, tn_device *device, const tn_session_config *cfg,
                                           bool dry, tn_session **out);
// Adds to a key what follows from the lengths of the sequences, which stand in s->kv_len.
void tn_session_complete_key(const tn_session *s, tn_plan_key *key);
TN_MUST_USE tn_status tn_session_plan(tn_session *s, const tn_plan_key *key, tn_plan **out);
// Plans a key into an empty slot; prepares what was planned.
TN_MUST_USE tn_status tn_session_plan_slot(tn_session *s, const tn_plan_key *key, tn_session_slot *slot);
TN_MUST_USE tn_status tn_session_prepare_slot(tn_session *s, tn_session_slot *slot);
// The prepared plan for a key; makes it in the slot that was unused longest.
TN_MUST_USE tn_status tn_session_find_slot(tn_session *s, const tn_plan_key *key, tn_session_slot **out);
// Fills the inputs of a step up to a size for which a plan is likely to exist: adds tokens of sequences that
// are written nowhere and whose rows nobody reads. *key becomes that of the larger step.
void tn_session_pad(tn_session *s, tn_plan_key *key);
// The counts of a step after that. False: it stays as it is.
bool tn_session_padded(const tn_session *s, int32_t *n_tokens, int32_t *n_seq);
// Where steps are filled up: the next number of tokens above n, with pieces of prompts, to which nothing
// needs to be added, up to n_batch.
int32_t tn_session_size_above(const tn_session *s, int32_t n);
// Part of the cache by the name of its state, -1: it is a weight.
int32_t tn_session_cache_part(const tn_session *s, const char *name);
// Layer that a part of the cache belongs to.
int32_t tn_session_part_layer(const tn_session *s, int32_t part);
// --- adapter/session.c ---
// Takes the adapters of a configuration; gives them back.
TN_MUST_USE tn_status tn_session_adapters_init(tn_session *s, const tn_session_config *cfg);
void tn_session_adapters_fini(tn_session *s);
// Adapters that a sequence uses, as the key of a plan has them.
uint32_t tn_session_adapters_of(const tn_session *s, int32_t seq);
// The scales of the tokens of a step, and which adapters its plan has; of n tokens from token `at` on.
void tn_session_fill_adapters(tn_session *s, const tn_feed *feeds, int32_t n_feeds, tn_plan_key *key);
void tn_session_fill_adapter_rows(tn_session *s, int32_t seq, int32_t at, int32_t n);
TN_MUST_USE tn_status tn_session_write_adapters(tn_session *s, tn_session_slot *slot);
// Whether keys and values of two sequences are computed alike.
bool tn_session_same_adapters(const tn_session *s, int32_t a, int32_t b);
void tn_session_copy_adapters(tn_session *s, int32_t from, int32_t to);
// A matrix of an adapter by its name in the graph; false: it is something else.
bool tn_session_find_adapter(const tn_session *s, const char *name, const tn_adapter **adapter,
                             const char **tensor);

// --- a pass in parts (step.c), whose inputs are in the host arrays ---
// The same as submit, choose and finish.
TN_MUST_USE tn_status tn_session_run(tn_session *s, const tn_plan_key *key);
// Tokens that the pass before has selected can still be read; its logits can not.
TN_MUST_USE tn_status tn_session_submit(tn_session *s, const tn_plan_key *key);
// Samples from the logits of the pass, if somebody describes how (sample.h).
TN_MUST_USE tn_status tn_session_choose(tn_session *s);
// Waits for the pass, also behind a failure of one of the two before, which it returns then.
TN_MUST_USE tn_status tn_session_finish(tn_session *s, tn_status status);

// --- tn_session_eval in parts ---
// Between launch and collect, tokens that the pass before has selected (tn_session_best, tn_session_sampled)
// can be read until tn_session_sample_launched is called, which has to be called. Sequences may be cut to
// nothing; no other call evaluates anything. Where the cache has recurrent states or windows, the launch
// loses these results. If it fails, no pass was launched.
TN_MUST_USE tn_status tn_session_launch(tn_session *s, const tn_feed *feeds, int32_t n_feeds);
void tn_session_sample_launched(tn_session *s);
TN_MUST_USE tn_status tn_session_collect(tn_session *s);
// Query temperature of token i of the step, if the model has one.
void tn_session_fill_scale(tn_session *s, int32_t i, int32_t position);
// Recurrent states. Slots for the feeds of a step, then what becomes of them.
TN_MUST_USE tn_status tn_session_take_slots(tn_session *s, const tn_feed *feeds, int32_t n_feeds);
void tn_session_drop_slots(tn_session *s, int32_t n_feeds);
void tn_session_keep_slots(tn_session *s, const tn_feed *feeds, int32_t n_feeds);
// Makes the last snapshot of a sequence that of its length, and its window complete; uses the host arrays.
TN_MUST_USE tn_status tn_session_catch_up(tn_session *s, int32_t seq);
void tn_session_drop_slot(tn_session *s, tn_session_slot *slot);
// Memory for the times of the steps of this slot.
TN_MUST_USE tn_status tn_session_profile_reserve(tn_session *s, const tn_session_slot *slot);

#endif
