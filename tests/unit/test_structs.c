// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The rule for structs that cross the public border (base.h), for all of them: programs that were compiled
// with older headers give shorter ones, programs compiled with newer headers longer ones.
//     test_structs FOLDER        with the bundled model
#include "core/context.h"
#include "models/adapter/adapter.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/adapter.h>
#include <tenon/embed.h>
#include <tenon/engine.h>
#include <tenon/file.h>
#include <tenon/graph.h>
#include <tenon/text.h>
#include <tenon/tools.h>

static tn_context *ctx;
static tn_model *model;
static tn_graph *graph;
static tn_plan *plan;
static tn_session *session;
static tn_engine *engine;
static tn_file *file;
static tn_adapter *adapter;
static void *adapter_bytes;
static char path[1024];
static const int32_t tokens[] = {1, 2, 3};

// --- calls that are given a struct --------------------------------------------------------------------

static tn_status give_context_config(void *s)
{
    tn_context *made = NULL;
    tn_status status = tn_context_create(s, &made);
    tn_context_destroy(&made);
    return status;
}

static tn_status give_plan_config(void *s)
{
    tn_plan *made = NULL;
    tn_status status = tn_plan_create(graph, s, &made);
    tn_plan_unref(&made);
    return status;
}

static tn_status give_embedder_config(void *s)
{
    tn_embedder *made = NULL;
    tn_status status = tn_embedder_create(model, s, &made);
    tn_embedder_destroy(&made);
    return status;
}

static tn_status give_engine_config(void *s)
{
    tn_engine *made = NULL;
    tn_status status = tn_engine_create(model, s, &made);
    tn_engine_destroy(&made);
    return status;
}

static tn_status give_request_config(void *s)
{
    uint64_t id = 0;
    tn_status status = tn_engine_submit(engine, s, &id);
    if (status == TN_OK) tn_engine_cancel(engine, id);
    const tn_engine_event *const *events;
    int32_t n;
    if (tn_engine_step(engine, &events, &n) != TN_OK) return TN_ERR_INTERNAL;
    for (int32_t i = 0; i < n; i++) {
        TEST_CHECK(events[i]->struct_size == sizeof(tn_engine_event));
        TEST_CHECK(events[i]->piece->struct_size == sizeof(tn_piece));
        TEST_CHECK(events[i]->stats->struct_size == sizeof(tn_generation_stats));
    }
    return status;
}

static tn_status give_quantize_config(void *s)
{
    return tn_quantize(ctx, "/no/such/file", "/no/such/result", s);
}

static tn_status give_model_config(void *s)
{
    tn_model *made = NULL;
    tn_status status = tn_model_open(ctx, path, s, &made);
    tn_model_unref(&made);
    return status;
}

static tn_status give_source(void *s)
{
    tn_model *made = NULL;
    tn_status status = tn_model_open_source(ctx, s, NULL, &made);
    tn_model_unref(&made);
    return status;
}

static tn_status give_model_shape(void *s)
{
    tn_model *made = NULL;
    tn_status status = tn_model_create_random(ctx, s, NULL, &made);
    tn_model_unref(&made);
    return status;
}

static tn_status give_session_config(void *s)
{
    tn_session_memory memory = {.struct_size = sizeof memory};
    return tn_session_predict(model, s, &memory);
}

static tn_status give_adapter_use(void *s)
{
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.adapters = s;
    cfg.n_adapters = 1;
    return give_session_config(&cfg);
}

static tn_status give_generation_config(void *s)
{
    tn_generation *made = NULL;
    tn_status status = tn_generation_create(session, s, &made);
    tn_generation_destroy(&made);
    return status;
}

static tn_status give_sampling(void *s)
{
    tn_generation_config cfg;
    tn_generation_config_default(&cfg);
    cfg.sampling = s;
    return give_generation_config(&cfg);
}

static tn_status give_feed(void *s)
{
    tn_status status = tn_session_eval(session, s, 1);
    return tn_session_truncate(session, 0, 0) == TN_OK ? status : TN_ERR_INTERNAL;
}

static tn_status give_turns(const tn_turn *turns, const tn_chat_config *cfg)
{
    char *text = NULL;
    size_t n;
    tn_status status = tn_chat_render(model, turns, 1, cfg, &text, &n);
    tn_text_free(ctx, text);
    return status;
}

