// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages of the sampling chain in every order: draws against distributions worked out by hand, and
// against the definitions written down plainly (sorted lists, double precision).
#include "models/run/sampling/rng.h"
#include "models/run/sampling/sampler.h"
#include "tests/unit/chi_square.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

#include <float.h>
#include <string.h>

enum { N_MAX = 64, HISTORY = 200 };

static counting allocs;
static tn_context *ctx;

// --- helpers -----------------------------------------------------------------------------------------

static tn_sampling only(const char *samplers)
{
    tn_sampling c;
    tn_sampling_default(&c);
    c.temperature = 1;
    c.samplers = samplers;
    return c;
}

static tn_sampler *make(const tn_sampling *c, int32_t n_vocab)
{
    tn_sampler *s = NULL;
    if (!TEST_CHECK_STATUS(tn_sampler_create(ctx, c, n_vocab, HISTORY, &s), TN_OK)) abort();
    return s;
}

static int32_t choose(tn_sampler *s, const float *logits)
{
    int32_t token = -1;
    float logprob = 1;
    TEST_CHECK_STATUS(tn_sampler_choose(s, logits, &token, &logprob), TN_OK);
    return token;
}

static void expect_draws(int line, const tn_sampling *c, const float *logits, int32_t n, const double *p)
{
    int32_t seen[N_MAX] = {0};
    tn_sampler *s = make(c, n);
    uint64_t before = tn_context_n_allocs(ctx);
    for (int32_t i = 0; i < 20000; i++) {
        int32_t token = choose(s, logits);
        if (token >= 0 && token < n) seen[token]++;
    }
    TEST_CHECK(tn_context_n_allocs(ctx) == before);
    bool ok = chi_square_fits(p, seen, n, 20000);
    if (!test_report(ok, __FILE__, line, c->samplers ? c->samplers : "default order"))
        for (int32_t i = 0; i < n; i++)
            if (p[i] > 0 || seen[i]) printf("    %d: %.4f, seen %.4f\n", (int)i, p[i], seen[i] / 20000.0);
    tn_sampler_destroy(&s);
}

// --- by hand -----------------------------------------------------------------------------------------

// ln of 0.4 0.3 0.15 0.1 0.05; the entropy is 1.39238 nats.
static const float five[5] = {-0.91629073f, -1.2039728f, -1.8971200f, -2.3025851f, -2.9957323f};
#define HAND(c, ...) expect_draws(__LINE__, (c), five, 5, (const double[5]){__VA_ARGS__})

static void test_typical(void)
{
    // Distance of the surprise from the entropy: 0.476 0.188 0.505 0.910 1.603.
    tn_sampling c = only("typ_p");
    c.typical_p = 0.2f;
    HAND(&c, 0, 1, 0, 0, 0);
    c.typical_p = 0.5f;
    HAND(&c, 4 / 7.0, 3 / 7.0, 0, 0, 0);
    c.typical_p = 0.75f;
    HAND(&c, 0.4 / 0.85, 0.3 / 0.85, 0.15 / 0.85, 0, 0);
    c.typical_p = 1;
    HAND(&c, 0.4, 0.3, 0.15, 0.1, 0.05);
    c.temperature = 0; // the best one is not typical
    c.samplers = NULL;
    c.typical_p = 0.2f;
    HAND(&c, 0, 1, 0, 0, 0);
}

static void test_top_n_sigma(void)
{
    const float steps[6] = {3, 2, 1, 0, -1, -INFINITY}; // deviation 1.41421
    const double e[5] = {0.6364086, 0.2341217, 0.0861285, 0.0316849, 0.0116562};
    tn_sampling c = only("top_n_sigma");
    c.top_n_sigma = 0.5f;
    expect_draws(__LINE__, &c, steps, 6, (const double[6]){1});
    c.top_n_sigma = 1;
    expect_draws(__LINE__, &c, steps, 6, (const double[6]){0.7310586, 0.2689414});
    c.top_n_sigma = 2;
    expect_draws(__LINE__, &c, steps, 6, (const double[6]){0.6652410, 0.2447285, 0.0900306});
    c.top_n_sigma = 3;
    expect_draws(__LINE__, &c, steps, 6, (const double[6]){e[0], e[1], e[2], e[3], e[4]});
    c.top_n_sigma = 0;
    expect_draws(__LINE__, &c, steps, 6, (const double[6]){e[0], e[1], e[2], e[3], e[4]});
}

