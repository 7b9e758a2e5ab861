// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the server makes of a model's text: thought, content and calls, the same however the text is cut into
// pieces.
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tools/server/answer.h"

#include <string.h>

// What comes out of a text: "content", "{thought}", and "\n[NAME ARGUMENTS]" for each call; "!" in place of
// "]" for a call that is none.
typedef struct row {
    const char *format, *prompt_end, *text, *want;
    bool single;
    const char *streamed; // what comes with stream_arguments; NULL: the same
} row;

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"add\"}},"
                            "{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]";

static const row rows[] = {
    {"hermes", "<assistant>", "Hello", "Hello", false, NULL},
    {"hermes", "<assistant>",
     "<think>\nI add <tool_call>.\n</think>\n\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n"
     "</tool_call>\n<tool_call>{\"name\": \"now\"}</tool_call>",
     "{I add <tool_call>.}\n[add {\"a\": 1}]\n[now {}]", false, NULL},
    {"hermes", "<think>\n", "I know.</think>The time: <tool_call>{\"name\": \"now\"}</tool_call>\n",
     "{I know.}The time: \n[now {}]", false, NULL},
    {"hermes", "<think>\n", "I think of <tool_call>{\"name\": \"now\"}</tool_call>",
     "{I think of <tool_call>{\"name\": \"now\"}</tool_call>}", false, NULL},
    {"hermes", "<assistant>",
     "One <tool_call>{\"name\": \"now\"}</tool_call> two <tool_call>{\"name\": \"add\"}</tool_call>",
     "One \n[now {}]", true, NULL},
    {"hermes", "<assistant>", "<tool_call>{\"name\": \"other\"}</tool_call>",
     "<tool_call>{\"name\": \"other\"}</tool_call>", false, NULL},
    {"hermes", "<assistant>", "<tool_call>{\"name\": \"add\", \"argu",
     "<tool_call>{\"name\": \"add\", \"argu", false, "\n[add !"},
    {"hermes", "<assistant>",
     "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": }} <tool_call>{\"name\":\"now\"}",
     "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": }} \n[now {}]", true,
     "\n[add {\"a\": }! \n[now {}]"},
    {"mistral", "[/INST]", "[TOOL_CALLS][{\"name\": \"now\", \"id\": \"abcdefgh1\"}, {\"name\": \"now\"}]",
     "\n[now {}]\n[now {}]", false, NULL},
    {"kimi", "<|im_middle|>",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}"
     "<|tool_call_end|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
     "<|tool_calls_section_end|>",
     "\n[now {}]\n[now {}]", false, NULL},
    {"llama", "\n\n", "{\"name\": \"add\", \"parameters\": {\"a\": [1, {}]}}", "\n[add {\"a\": [1, {}]}]",
     false, NULL},
    {"harmony", "<|start|>assistant",
     "<|channel|>analysis<|message|>I add.<|end|><|start|>assistant<|channel|>commentary<|message|>I will "
     "add.<|end|><|start|>assistant<|channel|>commentary to=functions.add <|constrain|>json<|message|>"
     "{\"a\": 1}",
     "{I add.}I will add.\n[add {\"a\": 1}]", false, NULL},
    {"harmony", "<|start|>assistant", " to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
     "\n[now {}]", false, NULL},
    {"harmony", "<|start|>assistant",
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "{Hm.}Yes.",
     false, NULL},
    {"lfm2", "<|im_start|>assistant\n",
     "<think>\nI add.</think>\n<|tool_call_start|>[add(a='1'), now()]<|tool_call_end|>Wait.",
     "{I add.}\n[add {\"a\":\"1\"}]\n[now {}]Wait.", false, NULL},
    {"functionary", ">>>", "all\nI add.\n>>>add\n{\"a\": 1}", "I add.\n\n[add {\"a\": 1}]", false, NULL},
    {"functionary", ">>>", "add\n{\"a\": 1}>>>now\n{}", "\n[add {\"a\": 1}]", true, NULL},
    {NULL, "<assistant>", "<think>a</think>\n<tool_call>{\"name\": \"now\"}</tool_call>",
     "{a}<tool_call>{\"name\": \"now\"}</tool_call>", false, NULL},
};

typedef struct result {
    char text[2048];
    size_t n;
    bool in_thought;
    const tool_call *open; // the call that has begun
} result;

static void put(result *r, const char *text, size_t n)
{
    if (r->n + n >= sizeof r->text) abort();
    memcpy(r->text + r->n, text, n);
    r->text[r->n += n] = 0;
}

