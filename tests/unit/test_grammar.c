// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GBNF: what is read and what is refused, texts that follow a grammar, masks of all tokens against every
// token tried on its own, going back, bounds, failing allocations.
//     test_grammar [--bench MODEL]    times masks over the vocabulary of a file
#include "models/run/sampling/rng.h"
#include "models/text/grammar/grammar.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

#include <tenon/session.h>

static counting allocs;
static tn_context *ctx;
static tn_tokenizer *tokenizer;
static tn_vocab_trie *trie;

// --- helpers -----------------------------------------------------------------------------------------

static tn_grammar *make_grammar(int line, const char *text)
{
    tn_grammar *g = NULL;
    bool ok = tn_grammar_create(ctx, "grammar", text, strlen(text), &g) == TN_OK;
    char message[512] = "";
    tn_context_error(ctx, message, sizeof message);
    if (!test_report(ok, __FILE__, line, text)) printf("    %s\n", message);
    if (!ok) exit(1);
    return g;
}

static tn_matcher *make_matcher(const tn_grammar *g)
{
    tn_matcher *m = NULL;
    if (!TEST_CHECK_STATUS(tn_matcher_create(ctx, g, trie, 1000, &m), TN_OK)) exit(1);
    return m;
}

// 1 complete, 0 a beginning, -1 neither.
static int32_t try_bytes(tn_matcher *m, const char *text, size_t n)
{
    int32_t result = -9;
    TEST_CHECK_STATUS(tn_matcher_try(m, text, n, &result), TN_OK);
    return result;
}

// yes, part and no: texts separated by \x1f.
static void expect_texts(int line, const char *gbnf, const char *yes, const char *part, const char *no)
{
    tn_grammar *g = make_grammar(line, gbnf);
    tn_matcher *m = make_matcher(g);
    const char *lists[3] = {yes, part, no};
    for (int32_t i = 0; i < 3; i++)
        for (const char *p = lists[i]; p;) {
            size_t n = strcspn(p, "\x1f");
            int32_t got = try_bytes(m, p, n);
            if (!test_report(got == 1 - i, __FILE__, line, gbnf))
                printf("    '%.*s': %d\n", (int)n, p, (int)got);
            p = p[n] ? p + n + 1 : NULL;
        }
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
}
#define TEXTS(gbnf, yes, part, no) expect_texts(__LINE__, (gbnf), (yes), (part), (no))

static void expect_refused(int line, const char *gbnf, size_t n, const char *want)
{
    tn_grammar *g = NULL;
    char message[512] = "";
    tn_status status = tn_grammar_create(ctx, "grammar", gbnf, n, &g);
    tn_context_error(ctx, message, sizeof message);
    bool ok = status == TN_ERR_ARG && !g && strstr(message, want);
    if (!test_report(ok, __FILE__, line, want)) printf("    %s\n", message);
}
#define REFUSED(gbnf, want) expect_refused(__LINE__, (gbnf), strlen(gbnf), (want))

// --- texts -------------------------------------------------------------------------------------------

static void test_texts(void)
{
    TEXTS("root ::= \"ab\"", "ab",
          "\x1f"
          "a",
          "b\x1f"
          "abc\x1f"
          "aa");
    TEXTS("root ::= \"a\" | \"bc\"\n | \"d\"",
          "a\x1f"
          "bc\x1f"
          "d",
          "b",
          "c\x1f"
          "e");
    TEXTS("# comment\nroot ::= x y # more\n\n\nx ::= \"a\" |\n \"b\"\ny ::= [0-9]+",
          "a1\x1f"
          "b123",
          "a",
          "1\x1f"
          "a1b");
    TEXTS("root ::= (\n\"a\"\n|\n\"b\" \"c\" # c\n)* \"x\"",
          "x\x1f"
          "aabcx",
          "a\x1f"
          "bc\x1f"
          "b",
          "c\x1f"
          "xx");
    TEXTS("root ::= [a-cx\\]\\-\\n^] [^a-z]",
          "a1\x1f"
          "]A\x1f"
          "-\xc3\xa9\x1f"
          "\n-\x1f"
          "^\x7f",
          "x\x1f"
          "a\xc3",
          "d1\x1f"
          "ab\x1f"
          "a\xff");
    TEXTS("root ::= [a-]",
          "a\x1f"
          "-",
          "", "b");
}