static tn_status give_turn(void *s)
{
    return give_turns(s, NULL);
}

static tn_status give_chat_config(void *s)
{
    return give_turns(&(tn_turn){.struct_size = sizeof(tn_turn), .role = "user", .content = "a"}, s);
}

static tn_status give_tool_config(void *s)
{
    tn_tool_parser *made = NULL;
    const tn_tool_event *const *events;
    int32_t n;
    tn_status status = tn_tool_parser_create(ctx, s, &made);
    if (status == TN_OK) status = tn_tool_parser_feed(made, "hello", 5, &events, &n);
    if (status == TN_OK) TEST_CHECK(n == 1 && events[0]->struct_size == sizeof(tn_tool_event));
    tn_tool_parser_destroy(&made);
    return status;
}

static tn_status give_tool_grammar_config(void *s)
{
    char *text = NULL;
    tn_status status = tn_tool_grammar(ctx, s, &text);
    tn_text_free(ctx, text);
    return status;
}

// --- values besides the defaults that the calls need --------------------------------------------------

static void fill_request_config(void *s)
{
    tn_request_config *r = s;
    r->tokens = tokens, r->n_tokens = 3;
}

static void fill_source(void *s)
{
    ((tn_source *)s)->path = path;
}

static void fill_quantize_config(void *s)
{
    ((tn_quantize_config *)s)->type = "Q8_0";
}

static void fill_adapter_use(void *s)
{
    ((tn_adapter_use *)s)->adapter = adapter;
}

static void fill_model_config(void *s)
{
    ((tn_model_config *)s)->metadata_only = 1;
}

static void fill_model_shape(void *s)
{
    const tn_model_shape shape = {sizeof shape, "llama", 1, 64, 2, 1,     32, 64, 300,
                                  64,           0,       0, 0,  0, "F32", 1,  0};
    memcpy((char *)s + sizeof(size_t), (const char *)&shape + sizeof(size_t), sizeof shape - sizeof(size_t));
}

static void fill_tool_grammar_config(void *s)
{
    ((tn_tool_grammar_config *)s)->tools = "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]";
}

static void fill_feed(void *s)
{
    tn_feed *f = s;
    f->n_tokens = 3, f->tokens = tokens;
}

static void fill_turn(void *s)
{
    tn_turn *t = s;
    t->role = "user", t->content = "hello";
}

// --- calls that fill a struct -------------------------------------------------------------------------

static tn_status get_device_info(void *s)
{
    return tn_device_info_get(tn_context_device_get(ctx, 0), s);
}

static tn_status get_plan_info(void *s)
{
    return tn_plan_info_get(plan, s);
}

static tn_status get_plan_step_info(void *s)
{
    int32_t found = tn_plan_step_get(plan, 0, 0, s);
    return found == 1 ? TN_OK : found;
}

static tn_status get_engine_stats(void *s)
{
    return tn_engine_stats_get(engine, s);
}

static tn_status get_file_tensor(void *s)
{
    return tn_file_tensor_get(file, 0, s);
}

static tn_status get_model_info(void *s)
{
    return tn_model_info_get(model, s);
}

static tn_status get_adapter_info(void *s)
{
    return tn_adapter_info_get(adapter, s);
}

static tn_status get_model_shape(void *s)
{
    return tn_model_shape_get(ctx, "llama-1b", s);
}

static tn_status get_session_memory(void *s)
{
    return tn_session_predict(model, NULL, s);
}

static tn_status get_step_time(void *s)
{
    tn_feed f = {.struct_size = sizeof f, .n_tokens = 1, .tokens = tokens, .outputs = TN_OUTPUT_LAST};
    tn_session_profile(session, 1);
    tn_status status = tn_session_eval(session, &f, 1);
    int32_t found = tn_session_step_time(session, 0, s);
    tn_session_profile(session, 0);
    if (status == TN_OK) status = tn_session_truncate(session, 0, 0);
    return status != TN_OK ? status : found == 1 ? TN_OK : found;
}

// Through a generation, which is where pieces and their counts come from.
static tn_status generate(tn_status (*get)(tn_generation *g, void *s), void *s)
{
    tn_generation *g = NULL;
    tn_status status = tn_generation_create(session, NULL, &g);
    if (status == TN_OK) status = tn_generation_prompt(g, tokens, 3);
    if (status == TN_OK) status = get(g, s);
    tn_generation_destroy(&g);
    return tn_session_truncate(session, 0, 0) == TN_OK ? status : TN_ERR_INTERNAL;
}

