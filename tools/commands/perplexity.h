// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// State of `tenon perplexity`, shared with the comparison of two runs (kl.c).
#ifndef TENON_TOOLS_PERPLEXITY_H
#define TENON_TOOLS_PERPLEXITY_H

#include "tools/common.h"
#include "tools/json/json.h"
#include "tools/output.h"

typedef struct ppl_state {
    tool t;
    const char *path;
    tn_model *model;
    tn_model_info info;
    tn_session *session;
    int32_t *ids;
    size_t n_ids;
    int32_t bos, window, n_chunks;
    double sum, sum_squares; // of negative log-probabilities
    int64_t n_scored;
    bool failed;
    // kl.c
    FILE *base;      // --kl: the run to compare with
    out_file out;    // --kl-base
    float *row;      // log-probabilities of one position
    float *kl;       // one divergence per scored token
    int64_t n_same;  // positions where both prefer the same token
    double base_sum; // negative log-probabilities of the base run
    int32_t base_chunks;
} ppl_state;

// ln sum exp of a row.
double log_sum_exp(const float *logits, int32_t n);
// Perplexity so far and its standard error.
double ppl_value(const ppl_state *s, double *error);

// --kl: reads the head of the base run: window, tokens. Nothing without the flag; 0 or an exit code.
int kl_open_base(ppl_state *s);
// --kl-base: begins the file; also allocates the memory of the results.
int kl_open_new(ppl_state *s);
// Writes or compares one scored position. False if the file failed.
bool kl_row(ppl_state *s, const float *logits, double total, int32_t next);
int kl_commit(ppl_state *s);
// As text, or into an object.
void kl_print(const ppl_state *s, json *j);
void kl_close(ppl_state *s);

#endif
