// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Generations on a session that follows a script: stop strings over token borders, held-back characters,
// every reason to stop, no allocations; and the public text functions. The session is
// that of script_session.h.
#include "models/run/generation.h"
#include "models/run/sampling/rng.h"
#include "tests/unit/script_session.h"

#include <math.h>
#include <tenon/text.h>

// --- text --------------------------------------------------------------------------------------------

static void test_leading_space(void)
{
    tn_generation_config cfg = config(0, NULL);
    ALL(&cfg, "▁hello ▁a </s>", "hello| a|", TN_STOP_END);
    ALL(&cfg, "<unk> ▁ ▁a </s>", "|| a|", TN_STOP_END); // the first that has a text
    ALL(&cfg, "h ▁a </s>", "h| a|", TN_STOP_END);
    ALL(&cfg, "</s>", "", TN_STOP_END);
    restart("▁hello </s>");
    tn_generation *g = make(&cfg);
    int32_t h = id_of("h", 1);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS, h}, 2), TN_OK); // continues a text
    RUN(g, " hello|", TN_STOP_END);
    restart("▁hello </s>"); // the same where someone else evaluates
    tn_piece piece = {.struct_size = sizeof piece};
    TEST_CHECK_STATUS(tn_generation_attach(g, (int32_t[]){BOS}, 1), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(session, 0, (int32_t[]){BOS}, 1), TN_OK);
    TEST_CHECK_STATUS(tn_generation_evaluated(g, 0), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    bool bare = TEST_CHECK(piece.n_text == 5 && memcmp(piece.text, "hello", 5) == 0);
    if (!bare)
        printf("    token %d, text %.*s\n", piece.token, (int)piece.n_text, piece.text ? piece.text : "");
    tn_generation_destroy(&g);
}

static void test_stops(void)
{
    const char *one[] = {"llo"}, *none[] = {"lla"}, *self[] = {"aab"}, *two[] = {"hell", "el"},
               *same[] = {"l", "el"};
    const char *first[] = {"hello"}, *bytes[] = {"\xc3\xa9"}, *split[] = {"\xa9"},
               *special[] = {"</s>", "s>"};
    tn_generation_config cfg = config(1, one);
    ALL(&cfg, "h e l l o a", "h|e|||", TN_STOP_STRING);
    ALL(&cfg, "hell o a", "he|", TN_STOP_STRING);
    ALL(&cfg, "a hello", "a|he", TN_STOP_STRING);
    ALL(&cfg, "h l l l l o", "h|||l|l|", TN_STOP_STRING);
    ALL(&cfg, "h l l </s>", "h|||ll", TN_STOP_END); // held back to the end
    cfg = config(1, none);
    ALL(&cfg, "h e l l o a </s>", "h|e|||llo|a|", TN_STOP_END);
    cfg = config(1, self);
    ALL(&cfg, "a a a b", "||a|", TN_STOP_STRING);
    ALL(&cfg, "a a h a ab", "||aah||", TN_STOP_STRING);
    cfg = config(2, two); // what completes first counts, however the tokens are cut
    ALL(&cfg, "h e l l", "||h", TN_STOP_STRING);
    ALL(&cfg, "hello", "h", TN_STOP_STRING);
    cfg = config(2, same); // then the longer one
    ALL(&cfg, "h e l", "h||", TN_STOP_STRING);
    cfg = config(1, first);
    ALL(&cfg, "▁hello", "", TN_STOP_STRING); // behind the dropped space
    cfg = config(1, bytes);
    ALL(&cfg, "a <0xC3> <0xA9> h", "a||", TN_STOP_STRING);
    ALL(&cfg, "a <0xC3> <0xA8> </s>", "a||è|", TN_STOP_END);
    cfg = config(1, split); // in the middle of a character: the rest comes as it is
    ALL(&cfg, "a <0xC3> <0xA9> h", "a||\xc3", TN_STOP_STRING);
    cfg = config(2, special); // also what print_special prints
    cfg.print_special = 1;
    ALL(&cfg, "h </s>", "h|", TN_STOP_END);
    cfg.max_tokens = 2;
    cfg.ignore_end = 1;
    ALL(&cfg, "h </s> h", "h|", TN_STOP_STRING);
}

