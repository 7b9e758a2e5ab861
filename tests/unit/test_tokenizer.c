// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers on tiny vocabularies: rules, hostile keys, failing allocations, long texts.
#include "models/text/chat.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

#include <limits.h>
#include <math.h>
#include <time.h>

static counting count;
static tn_context *ctx;

// --- helpers -----------------------------------------------------------------------------------------

static tn_tokenizer *load(tiny_vocab *v)
{
    tn_tokenizer *t = NULL;
    tiny_open(ctx, v);
    if (!TEST_CHECK_STATUS(tn_tokenizer_create(ctx, v->gguf, NULL, &t), TN_OK)) abort();
    return t;
}

static void unload(tiny_vocab *v, tn_tokenizer **t)
{
    tn_tokenizer_destroy(t);
    tiny_close(ctx, v);
    TEST_CHECK(*t == NULL);
}

// Ids as text, so that a failure shows what came: tokens by their stored text, separated by "|".
static const char *shown(const tn_tokenizer *t, const tn_tokens *ids)
{
    static char line[4096];
    size_t used = 0;
    line[0] = 0;
    for (size_t i = 0; i < ids->count && used < sizeof line; i++) {
        tn_gguf_str s = tn_tokenizer_text(t, ids->ids[i]);
        used +=
            (size_t)snprintf(line + used, sizeof line - used, "%s%.*s", i ? "|" : "", (int)s.size, s.data);
    }
    return line;
}

static void expect_tokens(int line, const tn_tokenizer *t, const char *text, int32_t flags, const char *want)
{
    tn_tokens ids;
    tn_tokens_init(&ids, ctx);
    bool ok =
        tn_tokenizer_encode(t, text, strlen(text), flags, &ids) == TN_OK && strcmp(shown(t, &ids), want) == 0;
    if (!test_report(ok, __FILE__, line, text)) printf("    got  %s\n    want %s\n", shown(t, &ids), want);
    tn_tokens_fini(&ids);
}
#define TOKENS(t, text, flags, want) expect_tokens(__LINE__, (t), (text), (flags), (want))

// Encodes with special parsing, decodes, compares.
static void expect_decoded(int line, const tn_tokenizer *t, const char *text, int32_t flags, const char *want)
{
    tn_tokens ids;
    tn_strbuf out;
    tn_tokens_init(&ids, ctx);
    tn_strbuf_init(&out, ctx);
    tn_status status =
        tn_tokenizer_encode(t, text, strlen(text), TN_TOKENIZE_ADD_SPECIAL | TN_TOKENIZE_PARSE_SPECIAL, &ids);
    if (status == TN_OK) status = tn_tokenizer_decode(t, ids.ids, ids.count, flags, &out);
    const char *got = out.data ? out.data : "";
    if (!test_report(status == TN_OK && strcmp(got, want) == 0, __FILE__, line, text))
        printf("    got  '%s'\n    want '%s'\n", got, want);
    tn_strbuf_fini(&out);
    tn_tokens_fini(&ids);
}
#define DECODED(t, text, flags, want) expect_decoded(__LINE__, (t), (text), (flags), (want))

enum { ADD = TN_TOKENIZE_ADD_SPECIAL, PARSE = TN_TOKENIZE_PARSE_SPECIAL };
enum { STRIP = TN_DETOKENIZE_REMOVE_SPECIAL, PRINT = TN_DETOKENIZE_PRINT_SPECIAL };

// --- SPM ---------------------------------------------------------------------------------------------

