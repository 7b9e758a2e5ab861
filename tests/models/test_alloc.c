// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Every allocation fails once, and each time from some point on: opening a model, a session, a prompt, two
// decode steps and the end give "out of memory" or succeed, and leave nothing behind.
//
//     test_alloc [STEP]   only every STEP-th point (default 1)
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <limits.h>
#include <tenon/session.h>

typedef struct source {
    const char *name;
    const void *bytes;
    size_t size;
} source;

// A whole life on that context; the first failure ends it.
static tn_status live_once(tn_context *ctx, const source *src)
{
    static const int32_t prompt[] = {1, 2, 3, 4, 5, 6, 7};
    tn_model *model = NULL;
    tn_session *s = NULL;
    void *data = tn_alloc(ctx, src->size);
    if (!data) return TN_ERR_MEMORY;
    memcpy(data, src->bytes, src->size);
    tn_status status = tn_model_open_memory(ctx, data, src->size, src->name, NULL, &model);
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 70;
    cfg.n_seq = 2;
    if (status == TN_OK) status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = tn_session_feed(s, 0, prompt, 7);
    if (status == TN_OK) status = tn_session_branch(s, 0, 1, 5);
    for (int32_t i = 0; i < 2 && status == TN_OK; i++) status = tn_session_feed(s, i, prompt + i, 1);
    if (status == TN_OK && tn_session_length(s, 1) != 6) status = TN_ERR_INTERNAL;
    if (s && status != TN_OK && tn_session_length(s, 0) > 8) status = TN_ERR_INTERNAL;
    tn_session_destroy(&s);
    tn_model_unref(&model);
    return status;
}

// Allocations of creating the context are not part of this, nor are those of its threads, which start with
// the first life and stay (tests/unit/test_pool.c).
static void check_points(const source *src, bool for_good, long step)
{
    counting count;
    tn_context *ctx = counting_context(&count);
    TEST_CHECK_STATUS(live_once(ctx, src), TN_OK);
    long base_live = count.live, start = count.calls, n_failed = 0, n_wrong = 0;
    size_t base_memory = tn_context_memory(ctx);
    TEST_CHECK_STATUS(live_once(ctx, src), TN_OK);
    long n_points = count.calls - start;
    for (long point = 0; point < n_points; point += step) {
        count.fail_from = count.calls + point;
        count.fail_to = for_good ? LONG_MAX : count.fail_from + 1;
        tn_status status = live_once(ctx, src);
        count.fail_from = count.fail_to = 0;
        n_failed += status == TN_ERR_MEMORY;
        bool ok = status == TN_OK || status == TN_ERR_MEMORY;
        ok = ok && count.live == base_live && tn_context_memory(ctx) == base_memory;
        if (!ok && n_wrong++ < 5)
            printf("    %s, point %ld%s: \"%s\", %ld left\n", src->name, point, for_good ? " and on" : "",
                   tn_status_text(status), count.live - base_live);
    }
    TEST_CHECK(n_wrong == 0);
    TEST_CHECK(n_points > 20 && n_failed >= (n_points + step - 1) / step * 9 / 10);
    TEST_CHECK_STATUS(live_once(ctx, src), TN_OK); // the context is as good as new
    printf("%s: %ld points %s, %ld gave out of memory\n", src->name, (n_points + step - 1) / step,
           for_good ? "and on" : "once", n_failed);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
}

// Contexts that cannot be created leave nothing behind either.
static void test_contexts(void)
{
    tn_status status = TN_ERR_MEMORY;
    for (long point = 0; point < 100 && status != TN_OK; point++) {
        counting count = {.fail_from = point, .fail_to = LONG_MAX};
        tn_context *ctx = NULL;
        tn_context_config cfg;
        tn_context_config_default(&cfg);
        cfg.allocator = (tn_allocator){&count, counting_alloc, counting_free};
        status = tn_context_create(&cfg, &ctx);
        TEST_CHECK(status == TN_OK || (status == TN_ERR_MEMORY && !ctx));
        tn_context_destroy(&ctx);
        TEST_CHECK(count.live == 0);
    }
    TEST_CHECK_STATUS(status, TN_OK);
}

int main(int argc, char **argv)
{
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    static const int32_t archs[] = {TINY_LLAMA, TINY_QWEN3MOE};
    tn_context *plain = NULL;
    test_contexts();
    if (tn_context_create(NULL, &plain) != TN_OK) abort();
    for (size_t i = 0; i < TN_COUNT(archs); i++) {
        tiny_shape shape = tiny_shapes[archs[i]];
        tiny_file *f = malloc(sizeof *f);
        source src = {.name = shape.arch};
        if (!f) abort();
        shape.tokenizer = archs[i] == TINY_LLAMA;
        shape.dtype = archs[i] == TINY_LLAMA ? TN_TYPE_Q8_0 : TN_TYPE_F32;
        tiny_describe(&shape, f);
        void *bytes = tiny_write(plain, f, &src.size);
        src.bytes = bytes;
        check_points(&src, false, step);
        check_points(&src, true, step);
        tn_free(plain, bytes);
        free(f);
    }
    tn_context_destroy(&plain);
    return test_done();
}