static void test_utf8(void)
{
    tn_generation_config cfg = config(0, NULL);
    ALL(&cfg, "<0xF0> <0x9F> <0x98> <0x80> é </s>", "|||😀|é|", TN_STOP_END);
    ALL(&cfg, "<0xF0> h <0xFF> <0x80> </s>", "|\xf0h|\xff|\x80|", TN_STOP_END);
    ALL(&cfg, "<0xC3> </s>", "|\xc3", TN_STOP_END);
    cfg.max_tokens = 2;
    ALL(&cfg, "h <0xE2> <0x96>", "h|\xe2", TN_STOP_LIMIT);
}

// What the model wants is left out where the grammar does not allow it, and the text ends where it must.
static void test_grammar(void)
{
    tn_generation_config cfg = config(0, NULL);
    cfg.grammar = "root ::= \"e\" \"o\"";
    ALL(&cfg, "h h h", "e|o|", TN_STOP_END);
}

// Random tokens and stop strings against a search in the whole text.
static void test_random_streams(void)
{
    static const char *const tokens[] = {"a",  "b",    "ab",    "h", "e", "l",      "he",
                                         "ll", "hell", "hello", "o", "é", "<0xC3>", "<0xA9>"};
    tn_rng r;
    tn_rng_seed(&r, 9);
    for (int32_t round = 0; round < 2000; round++) {
        char texts[3][8], script[256] = "", all[256] = "", got[512], joined[512];
        const char *stops[3] = {texts[0], texts[1], texts[2]};
        for (int32_t i = 0; i < 3; i++) {
            size_t n = 1 + tn_rng_next(&r) % 4;
            for (size_t k = 0; k < n; k++) texts[i][k] = "abhelo"[tn_rng_next(&r) % 6];
            texts[i][n] = 0;
        }
        for (int32_t i = 0; i < 16; i++) {
            const char *t = tokens[tn_rng_next(&r) % TN_COUNT(tokens)];
            bool byte = t[0] == '<';
            strcat(strcat(script, i ? " " : ""), t);
            strcat(all, byte ? (t[3] == 'C' ? "\xc3" : "\xa9") : t);
        }
        // The prefix of `all` that ends first with a stop string loses the longest such.
        size_t cut = strlen(all), longest = 0;
        for (size_t end = 1; end <= cut && longest == 0; end++)
            for (int32_t i = 0; i < 3; i++) {
                size_t n = strlen(texts[i]);
                if (n <= end && n > longest && memcmp(all + end - n, texts[i], n) == 0)
                    longest = n, cut = end - n;
            }
        all[cut] = 0;
        tn_generation_config cfg = config(3, stops);
        cfg.max_tokens = 16;
        restart(script);
        tn_generation *g = make(&cfg);
        TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
        int32_t stop = run(g, got, sizeof got);
        size_t used = 0;
        for (const char *p = got; *p; p++)
            if (*p != '|') joined[used++] = *p;
        joined[used] = 0;
        TEST_CHECK(stop == (longest ? TN_STOP_STRING : TN_STOP_LIMIT));
        if (!TEST_CHECK(strcmp(joined, all) == 0))
            printf("    %s: '%s', expected '%s'\n", script, joined, all);
        tn_generation_destroy(&g);
    }
}

// --- reasons to stop ---------------------------------------------------------------------------------

