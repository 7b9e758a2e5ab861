// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Separates the text of a model into content and calls. Text that may be the beginning of a marker, and
// everything from a marker on until the call is complete or is none, is held back.
#include "models/text/tools/tools.h"

#include <string.h>

// The markup of the models' templates, see the documentation of each model.
// clang-format off
static const tn_tool_format_row formats[] = {
    {"hermes", "<tool_call>", {"<tool_call>", "<function="}, {"</tool_call>"}, {NULL}, NULL, false,
     .markup = {"", "<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>", "\n", ""}},
    {"deepseek", "<｜tool▁call▁begin｜>", {"<｜tool▁call▁begin｜>"}, {"<｜tool▁call▁end｜>"},
     {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}, "<｜tool▁sep｜>", false,
     .markup = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n",
      "\n```<｜tool▁call▁end｜>", "\n", "<｜tool▁calls▁end｜>"}},
    {"kimi", "<|tool_call_begin|>", {"<|tool_call_begin|>"}, {"<|tool_call_end|>"},
     {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}, "<|tool_call_argument_begin|>", false,
     .markup = {"<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.",
      ":0<|tool_call_argument_begin|>", "<|tool_call_end|>", "", "<|tool_calls_section_end|>"}},
    {"command-r", "<|START_ACTION|>", {"<|START_ACTION|>"}, {"<|END_ACTION|>"}, {NULL}, NULL, false,
     .markup = {"<|START_ACTION|>[", "{\"tool_name\": \"", "\", \"parameters\": ", "}", ", ",
      "]<|END_ACTION|>"}},
    {"mistral", "[TOOL_CALLS]", {"[TOOL_CALLS]"}, {NULL}, {NULL}, "[ARGS]", false,
     .markup = {"[TOOL_CALLS][", "{\"name\": \"", "\", \"arguments\": ", "}", ", ", "]"}},
    {"granite", "<|tool_call|>", {"<|tool_call|>"}, {NULL}, {NULL}, NULL, false,
     .markup = {"<|tool_call|>[", "{\"name\": \"", "\", \"arguments\": ", "}", ", ", "]"}},
    {"llama", "<|python_tag|>", {"<|python_tag|>"}, {";", "<|eom_id|>", "<|eot_id|>"}, {NULL}, NULL, true,
     .markup = {"", "{\"name\": \"", "\", \"parameters\": ", "}", "; ", ""}},
    // In the present turn, in a message behind another one, and with the recipient before the channel.
    {"harmony", "<|call|>",
     {"<|channel|>commentary to=functions.", "<|channel|>analysis to=functions.",
      "<|start|>assistant<|channel|>commentary to=functions.",
      "<|start|>assistant<|channel|>analysis to=functions.", "<|start|>assistant to=functions.",
      " to=functions."},
     {"<|call|>", "<|end|>"}, {NULL}, "<|message|>", false,
     .markup = {"", "<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "",
      "<|call|><|start|>assistant", ""}, .header = true},
    {"lfm2", "<|tool_list_start|>", {"<|tool_call_start|>"}, {"<|tool_call_end|>"}, {NULL}, NULL, false,
     .markup = {"<|tool_call_start|>[", "{\"name\": \"", "\", \"arguments\": ", "}", ", ",
      "]<|tool_call_end|>"}, .python = true},
    {"functionary", ">>>all", {">>>"}, {NULL}, {">>>all\n"}, "\n", false,
     .markup = {"", "", "\n", "", ">>>", ""}, .plain = "all\n"},
};
// clang-format on

typedef struct held_event {
    int32_t kind;
    size_t text, n_text, name, id; // places in `out`; 0: none
} held_event;

struct tn_tool_parser {
    tn_context *ctx;
    const tn_tool_format_row *format;
    tn_arena arena;       // of the tools
    const tn_json *tools; // NULL: all names
    tn_strbuf text;       // what was not given out
    size_t before;        // bytes at the beginning of `text` before the body: blanks and a marker
    bool marked;          // there is a marker among them
    bool in_body, open;   // a marker was found; its call is complete but for the end marker
    bool may_be_bare;     // nothing but blanks and calls came so far
    bool at_first;        // of a turn that begins behind a marker, nothing came yet
    bool in_content;      // more than blanks came since the last call
    bool has_calls;
    bool streams;          // arguments are given as they come. Then, of the body:
    tn_tool_stream stream; // what is known of its call
    bool begun;            // the beginning of the call was given, and
    size_t n_given;        // bytes of its arguments
    size_t n_read;         // bytes of `text` when the body was last read, and was not complete
    bool in_list;          // it is in a list, of which
    int32_t n_listed;      // so many calls were given
    size_t n_broken;       // bytes at the beginning of `text` that are no call, but looked like one
    tn_strbuf out;         // texts of the events
    held_event *held;
    tn_tool_event *events;
    const tn_tool_event **list; // pointers to them, as they are returned
    int32_t n_events, capacity;
    size_t n_rejected; // bytes of bodies that were no calls, in this turn
    bool failed;
};

