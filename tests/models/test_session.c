// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sessions on tiny models: however tokens are fed (at once, in chunks, one by one, beside other sequences,
// after branches and cuts, on any number of threads), the logits are those of a plain run.
//
//     test_session [--lent]   lent: all contexts use this program's threads instead of OpenMP's
#include "models/run/session.h"
#include "tests/models/feeds.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/lent.h"
#include "tests/unit/test.h"

#include <pthread.h>
#include <tenon/session.h>
#include <time.h>

enum { VOCAB = TINY_MODEL_VOCAB, MAX_TOKENS = 160 };

static bool all_lent;

// --- contexts --------------------------------------------------------------------------------------

static int n_lent_runs;

static tn_context *context(const char *isa, int32_t n_threads, bool lent)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.isa = isa;
    cfg.n_threads = n_threads;
    cfg.blas = "off"; // it keeps x in f32 where kernels here round it: many rows would differ from few
    if (lent || all_lent) cfg.executor = (tn_executor){&n_lent_runs, lent_run};
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    return ctx;
}

// --- running ---------------------------------------------------------------------------------------

static tn_session_config f32_config(int32_t n_ctx, int32_t n_seq)
{
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = n_ctx;
    cfg.n_seq = n_seq;
    cfg.cache_type_k = cfg.cache_type_v = TN_TYPE_F32;
    return cfg;
}

static tn_session *session(tn_model *model, const tn_session_config *cfg)
{
    tn_session *s = NULL;
    if (!TEST_CHECK_STATUS(tn_session_create(model, cfg, &s), TN_OK)) abort();
    return s;
}

// Token k of a sequence that is named by a seed.
static int32_t token(uint32_t seed, int32_t k)
{
    return (int32_t)(((uint32_t)k * 2654435761u ^ seed * 40503u) >> 7) % VOCAB;
}

static const int32_t *tokens_of(uint32_t seed)
{
    static int32_t all[4][MAX_TOKENS];
    for (int32_t k = 0; k < MAX_TOKENS; k++) all[seed % 4][k] = token(seed, k) < 0 ? 0 : token(seed, k);
    return all[seed % 4];
}

// Logits of n tokens fed `chunk` at a time in a session of its own, one row per token.
static bool plain_run(tn_model *model, const tn_session_config *cfg, const int32_t *tokens, int32_t n,
                      int32_t chunk, float *out)
{
    tn_session *s = session(model, cfg);
    bool ok = true;
    for (int32_t at = 0; at < n && ok; at += chunk) {
        int32_t k = TN_MIN(chunk, n - at);
        ok = TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, k, tokens + at, TN_OUTPUT_ALL), 1), TN_OK);
        ok = ok && TEST_CHECK(tn_session_n_outputs(s) == k && tn_session_length(s, 0) == at + k);
        if (ok) memcpy(out + (size_t)at * VOCAB, tn_session_logits(s, 0), (size_t)k * VOCAB * sizeof *out);
    }
    tn_session_destroy(&s);
    return ok;
}

// ||a - b|| / ||b||
static double off(const float *a, const float *b, size_t n)
{
    double diff = 0.0, norm = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - b[i];
        diff += d * d;
        norm += (double)b[i] * b[i];
    }
    return sqrt(diff / norm);
}

static bool close_to(const float *a, const float *b, size_t n, double bound, const char *what,
                     const char *arch)
{
    double d = a && b ? off(a, b, n) : 1e300;
    if (TEST_CHECK(d <= bound)) return true;
    printf("    %s, %s: off by %g, bound %g\n", arch, what, d, bound);
    return false;
}

// --- chunks, fusion, cache types -------------------------------------------------------------------

// On the levels below AVX2 no kernel says that rows depend on their batch: the same bits. Elsewhere rounding.
static double chunk_bound(const char *isa, tn_dtype dtype)
{
    if (isa) return 0.0;
    // Activations of quantised products are rounded to 8 bits: a last bit may move one of them by a step.
    return dtype == TN_TYPE_F32 ? 1e-5 : 2e-2;
}