static tn_status step(tn_generation *g, void *s)
{
    return tn_generation_step(g, s);
}

static tn_status get_piece(void *s)
{
    return generate(step, s);
}

static tn_status stats(tn_generation *g, void *s)
{
    return tn_generation_stats_get(g, s);
}

static tn_status get_generation_stats(void *s)
{
    return generate(stats, s);
}

// --- the table ----------------------------------------------------------------------------------------

typedef void (*init_fn)(void *s, size_t struct_size);
typedef struct row {
    const char *name;
    size_t size, end;      // of the struct, and of its last field
    size_t least;          // given: the smallest size that has the fields that must be there
    tn_status accepted;    // what the call returns if it accepts the struct
    init_fn init;          // NULL: all zeros
    void (*fill)(void *s); // NULL: the defaults do
    tn_status (*give)(void *s), (*get)(void *s);
} row;

#define SIZES(type, last) #type, sizeof(type), offsetof(type, last) + sizeof(((type *)NULL)->last)
#define INIT(name)                                                                                           \
    static void init_##name(void *s, size_t struct_size)                                                     \
    {                                                                                                        \
        tn_##name##_init(s, struct_size);                                                                    \
    }
INIT(context_config)
INIT(plan_config)
INIT(embedder_config)
INIT(engine_config)
INIT(request_config)
INIT(quantize_config)
INIT(source)
INIT(model_config)
INIT(model_shape)
INIT(session_config)
INIT(generation_config)
INIT(sampling)
INIT(chat_config)
INIT(tool_config)
INIT(tool_grammar_config)

