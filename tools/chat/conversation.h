// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The turns of a chat, and their file: {"schema": 1, "model": ..., "settings": {...}, "messages": [...]} with
// the messages as in the OpenAI API. A list of messages alone can be loaded, too.
#ifndef TENON_TOOLS_CONVERSATION_H
#define TENON_TOOLS_CONVERSATION_H

#include "tools/chat/generate.h"

typedef struct conversation {
    tn_turn *turns; // all texts from malloc
    size_t n, capacity;
} conversation;

// Each: 0 or an exit code after a message.
int conversation_add(conversation *c, const char *role, const char *content);
// The answer of a model; its reasoning (<think>, analysis channel) is stored separately.
int conversation_add_answer(conversation *c, const char *text);
int conversation_set_system(conversation *c, const char *text);
int conversation_save(const conversation *c, const run_state *r, const char *path);
// Replaces the turns and sets the settings of the file; after a failure both are as before.
int conversation_load(conversation *c, options *o, const char *path);

bool conversation_has_system(const conversation *c);
void conversation_drop(conversation *c, size_t n); // all but the first n turns
void conversation_fini(conversation *c);

// Whether /set may change it: the options of sampling and the number of tokens.
bool is_setting(opt_id id);

#endif
