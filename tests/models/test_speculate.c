// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Speculation: passes over a few rows give each row the bits that it has alone; so with guesses, right ones
// and wrong ones, the same seed gives the same text, and many seeds give the distribution of the model.
//
//     test_speculate BUNDLED_FOLDER
#include "models/run/speculate.h"
#include "tests/models/far_device.h"
#include "tests/models/feeds.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/session.h>
#include <tenon/text.h>

enum { VOCAB = TINY_MODEL_VOCAB, N_CTX = 256, ANSWER = 100 };

// isa NULL: the best level of this processor. NULL if the processor lacks the level.
static tn_context *context(const char *isa)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.isa = isa;
    cfg.n_threads = 1;
    tn_status status = tn_context_create(&cfg, &ctx);
    if (status != TN_OK && !(isa && status == TN_ERR_UNSUPPORTED)) abort();
    return ctx;
}

static tn_session *session(tn_model *model, int32_t n_ctx, int32_t n_seq)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    tn_session_config_default(&cfg);
    cfg.n_ctx = n_ctx;
    cfg.n_seq = n_seq;
    if (!TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK)) abort();
    return s;
}

// --- rows ------------------------------------------------------------------------------------------------

// Logits of n tokens, `step` in a pass.
static void logits_of(tn_model *model, const int32_t *tokens, int32_t n, int32_t step, float *out)
{
    tn_session *s = session(model, N_CTX, 1);
    for (int32_t at = 0; at < n; at += step) {
        int32_t k = TN_MIN(step, n - at);
        TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, k, tokens + at, TN_OUTPUT_ALL), 1), TN_OK);
        memcpy(out + (size_t)at * VOCAB, tn_session_logits(s, 0), (size_t)k * VOCAB * sizeof *out);
    }
    tn_session_destroy(&s);
}

enum { ROWS_TOKENS = 60 };
static const char *const levels[] = {NULL, "avx512", "avx2", "generic"};

static void check_rows(size_t level, const tiny_shape *shape, int32_t n)
{
    static float alone[ROWS_TOKENS * VOCAB], together[ROWS_TOKENS * VOCAB];
    int32_t tokens[ROWS_TOKENS];
    for (int32_t i = 0; i < n; i++) tokens[i] = (i * 31 + 7) % VOCAB;
    tn_context *ctx = context(levels[level]);
    if (!ctx) return; // test_rows says that this processor lacks the level
    tn_model *model = tiny_model_open(ctx, shape);
    tn_session *s = session(model, 8, 1);
    int32_t alike = tn_session_rows_alike(s);
    TEST_CHECK(alike >= 2);
    logits_of(model, tokens, n, 1, alone);
    for (int32_t step = 2; step <= alike; step++) {
        logits_of(model, tokens, n, step, together);
        if (!TEST_CHECK(memcmp(alone, together, (size_t)n * VOCAB * sizeof *alone) == 0))
            printf("    %s %s, %d rows, level %s\n", shape->arch, tn_dtype_name(shape->dtype), step,
                   levels[level] ? levels[level] : "best");
    }
    tn_session_destroy(&s);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

static void test_rows(void)
{
    static const tn_dtype types[] = {TN_TYPE_F32, TN_TYPE_Q8_0, TN_TYPE_Q4_0,
                                     TN_TYPE_F16, TN_TYPE_Q5_1, TN_TYPE_BF16};
    for (size_t l = 0; l < TN_COUNT(levels); l++) {
        tn_context *ctx = context(levels[l]);
        if (!ctx) printf("SKIP rows at level %s: this processor lacks it\n", levels[l]);
        tn_context_destroy(&ctx);
        for (int32_t i = 0; i < TINY_ARCHS; i++) {
            tiny_shape shape = tiny_shapes[i];
            shape.dtype = types[((size_t)i + l) % TN_COUNT(types)];
            check_rows(l, &shape, ROWS_TOKENS);
        }
    }
}

// Every type with kernels of its own for few rows, on rows of several groups of 256 and a rest.
static void test_rows_types(void)
{
    static const tn_dtype types[] = {TN_TYPE_Q8_0,   TN_TYPE_Q4_0,   TN_TYPE_Q4_1, TN_TYPE_Q5_0,
                                     TN_TYPE_Q5_1,   TN_TYPE_Q2_K,   TN_TYPE_Q3_K, TN_TYPE_Q4_K,
                                     TN_TYPE_Q5_K,   TN_TYPE_Q6_K,   TN_TYPE_F16,  TN_TYPE_BF16,
                                     TN_TYPE_IQ4_NL, TN_TYPE_IQ4_XS, TN_TYPE_MXFP4};
    for (size_t l = 0; l < TN_COUNT(levels); l += 2) // the best one and avx2: the others have none
        for (size_t i = 0; i < TN_COUNT(types); i++) {
            tiny_shape shape = tiny_shapes[TINY_LLAMA];
            shape.dtype = types[i];
            shape.n_layers = 1;
            shape.n_embd = 256;
            shape.head_dim = 64;
            shape.n_ff = tn_dtype_block_elems(types[i]) == 256 ? 768 : 544;
            check_rows(l, &shape, 9);
        }
}

// --- the same text -----------------------------------------------------------------------------------------

typedef struct answer {
    int32_t tokens[ANSWER], n, stop;
    float logprobs[ANSWER];
    tn_generation_stats stats;
} answer;

static void generate(tn_session *s, const tn_generation_config *cfg, const int32_t *prompt, int32_t n,
                     answer *out)
{
    tn_generation *g = NULL;
    if (!TEST_CHECK_STATUS(tn_generation_create(s, cfg, &g), TN_OK)) abort();
    TEST_CHECK_STATUS(tn_generation_start(g, prompt, (size_t)n), TN_OK);
    *out = (answer){0};
    while (out->stop == TN_STOP_NONE && out->n < ANSWER) {
        tn_piece piece = {.struct_size = sizeof piece, .token = -1, .stop = TN_STOP_CANCELLED};
        if (!TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK)) break;
        if (piece.token >= 0) {
            out->logprobs[out->n] = piece.logprob;
            out->tokens[out->n++] = piece.token;
        }
        out->stop = piece.stop;
    }
    out->stats.struct_size = sizeof out->stats;
    tn_generation_stats_get(g, &out->stats);
    tn_generation_destroy(&g);
}