static void test_limits(void)
{
    tn_generation_config cfg = config(0, NULL);
    cfg.max_tokens = 0;
    ALL(&cfg, "h e", "", TN_STOP_LIMIT);
    cfg.max_tokens = 1;
    ALL(&cfg, "h e", "h", TN_STOP_LIMIT);
    TEST_CHECK(fake.n_feeds == 1); // the last token is not evaluated
    cfg.max_tokens = 3;
    ALL(&cfg, "h e </s>", "h|e|", TN_STOP_END);
    cfg.ignore_end = 1;
    ALL(&cfg, "h </s> e", "h||e", TN_STOP_LIMIT);
    cfg.print_special = 1;
    ALL(&cfg, "h </s> e", "h|</s>|e", TN_STOP_LIMIT);
    cfg.ignore_end = 0;
    ALL(&cfg, "h </s> e", "h|</s>", TN_STOP_END);
    cfg.max_tokens = 5;
    cfg.min_tokens = 2;
    ALL(&cfg, "h </s> e </s> l", "h|</s>|e|</s>", TN_STOP_END);
    cfg.min_tokens = 1;
    ALL(&cfg, "h </s> e </s> l", "h|</s>", TN_STOP_END);
    cfg.min_tokens = 9; // the limit comes first
    ALL(&cfg, "h </s> e </s> l l", "h|</s>|e|</s>|l", TN_STOP_LIMIT);
}

static void test_context_full(void)
{
    tn_generation_config cfg = config(0, NULL);
    tn_piece piece = {.struct_size = sizeof piece};
    restart("h e l l o");
    fake.n_ctx = 3;
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS, 1, 1, 1}, 4), TN_ERR_CONTEXT_FULL);
    TEST_CHECK(message_has("prompt of 4 tokens") &&
               message_has("context of 3 tokens 0 are in use and 3 free"));
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    RUN(g, "h|e|l", TN_STOP_CONTEXT); // the third token is chosen, the context is too full to evaluate it
    TEST_CHECK(fake.length == 3);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_ERR_CONTEXT_FULL);
    TEST_CHECK_STATUS(tn_generation_prompt(g, NULL, 0), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.token == -1 && piece.n_text == 0 && piece.stop == TN_STOP_CONTEXT);
    tn_generation_destroy(&g);
    restart("h e"); // a prompt that fills the context
    fake.n_ctx = 2;
    g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS, BOS}, 2), TN_OK);
    RUN(g, "h", TN_STOP_CONTEXT);
    tn_generation_destroy(&g);
    restart("h <0xC3> e"); // another sequence took the capacity
    fake.fail_at = 2;
    fake.fail_with = TN_ERR_CONTEXT_FULL;
    g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    RUN(g, "h||\xc3", TN_STOP_CONTEXT);
    tn_generation_destroy(&g);
}

static void test_cancel(void)
{
    const char *stops[] = {"ela"};
    tn_generation_config cfg = config(1, stops);
    tn_generation_stats stats = {.struct_size = sizeof stats};
    restart("h e l l o </s>");
    fake.fail_at = 2;
    fake.fail_with = TN_ERR_CANCELLED;
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    RUN(g, "h||e", TN_STOP_CANCELLED); // held-back text is not lost
    tn_generation_stats_get(g, &stats);
    TEST_CHECK(stats.n_prompt == 1 && stats.n_generated == 2 && fake.length == 2);
    TEST_CHECK_STATUS(tn_generation_prompt(g, NULL, 0), TN_OK); // goes on where it was
    RUN(g, "l|l|o|", TN_STOP_END);
    tn_generation_destroy(&g);
    restart("h");
    fake.fail_at = 0;
    fake.fail_with = TN_ERR_CANCELLED;
    g = make(&cfg);
    tn_piece piece = {.struct_size = sizeof piece};
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_ERR_CANCELLED);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    tn_generation_destroy(&g);
    restart("h e </s>"); // other failures are failures, and the step can be asked for again
    fake.fail_at = 1;
    fake.fail_with = TN_ERR_DEVICE;
    g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_ERR_DEVICE);
    RUN(g, "|e", TN_STOP_END);
    tn_generation_destroy(&g);
}

