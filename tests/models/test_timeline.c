// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a context reports to whoever watches: spans that nest, every pass once, steps only of those passes
// that were asked for and within the time of their pass, and the same results as without.
#include "tests/models/feeds.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <stdatomic.h>
#include <string.h>
#include <tenon/session.h>

enum { VOCAB = TINY_MODEL_VOCAB, SPANS = 4096, PASSES = 32, N = 12 };

typedef struct watcher {
    tn_span spans[SPANS]; // of the thread that runs the test
    int32_t n_spans;
    _Atomic int32_t n_pool; // spans of other threads
    tn_pass_info begun[PASSES], ended[PASSES];
    int32_t n_begun, n_ended, n_steps;
    uint64_t steps_ns;
    bool wrong;
} watcher;

static void on_span(void *user, const tn_span *span)
{
    watcher *w = user;
    if (span->pool_thread > 0)
        atomic_fetch_add(&w->n_pool, 1);
    else if (w->n_spans < SPANS)
        w->spans[w->n_spans++] = *span;
}

// Every third pass is timed.
static int32_t on_begin(void *user, const tn_pass_info *pass)
{
    watcher *w = user;
    w->wrong |= pass->end_ns != 0 || pass->step_ns || !pass->plan || w->n_begun != w->n_ended;
    w->begun[w->n_begun % PASSES] = *pass;
    return w->n_begun++ % 3 == 0;
}

static void on_end(void *user, const tn_pass_info *pass)
{
    watcher *w = user;
    uint64_t sum = 0;
    for (int32_t i = 0; i < pass->n_steps; i++) sum += pass->step_ns[i];
    tn_plan_step_info info = {.struct_size = sizeof info};
    w->n_steps += pass->n_steps;
    w->steps_ns += sum;
    w->wrong |= (pass->n_steps > 0) != ((w->n_begun - 1) % 3 == 0);
    w->wrong |= pass->begin_ns > pass->submit_ns || pass->submit_ns + sum > pass->end_ns;
    w->wrong |= pass->n_steps > 0 && (tn_plan_step_get(pass->plan, pass->n_steps - 1, 0, &info) != 1 ||
                                      tn_plan_step_get(pass->plan, pass->n_steps, 0, &info) != 0);
    w->ended[w->n_ended++ % PASSES] = *pass;
}

// Two spans of a thread lie apart, or one contains the other.
static bool nest(const tn_span *a, const tn_span *b)
{
    bool apart = a->end_ns <= b->begin_ns || b->end_ns <= a->begin_ns;
    bool inside = a->begin_ns >= b->begin_ns && a->end_ns <= b->end_ns;
    return apart || inside || (b->begin_ns >= a->begin_ns && b->end_ns <= a->end_ns);
}

static int32_t count_spans(const watcher *w, const char *name)
{
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_spans; i++) n += strcmp(w->spans[i].name, name) == 0;
    return n;
}

// A prompt of 20 tokens and N single ones, chosen greedily; the logits of the last one.
static void evaluate(tn_context *ctx, int32_t *ids, float *logits)
{
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    int32_t prompt[20];
    tn_session *s = NULL;
    for (int32_t i = 0; i < 20; i++) prompt[i] = i * 7 % VOCAB;
    TEST_CHECK_STATUS(tn_session_create(model, NULL, &s), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, prompt, 20), TN_OK);
    for (int32_t i = 0; i < N && s; i++) {
        TEST_CHECK_STATUS(tn_session_best(s, 0, &ids[i], NULL), TN_OK);
        TEST_CHECK_STATUS(tn_session_feed(s, 0, &ids[i], 1), TN_OK);
    }
    if (s) memcpy(logits, tn_session_logits(s, 0), VOCAB * sizeof *logits);
    double ns;
    TEST_CHECK_STATUS(tn_model_host_overhead(model, NULL, &ns), TN_OK); // its passes are not reported
    tn_session_destroy(&s);
    tn_model_unref(&model);
}

static tn_context *open_context(watcher *w, bool passes)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = 2;
    cfg.user = w;
    if (w) cfg.span = on_span;
    if (w && passes) cfg.pass_begin = on_begin, cfg.pass_end = on_end;
    tn_context *ctx = NULL;
    TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_OK);
    return ctx;
}

static void test_watched(void)
{
    static watcher w;
    static float logits[2][VOCAB];
    int32_t ids[2][N] = {{0}};
    for (int32_t watched = 0; watched < 2; watched++) {
        tn_context *ctx = open_context(watched ? &w : NULL, true);
        evaluate(ctx, ids[watched], logits[watched]);
        tn_context_destroy(&ctx);
    }
    TEST_CHECK(memcmp(ids[0], ids[1], sizeof ids[0]) == 0);
    TEST_CHECK(memcmp(logits[0], logits[1], sizeof logits[0]) == 0);
    TEST_CHECK(!w.wrong && w.n_begun == N + 1 && w.n_ended == N + 1);
    TEST_CHECK(w.n_steps > 0 && w.steps_ns > 0);
    for (int32_t i = 0; i < w.n_ended; i++) {
        const tn_pass_info *p = &w.ended[i];
        TEST_CHECK(p->struct_size == sizeof *p && p->n_seq == 1 && p->n_tokens == (i ? 1 : 20));
        TEST_CHECK(p->depth == (i ? 19 + i : 0) && p->session == w.ended[0].session);
        TEST_CHECK(p->n_blocks_used > 0 && p->n_blocks_used <= p->n_blocks);
        if (i > 0) TEST_CHECK(p->begin_ns >= w.ended[i - 1].end_ns);
    }
    TEST_CHECK(count_spans(&w, "submit a pass") == N + 1 && count_spans(&w, "wait for a pass") == N + 1);
    TEST_CHECK(count_spans(&w, "load a model") == 1 && count_spans(&w, "create a session") == 1);
    TEST_CHECK(count_spans(&w, "make a plan") >= 2 && count_spans(&w, "work") > 0);
    bool nested = w.n_spans < SPANS;
    for (int32_t i = 0; i < w.n_spans; i++)
        for (int32_t k = 0; k < i; k++) nested &= nest(&w.spans[i], &w.spans[k]);
    TEST_CHECK(nested);
}

// Without the callbacks of passes nothing is timed, so that no thread of the pool reports what it did.
static void test_spans_only(void)
{
    static watcher w;
    float logits[VOCAB];
    int32_t ids[N];
    tn_context *ctx = open_context(&w, false);
    evaluate(ctx, ids, logits);
    tn_context_destroy(&ctx);
    TEST_CHECK(w.n_begun == 0 && w.n_ended == 0 && atomic_load(&w.n_pool) == 0);
    TEST_CHECK(count_spans(&w, "load a model") == 1 && count_spans(&w, "work") == 0);
}

int main(void)
{
    test_watched();
    test_spans_only();
    return test_done();
}