static bool same(const answer *a, const answer *b)
{
    size_t n = (size_t)a->n;
    return a->n == b->n && a->stop == b->stop && memcmp(a->tokens, b->tokens, n * sizeof *a->tokens) == 0 &&
           memcmp(a->logprobs, b->logprobs, n * sizeof *a->logprobs) == 0;
}

// With and without guesses: tokens, their probabilities, why it stopped, what the session holds in the end.
static void compare(tn_session *plain, tn_session *s, tn_generation_config cfg, const int32_t *prompt,
                    int32_t n, answer *out)
{
    answer want;
    int32_t held[N_CTX], held_plain[N_CTX];
    tn_generation_config off = cfg;
    off.spec_ngram = 0;
    off.draft = NULL;
    generate(plain, &off, prompt, n, &want);
    generate(s, &cfg, prompt, n, out);
    if (!TEST_CHECK(same(out, &want)))
        printf("    %d and %d tokens, stop %d and %d\n", out->n, want.n, out->stop, want.stop);
    TEST_CHECK(want.stats.n_drafted == 0 && out->stats.n_accepted <= out->stats.n_drafted);
    int32_t length = tn_session_tokens(s, cfg.seq, 0, held, N_CTX);
    TEST_CHECK(length == tn_session_tokens(plain, cfg.seq, 0, held_plain, N_CTX));
    TEST_CHECK(memcmp(held, held_plain, (size_t)length * sizeof *held) == 0);
}

// That of the last config().
static tn_sampling sampling;

static tn_generation_config config(float temperature, uint64_t seed)
{
    tn_generation_config cfg;
    tn_generation_config_default(&cfg);
    tn_sampling_default(&sampling);
    cfg.sampling = &sampling;
    sampling.temperature = temperature;
    sampling.seed = seed;
    cfg.spec_ngram = 4;
    return cfg;
}

