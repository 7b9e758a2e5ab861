// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures as programs see them: before there is a context, NULL in every place where there must be
// something, and threads that fail at the same time.
//     test_messages FOLDER        with the bundled model
#include "core/compiler.h"
#include "core/context.h"
#include "tests/unit/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/embed.h>
#include <tenon/engine.h>
#include <tenon/file.h>
#include <tenon/graph.h>
#include <tenon/text.h>
#include <tenon/tools.h>

static tn_context *ctx;
static tn_model *model;
static tn_session *session;
static tn_engine *engine;
static tn_embedder *embedder;
static tn_generation *generation;
static tn_graph *graph;
static tn_plan *plan;
static tn_runner *runner;
static tn_file *file;
static tn_tool_parser *parser;

static bool last_has(const char *part)
{
    char text[1024] = "";
    tn_last_error(text, sizeof text);
    if (!strstr(text, part)) printf("    message: %s, expected: %s\n", text, part);
    return strstr(text, part) != NULL;
}

static void test_without_context(void)
{
    tn_context_config cfg;
    tn_context *made = NULL;
    char text[8] = "x";
    TEST_CHECK(tn_last_error(text, sizeof text) == 0 && !text[0]);
    TEST_CHECK(tn_context_error(NULL, text, sizeof text) == 0 && tn_last_error(NULL, 9) == 0);
    TEST_CHECK_STATUS(tn_context_create(NULL, NULL), TN_ERR_ARG);
    TEST_CHECK(last_has("tn_context_create: out is NULL"));
    TEST_CHECK(tn_last_error(text, sizeof text) == strlen("tn_context_create: out is NULL"));
    TEST_CHECK(strcmp(text, "tn_cont") == 0);
    tn_context_config_default(&cfg);
    cfg.n_threads = -1;
    TEST_CHECK_STATUS(tn_context_create(&cfg, &made), TN_ERR_ARG);
    TEST_CHECK(!made && last_has("n_threads is -1"));
    cfg.n_threads = 0, cfg.isa = "avx3";
    TEST_CHECK_STATUS(tn_context_create(&cfg, &made), TN_ERR_ARG);
    TEST_CHECK(!made && last_has("avx3"));
    cfg.isa = NULL, cfg.backend = "metal";
    TEST_CHECK_STATUS(tn_context_create(&cfg, &made), TN_ERR_ARG);
    TEST_CHECK(!made && last_has("there is no backend \"metal\"") && last_has(" cpu"));
    cfg.backend = NULL, cfg.struct_size = 0;
    TEST_CHECK_STATUS(tn_context_create(&cfg, &made), TN_ERR_ARG);
    TEST_CHECK(!made && last_has("tn_context_config: struct_size is 0"));
    TEST_CHECK_STATUS(tn_model_open(NULL, "x", NULL, &model), TN_ERR_ARG);
    TEST_CHECK(last_has("tn_model_open: ctx is NULL"));
}

// --- NULL where there must be something -----------------------------------------------------------------

// A call that must be refused, and the argument that the message names.
#define REFUSED(arg, call)                                                                                   \
    do {                                                                                                     \
        TEST_CHECK_STATUS((call), TN_ERR_ARG);                                                               \
        TEST_CHECK(last_has(arg));                                                                           \
    } while (0)