// Fusion changes the last bits of activations. Where quantised products round those to 8 bits, one of them
// may move by a step, and the state of a delta net carries that on; without this rounding nothing moves.
static void test_fusion(tn_model *model, const tiny_shape *shape)
{
    static float fused[MAX_TOKENS * VOCAB], plain[MAX_TOKENS * VOCAB];
    const struct {
        int32_t precision;
        double bound;
    } ways[] = {{TN_PRECISION_auto, shape->dtype == TN_TYPE_F32 ? 1e-5 : 4e-2}, {TN_PRECISION_f32, 1e-5}};
    enum { N = 150 };
    for (size_t i = 0; i < TN_COUNT(ways); i++) {
        tn_session_config cfg = f32_config(N, 1);
        cfg.precision = ways[i].precision;
        bool ok = plain_run(model, &cfg, tokens_of(1), N, N, fused);
        cfg.fusion = 0;
        if (ok && plain_run(model, &cfg, tokens_of(1), N, N, plain))
            close_to(plain, fused, (size_t)N * VOCAB, ways[i].bound, "no fusion", shape->arch);
    }
}

static void test_chunks(tn_model *model, const char *isa, const tiny_shape *shape)
{
    static float whole[MAX_TOKENS * VOCAB], parts[MAX_TOKENS * VOCAB];
    static const int32_t chunks[] = {1, 7, 64, 100};
    enum { N = 150 }; // three blocks, the last in part; the context ends inside a block
    tn_session_config cfg = f32_config(N + 3, 1);
    double bound = chunk_bound(isa, shape->dtype);
    // A router that wavers between two experts turns rounding into another choice.
    double routing = shape->n_experts > 0 ? 5.0 : 1.0;
    size_t n = (size_t)N * VOCAB;
    if (!plain_run(model, &cfg, tokens_of(1), N, N, whole)) return;
    for (size_t i = 0; i < TN_COUNT(chunks); i++)
        if (plain_run(model, &cfg, tokens_of(1), N, chunks[i], parts))
            close_to(parts, whole, n, bound, "chunks", shape->arch);
    static const struct {
        tn_dtype type;
        double bound;
    } types[] = {{TN_TYPE_F16, 4e-3}, {TN_TYPE_BF16, 3e-2}, {TN_TYPE_Q8_0, 3e-2}, {TN_TYPE_Q4_0, 0.5}};
    for (size_t i = 0; i < TN_COUNT(types) && !isa; i++)
        for (int32_t which = 1; which < 4; which++) {
            cfg = f32_config(N, 1);
            if (which & 1) cfg.cache_type_k = types[i].type;
            if (which & 2) cfg.cache_type_v = types[i].type;
            if (plain_run(model, &cfg, tokens_of(1), N, 60, parts))
                close_to(parts, whole, n, types[i].bound * routing + bound, tn_dtype_name(types[i].type),
                         shape->arch);
        }
}

static void test_archs(void)
{
    static const char *const levels[] = {NULL, "generic", "reference"};
    for (size_t l = 0; l < TN_COUNT(levels); l++)
        for (int32_t i = 0; i < TINY_ARCHS * 2; i++) {
            tiny_shape shape = tiny_shapes[i / 2];
            if (l == 2 && i != 2 * TINY_QWEN3MOE) continue; // references are slow
            if (i % 2) shape.dtype = TN_TYPE_Q8_0;
            tn_context *ctx = context(levels[l], 1, false);
            tn_model *model = tiny_model_open(ctx, &shape);
            test_chunks(model, levels[l], &shape);
            test_fusion(model, &shape);
            tn_model_unref(&model);
            tn_context_destroy(&ctx);
        }
}

