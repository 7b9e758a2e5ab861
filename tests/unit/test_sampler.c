// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The sampling chain: draws against exact probabilities, penalties and bias to the last bit, extreme
// logits, parameter ranges, failing allocations.
#include "models/run/sampling/bans.h"
#include "models/run/sampling/logits.h"
#include "models/run/sampling/rng.h"
#include "models/run/sampling/sampler.h"
#include "tests/unit/chi_square.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { N_MAX = 512 };

static counting allocs;
static tn_context *ctx;

// --- helpers -----------------------------------------------------------------------------------------

static tn_sampling plain(void)
{
    tn_sampling c;
    tn_sampling_default(&c);
    c.temperature = 1;
    c.top_k = 0;
    c.top_p = 1;
    c.min_p = 0;
    return c;
}

static tn_sampler *make(const tn_sampling *c, int32_t n_vocab)
{
    tn_sampler *s = NULL;
    if (!TEST_CHECK_STATUS(tn_sampler_create(ctx, c, n_vocab, 100, &s), TN_OK)) abort();
    return s;
}

static int32_t choose(tn_sampler *s, const float *logits)
{
    int32_t token = -1;
    float logprob = 1;
    TEST_CHECK_STATUS(tn_sampler_choose(s, logits, &token, &logprob), TN_OK);
    return token;
}

// One choice with its own sampler; the history is pushed first.
static int32_t choose_once(const tn_sampling *c, const float *logits, int32_t n, const int32_t *history,
                           int32_t n_history)
{
    tn_sampler *s = make(c, n);
    for (int32_t i = 0; i < n_history; i++) tn_sampler_push(s, history[i]);
    int32_t token = choose(s, logits);
    tn_sampler_destroy(&s);
    return token;
}

static bool message_has(const char *text)
{
    char message[1024];
    tn_context_error(ctx, message, sizeof message);
    return strstr(message, text) != NULL;
}

static const float *sort_logits;

static int by_logit(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (sort_logits[i] != sort_logits[j]) return sort_logits[i] > sort_logits[j] ? -1 : 1;
    return i < j ? -1 : 1;
}

static double soft(double *p, const int32_t *order, int32_t n, const float *x, double temperature)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += p[i] = exp(((double)x[order[i]] - (double)x[order[0]]) / temperature);
    for (int32_t i = 0; i < n; i++) p[i] /= sum;
    return sum;
}

// The definition: sort, cut, normalise. p [n] per token, 0 for what is cut.
static void exact(const tn_sampling *c, const float *x, int32_t n, double *p)
{
    int32_t order[N_MAX], kept = n;
    double q[N_MAX], sum = 0;
    for (int32_t i = 0; i < n; i++) order[i] = i;
    sort_logits = x;
    qsort(order, (size_t)n, sizeof *order, by_logit);
    if (c->top_k > 0 && c->top_k < kept) kept = c->top_k;
    if (c->top_p < 1) {
        soft(q, order, kept, x, 1);
        int32_t i = 0;
        while (i < kept && (i == 0 || sum < (double)c->top_p)) sum += q[i++];
        kept = i;
    }
    soft(q, order, kept, x, 1);
    while (kept > 1 && q[kept - 1] < (double)c->min_p * q[0]) kept--;
    soft(q, order, kept, x, (double)c->temperature);
    for (int32_t i = 0; i < n; i++) p[i] = 0;
    for (int32_t i = 0; i < kept; i++) p[order[i]] = q[i];
}

// Sum of standard normals that twelve uniform numbers make; enough for logits.
static float some_logit(tn_rng *r)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += tn_rng_uniform(r);
    return (float)(2 * sum);
}

// --- distributions -----------------------------------------------------------------------------------

static void check_distribution(int line, const tn_sampling *c, const float *logits, int32_t n,
                               int32_t n_draws)
{
    double p[N_MAX];
    int32_t seen[N_MAX] = {0};
    exact(c, logits, n, p);
    tn_sampler *s = make(c, n);
    uint64_t before = tn_context_n_allocs(ctx);
    for (int32_t i = 0; i < n_draws; i++) {
        int32_t token = choose(s, logits);
        if (token >= 0 && token < n) seen[token]++;
    }
    TEST_CHECK(tn_context_n_allocs(ctx) == before);
    bool ok = chi_square_fits(p, seen, n, n_draws);
    if (!test_report(ok, __FILE__, line, "chi-square"))
        printf("    temperature %g top_k %d top_p %g min_p %g\n", (double)c->temperature, (int)c->top_k,
               (double)c->top_p, (double)c->min_p);
    tn_sampler_destroy(&s);
}