static void test_null_objects(void)
{
    static const int32_t ids[] = {1};
    char *text;
    float x;
    REFUSED("ctx", tn_graph_create(NULL, &graph));
    REFUSED("graph", tn_graph_status(NULL));
    REFUSED("graph", tn_plan_create(NULL, NULL, &plan));
    REFUSED("plan", tn_plan_info_get(NULL, &(tn_plan_info){.struct_size = sizeof(tn_plan_info)}));
    REFUSED("plan", tn_plan_dump(NULL, TN_PLAN_TEXT, &text));
    TEST_CHECK(tn_plan_step_get(NULL, 0, 0, NULL) == 0 && tn_plan_step_shapes(NULL, 0, NULL, 0) == 0);
    REFUSED("runner", tn_runner_profile(NULL, 1));
    TEST_CHECK(tn_runner_step_ns(NULL, 0) == 0 && !tn_session_plan_get(NULL));
    REFUSED("plan", tn_runner_create(NULL, NULL, 0, &runner));
    REFUSED("r is", tn_runner_write(NULL, "x", &x, sizeof x));
    REFUSED("r is", tn_runner_read(NULL, "y", &x, sizeof x));
    REFUSED("r is", tn_runner_run(NULL));
    REFUSED("device", tn_device_info_get(NULL, &(tn_device_info){.struct_size = sizeof(tn_device_info)}));
    REFUSED("model", tn_embedder_create(NULL, NULL, &embedder));
    REFUSED("e is", tn_embedder_run(NULL, &(tn_text_ids){ids, 1}, 1, &x));
}

static void test_null_objects_of_files(void)
{
    int32_t n;
    const tn_tool_event *const *tool_events;
    char *text;
    const char *cut;
    float x;
    REFUSED("ctx", tn_file_open(NULL, "x", &file));
    REFUSED("file", tn_file_key(NULL, 0, 0, &text, &cut, &cut));
    REFUSED("file", tn_file_tensor_get(NULL, 0, &(tn_file_tensor){.struct_size = sizeof(tn_file_tensor)}));
    REFUSED("file", tn_file_read_tensor(NULL, 0, 0, 1, &x));
    REFUSED("file", tn_file_export_tensor(NULL, 0, "x"));
    REFUSED("file", tn_file_check(NULL));
    REFUSED("ctx", tn_quantize(NULL, "a", "b", NULL));
    REFUSED("ctx", tn_tool_parser_create(NULL, NULL, &parser));
    REFUSED("p is", tn_tool_parser_feed(NULL, "x", 1, &tool_events, &n));
    REFUSED("p is", tn_tool_parser_end(NULL, &tool_events, &n));
    REFUSED("ctx", tn_tool_grammar(NULL, NULL, &text));
}

static void test_null_objects_of_models(void)
{
    static const int32_t ids[] = {1};
    int32_t *new_ids, n;
    const tn_engine_event *const *events;
    char *text;
    size_t size;
    uint64_t id;
    double ns;
    REFUSED("model", tn_engine_create(NULL, NULL, &engine));
    REFUSED("model",
            tn_engine_predict(NULL, NULL, &(tn_session_memory){.struct_size = sizeof(tn_session_memory)}));
    REFUSED("e is", tn_engine_submit(NULL, NULL, &id));
    REFUSED("e is", tn_engine_step(NULL, &events, &n));
    REFUSED("e is", tn_engine_take(NULL, &events, &n));
    REFUSED("e is", tn_engine_start(NULL));
    REFUSED("e is", tn_engine_stats_get(NULL, &(tn_engine_stats){.struct_size = sizeof(tn_engine_stats)}));
    REFUSED("m is", tn_model_info_get(NULL, &(tn_model_info){.struct_size = sizeof(tn_model_info)}));
    REFUSED("ctx", tn_model_shape_get(NULL, "x", &(tn_model_shape){.struct_size = sizeof(tn_model_shape)}));
    REFUSED("ctx", tn_model_create_random(NULL, NULL, NULL, &model));
    REFUSED("model",
            tn_session_predict(NULL, NULL, &(tn_session_memory){.struct_size = sizeof(tn_session_memory)}));
    REFUSED("model", tn_session_create(NULL, NULL, &session));
    REFUSED("s is", tn_session_eval(NULL, &(tn_feed){.struct_size = sizeof(tn_feed)}, 1));
    REFUSED("s is", tn_session_feed(NULL, 0, ids, 1));
    REFUSED("s is", tn_session_best(NULL, 0, &n, NULL));
    REFUSED("s is", tn_session_truncate(NULL, 0, 0));
    REFUSED("s is", tn_session_branch(NULL, 0, 1, 0));
    REFUSED("s is", tn_session_reuse(NULL, 0, ids, 1, &n));
    REFUSED("s is", tn_session_save(NULL, "x"));
    REFUSED("s is", tn_session_load(NULL, "x"));
    REFUSED("s is", tn_session_save_memory(NULL, &text, &size));
    REFUSED("s is", tn_session_load_memory(NULL, "x", 1));
    REFUSED("model", tn_model_plan_create(NULL, NULL, 1, 1, &plan));
    REFUSED("model", tn_model_plan_dump(NULL, NULL, 1, TN_PLAN_TEXT, &text));
    REFUSED("model", tn_model_host_overhead(NULL, NULL, &ns));
    REFUSED("session", tn_generation_create(NULL, NULL, &generation));
    REFUSED("g is", tn_generation_prompt(NULL, ids, 1));
    REFUSED("g is", tn_generation_start(NULL, ids, 1));
    REFUSED("g is", tn_generation_step(NULL, &(tn_piece){.struct_size = sizeof(tn_piece)}));
    REFUSED("g is", tn_generation_stats_get(
                        NULL, &(tn_generation_stats){.struct_size = sizeof(tn_generation_stats)}));
    REFUSED("model", tn_tokenize(NULL, "x", 1, 0, &new_ids, &size));
    REFUSED("model", tn_tokenize_pair(NULL, "x", 1, "y", 1, 0, &new_ids, &size));
    REFUSED("model", tn_detokenize(NULL, ids, 1, 0, &text, &size));
    REFUSED("model", tn_chat_tokenize(NULL, NULL, 0, NULL, &new_ids, &size));
    REFUSED("model", tn_chat_render(NULL, NULL, 0, NULL, &text, &size));
}

