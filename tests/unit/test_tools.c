// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools in texts of every format: the same content and the same calls however the text is cut, and
// also when their arguments are given as they come. The grammar of each format allows such calls only, and
// the parser finds them.
#include "models/text/grammar/grammar.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

#include <string.h>
#include <tenon/graph.h>
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
    {"hermes", "<tool_call>{\"index\":1,\"name\":\"now\"}", "\n[now - {}]"},
    {"hermes", "<tool_call>{\"name\":\"\"}", "<tool_call>{\"name\":\"\"}"},
    {"hermes", "<tool_call>{\"name\":7}<tool_call>{\"name\":\"now\"}", "<tool_call>{\"name\":7}\n[now - {}]"},
    {"hermes", "<tool_call>{\"name\":\"now\\u0000\"}", "<tool_call>{\"name\":\"now\\u0000\"}"},
    {"hermes", "<function=add>\n<parameter=>1</parameter></function>",
     "<function=add>\n<parameter=>1</parameter></function>"},
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
    {"harmony", " to=functions.add<|channel|>commentary json<|message|>{\"a\": 1}<|call|>",
     "\n[add - {\"a\": 1}]"},
    {"harmony", "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}",
     "\n[add - {\"a\": 1}]"},
    {"harmony", "<|channel|>analysis to=functions.now code<|message|> {}<|end|>", "\n[now - {}]"},
    {"harmony",
     "Wait.<|start|>assistant<|channel|>commentary to=functions.add "
     "<|constrain|>json<|message|>{\"a\":2}<|call|>"
     "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
     "Wait.\n[add - {\"a\":2}]\n[now - {}]"},
    {"harmony", "<|channel|>commentary to=functions.other json<|message|>{}",
     "<|channel|>commentary to=functions.other json<|message|>{}"},
    {"harmony", "<|channel|>commentary<|message|>I add to=functions.add",
     "<|channel|>commentary<|message|>I add to=functions.add"},
    {"harmony", "<|channel|>commentary to=functions.add<|start|><|message|>{}",
     "<|channel|>commentary to=functions.add<|start|><|message|>{}"},
    {"harmony", "I say to=functions.now <|constrain|>json<|message|>[1]",
     "I say to=functions.now <|constrain|>json<|message|>[1]"},
    {"harmony", "<|channel|>final<|message|>So.", "<|channel|>final<|message|>So."},
    {"lfm2", "<|tool_call_start|>[add(a=1.5, note='it\\'s \"x\"\\n'), now()]<|tool_call_end|>Done.",
     "\n[add - {\"a\":1.5,\"note\":\"it's \\\"x\\\"\\n\"}]\n[now - {}]Done."},
    {"lfm2", "So: <|tool_call_start|>[add(2, \"two\",)]", "So: \n[add - {\"a\":2,\"note\":\"two\"}]"},
    {"lfm2", "<|tool_call_start|>add(a=[1, -.5, (True, None)], b={'k': {}, \"l\": 1_0,},)<|tool_call_end|>",
     "\n[add - {\"a\":[1,-0.5,[true,null]],\"b\":{\"k\":{},\"l\":10}}]"},
    {"lfm2",
     "<|tool_call_start|>[add(note='''a\n''b''', c=\"\", "
     "d='\\x41\\u00e9\\ud83d\\ude00\\ud800\\udc00\\udbff\\udfff\\q\\101', e='é')]",
     "\n[add - {\"note\":\"a\\n''b\",\"c\":\"\",\"d\":\"Aé😀𐀀􏿿\\\\qA\",\"e\":\"é\"}]"},
    {"lfm2", "<|tool_call_start|>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]<|tool_call_end|>",
     "\n[add - {\"a\": 1}]"},
    {"lfm2", "<|tool_call_start|>{\"name\": \"now\"}<|tool_call_end|>", "\n[now - {}]"},
    {"lfm2", "<|tool_call_start|>[other(a=1)]<|tool_call_end|>",
     "<|tool_call_start|>[other(a=1)]<|tool_call_end|>"},
    {"lfm2", "<|tool_call_start|>[add(a='b\\\nc')]", "\n[add - {\"a\":\"bc\"}]"},
    {"lfm2", "<|tool_call_start|>[add(a='\\060\\0601')]", "\n[add - {\"a\":\"001\"}]"},
    {"lfm2", "<|tool_call_start|>[add(a=1E+5)]", "\n[add - {\"a\":1E+5}]"},
    {"lfm2", "<|tool_call_start|>[add(a=2e-7)]", "\n[add - {\"a\":2e-7}]"},
    {"lfm2", "<|tool_call_start|>[add(a=x)]", "<|tool_call_start|>[add(a=x)]"},
    {"lfm2", "<|tool_call_start|>[add(a=012)]", "<|tool_call_start|>[add(a=012)]"},
    {"lfm2", "<|tool_call_start|>[add(a=1", "<|tool_call_start|>[add(a=1"},
    {"lfm2", "<|tool_call_start|>[]", "<|tool_call_start|>[]"},
    {"lfm2", "<|tool_call_start|>[now(1)]", "<|tool_call_start|>[now(1)]"},
    {"functionary", "all\nHello >> world", "Hello >> world"},
    {"functionary", "add\n{\"a\": 1}", "\n[add - {\"a\": 1}]"},
    {"functionary", "all\nOne.\n>>>add\n{\"a\":1}\n>>>now\n{}", "One.\n\n[add - {\"a\":1}]\n[now - {}]"},
    {"functionary", "now\n{}>>>all\nThat is all", "\n[now - {}]That is all"},
    {"functionary", "allow me\n", "allow me\n"},
    {"functionary", "Hello\nworld >>> 1 + 1 >>>all", "Hello\nworld >>> 1 + 1 >>>all"},
    {"functionary", "python\nprint(1)", "python\nprint(1)"},
    {"functionary", "al", "al"},
};

