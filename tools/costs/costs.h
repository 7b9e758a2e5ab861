// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Costs of steps (tn_plan_step_get) added up, and the time that they take at least under given roofs.
#ifndef TENON_TOOLS_COSTS_H
#define TENON_TOOLS_COSTS_H

#include "tools/costs/peak.h"

#include <tenon/graph.h>

typedef struct cost_sum {
    double weights, cache_read, cache_written, read, written; // bytes
    double ops[TN_PRECISION_COUNT];                           // by the precision in which they are done
} cost_sum;

void cost_add(cost_sum *sum, const tn_plan_step_info *step);
void cost_add_sum(cost_sum *sum, const cost_sum *other);
// All steps of a plan.
void cost_add_plan(cost_sum *sum, const tn_plan *plan, int64_t depth);
double cost_bytes(const cost_sum *sum);
double cost_ops(const cost_sum *sum);
// The precision in which most is computed.
int32_t cost_precision(const cost_sum *sum);
// Seconds that the operations take at their peaks, and that the bytes take at the read peak.
double cost_compute_time(const cost_sum *sum, const peaks *p);
double cost_memory_time(const cost_sum *sum, const peaks *p);
// The longer of the two: the limit of a roofline.
double cost_limit(const cost_sum *sum, const peaks *p);

#endif
