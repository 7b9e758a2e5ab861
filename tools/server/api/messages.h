// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages of a request as turns of the chat template.
#ifndef TENON_TOOLS_SERVER_API_MESSAGES_H
#define TENON_TOOLS_SERVER_API_MESSAGES_H

#include "tools/server/api/tools.h"

typedef struct messages {
    tn_turn *turns;
    size_t n;
    char **texts; // memory of the turns that is not the body's
    size_t n_texts;
    char *variables;
    tool_use tools;
    int32_t *ids;
    size_t n_ids;
    bool joined; // ids come from malloc
    // The text of the last message, which the answer continues; NULL: it begins a turn of its own.
    const char *continued;
} messages;

// The ids of field "messages" with the tools; false: `failed`.
bool messages_read(fields *f, messages *m);
// The text of the prompt instead; from tn_chat_render.
bool messages_render(fields *f, messages *m, char **text, size_t *n);
// What the chat template gets of the request, with the turns and tools of m, if any; false: `failed`.
bool messages_chat(fields *f, messages *m, tn_chat_config *chat);
// `of`: the model that made them.
void messages_fini(const model *of, messages *m);

#endif