static void test_spm(void)
{
    tiny_vocab v;
    tiny_spm(&v);
    tiny_add(&v, "<|im_end|>", TN_TOKEN_CONTROL, 0);
    tiny_add(&v, "<tool>", TN_TOKEN_USER, 0);
    tiny_add(&v, "<tool>x", TN_TOKEN_USER, 0);
    tn_tokenizer *t = load(&v);
    TOKENS(t, "", 0, "");
    TOKENS(t, "", ADD, "<s>");
    TOKENS(t, "hello", 0, "▁hello");
    TOKENS(t, " hello", 0, "▁|▁hello");
    TOKENS(t, "hellob", ADD, "<s>|▁hello|b");
    TOKENS(t, "zé\n", 0, "▁|<0x7A>|é|<0x0A>");
    TOKENS(t, "\xff\xc3", 0, "▁|<0xFF>|<0xC3>");
    TOKENS(t, "</s>a", 0, "▁|<0x3C>|<0x2F>|<0x73>|<0x3E>|a");
    TOKENS(t, "</s>a", PARSE, "</s>|▁a");
    TOKENS(t, "a<tool>xa", 0, "▁a|<tool>x|▁a"); // the longer token wins, and plain text finds it
    TOKENS(t, "<tool>hello<|im_end|>", PARSE, "<tool>|▁hello|<|im_end|>");
    DECODED(t, "hello", PRINT, "<s> hello");
    DECODED(t, "hello", 0, " hello");
    DECODED(t, "hello", STRIP, " hello");
    DECODED(t, "<tool>é", STRIP, "<tool> é");
    TEST_CHECK(tn_tokenizer_special(t, TN_SPECIAL_BOS) == 1 && tn_tokenizer_special(t, TN_SPECIAL_EOS) == 2);
    TEST_CHECK(tn_tokenizer_special(t, TN_SPECIAL_NL) == 3 + '\n');
    TEST_CHECK(tn_tokenizer_special(t, TN_SPECIAL_EOT) == tn_tokenizer_find(t, "<|im_end|>", 10));
    TEST_CHECK(tn_tokenizer_is_eog(t, tn_tokenizer_find(t, "<|im_end|>", 10)) && tn_tokenizer_is_eog(t, 2));
    TEST_CHECK(!tn_tokenizer_is_eog(t, 1) && !tn_tokenizer_is_eog(t, -1) && !tn_tokenizer_is_eog(t, 1 << 30));
    TEST_CHECK(tn_tokenizer_find(t, "nope", 4) == -1 && tn_tokenizer_type(t, 3) == TN_TOKEN_BYTE);
    TEST_CHECK(tn_tokenizer_add_bos(t) && !tn_tokenizer_add_eos(t) && tn_tokenizer_add_space_prefix(t));
    TEST_CHECK(strcmp(tn_tokenizer_model(t), "llama") == 0 && strcmp(tn_tokenizer_pre(t), "") == 0);
    int32_t bad[] = {-1, (int32_t)v.n_tokens};
    tn_strbuf out;
    tn_strbuf_init(&out, ctx);
    for (size_t i = 0; i < TN_COUNT(bad); i++) {
        TEST_CHECK_STATUS(tn_tokenizer_piece(t, bad[i], true, &out), TN_ERR_ARG);
        TEST_CHECK_STATUS(tn_tokenizer_decode(t, &bad[i], 1, 0, &out), TN_ERR_ARG);
    }
    tn_strbuf_fini(&out);
    unload(&v, &t);
}

static void test_spm_flags(void)
{
    tiny_vocab v;
    tiny_spm(&v);
    v.n_scores = v.n_types = 0; // all scores 0, all types normal: leftmost pair first
    tiny_flag(&v, "tokenizer.ggml.add_bos_token", false);
    tiny_flag(&v, "tokenizer.ggml.add_eos_token", true);
    tiny_flag(&v, "tokenizer.ggml.add_space_prefix", false);
    tn_tokenizer *t = load(&v);
    TOKENS(t, "hello", ADD, "hello|</s>");
    TOKENS(t, "lo lo", 0, "lo|▁|lo");
    DECODED(t, " hello", STRIP, " hello");
    unload(&v, &t);

    // White space after special tokens disappears in models of this name, except after a few.
    tiny_spm(&v);
    v.name = "Phi-3 mini";
    tiny_add(&v, "<|user|>", TN_TOKEN_CONTROL, 0);
    t = load(&v);
    TOKENS(t, "<|user|> \n\thello<s> a", PARSE, "<|user|>|▁hello|<s>|▁|▁a");
    unload(&v, &t);
}

