// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The text of a model, piece by piece, split into thought, content, and calls of tools.
#ifndef TENON_TOOLS_SERVER_ANSWER_H
#define TENON_TOOLS_SERVER_ANSWER_H

#include "tools/chat/thoughts.h"

#include <stdint.h>
#include <tenon/tools.h>

enum { CALL_ID_SIZE = 41 };
typedef struct tool_call {
    char id[CALL_ID_SIZE];
    char *name, *arguments; // terminated; of a complete call the arguments are a JSON object
    size_t n_arguments, capacity;
    bool complete; // false at the end: the call was cut off, or is none
} tool_call;

// What a feed gives; the functions return false if memory ran out.
typedef struct answer_sink {
    void *user;
    bool (*text)(void *user, const char *text, size_t n, bool is_thought);
    // A call, which is also in answer.calls: it begins, its arguments come in pieces, it ends.
    bool (*call_begin)(void *user, const tool_call *call);
    bool (*call_arguments)(void *user, const tool_call *call, const char *text, size_t n);
    bool (*call_end)(void *user, const tool_call *call);
} answer_sink;

// All zero: the text is content.
typedef struct answer {
    thoughts thoughts;
    bool splits;            // thoughts go apart; after answer_begin_thoughts
    tn_tool_parser *parser; // calls go apart; the answer destroys it. NULL: calls are content
    const char *format;     // of the calls
    bool single;            // the answer ends behind the first call
    bool ended;             // it did: what follows is dropped
    int32_t n_before;       // calls in the conversation before
    uint64_t *next_id, id_salt;
    tool_call *calls;
    int32_t n_calls, n_complete;
    bool in_call; // the last one has begun
} answer;

// prompt_end: the last characters of the prompt, which may begin a thought.
void answer_begin_thoughts(answer *a, const char *prompt_end);
// The next part of the text; `last`: the end of it. False: out of memory.
bool answer_feed(answer *a, const char *text, size_t n, bool last, const answer_sink *sink);
void answer_destroy(answer *a);

#endif