static void test_characters(void)
{
    TEXTS("root ::= .",
          "a\x1f"
          "\n\x1f"
          "\xc3\xa9\x1f"
          "\xe2\x82\xac\x1f"
          "\xf0\x9f\x98\x80\x1f"
          "\xf4\x8f\xbf\xbf",
          "\xc3\x1f"
          "\xf0\x9f\x98",
          "ab\x1f"
          "\x80\x1f"
          "\xc0\x1f"
          "\xc1\xbf\x1f"
          "\xe0\x80\x1f"
          "\xed\xa0\x1f"
          "\xf4\x90\x1f"
          "\xf5\x1f"
          "\xff");
    TEXTS("root ::= \"\\x41\\u00e9\\U0001F600\\\"\\\\\\t\"", "A\xc3\xa9\xf0\x9f\x98\x80\"\\\t", "A", "B");
    TEXTS("root ::= [\\u4e00-\\u4e42]",
          "\xe4\xb8\x80\x1f"
          "\xe4\xb9\x82\x1f"
          "\xe4\xb8\xbf",
          "\xe4\xb8",
          "\xe4\xb9\x83\x1f"
          "\xe4\xba");
    REFUSED("root ::= \"a\"{,3}", "a count is missing");
}

static void test_repeats(void)
{
    TEXTS("root ::= \"a\"{3}", "aaa", "aa", "aaaa");
    TEXTS("root ::= \"a\"{2,}",
          "aa\x1f"
          "aaaaaa",
          "a", "b");
    TEXTS("root ::= \"a\"{ 1 , 3 }",
          "a\x1f"
          "aaa",
          "", "aaaa");
    TEXTS("root ::= \"a\"{0} \"b\"", "b", "", "ab");
    TEXTS("root ::= (\"ab\" | \"c\"){2,3}",
          "abc\x1f"
          "abab\x1f"
          "ccc\x1f"
          "cabab",
          "ab\x1f"
          "c",
          "cccc\x1f"
          "abababab");
    TEXTS("root ::= (\"a\"?){3} \"b\"",
          "b\x1f"
          "aaab",
          "aa", "aaaa");
    TEXTS("root ::= (\"a\"*)* \"b\"",
          "b\x1f"
          "aaaab",
          "a", "c");
    TEXTS("root ::= (\"a\"? \"b\"?)+",
          "\x1f"
          "a\x1f"
          "ab\x1f"
          "ba\x1f"
          "bbaa",
          NULL, "c");
    TEXTS("root ::= \"a\"+?",
          "\x1f"
          "aa",
          NULL, "b");
    TEXTS("root ::= ((\"x\"{10}){10}){10}", NULL, "x", "y");
}

static void test_recursion(void)
{
    TEXTS("root ::= \"(\" root \")\" | \"\"",
          "\x1f"
          "()\x1f"
          "((()))",
          "(\x1f"
          "((",
          ")\x1f"
          "())");
    TEXTS("root ::= list\nlist ::= \"a\" list | \"a\"",
          "a\x1f"
          "aaaa",
          "", "b");
    TEXTS("root ::= a b\na ::= \"x\" b | \"x\"\nb ::= \"y\" a | \"y\"",
          "xy\x1f"
          "xyy\x1f"
          "xyxyxy",
          "x",
          "y\x1f"
          "xx");
    TEXTS("root ::= expr\nexpr ::= term ([-+*/] term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
          "1\x1f"
          "1+2\x1f"
          "(1+(2*3))-4",
          "1+\x1f"
          "(1",
          "+\x1f"
          "1)\x1f"
          "()");
    REFUSED("root ::= root \"a\" | \"b\"", "line 1, column 1: left recursion: root");
    REFUSED("root ::= a\na ::= b?  c\nb ::= \"x\"\nc ::= a", "left recursion");
    REFUSED("root ::= \"x\" a\na ::= (\"b\" | \"\") a", "left recursion: a");
    REFUSED("root ::= (root \"x\"){2}", "left recursion");
    TEXTS("root ::= a\na ::= b \"x\"\nb ::= c?\nc ::= \"(\" a \")\"",
          "x\x1f"
          "(x)x",
          "(", ")");
}