// The type that files of gpt-oss have.
static void test_mxfp4(void)
{
    static const char *const levels[] = {NULL, "generic"};
    for (size_t l = 0; l < TN_COUNT(levels); l++) {
        tiny_shape shape = tiny_shapes[TINY_GPT_OSS];
        shape.dtype = TN_TYPE_MXFP4;
        tn_context *ctx = context(levels[l], 1, false);
        tn_model *model = tiny_model_open(ctx, &shape);
        test_chunks(model, levels[l], &shape);
        test_fusion(model, &shape);
        tn_model_unref(&model);
        tn_context_destroy(&ctx);
    }
}

// --- threads ---------------------------------------------------------------------------------------

static void test_threads(void)
{
    static float one[MAX_TOKENS * VOCAB], many[MAX_TOKENS * VOCAB];
    static const struct {
        int32_t n;
        bool lent;
    } ways[] = {{1, false}, {2, false}, {3, false}, {2, true}, {3, true}};
    enum { PROMPT = 40, N = 8 }; // few steps: every one costs a meeting of all threads
    for (int32_t i = 0; i < TINY_ARCHS; i++) {
        tiny_shape shape = tiny_shapes[i];
        if (i % 2) shape.dtype = TN_TYPE_Q8_0;
        for (size_t w = 0; w < TN_COUNT(ways); w++) {
            int before = n_lent_runs;
            tn_context *ctx = context(NULL, ways[w].n, ways[w].lent);
            tn_model *model = tiny_model_open(ctx, &shape);
            tn_session_config cfg = f32_config(PROMPT, 1);
            bool ok = plain_run(model, &cfg, tokens_of(2), PROMPT, PROMPT, w ? many : one);
            ok = ok && plain_run(model, &cfg, tokens_of(2), N, 1, (w ? many : one) + PROMPT * VOCAB);
            size_t n = (size_t)(PROMPT + N) * VOCAB;
            if (w > 0 && !TEST_CHECK(ok && memcmp(one, many, n * sizeof *one) == 0))
                printf("    %s: %d threads%s: off by %g\n", shape.arch, ways[w].n,
                       ways[w].lent ? ", lent" : "", off(many, one, n));
            TEST_CHECK(!ways[w].lent || n_lent_runs > before);
            tn_model_unref(&model);
            tn_context_destroy(&ctx);
        }
    }
}

// --- sequences -------------------------------------------------------------------------------------

