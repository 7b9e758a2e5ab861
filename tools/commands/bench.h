// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The measurements of `tenon bench`, and the functions that print them (bench_report.c).
#ifndef TENON_TOOLS_BENCH_H
#define TENON_TOOLS_BENCH_H

#include "tools/common.h"
#include "tools/costs/costs.h"

enum { BENCH_NUMS = 32, BENCH_TESTS = 8192, BENCH_REPS = 1000, BENCH_SEQUENCES = 256, BENCH_TEXTS = 4096 };

typedef enum bench_kind { BENCH_PREFILL, BENCH_DECODE, BENCH_EMBED } bench_kind;

typedef struct bench_result {
    bench_kind kind;
    int64_t n, depth;
    int32_t n_seq; // sequences that are decoded at once, or texts that an embedder is given
    int32_t n_reps;
    double median, spread, min, max; // tokens per second; spread: half of the range
    double rate;                     // decode: GB/s read; prefill: GFLOP/s
    double share;                    // of the peak, percent; 0: no peak
    uint64_t begin_ns, end_ns;       // of the repetitions, on the monotonic clock: what else was logged then
} bench_result;

typedef struct bench_state {
    tool t;
    const char *name; // path or shape, for people
    tn_model *model;
    tn_model_info info;
    tn_session *session;
    tn_embedder *embedder; // instead of a session, with --texts
    tn_session_config cfg;
    double cache_bytes;   // per position
    double active_params; // multiplied per token of texts, of which there is no plan to ask
    int32_t precision;    // TN_PRECISION_*: the roof of prefill, in which most is multiplied
    int64_t longest;      // tokens that the largest test needs
    int32_t pass_tokens;  // > 0: that one pass must take, unless the command line says less
    int64_t each;         // that each of several sequences has: only decoding takes more than one
    peaks peaks;
    bool has_peaks;
    double host_ns; // per decode step, 0: unknown
    int32_t *tokens;
    int64_t n_tokens;
    int64_t counts[BENCH_SEQUENCES]; // numbers of sequences to measure, in this order
    int n_counts;
    bench_result results[BENCH_TESTS];
    int n_results;
} bench_state;

void bench_print_text(const bench_state *s);
void bench_print_csv(const bench_state *s);
void bench_print_json(const bench_state *s);

// Opens the context and the model that the command line names; the session and the ids of s->longest tokens.
// 0, or an exit code after a message; bench_close then still works, and frees the state.
int bench_open(bench_state *s);
int bench_make_session(bench_state *s);
void bench_close(bench_state *s);
// The device of the last layers.
tn_device *bench_device(const bench_state *s);
// Cuts all sequences to n tokens.
tn_status bench_truncate(bench_state *s, int64_t n);
// Runs a test once; *ns is the time of what is measured.
typedef tn_status bench_run(bench_state *s, const bench_result *r, uint64_t *ns);
// Repeats a test as the options say and appends its result. 0, or an exit code after a message.
int bench_repeat(bench_state *s, const bench_result *test, bench_run *run);
// Random ids for n tokens.
int bench_make_tokens(bench_state *s, int64_t n);
// Measures texts of pp[n_pp] tokens for all counts of --texts (bench_texts.c).
int bench_texts(bench_state *s, const int64_t *pp, int n_pp);
// "pp512 @ d1024", "tg64 @ d2000 x 32", "cls512 x 8"
const char *bench_test_name(const bench_state *s, const bench_result *r, char *buf, size_t size);

#endif