static void test_errors(void)
{
    REFUSED("", "no rule named root");
    REFUSED("a ::= \"b\"", "no rule named root");
    REFUSED("root ::= b\n  b ::= c", "line 2, column 9: the rule c is not defined");
    REFUSED("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule root is there twice");
    REFUSED("root ::= \"abc", "column 10: the literal is not closed");
    REFUSED("root ::= \"a\nb\"", "not closed");
    REFUSED("root ::= \"a\\", "not closed");
    REFUSED("root ::= [abc", "column 10: the class is not closed");
    REFUSED("root ::= []", "class is empty");
    REFUSED("root ::= [b-a]", "backwards");
    REFUSED("root ::= [^\\x00-\\U0010FFFF]", "holds no character");
    REFUSED("root ::= \"\\q\"", "unknown escape");
    REFUSED("root ::= \"\\x4\"", "2 hexadecimal digits");
    REFUSED("root ::= \"\\uD800\"", "no character");
    REFUSED("root ::= \"\\UFFFFFFFF\"", "no character");
    REFUSED("root ::= (\"a\"", "column 10: the group is not closed");
    REFUSED("root ::= \"a\")", "')' without '('");
    REFUSED("root ::= * \"a\"", "nothing to repeat");
    REFUSED("root ::= \"a\"{3,2}", "backwards");
    REFUSED("root ::= \"a\"{x}", "a count is missing");
    REFUSED("root ::= \"a\"{1", "a '}' is missing");
    REFUSED("root ::= \"a\"{100001}", "a count above 100000");
    REFUSED("root ::= \"a\"{99999999999999999999}", "a count above");
    REFUSED("root = \"a\"", "'::=' is missing");
    REFUSED("::= \"a\"", "the name of a rule is missing");
    REFUSED("root ::= <[1000]>", "tokens are not supported");
    REFUSED("root ::= \"\xff\"", "not UTF-8");
    REFUSED("root ::= @", "begins like this");
    expect_refused(__LINE__, "root ::= \"a\0b\"", 14, "a zero byte");
}

static void test_bounds(void)
{
    static char text[1 << 20];
    REFUSED("root ::= (\"abc\"{100000}){100000}", "more than 100000 states");
    REFUSED("root ::= [^x]{60000} [^x]{60000}", "more than 100000 states");
    TEXTS("root ::= ((([a-z]{9999}){9999}){9999}){9999}", NULL, "abc", "1");
    size_t n = (size_t)sprintf(text, "root ::= ");
    for (int i = 0; i < 256; i++) text[n++] = '(';
    n += (size_t)sprintf(text + n, "\"a\"");
    for (int i = 0; i < 256; i++) text[n++] = ')';
    text[n] = 0;
    TEXTS(text, "a", "", "b");
    memmove(text + 10, text + 9, n - 8);
    text[9] = '(';
    text[n + 1] = ')';
    text[n + 2] = 0;
    REFUSED(text, "nested deeper than 256");
    n = 0;
    for (int i = 0; i < 50001; i++) n += (size_t)sprintf(text + n, "%s%d ::= \"\"\n", i ? "r" : "root", i);
    REFUSED(text, "more than 50000 rules");
    // Many rules that match nothing, in an order that a single pass does not settle.
    n = (size_t)sprintf(text, "root ::= r0\n");
    for (int i = 0; i < 20000; i++) n += (size_t)sprintf(text + n, "r%d ::= r%d r%d\n", i, i + 1, i + 1);
    sprintf(text + n, "r20000 ::= \"a\" | \n");
    tn_grammar *g = NULL;
    uint64_t start = tn_time_ns();
    tn_status status = tn_grammar_create(ctx, "grammar", text, strlen(text), &g);
    TEST_CHECK(status == TN_OK || status == TN_ERR_ARG);
    tn_grammar_destroy(&g);
    for (n = 0, start = tn_time_ns(); n < 1; n++)
        status = tn_grammar_create(ctx, "grammar", text, strlen(text), &g);
    TEST_CHECK((double)(tn_time_ns() - start) < 5e9); // 1 s is promised; test machines are slow
    tn_grammar_destroy(&g);
    // More work than a check does: each round finds one rule more that matches nothing, and reads all others.
    n = (size_t)sprintf(text, "root ::= r0\n");
    for (int i = 0; i < 12000; i++) n += (size_t)sprintf(text + n, "r%d ::= r%d\n", i + 1, i);
    sprintf(text + n, "r0 ::= \"\"\n");
    REFUSED(text, "too many rules that match nothing");
    expect_refused(__LINE__, text, TN_GRAMMAR_SIZE_MAX + 1, "4194305 bytes, at most 4194304");
    // Exponentially many readings: told, not hidden.
    g = make_grammar(
        __LINE__,
        "root ::= x x x x x x x x x x x x x x x x x x x x\nx ::= \"a\" | \"a\" y\ny ::= \"a\"+ x? y?");
    tn_matcher *m = make_matcher(g);
    memset(text, 'a', 3000);
    int32_t result;
    status = tn_matcher_try(m, text, 3000, &result);
    TEST_CHECK(status == TN_ERR_UNSUPPORTED || (status == TN_OK && result >= 0));
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
}