// Texts byte by byte, with arguments as they come. What comes out: content, "<" and ">" around what is
// broken, and for each call "(NAME ID", then "|" and a piece of the arguments each time, "=ID" where the end
// has an id, and ")". A piece is as long as what is given at once.
static const row streamed[] = {
    {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>",
     "(add -|{|\"|a|\"|:| |1|})"},
    {"hermes", "<tool_call>{\"arguments\":{\"a\":[]},\"name\":\"add\"}", "(add -|{\"a\":[]})"},
    {"hermes", "<tool_call>{\"name\":\"now\"}", "(now -|{})"},
    {"hermes", "<tool_call>{\"a\":1,\"b\":true ,\"name\":\"add\",\"arguments\":{}}", "(add -|{|})"},
    {"hermes", "<tool_call>{\"parameters\":{},\"arguments\":{\"a\":1},\"name\":\"now\"}", "(now -|{})"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":2}\"}", "(add -|{\"a\":2})"},
    {"hermes", "<function=add>\n<parameter=a>1</parameter></function>Yes", "(add -|{\"a\":1})Yes"},
    {"hermes", "I <tool_call>{\"name\":\"add\",\"arguments\":{\"a",
     "I (add -|{|\"|a<<tool_call>{\"name\":\"add\",\"arguments\":{\"a>"},
    {"hermes", "<tool_call>{\"name\":\"now\",}</tool_call> No.",
     "(now -<<tool_call>{\"name\":\"now\",}></tool_call> No."},
    {"hermes", "<tool_call>{\"name\":\"now\",<tool_call>{\"name\":\"now\"}</tool_call>",
     "(now -<<tool_call>{\"name\":\"now\",>(now -|{})"},
    {"hermes", "<tool_call>{\"name\":\"no\",\"arguments\":{}}",
     "<tool_call>{\"name\":\"no\",\"arguments\":{}}"},
    {"mistral", "[TOOL_CALLS][{\"name\":\"now\",\"arguments\":{},\"id\":\"abc\"}, {\"name\":\"add\"}]",
     "(now -|{|}=abc)(add -|{})"},
    {"mistral", "[TOOL_CALLS][{\"id\":\"abc\",\"name\":\"now\",\"arguments\":{}} {\"name\":\"now\"}]",
     "(now abc|{|}=abc)< >{\"name\":\"now\"}]"},
    {"mistral", "[TOOL_CALLS][{\"name\":\"now\"}, {\"name\":\"ad", "(now -|{})<, {\"name\":\"ad>"},
    {"mistral", "[TOOL_CALLS]now[CALL_ID]x1[ARGS]{}", "(now x1|{|}=x1)"},
    {"kimi", "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}",
     "(now functions.now:0|{|}=functions.now:0)"},
    {"deepseek", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```", "(now -|{|})"},
    {"harmony", "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}", "(now -|{|})"},
    {"llama", "{\"name\": \"now\", \"parameters\": {}}", "(now -|{|})"},
    {"functionary", "now\n{}>>>now\nwhat", "(now -|{|})>>>now\nwhat"},
    {"functionary", "now\n{]", "(now -|{|]<now\n{]>"},
    {"lfm2", "<|tool_call_start|>[add(a=1), now()]", "(add -|{\"a\":1})(now -|{})"},
};

typedef struct result {
    char text[4096];
    size_t n;
    bool streams;      // with stream_arguments
    bool detail;       // then: as in `streamed`
    bool open, broken; // a call has begun; the last text is that of a broken one
    char id[64];       // of the call, where it began
    char name[64];
    char pieces[1024]; // of its arguments
    size_t n_pieces;   // bytes
    int32_t n_calls, n_broken;
} result;

static void put(result *r, const char *text, size_t n)
{
    if (r->n + n >= sizeof r->text) abort();
    memcpy(r->text + r->n, text, n);
    r->text[r->n += n] = 0;
}

static void put_word(result *r, const char *text)
{
    put(r, text, strlen(text));
}

// An event with stream_arguments: the order is right, and pieces are together the arguments of the call.
static void check_order(result *r, const tn_tool_event *e)
{
    bool piece = e->kind == TN_TOOL_ARGUMENTS, call = e->kind == TN_TOOL_CALL;
    TEST_CHECK(r->open == (piece || call) || (r->open && e->kind == TN_TOOL_BROKEN));
    if (e->kind == TN_TOOL_BEGIN) {
        TEST_CHECK(e->n_text == 0 && e->name);
        snprintf(r->name, sizeof r->name, "%s", e->name);
        snprintf(r->id, sizeof r->id, "%s", e->id ? e->id : "");
        r->n_pieces = 0;
    } else if (piece) {
        if (r->n_pieces + e->n_text > sizeof r->pieces) abort();
        TEST_CHECK(e->n_text > 0 && !e->name);
        memcpy(r->pieces + r->n_pieces, e->text, e->n_text);
        r->n_pieces += e->n_text;
    } else if (call) {
        TEST_CHECK(strcmp(r->name, e->name) == 0 && (!r->id[0] || (e->id && strcmp(r->id, e->id) == 0)));
        TEST_CHECK(r->n_pieces == e->n_text && memcmp(r->pieces, e->text, e->n_text) == 0);
    }
    r->open = e->kind == TN_TOOL_BEGIN || piece;
}

static void put_detail(result *r, const tn_tool_event *e)
{
    bool broken = e->kind == TN_TOOL_BROKEN;
    if (broken != r->broken) put_word(r, broken ? "<" : ">");
    r->broken = broken;
    if (e->kind == TN_TOOL_BEGIN) {
        put_word(r, "(");
        put_word(r, e->name);
        put_word(r, " ");
        put_word(r, e->id ? e->id : "-");
    } else if (e->kind == TN_TOOL_CALL) {
        put_word(r, e->id ? "=" : "");
        put_word(r, e->id ? e->id : "");
        put_word(r, ")");
    } else {
        put_word(r, e->kind == TN_TOOL_ARGUMENTS ? "|" : "");
        put(r, e->text, e->n_text);
    }
}

static void put_events(result *r, const tn_tool_event *const *events, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const tn_tool_event *e = events[i];
        bool named = e->kind == TN_TOOL_CALL || e->kind == TN_TOOL_BEGIN;
        if (!TEST_CHECK(strlen(e->text) == e->n_text && named == (e->name != NULL)))
            printf("    kind %d, %zu bytes of %s\n", e->kind, e->n_text, e->text);
        r->n_calls += e->kind == TN_TOOL_CALL;
        r->n_broken += e->kind == TN_TOOL_BROKEN;
        if (r->streams) check_order(r, e);
        if (r->detail) put_detail(r, e);
        if (r->detail || e->kind == TN_TOOL_BEGIN || e->kind == TN_TOOL_ARGUMENTS) continue;
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
    const tn_tool_event *const *events;
    int32_t n_events;
    *r = (result){.streams = r->streams, .detail = r->detail};
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
    if (status == TN_OK && r->broken) put_word(r, ">");
    TEST_CHECK(status != TN_OK || !r->open);
    return status;
}

static tn_tool_parser *parser(tn_context *ctx, const char *format, bool streams)
{
    tn_tool_config c;
    tn_tool_parser *p = NULL;
    tn_tool_config_default(&c);
    c.format = format;
    c.tools = tools;
    c.stream_arguments = streams;
    if (!TEST_CHECK_STATUS(tn_tool_parser_create(ctx, &c, &p), TN_OK)) abort();
    return p;
}

// The text in two pieces at every byte, byte by byte, and every beginning of it. `plain`: a parser of calls
// that come whole, which gives the same but for calls of a list that is cut off.
static void check_cuts(tn_tool_parser *p, tn_tool_parser *plain, const row *w, const result *want)
{
    size_t n = strlen(w->text);
    result cut = {.streams = want->streams}, bytes = cut, whole = {.n = 0};
    for (size_t i = 1; i < n; i++) {
        TEST_CHECK_STATUS(run(p, w->text, n, i, n, &cut), TN_OK);
        if (!TEST_CHECK(strcmp(cut.text, want->text) == 0)) printf("    cut at %zu: %s\n", i, cut.text);
        TEST_CHECK_STATUS(run(p, w->text, i, 0, n, &cut), TN_OK); // its beginning alone
        TEST_CHECK_STATUS(run(p, w->text, i, 0, 1, &bytes), TN_OK);
        if (!TEST_CHECK(strcmp(cut.text, bytes.text) == 0)) printf("    ended at %zu: %s\n", i, cut.text);
        TEST_CHECK_STATUS(run(plain, w->text, i, 0, n, &whole), TN_OK);
        bool same = strcmp(cut.text, whole.text) == 0;
        if (!TEST_CHECK(same || cut.n_calls > whole.n_calls))
            printf("    ended at %zu: %s, whole %s\n", i, cut.text, whole.text);
    }
    TEST_CHECK_STATUS(run(p, w->text, n, 0, 1, &cut), TN_OK);
    if (!TEST_CHECK(strcmp(cut.text, want->text) == 0)) printf("    byte by byte: %s\n", cut.text);
}

static void check_row(tn_context *ctx, const row *w)
{
    size_t n = strlen(w->text);
    tn_tool_parser *plain = parser(ctx, w->format, false);
    for (int streams = 0; streams < 2; streams++) {
        tn_tool_parser *p = parser(ctx, w->format, streams);
        result r = {.streams = streams};
        TEST_CHECK_STATUS(run(p, w->text, n, 0, n, &r), TN_OK);
        if (!TEST_CHECK(strcmp(r.text, w->want) == 0))
            printf("    %s\n    gave %s\n    not %s\n", w->text, r.text, w->want);
        check_cuts(p, plain, w, &r);
        tn_tool_parser_destroy(&p);
    }
    tn_tool_parser_destroy(&plain);
}

static void check_stream(tn_context *ctx, const row *w)
{
    result r = {.streams = true, .detail = true};
    tn_tool_parser *p = parser(ctx, w->format, true);
    TEST_CHECK_STATUS(run(p, w->text, strlen(w->text), 0, 1, &r), TN_OK);
    if (!TEST_CHECK(strcmp(r.text, w->want) == 0))
        printf("    %s\n    gave %s\n    not %s\n", w->text, r.text, w->want);
    tn_tool_parser_destroy(&p);
}

// Every allocation of a parser fails once.
static void check_memory(tn_context *ctx, counting *c, const row *w, bool streams)
{
    long live = c->live;
    for (long k = 0;; k++) {
        tn_tool_config config;
        tn_tool_parser *p = NULL;
        result r = {.streams = streams};
        tn_tool_config_default(&config);
        config.format = w->format;
        config.tools = tools;
        config.stream_arguments = streams;
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
    result r = {.n = 0};
    TEST_CHECK_STATUS(run(p, "<tool_call>{\"name\":\"x\"}", 23, 0, 23, &r), TN_OK);
    TEST_CHECK(strcmp(r.text, "\n[x - {}]") == 0);
    tn_tool_parser_destroy(&p);
    TEST_CHECK(!tn_tool_format(NULL) && !tn_tool_format("{{ messages }}"));
    TEST_CHECK(strcmp(tn_tool_format("... '[TOOL_CALLS]' ..."), "mistral") == 0);
    TEST_CHECK(strcmp(tn_tool_format("<tool_call>\\n{\"name\""), "hermes") == 0);
}

// --- grammars --------------------------------------------------------------------------------------------

// Texts of two calls in each format, as its grammar has them.
static const row written[] = {
    {"hermes",
     "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\":1}}\n</tool_call>\n<tool_call>\n{\"name\": "
     "\"now\", "
     "\"arguments\": {}}\n</tool_call>",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\":1}\n```"
     "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<"
     "｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"kimi",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{\"a\":1}"
     "<|tool_call_end|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
     "<|tool_calls_section_end|>",
     "\n[add functions.add:0 {\"a\":1}]\n[now functions.now:0 {}]"},
    {"command-r",
     "<|START_ACTION|>[{\"tool_name\": \"add\", \"parameters\": {\"a\":1}}, {\"tool_name\": \"now\", "
     "\"parameters\": {}}]<|END_ACTION|>",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"mistral",
     "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\":1}}, {\"name\": \"now\", \"arguments\": {}}]",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"granite",
     "<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\":1}}, {\"name\": \"now\", \"arguments\": {}}]",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"llama", "{\"name\": \"add\", \"parameters\": {\"a\":1}}; {\"name\": \"now\", \"parameters\": {}}",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"harmony",
     "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\":1}<|call|><|start|>assistant"
     "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"lfm2",
     "<|tool_call_start|>[{\"name\": \"add\", \"arguments\": {\"a\":1}}, {\"name\": \"now\", "
     "\"arguments\": {}}]<|tool_call_end|>",
     "\n[add - {\"a\":1}]\n[now - {}]"},
    {"functionary", "add\n{\"a\":1}>>>now\n{}", "\n[add - {\"a\":1}]\n[now - {}]"},
};