static void test_distributions(void)
{
    static const struct {
        float temperature;
        int32_t top_k;
        float top_p, min_p;
    } rows[] = {
        {1, 0, 1, 0},         {0.3f, 0, 1, 0},        {2.5f, 0, 1, 0},       {100, 0, 1, 0},
        {1, 1, 1, 0},         {1, 5, 1, 0},           {1, 24, 1, 0},         {1, 25, 1, 0},
        {1, 1000, 1, 0},      {1, 0, 0.5f, 0},        {1, 0, 0.9f, 0},       {1, 0, 0, 0},
        {1, 0, 0.999999f, 0}, {1, 0, 1, 0.05f},       {1, 0, 1, 0.5f},       {1, 0, 1, 1},
        {0.8f, 10, 0.9f, 0},  {0.8f, 10, 0.9f, 0.1f}, {1.5f, 3, 0.8f, 0.2f}, {0.8f, 40, 0.95f, 0.05f},
        {1e-30f, 0, 1, 0},
    };
    tn_rng r;
    tn_rng_seed(&r, 7);
    float logits[24];
    for (int32_t i = 0; i < 24; i++) logits[i] = some_logit(&r);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_sampling c = plain();
        c.temperature = rows[i].temperature;
        c.top_k = rows[i].top_k;
        c.top_p = rows[i].top_p;
        c.min_p = rows[i].min_p;
        c.seed = i;
        check_distribution(__LINE__, &c, logits, 24, 20000);
    }
}

// Which tokens can come at all: at the highest temperature each that is kept shows up.
static void check_kept(int line, tn_sampling c, const float *logits, int32_t n)
{
    double p[N_MAX];
    bool seen[N_MAX] = {false}, same = true;
    exact(&c, logits, n, p);
    c.temperature = 100;
    tn_sampler *s = make(&c, n);
    for (int32_t i = 0; i < 20 * n; i++) seen[choose(s, logits)] = true;
    for (int32_t i = 0; i < n; i++) same = same && seen[i] == (p[i] > 0);
    if (!test_report(same, __FILE__, line, "kept tokens"))
        printf("    top_k %d top_p %g min_p %g\n", (int)c.top_k, (double)c.top_p, (double)c.min_p);
    tn_sampler_destroy(&s);
}

static void test_kept(void)
{
    enum { N = 200 };
    static const int32_t top_ks[] = {0, 1, 2, 39, 100, 199, 200, 201};
    static const float top_ps[] = {0, 0.3f, 0.8f, 0.99f, 1};
    tn_rng r;
    tn_rng_seed(&r, 11);
    for (int32_t kind = 0; kind < 4; kind++) {
        float logits[N];
        for (int32_t i = 0; i < N; i++) {
            float x = some_logit(&r);
            float shapes[] = {x, roundf(x), -1000 + x * 1e-3f, x * 1e-30f}; // ties, close together, tiny
            logits[i] = shapes[kind];
        }
        for (size_t k = 0; k < sizeof top_ks / sizeof *top_ks; k++)
            for (size_t p = 0; p < sizeof top_ps / sizeof *top_ps; p++) {
                tn_sampling c = plain();
                c.top_k = top_ks[k];
                c.top_p = kind == 0 ? top_ps[p] : 1; // among ties the border is a matter of rounding
                c.min_p = p == 1 ? 0.01f : 0;
                if (kind == 0 || p < 2) check_kept(__LINE__, c, logits, N);
            }
    }
}

