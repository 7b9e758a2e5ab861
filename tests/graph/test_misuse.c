// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans and runners that are called in a wrong way: each call says what is wrong, and the next one works.
// Pictures of graphs whose names are no plain words.
#include "tests/graph/run_graph.h"

static tn_context *ctx;
static tn_graph *g;

static tn_tensor *product(void)
{
    return tn_op_matmul(g, INPUT("x", 2, 8), WEIGHT("w", 4, 8));
}

static void test_runner(void)
{
    float x[16] = {1.0f}, w[32] = {2.0f}, y[8];
    tn_binding bound = {"w", w, sizeof w}, small = {"w", w, sizeof w - 4}, other = {"v", w, sizeof w};
    g = new_graph(ctx);
    OUTPUT("y", product());
    tn_plan *plan = compile_plan(g, 1);
    tn_runner *run = NULL;
    TEST_CHECK_STATUS(tn_runner_create(plan, &small, 1, &run), TN_ERR_ARG);
    TEST_CHECK(!run && message_has(ctx, "w: 124 bytes bound, the tensor has 128"));
    TEST_CHECK_STATUS(tn_runner_create(plan, &other, 1, &run), TN_ERR_ARG);
    TEST_CHECK(!run && message_has(ctx, "w: nothing is bound to it"));
    TEST_CHECK_STATUS(tn_runner_create(plan, &bound, 1, &run), TN_OK);
    TEST_CHECK_STATUS(tn_runner_write(run, "x", x, sizeof x - 4), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_runner_write(run, "w", x, sizeof x), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_runner_write(run, "x", x, sizeof x), TN_OK);
    TEST_CHECK_STATUS(tn_runner_run(run), TN_OK);
    TEST_CHECK_STATUS(tn_runner_read(run, "y", y, sizeof y - 4), TN_ERR_ARG);
    TEST_CHECK(message_has(ctx, "output y has 32 bytes, not 28"));
    TEST_CHECK_STATUS(tn_runner_read(run, "x", y, sizeof y), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_runner_read_at(run, 0, 16, y, 20), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_runner_read(run, "y", y, sizeof y), TN_OK);
    TEST_CHECK(y[0] == 2.0f && y[1] == 0.0f);
    tn_runner_destroy(&run);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
}

static void test_pictures(void)
{
    char *text = NULL;
    g = new_graph(ctx);
    OUTPUT("a<b&\"c\"", NAMED("<&\">", tn_op_scale(g, INPUT("in<", 2), 2.0f)));
    tn_plan *plan = compile_plan(g, 1);
    TEST_CHECK_STATUS(tn_plan_dump(plan, TN_PLAN_SVG, &text), TN_OK);
    TEST_CHECK(text && strstr(text, "&lt;&amp;&quot;>") && !strstr(text, "<&"));
    tn_text_free(ctx, text);
    text = NULL;
    TEST_CHECK_STATUS(tn_plan_dump(plan, TN_PLAN_SVG + 1, &text), TN_ERR_ARG);
    TEST_CHECK(!text && message_has(ctx, "plan format 4"));
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
}

// A cache of keys and one of values that are written at different slots: two ops write them.
static void test_slots(void)
{
    const tn_rope_params rope = {.n_rot = 8, .base = 10000.0f};
    g = new_graph(ctx);
    tn_tensor *k = tn_graph_state(g, "k", TN_TYPE_F32, SHAPE(2, 1, 4, 8)), *pos = IDS("pos", 1);
    tn_tensor *v = tn_graph_state(g, "v", TN_TYPE_F32, SHAPE(2, 1, 4, 8));
    tn_tensor *turned = tn_op_rope(g, INPUT("new k", 1, 1, 8), pos, NULL, &rope);
    tn_attention_args a = {.q = tn_op_rope(g, INPUT("q", 1, 1, 8), pos, NULL, &rope),
                           .k = tn_op_cache_write(g, k, turned, IDS("slot of k", 1)),
                           .v = tn_op_cache_write(g, v, INPUT("new v", 1, 1, 8), IDS("slot of v", 1)),
                           .q_start = IDS("q_start", 2),
                           .kv_len = IDS("kv_len", 1),
                           .block_table = IDS("table", 1, 2)};
    OUTPUT("y", tn_op_attention(g, &a, &(tn_attention_params){.scale = 1.0f, .causal = 1}));
    tn_plan *plan = compile_plan(g, 1);
    TEST_CHECK(plan && count_steps(plan, TN_OP_cache_write) == 2);
    TEST_CHECK(plan && plan_says(plan, "k and v go to different slots"));
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
}

int main(void)
{
    ctx = graph_context(NULL, 1);
    test_runner();
    test_pictures();
    test_slots();
    tn_context_destroy(&ctx);
    return test_done();
}