const char *tn_tool_format(const char *chat_template)
{
    for (size_t i = 0; i < TN_COUNT(formats) && chat_template; i++)
        if (strstr(chat_template, formats[i].sign)) return formats[i].name;
    return NULL;
}

const tn_tool_format_row *tn_tool_format_find(const char *name)
{
    for (size_t i = 0; i < TN_COUNT(formats); i++)
        if (strcmp(name ? name : formats[0].name, formats[i].name) == 0) return &formats[i];
    return NULL;
}

void tn_tool_config_init(tn_tool_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_tool_config, cfg, struct_size, {.format = NULL});
}

static void start_turn(tn_tool_parser *p)
{
    tn_strbuf_clear(&p->text);
    p->in_body = p->open = p->has_calls = p->in_content = false;
    p->before = p->n_broken = p->n_rejected = 0;
    p->may_be_bare = p->format->bare;
    p->at_first = p->format->plain != NULL;
}

static tn_status read_config(tn_tool_parser *p, const tn_tool_config *given)
{
    tn_tool_config c;
    tn_tool_config_default(&c);
    tn_status status = TN_STRUCT_READ(p->ctx, tn_tool_config, given, &c);
    if (status != TN_OK) return status;
    p->format = tn_tool_format_find(c.format);
    if (!p->format) return tn_fail(p->ctx, TN_ERR_ARG, "tools: there is no format '%s' of calls", c.format);
    p->streams = c.stream_arguments != 0;
    if (!c.tools) return TN_OK;
    status = tn_json_read(&p->arena, "tools", c.tools, strlen(c.tools), &p->tools);
    if (status == TN_OK && p->tools->kind != TN_JSON_ARRAY)
        status = tn_fail(p->ctx, TN_ERR_FORMAT, "tools: it is no list");
    return status;
}

tn_status tn_tool_parser_create(tn_context *ctx, const tn_tool_config *cfg, tn_tool_parser **out)
{
    TN_NEED(NULL, ctx);
    TN_NEED(ctx, out);
    tn_tool_parser *p = tn_calloc(ctx, 1, sizeof *p);
    if (!p) return TN_ERR_MEMORY;
    p->ctx = ctx;
    tn_arena_init(&p->arena, ctx);
    tn_strbuf_init(&p->text, ctx);
    tn_strbuf_init(&p->out, ctx);
    tn_status status = read_config(p, cfg);
    if (status == TN_OK) {
        start_turn(p);
        *out = p;
    } else {
        tn_tool_parser_destroy(&p);
    }
    return status;
}

void tn_tool_parser_destroy(tn_tool_parser **parser)
{
    if (!parser || !*parser) return;
    tn_tool_parser *p = *parser;
    tn_arena_fini(&p->arena);
    tn_strbuf_fini(&p->text);
    tn_strbuf_fini(&p->out);
    tn_free(p->ctx, p->held);
    tn_free(p->ctx, p->events);
    tn_free(p->ctx, (void *)p->list);
    tn_free(p->ctx, p);
    *parser = NULL;
}

// --- events --------------------------------------------------------------------------------------------

static size_t put_text(tn_tool_parser *p, const char *text, size_t n)
{
    size_t at = p->out.size;
    tn_strbuf_append(&p->out, text, n);
    tn_strbuf_append(&p->out, "", 1);
    return at;
}

static held_event *add_event(tn_tool_parser *p)
{
    if (p->n_events == p->capacity) {
        int32_t n = 2 * p->capacity + 16;
        held_event *held =
            tn_realloc(p->ctx, p->held, (size_t)p->capacity * sizeof *held, (size_t)n * sizeof *held);
        if (held) p->held = held;
        tn_tool_event *events = tn_alloc(p->ctx, (size_t)n * sizeof *events);
        if (events) {
            tn_free(p->ctx, p->events);
            p->events = events;
        }
        const tn_tool_event **list = tn_alloc(p->ctx, (size_t)n * sizeof *list);
        if (list) {
            tn_free(p->ctx, (void *)p->list);
            p->list = list;
        }
        if (!held || !events || !list) return NULL;
        p->capacity = n;
    }
    held_event *e = &p->held[p->n_events++];
    *e = (held_event){0};
    return e;
}