// Three sequences in one pass, twice, then one token each.
static void test_sequences(const char *isa)
{
    static float alone[3][MAX_TOKENS * VOCAB];
    static const int32_t first[3] = {70, 5, 33}, second[3] = {9, 40, 1};
    tn_context *ctx = context(isa, 1, false);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_QWEN3MOE]);
    tn_session_config cfg = f32_config(MAX_TOKENS, 3);
    const double bound = isa ? 0.0 : 1e-5;
    int32_t tokens[3][MAX_TOKENS];
    for (int32_t q = 0; q < 3; q++) {
        memcpy(tokens[q], tokens_of((uint32_t)q), sizeof tokens[q]);
        plain_run(model, &cfg, tokens[q], 90, 90, alone[q]);
    }
    tn_session *s = session(model, &cfg);
    tn_feed feeds[3];
    for (int32_t q = 0; q < 3; q++)
        feeds[q] = FEED(2 - q, first[2 - q], tokens[2 - q], q == 1 ? TN_OUTPUT_LAST : TN_OUTPUT_ALL);
    TEST_CHECK_STATUS(tn_session_eval(s, feeds, 3), TN_OK);
    TEST_CHECK(tn_session_n_outputs(s) == 33 + 1 + 70 && tn_session_logits(s, 104) == NULL &&
               tn_session_logits(s, -1) == NULL);
    close_to(tn_session_logits(s, 0), alone[2], 33 * VOCAB, bound, "three at once", "2");
    close_to(tn_session_logits(s, 33), alone[1] + 4 * VOCAB, VOCAB, bound, "three at once", "1");
    close_to(tn_session_logits(s, 34), alone[0], 70 * VOCAB, bound, "three at once", "0");
    for (int32_t q = 0; q < 3; q++)
        feeds[q] = FEED(q, second[q], tokens[q] + first[q], q == 1 ? TN_OUTPUT_NONE : TN_OUTPUT_LAST);
    TEST_CHECK_STATUS(tn_session_eval(s, feeds, 3), TN_OK);
    TEST_CHECK(tn_session_n_outputs(s) == 2);
    close_to(tn_session_logits(s, 0), alone[0] + 78 * VOCAB, VOCAB, bound, "continued", "0");
    close_to(tn_session_logits(s, 1), alone[2] + 33 * VOCAB, VOCAB, bound, "continued", "2");
    for (int32_t k = 0; k < 8; k++) { // batched decoding
        for (int32_t q = 0; q < 3; q++)
            feeds[q] = FEED(q, 1, tokens[q] + first[q] + second[q] + k, TN_OUTPUT_LAST);
        TEST_CHECK_STATUS(tn_session_eval(s, feeds, 3), TN_OK);
        for (int32_t q = 0; q < 3; q++)
            close_to(tn_session_logits(s, q), alone[q] + (first[q] + second[q] + k) * VOCAB, VOCAB, bound,
                     "decoded together", "q");
    }
    TEST_CHECK(tn_session_length(s, 0) == 87 && tn_session_length(s, 1) == 53 &&
               tn_session_length(s, 2) == 42);
    tn_session_destroy(&s);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// Random feeds, cuts and branches of four sequences against a record of what each should hold.