// --- prompts -----------------------------------------------------------------------------------------

static void test_prompts(void)
{
    tn_generation_config cfg = config(0, NULL);
    tn_generation_stats stats = {.struct_size = sizeof stats};
    tn_piece piece = {.struct_size = sizeof piece};
    restart("h e </s> a b </s>");
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_generation_prompt(g, NULL, 0), TN_ERR_ARG);
    TEST_CHECK(message_has("prompt is empty"));
    TEST_CHECK_STATUS(tn_generation_prompt(g, NULL, 3), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, SIZE_MAX), TN_ERR_CONTEXT_FULL);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS, 9}, 2), TN_OK);
    RUN(g, "h|e|", TN_STOP_END);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_ERR_STATE);
    // The token that stopped was not evaluated: the next prompt comes in its place.
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){EOS, 7}, 2), TN_OK);
    RUN(g, "a|b|", TN_STOP_END);
    const int32_t want[] = {BOS, 9, id_of("h", 1), id_of("e", 1), EOS, 7, id_of("a", 1), id_of("b", 1)};
    TEST_CHECK(fake.length == 8 && memcmp(fake.fed, want, sizeof want) == 0);
    tn_generation_stats_get(g, &stats);
    TEST_CHECK(stats.n_prompt == 2 && stats.n_generated == 3 && stats.first_token_ns >= stats.prompt_ns);
    TEST_CHECK(stats.generate_ns > 0);
    tn_generation_destroy(&g);
    cfg.seq = 1; // the session has only one
    g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_generation_start(g, (int32_t[]){BOS}, 1), TN_ERR_ARG);
    TEST_CHECK(message_has("the session has 1"));
    tn_generation_destroy(&g);
}

static void test_logits(void)
{
    tn_generation_config cfg = config(0, NULL);
    tn_piece piece = {.struct_size = sizeof piece};
    restart("h e l </s>");
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    fake.logits[id_of("a", 1)] = 99; // another sequence is fed before the first step
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.token == id_of("h", 1) && fabsf(piece.logprob) < 1e-6f);
    fake.no_logits = true;
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_ERR_STATE);
    fake.no_logits = false;
    TEST_CHECK_STATUS(tn_generation_prompt(g, NULL, 0), TN_OK);
    for (int32_t i = 0; i < fake.n_vocab; i++) fake.logits[i] = NAN;
    TEST_CHECK_STATUS(tn_generation_prompt(g, NULL, 0), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_ERR_INTERNAL);
    tn_generation_destroy(&g);
    restart("h e </s>"); // the prompt counts for penalties, and so does what was generated
    sampling.presence_penalty = 100;
    g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){0, 1, id_of("h", 1)}, 3), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.token == 2 && piece.stop == TN_STOP_END);
    fake.length = 2; // what is cut from the sequence is forgotten
    fake.logits[id_of("h", 1)] = 50;
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){id_of("a", 1)}, 1), TN_OK);
    fake.logits[2] = 50;
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.token == id_of("e", 1));
    tn_generation_destroy(&g);
}

// More outputs than the tokenizer has tokens, and no tokenizer at all.
static void test_no_text(void)
{
    const char *stops[] = {"h"};
    tn_generation_config cfg = config(1, stops);
    tn_piece piece = {.struct_size = sizeof piece};
    restart("a a </s>");
    fake.script[0] = fake.n_vocab++;
    tn_generation *g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    RUN(g, "|a|", TN_STOP_END);
    tn_generation_destroy(&g);
    restart("h </s> a");
    tn_tokenizer *t = fake.model.tokenizer;
    fake.model.tokenizer = NULL;
    cfg.max_tokens = 3;
    g = make(&cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.text != NULL && piece.n_text == 0 && piece.token >= 0);
    RUN(g, "|", TN_STOP_LIMIT);
    tn_generation_destroy(&g);
    fake.model.tokenizer = t;
}