static void drop(tn_tool_parser *p, size_t n)
{
    p->n_broken -= TN_MIN(n, p->n_broken);
    p->text.size -= n;
    memmove(p->text.data, p->text.data + n, p->text.size);
    p->text.data[p->text.size] = 0;
}

static tn_status give_text(tn_tool_parser *p, int32_t kind, const char *text, size_t n)
{
    held_event *e = add_event(p);
    if (!e) return TN_ERR_MEMORY;
    e->kind = kind;
    e->text = put_text(p, text, n);
    e->n_text = n;
    return p->out.status;
}

// The first n bytes are content, or were a call that is none.
static tn_status give_content(tn_tool_parser *p, size_t n)
{
    size_t n_broken = TN_MIN(n, p->n_broken);
    tn_status status = TN_OK;
    if (n == 0) return TN_OK;
    if (n_broken > 0) status = give_text(p, TN_TOOL_BROKEN, p->text.data, n_broken);
    if (status == TN_OK && n > n_broken)
        status = give_text(p, TN_TOOL_CONTENT, p->text.data + n_broken, n - n_broken);
    drop(p, n);
    p->may_be_bare = false;
    p->in_content = true;
    return status;
}

static tn_status give_call(tn_tool_parser *p, int32_t kind, const tn_tool_call *c)
{
    bool begins = kind == TN_TOOL_BEGIN;
    tn_status status = give_text(p, kind, begins ? "" : c->arguments, begins ? 0 : c->n_arguments);
    if (status != TN_OK) return status;
    held_event *e = &p->held[p->n_events - 1];
    e->name = put_text(p, c->name, strlen(c->name));
    if (c->id) e->id = put_text(p, c->id, strlen(c->id));
    return p->out.status;
}

// What is certain of the call with which the body begins.
static tn_status give_stream(tn_tool_parser *p)
{
    if (!p->streams) return TN_OK;
    tn_arena arena;
    tn_tool_call call;
    const char *text = p->text.data + p->before;
    tn_tool_stream *s = &p->stream;
    tn_arena_init(&arena, p->ctx);
    tn_tool_body b = {.arena = &arena,
                      .tools = p->tools,
                      .format = p->format,
                      .in_list = p->in_list,
                      .n_listed = p->n_listed};
    tn_tool_verdict v = tn_tool_stream_read(s, &b, text, p->text.size - p->before, &call);
    tn_status status = v == TN_TOOL_NO_MEMORY ? TN_ERR_MEMORY : TN_OK;
    if (status == TN_OK && call.name) {
        status = give_call(p, TN_TOOL_BEGIN, &call);
        p->begun = true;
    }
    size_t n = s->to - s->from - p->n_given;
    if (status == TN_OK && p->begun && n > 0) {
        status = give_text(p, TN_TOOL_ARGUMENTS, text + s->from + p->n_given, n);
        p->n_given += n;
    }
    tn_arena_fini(&arena);
    return status;
}

// What follows in the text is a body.
static void start_body(tn_tool_parser *p)
{
    p->stream = (tn_tool_stream){.at = 0};
    p->begun = false;
    p->n_given = p->n_read = 0;
}

static tn_status give_calls(tn_tool_parser *p, const tn_tool_body *b)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < b->n_calls && status == TN_OK; i++) {
        const tn_tool_call *c = &b->calls[i];
        if (p->streams && !p->begun) status = give_call(p, TN_TOOL_BEGIN, c);
        if (status == TN_OK && p->streams && p->n_given == 0)
            status = give_text(p, TN_TOOL_ARGUMENTS, c->arguments, c->n_arguments);
        if (status == TN_OK) status = give_call(p, TN_TOOL_CALL, c);
        start_body(p);
    }
    drop(p, p->before + b->size);
    p->has_calls = true;
    p->in_content = false;
    // What follows in a list is a body without a marker.
    p->in_body = p->in_list = b->in_list;
    p->n_listed += b->n_calls;
    p->before = 0;
    p->marked = false;
    return status;
}

// --- content and calls ---------------------------------------------------------------------------------

