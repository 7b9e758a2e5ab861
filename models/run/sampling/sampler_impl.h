// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a sampler. sampler.c chooses, sampler_config.c reads parameters, sampler_filters.c holds the
// stages that drop candidates or change the temperature, sampler_history.c those that read the tokens so far,
// sampler_device.c the parameters of a device that does the same (ops/sample.h).
#ifndef TN_MODELS_SAMPLER_IMPL_H
#define TN_MODELS_SAMPLER_IMPL_H

#include "models/run/sampling/logits.h"
#include "models/run/sampling/rng.h"
#include "models/run/sampling/sampler.h"
#include "ops/sample.h"

enum {
    TN_RADIX_BINS = 2048, // 11 bits: 32-bit keys in three rounds, 16 KiB of sums
    TN_BREAKERS_MAX = 64,
    TN_BREAKER_SIZE_MAX = 64,
};

typedef struct tn_choice {
    uint32_t key; // ascending with the logit
    int32_t id;
    float weight; // a share of the sum that the current filter computes
} tn_choice;

typedef struct tn_bias_pair {
    int32_t id;
    float value;
} tn_bias_pair;

// Stages in the default order.
typedef enum tn_stage_id {
    TN_STAGE_PENALTIES,
    TN_STAGE_DRY,
    TN_STAGE_TOP_N_SIGMA,
    TN_STAGE_TOP_K,
    TN_STAGE_TYPICAL,
    TN_STAGE_TOP_P,
    TN_STAGE_MIN_P,
    TN_STAGE_XTC,
    TN_STAGE_TEMPERATURE,
    TN_STAGE_COUNT
} tn_stage_id;

typedef struct tn_excluded {
    int32_t position, token;
} tn_excluded;

typedef struct tn_breaker {
    char text[TN_BREAKER_SIZE_MAX];
    size_t size;
} tn_breaker;

struct tn_sampler {
    tn_context *ctx;
    tn_sampling cfg;
    uint8_t order[TN_STAGE_COUNT];
    int32_t n_order;
    int32_t n_vocab;
    tn_rng rng;
    uint64_t drawn;     // the random number of the choice at hand
    bool has_drawn;     // it was drawn for a device; if that does not choose, the host does with the same one
    float *logits;      // [n_vocab] after bias, penalties, DRY
    tn_bias_pair *bias; // [cfg.n_bias]

    // Candidates of the current choice.
    tn_choice *kept; // [n_vocab] in order of id
    int32_t n_kept;
    bool collected;    // `kept` is filled; before, all logits above -inf are candidates
    float max;         // the largest logit among them
    float temperature; // the divisor that was not applied to the logits yet
    bool greedy;       // the temperature came out as 0
    uint64_t sums[TN_RADIX_BINS];

    // The tokens so far.
    int32_t length, max_history;
    int32_t *history; // [max_history] NULL: no stage reads it
    int32_t *counts;  // [n_vocab] how often a token is among the last penalty_last_n; NULL without penalties
    bool *breaks;     // [max_history] a breaker ends in this token; NULL without DRY
    int32_t *repeats; // [max_history] DRY: how many tokens before each place equal the end of the history
    int32_t *longest; // [n_vocab] DRY: longest repetition that a token would prolong; all 0 between choices
    tn_breaker *breakers; // [n_breakers]
    int32_t n_breakers;
    const tn_tokenizer *tokenizer;
    tn_strbuf piece;                // bytes of one token
    char tail[TN_BREAKER_SIZE_MAX]; // the last bytes of the text
    size_t n_tail;

    // Mirostat.
    float *mu; // [max_history] after each token; NULL: off
    float mu_chosen;
    int32_t chosen; // by the last choice, -1 none

    // Limits.
    tn_matcher *matcher;   // borrowed; NULL: no grammar
    tn_excluded *excluded; // [max_excluded] positions ascending
    int32_t n_excluded, max_excluded;
    int32_t text_start;     // length where generated text begins; INT32_MAX: all is prompt
    tn_status limit_status; // of the grammar at the last push

    tn_logprob *logprobs; // [cfg.n_logprobs]
    int32_t n_logprobs;
};

// A stage of the chain. Greedy choices skip stages that never drop the best candidate.
typedef struct tn_stage {
    const char *name, *other_name; // what users write
    bool filter;                   // not run with Mirostat, which replaces it
    bool keeps_best;
    bool (*active)(const tn_sampling *c);
    void (*apply)(tn_sampler *s);
} tn_stage;
extern const tn_stage tn_stages[TN_STAGE_COUNT];

// sampler_config.c
TN_MUST_USE tn_status tn_stages_read(tn_context *ctx, const char *text, uint8_t order[TN_STAGE_COUNT],
                                     int32_t *n_order);
// sampler_history.c
TN_MUST_USE tn_status tn_history_reserve(tn_sampler *s, const tn_sampling *cfg);
void tn_history_fini(tn_sampler *s);
bool tn_stage_penalties_active(const tn_sampling *c);
bool tn_stage_dry_active(const tn_sampling *c);
void tn_stage_penalties(tn_sampler *s);
void tn_stage_dry(tn_sampler *s);
// sampler_limits.c: called after a push and after the list was cut; apply sets excluded tokens to -inf.
void tn_limits_push(tn_sampler *s, int32_t token);
void tn_limits_cut(tn_sampler *s);
TN_MUST_USE tn_status tn_limits_apply(tn_sampler *s);
// sampler_filters.c
void tn_stage_top_n_sigma(tn_sampler *s);
void tn_stage_top_k(tn_sampler *s);
void tn_stage_typical(tn_sampler *s);
void tn_stage_top_p(tn_sampler *s);
void tn_stage_min_p(tn_sampler *s);
void tn_stage_xtc(tn_sampler *s);
void tn_stage_temperature(tn_sampler *s);
// A stage that changes s->logits in the middle of the chain calls open before it (applies the temperature so
// far) and close after it (computes keys and maximum again).
void tn_logits_open(tn_sampler *s);
void tn_logits_close(tn_sampler *s);
// Draws one of the candidates, by their probabilities or by Mirostat.
int32_t tn_choice_draw(tn_sampler *s);
int32_t tn_choice_best(tn_sampler *s);

#endif
