// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies without merges: word pieces and unigrams. What the real vocabularies of test_vocab do not
// have.
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

static tn_context *ctx;

static tn_tokenizer *load(tiny_vocab *v)
{
    tn_tokenizer *t = NULL;
    tiny_open(ctx, v);
    TEST_CHECK_STATUS(tn_tokenizer_create(ctx, v->gguf, NULL, &t), TN_OK);
    return t;
}

static void unload(tiny_vocab *v, tn_tokenizer **t)
{
    tn_tokenizer_destroy(t);
    tiny_close(ctx, v);
}

// Texts of the tokens with a bar between them.
static void expect(int line, const tn_tokenizer *t, const char *text, int32_t flags, const char *want)
{
    tn_tokens ids;
    tn_strbuf got;
    tn_tokens_init(&ids, ctx);
    tn_strbuf_init(&got, ctx);
    tn_status status = tn_tokenizer_encode(t, text, strlen(text), flags, &ids);
    for (size_t i = 0; i < ids.count; i++) {
        tn_gguf_str s = tn_tokenizer_text(t, ids.ids[i]);
        tn_strbuf_printf(&got, "%s%.*s", i ? "|" : "", (int)s.size, s.data);
    }
    if (!test_report(status == TN_OK && strcmp(got.data ? got.data : "", want) == 0, __FILE__, line, text))
        printf("    got  %s\n    want %s\n", got.data ? got.data : "", want);
    tn_strbuf_fini(&got);
    tn_tokens_fini(&ids);
}
#define TOKENS(t, text, flags, want) expect(__LINE__, (t), (text), (flags), (want))

enum { ADD = TN_TOKENIZE_ADD_SPECIAL, PARSE = TN_TOKENIZE_PARSE_SPECIAL };

static void expect_text(int line, const tn_tokenizer *t, const char *text, int32_t flags, const char *want)
{
    tn_tokens ids;
    tn_strbuf got;
    tn_tokens_init(&ids, ctx);
    tn_strbuf_init(&got, ctx);
    TEST_CHECK_STATUS(tn_tokenizer_encode(t, text, strlen(text), ADD, &ids), TN_OK);
    TEST_CHECK_STATUS(tn_tokenizer_decode(t, ids.ids, ids.count, flags, &got), TN_OK);
    if (!test_report(strcmp(got.data ? got.data : "", want) == 0, __FILE__, line, text))
        printf("    got  %s\n    want %s\n", got.data ? got.data : "", want);
    tn_strbuf_fini(&got);
    tn_tokens_fini(&ids);
}
#define DECODED(t, text, flags, want) expect_text(__LINE__, (t), (text), (flags), (want))

// Not without merges, but words by white space too.
static void test_whitespace(void)
{
    tiny_vocab v;
    tiny_bpe(&v);
    v.pre = "whitespace";
    tn_tokenizer *t = load(&v);
    TOKENS(t, "hello  hello\n12 aaaa", 0, "hello|hello|12|aaaa");
    TOKENS(t, " \t\n", 0, "");
    TOKENS(t, "HELLO", 0, "H|E|L|L|O");
    unload(&v, &t);
    tiny_bpe(&v);
    v.pre = "whitespace";
    tiny_flag(&v, "tokenizer.ggml.normalizer.lowercase", true);
    t = load(&v);
    TOKENS(t, "HELLO Hello", 0, "hello|hello");
    unload(&v, &t);
}

