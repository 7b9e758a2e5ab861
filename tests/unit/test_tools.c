// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools in texts of every format: the same content and the same calls however the text is cut.
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <string.h>
#include <tenon/tools.h>

// What comes out of a text: "content" and, for each call, "\n[NAME ID ARGUMENTS]".
typedef struct row {
    const char *format, *text, *want;
} row;

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":"
                            "\"object\",\"properties\":"
                            "{\"a\":{\"type\":\"number\"},\"note\":{\"type\":\"string\"}}}}},"
                            "{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]";

static const row rows[] = {
    {"hermes", "Hello <tool world", "Hello <tool world"},
    {"hermes", " \n", " \n"},
    {"hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, \"}\"]}}\n</tool_call>",
     "\n[add - {\"a\": 1, \"b\": [2, \"}\"]}]"},
    {"hermes",
     "Wait. <tool_call>{\"arguments\":{},\"name\":\"now\"}</tool_call>\n<tool_call>{\"name\":\"now\"}",
     "Wait. \n[now - {}]\n[now - {}]"},
    {"hermes", "  <tool_call>{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":2}\"}</tool_call> \n",
     "\n[add - {\"a\":2}]"},
    {"hermes", "<tool_call>{\"name\":\"now\"}</tool_call> and more", "\n[now - {}] and more"},
    {"hermes", "  <tool_call>{\"name\":\"other\"}</tool_call>",
     "  <tool_call>{\"name\":\"other\"}</tool_call>"},
    {"hermes", "<tool_call>{\"name\":\"now\",}</tool_call>", "<tool_call>{\"name\":\"now\",}</tool_call>"},
    {"hermes", "<tool_call>{\"name\":\"now\"", "<tool_call>{\"name\":\"now\""},
    {"hermes", "<tool_call>text <tool_call>{\"name\":\"now\"}</tool_call>", "<tool_call>text \n[now - {}]"},
    {"hermes",
     "<tool_call>\n<function=add>\n<parameter=a>\n12\n</parameter>\n<parameter=note>\n12 "
     "\"x\"\n\n</parameter>\n"
     "</function>\n</tool_call>",
     "\n[add - {\"a\":12,\"note\":\"12 \\\"x\\\"\\n\"}]"},
    {"hermes", "Now:\n<function=now>\n</function>", "Now:\n\n[now - {}]"},
    {"hermes", "  <function=other></function>", "  <function=other></function>"},
    {"llama", "{\"name\": \"add\", \"parameters\": {\"a\": 1}}", "\n[add - {\"a\": 1}]"},
    {"llama", " {\"name\":\"now\"}; {\"name\":\"add\",\"parameters\":{\"a\":3}}",
     "\n[now - {}]\n[add - {\"a\":3}]"},
    {"llama", " {\"answer\": 42}", " {\"answer\": 42}"},
    {"llama", "{\"name\": \"now\"", "{\"name\": \"now\""},
    {"llama", "It is {\"name\":\"now\"}", "It is {\"name\":\"now\"}"},
    {"llama", "<|python_tag|>{\"name\":\"now\",\"parameters\":null}<|eom_id|>", "\n[now - {}]"},
    {"llama", "<|python_tag|>print(1)", "<|python_tag|>print(1)"},
    {"mistral", "[TOOL_CALLS][{\"name\":\"now\",\"arguments\":{},\"id\":\"abc123def\"},{\"name\":\"add\"}]",
     "\n[now abc123def {}]\n[add - {}]"},
    {"mistral", "Yes[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]now[CALL_ID]x1[ARGS]{}",
     "Yes\n[add - {\"a\": 1}]\n[now x1 {}]"},
    {"mistral", "[TOOL_CALLS][]", "[TOOL_CALLS][]"},
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 5}\n```"
     "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "\n[add - {\"a\": 5}]\n[now - {}]"},
    {"kimi",
     "Well. <|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>"
     "{\"a\":1}<|tool_call_end|><|tool_calls_section_end|>",
     "Well. \n[add functions.add:0 {\"a\":1}]"},
    {"command-r",
     "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"add\", \"parameters\": {\"a\": 1}}]"
     "<|END_ACTION|>",
     "\n[add 0 {\"a\": 1}]"},
    {"granite", "<|tool_call|>[{\"name\":\"now\",\"arguments\":{}}]", "\n[now - {}]"},
};

typedef struct result {
    char text[4096];
    size_t n;
} result;

static void put(result *r, const char *text, size_t n)
{
    if (r->n + n >= sizeof r->text) abort();
    memcpy(r->text + r->n, text, n);
    r->text[r->n += n] = 0;
}

static void put_events(result *r, const tn_tool_event *events, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const tn_tool_event *e = &events[i];
        if (!TEST_CHECK(strlen(e->text) == e->n_text && (e->kind == TN_TOOL_CALL) == (e->name != NULL)))
            printf("    kind %d, %zu bytes of %s\n", e->kind, e->n_text, e->text);
        if (e->kind == TN_TOOL_CALL) {
            put(r, "\n[", 2);
            put(r, e->name, strlen(e->name));
            put(r, " ", 1);
            put(r, e->id ? e->id : "-", e->id ? strlen(e->id) : 1);
            put(r, " ", 1);
        }
        put(r, e->text, e->n_text);
        if (e->kind == TN_TOOL_CALL) put(r, "]", 1);
    }
}

// The text in pieces: the first `cut` bytes, then `each` at a time.
static tn_status run(tn_tool_parser *p, const char *text, size_t n, size_t cut, size_t each, result *r)
{
    const tn_tool_event *events;
    int32_t n_events;
    r->n = 0;
    r->text[0] = 0;
    for (size_t at = 0; at < n;) {
        size_t k = at == 0 && cut > 0 ? cut : each;
        if (k > n - at) k = n - at;
        tn_status status = tn_tool_parser_feed(p, text + at, k, &events, &n_events);
        if (status != TN_OK) return status;
        put_events(r, events, n_events);
        at += k;
    }
    tn_status status = tn_tool_parser_end(p, &events, &n_events);
    if (status == TN_OK) put_events(r, events, n_events);
    return status;
}

static tn_tool_parser *parser(tn_context *ctx, const char *format)
{
    tn_tool_config c;
    tn_tool_parser *p = NULL;
    tn_tool_config_default(&c);
    c.format = format;
    c.tools = tools;
    if (!TEST_CHECK_STATUS(tn_tool_parser_create(ctx, &c, &p), TN_OK)) abort();
    return p;
}

static void check_row(tn_context *ctx, const row *w)
{
    size_t n = strlen(w->text);
    tn_tool_parser *p = parser(ctx, w->format);
    result r, cut;
    TEST_CHECK_STATUS(run(p, w->text, n, 0, n, &r), TN_OK);
    if (!TEST_CHECK(strcmp(r.text, w->want) == 0))
        printf("    %s\n    gave %s\n    not %s\n", w->text, r.text, w->want);
    for (size_t i = 1; i < n; i++) {
        TEST_CHECK_STATUS(run(p, w->text, n, i, n, &cut), TN_OK);
        if (!TEST_CHECK(strcmp(cut.text, r.text) == 0)) printf("    cut at %zu: %s\n", i, cut.text);
        TEST_CHECK_STATUS(run(p, w->text, i, 0, n, &cut), TN_OK); // its beginning alone
        result bytes;
        TEST_CHECK_STATUS(run(p, w->text, i, 0, 1, &bytes), TN_OK);
        if (!TEST_CHECK(strcmp(cut.text, bytes.text) == 0)) printf("    ended at %zu: %s\n", i, cut.text);
    }
    TEST_CHECK_STATUS(run(p, w->text, n, 0, 1, &cut), TN_OK);
    if (!TEST_CHECK(strcmp(cut.text, r.text) == 0)) printf("    byte by byte: %s\n", cut.text);
    tn_tool_parser_destroy(&p);
}

// Every allocation of a parser fails once.
static void check_memory(tn_context *ctx, counting *c, const row *w)
{
    long live = c->live;
    for (long k = 0;; k++) {
        tn_tool_config config;
        tn_tool_parser *p = NULL;
        result r = {.n = 0};
        tn_tool_config_default(&config);
        config.format = w->format;
        config.tools = tools;
        c->fail_from = c->calls + k, c->fail_to = c->fail_from + 1;
        tn_status status = tn_tool_parser_create(ctx, &config, &p);
        if (status == TN_OK) status = run(p, w->text, strlen(w->text), 0, 7, &r);
        bool done = c->calls <= c->fail_from;
        c->fail_from = c->fail_to = 0;
        tn_tool_parser_destroy(&p);
        if (!TEST_CHECK(c->live == live && (status == TN_OK) == done)) break;
        if (done) break;
        TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
    }
}

static void test_refusals(tn_context *ctx)
{
    tn_tool_config c;
    tn_tool_parser *p = NULL;
    tn_tool_config_default(&c);
    c.format = "morse";
    TEST_CHECK_STATUS(tn_tool_parser_create(ctx, &c, &p), TN_ERR_ARG);
    c.format = NULL, c.tools = "{}";
    TEST_CHECK_STATUS(tn_tool_parser_create(ctx, &c, &p), TN_ERR_FORMAT);
    c.tools = "[";
    TEST_CHECK_STATUS(tn_tool_parser_create(ctx, &c, &p), TN_ERR_FORMAT);
    TEST_CHECK(!p);
    TEST_CHECK_STATUS(tn_tool_parser_create(ctx, NULL, &p), TN_OK); // all names
    result r;
    TEST_CHECK_STATUS(run(p, "<tool_call>{\"name\":\"x\"}", 23, 0, 23, &r), TN_OK);
    TEST_CHECK(strcmp(r.text, "\n[x - {}]") == 0);
    tn_tool_parser_destroy(&p);
    TEST_CHECK(!tn_tool_format(NULL) && !tn_tool_format("{{ messages }}"));
    TEST_CHECK(strcmp(tn_tool_format("... '[TOOL_CALLS]' ..."), "mistral") == 0);
    TEST_CHECK(strcmp(tn_tool_format("<tool_call>\\n{\"name\""), "hermes") == 0);
}

int main(void)
{
    counting c;
    tn_context *ctx = counting_context(&c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(ctx, &rows[i]);
        check_memory(ctx, &c, &rows[i]);
    }
    test_refusals(ctx);
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
    return test_done();
}
