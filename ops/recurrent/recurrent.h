// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the ops with a state per sequence share.
#ifndef TN_OPS_RECURRENT_H
#define TN_OPS_RECURRENT_H

#include "ops/ops.h"

// Sources src and src + 1: q_start I32 [n_seq + 1], slots I32 [n_seq, 2].
TN_MUST_USE tn_status tn_need_slots(tn_context *ctx, const tn_step *step, int32_t src, int64_t n_tokens);

// Tokens [first, last) of a sequence, the slots that it reads and writes; -1: outside of the state.
typedef struct tn_ref_run {
    int64_t first, last, read, write;
} tn_ref_run;
tn_ref_run tn_ref_run_get(const tn_step *step, int32_t src, int64_t seq);

#endif