static void test_bundled(const char *folder)
{
    static const char *const prompts[] = {
        "Mia has a red ball. Tom has a red ball. Ben has a red ball. Anna has a red ball. Lily has",
        "Once upon a time there was a little fox. Once upon a time there was a little",
        "1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4,",
    };
    char path[600];
    snprintf(path, sizeof path, "%s/tenon-tiny.gguf", folder);
    tn_context *ctx = context(NULL);
    tn_model *model = NULL;
    if (!TEST_CHECK_STATUS(tn_model_open(ctx, path, NULL, &model), TN_OK)) return;
    tn_session *plain = session(model, N_CTX, 2), *s = session(model, N_CTX, 2);
    int32_t drafted = 0, accepted = 0;
    for (size_t i = 0; i < TN_COUNT(prompts); i++) {
        int32_t *ids;
        size_t n;
        answer a;
        TEST_CHECK_STATUS(tn_tokenize(model, prompts[i], strlen(prompts[i]), 0, &ids, &n), TN_OK);
        for (uint64_t seed = 0; seed < 6; seed++) {
            tn_generation_config cfg = config(seed == 0 ? 0.0f : 0.4f * (float)seed, seed);
            cfg.ignore_end = seed % 2 == 0;
            cfg.max_tokens = seed == 2 ? 3 : 70 + (int32_t)seed;
            cfg.seq = seed == 3;
            if (seed > 2) sampling.repeat_penalty = 1.1f;
            if (seed == 4) cfg.draft_min = 3;
            if (seed == 5) cfg.draft_max = 2;
            compare(plain, s, cfg, ids, (int32_t)n, &a);
            drafted += a.stats.n_drafted;
            accepted += a.stats.n_accepted;
        }
        tn_generation_config stop = config(0, 0);
        stop.stops = (const char *const[]){" red", "3", "little"};
        stop.n_stops = 3;
        compare(plain, s, stop, ids, (int32_t)n, &a);
        tn_tokens_free(model, ids);
    }
    TEST_CHECK(accepted > 50 && accepted < drafted);
    printf("bundled model: %d of %d guesses right\n", accepted, drafted);
    tn_session_destroy(&plain);
    tn_session_destroy(&s);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// Guesses of a model: of the same one (nearly all right), and of another (nearly all wrong).
static void test_draft(void)
{
    tn_context *ctx = context(NULL);
    tiny_shape other = tiny_shapes[TINY_LLAMA];
    other.n_layers = 1;
    other.n_ff = 128;
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]), *small = tiny_model_open(ctx, &other);
    tn_session *plain = session(model, N_CTX, 1), *s = session(model, N_CTX, 1);
    tn_session *twin = session(model, N_CTX, 1),
               *wrong = session(small, 150, 1); // its context ends before the text
    int32_t prompt[120];
    answer a;
    for (int32_t i = 0; i < 120; i++) prompt[i] = (i * 37 + 11) % VOCAB;
    for (uint64_t seed = 0; seed < 4; seed++) {
        tn_generation_config cfg = config(seed == 0 ? 0.0f : 0.7f * (float)seed, seed);
        cfg.spec_ngram = 0;
        sampling.top_k = 3; // the model is nearly sure of nothing
        cfg.draft = twin;
        compare(plain, s, cfg, prompt, 100 + (int32_t)seed, &a);
        if (!TEST_CHECK(a.stats.n_accepted > 0 &&
                        (seed > 0 || a.stats.n_accepted > a.stats.n_drafted * 9 / 10)))
            printf("    %d of %d\n", a.stats.n_accepted, a.stats.n_drafted);
        cfg.draft = wrong;
        compare(plain, s, cfg, prompt, 100 + (int32_t)seed, &a);
        TEST_CHECK(a.stats.n_drafted > 0);
    }
    tn_session_destroy(&plain);
    tn_session_destroy(&s);
    tn_session_destroy(&twin);
    tn_session_destroy(&wrong);
    tn_model_unref(&model);
    tn_model_unref(&small);
    tn_context_destroy(&ctx);
}

enum { DRAFTED_PROMPT = 100 };

// A generation behind a prompt whose draft is the model itself.
typedef struct drafted_run {
    tn_context *ctx;
    tn_model *model;
    tn_session *s, *draft;
    tn_generation *g;
    int32_t prompt[DRAFTED_PROMPT];
} drafted_run;

static void drafted_begin(drafted_run *d)
{
    tn_generation_config cfg = config(0, 0);
    *d = (drafted_run){.ctx = context(NULL), .prompt = {1, 2, 3}};
    d->model = tiny_model_open(d->ctx, &tiny_shapes[TINY_LLAMA]);
    d->s = session(d->model, N_CTX, 1);
    d->draft = session(d->model, N_CTX, 1);
    cfg.spec_ngram = 0;
    cfg.draft = d->draft;
    TEST_CHECK_STATUS(tn_generation_create(d->s, &cfg, &d->g), TN_OK);
    TEST_CHECK_STATUS(tn_generation_start(d->g, d->prompt, DRAFTED_PROMPT), TN_OK);
}

