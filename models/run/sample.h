// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampling on the device of a session: a plan of the one op `sample` for each plan that makes logits, run
// behind it. While the device makes the logits, the owner of the session says what becomes of each row:
//
//     tn_session_samples(s)                      // whether the device can
//     s->sampling.describe = fill; ...           // called by each pass, see below
//     tn_session_sampled(s, row)                 // after the pass; NULL: the row was left to the host
#ifndef TN_MODELS_SAMPLE_H
#define TN_MODELS_SAMPLE_H

#include "core/context.h"
#include "ops/sample.h"

enum { TN_SAMPLE_BUFFERS = 3 };
enum { TN_SAMPLE_EDITS_PER_ROW = 256 }; // on average: a row may have more while others have fewer

typedef struct tn_session_sampling {
    // Called when a pass with output rows runs: fills rows[0 .. n_rows), and says how many edits and masks it
    // wrote. NULL: the host samples.
    void (*describe)(void *user);
    void *user;
    int32_t n_rows, n_edits, n_masks;
    int32_t max_rows, max_edits, mask_words; // max_edits: of this pass
    tn_sample_row *rows;       // [max_rows]; of kind TN_SAMPLE_NONE when describe is called
    tn_sample_edit *edits;     // [max_rows, TN_SAMPLE_EDITS_PER_ROW], each row has its own run of them
    uint32_t *masks;           // [max_rows, mask_words]
    tn_sample_result *results; // [max_rows]
    tn_buffer *buffers;        // shared by all plans: arena, scratch and inputs of n_devices devices each
    int32_t n_devices;
    size_t sizes[TN_SAMPLE_BUFFERS]; // of those on the device of the logits; the others are empty
    bool done;                       // the last pass sampled
    bool refused;                    // the device could not make the kernel: the host samples
} tn_session_sampling;

// What a plan of logits has for sampling, made when it is needed first: without edits and masks, with edits,
// with both.
enum { TN_SAMPLE_PLANS = 3 };
typedef struct tn_sample_slot {
    struct tn_plan *plan;
    struct tn_runner *runner;
    int32_t in_rows, in_edits, in_masks, out;
} tn_sample_slot;

struct tn_session;
struct tn_session_slot;
// If the device of the logits can sample: makes the memory for it; of a dry session the sizes. TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_session_sampling_init(struct tn_session *s);
bool tn_session_samples(const struct tn_session *s);
void tn_session_sampling_fini(struct tn_session *s);
tn_session_sampling *tn_session_sampling_get(struct tn_session *s);
// Asks for the rows of the running pass, and submits their sampling; *out is NULL if there is none. Then
// waits for it and reads the results.
TN_MUST_USE tn_status tn_session_sample(struct tn_session *s, struct tn_session_slot *slot,
                                        tn_sample_slot **out);
TN_MUST_USE tn_status tn_session_read_sampled(struct tn_session *s, const struct tn_session_slot *slot,
                                              const tn_sample_slot *sampled);
void tn_sample_slot_drop(tn_sample_slot *slot);
const tn_sample_result *tn_session_sampled(const struct tn_session *s, int32_t row);

#endif
