// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What `tenon roofline` measured, and the functions that show it.
#ifndef TENON_TOOLS_ROOFLINE_H
#define TENON_TOOLS_ROOFLINE_H

#include "tools/commands/bench.h"

// Steps of a pass that are alike: the same op, kernel and shapes.
typedef struct roof_row {
    char op[96], kernel[96], shapes[320];
    const char *family;
    int32_t n;
    double seconds; // of all n: the median of each
    cost_sum cost;
    double limit; // seconds that they need at least
} roof_row;

// The passes that other programs delayed least, in seconds: of those that are not timed step by step, of
// those that are, and the steps of the latter.
typedef struct roof_fastest {
    double wall, timed, steps;
} roof_fastest;

typedef struct roof_phase {
    const char *name; // "prefill", "decode"
    int32_t n_tokens, n_seq;
    int64_t depth;
    double wall;   // seconds of a pass that is not profiled: the median
    double timed;  // of a pass that is timed step by step: the median
    double steps;  // of the steps of such passes: the sum of their medians
    double around; // of such a pass what is no step: the median
    roof_fastest fastest;
    double limit;
    cost_sum cost;
    roof_row *rows; // the largest loss first
    int32_t n_rows;
} roof_phase;

typedef struct roofline roofline;
enum { ROOF_PHASES = 2, ROOF_LOSSES = 3 };

struct roofline {
    bench_state *bench;
    peaks peaks;
    char device[200], model[200];
    roof_phase phases[ROOF_PHASES];
};

// Fills in what is measured, in words; then measures both phases in the session of `bench`, against r->peaks.
// 0, or an exit code after a message.
void roof_describe(roofline *r);
int roof_measure(roofline *r, int32_t n_tokens, int32_t n_seq, int64_t depth);
// Frees r too; NULL is fine.
void roof_close(roofline *r);

// What of a pass is no step: seconds, and in words what they are. All together and the steps are the median
// of the passes that are not timed.
enum {
    ROOF_AROUND, // inputs, submission, waiting, results
    ROOF_DELAYS, // by which a pass is longer than the medians of its parts: others use the device or the host
    ROOF_UNTIMED, // by which passes that are not timed step by step are longer; negative: shorter
    ROOF_RESTS,
};
double roof_rest(const roof_phase *p, int row);
const char *roof_rest_name(const roof_phase *p, int row);
// One sentence about a loss: the lever that would make it smaller.
void roof_lever(const roofline *r, const roof_phase *p, const roof_row *row, char *buf, size_t size);
// "12.3 GFLOP/s"; operations of int8 are no FLOP.
const char *roof_rate(double rate, const char *suffix, char *buf, size_t size);

void roof_print_text(const roofline *r);
void roof_print_csv(const roofline *r);
void roof_print_json(const roofline *r);
void roof_picture(const roofline *r, FILE *f);
// The picture and the tables, for a page.
void roof_section(const roofline *r, FILE *f);
void roof_page(const roofline *r, FILE *f);

#endif