enum { HEAD = sizeof(size_t) };
#define AFTER(type, field) offsetof(type, field)
// clang-format off
static const row rows[] = {
    {SIZES(tn_context_config, device_timeout_ms), HEAD, TN_OK, init_context_config, NULL,
     give_context_config, NULL},
    {SIZES(tn_plan_config, precision), HEAD, TN_OK, init_plan_config, NULL, give_plan_config, NULL},
    {SIZES(tn_embedder_config, reserved), HEAD, TN_OK, init_embedder_config, NULL,
     give_embedder_config, NULL},
    {SIZES(tn_engine_config, gap_limit), HEAD, TN_OK, init_engine_config, NULL, give_engine_config, NULL},
    {SIZES(tn_request_config, salt), AFTER(tn_request_config, generation), TN_OK, init_request_config,
     fill_request_config, give_request_config, NULL},
    {SIZES(tn_quantize_config, rmse), AFTER(tn_quantize_config, report), TN_ERR_IO, init_quantize_config,
     fill_quantize_config, give_quantize_config, NULL},
    {SIZES(tn_model_config, reserved), HEAD, TN_OK, init_model_config, fill_model_config,
     give_model_config, NULL},
    {SIZES(tn_source, reserved), AFTER(tn_source, data), TN_OK, init_source, fill_source, give_source, NULL},
    {SIZES(tn_model_shape, n_classes), AFTER(tn_model_shape, seed), TN_OK, init_model_shape, fill_model_shape,
     give_model_shape, get_model_shape},
    {SIZES(tn_session_config, reserved_windows), HEAD, TN_OK, init_session_config, NULL, give_session_config,
     NULL},
    {SIZES(tn_generation_config, n_keep), HEAD, TN_OK, init_generation_config, NULL,
     give_generation_config, NULL},
    {SIZES(tn_sampling, n_logprobs), HEAD, TN_OK, init_sampling, NULL, give_sampling, NULL},
    {SIZES(tn_chat_config, max_output), HEAD, TN_OK, init_chat_config, NULL, give_chat_config, NULL},
    {SIZES(tn_tool_config, reserved), HEAD, TN_OK, init_tool_config, NULL, give_tool_config, NULL},
    {SIZES(tn_tool_grammar_config, may_think), AFTER(tn_tool_grammar_config, json_schema), TN_OK,
     init_tool_grammar_config, fill_tool_grammar_config, give_tool_grammar_config, NULL},
    {SIZES(tn_feed, reserved), AFTER(tn_feed, outputs), TN_OK, NULL, fill_feed, give_feed, NULL},
    {SIZES(tn_turn, tool_calls), AFTER(tn_turn, content_parts), TN_OK, NULL, fill_turn, give_turn, NULL},
    {SIZES(tn_adapter_use, reserved), AFTER(tn_adapter_use, scale), TN_OK, NULL, fill_adapter_use,
     give_adapter_use, NULL},
    {SIZES(tn_adapter_info, device_size), HEAD, TN_OK, NULL, NULL, NULL, get_adapter_info},
    {SIZES(tn_device_info, memory_free), HEAD, TN_OK, NULL, NULL, NULL, get_device_info},
    {SIZES(tn_plan_info, input_size), HEAD, TN_OK, NULL, NULL, NULL, get_plan_info},
    {SIZES(tn_plan_step_info, reserved), HEAD, TN_OK, NULL, NULL, NULL, get_plan_step_info},
    {SIZES(tn_engine_stats, n_timed), HEAD, TN_OK, NULL, NULL, NULL, get_engine_stats},
    {SIZES(tn_file_tensor, reserved), HEAD, TN_OK, NULL, NULL, NULL, get_file_tensor},
    {SIZES(tn_model_info, placed_size), HEAD, TN_OK, NULL, NULL, NULL, get_model_info},
    {SIZES(tn_session_memory, parts), HEAD, TN_OK, NULL, NULL, NULL, get_session_memory},
    {SIZES(tn_step_time, ns), HEAD, TN_OK, NULL, NULL, NULL, get_step_time},
    {SIZES(tn_piece, reserved), HEAD, TN_OK, NULL, NULL, NULL, get_piece},
    {SIZES(tn_generation_stats, n_dropped), HEAD, TN_OK, NULL, NULL, NULL, get_generation_stats},
    // Made by the library only: programs read what struct_size covers.
    {SIZES(tn_engine_event, queue_ns), HEAD, TN_OK, NULL, NULL, NULL, NULL},
    {SIZES(tn_tool_event, id), HEAD, TN_OK, NULL, NULL, NULL, NULL},
    {SIZES(tn_span, count), HEAD, TN_OK, NULL, NULL, NULL, NULL},
    {SIZES(tn_pass_info, reserved), HEAD, TN_OK, NULL, NULL, NULL, NULL},
};
// Structs that never change: their sizes where pointers have 64 bits.
static const struct {
    const char *name;
    size_t size, expected;
} fixed[] = {
#define FIXED(type, expected) {#type, sizeof(type), (expected)}
    FIXED(tn_allocator, 24), FIXED(tn_executor, 16), FIXED(tn_device_memory, 56),
    FIXED(tn_device_memory_parts, 32), FIXED(tn_logprob, 8), FIXED(tn_text_ids, 16), FIXED(tn_binding, 24),
    FIXED(tn_attention_args, 64),
    FIXED(tn_short_conv_args, 40), FIXED(tn_delta_rule_args, 64),
};
// clang-format on

// --- the checks ---------------------------------------------------------------------------------------

enum { SPACE = 2048, MORE = 64, POISON = 0xa5 };
typedef union {
    unsigned char bytes[SPACE];
    size_t struct_size;
    uint64_t aligned;
} space;

// A struct of that size as a program would make it, with bytes of something else behind it.
static void make(const row *r, space *s, size_t size)
{
    space whole;
    memset(&whole, 0, sizeof whole);
    if (r->init) r->init(&whole, r->size);
    if (r->fill) r->fill(&whole);
    memset(s, POISON, sizeof *s);
    memcpy(s, &whole, size);
    s->struct_size = size;
}

static bool all(const unsigned char *bytes, size_t from, size_t to, int value)
{
    for (size_t i = from; i < to; i++)
        if (bytes[i] != value) return false;
    return true;
}

static void expect(const row *r, const char *how, tn_status got, tn_status want)
{
    char message[512] = "";
    if (got != want) tn_context_error(ctx, message, sizeof message);
    if (!TEST_CHECK_STATUS(got, want)) printf("    %s, %s: %s\n", r->name, how, message);
}

