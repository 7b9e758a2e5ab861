// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The measurements of `tenon bench`, and the functions that print them (bench_report.c).
#ifndef TENON_TOOLS_BENCH_H
#define TENON_TOOLS_BENCH_H

#include "tools/commands/bench_peers.h"
#include "tools/common.h"
#include "tools/costs/costs.h"

enum { BENCH_CASES = 16, BENCH_SAMPLES = 2048 };
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

// What the library has allocated at a time, in bytes.
typedef struct bench_sample {
    uint64_t at;
    double allocated;
} bench_sample;

struct roofline;
struct bench_set;
typedef struct bench_state {
    tool t;
    const struct bench_set *set;           // NULL: not of `tenon bench`
    const char *name;                      // path or shape, for people
    const char *path, *type;               // of this case of several; NULL: as the command line says
    char label[160], arch[64], device[64]; // copies for reports: they outlive the model
    bool classes;                          // the embedder gives scores, not vectors
    struct roofline *roofline;             // for --html, NULL: none
    uint64_t begin_ns;
    bench_sample samples[BENCH_SAMPLES];
    int n_samples;
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

// The models of one run, measured one after another: all tests of the first, then of the second.
typedef struct bench_set {
    const options *opt;
    bench_state *cases[BENCH_CASES];
    int n;
    peers peers; // of --peers
    char types[BENCH_CASES][32];
} bench_set;

void bench_print_text(const bench_state *s);
void bench_print_csv(const bench_set *set);
void bench_print_json(const bench_set *set);
// Of a Markdown report: the model, the device, the peaks, the overhead.
void bench_print_head(const bench_state *s);
// "read 12.3 GB/s, f32 ..."
void bench_peaks_line(const peaks *p, char *buf, size_t size);

// Tests of several models, or beside peers, as a table (bench_compare.c). The cells of row -1 are names of
// columns; true: the column has numbers. Row i is result i of case c.
enum { BENCH_COLUMNS = 9 + 2 * PEERS_MAX, BENCH_CELL = 160 };
int bench_table_columns(const bench_set *set);
void bench_table_row(const bench_set *set, int c, int i, char cells[BENCH_COLUMNS][BENCH_CELL]);
void bench_compare_text(const bench_set *set);
// How many times as fast a result is as that of the same test of the first model, or as a peer; 0: unknown.
double bench_ratio(const bench_set *set, int c, int i);
double bench_peer_ratio(const bench_set *set, int c, int i, int peer, const peer_row **row);

// The page of --html (bench_page.c).
void bench_page(const bench_set *set, FILE *f);
// Notes how much memory is used now.
void bench_sample_memory(bench_state *s);

// Opens the context and the model that the command line names; the session and the ids of s->longest tokens.
// 0, or an exit code after a message; bench_close then still works, and frees the state.
int bench_open(bench_state *s);
// Whether the command line describes a model of random weights.
bool bench_is_random(const options *o);
int bench_make_session(bench_state *s);
void bench_close(bench_state *s);
// Lets go of the model and its session; results and the context remain for reports.
void bench_release(bench_state *s);
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
