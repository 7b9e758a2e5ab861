// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a session.
#ifndef TN_MODELS_SESSION_H
#define TN_MODELS_SESSION_H

#include "models/decoder.h"
#include "models/model.h"
#include "models/run/cache.h"

#include <stdatomic.h>
#include <tenon/session.h>

// Plans kept: decode, full batch, and some for rests of prompts and batches of sequences.
enum { TN_SESSION_SLOTS = 8 };

// A prepared plan with the places of its inputs.
typedef struct tn_session_slot {
    tn_plan_key key;
    tn_plan *plan;
    tn_runner *runner; // NULL: the slot is empty
    uint64_t last_use;
    int32_t in_tokens, in_positions, in_slots, in_q_start, in_kv_len, in_table, in_out_rows, in_q_scale, out_logits;
} tn_session_slot;

struct tn_session {
    tn_context *ctx;
    tn_model *model;
    tn_device *device;
    tn_session_config cfg;
    bool dry; // plans only: no cache, no activations
    tn_decoder_setup setup;
    tn_cache cache;
    size_t cache_size, arena_size, scratch_size;
    int32_t n_devices;
    tn_buffer *arena, *scratch; // per device, shared by all plans
    tn_session_slot slots_of_plans[TN_SESSION_SLOTS];
    uint64_t clock; // of slot uses
    // Host side of the inputs; one allocation.
    int32_t *ints, *tokens, *positions, *slots, *out_rows, *q_start, *kv_len, *table;
    float *q_scale;
    const float *logits; // of the last eval: in the arena, or logits_copy
    float *logits_copy;
    size_t logits_size;
    int32_t n_outputs;
    _Atomic int32_t cancel; // written by any thread, read between steps
    bool profile;
    uint64_t *step_ns;
    int32_t step_ns_count;
    const tn_session_slot *profiled;
};

TN_MUST_USE tn_status tn_session_create_on(tn_model *model, tn_device *device, const tn_session_config *cfg, bool dry,
                                           tn_session **out);
TN_MUST_USE tn_status tn_session_plan(tn_session *s, const tn_plan_key *key, tn_plan **out);
// The prepared plan for a key; makes it in the slot that was unused longest.
TN_MUST_USE tn_status tn_session_find_slot(tn_session *s, const tn_plan_key *key, tn_session_slot **out);
void tn_session_drop_slot(tn_session_slot *slot);
TN_MUST_USE tn_status tn_session_profile_room(tn_session *s, const tn_session_slot *slot);

#endif