static void drafted_end(drafted_run *d)
{
    tn_generation_destroy(&d->g);
    tn_session_destroy(&d->s);
    tn_session_destroy(&d->draft);
    tn_model_unref(&d->model);
    tn_context_destroy(&d->ctx);
}

// Cancelling the session stops the draft too, which would have read the whole prompt first.
static void test_cancel(void)
{
    drafted_run d;
    tn_piece piece = {.struct_size = sizeof piece};
    drafted_begin(&d);
    TEST_CHECK_STATUS(tn_generation_step(d.g, &piece), TN_OK);
    tn_session_cancel(d.s, 1);
    TEST_CHECK_STATUS(tn_generation_step(d.g, &piece), TN_OK);
    TEST_CHECK(piece.stop == TN_STOP_CANCELLED && tn_session_length(d.draft, 0) == 0 &&
               tn_session_length(d.s, 0) == DRAFTED_PROMPT);
    drafted_end(&d);
}

// The caller appends to the sequence while guesses are in it. From then on they are part of its text, and of
// the next prompt no more is read than it has.
static void test_changed(void)
{
    drafted_run d;
    tn_generation_stats stats = {.struct_size = sizeof stats};
    int32_t n = 0, length = 0;
    drafted_begin(&d);
    for (; n < 50 && length <= DRAFTED_PROMPT + n; n++) { // until it holds more than what was generated
        tn_piece piece = {.struct_size = sizeof piece};
        TEST_CHECK_STATUS(tn_generation_step(d.g, &piece), TN_OK);
        length = tn_session_length(d.s, 0);
    }
    TEST_CHECK(length > DRAFTED_PROMPT + n);
    TEST_CHECK_STATUS(tn_session_feed(d.s, 0, d.prompt, 1), TN_OK);
    TEST_CHECK_STATUS(tn_generation_prompt(d.g, d.prompt, 2), TN_OK);
    tn_generation_stats_get(d.g, &stats);
    TEST_CHECK(stats.n_prompt == 2 && tn_session_length(d.s, 0) == length + 3);
    drafted_end(&d);
}

// Two generations step by step on one session, while tokens of a third sequence pass through it.
static void test_interleaved(void)
{
    tn_context *ctx = context(NULL);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_QWEN3MOE]);
    tn_session *plain = session(model, N_CTX, 3), *s = session(model, N_CTX, 3);
    int32_t prompt[40], accepted = 0;
    for (int32_t i = 0; i < 40; i++) prompt[i] = (i % 5 * 37 + 11) % VOCAB;
    answer want[2];
    tn_generation *g[2];
    for (int32_t q = 0; q < 2; q++) {
        tn_generation_config cfg = config(0.5f * (float)q, 3);
        cfg.seq = q;
        cfg.spec_ngram = 0;
        generate(plain, &cfg, prompt, 30 + q, &want[q]);
        cfg.spec_ngram = 4;
        cfg.draft_max = 5;
        TEST_CHECK_STATUS(tn_generation_create(s, &cfg, &g[q]), TN_OK);
        TEST_CHECK_STATUS(tn_generation_start(g[q], prompt, (size_t)(30 + q)), TN_OK);
    }
    for (int32_t i = 0; i < 80; i++)
        for (int32_t q = 0; q < 2; q++) {
            tn_piece piece = {.struct_size = sizeof piece, .token = -1};
            if (i % 20 == 0) TEST_CHECK_STATUS(tn_session_truncate(s, 2, 0), TN_OK);
            TEST_CHECK_STATUS(tn_session_feed(s, 2, prompt, 1), TN_OK);
            TEST_CHECK_STATUS(tn_generation_step(g[q], &piece), TN_OK);
            TEST_CHECK(piece.token == want[q].tokens[i]);
        }
    for (int32_t q = 0; q < 2; q++) {
        tn_generation_stats stats = {.struct_size = sizeof stats};
        tn_generation_stats_get(g[q], &stats);
        accepted += stats.n_accepted;
        // A new prompt in the middle: guesses are gone, what was chosen stays out.
        TEST_CHECK_STATUS(tn_generation_prompt(g[q], prompt, 1), TN_OK);
        TEST_CHECK(tn_session_length(s, q) == 30 + q + 79 + 1);
        tn_generation_destroy(&g[q]);
    }
    TEST_CHECK(accepted > 0);
    tn_session_destroy(&plain);
    tn_session_destroy(&s);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// Recurrent states and latent attention: what a wrong guess left in the states is undone. Stages of the