static void check_refused(const row *r, tn_status (*call)(void *s))
{
    static const size_t wrong[] = {0, 1, HEAD - 1, HEAD + 1, HEAD + 4, 65536 + HEAD, SIZE_MAX, SIZE_MAX - 7};
    space s;
    for (size_t i = 0; i < TN_COUNT(wrong); i++) {
        make(r, &s, r->size);
        s.struct_size = wrong[i];
        space before = s;
        expect(r, "a wrong struct_size", call(&s), TN_ERR_ARG);
        TEST_CHECK(memcmp(&s, &before, sizeof s) == 0);
    }
    memset(&s, 0, sizeof s);
    expect(r, "zeros", call(&s), TN_ERR_ARG);
}

static void check_given(const row *r)
{
    space s;
    for (size_t size = r->least; size <= r->size; size += HEAD) {
        make(r, &s, size);
        expect(r, "shorter", r->give(&s), r->accepted);
    }
    for (size_t more = HEAD; more <= MORE; more *= 2) {
        make(r, &s, r->size);
        memset(s.bytes + r->size, 0, more);
        s.struct_size = r->size + more;
        expect(r, "longer, zeros", r->give(&s), r->accepted);
        s.bytes[r->size] = 1;
        expect(r, "longer, first byte", r->give(&s), TN_ERR_UNSUPPORTED);
        s.bytes[r->size] = 0, s.bytes[r->size + more - 1] = 1;
        expect(r, "longer, last byte", r->give(&s), TN_ERR_UNSUPPORTED);
    }
    check_refused(r, r->give);
}

static void check_filled(const row *r)
{
    for (size_t size = HEAD; size <= r->size + MORE; size += HEAD) {
        space s;
        memset(&s, POISON, sizeof s);
        s.struct_size = size;
        expect(r, "to be filled", r->get(&s), TN_OK);
        TEST_CHECK(s.struct_size == size && all(s.bytes, size, sizeof s, POISON));
        TEST_CHECK(size <= r->size || all(s.bytes, r->size, size, 0));
        TEST_CHECK(size < r->size || !all(s.bytes, HEAD, r->size, POISON));
    }
    check_refused(r, r->get);
    expect(r, "NULL", r->get(NULL), TN_ERR_ARG);
}

static void check_defaults(const row *r)
{
    space whole;
    memset(&whole, POISON, sizeof whole);
    r->init(&whole, r->size);
    r->init(NULL, r->size);
    for (size_t size = HEAD; size <= r->size + MORE; size += HEAD) {
        space s;
        memset(&s, POISON, sizeof s);
        r->init(&s, size);
        TEST_CHECK(s.struct_size == size && all(s.bytes, size, sizeof s, POISON));
        TEST_CHECK(memcmp(s.bytes + HEAD, whole.bytes + HEAD, TN_MIN(size, r->size) - HEAD) == 0);
        TEST_CHECK(size <= r->size || all(s.bytes, r->size, size, 0));
    }
}

static void test_rows(void)
{
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        const row *r = &rows[i];
        // A new field must not lie where older programs have padding.
        if (!TEST_CHECK(r->end == r->size && r->size % HEAD == 0 && r->size + MORE <= SPACE))
            printf("    %s: %zu bytes, the fields end at %zu\n", r->name, r->size, r->end);
        if (r->give) check_given(r);
        if (r->get) check_filled(r);
        if (r->init) check_defaults(r);
    }
    for (size_t i = 0; i < TN_COUNT(fixed) && sizeof(void *) == 8; i++)
        if (!TEST_CHECK(fixed[i].size == fixed[i].expected)) printf("    %s\n", fixed[i].name);
}

// Elements lie as far apart as their program says, and all say the same.
static void test_arrays(void)
{
    struct {
        tn_feed feed;
        uint64_t newer;
    } feeds[2];
    memset(feeds, 0, sizeof feeds);
    for (int32_t i = 0; i < 2; i++) {
        feeds[i].feed.struct_size = sizeof feeds[i];
        feeds[i].feed.seq = i, feeds[i].feed.n_tokens = 1 + i, feeds[i].feed.tokens = tokens;
    }
    TEST_CHECK_STATUS(tn_session_eval(session, &feeds[0].feed, 2), TN_OK);
    TEST_CHECK(tn_session_length(session, 0) == 1 && tn_session_length(session, 1) == 2);
    feeds[1].newer = 1;
    TEST_CHECK_STATUS(tn_session_eval(session, &feeds[0].feed, 2), TN_ERR_UNSUPPORTED);
    feeds[1].newer = 0, feeds[1].feed.struct_size = sizeof(tn_feed);
    TEST_CHECK_STATUS(tn_session_eval(session, &feeds[0].feed, 2), TN_ERR_ARG);
    TEST_CHECK(tn_session_length(session, 0) == 1 && tn_session_length(session, 1) == 2);
    for (int32_t i = 0; i < 2; i++) TEST_CHECK_STATUS(tn_session_truncate(session, i, 0), TN_OK);
}