// What the grammar of the config makes of a text: 1 complete, 0 the beginning of one, -1 none.
static int32_t match(tn_context *ctx, const tn_vocab_trie *trie, const tn_tool_grammar_config *c,
                     const char *text)
{
    char *gbnf = NULL, message[300];
    tn_grammar *g = NULL;
    tn_matcher *m = NULL;
    int32_t got = -9;
    tn_status status = tn_tool_grammar(ctx, c, &gbnf);
    if (status == TN_OK) status = tn_grammar_create(ctx, "grammar", gbnf, strlen(gbnf), &g);
    if (status == TN_OK) status = tn_matcher_create(ctx, g, trie, 10, &m);
    if (status == TN_OK) status = tn_matcher_try(m, text, strlen(text), &got);
    tn_context_error(ctx, message, sizeof message);
    if (!TEST_CHECK_STATUS(status, TN_OK)) printf("    %s\n%s\n", message, gbnf ? gbnf : "");
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
    tn_text_free(ctx, gbnf);
    return got;
}

static void check_written(tn_context *ctx, const tn_vocab_trie *trie, const row *w)
{
    tn_tool_grammar_config c;
    tn_tool_grammar_config_default(&c);
    char text[2048];
    c.format = w->format;
    c.tools = tools;
    if (!TEST_CHECK(match(ctx, trie, &c, w->text) == 1)) printf("    %s\n", w->text);
    TEST_CHECK(match(ctx, trie, &c, "Hello") == -1);
    c.text = 1;
    // There a turn begins behind the marker of a call.
    const char *plain = strcmp(w->format, "functionary") == 0 ? "all\n" : "", *marker = *plain ? ">>>" : "";
    snprintf(text, sizeof text, "%sHello < <| [ <t</x> <<|tool >>", plain);
    TEST_CHECK(match(ctx, trie, &c, text) == 1);
    if (!TEST_CHECK(match(ctx, trie, &c, w->text) == 1)) printf("    %s with text\n", w->text);
    snprintf(text, sizeof text, "%sWell: <%s%s", plain, marker, w->text);
    if (strcmp(w->format, "llama") != 0) TEST_CHECK(match(ctx, trie, &c, text) == 1);
    c.text = 0;
    c.json_schema = "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}";
    TEST_CHECK(match(ctx, trie, &c, w->text) == 1);
    snprintf(text, sizeof text, "%s{\"x\":1}", plain);
    TEST_CHECK(match(ctx, trie, &c, text) == 1);
    c.json_schema = NULL;
    c.single = 1;
    c.in_thought = 1;
    TEST_CHECK(match(ctx, trie, &c, w->text) == 0); // all of it a thought
    snprintf(text, sizeof text, "So <this> </</think>\n\n%s", w->text);
    TEST_CHECK(match(ctx, trie, &c, text) == -1); // two calls
    c.single = 0;
    TEST_CHECK(match(ctx, trie, &c, text) == 1);
    tn_tool_parser *p = parser(ctx, w->format, false);
    result r = {.n = 0};
    TEST_CHECK_STATUS(run(p, w->text, strlen(w->text), 0, 1, &r), TN_OK);
    if (!TEST_CHECK(strcmp(r.text, w->want) == 0)) printf("    %s\n    gave %s\n", w->text, r.text);
    tn_tool_parser_destroy(&p);
}

