// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What hostile inputs of a megabyte cost each parser: at most 1 s of the processor and 64 MB beyond the size
// of the input, whether they are accepted or refused. Prints a line for each.
#include "models/run/state.h"
#include "models/text/grammar/grammar.h"
#include "models/text/grammar/schema.h"
#include "models/text/jinja/jinja.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/gguf_bytes.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

#include <tenon/model.h>
#include <tenon/tools.h>

enum { SIZE = 1 << 20, MEMORY_MAX = 64 << 20 };
static const double seconds_max = FUZZ_SANITIZED ? 20 : 1;

static bytes input;

// The input begins with `head`, repeats `unit` as often as it fits into SIZE, and ends with `tail`.
static void repeat(const char *head, const char *unit, const char *tail)
{
    size_t most = SIZE - strlen(tail);
    input.size = 0;
    bytes_put(&input, head, strlen(head));
    while (*unit && input.size + strlen(unit) <= most) bytes_put(&input, unit, strlen(unit));
    bytes_put(&input, tail, strlen(tail));
}

// The same with a number in each unit, in place of %d, so that all units differ.
static void number(const char *head, const char *unit, const char *tail)
{
    char text[256];
    input.size = 0;
    bytes_put(&input, head, strlen(head));
    for (int i = 0; input.size + sizeof text + strlen(tail) < SIZE; i++) {
        const char *mark = strstr(unit, "%d");
        int n = snprintf(text, sizeof text, "%.*s%d%s", (int)(mark - unit), unit, i, mark + 2);
        bytes_put(&input, text, (size_t)n);
    }
    bytes_put(&input, tail, strlen(tail));
}

static void nest(const char *open, const char *middle, const char *close)
{
    size_t n = SIZE / (strlen(open) + strlen(close));
    input.size = 0;
    for (size_t i = 0; i < n; i++) bytes_put(&input, open, strlen(open));
    bytes_put(&input, middle, strlen(middle));
    for (size_t i = 0; i < n; i++) bytes_put(&input, close, strlen(close));
}

typedef tn_status (*parser)(tn_context *ctx, const void *data, size_t n);

// A context of its own, so that its peak is that of this input.
static void check(const char *name, parser parse)
{
    tn_context *ctx = NULL;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = 1;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    void *copy = fuzz_copy(input.data, input.size);
    size_t before = tn_context_memory(ctx);
    double start = fuzz_seconds();
    tn_status status = parse(ctx, copy, input.size);
    double seconds = fuzz_seconds() - start;
    size_t peak = tn_context_memory_peak(ctx) - before;
    bool ok = TEST_CHECK(seconds <= seconds_max);
    ok = TEST_CHECK(peak <= MEMORY_MAX + input.size) && ok;
    ok = TEST_CHECK(tn_context_memory(ctx) == before) && ok;
    ok = TEST_CHECK(status != TN_ERR_INTERNAL) && ok;
    printf("%-44s %7zu bytes %7.3f s %6.1f MB  %s%s\n", name, input.size, seconds, (double)peak * 1e-6,
           tn_status_text(status), ok ? "" : "  TOO MUCH");
    tn_context_destroy(&ctx);
    free(copy);
}

// --- files ---------------------------------------------------------------------------------------

static tn_status parse_gguf(tn_context *ctx, const void *data, size_t n)
{
    tn_gguf *gguf = NULL;
    tn_tokenizer *t = NULL;
    tn_status status = tn_gguf_open_memory(ctx, data, n, "hostile", &gguf);
    if (status == TN_OK) {
        volatile uint64_t sum = walk_all(gguf);
        TN_UNUSED(sum);
        status = tn_tokenizer_create(ctx, gguf, NULL, &t);
    }
    tn_tokenizer_destroy(&t);
    tn_gguf_close(&gguf);
    return status;
}