static void test_null_arguments(void)
{
    static const int32_t ids[] = {1};
    const tn_tool_event *const *tool_events;
    int32_t n;
    char *text;
    const char *cut;
    REFUSED("out", tn_graph_create(ctx, NULL));
    REFUSED("out", tn_plan_create(graph, NULL, NULL));
    REFUSED("tn_plan_info", tn_plan_info_get(plan, NULL));
    REFUSED("out", tn_plan_dump(plan, TN_PLAN_TEXT, NULL));
    REFUSED("out", tn_runner_create(plan, NULL, 0, NULL));
    REFUSED("bindings", tn_runner_create(plan, NULL, 1, &(tn_runner *){NULL}));
    REFUSED("input", tn_runner_write(runner, NULL, ids, 4));
    REFUSED("data", tn_runner_write(runner, "x", NULL, 32));
    REFUSED("output", tn_runner_read(runner, NULL, &n, 4));
    REFUSED("data", tn_runner_read(runner, "y", NULL, 32));
    REFUSED("tn_device_info", tn_device_info_get(tn_context_device_get(ctx, 0), NULL));
    REFUSED("out", tn_embedder_create(model, NULL, NULL));
    REFUSED("texts", tn_embedder_run(embedder, NULL, 1, &(float){0}));
    REFUSED("out", tn_embedder_run(embedder, &(tn_text_ids){ids, 1}, 1, NULL));
    REFUSED("path", tn_file_open(ctx, NULL, &(tn_file *){NULL}));
    REFUSED("out", tn_file_open(ctx, "x", NULL));
    REFUSED("name", tn_file_key(file, 0, 0, NULL, &cut, &cut));
    REFUSED("type", tn_file_key(file, 0, 0, &text, NULL, &cut));
    REFUSED("value", tn_file_key(file, 0, 0, &text, &cut, NULL));
    REFUSED("tn_file_tensor", tn_file_tensor_get(file, 0, NULL));
    REFUSED("out", tn_file_read_tensor(file, 0, 0, 1, NULL));
    REFUSED("path", tn_file_export_tensor(file, 0, NULL));
    REFUSED("type", tn_quantize(ctx, "a", "b", NULL));
    REFUSED("out", tn_tool_parser_create(ctx, NULL, NULL));
    REFUSED("text", tn_tool_parser_feed(parser, NULL, 1, &tool_events, &n));
    REFUSED("events", tn_tool_parser_feed(parser, "x", 1, NULL, &n));
    REFUSED("n_events", tn_tool_parser_end(parser, &tool_events, NULL));
    REFUSED("gbnf", tn_tool_grammar(ctx, NULL, NULL));
}