// White space before a mask disappears, in models that are known by the name of their expressions or by their
// own.
static void test_masks(void)
{
    static const struct {
        const char *pre, *name, *mask;
        bool strips;
    } rows[] = {
        {"jina-v2-de", NULL, "<mask>", true},          {"jina-v2-code", NULL, "<mask>", true},
        {"jina-v2-de", NULL, "[MASK]", false},         {"gpt-2", NULL, "<mask>", false},
        {"gpt-2", "Modern-BERT base", "[MASK]", true}, {"gpt-2", "Modern-BERT base", "<mask>", false}};
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        char text[32], want[64];
        tiny_vocab v;
        tiny_bpe(&v);
        v.pre = rows[i].pre;
        v.name = rows[i].name;
        tiny_add(&v, rows[i].mask, TN_TOKEN_CONTROL, 0);
        tn_tokenizer *t = load(&v);
        snprintf(text, sizeof text, "a \n%s b", rows[i].mask);
        snprintf(want, sizeof want, "a%s|%s|Ġ|b", rows[i].strips ? "" : "|Ġ|Ċ", rows[i].mask);
        TOKENS(t, text, PARSE, want);
        snprintf(text, sizeof text, " \n%s", rows[i].mask); // nothing else is before it
        snprintf(want, sizeof want, "%s%s", rows[i].strips ? "" : "Ġ|Ċ|", rows[i].mask);
        TOKENS(t, text, PARSE, want);
        unload(&v, &t);
    }
}

// --- BPE ---------------------------------------------------------------------------------------------

static void test_bpe(void)
{
    tiny_vocab v;
    tiny_bpe(&v);
    tn_tokenizer *t = load(&v);
    TOKENS(t, "hello hello", 0, "hello|Ġhello");
    TOKENS(t, "hellhello", 0, "hell|hello");
    TOKENS(t, "aaaaaaa", 0, "aaaa|aa|a"); // ties: leftmost
    TOKENS(t, "a  hello", 0, "a|Ġ|Ġhello");
    TOKENS(t, "\n\n", 0, "ĊĊ");
    TOKENS(t, "é", 0, "Ã|©");
    TOKENS(t, "<|endoftext|>a", PARSE, "<|endoftext|>|a");
    TOKENS(t, "\xff", 0, "ï|¿|½"); // bytes that are no UTF-8 become U+FFFD before anything else
    TEST_CHECK(tn_tokenizer_special(t, TN_SPECIAL_NL) == tn_tokenizer_find(t, "Ċ", 2));
    DECODED(t, "a hello . What ? it 's Joe ' s , they 're , don 't ' ' x", 0,
            "a hello. What? it's Joe's, they're, don 't'' x");
    DECODED(t, "a 's", 0, "a's"); // at once after the first byte
    DECODED(t, "I 've , we 're , a 'he", 0, "I've, we're, a 'he");
    DECODED(t, "hello<|endoftext|>", 0, "hello");
    DECODED(t, "hello<|endoftext|>", PRINT, "hello<|endoftext|>");
    unload(&v, &t);

    tiny_bpe(&v);
    v.pre = "llama-bpe"; // ignores merges for whole tokens
    tiny_add(&v, "Ġxyz", TN_TOKEN_NORMAL, 0);
    t = load(&v);
    TOKENS(t, " xyz xyzz", ADD, "<|endoftext|>|Ġxyz|Ġ|x|y|z|z");
    unload(&v, &t);

    tiny_bpe(&v); // symbols that are no tokens fall apart into one-byte tokens
    v.tokens[v.n_tokens - 2] = "other";
    v.merges[v.n_merges++] = "x y";
    t = load(&v);
    TOKENS(t, "xy\n\n", 0, "x|y");
    unload(&v, &t);

    tiny_bpe(&v); // characters that stand for no byte are text as they are
    int32_t odd = tiny_add(&v, "中Ġ文", TN_TOKEN_NORMAL, 0);
    t = load(&v);
    tn_strbuf out;
    tn_strbuf_init(&out, ctx);
    TEST_CHECK_STATUS(tn_tokenizer_piece(t, odd, false, &out), TN_OK);
    TEST_CHECK(out.size == 7 && memcmp(out.data, "中 文", 7) == 0);
    tn_strbuf_fini(&out);
    unload(&v, &t);
}