// Answers that follow a schema, with thoughts and without tools.
static void test_thoughts(tn_context *ctx, const tn_vocab_trie *trie)
{
    tn_tool_grammar_config c;
    tn_tool_grammar_config_default(&c);
    c.json_schema = "{\"enum\":[1]}";
    TEST_CHECK(match(ctx, trie, &c, "1") == 1);
    TEST_CHECK(match(ctx, trie, &c, "<think>") == -1);
    c.may_think = 1;
    TEST_CHECK(match(ctx, trie, &c, "1") == 1);
    TEST_CHECK(match(ctx, trie, &c, "<think>1") == 0);
    TEST_CHECK(match(ctx, trie, &c, "<think>a < b</think>\n\n1") == 1);
    TEST_CHECK(match(ctx, trie, &c, "<think>a</think>2") == -1);
    TEST_CHECK(match(ctx, trie, &c, "a</think>1") == -1);
    c.in_thought = 1;
    TEST_CHECK(match(ctx, trie, &c, "1") == 0);
    TEST_CHECK(match(ctx, trie, &c, "a</think>\n1") == 1);
    TEST_CHECK(match(ctx, trie, &c, "a</think>b") == -1);
    c.in_thought = 0;
    c.tools = tools;
    TEST_CHECK(match(ctx, trie, &c, "<think>a</think>1") == 1);
    TEST_CHECK(match(ctx, trie, &c, "<think>a</think><tool_call>") == 0);
}

