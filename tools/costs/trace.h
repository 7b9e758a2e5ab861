// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What --profile records, between profile.c, which records, and profile_write.c, which writes it.
#ifndef TENON_TOOLS_TRACE_H
#define TENON_TOOLS_TRACE_H

#include "tools/common.h"

#include <stdatomic.h>

enum { TRACE_NAMES = 64, TRACE_NAME = 48 };

typedef struct trace_span {
    int32_t kind; // TN_SPAN_
    int32_t name; // of the thread's names
    uint64_t begin, end;
    int64_t count;
} trace_span;

typedef struct trace_pass {
    tn_plan *plan;  // owned; NULL: its steps were not timed
    size_t step_ns; // where their times begin in those of the thread
    int32_t n_steps, n_tokens, n_seq;
    int64_t depth;
    uint64_t session, begin, submit, end;
    char *text; // that was generated, to be freed; NULL: not known
} trace_pass;

// The counters at a time.
typedef struct trace_sample {
    uint64_t at;
    double tokens_per_second;
    int32_t n_blocks_used, n_blocks; // 0: no cache
    size_t allocated;
    uint64_t peak_rss;
} trace_sample;

// An array that grows.
typedef struct trace_list {
    void *items;
    size_t n, capacity;
} trace_list;

// What one thread did. Only that thread writes it, so nothing is locked.
typedef struct trace_thread {
    struct trace_thread *next;
    int32_t pool_thread;                      // its number in the pool; 0: it is none of the pool
    trace_list spans, passes, samples, times; // of trace_span, trace_pass, trace_sample, uint64_t
    char names[TRACE_NAMES][TRACE_NAME];
    int32_t n_names;
    size_t n_lost; // for which there was no space
} trace_thread;

struct tool_trace {
    const tool *tool;
    uint64_t begin;
    trace_thread *main;              // of the thread that opened the trace
    _Atomic(trace_thread *) threads; // all, the last one first; release and acquire: what the others see
    // When the next pass of a prompt and the next one of single tokens is timed. Relaxed, as all below: if
    // two threads decide at the same time, two passes are timed.
    _Atomic uint64_t next_timed[2];
    _Atomic int32_t n_timed[2];
    // Since the last sample; of their first pass; when that sample was taken.
    _Atomic uint64_t tokens, tokens_begin, sampled;
};

// Whether a pass has one token of each sequence; else it has pieces of prompts, or guesses.
static inline bool trace_is_tokens(int32_t n_tokens, int32_t n_seq)
{
    return n_tokens == n_seq;
}
// Writes everything as JSON.
void trace_write(const tool_trace *t, FILE *f);

#endif