static void test_xtc(void)
{
    tn_sampling c = only("xtc");
    c.xtc_probability = 1;
    c.xtc_threshold = 0.12f;
    HAND(&c, 0, 0, 0.5, 1 / 3.0, 1 / 6.0);
    c.xtc_threshold = 0.35f; // one token only: it stays
    HAND(&c, 0.4, 0.3, 0.15, 0.1, 0.05);
    c.xtc_threshold = 0.51f;
    HAND(&c, 0.4, 0.3, 0.15, 0.1, 0.05);
    c.xtc_threshold = 0.12f;
    c.xtc_probability = 0.25f;
    HAND(&c, 0.3, 0.225, 0.2375, 0.15833333, 0.07916667);
    c.xtc_probability = 0;
    HAND(&c, 0.4, 0.3, 0.15, 0.1, 0.05);
    const float equal[3] = {1, 1, 1}; // of equals the last stays
    c.xtc_probability = 1;
    expect_draws(__LINE__, &c, equal, 3, (const double[3]){0, 0, 1});
    c.temperature = 0;
    c.samplers = NULL;
    HAND(&c, 0, 0, 1, 0, 0);
}

static void power_of_five(double t, double *p)
{
    const double q[5] = {0.4, 0.3, 0.15, 0.1, 0.05};
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += p[i] = pow(q[i], 1 / t);
    for (int i = 0; i < 5; i++) p[i] /= sum;
}

static void test_dynamic_temperature(void)
{
    double p[5];
    tn_sampling c = only("temperature");
    c.dynatemp_range = 0.5f; // 1.39238 / ln 5 = 0.86514 of the way from 0.5 to 1.5
    power_of_five(1.36514, p);
    expect_draws(__LINE__, &c, five, 5, p);
    c.dynatemp_exponent = 2;
    power_of_five(1.24847, p);
    expect_draws(__LINE__, &c, five, 5, p);
    c.dynatemp_exponent = 1;
    c.dynatemp_range = 3; // from 0 to 4
    power_of_five(3.46056, p);
    expect_draws(__LINE__, &c, five, 5, p);
    c.temperature = 0; // from 0 to 3
    power_of_five(2.59542, p);
    expect_draws(__LINE__, &c, five, 5, p);
    const float one[2] = {3, -INFINITY}, sure[2] = {3, -200};
    c.temperature = 1;
    c.dynatemp_range = 1;
    expect_draws(__LINE__, &c, one, 2, (const double[2]){1, 0});
    expect_draws(__LINE__, &c, sure, 2, (const double[2]){1, 0});
}

static void test_mirostat(void)
{
    tn_sampling c = only(NULL);
    c.mirostat = 2;
    c.mirostat_tau = 1; // the bound begins at 2 bits; surprises are 1.32 1.74 2.74 3.32 4.32
    HAND(&c, 4 / 7.0, 3 / 7.0, 0, 0, 0);
    c.top_k = 1; // filters are off
    HAND(&c, 4 / 7.0, 3 / 7.0, 0, 0, 0);
    c.temperature = 2; // probabilities .3001 .2599 .1838 .1501 .1061: 1.74 1.94 2.44 2.74 3.24 bits
    HAND(&c, 0.5358984, 0.4641016, 0, 0, 0);
    c.temperature = 1;
    c.mirostat_tau = 0; // never less than the best one
    HAND(&c, 1, 0, 0, 0, 0);
    c.mirostat_tau = 1;
    tn_sampler *s = make(&c, 5);
    TEST_CHECK(tn_sampler_mu(s) == 2);
    int32_t n[2] = {0};
    for (int32_t i = 0; i < 50; i++) {
        int32_t token = choose(s, five);
        if (!TEST_CHECK(token < 2)) break;
        TEST_CHECK(tn_sampler_mu(s) == 2);
        n[token]++;
        tn_sampler_push(s, token);
        double want = token == 0 ? 2.0192645 : 1.9777608; // 2 - 0.1 (log2(7 / 4 or 7 / 3) - 1)
        TEST_CHECK(fabs((double)tn_sampler_mu(s) - want) < 1e-6);
        choose(s, five);
        tn_sampler_set_length(s, 0); // taken back
    }
    TEST_CHECK(n[0] > 0 && n[1] > 0 && tn_sampler_mu(s) == 2);
    choose(s, five);
    tn_sampler_push(s, 4); // another token than the one chosen teaches nothing
    TEST_CHECK(tn_sampler_mu(s) == 2);
    tn_sampler_destroy(&s);
}