static void test_ties(void)
{
    float logits[100];
    for (int32_t i = 0; i < 100; i++) logits[i] = i % 2 ? 1.5f : -2;
    tn_sampling c = plain();
    c.top_k = 3;
    c.temperature = 100;
    tn_sampler *s = make(&c, 100);
    bool first_three = true;
    for (int32_t i = 0; i < 200; i++) {
        int32_t token = choose(s, logits);
        first_three = first_three && (token == 1 || token == 3 || token == 5);
    }
    TEST_CHECK(first_three);
    tn_sampler_destroy(&s);
    c = plain();
    c.top_p = 0.5f; // eight equal tokens: four reach one half exactly
    float equal[8] = {0};
    equal[3] = -0.0f;
    check_kept(__LINE__, c, equal, 8);
    c.temperature = 0;
    TEST_CHECK(choose_once(&c, logits, 100, NULL, 0) == 1);
    TEST_CHECK(choose_once(&c, equal, 8, NULL, 0) == 0);
    TEST_CHECK(choose_once(&c, equal, 1, NULL, 0) == 0);
}

// --- seeds -------------------------------------------------------------------------------------------

static uint64_t run_hash(uint64_t seed, int32_t top_k, float top_p)
{
    tn_sampling c;
    tn_sampling_default(&c);
    c.seed = seed;
    c.top_k = top_k;
    c.top_p = top_p;
    c.repeat_penalty = 1.1f;
    tn_rng r;
    tn_rng_seed(&r, 3);
    tn_sampler *s = make(&c, 300);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t step = 0; step < 300; step++) {
        float logits[300];
        for (int32_t i = 0; i < 300; i++) logits[i] = some_logit(&r);
        int32_t token = choose(s, logits);
        tn_sampler_push(s, token);
        hash = (hash ^ (uint64_t)token) * 0x100000001b3u;
    }
    tn_sampler_destroy(&s);
    return hash;
}

static void test_seeds(void)
{
    TEST_CHECK(run_hash(0, 40, 0.95f) == run_hash(0, 40, 0.95f));
    TEST_CHECK(run_hash(0, 40, 0.95f) != run_hash(1, 40, 0.95f));
    TEST_CHECK(run_hash(UINT64_MAX, 40, 0.95f) != run_hash(0, 40, 0.95f));
    // Fixed for every compiler and machine.
    TEST_CHECK(run_hash(42, 40, 0.95f) == 0x0a2d1a91dea11091u);
    TEST_CHECK(run_hash(42, 0, 0.9f) == 0x836e71c6bdb5e841u);
    // First outputs of xoshiro256** from a splitmix64 state of seed 0.
    tn_rng r;
    tn_rng_seed(&r, 0);
    TEST_CHECK(r.state[0] == 0xe220a8397b1dcdafu && r.state[1] == 0x6e789e6aa1b965f4u);
    TEST_CHECK(tn_rng_next(&r) == 0x99ec5f36cb75f2b4u);
}

// --- bias and penalties ------------------------------------------------------------------------------

// Token 0 has logit `from`; after the history it must weigh exactly `want`: a rival just above wins, one
// just below loses.
static void check_penalised(int line, const tn_sampling *c, float from, float want, const int32_t *history,
                            int32_t n_history)
{
    float above[3] = {from, nextafterf(want, INFINITY), -1e30f},
          below[3] = {from, nextafterf(want, -INFINITY), -1e30f};
    bool ok = choose_once(c, above, 3, history, n_history) == 1 &&
              choose_once(c, below, 3, history, n_history) == 0;
    if (!test_report(ok, __FILE__, line, "penalised logit"))
        printf("    from %g, expected %g\n", (double)from, (double)want);
}

static void test_penalties(void)
{
    const int32_t thrice[] = {0, 2, 0, -1, 0}, once[] = {0}, none[] = {2, 2}, far[] = {0, 2, 2};
    tn_sampling c = plain();
    c.temperature = 0;
    c.repeat_penalty = 1.5f;
    check_penalised(__LINE__, &c, 3, 2, once, 1);
    check_penalised(__LINE__, &c, 3, 2, thrice, 5);
    check_penalised(__LINE__, &c, -3, -4.5f, thrice, 5);
    check_penalised(__LINE__, &c, 3, 3, none, 2);
    check_penalised(__LINE__, &c, 3, 3, NULL, 0);
    c.presence_penalty = 0.25f;
    c.frequency_penalty = 0.5f;
    check_penalised(__LINE__, &c, 3, 1.25f, once, 1);
    check_penalised(__LINE__, &c, 3, 0.25f, thrice, 5);
    check_penalised(__LINE__, &c, -3, -6.25f, thrice, 5);
    c.repeat_penalty = 1;
    c.presence_penalty = -0.25f;
    c.frequency_penalty = 0;
    check_penalised(__LINE__, &c, 3, 3.25f, thrice, 5);
    c.presence_penalty = 1;
    c.penalty_last_n = 2; // the window
    check_penalised(__LINE__, &c, 3, 3, far, 3);
    c.penalty_last_n = 3;
    check_penalised(__LINE__, &c, 3, 2, far, 3);
    c.penalty_last_n = -1;
    check_penalised(__LINE__, &c, 3, 2, far, 3);
    c.penalty_last_n = 0;
    check_penalised(__LINE__, &c, 3, 3, far, 3);
}