static void test_branches(void)
{
    enum { SEQ = 4, N_CTX = 150, STEPS = 300 };
    static float want[MAX_TOKENS * VOCAB];
    int32_t held[SEQ][N_CTX], length[SEQ] = {0}, n_full = 0, n_fed = 0;
    tn_context *ctx = context("generic", 1, false);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session_config cfg = f32_config(N_CTX, SEQ), alone = f32_config(N_CTX, 1);
    tn_session *s = session(model, &cfg);
    uint32_t seed = 3;
    for (int32_t i = 0; i < STEPS; i++) {
        seed = seed * 1664525u + 1013904223u;
        int32_t q = seed >> 8 & 3, to = (q + 1 + (int32_t)(seed >> 10 & 3) % 3) % SEQ, what = seed >> 14 & 7,
                n = (int32_t)(seed >> 17) % 48 + 1;
        if (what == 0) {
            length[q] -= TN_MIN(n, length[q]);
            TEST_CHECK_STATUS(tn_session_truncate(s, q, length[q]), TN_OK);
        } else if (what < 3 && length[q] > 0) {
            length[to] = what == 1 ? length[q] : n % (length[q] + 1);
            memcpy(held[to], held[q], (size_t)length[to] * sizeof **held);
            TEST_CHECK_STATUS(tn_session_branch(s, q, to, length[to]), TN_OK);
        } else {
            int32_t more[48];
            for (int32_t k = 0; k < n; k++) more[k] = (int32_t)((seed >> 4) + (uint32_t)k * 37u) % VOCAB;
            tn_status status = tn_session_eval(s, &FEED(q, n, more, TN_OUTPUT_LAST), 1);
            n_full += status == TN_ERR_CONTEXT_FULL;
            if (status == TN_OK) {
                memcpy(held[q] + length[q], more, (size_t)n * sizeof *more);
                length[q] += n;
                n_fed++;
                if (plain_run(model, &alone, held[q], length[q], length[q], want))
                    close_to(tn_session_logits(s, 0), want + (length[q] - 1) * VOCAB, VOCAB, 0.0,
                             "after branches", "llama");
            } else if (!TEST_CHECK_STATUS(status, TN_ERR_CONTEXT_FULL)) {
                break;
            } else { // free the sequence
                length[to] = 0;
                TEST_CHECK_STATUS(tn_session_truncate(s, to, 0), TN_OK);
            }
        }
        for (int32_t k = 0; k < SEQ; k++) TEST_CHECK(tn_session_length(s, k) == length[k]);
    }
    TEST_CHECK(n_full > 0 && n_fed > 50);
    for (int32_t k = 0; k < SEQ; k++) TEST_CHECK_STATUS(tn_session_truncate(s, k, 0), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(s, 2, tokens_of(0), N_CTX), TN_OK); // no block was lost
    tn_session_destroy(&s);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// Layers of llama4 see the run of 8192 positions that they are in: what comes after reads like a beginning.
static void test_long_runs(tn_context *ctx)
{
    enum { RUN = 8192, N = 20 };
    static float fresh[N * VOCAB];
    tiny_shape shape = tiny_shapes[TINY_LLAMA4];
    tn_model *model = tiny_model_open(ctx, &shape);
    TEST_CHECK(model->config.chunk == RUN && model->config.layers[2].sliding &&
               !model->config.layers[3].sliding);
    TEST_CHECK(model->config.layers[3].no_rope && !model->config.layers[2].no_rope);
    TEST_CHECK(model->config.temperature_length == RUN && model->config.temperature_start == 1);
    tn_model_unref(&model);
    shape.n_layers = 3; // none that sees everything
    shape.n_ctx = 2 * RUN;
    model = tiny_model_open(ctx, &shape);
    tn_session_config cfg = f32_config(RUN + N, 1);
    int32_t *junk = malloc(RUN * sizeof *junk);
    if (!junk) abort();
    for (int32_t i = 0; i < RUN; i++) junk[i] = token(3, i) < 0 ? 0 : token(3, i);
    plain_run(model, &cfg, tokens_of(1), N, N, fresh);
    tn_session *s = session(model, &cfg);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, junk, RUN), TN_OK);
    TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, N, tokens_of(1), TN_OUTPUT_ALL), 1), TN_OK);
    close_to(tn_session_logits(s, 0), fresh, N * VOCAB, 1e-3, "a second run", "llama4");
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, RUN - 1),
                      TN_OK); // one key of the first run is seen by the first token only
    TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, N, tokens_of(1), TN_OUTPUT_ALL), 1), TN_OK);
    TEST_CHECK(off(tn_session_logits(s, 0), fresh, VOCAB) > 0.05);
    tn_session_destroy(&s);
    free(junk);
    tn_model_unref(&model);
}

// --- limits ----------------------------------------------------------------------------------------

static void test_full(tn_model *model)
{
    static float want[MAX_TOKENS * VOCAB];
    tn_session_config cfg = f32_config(100, 1);
    tn_session *s = session(model, &cfg);
    const int32_t *t = tokens_of(1);
    TEST_CHECK(tn_session_n_ctx(s) == 100 && tn_session_n_batch(s) == 100);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t, 90), TN_OK);
    TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, 11, t + 90, TN_OUTPUT_LAST), 1), TN_ERR_CONTEXT_FULL);
    TEST_CHECK(tn_session_length(s, 0) == 90 && tn_session_n_outputs(s) == 0 &&
               tn_session_logits(s, 0) == NULL);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t + 90, 11), TN_ERR_CONTEXT_FULL);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t + 90, 10), TN_OK);
    plain_run(model, &cfg, t, 100, 100, want);
    close_to(tn_session_logits(s, 0), want + 99 * VOCAB, VOCAB, 1e-5, "up to the end", "llama");
    TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, 1, t, TN_OUTPUT_LAST), 1), TN_ERR_CONTEXT_FULL);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 50), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t + 50, 50), TN_OK);
    close_to(tn_session_logits(s, 0), want + 99 * VOCAB, VOCAB, 1e-5, "after a cut", "llama");
    tn_session_destroy(&s);

    // Two sequences share three blocks: what does not fit for both changes neither.
    cfg.n_seq = 2;
    s = session(model, &cfg);
    tn_feed both[] = {FEED(0, 60, t, TN_OUTPUT_NONE), FEED(1, 40, t, TN_OUTPUT_NONE)};
    TEST_CHECK_STATUS(tn_session_eval(s, both, 2), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(s, 1, t + 40, 24), TN_OK);
    tn_feed crowd[] = {FEED(0, 10, t + 60, TN_OUTPUT_LAST), FEED(1, 1, t + 64, TN_OUTPUT_LAST)};
    TEST_CHECK_STATUS(tn_session_eval(s, crowd, 2), TN_ERR_CONTEXT_FULL);
    TEST_CHECK(tn_session_length(s, 0) == 60 && tn_session_length(s, 1) == 64);
    TEST_CHECK_STATUS(tn_session_eval(s, &crowd[0], 1), TN_OK);
    close_to(tn_session_logits(s, 0), want + 69 * VOCAB, VOCAB, 1e-5, "after a refusal", "llama");
    tn_session_destroy(&s);
}

