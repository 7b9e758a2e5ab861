// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scratch of attention, from shapes alone: a plan is prepared before lengths are known.
#include "backends/cpu/c/attention_plan.h"

#include "backends/cpu/accepts.h"

size_t tn_cpu_scratch_attention(const tn_step *step, int32_t n_threads)
{
    attention_shape s = attention_shape_get(step);
    int64_t floats = n_threads * attention_thread_floats(&s) + attention_partial_floats(&s);
    return (size_t)floats * sizeof(float);
}