// --- random expressions ------------------------------------------------------------------------------

typedef struct expr {
    int kind; // 0 literal, 1 class, 2 sequence, 3 choice, 4 repeat
    char text[4];
    int min, max;
    struct expr *a, *b;
} expr;

static expr nodes[64];
static int n_nodes;

static expr *random_expr(tn_rng *r, int depth)
{
    expr *e = &nodes[n_nodes++];
    *e = (expr){.kind = (int)(tn_rng_next(r) % (depth < 4 && n_nodes < 30 ? 5 : 2))};
    if (e->kind < 2) {
        int n = 1 + (int)(tn_rng_next(r) % 2);
        for (int i = 0; i < n; i++) e->text[i] = "abc"[tn_rng_next(r) % 3];
        return e;
    }
    e->a = random_expr(r, depth + 1);
    if (e->kind < 4) e->b = random_expr(r, depth + 1);
    e->min = (int)(tn_rng_next(r) % 3);
    e->max = tn_rng_next(r) % 2 ? -1 : e->min + (int)(tn_rng_next(r) % 3);
    return e;
}

static void print_expr(const expr *e, char *out)
{
    char *w = out + strlen(out);
    if (e->kind == 0) sprintf(w, "\"%s\"", e->text);
    if (e->kind == 1) sprintf(w, "[%s]", e->text);
    if (e->kind < 2) return;
    strcat(out, "(");
    print_expr(e->a, out);
    if (e->kind < 4) {
        strcat(out, e->kind == 3 ? " | " : " ");
        print_expr(e->b, out);
    }
    strcat(out, ")");
    w = out + strlen(out);
    if (e->kind != 4) return;
    if (e->max < 0)
        sprintf(w, "{%d,}", e->min);
    else
        sprintf(w, "{%d,%d}", e->min, e->max);
}

// Bit i of `from`: the expression may begin before character i. Gives where it may end.
static uint32_t ends_of(const expr *e, uint32_t from, const char *text, int n)
{
    uint32_t to = 0;
    switch (e->kind) {
    case 0:
        for (int i = 0; i <= n; i++)
            if ((from >> i & 1) && strncmp(text + i, e->text, strlen(e->text)) == 0)
                to |= 1u << (i + (int)strlen(e->text));
        return to;
    case 1:
        for (int i = 0; i < n; i++)
            if ((from >> i & 1) && strchr(e->text, text[i])) to |= 1u << (i + 1);
        return to;
    case 2:
        return ends_of(e->b, ends_of(e->a, from, text, n), text, n);
    case 3:
        return ends_of(e->a, from, text, n) | ends_of(e->b, from, text, n);
    default:
        for (int i = 0; i < e->min; i++) from = ends_of(e->a, from, text, n);
        for (int i = e->min; e->max < 0 ? i < 40 : i < e->max; i++) {
            to |= from;
            from = ends_of(e->a, from, text, n);
        }
        return to | from;
    }
}

