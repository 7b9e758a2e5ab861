// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The measurements of `tenon bench`, and the functions that print them (bench_report.c).
#ifndef TENON_TOOLS_BENCH_H
#define TENON_TOOLS_BENCH_H

#include "tools/common.h"
#include "tools/commands/peak.h"

enum { BENCH_NUMS = 32, BENCH_TESTS = 2 * BENCH_NUMS * 8, BENCH_REPS = 1000, BENCH_SEQUENCES = 256 };

typedef struct bench_result {
    bool decode; // tg; otherwise pp
    int64_t n, depth;
    int32_t n_reps;
    double median, spread, min, max; // tokens per second; spread: half of the range
    double rate;                     // decode: GB/s read; prefill: GFLOP/s
    double share;                    // of the peak, percent; 0: no peak
} bench_result;

typedef struct bench_state {
    tool t;
    const char *name; // path or shape, for people
    tn_model *model;
    tn_model_info info;
    tn_session *session;
    tn_session_config cfg;
    double cache_bytes;   // per position
    double active_params; // multiplied per token
    bool int8;            // the int8 peak is the limit, because weights have so little bits
    peaks peaks;
    bool has_peaks;
    double host_ns; // per decode step, 0: unknown
    int32_t *tokens;
    int64_t n_tokens;
    bench_result results[BENCH_TESTS];
    int n_results;
} bench_state;

void bench_print_text(const bench_state *s);
void bench_print_csv(const bench_state *s);
void bench_print_json(const bench_state *s);
// "pp512 @ d1024"
const char *bench_test_name(const bench_result *r, char *buf, size_t size);

#endif
