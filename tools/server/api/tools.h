// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The tools of a request: `tools`, `tool_choice`, `parallel_tool_calls`.
#ifndef TENON_TOOLS_SERVER_API_TOOLS_H
#define TENON_TOOLS_SERVER_API_TOOLS_H

#include "tools/server/api/fields.h"

// All zero: no tools.
typedef struct tool_use {
    char *all;          // JSON list of the tools, for the prompt; NULL: none
    char *allowed;      // those that may be called
    const char *format; // of calls
    bool generic;       // the chat template has no tools: the prompt gets them as text
    bool required, single, strict;
    int32_t n_before; // calls in the messages
    int32_t *places;  // of the allowed tools in the list of the request
    int32_t n_allowed;
    char *grammar; // from tn_tool_grammar
} tool_use;

// False: `failed`.
bool tools_read(fields *f, tool_use *t);
// The constraint under which calls are written, with that of the request. ids: the prompt.
bool tools_constrain(fields *f, tool_use *t, request_params *p, const int32_t *ids, size_t n_ids);
void tools_fini(const model *m, tool_use *t);

// Whether calls of the history are content: the chat template has no tools, or prints no calls.
bool tools_are_content(const tool_use *t);
// Then: the text that describes the tools, a call of the history and a result as text, from malloc; NULL: out
// of memory. `before`: text in front of it, or NULL.
char *tools_describe(writer *w, const tool_use *t, const char *before);
char *tools_call_text(writer *w, const tool_use *t, const char *before, const char *name,
                      const char *arguments);
char *tools_result_text(writer *w, const char *before, const char *result);

#endif