static void test_gemma4(void)
{
    tiny_vocab v;
    tiny_spm(&v);
    v.model = "gemma4";
    v.n_scores = 0;
    v.merges[v.n_merges++] = "h e";
    v.merges[v.n_merges++] = "l l";
    v.merges[v.n_merges++] = "he ll";
    v.merges[v.n_merges++] = "hell o";
    v.merges[v.n_merges++] = "▁ hello";
    tiny_add(&v, "\n\n", TN_TOKEN_NORMAL, 0);
    tiny_id(&v, "tokenizer.ggml.bos_token_id", 1);
    tiny_flag(&v, "tokenizer.ggml.add_bos_token", false); // has no say here
    tn_tokenizer *t = load(&v);
    TOKENS(t, "hello hello\n\nz", ADD, "<s>|hello|▁hello|\n\n|<0x7A>");
    DECODED(t, "hello hello\n\nz", STRIP, "hello hello\n\nz");
    unload(&v, &t);
}

// --- keys that lie -----------------------------------------------------------------------------------

// Loads and expects this failure, with `part` in the message; closes the file.
static void expect_refused(int line, tiny_vocab *v, const char *pre, tn_status want, const char *part)
{
    char text[512] = "";
    tn_tokenizer *t = NULL;
    // Messages stay with their context, and the first one wins: a context for each.
    counting own;
    tn_context *fresh = counting_context(&own);
    tiny_open(fresh, v);
    tn_status got = tn_tokenizer_create(fresh, v->gguf, pre, &t);
    tn_context_error(fresh, text, sizeof text);
    if (!test_report(got == want && t == NULL && strstr(text, part), __FILE__, line, part))
        printf("    got \"%s\": %s\n", tn_status_text(got), text);
    tn_tokenizer_destroy(&t);
    tiny_close(fresh, v);
    tn_context_destroy(&fresh);
    TEST_CHECK(own.live == 0);
}
#define REFUSED(v, pre, status, part) expect_refused(__LINE__, (v), (pre), (status), (part))

static void test_hostile_merges(void)
{
    tiny_vocab v;
    tiny_bpe(&v);
    v.n_merges = 0;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "merges");
    v.pre = "kimi-k2"; // its files may have none
    tn_tokenizer *t = load(&v);
    TOKENS(t, "he", 0, "h|e");
    unload(&v, &t);
    tiny_bpe(&v);
    v.merges[3] = "nospace";
    REFUSED(&v, NULL, TN_ERR_FORMAT, "line 3");
    tiny_bpe(&v);
    v.merges[0] = " x";
    REFUSED(&v, NULL, TN_ERR_FORMAT, "line 0");
    tiny_bpe(&v);
    v.merges[0] = "";
    REFUSED(&v, NULL, TN_ERR_FORMAT, "line 0");
    tiny_bpe(&v);
    v.merges[1] = "x ";
    REFUSED(&v, NULL, TN_ERR_FORMAT, "line 1 has no right part");
    tiny_bpe(&v);
    v.n_merges = 0;
    tiny_id(&v, "tokenizer.ggml.merges", 1);
    REFUSED(&v, NULL, TN_ERR_FORMAT, "tokenizer.ggml.merges is not an array of strings");
}

