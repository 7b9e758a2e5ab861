// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What sessions take: nothing per decoded token, what tn_session_predict said, and all of it back at the end.
#include "tests/models/feeds.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/session.h>

enum { VOCAB = TINY_MODEL_VOCAB, MAX_FEEDS = 3 };

static counting count;
static tn_context *ctx;

static tn_status eval(tn_session *s, int32_t n_seq, int32_t n_tokens)
{
    static int32_t tokens[4096];
    tn_feed feeds[MAX_FEEDS];
    for (int32_t q = 0; q < n_seq; q++) feeds[q] = FEED(q, n_tokens, tokens, TN_OUTPUT_LAST);
    for (int32_t i = 0; i < n_tokens; i++) tokens[i] = i * 7 % VOCAB;
    return tn_session_eval(s, feeds, n_seq);
}

// --- steady decoding -------------------------------------------------------------------------------

static void test_steady(const tiny_shape *shape, int32_t n_seq)
{
    tn_model *model = tiny_model_open(ctx, shape);
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 200 * n_seq; // of all sequences together
    cfg.n_seq = n_seq;
    tn_session *s = NULL;
    tn_status status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = eval(s, n_seq, 30);
    for (int32_t i = 0; i < 2 && status == TN_OK; i++) status = eval(s, n_seq, 1);
    uint64_t before = tn_context_n_allocs(ctx);
    size_t memory = tn_context_memory(ctx);
    for (int32_t i = 0; i < 120 && status == TN_OK; i++) { // over two borders of blocks
        status = eval(s, n_seq, 1);
        // With recurrent layers a cut evaluates tokens again, in a shape that may need a plan of its own.
        if (i == 60 && status == TN_OK && model->config.delta.dim == 0)
            status = tn_session_truncate(s, 0, 40);
    }
    TEST_CHECK_STATUS(status, TN_OK);
    if (!TEST_CHECK(tn_context_n_allocs(ctx) == before && tn_context_memory(ctx) == memory))
        printf("    %s, %d sequences: %llu allocations\n", shape->arch, n_seq,
               (unsigned long long)(tn_context_n_allocs(ctx) - before));
    tn_session_destroy(&s);
    tn_model_unref(&model);
}

// --- prediction ------------------------------------------------------------------------------------

static void check_near(const char *what, const char *arch, size_t got, uint64_t predicted)
{
    double ratio = (double)got / (double)predicted;
    if (!TEST_CHECK(ratio > 0.98 && ratio < 1.02))
        printf("    %s, %s: %zu bytes, %llu predicted: %+.2f %%\n", arch, what, got,
               (unsigned long long)predicted, (ratio - 1.0) * 100.0);
}

static void test_predict(tn_model *model, const char *arch, tn_session_config cfg)
{
    tn_session_memory memory = {.struct_size = sizeof memory};
    tn_session *s = NULL;
    size_t before = tn_context_memory(ctx);
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &memory), TN_OK);
    TEST_CHECK(tn_context_memory(ctx) == before);
    TEST_CHECK(memory.total == memory.cache + memory.arena + memory.scratch + memory.other);
    TEST_CHECK(memory.total >= 20u << 20); // below, the share of small objects says nothing
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK);
    if (s) {
        check_near("created", arch, tn_context_memory(ctx) - before, memory.total);
        TEST_CHECK_STATUS(eval(s, 1, tn_session_n_batch(s)), TN_OK);
        TEST_CHECK_STATUS(eval(s, 1, 37), TN_OK);
        for (int32_t i = 0; i < 3; i++) TEST_CHECK_STATUS(eval(s, 1, 1), TN_OK);
        check_near("after a prompt", arch, tn_context_memory(ctx) - before, memory.total);
    }
    tn_session_destroy(&s);
    TEST_CHECK(tn_context_memory(ctx) == before);
}