static void turn(result *r, bool in_thought)
{
    if (in_thought != r->in_thought) put(r, in_thought ? "{" : "}", 1);
    r->in_thought = in_thought;
}

static bool on_text(void *user, const char *text, size_t n, bool is_thought)
{
    TEST_CHECK(!((result *)user)->open);
    if (n > 0) turn(user, is_thought);
    put(user, text, n);
    return true;
}

static bool on_call_begin(void *user, const tool_call *call)
{
    result *r = user;
    TEST_CHECK(!r->open && call->n_arguments == 0 && call->id[0]);
    r->open = call;
    turn(r, false);
    put(r, "\n[", 2);
    put(r, call->name, strlen(call->name));
    put(r, " ", 1);
    return true;
}

static bool on_call_arguments(void *user, const tool_call *call, const char *text, size_t n)
{
    result *r = user;
    TEST_CHECK(r->open == call && n > 0);
    put(r, text, n);
    return true;
}

static bool on_call_end(void *user, const tool_call *call)
{
    result *r = user;
    size_t n = call->n_arguments;
    TEST_CHECK(r->open == call && strlen(call->arguments) == n);
    TEST_CHECK(r->n >= n && memcmp(r->text + r->n - n, call->arguments, n) == 0);
    put(r, call->complete ? "]" : "!", 1);
    r->open = NULL;
    return true;
}

static void check_ids(const row *w, const answer *a, bool streams)
{
    for (int32_t i = 0; i < a->n_calls; i++) {
        const char *id = a->calls[i].id;
        bool form = !w->format                          ? false
                    : strcmp(w->format, "mistral") == 0 ? strlen(id) == 9
                    : strcmp(w->format, "kimi") == 0    ? strncmp(id, "functions.now:", 14) == 0
                                                        : strncmp(id, "call_", 5) == 0 && strlen(id) == 21;
        if (!TEST_CHECK(form)) printf("    %s\n", id);
        for (int32_t k = 0; k < i; k++) TEST_CHECK(strcmp(id, a->calls[k].id) != 0);
    }
    // In a stream an id behind the name comes too late.
    if (w->format && strcmp(w->format, "mistral") == 0)
        TEST_CHECK((strcmp(a->calls[0].id, "abcdefgh1") == 0) == !streams);
    if (w->format && strcmp(w->format, "kimi") == 0)
        TEST_CHECK(strcmp(a->calls[1].id, "functions.now:4") == 0);
}

// The text in two pieces, the second one byte by byte with `bytes`.
static void run(tn_context *ctx, const row *w, size_t cut, bool bytes, bool streams)
{
    uint64_t next_id = 7;
    size_t n = strlen(w->text);
    answer a = {.format = w->format, .single = w->single, .n_before = 3, .next_id = &next_id};
    result r = {.n = 0};
    const answer_sink sink = {&r, on_text, on_call_begin, on_call_arguments, on_call_end};
    const char *want = streams && w->streamed ? w->streamed : w->want;
    tn_tool_config c;
    tn_tool_config_default(&c);
    c.format = w->format;
    c.tools = tools;
    c.stream_arguments = streams;
    if (w->format) TEST_CHECK_STATUS(tn_tool_parser_create(ctx, &c, &a.parser), TN_OK);
    answer_begin_thoughts(&a, w->prompt_end);
    TEST_CHECK(answer_feed(&a, w->text, cut, false, &sink));
    for (size_t at = cut; at < n; at += bytes ? 1 : n - cut)
        TEST_CHECK(answer_feed(&a, w->text + at, bytes ? 1 : n - cut, false, &sink));
    TEST_CHECK(answer_feed(&a, "", 0, true, &sink));
    turn(&r, false);
    if (!TEST_CHECK(strcmp(r.text, want) == 0))
        printf("    cut at %zu: %s\n    gave %s\n    not %s\n", cut, w->text, r.text, want);
    check_ids(w, &a, streams);
    TEST_CHECK(!r.open && a.n_complete <= a.n_calls);
    answer_destroy(&a);
}

int main(void)
{
    counting c;
    tn_context *ctx = counting_context(&c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t cut = 0; cut <= strlen(rows[i].text); cut++) {
            run(ctx, &rows[i], cut, false, false);
            run(ctx, &rows[i], cut, true, false);
            run(ctx, &rows[i], cut, false, true);
            run(ctx, &rows[i], cut, true, true);
        }
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
    return test_done();
}