// --- configuration -----------------------------------------------------------------------------------

static void expect_config(int line, const tn_generation_config *cfg, const char *field)
{
    tn_generation *g = NULL;
    tn_status status = tn_generation_create(session, cfg, &g);
    bool ok = field ? status == TN_ERR_ARG && g == NULL && message_has(field) : status == TN_OK;
    test_report(ok, __FILE__, line, field ? field : "accepted");
    tn_generation_destroy(&g);
}

static void test_config(void)
{
    static const struct {
        int32_t seq, max_tokens, n_stops;
        const char *field; // NULL: accepted
    } rows[] = {
        {0, -1, 0, NULL},      {255, INT32_MAX, 0, NULL}, {-1, -1, 0, "seq"},
        {256, -1, 0, "seq"},   {0, -2, 0, "max_tokens"},  {0, INT32_MIN, 0, "max_tokens"},
        {0, 0, -1, "n_stops"}, {0, 0, 1024, NULL},        {0, 0, 1025, "n_stops"},
    };
    static const char *stops[1025];
    static char long_stop[65538];
    for (size_t i = 0; i < TN_COUNT(stops); i++) stops[i] = "stop";
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_generation_config cfg = config(rows[i].n_stops, stops);
        cfg.seq = rows[i].seq;
        cfg.max_tokens = rows[i].max_tokens;
        expect_config(__LINE__, &cfg, rows[i].field);
    }
    expect_config(__LINE__, NULL, NULL);
    tn_generation_config cfg = config(1, NULL);
    expect_config(__LINE__, &cfg, "stops is NULL");
    const char *odd[] = {"a", ""};
    cfg = config(2, odd);
    expect_config(__LINE__, &cfg, "stops[1]");
    odd[1] = NULL;
    expect_config(__LINE__, &cfg, "stops[1]");
    odd[1] = long_stop;
    memset(long_stop, 'x', 65536);
    expect_config(__LINE__, &cfg, NULL);
    long_stop[65536] = 'x';
    expect_config(__LINE__, &cfg, "stops[1]");
    cfg = config(0, NULL);
    sampling.top_p = 2;
    expect_config(__LINE__, &cfg, "top_p");
    cfg = config(0, NULL);
    cfg.grammar = "root ::= \"a\"";
    cfg.json_schema = "{}";
    expect_config(__LINE__, &cfg, "grammar and json_schema exclude each other");
    cfg = config(0, NULL);
    cfg.struct_size = 0;
    expect_config(__LINE__, &cfg, "struct_size");
}

// A context that is shifted would lose what a grammar has matched, and has to keep one token.
static void test_shift_refused(void)
{
    for (int32_t i = 0; i < 3; i++) {
        tn_generation_config cfg = config(0, NULL);
        tn_generation *g = NULL;
        cfg.context_full = TN_CONTEXT_SHIFT;
        if (i == 1) cfg.grammar = "root ::= \"a\"";
        restart("h");
        if (i == 2) fake.n_ctx = 1;
        TEST_CHECK_STATUS(tn_generation_create(session, &cfg, &g), i == 0 ? TN_OK : TN_ERR_UNSUPPORTED);
        TEST_CHECK(i == 0 || message_has("not shifted under a grammar, or with one token"));
        tn_generation_destroy(&g);
    }
}