// Cutting the history brings back what had left the window; a full one takes no more.
static void test_history(void)
{
    const float logits[3] = {3, 2.5f, 0};
    tn_sampling c = plain();
    c.temperature = 0;
    c.presence_penalty = 1;
    c.penalty_last_n = 2;
    tn_sampler *s = make(&c, 3);
    const int32_t pushed[] = {0, 2, 2, 2};
    for (int32_t i = 0; i < 4; i++) tn_sampler_push(s, pushed[i]);
    TEST_CHECK(choose(s, logits) == 0); // left the window
    tn_sampler_set_length(s, 2);
    TEST_CHECK(choose(s, logits) == 1); // is back
    TEST_CHECK(choose(s, logits) == 1); // and counted the same again
    tn_sampler_set_length(s, 3);
    TEST_CHECK(choose(s, logits) == 0); // pushed out by an unknown token
    tn_sampler_set_length(s, 0);
    TEST_CHECK(choose(s, logits) == 0);
    tn_sampler_set_length(s, -5);
    tn_sampler_push(s, 3); // outside the vocabulary: as unknown
    tn_sampler_push(s, -1);
    TEST_CHECK(choose(s, logits) == 0);
    for (int32_t i = 0; i < 200; i++) tn_sampler_push(s, i < 100 ? 1 : 0);
    TEST_CHECK(choose(s, logits) == 0);
    tn_sampler_set_length(s, 1000);
    tn_sampler_set_length(s, 0);
    tn_sampler_push(s, 0);
    TEST_CHECK(choose(s, logits) == 1);
    tn_sampler_destroy(&s);
}

static void test_bias(void)
{
    const float logits[4] = {1, 2, 3, -INFINITY};
    int32_t ids[4] = {0, 2, 0, 3};
    float values[4] = {1.5f, -INFINITY, 0.5f, INFINITY};
    tn_sampling c = plain();
    c.temperature = 0;
    c.bias_tokens = ids;
    c.bias_values = values;
    c.n_bias = 1;
    TEST_CHECK(choose_once(&c, logits, 4, NULL, 0) == 2);
    c.n_bias = 2; // token 2 is excluded
    TEST_CHECK(choose_once(&c, logits, 4, NULL, 0) == 0);
    c.n_bias = 4; // pairs of one token add up; what the model excludes stays excluded
    TEST_CHECK(choose_once(&c, logits, 4, NULL, 0) == 0);
    values[0] = INFINITY;
    c.temperature = 1;
    TEST_CHECK(choose_once(&c, logits, 4, NULL, 0) == 0);
    values[1] = FLT_MAX;
    values[0] = -FLT_MAX;
    TEST_CHECK(choose_once(&c, logits, 4, NULL, 0) == 2);
    // The list is copied, and the probability is the model's own.
    tn_sampler *s = make(&c, 4);
    int32_t token;
    float logprob;
    values[1] = -FLT_MAX;
    ids[1] = 0;
    TEST_CHECK_STATUS(tn_sampler_choose(s, logits, &token, &logprob), TN_OK);
    double want = 3 - log(exp(1.0) + exp(2.0) + exp(3.0));
    TEST_CHECK(token == 2 && fabs((double)logprob - want) < 1e-6);
    tn_sampler_destroy(&s);
    const int32_t all[3] = {0, 1, 2};
    const float never[3] = {-INFINITY, -INFINITY, -INFINITY};
    c.bias_tokens = all;
    c.bias_values = never;
    c.n_bias = 3;
    s = make(&c, 4);
    TEST_CHECK_STATUS(tn_sampler_choose(s, logits, &token, &logprob), TN_ERR_ARG);
    tn_sampler_destroy(&s);
}

