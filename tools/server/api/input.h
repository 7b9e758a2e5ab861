// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A request of /v1/responses in the form of chat, which the readers of messages, tools and sampling know.
#ifndef TENON_TOOLS_SERVER_API_INPUT_H
#define TENON_TOOLS_SERVER_API_INPUT_H

#include "tools/server/api/fields.h"

typedef struct chat_input {
    body b;
    char *text;     // of the body
    int32_t *items; // item of `input` by message, -1: `instructions`
    int32_t *tools; // of `tools` by tool of the chat form
    size_t n_items, n_tools;
} chat_input;

// The fields of the chat form are in *chat; their errors name fields of the request. False:
// `failed`.
bool input_read(fields *f, chat_input *in, fields *chat);
void input_fini(chat_input *in);

#endif