static int32_t cancel_after(void *user, uint64_t done, uint64_t total)
{
    TN_UNUSED(total);
    return done >= *(const uint64_t *)user;
}

typedef struct canceller {
    tn_session *session;
    _Atomic int32_t started;
} canceller;

static void *cancel_soon(void *arg)
{
    canceller *c = arg;
    while (!atomic_load(&c->started)) nanosleep(&(struct timespec){0, 10000}, NULL);
    nanosleep(&(struct timespec){0, 3000000}, NULL);
    tn_session_cancel(c->session, 1);
    return NULL;
}

static void test_cancel(tn_model *model)
{
    static float want[MAX_TOKENS * VOCAB];
    tn_session_config cfg = f32_config(150, 1);
    const int32_t *t = tokens_of(2);
    plain_run(model, &cfg, t, 150, 150, want);
    tn_session *s = session(model, &cfg);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t, 100), TN_OK);
    tn_session_cancel(s, 1);
    TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, 50, t + 100, TN_OUTPUT_LAST), 1), TN_ERR_CANCELLED);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t + 100, 50), TN_ERR_CANCELLED);
    TEST_CHECK(tn_session_length(s, 0) == 100 && tn_session_n_outputs(s) == 0);
    tn_session_cancel(s, 0);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t + 100, 50), TN_OK);
    close_to(tn_session_logits(s, 0), want + 149 * VOCAB, VOCAB, 1e-5, "after cancelling", "llama");

    // From another thread, somewhere inside an eval: the length stays at what was complete.
    canceller c = {.session = s};
    pthread_t thread;
    atomic_init(&c.started, 0);
    if (pthread_create(&thread, NULL, cancel_soon, &c) != 0) abort();
    tn_status status = TN_OK;
    int32_t length = 0;
    for (int32_t i = 0; i < 100000 && status == TN_OK; i++) {
        if (tn_session_length(s, 0) >= 120) TEST_CHECK_STATUS(tn_session_truncate(s, 0, 0), TN_OK);
        length = tn_session_length(s, 0);
        atomic_store(&c.started, 1);
        status = tn_session_eval(s, &FEED(0, 30, t + length, TN_OUTPUT_LAST), 1);
    }
    pthread_join(thread, NULL);
    TEST_CHECK_STATUS(status, TN_ERR_CANCELLED);
    TEST_CHECK(tn_session_length(s, 0) == length && length % 30 == 0);
    tn_session_cancel(s, 0);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t + length, 150 - length), TN_OK);
    close_to(tn_session_logits(s, 0), want + 149 * VOCAB, VOCAB, 1e-5, "after cancelling inside", "llama");
    tn_session_destroy(&s);

    uint64_t stop_at = 64;
    cfg.n_batch = 32;
    cfg.progress = cancel_after;
    cfg.progress_user = &stop_at;
    s = session(model, &cfg);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t, 150), TN_ERR_CANCELLED);
    TEST_CHECK(tn_session_length(s, 0) == 64);
    stop_at = 1000;
    TEST_CHECK_STATUS(tn_session_feed(s, 0, t + 64, 86), TN_OK);
    close_to(tn_session_logits(s, 0), want + 149 * VOCAB, VOCAB, 1e-5, "after progress said stop", "llama");
    tn_session_destroy(&s);
}

