// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools in any bytes: the same content and calls as a whole and in pieces of one to thirteen bytes;
// arguments are JSON objects, and the same in pieces; nothing leaks.
#include "core/strbuf.h"
#include "models/text/grammar/json_read.h"
#include "tests/fuzz/fuzz.h"

#include <tenon/tools.h>

static const char *const formats[] = {"hermes",  "deepseek", "kimi",    "command-r", "mistral",
                                      "granite", "llama",    "harmony", "lfm2",      "functionary"};

// What came out of a text.
typedef struct result {
    tn_strbuf text;   // content and calls
    tn_strbuf pieces; // of the arguments of the call that has begun
    bool open;
    int32_t n_calls, n_broken;
} result;

static void check_arguments(tn_context *ctx, const tn_tool_event *e)
{
    tn_arena arena;
    const tn_json *value;
    tn_arena_init(&arena, ctx);
    if (tn_json_read(&arena, "arguments", e->text, e->n_text, &value) != TN_OK) abort();
    if (value->kind != TN_JSON_OBJECT) abort();
    tn_arena_fini(&arena);
}

// A beginning, pieces, and the end with all of them or none.
static void check_stream(result *r, const tn_tool_event *e)
{
    bool piece = e->kind == TN_TOOL_ARGUMENTS, call = e->kind == TN_TOOL_CALL;
    if (r->open ? !piece && !call && e->kind != TN_TOOL_BROKEN : piece || call) abort();
    if (piece) tn_strbuf_append(&r->pieces, e->text, e->n_text);
    if (call && (r->pieces.size != e->n_text || memcmp(r->pieces.data, e->text, e->n_text) != 0)) abort();
    r->open = piece || e->kind == TN_TOOL_BEGIN;
    if (!r->open) tn_strbuf_clear(&r->pieces);
}

static void put(tn_context *ctx, result *r, bool streams, const tn_tool_event *const *events, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const tn_tool_event *e = events[i];
        if (streams) check_stream(r, e);
        r->n_calls += e->kind == TN_TOOL_CALL;
        r->n_broken += e->kind == TN_TOOL_BROKEN;
        if (e->kind == TN_TOOL_BEGIN || e->kind == TN_TOOL_ARGUMENTS) continue;
        if (e->kind == TN_TOOL_CALL) {
            check_arguments(ctx, e);
            tn_strbuf_printf(&r->text, "\n[%s %s ", e->name, e->id ? e->id : "-");
        }
        tn_strbuf_append(&r->text, e->text, e->n_text);
    }
}

static void run(tn_context *ctx, const char *format, bool streams, const char *text, size_t n, size_t each,
                result *r)
{
    tn_tool_config c;
    tn_tool_parser *p;
    const tn_tool_event *const *events;
    int32_t n_events;
    tn_tool_config_default(&c);
    c.format = format;
    c.stream_arguments = streams;
    c.tools =
        "[{\"function\":{\"name\":\"add\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\"}}}}},"
        "{\"function\":{\"name\":\"now\"}}]";
    if (tn_tool_parser_create(ctx, &c, &p) != TN_OK) abort();
    for (size_t at = 0; at < n; at += each) {
        if (tn_tool_parser_feed(p, text + at, n - at < each ? n - at : each, &events, &n_events) != TN_OK)
            abort();
        put(ctx, r, streams, events, n_events);
    }
    if (tn_tool_parser_end(p, &events, &n_events) != TN_OK) abort();
    put(ctx, r, streams, events, n_events);
    if (r->open) abort();
    tn_tool_parser_destroy(&p);
}

static bool is_same(const result *a, const result *b)
{
    return a->text.size == b->text.size &&
           (a->text.size == 0 || memcmp(a->text.data, b->text.data, a->text.size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_context *ctx;
    if (!ctx) ctx = fuzz_context(NULL);
    if (size < 2) return 0;
    fuzz_cost cost = fuzz_begin(ctx);
    size_t each[] = {size, 1 + data[1] % 13u};
    const char *format = formats[data[0] % (sizeof formats / sizeof *formats)];
    result out[4] = {{.open = false}};
    for (int i = 0; i < 4; i++) {
        tn_strbuf_init(&out[i].text, ctx);
        tn_strbuf_init(&out[i].pieces, ctx);
        run(ctx, format, i >= 2, (const char *)data + 2, size - 2, each[i % 2], &out[i]);
        if (!is_same(&out[i], &out[i < 2 ? 0 : 2])) abort();
    }
    // With arguments as they come the same calls are found, and more of them only in a list that is none.
    if (out[2].n_calls < out[0].n_calls) abort();
    if (out[2].n_calls == out[0].n_calls && !is_same(&out[0], &out[2])) abort();
    for (int i = 0; i < 4; i++) {
        tn_strbuf_fini(&out[i].text);
        tn_strbuf_fini(&out[i].pieces);
    }
    fuzz_end(&cost, size);
    return 0;
}

// --- inputs ------------------------------------------------------------------------------------------------

static const char *const words[] = {
    "<tool_call>",
    "</tool_call>",
    "<function=add>",
    "<function=",
    "</function>",
    "<parameter=a>",
    "</parameter>",
    "{\"name\":\"add\",\"arguments\":{\"a\":1}}",
    "{\"name\":\"now\"}",
    "{\"name\":\"no\"}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "\"name\"",
    "\"arguments\"",
    "{\"name\":\"add\",\"parameters\":{\"a\":",
    "\"id\":\"x\",",
    "}}",
    "]}",
    "\"now\"",
    " ",
    "\n",
    ";",
    "text",
    "<",
    "`",
    "```json\n",
    "```",
    "{}",
    "<|python_tag|>",
    "<|eom_id|>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "now",
    "add",
    "function",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "functions.now:0",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    "<|tool_call|>",
    "<|channel|>commentary to=functions.",
    "<|start|>assistant",
    " to=functions.",
    "<|channel|>",
    "commentary",
    "<|constrain|>json",
    "<|message|>",
    "<|call|>",
    "<|end|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "add(",
    "now()",
    "a=",
    "(",
    ")",
    "'",
    "\"\"\"",
    "'x'",
    "True",
    "None",
    "-1.5",
    "\\u00e9",
    ">>>",
    "all\n",
    "add\n",
};

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = 2;
    if (max < 2) return 0;
    out[0] = (uint8_t)(fuzz_random(state) >> 32);
    out[1] = (uint8_t)(fuzz_random(state) >> 32);
    for (uint64_t k = (fuzz_random(state) >> 40) % 24 + 1; k > 0; k--) {
        uint64_t r = fuzz_random(state) >> 20;
        const char *word = words[r % TN_COUNT(words)];
        size_t before = n;
        n = fuzz_put(out, n, max, word);
        if (r >> 16 & 1 && (r >> 17) % 8 == 0) n -= (n - before + 1) / 2; // a part of it
        if ((r >> 24) % 16 == 0 && n < max) out[n++] = (uint8_t)(r >> 32);
    }
    return n;
}

#include "tests/fuzz/fuzz_main.h"