// Blanks with which a part of the content begins.
static size_t n_blanks(const tn_tool_parser *p)
{
    size_t n = 0;
    while (!p->in_content && n < p->text.size && p->text.data[n] && strchr(" \t\r\n", p->text.data[n])) n++;
    return n;
}

// The longest marker of the list at `at`; *part: one may begin there.
static const char *marker_at(const tn_tool_parser *p, const char *const *markers, size_t at, bool *part)
{
    const char *found = NULL;
    for (size_t i = 0; i < TN_TOOL_MARKERS && markers[i]; i++) {
        int starts = tn_tool_starts(p->text.data + at, p->text.size - at, markers[i]);
        if (starts > 0 && (!found || strlen(markers[i]) > strlen(found))) found = markers[i];
        *part |= starts < 0;
    }
    return found;
}

static tn_status begin_body(tn_tool_parser *p, size_t at, size_t marker)
{
    // Blanks alone before a call are dropped with it.
    bool alone = !p->in_content && n_blanks(p) >= at;
    tn_status status = alone ? TN_OK : give_content(p, at);
    p->before = marker + (alone ? at : 0);
    p->marked = marker > 0;
    p->in_body = true;
    p->open = p->in_list = false;
    p->n_listed = 0;
    start_body(p);
    return status;
}

// A turn that begins behind a marker: content, or a call. *more: as below.
static tn_status scan_first(tn_tool_parser *p, bool at_end, bool *more)
{
    int plain = tn_tool_starts(p->text.data, p->text.size, p->format->plain);
    *more = plain >= 0 || at_end;
    if (!*more) return TN_OK;
    p->at_first = false;
    if (plain > 0) {
        drop(p, strlen(p->format->plain));
        return TN_OK;
    }
    tn_status status = begin_body(p, 0, 0);
    p->marked = true;
    return status;
}

// Gives out what is content for certain; finds the next marker. *more: there may be more to do. Text behind a
// body that is no call is read again; where that has happened too often, the rest of the turn is content.
static tn_status scan(tn_tool_parser *p, bool at_end, bool *more)
{
    enum { REJECTED_MAX = 32 << 20 };
    size_t blanks = n_blanks(p);
    *more = p->n_rejected <= REJECTED_MAX;
    if (!*more) return give_content(p, p->text.size);
    if (p->at_first) return scan_first(p, at_end, more);
    if (p->may_be_bare && blanks < p->text.size && p->text.data[blanks] == '{')
        return begin_body(p, blanks, 0);
    for (size_t at = 0; at < p->text.size; at++) {
        bool part = false, longer = false;
        const char *begin = marker_at(p, p->format->begins, at, &part);
        const char *dropped = marker_at(p, p->format->drops, at, &longer);
        part = part || longer;
        // A marker may begin with another one.
        if (begin && (dropped || (longer && !at_end))) begin = NULL;
        size_t n = begin ? strlen(begin) : 0;
        // The name of an element belongs to its body.
        if (begin) return begin_body(p, at, begin[n - 1] == '=' ? 0 : n);
        if (dropped) {
            bool alone = !p->in_content && blanks >= at;
            tn_status status = alone ? TN_OK : give_content(p, at);
            drop(p, strlen(dropped) + (alone ? at : 0));
            return status;
        }
        if (!part || at_end) continue;
        *more = false;
        return p->in_content || blanks < at ? give_content(p, at) : TN_OK;
    }
    *more = false;
    // Blanks are content if something follows, or if they are all there is.
    bool nothing = !p->in_content && blanks == p->text.size && (!at_end || p->has_calls);
    if (nothing && at_end) drop(p, blanks);
    return nothing ? TN_OK : give_content(p, p->text.size);
}

// What looked like a call is content. size: bytes of the body that were read.
static tn_status reject(tn_tool_parser *p, size_t size)
{
    size_t n = p->before + !p->marked, end = TN_MAX(n, TN_MIN(p->before + size, p->text.size));
    bool broken = p->begun || p->n_listed > 0;
    p->n_rejected += size;
    p->in_body = false;
    p->may_be_bare = false;
    if (broken) p->n_broken = TN_MAX(p->n_broken, end);
    return broken && n == 0 ? give_text(p, TN_TOOL_BROKEN, "", 0) : give_content(p, n);
}