// Of more excluded tokens than there are places for, the first ones are allowed again.
static void test_excluded(void)
{
    const float logits[4] = {4, 3, 2, 1};
    tn_sampling c = plain();
    c.temperature = 0;
    tn_sampler *s = make(&c, 4);
    TEST_CHECK_STATUS(tn_sampler_reserve_excluded(s, 2), TN_OK);
    for (int32_t i = 0; i < 3; i++) {
        TEST_CHECK(choose(s, logits) == i);
        tn_sampler_exclude(s, i);
    }
    TEST_CHECK(choose(s, logits) == 0);
    tn_sampler_exclude(s, 0);
    TEST_CHECK(choose(s, logits) == 1);
    tn_sampler_destroy(&s);
}

// --- extreme logits ----------------------------------------------------------------------------------

static void test_logprob(void)
{
    enum { N = 401 };
    float logits[N];
    tn_rng r;
    tn_rng_seed(&r, 5);
    double sum = 0;
    for (int32_t i = 0; i < N; i++) logits[i] = some_logit(&r) - 40;
    for (int32_t i = 0; i < N; i++) sum += exp((double)logits[i]);
    tn_sampling c;
    tn_sampling_default(&c);
    tn_sampler *s = make(&c, N);
    for (int32_t i = 0; i < 50; i++) {
        int32_t token;
        float logprob;
        TEST_CHECK_STATUS(tn_sampler_choose(s, logits, &token, &logprob), TN_OK);
        TEST_CHECK(fabs((double)logprob - ((double)logits[token] - log(sum))) < 1e-5);
    }
    tn_sampler_destroy(&s);
}

static void check_extreme(int line, float temperature, const float *logits, int32_t n, int32_t want,
                          float want_logprob)
{
    tn_sampling c;
    tn_sampling_default(&c);
    c.temperature = temperature;
    tn_sampler *s = make(&c, n);
    bool ok = true;
    for (int32_t i = 0; i < 20; i++) {
        int32_t token = -1;
        float logprob = 1;
        ok = ok && tn_sampler_choose(s, logits, &token, &logprob) == TN_OK && token == want &&
             fabsf(logprob - want_logprob) < 1e-6f;
    }
    test_report(ok, __FILE__, line, "extreme logits");
    tn_sampler_destroy(&s);
}

static void test_extreme(void)
{
    const float inf = INFINITY, nan_value = NAN;
    for (int32_t i = 0; i < 3; i++) {
        float t = i == 0 ? 0.0f : i == 1 ? 0.8f : 100.0f;
        check_extreme(__LINE__, t, (float[]){nan_value, -inf, 2, nan_value}, 4, 2, 0);
        check_extreme(__LINE__, t, (float[]){nan_value, -inf, -FLT_MAX, -inf}, 4, 2, 0);
        check_extreme(__LINE__, t, (float[]){5, inf, FLT_MIN, -inf}, 4, 1, 0);
        check_extreme(__LINE__, t, (float[]){-FLT_MAX, 0, FLT_MAX, -0.0f}, 4, 2, 0);
        check_extreme(__LINE__, t, (float[]){-nan_value, 1e-45f - 1e30f}, 2, 1, 0);
    }
    check_extreme(__LINE__, 0, (float[]){inf, inf, 3}, 3, 0, -0.69314718f);
    const float bad[3][2] = {{-inf, -inf}, {nan_value, nan_value}, {nan_value, -inf}};
    tn_sampling c;
    tn_sampling_default(&c);
    tn_sampler *s = make(&c, 2);
    for (int32_t i = 0; i < 3; i++) {
        int32_t token = 77;
        float logprob = 7;
        TEST_CHECK_STATUS(tn_sampler_choose(s, bad[i], &token, &logprob), TN_ERR_INTERNAL);
        TEST_CHECK(token == 77 && message_has("logits are not finite"));
    }
    tn_sampler_destroy(&s);
}

// --- parameters --------------------------------------------------------------------------------------

