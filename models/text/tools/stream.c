// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The name and the arguments of a call that is not complete. Each byte behind the head is read once. Whether
// it is a call is decided by body.c when its end is there; for one that is, both find the same name and
// arguments.
#include "models/text/tools/tools.h"

#include <string.h>

enum { HEAD_MAX = 1024 }; // bytes before the arguments, which are read again until they are complete

typedef enum stream_state {
    IN_HEAD,
    BEFORE_KEY,
    IN_KEY,
    BEHIND_KEY,
    IN_VALUE,     // of a member
    IN_ARGUMENTS, // behind a head that has the name
    BEHIND_ALL,
} stream_state;

// Whether there is something behind these bytes.
static bool skip_any(tn_tool_stream *s, const char *text, size_t n, const char *bytes)
{
    while (s->at < n && text[s->at] && strchr(bytes, text[s->at])) s->at++;
    return s->at < n;
}

static bool pass_value(tn_tool_stream *s, const char *text, size_t n)
{
    const char *at = text + s->at;
    bool ended = tn_tool_value_pass(&s->value, &at, text + n);
    s->at = (size_t)(at - text);
    return ended;
}

static void begin_token(tn_tool_stream *s, stream_state state)
{
    s->token = s->at;
    s->value = (tn_tool_value){0};
    s->state = state;
}

static tn_tool_verdict read_head(tn_tool_stream *s, tn_tool_body *b, const char *text, size_t n,
                                 tn_tool_call *call)
{
    tn_tool_head head;
    tn_tool_verdict v = tn_tool_head_read(b, text, n, &head);
    if (v == TN_TOOL_NO_MEMORY) return v;
    if ((v == TN_TOOL_MORE ? n : head.size) > HEAD_MAX) v = TN_TOOL_NO_CALL;
    if (v == TN_TOOL_NO_CALL) s->state = BEHIND_ALL;
    if (v != TN_TOOL_DONE) return v == TN_TOOL_NO_CALL ? TN_TOOL_DONE : v;
    s->at = head.size;
    s->named = head.name != NULL;
    call->name = head.name;
    call->id = head.id;
    if (s->named) {
        begin_token(s, head.elements ? BEHIND_ALL : IN_ARGUMENTS);
        s->from = s->to = head.elements ? 0 : s->at;
    } else {
        s->at++; // the bracket
        s->state = BEFORE_KEY;
    }
    return TN_TOOL_DONE;
}

static void begin_member(tn_tool_stream *s, const char *text)
{
    s->key = tn_tool_key_of(text + s->token, s->n_key);
    begin_token(s, IN_VALUE);
    if (s->key != TN_TOOL_KEY_ARGUMENTS) return;
    if (s->has_arguments) s->key = TN_TOOL_KEY_OTHER;
    s->has_arguments = true;
    if (s->key == TN_TOOL_KEY_ARGUMENTS && text[s->at] == '{') s->from = s->to = s->at;
}

// The value of a member is complete.
static tn_tool_verdict end_member(tn_tool_stream *s, tn_tool_body *b, const char *text, tn_tool_call *call)
{
    size_t n = s->at - s->token;
    s->state = BEFORE_KEY;
    if (s->key == TN_TOOL_KEY_ID && s->n_id == 0) {
        s->id = s->token;
        s->n_id = n;
    }
    if (s->key != TN_TOOL_KEY_NAME || s->named) return TN_TOOL_DONE;
    const char *name = NULL;
    tn_tool_verdict v = tn_tool_string_read(b, text + s->token, n, &name);
    if (v == TN_TOOL_NO_MEMORY) return v;
    if (v != TN_TOOL_DONE || !tn_tool_is_known(b, name)) {
        s->state = BEHIND_ALL;
        return TN_TOOL_DONE;
    }
    if (s->n_id > 0) v = tn_tool_string_read(b, text + s->id, s->n_id, &call->id);
    if (v == TN_TOOL_NO_MEMORY) return v;
    call->name = name;
    s->named = true;
    return TN_TOOL_DONE;
}

// Reads on until more text is needed.
static tn_tool_verdict read_members(tn_tool_stream *s, tn_tool_body *b, const char *text, size_t n,
                                    tn_tool_call *call)
{
    bool more = true;
    tn_tool_verdict v = TN_TOOL_DONE;
    while (more && v == TN_TOOL_DONE && s->state != BEHIND_ALL) {
        bool is_arguments = s->state == IN_ARGUMENTS || (s->state == IN_VALUE && s->from == s->token);
        switch (s->state) {
        case BEFORE_KEY:
            more = skip_any(s, text, n, " \t\r\n,");
            if (more) begin_token(s, text[s->at] == '"' ? IN_KEY : BEHIND_ALL);
            break;
        case IN_KEY:
            more = pass_value(s, text, n);
            s->n_key = s->at - s->token;
            if (more) s->state = BEHIND_KEY;
            break;
        case BEHIND_KEY:
            more = skip_any(s, text, n, " \t\r\n:");
            if (more) begin_member(s, text);
            break;
        default:
            more = pass_value(s, text, n);
            if (is_arguments) s->to = s->at;
            if (more && s->state == IN_VALUE)
                v = end_member(s, b, text, call);
            else if (more)
                s->state = BEHIND_ALL;
        }
    }
    return v;
}

tn_tool_verdict tn_tool_stream_read(tn_tool_stream *s, tn_tool_body *b, const char *text, size_t n,
                                    tn_tool_call *call)
{
    *call = (tn_tool_call){.name = NULL};
    if (s->state == IN_HEAD) {
        tn_tool_verdict v = read_head(s, b, text, n, call);
        if (v != TN_TOOL_DONE) return v;
    }
    return read_members(s, b, text, n, call);
}