// sampler that draw themselves, or remember more than tokens.
static void test_archs(void)
{
    static const int32_t archs[] = {TINY_QWEN35, TINY_QWEN3NEXT, TINY_DEEPSEEK2, TINY_GEMMA4, TINY_GPT_OSS};
    static const int32_t bias_tokens[] = {11, 48, 85, 122};
    static const float bias_values[] = {5, 5, 5, 5};
    tn_context *ctx = context(NULL);
    int32_t prompt[64];
    for (int32_t i = 0; i < 64; i++) prompt[i] = (i % 4 * 37 + 11) % VOCAB;
    for (size_t i = 0; i < TN_COUNT(archs); i++) {
        tn_model *model = tiny_model_open(ctx, &tiny_shapes[archs[i]]);
        tn_session *plain = session(model, N_CTX, 1), *s = session(model, N_CTX, 1);
        int32_t drafted = 0, accepted = 0;
        for (uint64_t seed = 0; seed < 4; seed++) {
            answer a;
            tn_generation_config cfg = config(0.6f, seed);
            sampling.bias_tokens = bias_tokens;
            sampling.bias_values = bias_values;
            sampling.n_bias = 4;
            if (seed == 1) sampling.mirostat = 2;
            if (seed == 2) sampling.xtc_probability = 0.3f;
            if (seed == 2) sampling.dry_multiplier = 0.1f;
            if (seed == 3) sampling.frequency_penalty = 0.05f;
            cfg.draft_max = 3;
            compare(plain, s, cfg, prompt, 60 + (int32_t)seed, &a);
            drafted += a.stats.n_drafted;
            accepted += a.stats.n_accepted;
        }
        if (!TEST_CHECK(accepted > 0 && accepted < drafted))
            printf("    %s: %d of %d\n", tiny_shapes[archs[i]].arch, accepted, drafted);
        tn_session_destroy(&plain);
        tn_session_destroy(&s);
        tn_model_unref(&model);
    }
    tn_context_destroy(&ctx);
}

// A device that chooses tokens itself, and a context that ends within a guess.
static void test_far(void)
{
    tn_context *ctx = context(NULL);
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    tiny_file *f = malloc(sizeof *f);
    tn_model *model = NULL;
    size_t size;
    answer a;
    int32_t prompt[40], drafted = 0;
    if (!f) abort();
    for (int32_t i = 0; i < 40; i++) prompt[i] = (i % 7 * 37 + 11) % VOCAB;
    tiny_describe(&tiny_shapes[TINY_LLAMA], f);
    cfg.device = far_add(ctx, 64 << 20);
    void *data = tiny_write(ctx, f, &size);
    free(f);
    if (!TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model), TN_OK)) abort();
    tn_session *plain = session(model, 120, 1), *s = session(model, 120, 1);
    for (uint64_t seed = 0; seed < 3; seed++) {
        compare(plain, s, config(0.4f * (float)seed, seed), prompt, 40, &a);
        TEST_CHECK(a.stop == TN_STOP_CONTEXT);
        drafted += a.stats.n_drafted;
    }
    TEST_CHECK(drafted > 10);
    tn_session_destroy(&plain);
    tn_session_destroy(&s);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// --- the distribution ----------------------------------------------------------------------------

// Pearson's chi-square of two samples of equal size over the cells; *df: cells with enough in them, less one.
static double chi_square(const int32_t *a, const int32_t *b, int32_t n_cells, int32_t *df)
{
    double sum = 0;
    int32_t n = 0, rest_a = 0, rest_b = 0;
    for (int32_t i = 0; i < n_cells; i++) {
        double x = a[i], y = b[i];
        if (x + y < 20) {
            rest_a += a[i];
            rest_b += b[i];
            continue;
        }
        sum += (x - y) * (x - y) / (x + y);
        n++;
    }
    if (rest_a + rest_b > 0) sum += (double)(rest_a - rest_b) * (rest_a - rest_b) / (rest_a + rest_b), n++;
    *df = n - 1;
    return sum;
}

