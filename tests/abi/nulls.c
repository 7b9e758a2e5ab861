// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Every public function with NULL in each place of a pointer: a function with a status returns one with a
// message that names the argument, one without gives nothing, and none crashes. nulls.py makes the cases from
// the public headers.
//     nulls FOLDER        with the bundled model
#include "tests/models/adapter_files.h"
#include "tests/unit/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/adapter.h>
#include <tenon/embed.h>
#include <tenon/engine.h>
#include <tenon/file.h>
#include <tenon/graph.h>
#include <tenon/text.h>
#include <tenon/tools.h>
#include <tenon/version.h>
#include <unistd.h>

static tn_context *valid_tn_context;
static tn_device *valid_tn_device;
static tn_model *valid_tn_model;
static tn_adapter *valid_tn_adapter;
static tn_session *valid_tn_session;
static tn_generation *valid_tn_generation;
static tn_engine *valid_tn_engine;
static tn_embedder *valid_tn_embedder;
static tn_graph *valid_tn_graph; // another one for each case, because a graph keeps its first failure
static tn_tensor *valid_tn_tensor;
static tn_plan *valid_tn_plan;
static tn_runner *valid_tn_runner;
static tn_file *valid_tn_file;
static tn_tool_parser *valid_tn_tool_parser;

static char current[256]; // the case that runs
static const char *null_names;

static void clear_given(void);

static void make_graph(void)
{
    tn_graph_destroy(&valid_tn_graph);
    if (tn_graph_create(valid_tn_context, &valid_tn_graph) != TN_OK) abort();
    valid_tn_tensor = tn_graph_input(valid_tn_graph, "x", TN_TYPE_F32, 1, (int64_t[]){8});
    tn_graph_output(valid_tn_graph, "y", tn_op_scale(valid_tn_graph, valid_tn_tensor, 2.0f));
}

static void begin(const char *function, const char *names)
{
    snprintf(current, sizeof current, "%s: %s NULL\n", function, names);
    null_names = names;
    make_graph();
    clear_given();
}

static void wrong(bool ok, const char *what, const char *detail)
{
    if (!TEST_CHECK(ok)) printf("    %s    %s: %s\n", current, what, detail);
}

// The message has one of two parts. No parts: the call may end in any way.
static void ended(tn_status status, const char *said, const char *or_said)
{
    char text[512] = "";
    if (!said) return;
    tn_last_error(text, sizeof text);
    wrong(status == TN_ERR_ARG, "status", tn_status_text(status));
    wrong(strstr(text, said) || strstr(text, or_said), said, text);
}

// A recording that gives nothing has failed, and the graph says so.
static void recorded(const tn_tensor *result)
{
    if (strncmp(null_names, "g", strcspn(null_names, ",")) == 0)
        wrong(!result, "result", "of no graph");
    else
        wrong((result == NULL) == (tn_graph_status(valid_tn_graph) != TN_OK), "status of the graph",
              tn_status_text(tn_graph_status(valid_tn_graph)));
}

#include <null_cases.h> // made by nulls.py

static void clear_given(void)
{
    memset(&given, 0, sizeof given);
    given.sources[0] = valid_tn_tensor;
    set_sizes();
}

// The case that ends the process is named.
static void crashed(int number)
{
    static const char text[] = "crashed: ";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0 || write(STDERR_FILENO, current, strlen(current)) < 0)
        _exit(2);
    signal(number, SIG_DFL);
    raise(number);
}

// An adapter of a small model that is written here.
static tn_model *small_model;
static void *adapter_bytes;

static bool open_adapter(void)
{
    static tiny_file file;
    static adapter_file adapter;
    size_t size, adapter_size;
    tn_context *ctx = valid_tn_context;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    tiny_describe(&tiny_shapes[0], &file);
    void *bytes = tiny_write(ctx, &file, &size); // the model takes them
    adapter_describe(&adapter, &file, 4, 8.0f, TN_TYPE_F32);
    adapter_bytes = adapter_write(ctx, &adapter, &adapter_size);
    return tn_model_open_memory(ctx, bytes, size, "tiny", &cfg, &small_model) == TN_OK &&
           tn_adapter_open_memory(small_model, adapter_bytes, adapter_size, "adapter", &valid_tn_adapter) ==
               TN_OK;
}

static bool open_all(const char *folder)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tenon-tiny.gguf", folder);
    tn_session_config cfg;
    tn_engine_config engine_cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 128, cfg.n_batch = 16;
    tn_engine_config_default(&engine_cfg);
    engine_cfg.session = &cfg;
    tn_context **ctx = &valid_tn_context;
    if (tn_context_create(NULL, ctx) != TN_OK || tn_model_open(*ctx, path, NULL, &valid_tn_model) != TN_OK)
        return false;
    tn_model *model = valid_tn_model;
    valid_tn_device = tn_context_device_get(*ctx, 0);
    make_graph();
    // Something in the session and in the output row, so that functions come to the pointers.
    return tn_session_create(model, &cfg, &valid_tn_session) == TN_OK &&
           tn_session_feed(valid_tn_session, 0, (int32_t[]){1, 2, 3}, 3) == TN_OK &&
           tn_engine_create(model, &engine_cfg, &valid_tn_engine) == TN_OK &&
           tn_embedder_create(model, NULL, &valid_tn_embedder) == TN_OK &&
           tn_generation_create(valid_tn_session, NULL, &valid_tn_generation) == TN_OK &&
           tn_generation_prompt(valid_tn_generation, (int32_t[]){1, 2, 3}, 3) == TN_OK &&
           tn_file_open(*ctx, path, &valid_tn_file) == TN_OK &&
           tn_tool_parser_create(*ctx, NULL, &valid_tn_tool_parser) == TN_OK &&
           tn_plan_create(valid_tn_graph, NULL, &valid_tn_plan) == TN_OK &&
           tn_runner_create(valid_tn_plan, NULL, 0, &valid_tn_runner) == TN_OK && open_adapter();
}

static void close_all(void)
{
    tn_runner_destroy(&valid_tn_runner);
    tn_plan_unref(&valid_tn_plan);
    tn_graph_destroy(&valid_tn_graph);
    tn_tool_parser_destroy(&valid_tn_tool_parser);
    tn_file_close(&valid_tn_file);
    tn_generation_destroy(&valid_tn_generation);
    tn_embedder_destroy(&valid_tn_embedder);
    tn_engine_destroy(&valid_tn_engine);
    tn_session_destroy(&valid_tn_session);
    tn_adapter_unref(&valid_tn_adapter);
    tn_model_unref(&small_model);
    tn_free(valid_tn_context, adapter_bytes);
    tn_model_unref(&valid_tn_model);
    tn_context_destroy(&valid_tn_context);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); // what was found so far is seen if a later case crashes
    signal(SIGSEGV, crashed);
    if (argc < 2 || !TEST_CHECK(open_all(argv[1]))) return test_done();
    all_cases();
    TEST_CHECK(N_CASES > 400);
    printf("%d cases\n", N_CASES);
    close_all();
    return test_done();
}