static tn_status read_body(tn_tool_parser *p, bool at_end, bool *more)
{
    tn_arena arena;
    tn_arena_init(&arena, p->ctx);
    tn_tool_body *b = tn_arena_array(&arena, 1, sizeof *b);
    tn_status status = b ? give_stream(p) : TN_ERR_MEMORY;
    *more = false;
    if (status == TN_OK) {
        *b = (tn_tool_body){.arena = &arena,
                            .tools = p->tools,
                            .format = p->format,
                            .at_end = at_end,
                            .single = p->streams,
                            .in_list = p->in_list,
                            .n_listed = p->n_listed};
        tn_tool_verdict v = tn_tool_body_read(b, p->text.data + p->before, p->text.size - p->before);
        if (v == TN_TOOL_NO_MEMORY) status = TN_ERR_MEMORY;
        p->open = v == TN_TOOL_OPEN;
        p->n_read = p->text.size;
        *more = v == TN_TOOL_DONE || v == TN_TOOL_NO_CALL || (v == TN_TOOL_MORE && at_end);
        if (v == TN_TOOL_DONE)
            status = give_calls(p, b);
        else if (*more)
            status = reject(p, v == TN_TOOL_MORE ? p->text.size : b->size);
    }
    tn_arena_fini(&arena);
    return status;
}

// A body is complete behind one of these bytes only; a long one is not read again for each piece. A short one
// is, where text that is no call may look like the beginning of one.
static bool may_be_complete(const tn_tool_parser *p, const char *text, size_t n)
{
    enum { SHORT = 2 * TN_TOOL_NAME_MAX };
    if (p->format->plain && p->text.size < SHORT) return true;
    for (size_t i = 0; i < n; i++)
        if (text[i] && strchr(p->format->python ? "}]>`)" : "}]>`", text[i])) return true;
    return false;
}

// A body of this size is read again only when it has grown by an eighth, or at the end: a call is found a
// little later, but hostile text does not take time by the square of its length.
static bool is_early(const tn_tool_parser *p)
{
    enum { LONG = 64 << 10 };
    return p->text.size > LONG && p->text.size < p->n_read + p->n_read / 8;
}

static tn_status run(tn_tool_parser *p, const char *text, size_t n, bool at_end)
{
    p->n_events = 0;
    tn_strbuf_clear(&p->out);
    tn_strbuf_append(&p->out, "", 1); // so that no place is 0
    tn_strbuf_append(&p->text, text, n);
    tn_status status = p->text.status != TN_OK ? p->text.status : p->out.status;
    bool more = !p->in_body || at_end || ((p->open || may_be_complete(p, text, n)) && !is_early(p));
    if (status == TN_OK && !more) status = give_stream(p);
    while (status == TN_OK && more && p->text.size > 0)
        status = p->in_body ? read_body(p, at_end, &more) : scan(p, at_end, &more);
    return status;
}

static tn_status give(tn_tool_parser *p, tn_status status, const tn_tool_event *const **events,
                      int32_t *n_events)
{
    *n_events = 0;
    p->failed |= status != TN_OK;
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < p->n_events; i++) {
        const held_event *h = &p->held[i];
        p->events[i] = (tn_tool_event){.struct_size = sizeof p->events[i],
                                       .kind = h->kind,
                                       .text = p->out.data + h->text,
                                       .n_text = h->n_text};
        p->list[i] = &p->events[i];
        if (h->name) p->events[i].name = p->out.data + h->name;
        if (h->id) p->events[i].id = p->out.data + h->id;
    }
    *events = p->list;
    *n_events = p->n_events;
    return TN_OK;
}

tn_status tn_tool_parser_feed(tn_tool_parser *p, const char *text, size_t n,
                              const tn_tool_event *const **events, int32_t *n_events)
{
    TN_NEED(NULL, p);
    if (n > 0) TN_NEED(p->ctx, text);
    TN_NEED(p->ctx, events);
    TN_NEED(p->ctx, n_events);
    *n_events = 0;
    if (p->failed) return tn_fail(p->ctx, TN_ERR_STATE, "tools: the parser has failed before");
    return give(p, run(p, text, n, false), events, n_events);
}

tn_status tn_tool_parser_end(tn_tool_parser *p, const tn_tool_event *const **events, int32_t *n_events)
{
    TN_NEED(NULL, p);
    TN_NEED(p->ctx, events);
    TN_NEED(p->ctx, n_events);
    *n_events = 0;
    if (p->failed) return tn_fail(p->ctx, TN_ERR_STATE, "tools: the parser has failed before");
    tn_status status = give(p, run(p, "", 0, true), events, n_events);
    if (status == TN_OK) start_turn(p);
    return status;
}
