// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What passes take, as measured: running averages by the number of rows, of passes without prompts and of
// those with them. The scheduler asks here which pieces of prompts are cheap.
//
// A pass with prompts takes as long as its rows take, and pair_ns for each pair of a prompt's token and a
// token that it attends to. So a piece far behind the beginning of a long prompt is known to take longer.
#ifndef TN_MODELS_ENGINE_COSTS_H
#define TN_MODELS_ENGINE_COSTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_cost_cell {
    double ns, rows; // averages; ns without the pairs
    uint64_t at;     // n_passes when it was measured last; 0: never
} tn_cost_cell;

enum { TN_COST_CELLS = 40 };
typedef struct tn_pass_costs {
    tn_cost_cell plain[TN_COST_CELLS], mixed[TN_COST_CELLS]; // without and with prompts
    double pair_ns;
    double median_ns;  // about, of the last thousands of passes in which texts continued
    uint64_t n_passes; // with prompts
    int32_t n_mixed;   // of these, since one without prompts
} tn_pass_costs;

typedef struct tn_pass_size {
    int32_t n_continued; // texts that take their next token
    int32_t n_prompt;    // tokens of prompts
    int32_t rows;        // of both, and those that fill the pass up
    double pairs;        // of tokens of prompts and the tokens that they attend to
} tn_pass_size;

void tn_costs_add(tn_pass_costs *c, const tn_pass_size *pass, double ns);
// A pass with prompts was left out of the measurements because it made its plan.
void tn_costs_skip(tn_pass_costs *c, const tn_pass_size *pass);
// Whether it is time for a pass without prompts: what the texts take alone decides how much of a prompt fits.
bool tn_costs_are_old(const tn_pass_costs *c, int32_t n_continued);
// Nanoseconds of a pass in which so many texts continue; 0: unknown.
double tn_costs_plain(const tn_pass_costs *c, int32_t n_continued);
typedef enum tn_cost_source { TN_COST_UNKNOWN, TN_COST_PREDICTED, TN_COST_MEASURED } tn_cost_source;
// Nanoseconds of a pass with prompts; *ns is unchanged if they are unknown.
tn_cost_source tn_costs_mixed(const tn_pass_costs *c, const tn_pass_size *pass, double *ns);

#endif
