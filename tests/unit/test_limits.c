// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Generations whose text follows a grammar or a schema, on a session that follows a script.
#include "tests/unit/script_session.h"

#include <math.h>

// The session's own choice has no alternatives to show: logits are read.
static void test_logprobs(void)
{
    tn_generation_config cfg = config(0, NULL);
    sampling.n_logprobs = 2;
    restart("h e </s>");
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    tn_piece piece = {.struct_size = sizeof piece};
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.n_logprobs == 2 && piece.logprobs[0].token == piece.token &&
               piece.logprobs[0].logprob == piece.logprob && piece.logprobs[1].logprob < piece.logprob);
    RUN(g, "e|", TN_STOP_END);
    tn_generation_destroy(&g);
}

// A generation whose text follows a grammar, whatever the script would like.
static void expect_grammar(int line, const char *grammar, const char *script, const char *want, int32_t stop)
{
    tn_generation_config cfg = config(0, NULL);
    cfg.grammar = grammar;
    cfg.max_tokens = 20;
    expect_all(line, &cfg, script, want, stop);
}
#define GRAMMAR(grammar, script, want, stop) expect_grammar(__LINE__, (grammar), (script), (want), (stop))

static void test_grammar(void)
{
    GRAMMAR("root ::= \"hello\"", "h e l l o </s>", "h|e|l|l|o|", TN_STOP_END);
    GRAMMAR("root ::= \"hello\"", "hello a </s>", "hello|", TN_STOP_END);  // only the end may follow
    GRAMMAR("root ::= \" hello\"", "▁hello </s>", " hello|", TN_STOP_END); // no space is dropped
    GRAMMAR("root ::= \"a\"* \"b\"", "a a </s> b </s>", "a|a|a|b|",
            TN_STOP_END); // too early an end: the first allowed
    GRAMMAR("root ::= \"a\"*", "</s>", "", TN_STOP_END);
    GRAMMAR("root ::= [a-b]{2}", "hello l ab </s>", "a|a|", TN_STOP_END);
    GRAMMAR("root ::= \"é\"", "<0xC3> <0xA9> </s>", "|é|", TN_STOP_END);
    // Nothing printable: no token can begin it.
    restart("h e");
    tn_generation_config cfg = config(0, NULL);
    cfg.grammar = "root ::= \"h\" [^\\x00-\\U0010FFFE]";
    tn_generation *g = NULL;
    TEST_CHECK_STATUS(tn_generation_create(session, &cfg, &g), TN_OK);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    uint64_t before = tn_context_n_allocs(ctx);
    char got[64];
    int32_t stop = run(g, got, sizeof got);
    TEST_CHECK(stop == TN_STOP_END && strcmp(got, "h||||\xf4\x8f\xbf\xbf|") == 0);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){id_of("a", 1)}, 1),
                      TN_OK); // the grammar begins anew
    restart("h");
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    tn_piece piece = {.struct_size = sizeof piece};
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.token == id_of("h", 1) && tn_context_n_allocs(ctx) == before);
    tn_generation_destroy(&g);
    // All that the grammar allows is excluded otherwise.
    int32_t ids[] = {id_of("b", 1), 3 + 'b'};
    float never[] = {-INFINITY, -INFINITY};
    cfg.grammar = "root ::= \"a\" \"b\"";
    sampling.bias_tokens = ids;
    sampling.bias_values = never;
    sampling.n_bias = 2;
    for (int32_t i = 0; i < 2; i++) {
        sampling.temperature = (float)i;
        ALL(&cfg, "a b", i ? "a|" : "a|", TN_STOP_BLOCKED);
    }
    cfg = config(0, NULL);
    cfg.grammar = "root ::= x";
    TEST_CHECK_STATUS(tn_generation_create(session, &cfg, &g), TN_ERR_ARG);
    TEST_CHECK(message_has("grammar: line 1, column 10: the rule x is not defined"));
    const tn_tokenizer *t = fake.model.tokenizer;
    fake.model.tokenizer = NULL;
    cfg.grammar = "root ::= \"x\"";
    TEST_CHECK_STATUS(tn_generation_create(session, &cfg, &g), TN_ERR_MODEL);
    fake.model.tokenizer = (tn_tokenizer *)t;
}

// A text that may not come: when it is complete the script is asked again, without the token that began it.
static void expect_bans(int line, const char *const *bans, int32_t n, const char *script, const char *want,
                        int32_t stop)
{
    tn_generation_config cfg = config(0, NULL);
    cfg.bans = bans;
    cfg.n_bans = n;
    cfg.max_tokens = 6;
    sampling.n_logprobs = 1;
    expect_all(line, &cfg, script, want, stop);
}
#define BANS(n, script, want, stop, ...)                                                                     \
    expect_bans(__LINE__, (const char *[]){__VA_ARGS__}, (n), (script), (want), (stop))

// Tokens without text are held back behind "e", until no more can be: the text ends there.
static void test_bans_full(void)
{
    enum { MOST = 2 + 256 };
    const char *ban = "el";
    int32_t n = 0;
    tn_piece piece = {.struct_size = sizeof piece};
    tn_generation_config cfg = config(0, NULL);
    cfg.bans = &ban;
    cfg.n_bans = 1;
    restart("e");
    fake.n_ctx = SCRIPT_MAX;
    while (fake.n_script < MOST + 10) fake.script[fake.n_script++] = BOS;
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    for (piece.stop = TN_STOP_NONE; piece.stop == TN_STOP_NONE && n < SCRIPT_MAX;) {
        if (!TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK)) break;
        TEST_CHECK(piece.n_text == (n == 0) && (n > 0 || piece.text[0] == 'e'));
        n += piece.token >= 0;
    }
    TEST_CHECK(piece.stop == TN_STOP_BLOCKED && n == MOST);
    tn_generation_destroy(&g);
}