static void test_random(void)
{
    tn_rng r;
    tn_rng_seed(&r, 77);
    for (int round = 0; round < 400; round++) {
        char gbnf[2048] = "root ::= ";
        n_nodes = 0;
        const expr *e = random_expr(&r, 0);
        print_expr(e, gbnf);
        tn_grammar *g = make_grammar(__LINE__, gbnf);
        tn_matcher *m = make_matcher(g);
        for (int i = 0; i < 60; i++) {
            char text[16];
            int n = (int)(tn_rng_next(&r) % 9);
            for (int k = 0; k < n; k++) text[k] = "abc"[tn_rng_next(&r) % 3];
            text[n] = 0;
            bool want = ends_of(e, 1, text, n) >> n & 1;
            if (!TEST_CHECK((try_bytes(m, text, (size_t)n) == 1) == want))
                printf("    %s: '%s'\n", gbnf, text);
        }
        tn_matcher_destroy(&m);
        tn_grammar_destroy(&g);
    }
}

// --- tokens ------------------------------------------------------------------------------------------

static bool allowed(const uint64_t *bits, int32_t token)
{
    return bits[token / 64] >> (token % 64) & 1;
}

// Every token of the mask against its bytes tried alone.
static void check_mask(int line, tn_matcher *m)
{
    const uint64_t *bits = NULL;
    bool any = false, found = false;
    if (!TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK)) return;
    for (int32_t i = 0; i < trie->n_tokens; i++) {
        size_t n;
        const char *bytes = tn_vocab_piece(trie, i, &n);
        bool want = n > 0 && try_bytes(m, bytes, n) >= 0;
        if (tn_tokenizer_is_eog(tokenizer, i)) want = tn_matcher_complete(m) && try_bytes(m, "", 0) == 1;
        TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK);
        if (!test_report(allowed(bits, i) == want, __FILE__, line, "mask")) printf("    token %d\n", (int)i);
        found = found || want;
    }
    TEST_CHECK(any == found);
}

static int32_t id_of(const char *text)
{
    return tn_tokenizer_find(tokenizer, text, strlen(text));
}

static void test_masks(void)
{
    static const char *const grammars[] = {
        "root ::= \"hello\" \"!\"?",
        "root ::= [a-z ]*",
        "root ::= (\"h\" | \"he\" | \"ll\" | [^a-z])+ \"o\"",
        "root ::= .{3}",
        "root ::= \"\xc3\xa9\" root | \"(\" root \")\" | \"\"",
    };
    tn_rng r;
    tn_rng_seed(&r, 5);
    for (size_t i = 0; i < TN_COUNT(grammars); i++) {
        tn_grammar *g = make_grammar(__LINE__, grammars[i]);
        tn_matcher *m = make_matcher(g);
        uint64_t before = tn_context_n_allocs(ctx);
        for (int32_t step = 0; step < 12; step++) {
            check_mask(__LINE__, m);
            const uint64_t *bits;
            bool any;
            TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK);
            if (!any) break;
            int32_t token = (int32_t)(tn_rng_next(&r) % (uint64_t)trie->n_tokens);
            while (!allowed(bits, token)) token = (token + 1) % trie->n_tokens;
            TEST_CHECK_STATUS(tn_matcher_accept(m, token), TN_OK);
        }
        tn_matcher_truncate(m, tn_matcher_length(m) / 2);
        check_mask(__LINE__, m);
        tn_matcher_truncate(m, 0);
        check_mask(__LINE__, m);
        TEST_CHECK(tn_context_n_allocs(ctx) == before);
        tn_matcher_destroy(&m);
        tn_grammar_destroy(&g);
    }
}

// Masks all along random texts.
static void check_masks_along(int line, const char *gbnf, tn_rng *r, int32_t n_steps)
{
    tn_grammar *g = make_grammar(line, gbnf);
    tn_matcher *m = make_matcher(g);
    for (int32_t step = 0; step < n_steps; step++) {
        check_mask(line, m);
        const uint64_t *bits;
        bool any;
        TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK);
        if (!any) break;
        int32_t token = (int32_t)(tn_rng_next(r) % (uint64_t)trie->n_tokens);
        while (!allowed(bits, token)) token = (token + 1) % trie->n_tokens;
        if (tn_tokenizer_is_eog(tokenizer, token)) continue;
        TEST_CHECK_STATUS(tn_matcher_accept(m, token), TN_OK);
    }
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
}

