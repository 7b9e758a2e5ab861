// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the answers of the OpenAI routes share.
#ifndef TENON_TOOLS_SERVER_API_OPENAI_H
#define TENON_TOOLS_SERVER_API_OPENAI_H

#include "tools/server/job.h"
#include "tools/server/api/input.h"
#include "tools/server/api/messages.h"

enum { PROMPTS_MAX = 64 };

// A request that will be a job: what job_start takes, and the memory behind it.
typedef struct text_request {
    const model *m;
    request_params p;
    messages turns;
    chat_input in;
    job_prompt list[PROMPTS_MAX];
    int32_t *ids[PROMPTS_MAX];
    char *echoes[PROMPTS_MAX];
    bool tokenized[PROMPTS_MAX]; // ids come from tn_tokenize, not from malloc
    int32_t n;
    bool scores; // the logprobs of the prompts are asked for
    const protocol *proto;
    const char *id_prefix, *param;
    job *job; // NULL: not begun
} text_request;

// The state of the outcome; NULL: `failed`.
text_request *openai_request(fields *f, const protocol *proto, const char *id_prefix, const char *param);
// The outcome will be a job for its prompts, unless `failed`.
void openai_start(fields *f);
// The prompt is that of the messages and tools of the request, and the outcome a job for it.
void openai_start_chat(fields *f, text_request *t);
void openai_put_usage(const job *j, json *out);
void openai_put_timings(const job *j, json *out);
// The entries of the choice, which are then gone, in the form of chat: as members of a list, and the whole.
void openai_put_entries(job *j, json *out, choice *c);
void openai_put_logprobs(job *j, json *out, choice *c);
// The text of a token, valid until the next call; *n its bytes.
const char *openai_token_text(const model *m, int32_t token, size_t *n, char **owned);
// JSON has no infinity: the logarithm of practically nothing.
double openai_logprob(float value);
void openai_done(job *j);
void openai_broken(job *j, error_id id, const char *message);

#endif