static void check_range(const char *name, tn_status want, const tn_sampling *c)
{
    tn_sampler *s = NULL;
    bool ok =
        TEST_CHECK_STATUS(tn_sampler_create(ctx, c, 10, 10, &s), want) && (s != NULL) == (want == TN_OK);
    if (want != TN_OK) ok = TEST_CHECK(message_has(name)) && ok;
    if (!ok) printf("    field %s\n", name);
    tn_sampler_destroy(&s);
}

// The best of a row, wherever it is, against plain loops in double.
static void test_best(void)
{
    enum { N = 61 }; // lanes and a rest
    float x[N], p, all_nan[] = {NAN, NAN, NAN};
    tn_rng rng;
    tn_rng_seed(&rng, 7);
    for (int32_t at = 0; at < N; at++) {
        double sum = 0;
        for (int32_t i = 0; i < N; i++) x[i] = (float)(tn_rng_next(&rng) % 1000) * 0.01f - 20.0f;
        x[(at + 1) % N] = NAN, x[(at + 2) % N] = -INFINITY;
        x[at] = 3.5f;
        x[(at + 9) % N] = 3.5f; // the first of equal ones counts
        for (int32_t i = 0; i < N; i++) sum += isnan(x[i]) ? 0.0 : exp((double)x[i] - 3.5);
        int32_t first = (at + 9) % N < at ? (at + 9) % N : at;
        TEST_CHECK(tn_logits_best(x, N, &p) == first && tn_logits_best(x, N, NULL) == first);
        TEST_CHECK(fabs((double)p + log(sum)) < 1e-6);
        x[at] = x[(at + 9) % N] = INFINITY;
        TEST_CHECK(tn_logits_best(x, N, &p) == first && fabs((double)p + log(2.0)) < 1e-7);
    }
    TEST_CHECK(tn_logits_best(all_nan, 3, &p) == -1);
    all_nan[1] = -INFINITY;
    TEST_CHECK(tn_logits_best(all_nan, 3, &p) == 1 && p == 0);
}

static void test_range_FLOAT(const char *name, size_t offset, double low, double high)
{
    float min = (float)low, max = (float)high;
    const float values[] = {min,      max,      nextafterf(min, -INFINITY), nextafterf(max, INFINITY), NAN,
                            INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        tn_sampling c = plain();
        memcpy((char *)&c + offset, &values[i], sizeof values[i]);
        check_range(name, i < 2 ? TN_OK : TN_ERR_ARG, &c);
    }
}

static void test_range_INT(const char *name, size_t offset, int64_t min, int64_t max)
{
    const int64_t values[] = {min, max, min - 1, max + 1, INT32_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i] > INT32_MAX) continue;
        tn_sampling c = plain();
        int32_t v = (int32_t)values[i];
        memcpy((char *)&c + offset, &v, sizeof v);
        check_range(name, i < 2 ? TN_OK : TN_ERR_ARG, &c);
    }
}

#define FIELD(name) #name, offsetof(tn_sampling, name)

static void test_ranges(void)
{
#define TN_SAMPLING(kind, field, min, max, def) test_range_##kind(FIELD(field), min, max);
#include <tenon/sampling.def>
    // clang-format off
    static const struct {
        int32_t n, id;
        float value;
        tn_status want;
    } rows[] = {
        {0, 99, NAN, TN_OK},     {1, 0, 1, TN_OK},          {1, 9, 1, TN_OK},   {1, -1, 1, TN_ERR_ARG},
        {1, 10, 1, TN_ERR_ARG},  {1, INT32_MIN, 1, TN_ERR_ARG}, {1, INT32_MAX, 1, TN_ERR_ARG},
        {1, 0, NAN, TN_ERR_ARG}, {-1, 0, 1, TN_ERR_ARG},    {11, 0, 1, TN_ERR_ARG},
        {INT32_MAX, 0, 1, TN_ERR_ARG},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_sampling c = plain();
        c.n_bias = rows[i].n;
        c.bias_tokens = &rows[i].id;
        c.bias_values = &rows[i].value;
        check_range("bias", rows[i].want, &c);
    }
    tn_sampling c = plain();
    c.n_bias = 1;
    check_range("bias", TN_ERR_ARG, &c);
    c = plain();
    c.n_dry_breakers = 1; // and no list of them
    check_range("dry_breakers", TN_ERR_ARG, &c);
    for (int32_t i = -1; i < 4; i++) {
        c = plain();
        c.mirostat = i;
        check_range("mirostat", i == 0 || i == 2 ? TN_OK : TN_ERR_ARG, &c);
    }
    c = plain();
    tn_sampler *s = NULL;
    TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, 0, 10, &s), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, 10, -1, &s), TN_ERR_ARG);
}