static void check_files(void)
{
    char name[32];
    enum { KEYS = 50000, TENSORS = 20000, TOKENS = 80000 };
    bytes_header(&input, 3, 0, KEYS);
    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof name, "k%d", i);
        bytes_kv_num(&input, name, TN_GGUF_U8, 1, 1);
    }
    check("GGUF of many keys", parse_gguf);
    bytes_header(&input, 3, TENSORS, 0);
    for (int i = 0; i < TENSORS; i++) {
        snprintf(name, sizeof name, "t%d", i);
        bytes_info(&input, name, 1, (uint64_t[]){1}, 0, 32 * (uint64_t)i);
    }
    bytes_pad(&input, 32);
    for (int i = 0; i < TENSORS; i++) bytes_num(&input, 0, 32);
    check("GGUF of many tensors", parse_gguf);
    bytes_header(&input, 3, 0, 1);
    bytes_array(&input, "a", TN_GGUF_STRING, SIZE / 8);
    for (int i = 0; i < SIZE / 8; i++) bytes_num(&input, 0, 8);
    check("GGUF of empty strings", parse_gguf);
    bytes_header(&input, 3, 0, 1);
    bytes_array(&input, "a", TN_GGUF_ARRAY, SIZE / 12);
    for (int i = 0; i < SIZE / 12; i++) bytes_num(&input, 0, 12);
    check("GGUF of empty lists in a list", parse_gguf);
    static const char *const kinds[] = {"llama", "gpt2", "bert", "t5"};
    for (size_t k = 0; k < TN_COUNT(kinds); k++) {
        bytes_header(&input, 3, 0, 4);
        bytes_kv_str(&input, "general.architecture", "llama");
        bytes_kv_str(&input, "tokenizer.ggml.model", kinds[k]);
        bytes_array(&input, "tokenizer.ggml.tokens", TN_GGUF_STRING, TOKENS);
        for (int i = 0; i < TOKENS; i++) {
            snprintf(name, sizeof name, "%x", i);
            bytes_str(&input, name);
        }
        bytes_array(&input, "tokenizer.ggml.merges", TN_GGUF_STRING, TOKENS / 2);
        for (int i = 0; i < TOKENS / 2; i++) bytes_str(&input, "1 2");
        snprintf(name, sizeof name, "vocabulary of %s", kinds[k]);
        check(name, parse_gguf);
    }
}

// --- texts ---------------------------------------------------------------------------------------

static void (*make_vocab)(tiny_vocab *);

static tn_status parse_text(tn_context *ctx, const void *data, size_t n)
{
    static tiny_vocab v;
    tn_tokenizer *t = NULL;
    tn_tokens ids;
    make_vocab(&v);
    tiny_open(ctx, &v);
    tiny_must(tn_tokenizer_create(ctx, v.gguf, NULL, &t));
    tn_tokens_init(&ids, ctx);
    tn_status status = tn_tokenizer_encode(t, data, n, TN_TOKENIZE_PARSE_SPECIAL, &ids);
    tn_tokens_fini(&ids);
    tn_tokenizer_destroy(&t);
    tiny_close(ctx, &v);
    return status;
}

// Each "#" is a token that is always cut out of a text.
static void cut_spm(tiny_vocab *v)
{
    tiny_spm(v);
    tiny_add(v, "#", TN_TOKEN_USER, 0);
}

static void cut_bpe(tiny_vocab *v)
{
    tiny_bpe(v);
    v->types['#'] = TN_TOKEN_USER;
}

// Tokens of all lengths that a text of "a" begins and none of which it has.
static void cut_long(tiny_vocab *v)
{
    enum { LENGTHS = 40, STEP = 8 };
    static char texts[LENGTHS][LENGTHS * STEP + 1];
    tiny_spm(v);
    for (int i = 0; i < LENGTHS; i++) {
        memset(texts[i], 'a', (size_t)(i + 1) * STEP - 1);
        texts[i][(i + 1) * STEP - 1] = '#';
        tiny_add(v, texts[i], TN_TOKEN_USER, 0);
    }
}

// Marks for spaces are no token: each is spelled in three bytes.
static void spell_spm(tiny_vocab *v)
{
    tiny_spm(v);
    for (uint64_t i = 0, k = 0; i < v->n_tokens; i++)
        if (strstr(v->tokens[i], "\u2581")) v->tokens[i] = &"-------"[k++];
}

// One byte becomes some fifty.
static void expand_ugm(tiny_vocab *v)
{
    static const char *const replaced[][2] = {{"a", "hellohellohellohellohellohellohellohellohello"}};
    tiny_ugm(v);
    tiny_charsmap(v, replaced, 1);
}