// Sets that differ in a count only share masks while no token reaches its ends: in front of, at and between
// both ends, with characters of several bytes, items of any length, counts in counts, calls that come back,
// and items that may be nothing.
static void test_counts(void)
{
    static const char *const grammars[] = {
        "root ::= [a-z ]{12,30}",
        "root ::= \"(\" [a-z ]{0,25} \")\"",
        "root ::= .{9,20} \"!\"",
        "root ::= [a-z]{10} \"-\" [a-z]{10,}",
        "root ::= (\"he\" | \"h\" | \"ello\" | \"l\" | \"o\"){10,24}",
        "root ::= ([ab]{8,10} | \"h\"){9,12} \"o\"{8}",
        "root ::= x{0,40}\nx ::= [a-l] | \"m\" x{8,12} \"n\"",
        "root ::= (\"a\"? \"b\"?){8,12} \"hell\"{8,9}",
        "root ::= a{8,15} | b{10,20}\na ::= [a-o]\nb ::= [l-z] a?",
        "root ::= \"[\" (v (\" \" v){8,20})? \"]\"\nv ::= [a-h]{8,12} | root",
        "root ::= (\"ab\" | \"abab\" | \"ababab\"){8,11} | [ab]{16,66}",
    };
    tn_rng r;
    tn_rng_seed(&r, 31);
    for (size_t i = 0; i < TN_COUNT(grammars); i++) check_masks_along(__LINE__, grammars[i], &r, 45);
    for (int round = 0; round < 40; round++) {
        char gbnf[2048] = "root ::= ";
        n_nodes = 0;
        const expr *e = random_expr(&r, 1);
        for (int i = 0; i < n_nodes; i++) {
            nodes[i].min *= 7;
            if (nodes[i].max >= 0) nodes[i].max = nodes[i].min + 9;
        }
        print_expr(e, gbnf);
        check_masks_along(__LINE__, gbnf, &r, 12);
    }
}

static void test_back(void)
{
    tn_grammar *g = make_grammar(__LINE__, "root ::= \"hell\" \"o\"+");
    tn_matcher *m = make_matcher(g);
    int32_t end = 2, hell = id_of("hell"), o = id_of("o"), he = id_of("he"), ll = id_of("ll");
    TEST_CHECK(!tn_matcher_complete(m));
    const int32_t text[] = {he, ll, o, o, end};
    for (size_t i = 0; i < TN_COUNT(text); i++) TEST_CHECK_STATUS(tn_matcher_accept(m, text[i]), TN_OK);
    const uint64_t *bits;
    bool any = true;
    TEST_CHECK(tn_matcher_complete(m) && tn_matcher_length(m) == 5);
    TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK);
    TEST_CHECK(!any); // behind the end nothing comes
    TEST_CHECK_STATUS(tn_matcher_accept(m, o), TN_OK);
    TEST_CHECK(!tn_matcher_complete(m));
    tn_matcher_truncate(m, 4);
    TEST_CHECK(tn_matcher_complete(m));
    tn_matcher_truncate(m, 2);
    TEST_CHECK(!tn_matcher_complete(m));
    tn_matcher_truncate(m, 9); // not longer
    TEST_CHECK(tn_matcher_length(m) == 2);
    TEST_CHECK_STATUS(tn_matcher_accept(m, hell), TN_OK); // not allowed: nothing can follow
    TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK);
    TEST_CHECK(!any && !tn_matcher_complete(m));
    TEST_CHECK_STATUS(tn_matcher_accept(m, -1), TN_OK);
    TEST_CHECK_STATUS(tn_matcher_accept(m, 1), TN_OK); // a control token
    TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK);
    TEST_CHECK(!any);
    tn_matcher_truncate(m, 0);
    for (int32_t i = 0; i < 1000; i++) TEST_CHECK_STATUS(tn_matcher_accept(m, o), TN_OK);
    TEST_CHECK_STATUS(tn_matcher_accept(m, o), TN_ERR_STATE);
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
}