static void test_order(void)
{
    tn_sampling c = only("top_p;temperature");
    c.temperature = 2;
    c.top_p = 0.6f;
    HAND(&c, 0.5358984, 0.4641016, 0, 0, 0);
    c.samplers = "temperature;top_p";
    HAND(&c, 0.4034975, 0.3494391, 0.2470634, 0, 0); // .3001 .2599 .1838 reach 0.6
    c.samplers = "top-p";                            // no temperature
    HAND(&c, 4 / 7.0, 3 / 7.0, 0, 0, 0);
    c.samplers = "";
    HAND(&c, 0.4, 0.3, 0.15, 0.1, 0.05);
    c.samplers = "top_k;typ_p";
    c.top_k = 3; // of .471 .353 .176, entropy 1.0277: distances .275 .014 .707
    c.typical_p = 0.3f;
    HAND(&c, 0, 1, 0, 0, 0);
    static const char *const bad[] = {"top_q", "top_k;top_k",      "top_k;;top_p",
                                      ";",     "temp;temperature", "top_k;top_p;x"};
    for (size_t i = 0; i < TN_COUNT(bad); i++) {
        tn_sampler *s = NULL;
        c.samplers = bad[i];
        TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, 5, 5, &s), TN_ERR_ARG);
        TEST_CHECK(!s);
    }
    c.samplers = "penalties;dry;top_nsigma;top_k;typical_p;nucleus;min-p;xtc;temp;";
    tn_sampler *s = make(&c, 5);
    tn_sampler_destroy(&s);
}

static void test_penalties_after_temperature(void)
{
    tn_sampling c = only("temperature;top_k;penalties");
    c.temperature = 0.5f;
    c.top_k = 4;
    c.presence_penalty = 2;
    tn_sampler *s = make(&c, 5);
    tn_sampler_push(s, 0);
    tn_sampler_push(s, 4); // not among the candidates any more
    int32_t seen[5] = {0};
    for (int32_t i = 0; i < 20000; i++) seen[choose(s, five)]++;
    double p[5] = {0.16 * exp(-2), 0.09, 0.0225, 0.01, 0}, sum = 0;
    for (int32_t i = 0; i < 5; i++) sum += p[i];
    for (int32_t i = 0; i < 5; i++) p[i] /= sum;
    TEST_CHECK(chi_square_fits(p, seen, 5, 20000));
    tn_sampler_destroy(&s);
}

static void test_logprobs(void)
{
    const float logits[6] = {-2.3025851f, -0.91629073f, -INFINITY, -1.2039728f, -1.8971200f, -2.9957323f};
    const int32_t order[5] = {1, 3, 4, 0, 5};
    const double p[5] = {0.4, 0.3, 0.15, 0.1, 0.05};
    tn_sampling c = only(NULL);
    for (int32_t n = 0; n <= 8; n++) {
        c.n_logprobs = n;
        c.temperature = n % 2 ? 0 : 3;
        tn_sampler *s = make(&c, 6);
        int32_t got = -1, token = choose(s, logits);
        const tn_logprob *l = tn_sampler_logprobs(s, &got);
        TEST_CHECK(token != 2 && got == TN_MIN(n, 5));
        for (int32_t i = 0; i < got; i++)
            TEST_CHECK(l[i].token == order[i] && fabs((double)l[i].logprob - log(p[i])) < 1e-6);
        TEST_CHECK(tn_sampler_is_greedy(s) == false || n == 0);
        tn_sampler_destroy(&s);
    }
    const float equal[4] = {1, 1, 1, 1};
    c.n_logprobs = 2;
    tn_sampler *s = make(&c, 4);
    int32_t got;
    choose(s, equal);
    TEST_CHECK(tn_sampler_logprobs(s, &got)[0].token == 0 && tn_sampler_logprobs(s, &got)[1].token == 1);
    tn_sampler_destroy(&s);
}