static void check_texts(void)
{
    static const struct {
        const char *name;
        void (*make)(tiny_vocab *);
    } kinds[] = {{"SPM", tiny_spm}, {"BPE", tiny_bpe}, {"WPM", tiny_wpm}, {"UGM", tiny_ugm}};
    static const char *const units[] = {"a",    " ",  "hello ",  "<",  "</s",
                                        "\xff", "\n", "e\u0301", "12", "\u4e2d"};
    for (size_t k = 0; k < TN_COUNT(kinds); k++)
        for (size_t i = 0; i < TN_COUNT(units); i++) {
            char name[64];
            make_vocab = kinds[k].make;
            repeat("", units[i], "");
            snprintf(name, sizeof name, "text for %s, kind %zu", kinds[k].name, i);
            check(name, parse_text);
        }
    static const struct {
        const char *name, *repeated;
        void (*make)(tiny_vocab *);
    } rows[] = {{"text of cut tokens, SPM", "#", cut_spm},
                {"text of cut tokens and others, SPM", "#a", cut_spm},
                {"text of cut tokens, BPE", "#", cut_bpe},
                {"text of cut tokens and others, BPE", "\xff#", cut_bpe},
                {"text of begun tokens", "a", cut_long},
                {"text of spaces that are spelled", " ", spell_spm},
                {"text that becomes longer", "a", expand_ugm}};
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        make_vocab = rows[i].make;
        repeat("", rows[i].repeated, "");
        check(rows[i].name, parse_text);
    }
}

// --- languages -----------------------------------------------------------------------------------

static tn_status parse_json(tn_context *ctx, const void *data, size_t n)
{
    tn_arena arena;
    const tn_json *root;
    tn_arena_init(&arena, ctx);
    tn_status status = tn_json_read(&arena, "json", data, n, &root);
    tn_arena_fini(&arena);
    return status;
}

static void check_json(void)
{
    nest("[", "", "]");
    check("JSON of nested lists", parse_json);
    repeat("[", "1,", "1]");
    check("JSON of numbers", parse_json);
    repeat("[", "[],", "1]");
    check("JSON of empty lists", parse_json);
    number("{", "\"k%d\":1,", "\"\":1}");
    check("JSON of many keys", parse_json);
    repeat("\"", "\\u00e9", "\"");
    check("JSON of escapes", parse_json);
    repeat("[0.", "9", "]");
    check("JSON of a long number", parse_json);
    repeat("[1e", "9", "]");
    check("JSON of a long exponent", parse_json);
}

static tn_status parse_grammar(tn_context *ctx, const void *data, size_t n)
{
    tn_grammar *g = NULL;
    tn_status status = tn_grammar_create(ctx, "grammar", data, n, &g);
    tn_grammar_destroy(&g);
    return status;
}

static void check_grammars(void)
{
    number("root ::= r0\n", "r%d ::= \"a\"\n", "");
    check("grammar of many rules", parse_grammar);
    repeat("root ::= \"", "a", "\"");
    check("grammar of a long literal", parse_grammar);
    repeat("root ::= ", "\"a\"|", "\"a\"");
    check("grammar of alternatives", parse_grammar);
    repeat("root ::= [", "a-z", "]");
    check("grammar of a long class", parse_grammar);
    repeat("root ::= ", "(", "");
    check("grammar of groups", parse_grammar);
    repeat("root ::= ", "\"a\"{99999} ", "");
    check("grammar of repetitions", parse_grammar);
    repeat("root ::= ", "(\"a\"*)*", "");
    check("grammar of stars", parse_grammar);
    number("root ::= r1\n", "r%d ::= root | \"a\"\n", "");
    check("grammar of recursion", parse_grammar);
}

static tn_status parse_schema(tn_context *ctx, const void *data, size_t n)
{
    tn_strbuf out;
    tn_grammar *g = NULL;
    tn_strbuf_init(&out, ctx);
    tn_status status = tn_schema_to_gbnf(ctx, data, n, &out);
    if (status == TN_OK) status = tn_grammar_create(ctx, "schema", out.data, out.size, &g);
    tn_grammar_destroy(&g);
    tn_strbuf_fini(&out);
    return status;
}