static void test_wpm(void)
{
    tiny_vocab v;
    tiny_wpm(&v);
    tn_tokenizer *t = load(&v);
    TOKENS(t, "hello", 0, "▁hello");
    TOKENS(t, "hello", ADD, "[CLS]|▁hello|[SEP]");
    TOKENS(t, "", ADD, "[CLS]|[SEP]");
    TOKENS(t, "  HELLO\thello\n", 0, "▁hello|▁hello");
    TOKENS(t, "helloo", 0, "▁hello|o");
    TOKENS(t, "hello!", 0, "▁hello|▁!"); // signs are words of their own: "llo!" never matches
    TOKENS(t, "hex", 0, "[UNK]");        // the piece before the hole does not count
    TOKENS(t, "hex hello,zz", 0, "[UNK]|▁hello|▁,|[UNK]");
    TOKENS(t, "中中hello", 0, "▁中|▁中|▁hello");
    TOKENS(t, "h\xc3\xa9llo", 0, "▁hello"); // accents go
    TOKENS(t, "he\xcc\x81llo", 0, "▁hello");
    TOKENS(t, "hel\xc2\xadlo\x01", 0, "▁hello"); // so do format and control characters
    TOKENS(t,
           "stra\xc3\x9f"
           "e",
           0, "▁straße");
    TOKENS(t, "hello[SEP]hello", PARSE, "▁hello|[SEP]|▁hello");
    TOKENS(t, "[SEP]", 0, "[UNK]|[UNK]|[UNK]"); // no brackets in this vocabulary
    DECODED(t, "Hello, hello!", TN_DETOKENIZE_REMOVE_SPECIAL, " hello, hello!");
    DECODED(t, "Hello", TN_DETOKENIZE_PRINT_SPECIAL, "[CLS] hello[SEP]");
    TEST_CHECK(tn_tokenizer_special(t, TN_SPECIAL_NL) == 0 && tn_tokenizer_special(t, TN_SPECIAL_SEP) == 3);
    TEST_CHECK(tn_tokenizer_add_bos(t) && !tn_tokenizer_add_eos(t));
    unload(&v, &t);

    tiny_wpm(&v); // cased, with accents: two keys, of which the second follows the first
    tiny_flag(&v, "tokenizer.ggml.normalizer.lowercase", false);
    tiny_flag(&v, "tokenizer.ggml.add_bos_token", false); // without effect
    t = load(&v);
    TOKENS(t, "Hello hello", ADD, "[CLS]|[UNK]|▁hello|[SEP]");
    TOKENS(t, "hello\xc3\xa9", 0, "▁hello|é");
    unload(&v, &t);
    tiny_wpm(&v);
    tiny_flag(&v, "tokenizer.ggml.normalizer.strip_accents", false);
    t = load(&v);
    TOKENS(t, "HELLO\xc3\x89", 0, "▁hello|é");
    unload(&v, &t);
}

static void test_ugm(void)
{
    tiny_vocab v;
    tiny_ugm(&v);
    tn_tokenizer *t = load(&v);
    TOKENS(t, "hello", 0, "▁hello");
    TOKENS(t, "hello", ADD, "▁hello|</s>");
    TOKENS(t, "", ADD, "</s>");
    TOKENS(t, "  hello \t  hello ", 0, "▁hello|▁hello");
    TOKENS(t, "hezllo", 0, "▁he|<unk>|llo");
    TOKENS(t, "hezzzllo", 0, "▁he|<unk>|llo");
    TOKENS(t, "z\xe4\xb8\xad\xff", 0, "▁|<unk>");
    TOKENS(t, "h\xc3\xa9llo", 0, "▁hello"); // replaced
    TOKENS(t, "\xef\xac\x81", 0, "▁fi");
    TOKENS(t, "o\xef\xac\x81", 0, "▁|o|fi");
    TOKENS(t, "ab", 0, "▁|X"); // the longest key
    TOKENS(t, "aaab", 0, "▁|X");
    TOKENS(t, "aa", 0, ""); // nothing is left
    TOKENS(t, "b\xe2\x80", 0, "▁hello");
    TOKENS(t, "b\xe2", 0, "▁|<unk>"); // the key is cut
    TOKENS(t, "he</s>llo", PARSE, "▁he|</s>|▁|llo");
    TOKENS(t, "he</s>llo", 0, "▁he|<unk>|llo"); // plain text
    DECODED(t, "hello hello", TN_DETOKENIZE_REMOVE_SPECIAL, "hello hello");
    TEST_CHECK(!tn_tokenizer_add_bos(t) && tn_tokenizer_add_eos(t) &&
               tn_tokenizer_special(t, TN_SPECIAL_PAD) == 0);
    // 100 000 characters in one word: linear.
    size_t n = 100000;
    char *text = malloc(n);
    tn_tokens ids;
    tn_tokens_init(&ids, ctx);
    memset(text, 'l', n);
    TEST_CHECK_STATUS(tn_tokenizer_encode(t, text, n, 0, &ids), TN_OK);
    TEST_CHECK(ids.count == n + 1);
    tn_tokens_fini(&ids);
    free(text);
    unload(&v, &t);

    tiny_ugm(&v);
    v.n_flags = 0; // no mark in front, all spaces count
    v.n_charsmap = 0;
    t = load(&v);
    TOKENS(t, "hello hello", 0, "he|llo|▁hello");
    TOKENS(t, "hello  hello ", 0, "he|llo|▁|▁hello|▁");
    TOKENS(t, "\t", 0, "<unk>");
    unload(&v, &t);
    tiny_ugm(&v); // user-defined tokens are cut out, and cost nothing
    tiny_add(&v, "llo", TN_TOKEN_USER, 0);
    v.tokens[5] = "zzz";
    t = load(&v);
    TOKENS(t, "hello", 0, "▁he|llo");
    unload(&v, &t);
}

