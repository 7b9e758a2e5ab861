// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One answer of `tenon run`: generating it, printing it in the requested form, and its figures.
#ifndef TENON_TOOLS_GENERATE_H
#define TENON_TOOLS_GENERATE_H

#include "tools/common.h"
#include "tools/chat/thoughts.h"

typedef enum answer_form { FORM_TEXT, FORM_IDS, FORM_JSON, FORM_JSONL } answer_form;

// What happens when the context is full.
typedef enum full_policy { FULL_AUTO, FULL_STOP, FULL_DROP, FULL_SHIFT } full_policy;

typedef struct run_state {
    tool t;
    const char *path;
    tn_model *model;
    tn_model_info info;
    tn_session *session;
    tn_model *draft_model; // of --model-draft, NULL without
    tn_session *draft;
    int32_t spec_ngram;               // of --spec, 0: off
    full_policy full;                 // of --context-full
    tn_chat_config chat;              // of --chat-template and the options around it
    char *template_text, *tools_text, *variables_text; // the texts that `chat` points at
    const char *system;                                // of -sys or -sysf, NULL: none
    char *system_text;
    answer_form form;
    uint64_t seed;
    const char **stops;
    int32_t n_stops;
    const char **bans;
    int32_t n_bans;
    int32_t *bias_tokens;
    float *bias_values;
    int32_t n_bias;
    char **breakers; // of --dry-sequence-breaker
    int32_t n_breakers;
    char samplers[256];
    char *grammar, *schema; // of --grammar and --json-schema, or of their files
    bool templated; // the prompt comes from a chat template
    thoughts thoughts;
    // The last answer: text[0 .. n_text) as it is printed, whole[..] with all thoughts and markers, both
    // terminated; its ids; the reason why it ended.
    char *text, *whole;
    size_t n_text, text_capacity, n_whole, whole_capacity;
    int32_t *ids;
    size_t n_ids, ids_capacity;
    int32_t stop;
    uint64_t answer_seed;
    tn_generation_stats stats;
    size_t n_prompt;
    float *logprobs;    // of ids
    tn_logprob *likely; // [n_ids][n_likely] with --logprobs
    size_t logprobs_capacity, likely_capacity;
    int32_t n_likely;
} run_state;

// Reads --seed, --stop and the options of sampling. 0 or an exit code.
int answer_options(run_state *r);
// chat/sampling.c: the options of sampling; the memory that fill_sampling refers to belongs to r.
int sampling_options(run_state *r);
void sampling_fill(const run_state *r, uint64_t seed, tn_sampling *s);
void sampling_fini(run_state *r);
// How answers are generated; what it points at belongs to r.
void answer_config(const run_state *r, uint64_t seed, tn_sampling *sampling, tn_generation_config *cfg);
// Feeds the prompt to the session (a prefix that it holds already is reused), generates, and prints the
// answer. An interruption is no failure: r->stop says so.
int answer_generate(run_state *r, const int32_t *prompt, size_t n, uint64_t seed);
// Whether each answer ends with its figures: on a terminal, or with --stats.
bool answer_wants_stats(const run_state *r);
// The line with speeds and memory.
void answer_stats(const run_state *r);
const char *answer_stop_name(int32_t stop);
// The text of the last tokens of a prompt, where a thought may begin; freed by tn_text_free, NULL on failure.
tn_status answer_prompt_end(const run_state *r, const int32_t *prompt, size_t n, char **end);
void answer_load_event(const run_state *r);
void answer_error_event(const run_state *r, int code);
// Frees the memory of the functions above.
void answer_fini(run_state *r);

// chat_options.c: the options of chat templates.
int chat_options(run_state *r);
// The time now as templates get it.
int64_t chat_local_time(void);
void chat_fini(run_state *r);

// chat.c: turns from standard input until it ends; after one answer with --single-turn. `first`: a turn
// before them, or NULL.
int run_chat(run_state *r, const char *first);
// Ids of one user turn behind the system turn of --system-prompt.
int run_chat_prompt(run_state *r, const char *text, int32_t **ids, size_t *n);

#endif