static void test_predictions(void)
{
    tn_session_config cfg;
    for (int32_t i = 0; i < TINY_ARCHS; i++) {
        tiny_shape shape = tiny_shapes[i];
        // gpt2: as many learned positions; gemma4: two of four layers store nothing
        shape.n_ctx = i == TINY_GPT2 ? 32768 : i == TINY_GEMMA4 ? 196608 : 98304;
        tn_model *model = tiny_model_open(ctx, &shape);
        tn_session_config_default(&cfg);
        cfg.n_ctx = i == TINY_GEMMA3 ? 32768 : shape.n_ctx; // seven layers
        cfg.n_batch = 64;
        if (i == TINY_GPT2) cfg.cache_type_k = TN_TYPE_F32;
        test_predict(model, shape.arch, cfg);
        cfg.n_seq = 3;
        cfg.n_batch = 512;
        cfg.cache_type_k = TN_TYPE_F32;
        cfg.cache_type_v = TN_TYPE_F16;
        test_predict(model, shape.arch, cfg);
        tn_model_unref(&model);
    }
    // Wide activations, small cache.
    tn_model_shape wide = {.struct_size = sizeof wide};
    tn_model *model = NULL;
    TEST_CHECK_STATUS(tn_model_shape_get(ctx, "qwen3-0.6b", &wide), TN_OK);
    wide.n_layers = 2;
    wide.n_vocab = 8192;
    wide.type = "Q8_0";
    TEST_CHECK_STATUS(tn_model_create_random(ctx, &wide, NULL, &model), TN_OK);
    tn_session_config_default(&cfg);
    cfg.n_ctx = 1024;
    if (model) test_predict(model, "wide qwen3", cfg);
    tn_model_unref(&model);
}

// --- coming and going ------------------------------------------------------------------------------

static void test_cycles(void)
{
    long live = 0;
    size_t memory = 0;
    for (int32_t i = 0; i < 100; i++) {
        tiny_shape shape = tiny_shapes[i % TINY_ARCHS];
        shape.tokenizer = i % 2;
        tn_model *model = tiny_model_open(ctx, &shape), *again = tn_model_ref(model);
        tn_session *s = NULL;
        tn_session_config cfg;
        tn_session_config_default(&cfg);
        cfg.n_ctx = 70;
        TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK);
        tn_model_unref(&model); // the session and `again` keep it
        if (s) TEST_CHECK_STATUS(eval(s, 1, 10), TN_OK);
        tn_model_unref(&again);
        if (s) TEST_CHECK_STATUS(eval(s, 1, 1), TN_OK);
        tn_session_destroy(&s);
        if (i == 0) live = count.live, memory = tn_context_memory(ctx);
        TEST_CHECK(count.live == live && tn_context_memory(ctx) == memory);
    }
}

static void test_host_overhead(void)
{
    for (int32_t i = 0; i < TINY_ARCHS; i++) {
        tn_model *model = tiny_model_open(ctx, &tiny_shapes[i]);
        double ns = -1.0;
        size_t memory = tn_context_memory(ctx);
        TEST_CHECK_STATUS(tn_model_host_overhead(model, NULL, &ns), TN_OK);
        TEST_CHECK(ns > 0.0 && ns < 1e9 && tn_context_memory(ctx) == memory);
        printf("host overhead of a decode step, %s: %.2f us\n", tiny_shapes[i].arch, ns / 1000.0);
        tn_model_unref(&model);
    }
    // A model with fewer learned positions than steps to measure.
    tiny_shape few = tiny_shapes[TINY_GPT2];
    few.n_ctx = 64;
    tn_model *model = tiny_model_open(ctx, &few);
    double ns = -1.0;
    tn_status status = tn_model_host_overhead(model, NULL, &ns);
    TEST_CHECK(status == TN_OK ? ns > 0.0 : ns == -1.0);
    TEST_CHECK_STATUS(status, TN_OK);
    tn_model_unref(&model);
}

int main(void)
{
    ctx = counting_context(&count);
    for (int32_t i = 0; i < TINY_ARCHS; i++) {
        tiny_shape shape = tiny_shapes[i];
        shape.n_ctx = 1024;
        if (i % 2) shape.dtype = TN_TYPE_Q8_0;
        test_steady(&shape, 1);
        test_steady(&shape, 3);
    }
    test_predictions();
    test_cycles();
    test_host_overhead();
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
