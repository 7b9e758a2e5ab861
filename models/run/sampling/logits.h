// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_LOGITS_H
#define TN_LOGITS_H

#include <stdint.h>

// The largest value; NaN does not count, -inf for an empty row.
float tn_logits_max(const float *x, int32_t n);
// The sum of the weights exp(x - max), as ops/sample.h defines them; NaN has none. max is finite.
uint64_t tn_logits_weight(const float *x, int32_t n, float max);
// The first of the largest values, and the logarithm of its probability unless that is NULL; -1: all are NaN.
int32_t tn_logits_best(const float *x, int32_t n, float *logprob);

#endif