// Second and third tokens of many seeds without guesses against those of other seeds with them. The prompt
// repeats, so that each step has a guess; at this temperature some are right.
static void count_tokens(tn_session *s, tn_generation_config cfg, uint64_t first, int32_t n, int32_t *cells,
                         int32_t *accepted)
{
    int32_t prompt[24];
    for (int32_t i = 0; i < 24; i++) prompt[i] = (i % 4 * 37 + 11) % VOCAB;
    memset(cells, 0, 2 * VOCAB * sizeof *cells);
    cfg.max_tokens = 3;
    for (int32_t i = 0; i < n; i++) {
        answer a;
        sampling.seed = first + (uint64_t)i;
        generate(s, &cfg, prompt, 24, &a);
        cells[a.tokens[1]]++;
        cells[VOCAB + a.tokens[2]]++;
        *accepted += a.stats.n_accepted;
    }
}

// Wilson and Hilferty 1931: the cube root of chi-square / df is nearly normal. Standard deviations above the
// mean.
static double deviations(double chi, int32_t df)
{
    double v = 2.0 / (9.0 * df);
    return (cbrt(chi / df) - (1 - v)) / sqrt(v);
}

static void test_distribution(void)
{
    enum { N = 3000 };
    static int32_t plain[2 * VOCAB], guessed[2 * VOCAB], other[2 * VOCAB];
    tn_context *ctx = context(NULL);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session *s = session(model, 64, 1), *draft = session(model, 64, 1);
    // More of what the prompt repeats, so that guesses from the text are right now and then.
    static const int32_t bias_tokens[] = {11, 48, 85, 122};
    static const float bias_values[] = {3, 3, 3, 3};
    for (int32_t way = 0; way < 2; way++) { // the text, a model
        tn_generation_config cfg = config(0.8f, 0);
        sampling.bias_tokens = bias_tokens;
        sampling.bias_values = bias_values;
        sampling.n_bias = way == 0 ? 4 : 0;
        int32_t accepted = 0, none = 0, df;
        sampling.top_k = 12;
        cfg.spec_ngram = 0;
        count_tokens(s, cfg, 1, N, plain, &none);
        cfg.spec_ngram = way == 0 ? 4 : 0;
        cfg.draft = way == 1 ? draft : NULL;
        count_tokens(s, cfg, 100001, N, guessed, &accepted);
        for (int32_t t = 0; t < 2; t++) {
            double chi = chi_square(plain + t * VOCAB, guessed + t * VOCAB, VOCAB, &df);
            printf("%s, token %d: chi-square %.1f with %d degrees of freedom, %d guesses right in %d texts\n",
                   way ? "draft model" : "n-gram", t + 2, chi, df, accepted, N);
            TEST_CHECK(df >= 3 &&
                       deviations(chi, df) < 3.7); // one in 10000 by chance, and the seeds are fixed
        }
        TEST_CHECK(none == 0 && accepted > N / 20);
        // The test can fail: a temperature that is a little lower does not pass for the same.
        sampling.temperature = 0.5f;
        count_tokens(s, cfg, 200001, N, other, &none);
        double chi = chi_square(plain, other, VOCAB, &df);
        TEST_CHECK(deviations(chi, df) > 3.7);
    }
    tn_session_destroy(&s);
    tn_session_destroy(&draft);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// --- how much is guessed -------------------------------------------------------------------------

// Passes that a text takes, when a row of a check costs a fifth of a pass more; tokens from `start` on are
// generated.
static double passes_of(const int32_t *text, int32_t start, int32_t n)
{
    tn_context *ctx = context(NULL);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session *session_ = session(model, 2048, 1);
    tn_generation_config cfg = config(0, 0);
    tn_speculation *s = NULL;
    double passes = 0;
    if (!TEST_CHECK_STATUS(tn_speculation_create(session_, &cfg, &s), TN_OK)) abort();
    for (int32_t i = 0; i < start; i++) tn_speculation_push(s, text[i]);
    for (int32_t at = start; at < n;) {
        int32_t out[64], n_out, right = 0;
        TEST_CHECK_STATUS(tn_speculation_guess(s, n - at - 1, out, &n_out), TN_OK);
        TEST_CHECK(n_out <= TN_MAX(n - at - 1, 0) && n_out <= tn_speculation_max(s));
        while (right < n_out && out[right] == text[at + right]) right++;
        passes += 1 + 0.2 * n_out;
        for (int32_t i = 0; i <= right; i++) tn_speculation_push(s, text[at + i]);
        tn_speculation_learn(s, right, right < n_out);
        at += right + 1;
    }
    tn_speculation_destroy(&s);
    tn_session_destroy(&session_);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    return passes;
}

static void check_passes(const char *what, const int32_t *text, int32_t start, int32_t n, double most)
{
    double share = passes_of(text, start, n) / (n - start);
    if (!TEST_CHECK(share <= most)) printf("    %s: %.3f passes a token, at most %.3f\n", what, share, most);
}

// What repeats itself gets faster, and what does not never slower by more than some hundredths.
static void test_passes(void)
{
    enum { N = 1000 };
    int32_t text[N];
    uint32_t rng = 7;
    for (int32_t i = 0; i < N; i++) text[i] = i;
    check_passes("new tokens", text, 10, N, 1.0);
    for (int32_t i = 0; i < N; i++) text[i] = i % 10;
    check_passes("a loop", text, 30, N, 0.35);
    check_passes("a short loop", text, 30, 100, 0.45);
    for (int32_t i = 0; i < N; i++) text[i] = i % 9 == 4 ? 1000 + i : i % 9;
    check_passes("sentences that differ in a name", text, 30, N, 0.55);
    for (int32_t i = 0; i < N; i++) text[i] = i < 300 || i >= 700 ? i % 13 : 1000 + i;
    check_passes("a loop with something else in it", text, 30, N, 0.65);
    check_passes("the end of a loop", text, 290, 390, 0.95);
    for (int32_t k = 2; k <= 64; k *= 2) {
        for (int32_t i = 0; i < N; i++) text[i] = (int32_t)((rng = rng * 1664525u + 1013904223u) >> 16) % k;
        check_passes("random tokens", text, 50, N, 1.01);
        check_passes("few random tokens", text, 50, 150, 1.02);
    }
    // Four tokens that were followed by another one each time.
    for (int32_t i = 0; i < N; i++)
        text[i] = i % 5 == 4 ? 1000 + i : (int32_t)((rng = rng * 1664525u + 1013904223u) >> 16) % 8;
    check_passes("random tokens and new ones", text, 50, N, 1.01);
}

// --- refused, out of memory ----------------------------------------------------------------------

static void refuse(tn_session *s, const tn_generation_config *cfg, tn_status want)
{
    tn_generation *g = NULL;
    TEST_CHECK_STATUS(tn_generation_create(s, cfg, &g), want);
    TEST_CHECK(g == NULL);
}

// The tiny model with one token more, or with another last token.
static tn_model *open_renamed(tn_context *ctx, int32_t how)
{
    tiny_vocab *v = malloc(sizeof *v);
    tiny_file *f = malloc(sizeof *f);
    tn_model *model = NULL;
    size_t size;
    if (!v || !f) abort();
    tiny_describe(&tiny_shapes[TINY_LLAMA], f);
    tiny_spm(v);
    if (how == 0)
        tiny_add(v, "another", TN_TOKEN_NORMAL, 0);
    else
        v->tokens[v->n_tokens - 1] = "another";
    tiny_u32(f, "vocab_size", (int64_t)v->n_tokens);
    tiny_tensor_at(f, "token_embd.weight")->ne[0] = (int64_t)v->n_tokens;
    tiny_tensor_at(f, "output.weight")->ne[0] = (int64_t)v->n_tokens;
    tiny_str(f, "tokenizer.ggml.model", v->model);
    tiny_array(f, "tokenizer.ggml.tokens", TN_GGUF_STRING, v->tokens, v->n_tokens);
    tiny_array(f, "tokenizer.ggml.token_type", TN_GGUF_I32, v->types, v->n_types);
    void *data = tiny_write(ctx, f, &size);
    tiny_must(tn_model_open_memory(ctx, data, size, "tiny", NULL, &model));
    free(v);
    free(f);
    return model;
}

static void test_refused(void)
{
    tn_context *ctx = context(NULL), *elsewhere = context(NULL);
    tiny_shape words = tiny_shapes[TINY_LLAMA];
    words.tokenizer = true;
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]),
             *far_off = tiny_model_open(elsewhere, &tiny_shapes[TINY_LLAMA]);
    tn_model *named = tiny_model_open(ctx, &words),
             *renamed[2] = {open_renamed(ctx, 0), open_renamed(ctx, 1)};
    tn_session *s = session(model, 64, 1), *t = session(far_off, 64, 1), *u = session(named, 64, 1);
    tn_generation_config cfg = config(0, 0);
    cfg.draft = s;
    refuse(s, &cfg, TN_ERR_ARG);
    cfg.draft = t;
    refuse(s, &cfg, TN_ERR_ARG);
    cfg.draft = u; // one has a tokenizer, the other has none
    refuse(s, &cfg, TN_ERR_MODEL);
    for (int32_t i = 0; i < 2; i++) { // another vocabulary
        static const char *const why[] = {"it has 277 tokens, the model 276", "token 275 is another one"};
        char text[512];
        cfg.draft = session(renamed[i], 64, 1);
        refuse(u, &cfg, TN_ERR_MODEL);
        tn_context_error(ctx, text, sizeof text);
        TEST_CHECK(strstr(text, why[i]) != NULL);
        tn_session_destroy(&cfg.draft);
        tn_model_unref(&renamed[i]);
    }
    cfg = config(0, 0);
    cfg.spec_ngram = 17;
    refuse(s, &cfg, TN_ERR_ARG);
    cfg.spec_ngram = -1;
    refuse(s, &cfg, TN_ERR_ARG);
    cfg.spec_ngram = 3;
    cfg.draft_max = 65;
    refuse(s, &cfg, TN_ERR_ARG);
    cfg.draft_max = 4;
    cfg.draft_min = 5;
    refuse(s, &cfg, TN_ERR_ARG);
    tn_session_destroy(&s);
    tn_session_destroy(&t);
    tn_session_destroy(&u);
    tn_model_unref(&model);
    tn_model_unref(&far_off);
    tn_model_unref(&named);
    tn_context_destroy(&ctx);
    tn_context_destroy(&elsewhere);
}