static void test_null_arguments_of_models(void)
{
    static const int32_t ids[] = {1};
    const tn_engine_event *const *events;
    int32_t *new_ids, n;
    size_t size;
    char *text;
    REFUSED("out", tn_engine_create(model, NULL, NULL));
    REFUSED("id", tn_engine_submit(engine, NULL, NULL));
    REFUSED("events", tn_engine_step(engine, NULL, &n));
    REFUSED("n is", tn_engine_step(engine, &events, NULL));
    REFUSED("events", tn_engine_take(engine, NULL, &n));
    REFUSED("n is", tn_engine_take(engine, &events, NULL));
    REFUSED("tn_engine_stats", tn_engine_stats_get(engine, NULL));
    REFUSED("path", tn_model_open(ctx, NULL, NULL, &(tn_model *){NULL}));
    REFUSED("out", tn_model_open(ctx, "x", NULL, NULL));
    REFUSED("tn_model_info", tn_model_info_get(model, NULL));
    REFUSED("tn_model_shape", tn_model_shape_get(ctx, "llama-8b", NULL));
    REFUSED("no known shape", tn_model_shape_get(ctx, NULL, NULL));
    REFUSED("shape", tn_model_create_random(ctx, NULL, NULL, &(tn_model *){NULL}));
    REFUSED("tn_session_memory", tn_session_predict(model, NULL, NULL));
    REFUSED("out", tn_engine_predict(model, NULL, NULL));
    REFUSED("out", tn_session_create(model, NULL, NULL));
    REFUSED("tn_feed", tn_session_eval(session, NULL, 1));
    REFUSED("no tokens",
            tn_session_eval(session, &(tn_feed){.struct_size = sizeof(tn_feed), .n_tokens = 1}, 1));
    REFUSED("tokens", tn_session_feed(session, 0, NULL, 1));
    REFUSED("token", tn_session_best(session, 0, NULL, NULL));
    REFUSED("tokens", tn_session_reuse(session, 0, NULL, 1, &n));
    REFUSED("n_reused", tn_session_reuse(session, 0, ids, 1, NULL));
    REFUSED("path", tn_session_save(session, NULL));
    REFUSED("path", tn_session_load(session, NULL));
    REFUSED("bytes", tn_session_save_memory(session, NULL, &size));
    REFUSED("n is", tn_session_save_memory(session, &text, NULL));
    REFUSED("bytes", tn_session_load_memory(session, NULL, 1));
    REFUSED("out", tn_model_plan_create(model, NULL, 1, 1, NULL));
    REFUSED("out", tn_model_plan_dump(model, NULL, 1, TN_PLAN_TEXT, NULL));
    REFUSED("ns_per_step", tn_model_host_overhead(model, NULL, NULL));
    REFUSED("out", tn_generation_create(session, NULL, NULL));
    REFUSED("ids", tn_generation_prompt(generation, NULL, 1));
    REFUSED("ids", tn_generation_start(generation, NULL, 1));
    REFUSED("tn_generation_stats", tn_generation_stats_get(generation, NULL));
    REFUSED("NULL", tn_tokenize(model, NULL, 1, 0, &new_ids, &size));
    REFUSED("ids", tn_tokenize(model, "x", 1, 0, NULL, &size));
    REFUSED("n_ids", tn_tokenize(model, "x", 1, 0, &new_ids, NULL));
    REFUSED("ids", tn_tokenize_pair(model, "x", 1, "y", 1, 0, NULL, &size));
    REFUSED("text", tn_detokenize(model, ids, 1, 0, NULL, &size));
    REFUSED("n is", tn_detokenize(model, ids, 1, 0, &text, NULL));
    REFUSED("ids", tn_chat_tokenize(model, NULL, 0, NULL, NULL, &size));
    REFUSED("turns", tn_chat_tokenize(model, NULL, 1, NULL, &new_ids, &size));
    REFUSED("text", tn_chat_render(model, NULL, 0, NULL, NULL, &size));
}