// A text that goes on behind what the sequence holds: what comes before its first token is there.
static void test_bans_without_prompt(void)
{
    const char *ban = "el";
    tn_generation_config cfg = config(0, NULL);
    cfg.bans = &ban;
    cfg.n_bans = 1;
    restart("e l a b </s>");
    TEST_CHECK_STATUS(tn_session_feed(session, 0, (int32_t[]){BOS, id_of("h", 1)}, 2), TN_OK);
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, NULL, 0), TN_OK);
    RUN(g, "a|b|", TN_STOP_END);
    const int32_t want[] = {BOS, id_of("h", 1), id_of("a", 1), id_of("b", 1)};
    TEST_CHECK(fake.length == 4 && memcmp(fake.fed, want, sizeof want) == 0);
    tn_generation_destroy(&g);
}

static void test_bans(void)
{
    BANS(1, "h e l a b </s>", "h|a|b|", TN_STOP_END, "el"); // e l went, a came in the place of e
    BANS(1, "h e a l </s>", "h|e|a|l|", TN_STOP_END, "el");
    BANS(1, "h e </s>", "h|e|", TN_STOP_END, "el");  // held back to the end
    BANS(1, "hell a </s>", "a|", TN_STOP_END, "el"); // in the middle of the first token
    BANS(1, "h e l l h a </s>", "h|h|a|", TN_STOP_END, "ell");
    BANS(2, "a b h e l o </s>", "a|b|o|", TN_STOP_END, "he", "l");
    BANS(1, "h e e l l h b e </s>", "h|h|b|e|", TN_STOP_END,
         "el"); // what was free before is not when more is taken back
    BANS(1, "a a a b h l l l", "a|a|a|b|h|l", TN_STOP_LIMIT, "llx");
    BANS(1, "a ab o b </s>", "a|o|b|", TN_STOP_END, "ab");
    // A blank that is a token: in the text if the token stays, and gone if the token is taken back.
    BANS(1, "a ▁ hell b </s>", "a| |b|", TN_STOP_END, "el");
    BANS(1, "a ▁ hell ▁ b </s>", "a| | |b|", TN_STOP_END, "el");
    BANS(1, "a ▁ h o b </s>", "a|o|b|", TN_STOP_END, " h");
    BANS(1, "a ▁ h ▁a b </s>", "a| a|b|", TN_STOP_END, " h");
    BANS(1, "▁ h o b </s>", "o|b|", TN_STOP_END, " h"); // also where the text begins, which drops one blank
    BANS(1, "▁▁ h ▁a b </s>", "a|b|", TN_STOP_END, " h");
    test_bans_full();
    test_bans_without_prompt();
    tn_generation_config cfg = config(0, NULL);
    tn_generation *g = NULL;
    const char *empty = "", *one = "lx";
    cfg.bans = &empty;
    cfg.n_bans = 1;
    TEST_CHECK_STATUS(tn_generation_create(session, &cfg, &g), TN_ERR_ARG);
    cfg.n_bans = 257;
    TEST_CHECK_STATUS(tn_generation_create(session, &cfg, &g), TN_ERR_ARG);
    cfg.n_bans = 1;
    cfg.bans = NULL;
    TEST_CHECK_STATUS(tn_generation_create(session, &cfg, &g), TN_ERR_ARG);
    // A stop string while tokens behind it are held back: the sequence ends with it.
    const char *stops[] = {"l"};
    cfg = config(1, stops);
    cfg.bans = &one;
    cfg.n_bans = 1;
    ALL(&cfg, "h l </s>", "h|", TN_STOP_STRING);
    TEST_CHECK(fake.length == 2);
    long live = allocs.live, n_failed = 0;
    tn_status status = TN_ERR_MEMORY;
    for (; status != TN_OK && n_failed < 200; n_failed++) {
        allocs.fail_from = allocs.calls + n_failed;
        allocs.fail_to = allocs.fail_from + 1;
        status = tn_generation_create(session, &cfg, &g);
        tn_generation_destroy(&g);
        TEST_CHECK(allocs.live == live && (status == TN_OK || status == TN_ERR_MEMORY));
    }
    allocs.fail_from = allocs.fail_to = 0;
    TEST_CHECK(status == TN_OK && n_failed > 10);
}

int main(void)
{
    static tiny_vocab vocab;
    ctx = counting_context(&allocs);
    tiny_spm(&vocab);
    tiny_open(ctx, &vocab);
    fake.model.ctx = ctx;
    fake.model.gguf = vocab.gguf;
    tiny_must(tn_tokenizer_create(ctx, vocab.gguf, NULL, &fake.model.tokenizer));
    test_logprobs();
    test_grammar();
    test_bans();
    tn_tokenizer_destroy(&fake.model.tokenizer);
    tiny_close(ctx, &vocab);
    tn_context_destroy(&ctx);
    TEST_CHECK(allocs.live == 0);
    return test_done();
}
