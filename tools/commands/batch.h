// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The figures of `tenon batch` (batch_report.c).
#ifndef TENON_TOOLS_BATCH_H
#define TENON_TOOLS_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/engine.h>

// Milliseconds, of which percentiles are wanted. When memory ends, no more are added.
typedef struct batch_times {
    float *ms;
    size_t n, capacity;
} batch_times;

typedef struct batch_figures {
    size_t n_answers, n_failed, n_before;     // answers now, of them failed; those of an earlier run
    size_t n_total;                           // prompts; 0: unknown
    uint64_t n_prompt, n_reused, n_generated; // tokens
    uint64_t start_ns;
    uint64_t shown_ns;       // when the progress was shown last
    batch_times first, gaps; // from submitting to the first token; between two tokens of an answer
} batch_figures;

void batch_times_add(batch_times *t, uint64_t ns);
// A line on a terminal, several times a second; `end` removes it.
void batch_progress(batch_figures *f, bool end);
// The figures, and those of the engine, as lines on standard error.
void batch_report(batch_figures *f, const tn_engine_stats *engine);
void batch_figures_fini(batch_figures *f);

#endif