// Functions without a status give nothing.
static void test_null_getters(void)
{
    tn_context_destroy(NULL), tn_graph_destroy(NULL), tn_plan_unref(NULL), tn_runner_destroy(NULL);
    tn_embedder_destroy(NULL), tn_file_close(NULL), tn_tool_parser_destroy(NULL), tn_engine_destroy(NULL);
    tn_model_unref(NULL), tn_session_destroy(NULL), tn_generation_destroy(NULL);
    tn_text_free(NULL, NULL), tn_text_free(ctx, NULL), tn_tokens_free(NULL, NULL),
        tn_tokens_free(model, NULL);
    tn_embedder_cancel(NULL, 1), tn_session_cancel(NULL, 1), tn_session_profile(NULL, 1);
    tn_engine_cancel(NULL, 1), tn_engine_stop(NULL), tn_graph_output(NULL, "x", NULL);
    TEST_CHECK(!tn_model_ref(NULL) && !tn_plan_ref(NULL) && !tn_session_logits(NULL, 0));
    TEST_CHECK(tn_engine_pending(NULL) == 0 && tn_engine_descriptor(NULL) == -1);
    TEST_CHECK(tn_session_n_ctx(NULL) == 0 && tn_session_n_ctx_seq(NULL) == 0 &&
               tn_session_n_batch(NULL) == 0);
    TEST_CHECK(tn_session_width(NULL) == 0 && tn_session_result(NULL) == 0 &&
               tn_session_n_outputs(NULL) == 0);
    TEST_CHECK(tn_session_length(NULL, 0) == 0 && tn_session_tokens(NULL, 0, 0, NULL, 0) == 0);
    TEST_CHECK(tn_session_step_time(NULL, 0, NULL) == 0);
    TEST_CHECK(tn_embedder_pooling(NULL) == 0 && tn_embedder_width(NULL) == 0 &&
               tn_embedder_max_tokens(NULL) == 0 && tn_embedder_n_batch(NULL) == 0);
    TEST_CHECK(tn_file_n_keys(NULL) == 0 && tn_file_n_tensors(NULL) == 0 && tn_file_size(NULL) == 0);
    TEST_CHECK(tn_file_version(NULL) == 0 && tn_file_n_parts(NULL) == 0);
    TEST_CHECK(tn_file_find_tensor(NULL, "x") == -1 && tn_file_find_tensor(file, NULL) == -1);
    TEST_CHECK(tn_context_memory(NULL) == 0 && tn_context_memory_peak(NULL) == 0);
    TEST_CHECK(tn_context_n_allocs(NULL) == 0 && tn_context_n_threads(NULL) == 0);
    TEST_CHECK(tn_context_n_devices(NULL) == 0 && !tn_context_device_get(NULL, 0));
    TEST_CHECK(!tn_context_device_by_name(NULL, "cpu") && !tn_context_device_by_name(ctx, NULL));
    TEST_CHECK(tn_context_absent_backends(NULL, NULL, 0) == 0);
    (void)tn_context_absent_backends(ctx, NULL, 9);
    TEST_CHECK(tn_device_has_precision(NULL, 0) == 0 && tn_precision_by_name(NULL) == -1);
    TEST_CHECK(tn_dtype_by_name(NULL) == -1 && !tn_tool_format(NULL) && !tn_model_class_label(NULL, 0));
    TEST_CHECK(!tn_chat_template_name(NULL) && !tn_chat_tool_format(NULL, NULL));
    TEST_CHECK(tn_model_has_chat_template(NULL) == 0 && tn_token_is_end(NULL, 1) == 0);
    TEST_CHECK(tn_tensor_dtype(NULL) == -1 && tn_tensor_n_dims(NULL) == 0 && tn_tensor_dim(NULL, 0) == 1);
}