// Every allocation of creation and of the first steps fails once; steady steps allocate nothing.
static void test_memory(void)
{
    counting c;
    tn_context *ctx = counting_context(&c);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session *s = session(model, N_CTX, 1), *draft = session(model, N_CTX, 1);
    int32_t prompt[60];
    for (int32_t i = 0; i < 60; i++) prompt[i] = (i % 3 * 37 + 11) % VOCAB;
    long live = 0;
    for (int32_t way = 0; way < 2; way++) {
        tn_generation_config cfg = config(0.5f, 1);
        cfg.spec_ngram = way == 0 ? 4 : 0;
        cfg.draft = way == 1 ? draft : NULL;
        bool done = false;
        for (long n = 0; !done && n < 5000; n += 1 + n / 16) {
            tn_generation *g = NULL;
            tn_piece piece = {.struct_size = sizeof piece};
            c.fail_from = c.calls + n;
            c.fail_to = c.fail_from + 1;
            tn_status status = tn_generation_create(s, &cfg, &g);
            if (status == TN_OK) status = tn_generation_start(g, prompt, 60);
            for (int i = 0; i < 60 && status == TN_OK; i++) status = tn_generation_step(g, &piece);
            done = status == TN_OK && c.calls < c.fail_from;
            c.fail_from = c.fail_to = 0;
            TEST_CHECK(status == TN_OK || status == TN_ERR_MEMORY);
            tn_generation_destroy(&g);
        }
        TEST_CHECK(done);
        answer a;
        generate(s, &cfg, prompt, 60, &a);
        tn_generation *g = NULL;
        TEST_CHECK_STATUS(tn_generation_create(s, &cfg, &g), TN_OK);
        TEST_CHECK_STATUS(tn_generation_start(g, prompt, 60), TN_OK);
        long calls = c.calls;
        for (int i = 0; i < ANSWER; i++) {
            tn_piece piece = {.struct_size = sizeof piece};
            TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
        }
        TEST_CHECK(c.calls == calls);
        tn_generation_destroy(&g);
        if (way == 0) live = c.live;
        TEST_CHECK(way == 0 || c.live >= live);
    }
    tn_session_destroy(&s);
    tn_session_destroy(&draft);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
}

int main(int argc, char **argv)
{
    test_rows();
    test_rows_types();
    test_draft();
    test_cancel();
    test_changed();
    test_interleaved();
    test_archs();
    test_far();
    test_distribution();
    test_passes();
    test_refused();
    test_memory();
    if (argc > 1) test_bundled(argv[1]);
    return test_done();
}