static void test_greedy(void)
{
    tn_sampling plain = only(NULL);
    plain.temperature = 0;
    struct {
        tn_sampling c;
        bool greedy;
    } rows[10];
    for (size_t i = 0; i < TN_COUNT(rows); i++) rows[i].c = plain, rows[i].greedy = false;
    rows[0].greedy = true;
    rows[1].c.temperature = 0.01f;
    rows[2].c.presence_penalty = 1;
    rows[3].c.dry_multiplier = 1;
    rows[4].c.xtc_probability = 1;
    rows[5].c.typical_p = 0.5f;
    rows[6].c.dynatemp_range = 1;
    rows[7].c.mirostat = 2;
    rows[7].greedy = true;
    rows[8].c.presence_penalty = 1;
    rows[8].c.samplers = "top_k";
    rows[8].greedy = true;
    rows[9].c.n_logprobs = 1;
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_sampler *s = make(&rows[i].c, 5);
        if (!TEST_CHECK(tn_sampler_is_greedy(s) == rows[i].greedy)) printf("    row %zu\n", i);
        tn_sampler_destroy(&s);
    }
}

// --- DRY ---------------------------------------------------------------------------------------------

// What token 0 .. n-1 loses after a history, by the definition: for every earlier place that a token stands
// at, how much before it equals the end.
static void dry_penalties(const tn_sampling *c, const int32_t *history, const bool *breaks, int32_t n_history,
                          int32_t n, double *penalty)
{
    int32_t first = c->dry_penalty_last_n < 0 ? 0 : TN_MAX(0, n_history - c->dry_penalty_last_n);
    for (int32_t i = 0; i < n; i++) penalty[i] = 0;
    for (int32_t at = first + 1; at < n_history; at++) {
        int32_t length = 0;
        while (at - 1 - length >= first && !breaks[n_history - 1 - length] &&
               history[at - 1 - length] == history[n_history - 1 - length])
            length++;
        if (length < c->dry_allowed_length || history[at] < 0) continue;
        double loss = (double)c->dry_multiplier * pow((double)c->dry_base, length - c->dry_allowed_length);
        penalty[history[at]] = TN_MAX(penalty[history[at]], loss);
    }
}

// The chosen one of `n` equal tokens is the first that lost least: raising each until it wins tells its loss.
static void expect_dry(int line, tn_sampler *s, int32_t n, const double *penalty)
{
    for (int32_t i = 0; i < n; i++) {
        float logits[N_MAX];
        for (int32_t k = 0; k < n; k++) logits[k] = k == i ? 0 : -FLT_MAX / 2;
        int32_t rival = i == 0 ? 1 : 0;
        double share = penalty[rival];
        bool ok = true;
        for (int side = -1; side <= 1; side += 2) {
            logits[rival] = (float)(share - penalty[i] + side * 1e-3);
            ok = ok && choose(s, logits) == (side < 0 ? i : rival);
        }
        if (!test_report(ok, __FILE__, line, "DRY")) printf("    token %d, loss %g\n", (int)i, penalty[i]);
    }
}

static tn_sampling dry_config(void)
{
    tn_sampling c = only("dry;temperature");
    c.temperature = 0;
    c.dry_multiplier = 1;
    c.dry_base = 2;
    return c;
}

static void test_dry(void)
{
    static const int32_t history[] = {1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3};
    const double hand[10] = {0, 0, 0, 0, 2, 1, 0, 0, 0, 0}; // 1 2 3 -> 4: 2 ^ (3 - 2); 2 3 -> 5: 2 ^ 0
    tn_sampling c = dry_config();
    tn_sampler *s = make(&c, 10);
    for (size_t i = 0; i < TN_COUNT(history); i++) tn_sampler_push(s, history[i]);
    expect_dry(__LINE__, s, 10, hand);
    tn_sampler_set_length(s, 7); // 2 3 again: 4 came behind it
    expect_dry(__LINE__, s, 10, (const double[10]){[4] = 1});
    tn_sampler_set_length(s, 6);
    expect_dry(__LINE__, s, 10, (const double[10]){0});
    tn_sampler_push(s, -1); // nothing is known to repeat
    expect_dry(__LINE__, s, 10, (const double[10]){0});
    tn_sampler_destroy(&s);
    c.dry_penalty_last_n = 6; // 2 3 5 1 2 3
    s = make(&c, 10);
    for (size_t i = 0; i < TN_COUNT(history); i++) tn_sampler_push(s, history[i]);
    expect_dry(__LINE__, s, 10, (const double[10]){[5] = 1});
    tn_sampler_destroy(&s);
    c.dry_penalty_last_n = -1;
    c.dry_allowed_length = 1; // a loop of one token: 8 equal ones before 8
    s = make(&c, 10);
    for (size_t i = 0; i < 9; i++) tn_sampler_push(s, 8);
    expect_dry(__LINE__, s, 10, (const double[10]){[8] = 128});
    tn_sampler_destroy(&s);
}

