// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the answers of the OpenAI routes share.
#ifndef TENON_TOOLS_SERVER_API_OPENAI_H
#define TENON_TOOLS_SERVER_API_OPENAI_H

#include "tools/server/job.h"

// A job for the messages of a request and its tools. An error was answered if it fails.
// `param`: the field of the messages.
void openai_start_chat(fields *f, const protocol *proto, request_params *p, const char *id_prefix,
                       const char *param);
void openai_put_usage(const job *j, json *out);
void openai_put_timings(const job *j, json *out);
// The entries of the choice, which are then gone, in the form of chat.
void openai_put_logprobs(job *j, json *out, choice *c);
// The text of a token, valid until the next call; *n its bytes.
const char *openai_token_text(server *s, int32_t token, size_t *n, char **owned);
// JSON has no infinity: the logarithm of practically nothing.
double openai_logprob(float value);
void openai_done(job *j);
void openai_broken(job *j, error_id id, const char *message);

#endif
