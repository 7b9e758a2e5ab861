// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts of the server for GET /metrics. All of it belongs to the thread of HTTP.
#ifndef TENON_TOOLS_SERVER_METRICS_H
#define TENON_TOOLS_SERVER_METRICS_H

#include <stddef.h>
#include <stdint.h>

enum { METRIC_ROUTES = 32, METRIC_STATUSES = 14, HISTOGRAM_MAX = 20 };
enum { FINISH_STOP, FINISH_LENGTH, FINISH_TOOL_CALLS, FINISH_CANCELLED, FINISH_ERROR, FINISH_COUNT };

typedef struct histogram {
    uint64_t n[HISTOGRAM_MAX + 1]; // by bucket, not cumulative; the last one is above all bounds
    double sum;
} histogram;

typedef struct metrics {
    uint64_t requests[METRIC_ROUTES][METRIC_STATUSES];
    uint64_t finished[FINISH_COUNT];
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    double prompt_seconds, generate_seconds;
    histogram first_token, inter_token, request;
} metrics;

// Of one model.
typedef struct model_counts {
    uint64_t requests, prompt_tokens, cached_tokens, generated_tokens, loads, load_failures;
    double load_seconds;
} model_counts;

void metrics_count_request(metrics *m, int index, int status, double seconds);
void metrics_first_token(metrics *m, double seconds);
void metrics_inter_token(metrics *m, double seconds);

#endif