static void test_random_dry(void)
{
    tn_rng r;
    tn_rng_seed(&r, 21);
    for (int32_t round = 0; round < 300; round++) {
        tn_sampling c = dry_config();
        int32_t history[60], n = (int32_t)(tn_rng_next(&r) % 60),
                             alphabet = 1 + (int32_t)(tn_rng_next(&r) % 4);
        bool breaks[60];
        double penalty[6];
        c.dry_base = 1 + (float)(tn_rng_next(&r) % 3) / 8;
        c.dry_allowed_length = 1 + (int32_t)(tn_rng_next(&r) % 4);
        c.dry_penalty_last_n = (int32_t)(tn_rng_next(&r) % 70) - 1;
        tn_sampler *s = make(&c, 6);
        for (int32_t i = 0; i < n; i++) {
            history[i] = tn_rng_next(&r) % 20 ? (int32_t)(tn_rng_next(&r) % (uint64_t)alphabet) : -1;
            breaks[i] = history[i] < 0;
            tn_sampler_push(s, history[i]);
        }
        dry_penalties(&c, history, breaks, n, 6, penalty);
        expect_dry(__LINE__, s, 6, penalty);
        tn_sampler_destroy(&s);
    }
}

// Breakers are texts, whatever the borders of tokens.
static void test_breakers(void)
{
    static tiny_vocab vocab;
    tn_tokenizer *t = NULL;
    tiny_spm(&vocab);
    tiny_open(ctx, &vocab);
    tiny_must(tn_tokenizer_create(ctx, vocab.gguf, NULL, &t));
    int32_t n = tn_tokenizer_n_tokens(t), h = tn_tokenizer_find(t, "h", 1), e = tn_tokenizer_find(t, "e", 1),
            l = tn_tokenizer_find(t, "l", 1), a = tn_tokenizer_find(t, "a", 1),
            lo = tn_tokenizer_find(t, "lo", 2);
    static const struct {
        const char *breaker;
        bool broken; // somewhere in "h e l", so that it may be repeated
    } rows[] = {{"x", false},  {"h", false}, {"el", true},   {"l", true},  {"ahel", true},
                {"ll", false}, {"e", false}, {"elh", false}, {"he", false}};
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_sampling c = dry_config();
        c.dry_breakers = &rows[i].breaker;
        c.n_dry_breakers = 1;
        c.dry_allowed_length = 1;
        tn_sampler *s = make(&c, n);
        TEST_CHECK_STATUS(tn_sampler_set_tokenizer(s, t), TN_OK);
        const int32_t history[] = {a, h, e, l, lo, a, h, e, l};
        uint64_t before = tn_context_n_allocs(ctx);
        for (size_t k = 0; k < TN_COUNT(history); k++) tn_sampler_push(s, history[k]);
        tn_sampler_push(s, lo);
        tn_sampler_set_length(s, 9); // the text before is known again
        tn_sampler_set_length(s, 7);
        tn_sampler_push(s, e);
        tn_sampler_push(s, l);
        TEST_CHECK(tn_context_n_allocs(ctx) == before);
        float logits[TINY_TOKENS];
        for (int32_t k = 0; k < n; k++) logits[k] = k == lo ? 2 : k == a ? 1.5f : 0;
        if (!TEST_CHECK(choose(s, logits) == (rows[i].broken ? lo : a)))
            printf("    breaker %s\n", rows[i].breaker);
        tn_sampler_destroy(&s);
    }
    tn_sampling c = dry_config();
    const char *bad[3] = {"", "0123456789012345678901234567890123456789012345678901234567890123456", NULL};
    for (int i = 0; i < 3; i++) {
        tn_sampler *s = NULL;
        c.dry_breakers = &bad[i];
        c.n_dry_breakers = 1;
        TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, n, 5, &s), TN_ERR_ARG);
    }
    c.n_dry_breakers = -2;
    tn_sampler *s = NULL;
    TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, n, 5, &s), TN_ERR_ARG);
    c.n_dry_breakers = 65;
    TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, n, 5, &s), TN_ERR_ARG);
    tn_tokenizer_destroy(&t);
    tiny_close(ctx, &vocab);
}

