// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A program as it was compiled with the headers of TENON_1, which must run with every later library of that
// ABI. Behind each struct that the library writes lie bytes that a larger struct of a later version would
// reach.
//     program FOLDER        with the bundled model
#include "tests/abi/tenon_1.h"

#include <stdio.h>
#include <string.h>

static long passed, failed;

static int check(int ok, int line, const char *what)
{
    passed += ok != 0;
    failed += ok == 0;
    if (!ok) printf("%s:%d: failed: %s\n", __FILE__, line, what);
    return ok;
}
#define CHECK(cond) check((cond), __LINE__, #cond)

// A struct with a mark behind it that must stay.
#define MARKED(type, name)                                                                                   \
    struct {                                                                                                 \
        type value;                                                                                          \
        unsigned char mark[64];                                                                              \
    } name;                                                                                                  \
    memset(&name, 0x5a, sizeof name)
#define OUT(name) (name.value.struct_size = sizeof name.value, &name.value)

static int untouched(const unsigned char *mark)
{
    for (int i = 0; i < 64; i++)
        if (mark[i] != 0x5a) return 0;
    return 1;
}

static void test_defaults(void)
{
#define DEFAULTS(type)                                                                                       \
    {                                                                                                        \
        MARKED(type, cfg);                                                                                   \
        type##_default(&cfg.value);                                                                          \
        CHECK(cfg.value.struct_size == sizeof(type) && untouched(cfg.mark));                                 \
    }
    DEFAULTS(tn_context_config)
    DEFAULTS(tn_plan_config)
    DEFAULTS(tn_model_config)
    DEFAULTS(tn_model_shape)
    DEFAULTS(tn_session_config)
    DEFAULTS(tn_sampling)
    DEFAULTS(tn_generation_config)
    DEFAULTS(tn_chat_config)
    DEFAULTS(tn_tool_config)
    DEFAULTS(tn_tool_grammar_config)
    DEFAULTS(tn_embedder_config)
    DEFAULTS(tn_engine_config)
    DEFAULTS(tn_request_config)
    DEFAULTS(tn_quantize_config)
}

static void test_graph(tn_context *ctx)
{
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    tn_runner *runner = NULL;
    const int64_t shape[] = {4};
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    if (!CHECK(tn_graph_create(ctx, &g) == TN_OK)) return;
    tn_graph_output(g, "y", tn_op_scale(g, tn_graph_input(g, "x", TN_TYPE_F32, 1, shape), 2.0f));
    MARKED(tn_plan_info, info);
    CHECK(tn_plan_create(g, NULL, &plan) == TN_OK && tn_plan_info_get(plan, OUT(info)) == TN_OK);
    CHECK(info.value.n_steps == 1 && untouched(info.mark));
    CHECK(tn_runner_create(plan, NULL, 0, &runner) == TN_OK &&
          tn_runner_write(runner, "x", x, sizeof x) == TN_OK && tn_runner_run(runner) == TN_OK &&
          tn_runner_read(runner, "y", y, sizeof y) == TN_OK && y[3] == 8.0f);
    tn_runner_destroy(&runner);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
}