// Holds a token with these bytes; the number of the held token in which a banned text began, -1: none did.
static int32_t push(tn_bans *b, int32_t token, const char *text)
{
    const tn_piece piece = {.struct_size = sizeof piece, .token = token};
    int32_t at = -1;
    return tn_bans_push(b, &piece, text, strlen(text), &at) ? at : -1;
}

static void test_bans(void)
{
    const char *const texts[] = {"abcd", "bx", "cc"};
    tn_bans *b = NULL;
    tn_piece piece = {.struct_size = sizeof piece};
    if (!TEST_CHECK_STATUS(tn_bans_create(ctx, texts, 3, 8, 0, &b), TN_OK)) return;
    tn_bans_begin(b, 77);
    TEST_CHECK(tn_bans_held(b) == 0 && tn_bans_token(b, -1) == 77);
    TEST_CHECK(push(b, 1, "xa") == -1 && tn_bans_free(b) == 0); // "a" may begin the first
    TEST_CHECK(push(b, 2, "b") == -1 && tn_bans_free(b) == 0);
    TEST_CHECK(push(b, 3, "x") == 1); // the second, which begins in the token of "b"
    tn_bans_cut(b, 1);
    TEST_CHECK(tn_bans_held(b) == 1 && push(b, 4, "bc") == -1 && tn_bans_free(b) == 0);
    TEST_CHECK(push(b, 5, "zd") == -1 && tn_bans_free(b) == 3); // neither of them any more
    for (int32_t i = 0; i < 3; i++) {
        tn_bans_pop(b, &piece);
        TEST_CHECK(piece.token == (i == 0 ? 1 : 3 + i) && tn_bans_held(b) == 2 - i);
    }
    TEST_CHECK(tn_bans_token(b, -1) == 5);
    TEST_CHECK(push(b, 6, "ab") == -1 && push(b, 7, "c") == -1 && push(b, 8, "d") == 0); // the first
    tn_bans_begin(b, -1);
    TEST_CHECK(push(b, 9, "abc") == -1 && push(b, 10, "c") == 0); // the third, within the first
    tn_bans_begin(b, -1);
    for (int32_t i = 0; !tn_bans_full(b) && i < 4096; i++) TEST_CHECK(push(b, i, "a") == -1);
    TEST_CHECK(tn_bans_full(b) && tn_bans_free(b) == 0); // each may be chosen anew
    tn_bans_destroy(&b);
    TEST_CHECK(b == NULL);
}

static void test_allocations(void)
{
    const int32_t id = 1;
    const float value = 1;
    tn_sampling c = plain();
    c.repeat_penalty = 2;
    c.dry_multiplier = 1;
    c.mirostat = 2;
    c.n_logprobs = 3;
    c.bias_tokens = &id;
    c.bias_values = &value;
    c.n_bias = 1;
    long live = allocs.live, n_failed = 0;
    tn_status status = TN_ERR_MEMORY;
    for (; status != TN_OK && n_failed < 100; n_failed++) {
        tn_sampler *s = NULL;
        allocs.fail_from = allocs.calls + n_failed;
        allocs.fail_to = allocs.fail_from + 1;
        status = tn_sampler_create(ctx, &c, 50, 50, &s);
        TEST_CHECK(status == TN_ERR_MEMORY ? s == NULL : status == TN_OK && s != NULL);
        tn_sampler_destroy(&s);
        TEST_CHECK(allocs.live == live);
    }
    allocs.fail_from = allocs.fail_to = 0;
    TEST_CHECK(status == TN_OK && n_failed > 5);
}

int main(void)
{
    ctx = counting_context(&allocs);
    test_distributions();
    test_kept();
    test_ties();
    test_seeds();
    test_penalties();
    test_history();
    test_bias();
    test_excluded();
    test_logprob();
    test_extreme();
    test_best();
    test_ranges();
    test_bans();
    test_allocations();
    tn_context_destroy(&ctx);
    TEST_CHECK(allocs.live == 0);
    return test_done();
}