static void check_schemas(void)
{
    number("{\"properties\":{", "\"p%d\":{},", "\"\":{}}}");
    check("schema of properties", parse_schema);
    number("{\"enum\":[", "%d,", "0.5]}");
    check("schema of an enumeration", parse_schema);
    number("{\"anyOf\":[", "{\"const\":%d},", "{}]}");
    check("schema of alternatives", parse_schema);
    repeat("{\"allOf\":[", "{\"type\":\"string\"},", "{}]}");
    check("schema of conjunctions", parse_schema);
    repeat("{\"type\":\"string\",\"pattern\":\"^", "(a|b)*", "$\"}");
    check("schema of a long pattern", parse_schema);
    repeat("{\"type\":\"string\",\"pattern\":\"^", "(", "$\"}");
    check("schema of a pattern of groups", parse_schema);
    number("{\"$defs\":{", "\"d%d\":{\"$ref\":\"#/$defs/d0\"},", "\"x\":{}},\"$ref\":\"#/$defs/d1\"}");
    check("schema of references", parse_schema);
    repeat("{\"type\":\"string\",\"maxLength\":1000000,\"pattern\":\"", "a?", "\"}");
    check("schema of optional letters", parse_schema);
}

static tn_status parse_template(tn_context *ctx, const void *data, size_t n)
{
    tn_jj *j = NULL;
    tn_jj_output out;
    tn_status status = tn_jj_open(ctx, NULL, &j);
    if (status == TN_OK) status = tn_jj_render(j, data, n, &out);
    tn_jj_close(&j);
    return status;
}

static void check_templates(void)
{
    static const struct {
        const char *name, *head, *repeated, *tail;
    } rows[] = {
        {"template of text", "", "text ", ""},
        {"template of tags", "", "{{", ""},
        {"template of comments", "", "{#", ""},
        {"template of a long sum", "{{ 1", " + 1", " }}"},
        {"template of groups", "{{ ", "(", " }}"},
        {"template of filters", "{{ 'a'", "|upper", " }}"},
        {"template of a long list", "{{ [", "1,", "1]|length }}"},
        {"template of blocks", "", "{% if 1 %}", ""},
        {"template of outputs", "", "{{ 1 }}", ""},
        {"template of assignments", "", "{% set a = 1 %}", ""},
        {"template of macros", "", "{% macro f() %}{% endmacro %}", ""},
        {"template of a long string", "{{ '", "\\n", "' }}"},
        {"template of indices", "{{ a", "[0]", " }}"},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        repeat(rows[i].head, rows[i].repeated, rows[i].tail);
        check(rows[i].name, parse_template);
    }
    number("{% set d = {", "'k%d': 1, ", "'x': 2} %}{{ d.x }}");
    check("template of a large dictionary", parse_template);
    number("", "{%% set v%d = 1 %%}", "{{ v1 }}");
    check("template of many names", parse_template);
}

static const char *tool_format;

static tn_status parse_calls(tn_context *ctx, const void *data, size_t n)
{
    tn_tool_config c;
    tn_tool_parser *p = NULL;
    const tn_tool_event *const *events;
    int32_t n_events;
    enum { PIECE = 64 }; // about a token
    tn_tool_config_default(&c);
    c.format = tool_format;
    c.tools = "[{\"function\":{\"name\":\"add\",\"parameters\":{}}}]";
    tn_status status = tn_tool_parser_create(ctx, &c, &p);
    for (size_t at = 0; at < n && status == TN_OK; at += PIECE)
        status = tn_tool_parser_feed(p, (const char *)data + at, TN_MIN(PIECE, n - at), &events, &n_events);
    if (status == TN_OK) status = tn_tool_parser_end(p, &events, &n_events);
    tn_tool_parser_destroy(&p);
    return status;
}

static void check_calls(void)
{
    static const char *const formats[] = {"hermes",  "deepseek", "kimi",    "command-r", "mistral",
                                          "granite", "llama",    "harmony", "lfm2",      "functionary"};
    static const char *const units[] = {"<tool_call>",
                                        "<",
                                        "{",
                                        "[TOOL_CALLS]",
                                        "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":\"",
                                        "add(",
                                        "<|tool_call_start|>[add("};
    for (size_t f = 0; f < TN_COUNT(formats); f++)
        for (size_t i = 0; i < TN_COUNT(units); i++) {
            char name[64];
            tool_format = formats[f];
            repeat("", units[i], "");
            snprintf(name, sizeof name, "calls of %s, kind %zu", formats[f], i);
            check(name, parse_calls);
            repeat(units[i], "x", "");
            check(name, parse_calls);
        }
}

int main(void)
{
    check_files();
    check_texts();
    check_json();
    check_grammars();
    check_schemas();
    check_templates();
    check_calls();
    free(input.data);
    return test_done();
}