static void test_hostile(void)
{
    static const char *const kinds[] = {"bart", "t6", "rwkv", "plamo2", "Llama", "llam", "llama\xff"};
    tiny_vocab v;
    for (size_t i = 0; i < TN_COUNT(kinds); i++) {
        tiny_spm(&v);
        v.model = kinds[i];
        REFUSED(&v, NULL, TN_ERR_MODEL, kinds[i]);
    }
    tiny_bpe(&v);
    v.pre = "no-such-pre";
    REFUSED(&v, NULL, TN_ERR_MODEL, "no-such-pre");
    tiny_bpe(&v);
    REFUSED(&v, "other", TN_ERR_MODEL, "--pre");
    tiny_spm(&v);
    v.n_tokens = v.n_scores = v.n_types = 0;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "tokens");
    tiny_spm(&v);
    v.n_scores--;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "scores");
    tiny_spm(&v);
    v.n_types--;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "token_type");
    tiny_spm(&v);
    v.n_types++;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "token_type");
    tiny_spm(&v);
    v.types[9] = 7;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "type 7");
    v.types[9] = 0; // of no kind
    tn_tokenizer *t = load(&v);
    unload(&v, &t);
    tiny_spm(&v);
    v.types[9] = -1;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "type -1");
    tiny_spm(&v);
    v.scores[5] = (float)NAN;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "NaN");
    tiny_ugm(&v);
    v.n_scores--;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "tokenizer.ggml.scores: 14 values for 15 tokens");
    tiny_ugm(&v);
    v.scores[5] = INFINITY;
    REFUSED(&v, NULL, TN_ERR_FORMAT, "tokenizer.ggml.scores: value 5 is not finite");
    tiny_ugm(&v);
    v.n_charsmap = 0;
    tiny_id(&v, "tokenizer.ggml.precompiled_charsmap", 1);
    REFUSED(&v, NULL, TN_ERR_FORMAT, "tokenizer.ggml.precompiled_charsmap is no array of bytes");
    tiny_spm(&v);
    v.tokens[9] = v.tokens[8];
    REFUSED(&v, NULL, TN_ERR_FORMAT, "tokens 8 and 9");
}

static void test_hostile_texts(void)
{
    tiny_vocab v;
    static const char *const bytes[] = {"<0x-1>", "<0x1>", "<0x111>", "<0xGG>", "<0X0A>", "0x0A", "<0x 1>"};
    for (size_t i = 0; i < TN_COUNT(bytes); i++) {
        tiny_spm(&v);
        v.tokens[20] = bytes[i];
        REFUSED(&v, NULL, TN_ERR_FORMAT, "token 20");
    }
    tiny_spm(&v);
    v.tokens[20] = "<0xfa>"; // digits may be small letters
    tn_tokenizer *t = load(&v);
    TEST_CHECK(t != NULL);
    tn_tokenizer_destroy(&t);
    tiny_close(ctx, &v);
    static const char *const ids[] = {"bos", "eos",     "unknown", "padding",
                                      "eot", "fim_pre", "prefix",  "seperator"};
    for (size_t i = 0; i < TN_COUNT(ids); i++) {
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", ids[i]);
        tiny_spm(&v);
        tiny_id(&v, key, (uint32_t)v.n_tokens);
        REFUSED(&v, NULL, TN_ERR_FORMAT, key);
    }
}

static void test_odd(void)
{
    tiny_vocab v;
    tn_tokenizer *t = NULL;
    tiny_spm(&v); // -1 means none
    tiny_id(&v, "tokenizer.ggml.bos_token_id", UINT32_MAX);
    t = load(&v);
    TEST_CHECK(tn_tokenizer_special(t, TN_SPECIAL_BOS) == -1);
    TOKENS(t, "a", ADD, "▁a");
    unload(&v, &t);

    tiny_spm(&v); // an empty text gets a name
    tiny_add(&v, "", TN_TOKEN_NORMAL, 0);
    t = load(&v);
    tn_gguf_str text = tn_tokenizer_text(t, (int32_t)v.n_tokens - 1);
    TEST_CHECK(text.size > 7 && memcmp(text.data, "[EMPTY_", 7) == 0);
    unload(&v, &t);

    v = (tiny_vocab){
        .model = "llama", .tokens = {"▁", "a"}, .n_tokens = 2}; // no bytes, defaults beyond the end
    t = load(&v);
    TOKENS(t, "ab", ADD, "a|▁|a|▁"); // ids 0 and 1 are unk and bos
    TEST_CHECK(tn_tokenizer_special(t, TN_SPECIAL_EOS) == -1);
    unload(&v, &t);

    static const char *const none[] = {NULL, "none", "no_vocab"};
    for (size_t i = 0; i < TN_COUNT(none); i++) {
        tiny_spm(&v);
        v.model = none[i];
        tiny_open(ctx, &v);
        TEST_CHECK_STATUS(tn_tokenizer_create(ctx, v.gguf, NULL, &t), TN_OK);
        TEST_CHECK(t == NULL);
        tiny_close(ctx, &v);
    }
    tiny_spm(&v); // harmony: <|end|> closes a part only, and stays visible
    tiny_add(&v, "<|end|>", TN_TOKEN_CONTROL, 0);
    tiny_add(&v, "<|return|>", TN_TOKEN_CONTROL, 0);
    tiny_add(&v, "<|call|>", TN_TOKEN_CONTROL, 0);
    tiny_add(&v, "<|channel|>", TN_TOKEN_CONTROL, 0);
    t = load(&v);
    int32_t end = tn_tokenizer_find(t, "<|end|>", 7);
    TEST_CHECK(!tn_tokenizer_is_eog(t, end) && tn_tokenizer_type(t, end) == TN_TOKEN_USER);
    TEST_CHECK(tn_tokenizer_is_eog(t, end + 1) && tn_tokenizer_type(t, end + 3) == TN_TOKEN_USER);
    unload(&v, &t);
}

