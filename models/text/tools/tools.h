// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of the parser of tool calls. parser.c separates content from what may be a call; body.c reads
// what follows the marker of a call, with python.c for arguments that are written in Python; stream.c finds
// the arguments of a call that is not complete; write.c has the grammar of answers that are calls.
#ifndef TN_MODELS_TOOLS_H
#define TN_MODELS_TOOLS_H

#include "core/strbuf.h"
#include "models/text/grammar/json_read.h"

#include <tenon/tools.h>

enum { TN_TOOL_MARKERS = 6, TN_TOOL_NAME_MAX = 128, TN_TOOL_BODY_MAX = 4 << 20 };

// How calls are written where a grammar forces them: begin, then head NAME middle ARGUMENTS tail for each
// call with `between` in between, then end. The parser reads all of it.
typedef struct tn_tool_markup {
    const char *begin, *head, *middle, *tail, *between, *end;
} tn_tool_markup;

// A way to write calls. Unused places are NULL.
typedef struct tn_tool_format_row {
    const char *name;
    const char *sign;                    // is in the templates of such models
    const char *begins[TN_TOOL_MARKERS]; // a call follows
    const char *ends[TN_TOOL_MARKERS];   // behind a call, may be missing
    const char *drops[TN_TOOL_MARKERS];  // around calls; never content
    const char *separator;               // between name and arguments, where a call is no JSON object
    bool bare;                           // a turn that begins with { may be a call
    tn_tool_markup markup;
    bool header;       // more of a header may stand between the name and the separator
    bool python;       // calls may be those of Python
    const char *plain; // a turn begins behind a marker of calls; this makes it content
} tn_tool_format_row;

// The row of a name, NULL of the first one; NULL: there is none.
const tn_tool_format_row *tn_tool_format_find(const char *name);

typedef struct tn_tool_call {
    const char *name, *id; // id NULL: none
    const char *arguments;
    size_t n_arguments;
} tn_tool_call;

enum { TN_TOOL_CALLS_MAX = 64 }; // in one body

typedef struct tn_tool_body {
    tn_arena *arena;      // of everything below
    const tn_json *tools; // NULL: all names
    const tn_tool_format_row *format;
    bool at_end;      // nothing follows
    bool single;      // one call of a list at a time
    bool in_list;     // then: the body is in a list, of which
    int32_t n_listed; // so many calls were read before
    tn_tool_call calls[TN_TOOL_CALLS_MAX];
    int32_t n_calls;
    size_t size; // bytes of the body that were read
} tn_tool_body;

typedef enum tn_tool_verdict {
    TN_TOOL_NO_CALL, // whatever follows
    TN_TOOL_MORE,    // more text decides
    TN_TOOL_OPEN,    // the call is complete, but its end marker may follow
    TN_TOOL_DONE,
    TN_TOOL_NO_MEMORY,
} tn_tool_verdict;

tn_tool_verdict tn_tool_body_read(tn_tool_body *b, const char *text, size_t n);

// The beginning of a body with `single`: DONE where the name is followed by arguments, or by the members of
// an object, in which the name is then.
typedef struct tn_tool_head {
    const char *name, *id; // name NULL: in the object
    size_t size;           // bytes before the object, or before the arguments
    bool elements;         // the arguments are not JSON
} tn_tool_head;
tn_tool_verdict tn_tool_head_read(tn_tool_body *b, const char *text, size_t n, tn_tool_head *head);

// The bytes of a JSON value, which ends by its brackets and quotes; whether it is valid is checked later. All
// zero at its beginning. True: it ended, and *at is behind it or at what ends it.
typedef struct tn_tool_value {
    int64_t depth;
    bool quoted, escaped;
} tn_tool_value;
bool tn_tool_value_pass(tn_tool_value *v, const char **at, const char *end);

// What the members of a call are, by their keys as they are written; the first one of a kind counts.
typedef enum tn_tool_key {
    TN_TOOL_KEY_OTHER,
    TN_TOOL_KEY_NAME,
    TN_TOOL_KEY_ID,
    TN_TOOL_KEY_ARGUMENTS,
} tn_tool_key;
tn_tool_key tn_tool_key_of(const char *key, size_t n); // with its quotes

// A JSON string that is a name or an id.
tn_tool_verdict tn_tool_string_read(tn_tool_body *b, const char *json, size_t n, const char **out);
bool tn_tool_is_known(const tn_tool_body *b, const char *name);

// Finds name and arguments in a body while it grows. All zero at its beginning.
typedef struct tn_tool_stream {
    int32_t state;
    size_t at;    // bytes that were read
    size_t token; // where the key or value begins that is read now
    size_t n_key; // bytes of the key
    tn_tool_key key;
    tn_tool_value value;
    size_t id, n_id; // place of the JSON of the id
    bool named, has_arguments;
    size_t from, to; // the arguments so far; from 0: none that can be given
} tn_tool_stream;
// n bytes of the body are there. call->name is set if it was found in them, and not before.
tn_tool_verdict tn_tool_stream_read(tn_tool_stream *s, tn_tool_body *b, const char *text, size_t n,
                                    tn_tool_call *call);

// Passes a literal of Python, which is appended as JSON. MORE, too, where the text may go on behind it.
tn_tool_verdict tn_tool_python_read(const char **at, const char *end, tn_strbuf *out);

// Whether the text begins with the marker: 1; -1: it may, when more of it is there; 0: no.
int tn_tool_starts(const char *text, size_t n, const char *marker);

#endif