// Calls within calls: each token needs new lists and sets. The tables are emptied on the way, also within a
// mask, until the list of one text alone fills them.
static void test_deep_calls(void)
{
    enum { LISTS = 1 << 17 };
    tn_grammar *g = make_grammar(__LINE__, "root ::= \"h\" root \"e\" | \"\"");
    tn_matcher *m = NULL;
    TEST_CHECK_STATUS(tn_matcher_create(ctx, g, trie, 2 * LISTS, &m), TN_OK);
    int32_t h = id_of("h"), e = id_of("e"), byte_h = id_of("<0x68>"), byte_e = id_of("<0x65>"),
            he = id_of("he"), n = 0;
    const uint64_t *bits = NULL;
    bool any = false;
    for (bool same = true; n < 3000 && same; n++) {
        TEST_CHECK_STATUS(tn_matcher_accept(m, h), TN_OK);
        if (!TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_OK)) break;
        for (int32_t i = 0; i < trie->n_tokens; i++)
            same = same && allowed(bits, i) == (i == h || i == e || i == he || i == byte_h || i == byte_e);
        if (!TEST_CHECK(same)) printf("    the mask behind %d tokens\n", (int)n + 1);
    }
    tn_matcher_truncate(m, 9); // read again from the beginning
    check_mask(__LINE__, m);
    TEST_CHECK(tn_matcher_length(m) == 9 && try_bytes(m, "eeeeeeeee", 9) == 1);
    tn_status status = TN_OK;
    for (n = 9; n < 2 * LISTS && status == TN_OK; n++) status = tn_matcher_accept(m, h);
    TEST_CHECK_STATUS(status, TN_ERR_UNSUPPORTED);
    TEST_CHECK(n > LISTS - 10 && n <= LISTS + 10 && tn_matcher_length(m) == n - 1);
    TEST_CHECK_STATUS(tn_matcher_mask(m, &bits, &any), TN_ERR_UNSUPPORTED);
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
    g = make_grammar(__LINE__, "root ::= (\"a\"?){20000}"); // more places than a set has
    TEST_CHECK_STATUS(tn_matcher_create(ctx, g, trie, 10, &m), TN_ERR_UNSUPPORTED);
    TEST_CHECK(m == NULL);
    tn_grammar_destroy(&g);
}

// More sets than the tables hold: they are emptied, and nothing else changes.
static void test_full_tables(void)
{
    tn_grammar *g = make_grammar(__LINE__, "root ::= ([a-z] | \" \"){0,20000}");
    tn_matcher *m = NULL;
    TEST_CHECK_STATUS(tn_matcher_create(ctx, g, trie, 20000, &m), TN_OK);
    int32_t hello = id_of("hello");
    for (int32_t i = 0; i < 4000; i++) {
        if (!TEST_CHECK_STATUS(tn_matcher_accept(m, hello), TN_OK)) break;
        if (i % 500 == 0) check_mask(__LINE__, m);
    }
    TEST_CHECK(tn_matcher_complete(m));
    check_mask(__LINE__, m);
    TEST_CHECK_STATUS(tn_matcher_accept(m, hello), TN_OK);
    TEST_CHECK(!tn_matcher_complete(m));
    tn_matcher_truncate(m, 3999);
    check_mask(__LINE__, m);
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
}

static void test_allocations(void)
{
    const char *text = "root ::= (\"ab\" | [^x]){2,3} a\na ::= [a-z]*";
    long live = allocs.live, n_failed = 0;
    tn_status status = TN_ERR_MEMORY;
    for (; status != TN_OK && n_failed < 300; n_failed++) {
        tn_grammar *g = NULL;
        tn_matcher *m = NULL;
        tn_vocab_trie *t = NULL;
        allocs.fail_from = allocs.calls + n_failed;
        allocs.fail_to = allocs.fail_from + 1;
        status = tn_grammar_create(ctx, "grammar", text, strlen(text), &g);
        if (status == TN_OK) status = tn_vocab_trie_create(ctx, tokenizer, &t);
        if (status == TN_OK) status = tn_matcher_create(ctx, g, t, 100, &m);
        TEST_CHECK(status == TN_OK || status == TN_ERR_MEMORY);
        tn_matcher_destroy(&m);
        tn_vocab_trie_destroy(&t);
        tn_grammar_destroy(&g);
        TEST_CHECK(allocs.live == live);
    }
    allocs.fail_from = allocs.fail_to = 0;
    TEST_CHECK(status == TN_OK && n_failed > 15);
}

// --- timing ------------------------------------------------------------------------------------------