// Markers that the parser reads as calls, but under which the grammar has none.
static void test_other_markers(tn_context *ctx, const tn_vocab_trie *trie)
{
    static const struct {
        const char *format, *text;
    } others[] = {
        {"hermes", "I use <function=add>"},
        {"hermes", "<<function=add>"},
        {"deepseek", "<｜tool▁call▁begin｜>function"},
        {"deepseek", "<｜tool▁<｜tool▁call▁begin｜>"},
        {"kimi", "Well <|tool_call_begin|>"},
        {"kimi", "<|tool_calls_section_begin<|tool_call_begin|>"},
        {"llama", "Well <|python_tag|>"},
        {"llama", "<|python_tag|>{"},
        {"llama", " {\"name\": \"other"},
        {"harmony", "<|channel|>commentary to=functions.other"},
        {"harmony", "<|start|>assistant to=functions.add"},
        {"functionary", "all\nWell >>>other"},
        {"functionary", "Hello"},
    };
    tn_tool_grammar_config c;
    tn_tool_grammar_config_default(&c);
    c.tools = tools;
    c.text = 1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        c.format = others[i].format;
        if (!TEST_CHECK(match(ctx, trie, &c, others[i].text) == -1)) printf("    %s\n", others[i].text);
    }
    c.format = "deepseek";
    TEST_CHECK(match(ctx, trie, &c, "<｜tool▁call▁end｜> <｜tool▁call▁begin") == 1);
    c.format = "llama";
    TEST_CHECK(match(ctx, trie, &c, "<|python_tag and {") == 1);
    c.format = "harmony"; // what a model thinks before it calls
    const char *thinks = "<|channel|>analysis<|message|>I add.<|end|><|start|>assistant<|channel|>commentary "
                         "to=functions.now <|constrain|>json<|message|>{}";
    TEST_CHECK(match(ctx, trie, &c, thinks) == 1);
}

