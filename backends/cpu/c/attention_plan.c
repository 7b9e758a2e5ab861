// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scratch of attention, from shapes alone: a plan is prepared before lengths are known.
#include "backends/cpu/c/attention_plan.h"

#include "backends/cpu/accepts.h"

size_t tn_cpu_scratch_attention(const tn_step *step, int32_t n_threads)
{
    attention_shape s = attention_shape_get(step);
    // A step with fewer tokens keeps more partial rows than one that exceeds the limit: whoever reserves for
    // the scratch of the largest step must hold all.
    int64_t rows = s.n_splits > 1 ? TN_MIN(s.n_tokens * s.n_heads * s.n_splits, ATTN_PARTIALS) : 0;
    int64_t floats = n_threads * attention_thread_floats(&s) + rows * (ATTN_PAD + s.dv_pad);
    return (size_t)floats * sizeof(float);
}