// Recording keeps its failure; here each call has a graph of its own.
static void test_null_recording(void)
{
    const int64_t two[] = {2};
    for (int i = 0; i < 12; i++) {
        tn_graph *g = NULL;
        TEST_CHECK_STATUS(tn_graph_create(ctx, &g), TN_OK);
        tn_tensor *x = tn_graph_input(g, "x", TN_TYPE_F32, 1, two), *y = x;
        if (i == 0) y = tn_graph_input(g, NULL, TN_TYPE_F32, 1, two);
        if (i == 1) y = tn_graph_weight(g, "w", TN_TYPE_F32, 1, NULL);
        if (i == 2) y = tn_op_unary(g, x, NULL);
        if (i == 3) y = tn_op_top_k(g, x, NULL, NULL);
        if (i == 4) y = tn_op_attention(g, NULL, NULL);
        if (i == 5) y = tn_op_short_conv(g, NULL, NULL);
        if (i == 6) y = tn_op_delta_rule(g, NULL, NULL, NULL);
        if (i == 7) y = tn_graph_op(g, TN_OP_unary, 1, NULL, NULL, NULL);
        if (i == 8) y = tn_op_add(g, NULL, NULL);
        if (i == 9) y = tn_op_reshape(g, x, 1, NULL);
        if (i == 10) tn_graph_output(g, NULL, x), y = NULL;
        if (i == 11) y = tn_op_rope(g, x, x, NULL, NULL);
        if (!TEST_CHECK(!y && tn_graph_status(g) != TN_OK)) printf("    recording %d\n", i);
        tn_graph_destroy(&g);
    }
    TEST_CHECK(!tn_graph_input(NULL, "x", TN_TYPE_F32, 1, two) && !tn_op_add(NULL, NULL, NULL));
    TEST_CHECK(!tn_graph_op(NULL, TN_OP_unary, 1, NULL, NULL, NULL) && !tn_graph_name(NULL, NULL, "x"));
}

// --- threads -------------------------------------------------------------------------------------

enum { ROUNDS = 2000 };

typedef struct failing {
    pthread_t thread;
    int32_t n;
    long wrong;
} failing;

// Fails in ways that name the thread, and reads its own message each time.
static void *fail_often(void *arg)
{
    failing *f = arg;
    char want[64], got[256];
    for (int32_t i = 0; i < ROUNDS; i++) {
        snprintf(want, sizeof want, "/no/such/%d/%d", f->n, i);
        tn_file *none = NULL;
        if (tn_file_open(ctx, want, &none) == TN_OK) f->wrong++;
        tn_context_error(ctx, got, sizeof got);
        f->wrong += !strstr(got, want);
        tn_last_error(got, sizeof got);
        f->wrong += !strstr(got, want);
    }
    return NULL;
}

static void test_threads(void)
{
    failing threads[3] = {{.n = 0}, {.n = 1}, {.n = 2}};
    for (int i = 0; i < 3; i++) {
        threads[i].n = i;
        if (pthread_create(&threads[i].thread, NULL, fail_often, &threads[i]) != 0) abort();
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i].thread, NULL);
        TEST_CHECK(threads[i].wrong == 0);
    }
    // A thread that has not failed is told what happened in the context; without one it has no message.
    char got[256];
    TEST_CHECK_STATUS(tn_model_open(NULL, "x", NULL, &model), TN_ERR_ARG);
    TEST_CHECK(tn_context_error(ctx, got, sizeof got) > 0 && strstr(got, "/no/such/"));
    TEST_CHECK(last_has("ctx is NULL"));
}

// A context in the place of one that is gone does not have its messages.
static void test_next_context(void)
{
    for (int i = 0; i < 3; i++) {
        tn_context *own = NULL;
        tn_file *none = NULL;
        char got[64] = "x";
        if (!TEST_CHECK_STATUS(tn_context_create(NULL, &own), TN_OK)) return;
        TEST_CHECK(tn_context_error(own, got, sizeof got) == 0);
        TEST_CHECK_STATUS(tn_file_open(own, "/no/such/file", &none), TN_ERR_IO);
        TEST_CHECK(tn_context_error(own, got, sizeof got) > 0);
        tn_context_destroy(&own);
    }
}