static void test_allocations(void)
{
    const char *stops[] = {"one", "two"};
    tn_generation_config cfg = config(2, stops);
    sampling.repeat_penalty = 2;
    sampling.dry_multiplier = 2;
    cfg.grammar = "root ::= \"a\"+";
    restart("h");
    tn_generation *first = make(&cfg); // the tokenizer keeps the tree that grammars need
    tn_generation_destroy(&first);
    long live = allocs.live, n_failed = 0;
    tn_status status = TN_ERR_MEMORY;
    for (; status != TN_OK && n_failed < 100; n_failed++) {
        tn_generation *g = NULL;
        allocs.fail_from = allocs.calls + n_failed;
        allocs.fail_to = allocs.fail_from + 1;
        status = tn_generation_create(session, &cfg, &g);
        TEST_CHECK(status == TN_ERR_MEMORY ? g == NULL : status == TN_OK && g != NULL);
        tn_generation_destroy(&g);
        TEST_CHECK(allocs.live == live);
    }
    allocs.fail_from = allocs.fail_to = 0;
    TEST_CHECK(status == TN_OK && n_failed > 6);
}

// --- text.h ------------------------------------------------------------------------------------------

static void test_text_api(void)
{
    const tn_model *m = &fake.model;
    int32_t *ids = NULL;
    size_t n_ids = 0, n = 0;
    char *text = NULL;
    TEST_CHECK_STATUS(
        tn_tokenize(m, "hello</s>", 9, TN_TEXT_ADD_SPECIAL | TN_TEXT_PARSE_SPECIAL, &ids, &n_ids), TN_OK);
    TEST_CHECK(n_ids == 3 && ids[0] == BOS && ids[1] == id_of("▁hello", 8) && ids[2] == EOS);
    TEST_CHECK_STATUS(tn_detokenize(m, ids, n_ids, TN_TEXT_PRINT_SPECIAL, &text, &n), TN_OK);
    TEST_CHECK(n == 13 && strcmp(text, "<s> hello</s>") == 0);
    tn_free(ctx, text);
    TEST_CHECK_STATUS(tn_detokenize(m, ids + 1, 1, 0, &text, &n), TN_OK);
    TEST_CHECK(n == 5 && strcmp(text, "hello") == 0);
    tn_free(ctx, text);
    TEST_CHECK_STATUS(tn_detokenize(m, ids, 1, TN_TEXT_REMOVE_SPECIAL, &text, &n), TN_OK);
    TEST_CHECK(n == 0 && text[0] == 0);
    tn_free(ctx, text);
    tn_tokens_free(m, ids);
    TEST_CHECK_STATUS(tn_tokenize(m, "hello</s>", 9, 0, &ids, &n_ids), TN_OK);
    TEST_CHECK(n_ids > 2 && ids[0] != BOS && ids[n_ids - 1] != EOS);
    tn_tokens_free(m, ids);
    TEST_CHECK_STATUS(tn_tokenize(m, NULL, 0, 0, &ids, &n_ids), TN_OK);
    TEST_CHECK(n_ids == 0);
    tn_tokens_free(m, ids);
    TEST_CHECK_STATUS(tn_tokenize(m, NULL, 1, 0, &ids, &n_ids), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_tokenize(m, "a", 1, TN_TEXT_PRINT_SPECIAL, &ids, &n_ids), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_detokenize(m, NULL, 1, 0, &text, &n), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_detokenize(m, (int32_t[]){-1}, 1, 0, &text, &n), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_detokenize(m, (int32_t[]){1}, 1, TN_TEXT_ADD_SPECIAL, &text, &n), TN_ERR_ARG);
    TEST_CHECK(tn_token_is_end(m, EOS) && !tn_token_is_end(m, BOS) && !tn_token_is_end(m, -1));
    tn_model empty = {0};
    TEST_CHECK_STATUS(tn_tokenize(&empty, "a", 1, 0, &ids, &n_ids), TN_ERR_MODEL);
    TEST_CHECK(!tn_token_is_end(&empty, EOS) && !tn_chat_template_name(&empty) &&
               !tn_model_has_chat_template(&empty));
}