// A shorter struct means the defaults, not zeros, in what it lacks.
static void test_missing_fields(void)
{
    tn_session_config cfg;
    tn_session_memory whole = {.struct_size = sizeof whole}, cut = {.struct_size = sizeof cut};
    tn_session_config_default(&cfg);
    cfg.n_ctx = 512;
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &whole), TN_OK);
    memset((char *)&cfg + offsetof(tn_session_config, n_seq), POISON,
           sizeof cfg - offsetof(tn_session_config, n_seq));
    cfg.struct_size = offsetof(tn_session_config, n_seq);
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &cut), TN_OK);
    TEST_CHECK(whole.total > 0 && whole.cache == cut.cache && whole.total == cut.total);
}

// An adapter of rank 1 for one matrix of the model, all zeros.
static bool open_adapter(void)
{
    static const char matrix[] = "blk.0.attn_output.weight";
    static float zeros[4096];
    const tn_weight *w = &model->weights[tn_model_find_weight(model, matrix)];
    const int64_t shapes[2][2] = {{1, w->ne[1]}, {w->ne[0], 1}};
    size_t size = 0;
    tn_gguf_writer *out = NULL;
    bool ok = tn_gguf_writer_open_memory(ctx, &out) == TN_OK &&
              tn_gguf_writer_put_str(out, "general.type", "adapter") == TN_OK &&
              tn_gguf_writer_put_str(out, "general.architecture", model->config.arch->name) == TN_OK &&
              tn_gguf_writer_put_str(out, "adapter.type", "lora") == TN_OK && w->ne[0] <= 4096 &&
              w->ne[1] <= 4096;
    for (int i = 0; i < 2 && ok; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.lora_%c", matrix, 'a' + i);
        ok = tn_gguf_writer_add_tensor(out, name, TN_TYPE_F32, 2, shapes[i]) == TN_OK;
    }
    ok = ok && tn_gguf_writer_begin(out) == TN_OK;
    for (int i = 0; i < 2 && ok; i++)
        ok = tn_gguf_writer_data(out, zeros, (size_t)(shapes[i][0] * shapes[i][1]) * sizeof *zeros) == TN_OK;
    return ok && tn_gguf_writer_commit(&out, &adapter_bytes, &size) == TN_OK &&
           tn_adapter_open_memory(model, adapter_bytes, size, "adapter", &adapter) == TN_OK;
}

static bool open_all(const char *folder)
{
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 256, cfg.n_seq = 2, cfg.n_batch = 32;
    tn_engine_config engine_cfg;
    tn_engine_config_default(&engine_cfg);
    engine_cfg.session = &cfg;
    snprintf(path, sizeof path, "%s/tenon-tiny.gguf", folder);
    return tn_context_create(NULL, &ctx) == TN_OK && tn_model_open(ctx, path, NULL, &model) == TN_OK &&
           open_adapter() && tn_graph_create(ctx, &graph) == TN_OK &&
           tn_session_create(model, &cfg, &session) == TN_OK &&
           tn_engine_create(model, &engine_cfg, &engine) == TN_OK && tn_file_open(ctx, path, &file) == TN_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2 || !TEST_CHECK(open_all(argv[1]))) return test_done();
    tn_tensor *x = tn_graph_input(graph, "x", TN_TYPE_F32, 1, (int64_t[]){8});
    tn_graph_output(graph, "y", tn_op_scale(graph, x, 2.0f));
    TEST_CHECK_STATUS(tn_plan_create(graph, NULL, &plan), TN_OK);
    test_rows();
    test_arrays();
    test_missing_fields();
    tn_plan_unref(&plan);
    tn_graph_destroy(&graph);
    tn_engine_destroy(&engine);
    tn_session_destroy(&session);
    tn_file_close(&file);
    tn_adapter_unref(&adapter);
    tn_free(ctx, adapter_bytes);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    return test_done();
}