// Threads that work for a call fail for the thread that made it.
static void fail_third(void *arg, int32_t i, int32_t team)
{
    TN_UNUSED(team);
    if (i == team - 1) (void)tn_fail(arg, TN_ERR_INTERNAL, "number %d of a team", i);
}

static void lend(void *user, int32_t n, void (*task)(void *arg, int32_t i), void *arg);

typedef struct lent {
    pthread_t thread;
    void (*task)(void *arg, int32_t i);
    void *arg;
    int32_t i;
} lent;

static void *run_lent(void *arg)
{
    lent *l = arg;
    l->task(l->arg, l->i);
    return NULL;
}

static void lend(void *user, int32_t n, void (*task)(void *arg, int32_t i), void *arg)
{
    TN_UNUSED(user);
    lent l[4];
    if (n > 4) abort();
    for (int32_t i = 0; i < n; i++) {
        l[i] = (lent){.task = task, .arg = arg, .i = i};
        if (pthread_create(&l[i].thread, NULL, run_lent, &l[i]) != 0) abort();
    }
    for (int32_t i = 0; i < n; i++) pthread_join(l[i].thread, NULL);
}

static void test_team(void)
{
    tn_context_config cfg;
    tn_context *own = NULL;
    tn_context_config_default(&cfg);
    cfg.n_threads = 3;
    cfg.executor.run = lend;
    if (!TEST_CHECK_STATUS(tn_context_create(&cfg, &own), TN_OK)) return;
    TEST_CHECK_STATUS(tn_parallel(own, 3, fail_third, own), TN_OK);
    TEST_CHECK(last_has("number 2 of a team"));
    tn_context_destroy(&own);
}

static bool open_all(const char *folder)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tenon-tiny.gguf", folder);
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 128, cfg.n_batch = 16;
    tn_engine_config engine_cfg;
    tn_engine_config_default(&engine_cfg);
    engine_cfg.session = &cfg;
    bool ok = tn_context_create(NULL, &ctx) == TN_OK && tn_model_open(ctx, path, NULL, &model) == TN_OK &&
              tn_session_create(model, &cfg, &session) == TN_OK &&
              tn_engine_create(model, &engine_cfg, &engine) == TN_OK &&
              tn_embedder_create(model, NULL, &embedder) == TN_OK &&
              tn_generation_create(session, NULL, &generation) == TN_OK &&
              tn_file_open(ctx, path, &file) == TN_OK && tn_tool_parser_create(ctx, NULL, &parser) == TN_OK &&
              tn_graph_create(ctx, &graph) == TN_OK;
    if (!ok) return false;
    tn_tensor *x = tn_graph_input(graph, "x", TN_TYPE_F32, 1, (int64_t[]){8});
    tn_graph_output(graph, "y", tn_op_scale(graph, x, 2.0f));
    return tn_plan_create(graph, NULL, &plan) == TN_OK && tn_runner_create(plan, NULL, 0, &runner) == TN_OK;
}

static void close_all(void)
{
    tn_runner_destroy(&runner);
    tn_plan_unref(&plan);
    tn_graph_destroy(&graph);
    tn_tool_parser_destroy(&parser);
    tn_file_close(&file);
    tn_generation_destroy(&generation);
    tn_embedder_destroy(&embedder);
    tn_engine_destroy(&engine);
    tn_session_destroy(&session);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

int main(int argc, char **argv)
{
    test_without_context();
    test_null_objects();
    test_null_objects_of_files();
    test_null_objects_of_models();
    if (argc < 2 || !TEST_CHECK(open_all(argv[1]))) return test_done();
    test_null_arguments();
    test_null_arguments_of_models();
    test_null_getters();
    test_null_recording();
    test_threads();
    test_next_context();
    test_team();
    close_all();
    return test_done();
}