// --- streaming ---------------------------------------------------------------------------------------

static void test_printable(void)
{
    static const struct {
        const char *bytes;
        size_t want;
    } cases[] = {
        {"", 0},
        {"a", 1},
        {"a\xc3", 1},
        {"a\xc3\xa9", 3},
        {"\xe2", 0},
        {"\xe2\x82", 0},
        {"\xe2\x82\xac", 3},
        {"x\xf0\x9f\x98", 1},
        {"\xf0\x9f\x98\x80", 4},
        {"\xff", 1},
        {"\xc0", 1},
        {"\x80\x80\x80\x80", 4},
        {"\xe0\x80", 2},
        {"\xed\xa0", 2},
        {"\xf4\x90", 2},
        {"\xf5", 1},
        {"\xf0\x9f\x41", 3},
        {"\xe2\x82\xe2", 2},
    };
    for (size_t i = 0; i < TN_COUNT(cases); i++) {
        size_t got = tn_utf8_printable(cases[i].bytes, strlen(cases[i].bytes));
        if (!TEST_CHECK(got == cases[i].want)) printf("    case %zu: got %zu\n", i, got);
    }
}

static void test_unicode(void)
{
    TEST_CHECK(tn_unicode_category('A') == TN_GC_LU && tn_unicode_category(0x4e2d) == TN_GC_LO);
    TEST_CHECK(tn_unicode_category(0x10ffff) == TN_GC_CN && tn_unicode_category(0x110000) == TN_GC_CN);
    TEST_CHECK(tn_unicode_lower('A') == 'a' && tn_unicode_lower(0x130) == 'i' &&
               tn_unicode_lower('1') == '1');
    TEST_CHECK(tn_unicode_nfd_first(0xe9) == 'e' && tn_unicode_nfd_first(0xac01) == 0x1100);
    size_t n_spaces = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) n_spaces += tn_unicode_is_space(cp);
    TEST_CHECK(n_spaces == 25);
    for (int32_t b = 0; b < 256; b++) TEST_CHECK(tn_bpe_cp_byte(tn_bpe_byte_cp((uint8_t)b)) == b);
    TEST_CHECK(tn_bpe_cp_byte(0x144) == -1 && tn_bpe_cp_byte(' ') == -1 && tn_bpe_byte_cp(0xad) == 0x143);
}

// --- long texts --------------------------------------------------------------------------------------

// A quarter of a megabyte of one unit takes milliseconds; quadratic code would take minutes.
static void expect_fast(int line, const tn_tokenizer *t, const char *unit, const char *end)
{
    enum { SIZE = 1 << 18 };
    char *text = malloc(SIZE + 16);
    if (!text) abort();
    size_t n = 0;
    for (size_t k = strlen(unit); n + k <= SIZE; n += k) memcpy(text + n, unit, k);
    memcpy(text + n, end, strlen(end));
    n += strlen(end);
    tn_tokens ids;
    tn_tokens_init(&ids, ctx);
    clock_t start = clock(); // processor time: other programs do not count
    tn_status status = tn_tokenizer_encode(t, text, n, PARSE, &ids);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (!test_report(status == TN_OK && seconds < 10, __FILE__, line, unit)) printf("    %.1f s\n", seconds);
    if (getenv("VERBOSE"))
        printf("%s '%s': %.3f s, %zu ids\n", tn_tokenizer_pre(t), unit, seconds, ids.count);
    tn_tokens_fini(&ids);
    free(text);
}
#define FAST(t, unit, end) expect_fast(__LINE__, (t), (unit), (end))