// The answer of the model to a question, by the engine or by a generation.
static void answer(tn_model *model, int by_engine, char *text, size_t size)
{
    tn_session_config cfg;
    tn_session *session = NULL;
    tn_generation *g = NULL;
    tn_engine *engine = NULL;
    tn_sampling sampling;
    tn_generation_config how;
    tn_turn turns[2] = {{.struct_size = sizeof *turns, .role = "system", .content = "Be brief."},
                        {.struct_size = sizeof *turns, .role = "user", .content = "Where does Mia live?"}};
    int32_t *ids = NULL, stop = TN_STOP_NONE;
    size_t n_ids = 0, used = 0;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 256;
    tn_sampling_default(&sampling);
    sampling.temperature = 0;
    tn_generation_config_default(&how);
    how.sampling = &sampling, how.max_tokens = 32;
    CHECK(tn_chat_tokenize(model, turns + 1, 1, NULL, &ids, &n_ids) == TN_OK && n_ids > 0);
    MARKED(tn_piece, piece);
    if (by_engine) {
        tn_engine_config engine_cfg;
        tn_request_config request;
        uint64_t id;
        tn_engine_config_default(&engine_cfg);
        engine_cfg.session = &cfg;
        tn_request_config_default(&request);
        request.tokens = ids, request.n_tokens = (int32_t)n_ids, request.generation = &how;
        CHECK(tn_engine_create(model, &engine_cfg, &engine) == TN_OK &&
              tn_engine_submit(engine, &request, &id) == TN_OK);
    } else {
        CHECK(tn_session_create(model, &cfg, &session) == TN_OK &&
              tn_generation_create(session, &how, &g) == TN_OK &&
              tn_generation_prompt(g, ids, n_ids) == TN_OK);
    }
    for (int i = 0; i < 64 && stop == TN_STOP_NONE; i++) {
        const tn_engine_event *const *events = NULL;
        int32_t n = 0;
        if (by_engine && !CHECK(tn_engine_step(engine, &events, &n) == TN_OK)) break;
        if (by_engine && n == 0) continue;
        if (!by_engine && !CHECK(tn_generation_step(g, OUT(piece)) == TN_OK)) break;
        const tn_piece *p = by_engine ? events[0]->piece : &piece.value;
        if (used + p->n_text < size) memcpy(text + used, p->text, p->n_text), used += p->n_text;
        stop = p->stop;
    }
    text[used] = 0;
    CHECK(by_engine || untouched(piece.mark));
    MARKED(tn_generation_stats, stats);
    MARKED(tn_engine_stats, engine_stats);
    if (by_engine)
        CHECK(tn_engine_stats_get(engine, OUT(engine_stats)) == TN_OK && untouched(engine_stats.mark));
    else
        CHECK(tn_generation_stats_get(g, OUT(stats)) == TN_OK && untouched(stats.mark));
    tn_tokens_free(model, ids);
    tn_engine_destroy(&engine);
    tn_generation_destroy(&g);
    tn_session_destroy(&session);
}

static void test_model(tn_context *ctx, const char *path)
{
    static const char want[] = "Mia lives in the blue house by the river.";
    char text[512];
    tn_model *model = NULL;
    tn_file *file = NULL;
    if (!CHECK(tn_model_open(ctx, path, NULL, &model) == TN_OK)) return;
    MARKED(tn_model_info, info);
    CHECK(tn_model_info_get(model, OUT(info)) == TN_OK && info.value.n_layers > 0 && untouched(info.mark));
    MARKED(tn_session_memory, memory);
    CHECK(tn_session_predict(model, NULL, OUT(memory)) == TN_OK && untouched(memory.mark));
    MARKED(tn_file_tensor, tensor);
    CHECK(tn_file_open(ctx, path, &file) == TN_OK && tn_file_tensor_get(file, 0, OUT(tensor)) == TN_OK);
    CHECK(tensor.value.n_dims > 0 && untouched(tensor.mark));
    tn_file_close(&file);
    for (int i = 0; i < 2; i++) {
        answer(model, i, text, sizeof text);
        if (!CHECK(strcmp(text, want) == 0)) printf("    '%s'\n", text);
    }
    tn_model_unref(&model);
}

int main(int argc, char **argv)
{
    char path[1024];
    tn_context *ctx = NULL;
    tn_context_config cfg;
    test_defaults();
    tn_context_config_default(&cfg);
    snprintf(path, sizeof path, "%s/tenon-tiny.gguf", argc > 1 ? argv[1] : ".");
    if (CHECK(tn_context_create(&cfg, &ctx) == TN_OK)) {
        MARKED(tn_device_info, device);
        CHECK(tn_device_info_get(tn_context_device_get(ctx, 0), OUT(device)) == TN_OK);
        CHECK(device.value.memory_total > 0 && untouched(device.mark));
        test_graph(ctx);
        test_model(ctx, path);
    }
    tn_context_destroy(&ctx);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0;
}
