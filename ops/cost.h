// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a step costs: the bytes that it has to read and write at least once, by operand, and its operations.
// This is the numerator of every roofline here: tenon-check, `tenon bench`, `tenon roofline`, the dumps of
// plans. One function for each family of ops (cost.c) says it; whoever knows which operand is a weight or a
// cache adds them up.
#ifndef TN_OPS_COST_H
#define TN_OPS_COST_H

#include "ops/step.h"

// What the shapes of a step do not say: how long the sequences are whose keys attention reads.
typedef struct tn_cost_lengths {
    // With q_start (as many as the step's) and kv_len: the integers that the step reads. Else NULL.
    const int32_t *q_start, *kv_len;
    int64_t depth; // without them: keys of each sequence before its tokens, of which all have equally many
} tn_cost_lengths;

typedef struct tn_cost {
    // Bytes; a result that is a source changed in place (a cache) has those that are changed.
    double read[TN_MAX_SRC], written[TN_MAX_DST];
    double ops; // multiplications and additions, other functions as one for each element
    // Of a matrix product and attention the part of them that the product has (tensor cores can do these), at
    // most `ops`.
    double product_ops;
} tn_cost;

tn_cost tn_step_cost(const tn_step *step, const tn_cost_lengths *lengths);
// Multiplications of a step, with half of the keys that there may be: enough to find what takes long.
double tn_step_work(const tn_step *step);
double tn_cost_bytes(const tn_cost *cost); // of all operands

#endif