// Charsmaps that lie: an error, or a text that is not replaced; never a read outside.
static void test_charsmaps(void)
{
    tiny_vocab v;
    for (uint32_t i = 0; i < 400; i++) {
        tiny_ugm(&v);
        uint32_t state = (i + 1) * 2654435761u;
        for (uint32_t k = 0; k < 1 + i % 5; k++) {
            state = state * 1664525u + 1013904223u;
            v.charsmap[(state >> 8) % (i % 3 == 0 ? 8 : v.n_charsmap)] = (uint8_t)(state >> 3);
        }
        if (i % 4 == 0) v.n_charsmap = (state >> 10) % v.n_charsmap;
        tn_context *fresh = NULL;
        tn_tokenizer *t = NULL;
        if (tn_context_create(NULL, &fresh) != TN_OK) abort();
        tiny_open(fresh, &v);
        tn_tokens ids;
        tn_tokens_init(&ids, fresh);
        static const char text[] = "h\xc3\xa9llo ab a \xef\xac\x81 b\xe2\x80 \t";
        tn_status status = tn_tokenizer_create(fresh, v.gguf, NULL, &t);
        if (status == TN_OK) status = tn_tokenizer_encode(t, text, sizeof text - 1, 0, &ids);
        TEST_CHECK(status == TN_OK || status == TN_ERR_FORMAT);
        tn_tokens_fini(&ids);
        tn_tokenizer_destroy(&t);
        tiny_close(fresh, &v);
        tn_context_destroy(&fresh);
    }
}

static void expect_pair(int line, const tn_tokenizer *t, const tn_text_pair *pair, tn_status want_status,
                        const char *want)
{
    tn_tokens ids;
    tn_strbuf got;
    tn_tokens_init(&ids, ctx);
    tn_strbuf_init(&got, ctx);
    tn_status status = tn_tokenizer_encode_pair(t, pair, &ids);
    for (size_t i = 0; i < ids.count && status == TN_OK; i++) {
        tn_gguf_str s = tn_tokenizer_text(t, ids.ids[i]);
        tn_strbuf_printf(&got, "%s%.*s", i ? "|" : "", (int)s.size, s.data);
    }
    if (!test_report(status == want_status && strcmp(got.data ? got.data : "", want) == 0, __FILE__, line,
                     want))
        printf("    got  %s: %s\n", tn_status_text(status), got.data ? got.data : "");
    tn_strbuf_fini(&got);
    tn_tokens_fini(&ids);
}
#define STR(text) ((tn_gguf_str){(text), sizeof(text) - 1})
#define PAIR(t, query, document, format, max, status, want)                                                  \
    expect_pair(__LINE__, (t), &(tn_text_pair){STR(query), STR(document), STR(format), (max)}, (status),     \
                (want))