static void test_long(void)
{
    static const char *const pres[] = {"gpt-2",      "deepseek-llm", "superbpe", "jais-2",     "gpt-4o",
                                       "bailingmoe", "exaone-moe",   "kimi-k2",  "deepseek-v3"};
    static const char *const units[] = {"a",   "hello", " ",    " \n",          "1", "A", "中",
                                        "中A", "'",     "\xff", "<|endoftext|>"};
    tiny_vocab v;
    tiny_spm(&v);
    tn_tokenizer *t = load(&v);
    for (size_t i = 0; i < TN_COUNT(units); i++) FAST(t, units[i], "x");
    unload(&v, &t);
    for (size_t k = 0; k < TN_COUNT(pres); k++) {
        tiny_bpe(&v);
        v.pre = pres[k];
        t = load(&v);
        for (size_t i = 0; i < TN_COUNT(units); i++) FAST(t, units[i], "x");
        unload(&v, &t);
    }
}

// --- failing allocations -----------------------------------------------------------------------------

static tn_status use_everything(const tiny_vocab *v)
{
    static const char text[] = "hello  hello\n<|endoftext|> é 123";
    const tn_turn turns[] = {{.role = "system", .content = "be"}, {.role = "user", .content = "hello"}};
    const char *shape = tn_chat_builtin("gemma", 5);
    const tn_chat_template gemma = {shape, strlen(shape), "gemma"};
    const tn_chat_config cfg = {.local_time = 1753315200};
    tn_tokenizer *t = NULL;
    tn_tokens ids;
    tn_strbuf out;
    tn_tokens_init(&ids, ctx);
    tn_strbuf_init(&out, ctx);
    tn_status status = tn_tokenizer_create(ctx, v->gguf, NULL, &t);
    if (status == TN_OK) status = tn_tokenizer_encode(t, text, sizeof text - 1, ADD | PARSE, &ids);
    if (status == TN_OK) status = tn_tokenizer_decode(t, ids.ids, ids.count, PRINT, &out);
    if (status == TN_OK) status = tn_chat_apply(t, &gemma, turns, 2, &cfg, &ids, &out);
    tn_tokens_fini(&ids);
    tn_strbuf_fini(&out);
    tn_tokenizer_destroy(&t);
    return status;
}

static void test_allocations(void)
{
    for (int kind = 0; kind < 2; kind++) {
        tiny_vocab v;
        if (kind == 0)
            tiny_spm(&v);
        else
            tiny_bpe(&v);
        tiny_open(ctx, &v);
        long live = count.live;
        TEST_CHECK_STATUS(use_everything(&v), TN_OK);
        for (long n = 0, width = 1;; n++) {
            count.fail_from = count.calls + n;
            count.fail_to = width == 1 ? count.fail_from + 1 : LONG_MAX;
            tn_status status = use_everything(&v);
            count.fail_from = count.fail_to = 0;
            TEST_CHECK(count.live == live);
            if (status == TN_OK && width == 2) break;
            if (status == TN_OK)
                n = -1, width = 2; // again, now with all calls from the n-th on
            else
                TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
        }
        tiny_close(ctx, &v);
    }
}

int main(void)
{
    ctx = counting_context(&count);
    long live = count.live;
    test_unicode();
    test_printable();
    test_spm();
    test_spm_flags();
    test_masks();
    test_bpe();
    test_gemma4();
    test_hostile();
    test_hostile_merges();
    test_hostile_texts();
    test_odd();
    test_allocations();
    test_long();
    TEST_CHECK(count.live == live);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