// --- arguments -------------------------------------------------------------------------------------

static void refuse_config(tn_model *model, tn_session_config cfg, tn_status want)
{
    tn_session *s = NULL;
    tn_session_memory memory = {.struct_size = sizeof memory};
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), want);
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &memory), want);
    TEST_CHECK(s == NULL);
    tn_session_destroy(&s);
}

#define REFUSE_CONFIG(field, value)                                                                          \
    do {                                                                                                     \
        tn_session_config bad = f32_config(100, 2);                                                          \
        bad.field = (value);                                                                                 \
        refuse_config(model, bad, TN_ERR_ARG);                                                               \
    } while (0)

static void test_plan_arguments(tn_model *model)
{
    tn_session_config cfg = f32_config(100, 2);
    tn_plan *plan = NULL;
    TEST_CHECK_STATUS(tn_model_plan_create(model, &cfg, 0, 1, &plan), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_model_plan_create(model, &cfg, 4, 0, &plan), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_model_plan_create(model, &cfg, 1, 2, &plan), TN_ERR_ARG); // more than tokens
    TEST_CHECK_STATUS(tn_model_plan_create(model, &cfg, 4, 3, &plan), TN_ERR_ARG); // than the session has
    TEST_CHECK(!plan && TEST_CHECK_STATUS(tn_model_plan_create(model, &cfg, 4, 2, &plan), TN_OK));
    tn_plan_unref(&plan);
}

static void test_config_arguments(tn_model *model)
{
    REFUSE_CONFIG(n_ctx, -1);
    REFUSE_CONFIG(n_ctx_seq, -1);
    REFUSE_CONFIG(n_ctx_seq, 101);
    REFUSE_CONFIG(n_batch, -1);
    REFUSE_CONFIG(n_batch, 65537);
    REFUSE_CONFIG(n_seq, 0);
    REFUSE_CONFIG(n_seq, 257);
    REFUSE_CONFIG(cache_type_k, TN_TYPE_Q4_K);
    REFUSE_CONFIG(cache_type_v, -1);
    REFUSE_CONFIG(cache_type_v, TN_TYPE_COUNT);
    REFUSE_CONFIG(precision, -1);
    REFUSE_CONFIG(precision, TN_PRECISION_COUNT);
    REFUSE_CONFIG(result, TN_RESULT_LOGITS - 1);
    REFUSE_CONFIG(result, TN_RESULT_SCORES + 1);
    REFUSE_CONFIG(n_checkpoints, -1);
    REFUSE_CONFIG(n_checkpoints, INT32_MAX);
}