// Tokens that the file suppresses, and those of the bias list; ids that no token has mean nothing.
static void test_suppressed(void)
{
    static tiny_vocab vocab;
    tn_tokenizer *t = NULL;
    tiny_spm(&vocab);
    const int32_t suppress[] = {7, -3, 259, 100000, 7};
    memcpy(vocab.suppress, suppress, sizeof suppress);
    vocab.n_suppress = TN_COUNT(suppress);
    tiny_open(ctx, &vocab);
    tiny_must(tn_tokenizer_create(ctx, vocab.gguf, NULL, &t));
    TEST_CHECK(tn_tokenizer_is_suppressed(t, 7) && tn_tokenizer_is_suppressed(t, 259) &&
               !tn_tokenizer_is_suppressed(t, 8));
    int32_t n = tn_tokenizer_n_tokens(t);
    float logits[TINY_TOKENS];
    for (int32_t k = 0; k < n; k++) logits[k] = k == 7 ? 9 : k == 259 ? 8 : k == 11 ? 7 : k == 12 ? 6 : 0;
    for (int i = 0; i < 4; i++) {
        tn_sampling c;
        tn_sampling_default(&c);
        c.temperature = i < 2 ? 0.0f : 0.01f;
        c.n_bias = i % 2;
        c.bias_tokens = (int32_t[]){11};
        c.bias_values = (float[]){-2.0f};
        tn_sampler *s = make(&c, n);
        TEST_CHECK(tn_sampler_is_greedy(s) == (i == 0));
        TEST_CHECK_STATUS(tn_sampler_set_tokenizer(s, t), TN_OK);
        TEST_CHECK(choose(s, logits) == (i % 2 ? 12 : 11) && !tn_sampler_is_greedy(s));
        tn_sampler_destroy(&s);
    }
    tn_tokenizer_destroy(&t);
    tiny_close(ctx, &vocab);
}

// --- random chains -----------------------------------------------------------------------------------

typedef struct item {
    int32_t id;
    double logit, p;
} item;

static int by_logit(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return x->logit != y->logit ? (x->logit > y->logit ? -1 : 1) : x->id - y->id;
}

static int by_p(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return x->p != y->p ? (x->p < y->p ? -1 : 1) : x->id - y->id;
}

static double normalise(item *x, int n)
{
    double sum = 0, h = 0;
    qsort(x, (size_t)n, sizeof *x, by_logit);
    for (int i = 0; i < n; i++) sum += x[i].p = exp(x[i].logit - x[0].logit);
    for (int i = 0; i < n; i++) {
        x[i].p /= sum;
        if (x[i].p > 0) h -= x[i].p * log(x[i].p);
    }
    return h;
}

static int keep_mass(item *x, int n, double mass)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if ((sum += x[i].p) >= mass) return i + 1;
    return n;
}

static int keep_typical(item *x, int n, double mass)
{
    double h = normalise(x, n), sum = 0;
    item distance[N_MAX];
    int kept = 0;
    for (int i = 0; i < n; i++) distance[i] = (item){i, x[i].logit, fabs(-log(x[i].p) - h)};
    qsort(distance, (size_t)n, sizeof *distance, by_p);
    for (; kept < n && (kept == 0 || sum < mass); kept++) sum += x[distance[kept].id].p;
    item out[N_MAX];
    for (int i = 0; i < kept; i++) out[i] = x[distance[i].id];
    memcpy(x, out, (size_t)kept * sizeof *x);
    return kept;
}

static int keep_sigma(const tn_sampling *c, item *x, int n)
{
    double mean = 0, square = 0;
    int kept = 0;
    for (int i = 0; i < n; i++) mean += x[i].logit / n;
    for (int i = 0; i < n; i++) square += (x[i].logit - mean) * (x[i].logit - mean) / n;
    while (kept < n && x[kept].logit >= x[0].logit - (double)c->top_n_sigma * sqrt(square)) kept++;
    return kept;
}

