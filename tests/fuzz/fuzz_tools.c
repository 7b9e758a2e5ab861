// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools in any bytes: the same content and calls as a whole, in pieces, and byte by byte; arguments
// are JSON objects; nothing leaks.
//     clang: -fsanitize=fuzzer; otherwise fuzz_tools SECONDS [SEED] makes inputs of words of all formats
#include "core/strbuf.h"
#include "models/text/grammar/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tools.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const formats[] = {"hermes",  "deepseek", "kimi",    "command-r", "mistral",
                                      "granite", "llama",    "harmony", "lfm2",      "functionary"};

static void put(tn_context *ctx, tn_strbuf *out, const tn_tool_event *const *events, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const tn_tool_event *e = events[i];
        if (e->kind == TN_TOOL_CALL) {
            tn_arena arena;
            const tn_json *value;
            tn_arena_init(&arena, ctx);
            if (tn_json_read(&arena, "arguments", e->text, e->n_text, &value) != TN_OK) abort();
            if (value->kind != TN_JSON_OBJECT) abort();
            tn_arena_fini(&arena);
            tn_strbuf_printf(out, "\n[%s %s ", e->name, e->id ? e->id : "-");
        }
        tn_strbuf_append(out, e->text, e->n_text);
    }
}

static void run(tn_context *ctx, const char *format, const char *text, size_t n, size_t each, tn_strbuf *out)
{
    tn_tool_config c;
    tn_tool_parser *p;
    const tn_tool_event *const *events;
    int32_t n_events;
    tn_tool_config_default(&c);
    c.format = format;
    c.tools =
        "[{\"function\":{\"name\":\"add\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\"}}}}},"
        "{\"function\":{\"name\":\"now\"}}]";
    if (tn_tool_parser_create(ctx, &c, &p) != TN_OK) abort();
    for (size_t at = 0; at < n; at += each) {
        if (tn_tool_parser_feed(p, text + at, n - at < each ? n - at : each, &events, &n_events) != TN_OK)
            abort();
        put(ctx, out, events, n_events);
    }
    if (tn_tool_parser_end(p, &events, &n_events) != TN_OK) abort();
    put(ctx, out, events, n_events);
    tn_tool_parser_destroy(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_context *ctx;
    if (!ctx && tn_context_create(NULL, &ctx) != TN_OK) abort();
    if (size < 2) return 0;
    size_t before = tn_context_memory(ctx), each[] = {size, 1, 1 + data[1] % 13u};
    const char *format = formats[data[0] % (sizeof formats / sizeof *formats)];
    tn_strbuf out[3];
    for (int i = 0; i < 3; i++) {
        tn_strbuf_init(&out[i], ctx);
        run(ctx, format, (const char *)data + 2, size - 2, each[i], &out[i]);
        if (out[i].size != out[0].size ||
            (out[0].size > 0 && memcmp(out[i].data, out[0].data, out[0].size) != 0))
            abort();
    }
    for (int i = 0; i < 3; i++) tn_strbuf_fini(&out[i]);
    if (tn_context_memory(ctx) != before) abort(); // a leak
    return 0;
}

#ifdef TN_FUZZ_STANDALONE
// xorshift64*, Vigna 2016
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

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

int main(int argc, char **argv)
{
    enum { MOST = 4096 };
    int seconds = argc > 1 ? atoi(argv[1]) : 3;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : 88172645463325252u;
    static uint8_t input[MOST];
    long n_runs = 0;
    for (time_t end = time(NULL) + seconds; time(NULL) < end; n_runs++) {
        size_t n = 2;
        input[0] = (uint8_t)(next_random(&state) >> 32);
        input[1] = (uint8_t)(next_random(&state) >> 32);
        for (uint64_t k = (next_random(&state) >> 40) % 24 + 1; k > 0; k--) {
            uint64_t r = next_random(&state) >> 20;
            const char *word = words[r % (sizeof words / sizeof *words)];
            size_t size = strlen(word);
            if (r >> 16 & 1 && (r >> 17) % 8 == 0) size = size / 2; // a part of it
            memcpy(input + n, word, size);
            n += size;
            if ((r >> 24) % 16 == 0) input[n++] = (uint8_t)(r >> 32);
        }
        LLVMFuzzerTestOneInput(input, n);
    }
    printf("%ld inputs passed, 0 failed\n", n_runs);
    return 0;
}
#endif
