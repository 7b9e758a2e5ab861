// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts of the server for GET /metrics. All of it belongs to the thread of HTTP.
#ifndef TENON_TOOLS_SERVER_METRICS_H
#define TENON_TOOLS_SERVER_METRICS_H

#include <stddef.h>
#include <stdint.h>

enum { METRIC_ROUTES = 32, METRIC_STATUSES = 18, HISTOGRAM_MAX = 20 };
enum { FINISH_STOP, FINISH_LENGTH, FINISH_TOOL_CALLS, FINISH_CANCELLED, FINISH_ERROR, FINISH_COUNT };

enum {
    REJECT_NONE, // an error of another kind
    REJECT_QUEUE,
    REJECT_DRAINING,
    REJECT_KEY,
    REJECT_SIZE,
    REJECT_PARSE,
    REJECT_COUNT
};

typedef struct histogram {
    uint64_t n[HISTOGRAM_MAX + 1]; // by bucket, not cumulative; the last one is above all bounds
    double sum;
} histogram;

typedef struct metrics {
    uint64_t requests[METRIC_ROUTES][METRIC_STATUSES];
    uint64_t finished[FINISH_COUNT], rejected[REJECT_COUNT];
    uint64_t unknown_fields;
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    double prompt_seconds, generate_seconds;
    histogram first_token, inter_token, request, queue, pass_sequences, pass_tokens;
} metrics;

// Of one model.
typedef struct model_counts {
    uint64_t requests, prompt_tokens, cached_tokens, generated_tokens, loads, load_failures;
    double load_seconds;
} model_counts;

void metrics_count_request(metrics *m, int index, int status, double seconds);
void metrics_first_token(metrics *m, double seconds);
void metrics_inter_token(metrics *m, double seconds);
void metrics_queue(metrics *m, double seconds); // that a generation waited before it ran
// A pass with so many sequences that got a token.
void metrics_pass(metrics *m, int32_t n_sequences);
// Passes that evaluated so many tokens in all; each counts as the mean of them.
void metrics_passes(metrics *m, uint64_t n_passes, uint64_t n_tokens);

#endif