static const char json_grammar[] =
    "root ::= object\nvalue ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\" ws\n"
    "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\n"
    "string ::= \"\\\"\" ([^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}))* "
    "\"\\\"\" ws\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws\n"
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";

// Random texts of a grammar, 2000 tokens in all.
static void bench_grammar(const tn_tokenizer *t, const tn_vocab_trie *v, const char *name, const char *gbnf)
{
    tn_grammar *g = make_grammar(__LINE__, gbnf);
    tn_matcher *m = NULL;
    tiny_must(tn_matcher_create(ctx, g, v, 4000, &m));
    tn_rng r;
    tn_rng_seed(&r, 3);
    double first = 0, sum = 0, most = 0;
    int32_t n = 0, n_slow = 0;
    for (; n < 2000; n++) {
        const uint64_t *bits;
        bool any;
        uint64_t start = tn_time_ns();
        tiny_must(tn_matcher_mask(m, &bits, &any));
        if (!any) break;
        int32_t token = (int32_t)(tn_rng_next(&r) % (uint64_t)v->n_tokens);
        while (!allowed(bits, token)) token = (token + 1) % v->n_tokens;
        tiny_must(tn_matcher_accept(m, token));
        double ms = (double)(tn_time_ns() - start) * 1e-6;
        if (n == 0) first = ms;
        sum += ms;
        n_slow += ms > 1.0;
        most = TN_MAX(most, ms);
        if (tn_tokenizer_is_eog(t, token)) tn_matcher_truncate(m, 0);
    }
    printf("%s, %d random tokens: first %.2f ms, mean %.3f ms, most %.2f ms, %d above 1 ms\n", name, (int)n,
           first, sum / n, most, (int)n_slow);
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
}

static void bench(const char *path)
{
    tn_gguf *gguf = NULL;
    if (tn_gguf_open(ctx, path, &gguf) != TN_OK) exit(2);
    tn_tokenizer *t = NULL;
    if (tn_tokenizer_create(ctx, gguf, NULL, &t) != TN_OK || !t) exit(2);
    uint64_t start = tn_time_ns();
    tn_vocab_trie *v = NULL;
    tiny_must(tn_vocab_trie_create(ctx, t, &v));
    printf("%d tokens, %u nodes, tree in %.1f ms\n", (int)v->n_tokens, v->n_nodes,
           (double)(tn_time_ns() - start) * 1e-6);
    bench_grammar(t, v, "JSON", json_grammar);
    bench_grammar(t, v, "{20,400}", "root ::= [^\"\\\\]{20,400}");
    bench_grammar(t, v, "strings of up to 400",
                  "root ::= \"[\" s (\", \" s){0,50} \"]\"\ns ::= \"\\\"\" c{0,400} \"\\\"\"\n"
                  "c ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" [nrt\"]");
    tn_vocab_trie_destroy(&v);
    tn_tokenizer_destroy(&t);
    tn_gguf_close(&gguf);
}

int main(int argc, char **argv)
{
    static tiny_vocab vocab;
    ctx = counting_context(&allocs);
    if (argc > 2) {
        bench(argv[2]);
        return 0;
    }
    tiny_spm(&vocab);
    tiny_open(ctx, &vocab);
    tiny_must(tn_tokenizer_create(ctx, vocab.gguf, NULL, &tokenizer));
    tiny_must(tn_vocab_trie_create(ctx, tokenizer, &trie));
    TEXTS(json_grammar,
          "{}\x1f"
          "{\"a\": [1, -2.5e1, \"x\\u00e9\\n\"], \"b\":{}}\n  ",
          "{\"a\": tr\x1f"
          "{\"\\u00",
          "[]\x1f"
          "{,}\x1f"
          "{\"a\":01}");
    test_texts();
    test_characters();
    test_repeats();
    test_recursion();
    test_errors();
    test_bounds();
    test_random();
    test_masks();
    test_counts();
    test_back();
    test_full_tables();
    test_deep_calls();
    test_allocations();
    tn_vocab_trie_destroy(&trie);
    tn_tokenizer_destroy(&tokenizer);
    tiny_close(ctx, &vocab);
    tn_context_destroy(&ctx);
    TEST_CHECK(allocs.live == 0);
    return test_done();
}