static void test_chat_api(void)
{
    const tn_model *m = &fake.model;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    tn_turn turns[] = {{.struct_size = sizeof *turns, .role = "system", .content = "a"},
                       {.struct_size = sizeof *turns, .role = "user", .content = "hello</s>"}};
    TEST_CHECK(!tn_model_has_chat_template(m) && tn_chat_template_name(m) != NULL);
    TEST_CHECK_STATUS(tn_chat_tokenize(m, turns, 2, NULL, &ids, &n_ids), TN_OK);
    bool has_end = false;
    for (size_t i = 0; i < n_ids; i++) has_end = has_end || ids[i] == EOS;
    TEST_CHECK(n_ids > 4 && !has_end);
    tn_tokens_free(m, ids);
    ids = NULL;
    tn_chat_config cfg;
    char *text = NULL;
    tn_chat_config_default(&cfg);
    cfg.chat_template = "{{ messages|length }}{{ messages[1].content }}{{ x }}{{ add_generation_prompt }}";
    cfg.variables = "{\"x\": 1}";
    TEST_CHECK_STATUS(tn_chat_render(m, turns, 2, &cfg, &text, &n_ids), TN_OK);
    TEST_CHECK(strcmp(text, "<s>2hello</s>1True") == 0 && n_ids == strlen(text));
    tn_free(ctx, text);
    turns[1].role = NULL;
    TEST_CHECK_STATUS(tn_chat_tokenize(m, turns, 2, NULL, &ids, &n_ids), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_chat_tokenize(m, NULL, 2, NULL, &ids, &n_ids), TN_ERR_ARG);
    cfg.chat_template = "nothing";
    TEST_CHECK_STATUS(tn_chat_tokenize(m, turns, 1, &cfg, &ids, &n_ids), TN_ERR_ARG);
    cfg.chat_template = "chatml";
    cfg.variables = "[]";
    TEST_CHECK_STATUS(tn_chat_tokenize(m, turns, 1, &cfg, &ids, &n_ids), TN_ERR_ARG);
    cfg.struct_size = 9999;
    TEST_CHECK_STATUS(tn_chat_tokenize(m, turns, 1, &cfg, &ids, &n_ids), TN_ERR_ARG);
    TEST_CHECK(ids == NULL);
}

// A prompt may be longer than what it is made of, but not by orders.
static void test_chat_capacity(void)
{
    static char long_text[40001];
    memset(long_text, 'x', sizeof long_text - 1);
    tn_turn turns[100];
    for (size_t i = 0; i < TN_COUNT(turns); i++)
        turns[i] = (tn_turn){.struct_size = sizeof *turns, .role = "user", .content = "hi"};
    const struct {
        size_t n, max_output;
        const char *first;
        tn_status want;
    } rows[] = {{1, 0, "hi", TN_ERR_MODEL},
                {1, 0, long_text, TN_OK},
                {100, 0, "hi", TN_OK},
                {1, 300000, "hi", TN_ERR_MODEL},
                {1, 1 << 20, "hi", TN_OK}};
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        char *text = NULL;
        size_t n = 0;
        tn_chat_config cfg;
        tn_chat_config_default(&cfg);
        cfg.chat_template = "{% for m in messages %}{{ 'yyyy ' * 600 }}{% endfor %}{{ 'z ' * 150000 }}";
        cfg.max_output = rows[i].max_output;
        turns[0].content = rows[i].first;
        TEST_CHECK_STATUS(tn_chat_render(&fake.model, turns, rows[i].n, &cfg, &text, &n), rows[i].want);
        tn_free(ctx, text);
    }
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
    test_leading_space();
    test_stops();
    test_utf8();
    test_grammar();
    test_random_streams();
    test_limits();
    test_context_full();
    test_cancel();
    test_prompts();
    test_logits();
    test_no_text();
    test_config();
    test_shift_refused();
    test_allocations();
    test_text_api();
    test_chat_api();
    test_chat_capacity();
    tn_tokenizer_destroy(&fake.model.tokenizer);
    tiny_close(ctx, &vocab);
    tn_context_destroy(&ctx);
    TEST_CHECK(allocs.live == 0);
    return test_done();
}