// One stage on a list; returns how many are left.
static int run_stage(const tn_sampling *c, char stage, item *x, int n)
{
    double h = normalise(x, n), t = (double)c->temperature, range = (double)c->dynatemp_range;
    switch (stage) {
    case 's':
        return c->top_n_sigma > 0 ? keep_sigma(c, x, n) : n;
    case 'k':
        return c->top_k > 0 ? TN_MIN(n, c->top_k) : n;
    case 'y':
        return c->typical_p < 1 ? keep_typical(x, n, (double)c->typical_p) : n;
    case 'p':
        return c->top_p < 1 ? keep_mass(x, n, (double)c->top_p) : n;
    case 'm':
        while (n > 1 && x[n - 1].p < (double)c->min_p * x[0].p) n--;
        return n;
    case 'x': {
        int above = 0;
        while (above < n && x[above].p >= (double)c->xtc_threshold) above++;
        if (c->xtc_probability < 1 || above < 2) return n;
        memmove(x, x + above - 1, (size_t)(n - above + 1) * sizeof *x);
        return n - above + 1;
    }
    default:
        if (range > 0) {
            double low = TN_MAX(0, t - range), share = n > 1 ? h / log(n) : 0;
            t = low + (t + range - low) * pow(share, (double)c->dynatemp_exponent);
        }
        for (int i = 0; i < n; i++) x[i].logit /= TN_MAX(t, 1e-9);
        return n;
    }
}

static void test_random_chains(void)
{
    static const char letters[] = "skypmxt";
    static const char *const names[] = {"top_n_sigma", "top_k", "typ_p",      "top_p",
                                        "min_p",       "xtc",   "temperature"};
    tn_rng r;
    tn_rng_seed(&r, 31);
    for (int32_t round = 0; round < 150; round++) {
        float logits[40];
        item x[N_MAX];
        double p[N_MAX] = {0};
        char order[128] = "";
        int n = 40, used[7] = {0};
        for (int32_t i = 0; i < n; i++) {
            logits[i] = (float)(3 * (tn_rng_uniform(&r) + tn_rng_uniform(&r) + tn_rng_uniform(&r)));
            x[i] = (item){i, (double)logits[i], 0};
        }
        tn_sampling c = only(order);
        c.top_n_sigma = (float)(tn_rng_uniform(&r) * 3);
        c.top_k = 5 + (int32_t)(tn_rng_next(&r) % 40);
        c.typical_p = (float)(0.3 + tn_rng_uniform(&r));
        c.top_p = (float)(0.3 + tn_rng_uniform(&r));
        c.min_p = (float)(tn_rng_uniform(&r) * 0.2);
        c.xtc_probability = (float)(tn_rng_next(&r) % 2);
        c.xtc_threshold = (float)(0.02 + tn_rng_uniform(&r) * 0.2);
        c.temperature = (float)(0.3 + tn_rng_uniform(&r) * 2);
        c.dynatemp_range = (float)(tn_rng_next(&r) % 2) * 0.7f;
        c.dynatemp_exponent = (float)(0.5 + tn_rng_uniform(&r));
        c.seed = (uint64_t)round;
        c.typical_p = TN_MIN(c.typical_p, 1.0f);
        c.top_p = TN_MIN(c.top_p, 1.0f);
        for (int left = 7; left > 0; left--) {
            int pick = (int)(tn_rng_next(&r) % 7);
            while (used[pick]) pick = (pick + 1) % 7;
            used[pick] = 1;
            strcat(strcat(order, *order ? ";" : ""), names[pick]);
            n = run_stage(&c, letters[pick], x, n);
        }
        normalise(x, n);
        for (int i = 0; i < n; i++) p[x[i].id] = x[i].p;
        expect_draws(__LINE__, &c, logits, 40, p);
    }
}

int main(void)
{
    ctx = counting_context(&allocs);
    test_typical();
    test_top_n_sigma();
    test_xtc();
    test_dynamic_temperature();
    test_mirostat();
    test_order();
    test_penalties_after_temperature();
    test_logprobs();
    test_greedy();
    test_dry();
    test_random_dry();
    test_breakers();
    test_suppressed();
    test_random_chains();
    tn_context_destroy(&ctx);
    TEST_CHECK(allocs.live == 0);
    return test_done();
}
