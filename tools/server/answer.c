// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void answer_begin_thoughts(answer *a, const char *prompt_end)
{
    thoughts_begin(&a->thoughts, prompt_end, true);
    a->thoughts.keep = true;
    a->splits = true;
}

void answer_destroy(answer *a)
{
    thoughts_fini(&a->thoughts);
    tn_tool_parser_destroy(&a->parser);
    for (int32_t i = 0; i < a->n_calls; i++) {
        free(a->calls[i].name);
        free(a->calls[i].arguments);
    }
    free(a->calls);
    *a = (answer){0};
}

// --- ids -------------------------------------------------------------------------------------------------

static bool is_format(const answer *a, const char *name)
{
    return a->format && strcmp(a->format, name) == 0;
}

static bool has_id(const answer *a, const char *id)
{
    for (int32_t i = 0; i < a->n_calls; i++)
        if (strcmp(a->calls[i].id, id) == 0) return true;
    return false;
}

// The templates of some models accept ids of their own form only, in the history of the next request: kimi's
// count the calls of a conversation, mistral's have nine characters.
static void make_id(const answer *a, const char *name, char *out)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint64_t k = (++*a->next_id * 0x9e3779b97f4a7c15u) ^ a->id_salt; // one to one
    if (is_format(a, "kimi") && strlen(name) <= 20) {
        snprintf(out, CALL_ID_SIZE, "functions.%.20s:%d", name, (int)(a->n_before + a->n_calls));
    } else if (is_format(a, "mistral")) {
        for (int i = 0; i < 9; i++, k /= 36) out[i] = digits[k % 36];
        out[9] = 0;
    } else {
        snprintf(out, CALL_ID_SIZE, "call_%016llx", (unsigned long long)k);
    }
}

static void choose_id(const answer *a, const tn_tool_event *e, char *out)
{
    bool unique = is_format(a, "mistral"); // ids that such models make up; others count from 0 in each turn
    if (unique && e->id && strlen(e->id) == 9 && !has_id(a, e->id))
        snprintf(out, CALL_ID_SIZE, "%s", e->id);
    else
        make_id(a, e->name, out);
}

// --- calls -----------------------------------------------------------------------------------------------

static char *copy(const char *text, size_t n)
{
    char *out = malloc(n + 1);
    if (!out) return NULL;
    memcpy(out, text, n);
    out[n] = 0;
    return out;
}

static bool begin_call(answer *a, const tn_tool_event *e, const answer_sink *sink)
{
    tool_call *more = realloc(a->calls, ((size_t)a->n_calls + 1) * sizeof *more);
    if (!more) return false;
    a->calls = more;
    tool_call *c = &more[a->n_calls];
    *c = (tool_call){.name = copy(e->name, strlen(e->name)), .arguments = copy("", 0), .capacity = 1};
    if (!c->name || !c->arguments) {
        free(c->name);
        free(c->arguments);
        return false;
    }
    choose_id(a, e, c->id);
    a->n_calls++;
    a->in_call = true;
    return sink->call_begin(sink->user, c);
}

static bool add_arguments(answer *a, const tn_tool_event *e, const answer_sink *sink)
{
    tool_call *c = &a->calls[a->n_calls - 1];
    size_t n = c->n_arguments + e->n_text + 1;
    if (n > c->capacity) {
        char *more = realloc(c->arguments, 2 * n);
        if (!more) return false;
        c->arguments = more;
        c->capacity = 2 * n;
    }
    memcpy(c->arguments + c->n_arguments, e->text, e->n_text + 1);
    c->n_arguments = n - 1;
    return sink->call_arguments(sink->user, c, e->text, e->n_text);
}

static bool end_call(answer *a, bool complete, const answer_sink *sink)
{
    tool_call *c = &a->calls[a->n_calls - 1];
    a->in_call = false;
    c->complete = complete;
    a->n_complete += complete;
    a->ended = complete && a->single;
    return sink->call_end(sink->user, c);
}

static bool give_event(answer *a, const tn_tool_event *e, const answer_sink *sink)
{
    switch (e->kind) {
    case TN_TOOL_CONTENT:
        return sink->text(sink->user, e->text, e->n_text, false);
    case TN_TOOL_BEGIN:
        return begin_call(a, e, sink);
    case TN_TOOL_ARGUMENTS:
        return add_arguments(a, e, sink);
    // Its text was given as a call already.
    case TN_TOOL_BROKEN:
        return !a->in_call || end_call(a, false, sink);
    default:
        break;
    }
    bool whole = !a->in_call;
    if (whole && (!begin_call(a, e, sink) || !add_arguments(a, e, sink))) return false;
    return end_call(a, true, sink);
}

static bool give_events(answer *a, tn_status status, const tn_tool_event *const *events, int32_t n,
                        const answer_sink *sink)
{
    if (status != TN_OK) return false;
    for (int32_t i = 0; i < n && !a->ended; i++)
        if (!give_event(a, events[i], sink)) return false;
    return true;
}

static bool give_content(answer *a, const char *text, size_t n, bool last, const answer_sink *sink)
{
    const tn_tool_event *const *events;
    int32_t n_events;
    if (!a->parser) return n == 0 || sink->text(sink->user, text, n, false);
    tn_status status = tn_tool_parser_feed(a->parser, text, n, &events, &n_events);
    if (!give_events(a, status, events, n_events, sink)) return false;
    if (!last || a->ended) return true;
    status = tn_tool_parser_end(a->parser, &events, &n_events);
    return give_events(a, status, events, n_events, sink);
}

bool answer_feed(answer *a, const char *text, size_t n, bool last, const answer_sink *sink)
{
    if (a->ended) return true;
    if (!a->splits) return give_content(a, text, n, last, sink);
    thoughts *t = &a->thoughts;
    if (!thoughts_feed(t, text, n, last)) return false;
    if (t->n_inner > 0 && !sink->text(sink->user, t->inner, t->n_inner, true)) return false;
    return give_content(a, t->out, t->n_out, last, sink);
}