// Separators of the vocabulary, or a template whose own special tokens count and whose texts' do not.
static void test_pairs(void)
{
    tiny_vocab v;
    tiny_wpm(&v);
    tn_tokenizer *t = load(&v);
    PAIR(t, "hello", "hello hello", "", 0, TN_OK, "[CLS]|▁hello|[SEP]|▁hello|▁hello|[SEP]");
    PAIR(t, "hello", "hello hello", "", 5, TN_OK, "[CLS]|▁hello|[SEP]|▁hello|[SEP]");
    PAIR(t, "hello", "hello hello", "", 4, TN_OK, "[CLS]|▁hello|[SEP]|[SEP]");
    PAIR(t, "hello", "中中中中", "", 6, TN_OK, "[CLS]|▁hello|[SEP]|▁中|▁中|[SEP]");
    PAIR(t, "hello", "hello", "", 3, TN_ERR_CONTEXT_FULL, "");
    PAIR(t, "", "", "", 0, TN_OK, "[CLS]|[SEP]|[SEP]");
    PAIR(t, "hello", "he", "[CLS]{query},{document}[MASK]", 0, TN_OK, "[CLS]|▁hello|▁,|▁he|[MASK]");
    PAIR(t, "hello", "he", "{document}!{query}", 0, TN_OK, "▁he|▁!|▁hello");
    PAIR(t, "[SEP]", "he he", "{query}{document}", 4, TN_OK, "[UNK]|[UNK]|[UNK]|▁he");
    PAIR(t, "a", "b", "{query}", 0, TN_ERR_FORMAT, "");
    unload(&v, &t);
    tiny_bpe(&v); // no separator of its own
    t = load(&v);
    PAIR(t, "hello", "12", "", 0, TN_ERR_UNSUPPORTED, "");
    unload(&v, &t);
    tiny_bpe(&v);
    tiny_flag(&v, "tokenizer.ggml.add_eos_token", true);
    t = load(&v);
    PAIR(t, "hello", "12", "", 0, TN_OK, "hello|<|endoftext|>|12|<|endoftext|>");
    unload(&v, &t);
}

// Every allocation fails once: nothing leaks, nothing crashes.
static void test_allocations(void (*make)(tiny_vocab *), const char *text)
{
    for (long at = 0, done = 0; !done && at < 200; at++) {
        counting own;
        tn_context *fresh = counting_context(&own);
        tiny_vocab v;
        make(&v);
        tiny_open(fresh, &v);
        tn_tokenizer *t = NULL;
        tn_tokens ids;
        tn_tokens_init(&ids, fresh);
        own.fail_from = own.calls + at;
        own.fail_to = own.fail_from + 1;
        tn_status status = tn_tokenizer_create(fresh, v.gguf, NULL, &t);
        if (status == TN_OK) status = tn_tokenizer_encode(t, text, strlen(text), ADD, &ids);
        TEST_CHECK(status == TN_OK || status == TN_ERR_MEMORY);
        done = status == TN_OK;
        own.fail_to = 0;
        tn_tokens_fini(&ids);
        tn_tokenizer_destroy(&t);
        tiny_close(fresh, &v);
        tn_context_destroy(&fresh);
        TEST_CHECK(own.live == 0);
    }
}

// The nearest names are in the message, which says what to do.
static void test_unknown_pre(void)
{
    char text[512] = "";
    counting own;
    tn_context *fresh = counting_context(&own);
    tiny_vocab v;
    tn_tokenizer *t = NULL;
    tiny_bpe(&v);
    v.pre = "qwen36";
    tiny_open(fresh, &v);
    TEST_CHECK_STATUS(tn_tokenizer_create(fresh, v.gguf, NULL, &t), TN_ERR_MODEL);
    tn_context_error(fresh, text, sizeof text);
    TEST_CHECK(strstr(text, "'qwen36'") && strstr(text, "--pre NAME") && strstr(text, "qwen35") &&
               strstr(text, "qwen2"));
    TEST_CHECK_STATUS(tn_tokenizer_create(fresh, v.gguf, "qwen2", &t), TN_OK);
    tn_tokenizer_destroy(&t);
    tiny_close(fresh, &v);
    tn_context_destroy(&fresh);
}

int main(void)
{
    counting count;
    ctx = counting_context(&count);
    test_wpm();
    test_whitespace();
    test_ugm();
    test_charsmaps();
    test_pairs();
    test_unknown_pre();
    test_allocations(tiny_wpm, "hello, hex 中");
    test_allocations(tiny_ugm, "hello hezllo ab");
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