#define TOOL(fields)    "[{\"type\":\"function\",\"function\":{\"name\":\"f\"" fields "}}]"
#define CALL(arguments) "<tool_call>\n{\"name\": \"f\", \"arguments\": " arguments "}\n</tool_call>"

static void test_schemas(tn_context *ctx, const tn_vocab_trie *trie)
{
    // tools, arguments, whether they are allowed
    static const struct {
        const char *tools, *call;
        int32_t want;
    } cases[] = {
        {TOOL(""), CALL("{}"), 1},
        {TOOL(""), CALL("{\"a\":1}"), -1},
        {TOOL(",\"parameters\":{}"), CALL("{\"a\":1}"), 1},
        {TOOL(",\"parameters\":{\"properties\":{\"b-2\":{\"enum\":[\"[x]\",null]}},\"required\":[\"b-2\"]}"),
         CALL("{\"b-2\":\"[x]\"}"), 1},
        {TOOL(",\"parameters\":{\"properties\":{\"b\":{\"$ref\":\"#/$defs/t\"}},"
              "\"$defs\":{\"t\":{\"type\":\"boolean\"}},\"required\":[\"b\"]}"),
         CALL("{\"b\":true}"), 1},
        {TOOL(",\"parameters\":{\"type\":\"object\",\"not\":{}}"), CALL("{\"any\":[1]}"), 1},
    };
    tn_tool_grammar_config c;
    tn_tool_grammar_config_default(&c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        c.tools = cases[i].tools;
        if (!TEST_CHECK(match(ctx, trie, &c, cases[i].call) == cases[i].want))
            printf("    %s\n    %s\n", cases[i].tools, cases[i].call);
    }
    // Tools share the work on their schemas: what is left without any gets any object.
    tn_strbuf large;
    tn_strbuf_init(&large, ctx);
    tn_strbuf_puts(&large, "[{\"type\":\"function\",\"function\":{\"name\":\"g\",\"parameters\":"
                           "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[0");
    for (int32_t i = 1; i < 50000; i++) tn_strbuf_printf(&large, ",%d", (int)i);
    tn_strbuf_puts(&large, "]}}}}},{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"
                           "{\"type\":\"object\",\"properties\":{}}}}]");
    c.tools = large.data;
    TEST_CHECK(match(ctx, trie, &c, CALL("{\"any\":[1]}")) == 1);
    tn_strbuf_fini(&large);
    // what is refused, and how its message begins
    static const struct {
        const char *tools, *why;
        tn_status status;
    } refused[] = {
        {NULL, "tools: a grammar needs them", TN_ERR_ARG},
        {"[]", "tools: ", TN_ERR_FORMAT},
        {"{", "tools: ", TN_ERR_FORMAT},
        {"[{}]", "tools[0]: ", TN_ERR_ARG},
        {TOOL(",\"parameters\":7"), "tools[0]: f: ", TN_ERR_ARG},
        {TOOL(",\"parameters\":{\"type\":\"string\"}"), "tools[0]: f: ", TN_ERR_ARG},
        {TOOL(",\"strict\":true,\"parameters\":{\"type\":\"object\",\"not\":{}}"),
         "tools[0]: f: schema: /not", TN_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char *gbnf = NULL, message[300] = "";
        c.tools = refused[i].tools;
        TEST_CHECK_STATUS(tn_tool_grammar(ctx, &c, &gbnf), refused[i].status);
        tn_context_error(ctx, message, sizeof message);
        if (!TEST_CHECK(strncmp(message, refused[i].why, strlen(refused[i].why)) == 0 && !gbnf))
            printf("    %s\n", message);
    }
    c.tools = tools, c.format = "morse";
    char *gbnf = NULL;
    TEST_CHECK_STATUS(tn_tool_grammar(ctx, &c, &gbnf), TN_ERR_ARG);
}

// All of them together are too large, none is on its own.
static void test_large_tools(tn_context *ctx)
{
    tn_tool_grammar_config c;
    char *gbnf = NULL, why[300] = "";
    tn_strbuf large;
    tn_tool_grammar_config_default(&c);
    tn_strbuf_init(&large, ctx);
    for (int32_t i = 0; i < 3; i++)
        tn_strbuf_printf(&large,
                         "%s{\"type\":\"function\",\"function\":{\"name\":\"f%d\",\"parameters\":"
                         "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":\"%02000000d\"}}}}}",
                         i ? "," : "[", (int)i, 7);
    tn_strbuf_puts(&large, "]");
    c.tools = large.data;
    TEST_CHECK_STATUS(tn_tool_grammar(ctx, &c, &gbnf), TN_ERR_UNSUPPORTED);
    tn_context_error(ctx, why, sizeof why);
    TEST_CHECK(!gbnf && strstr(why, "tools[2]: f2: the grammar of all tools is larger than 4194304 bytes"));
    tn_strbuf_fini(&large);
}

// Every allocation of a grammar fails once.
static void test_grammar_memory(tn_context *ctx, counting *c)
{
    long live = c->live;
    for (long k = 0;; k++) {
        tn_tool_grammar_config config;
        char *gbnf = NULL;
        tn_tool_grammar_config_default(&config);
        config.tools = tools;
        c->fail_from = c->calls + k, c->fail_to = c->fail_from + 1;
        tn_status status = tn_tool_grammar(ctx, &config, &gbnf);
        bool done = c->calls <= c->fail_from;
        c->fail_from = c->fail_to = 0;
        tn_text_free(ctx, gbnf);
        if (!TEST_CHECK(c->live == live && (status == TN_OK) == done) || done) break;
        TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
    }
}

static void test_grammars(tn_context *ctx, counting *c)
{
    static tiny_vocab vocab;
    tn_vocab_trie *trie = NULL;
    tn_tokenizer *t = NULL;
    tiny_spm(&vocab);
    tiny_open(ctx, &vocab);
    tiny_must(tn_tokenizer_create(ctx, vocab.gguf, NULL, &t));
    tiny_must(tn_vocab_trie_create(ctx, t, &trie));
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) check_written(ctx, trie, &written[i]);
    test_other_markers(ctx, trie);
    test_thoughts(ctx, trie);
    test_schemas(ctx, trie);
    test_large_tools(ctx);
    test_grammar_memory(ctx, c);
    tn_vocab_trie_destroy(&trie);
    tn_tokenizer_destroy(&t);
    tiny_close(ctx, &vocab);
}

int main(void)
{
    counting c;
    tn_context *ctx = counting_context(&c);
    test_grammars(ctx, &c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(ctx, &rows[i]);
        check_memory(ctx, &c, &rows[i], false);
        check_memory(ctx, &c, &rows[i], true);
    }
    for (size_t i = 0; i < sizeof streamed / sizeof *streamed; i++) {
        check_stream(ctx, &streamed[i]);
        check_memory(ctx, &c, &streamed[i], true);
    }
    test_refusals(ctx);
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
    return test_done();
}