static void test_arguments(tn_model *model)
{
    tn_session_config cfg = f32_config(100, 2);
    cfg.n_batch = 20;
    tn_session *s = session(model, &cfg);
    int32_t good[21] = {1, 2, 3}, high[] = {1, VOCAB}, low[] = {1, -1};
    const tn_feed bad[] = {
        FEED(-1, 1, good, TN_OUTPUT_LAST),   FEED(2, 1, good, TN_OUTPUT_LAST),
        FEED(0, 0, good, TN_OUTPUT_LAST),    FEED(0, -1, good, TN_OUTPUT_LAST),
        FEED(0, 21, good, TN_OUTPUT_LAST),   FEED(0, 2, high, TN_OUTPUT_LAST),
        FEED(0, 2, low, TN_OUTPUT_LAST),     FEED(0, 1, good, -1),
        FEED(0, 1, good, TN_OUTPUT_FIRST + 1),
    };
    TEST_CHECK_STATUS(tn_session_feed(s, 0, good, 3), TN_OK);
    TEST_CHECK_STATUS(tn_session_read_row(s, 0), TN_OK);
    TEST_CHECK_STATUS(tn_session_read_row(s, 1), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_session_read_row(s, -1), TN_ERR_STATE);
    for (size_t i = 0; i < TN_COUNT(bad); i++)
        if (!TEST_CHECK_STATUS(tn_session_eval(s, &bad[i], 1), TN_ERR_ARG)) {
            printf("    feed %zu\n", i);
            TEST_CHECK_STATUS(tn_session_truncate(s, 0, 3), TN_OK);
        }
    const tn_feed twice[] = {FEED(0, 1, good, TN_OUTPUT_LAST), FEED(0, 1, good, TN_OUTPUT_LAST)};
    const tn_feed many[] = {FEED(0, 11, good, TN_OUTPUT_LAST), FEED(1, 10, good, TN_OUTPUT_LAST)};
    TEST_CHECK_STATUS(tn_session_eval(s, twice, 2), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_eval(s, many, 2), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_eval(s, many, 0), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_eval(s, many, 3), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, good, 0), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_feed(s, 2, good, 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_feed(s, -1, good, 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 4), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, -1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_truncate(s, 2, 0), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_branch(s, 0, 0, 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_branch(s, 0, 1, 4), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_branch(s, 0, 2, 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_branch(s, -1, 1, 1), TN_ERR_ARG);
    TEST_CHECK(tn_session_length(s, 0) == 3 && tn_session_length(s, 1) == 0 && tn_session_length(s, 9) == 0);
    tn_session_destroy(&s);
    tn_session_destroy(&s);
    tn_session_destroy(NULL);
}

// Learned positions bound the context; metadata-only models have no sessions.
static void test_refused_models(tn_context *ctx)
{
    tn_session *s = NULL;
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_GPT2]);
    refuse_config(model, f32_config(tiny_shapes[TINY_GPT2].n_ctx + 1, 1), TN_ERR_ARG);
    tn_model_unref(&model);
    tiny_file *f = malloc(sizeof *f);
    size_t size;
    if (!f) abort();
    tiny_describe(&tiny_shapes[TINY_LLAMA], f);
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.metadata_only = 1;
    void *data = tiny_write(ctx, f, &size);
    TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model), TN_OK);
    TEST_CHECK_STATUS(tn_session_create(model, NULL, &s), TN_ERR_STATE);
    tn_session_memory memory = {.struct_size = sizeof memory};
    TEST_CHECK_STATUS(tn_session_predict(model, NULL, &memory), TN_OK);
    tn_model_unref(&model);
    f->shape.tokenizer = true;
    tn_model_config_default(&cfg);
    cfg.tokenizer_only = 1;
    data = tiny_write(ctx, f, &size);
    TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model), TN_OK);
    TEST_CHECK_STATUS(tn_session_create(model, NULL, &s), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_session_predict(model, NULL, &memory), TN_ERR_STATE);
    tn_model_unref(&model);
    free(f);
}

int main(int argc, char **argv)
{
    all_lent = argc > 1 && strcmp(argv[1], "--lent") == 0;
    test_archs();
    test_mxfp4();
    test_threads();
    test_sequences(NULL);
    test_sequences("generic");
    test_branches();
    tn_context *ctx = context(NULL, all_lent ? 2 : 1, false);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    test_full(model);
    test_cancel(model);
    test_config_arguments(model);
    test_plan_arguments(model);
    test_arguments(model);
    tn_model_unref(&model);
    test_refused_models(ctx);
    test_long_runs(ctx);
    tn_context_destroy(&ctx);
    return test_done();
}
