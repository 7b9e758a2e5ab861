// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fusion: each pattern fires where it should, leaves alone what it must, says why, and changes no result.
#include "tests/graph/run_graph.h"

static tn_context *ctx;      // reference: its device takes every fused op
static tn_context *best_ctx; // the best level of this machine
static tn_graph *g;

enum { CAPACITY = 4096 };

static tn_tensor *unary(tn_tensor *x, int32_t kind)
{
    return tn_op_unary(g, x, &(tn_unary_params){kind, 0.5f, 0.25f});
}

// --- fuse ------------------------------------------------------------------------------------------

static const tn_rope_params turn = {.mode = TN_ROPE_NEOX, .n_rot = 8, .base = 1e4f};
static const tn_glu_params silu_glu = {.act = TN_UNARY_SILU};

static void add_norm(void)
{
    tn_tensor *sum = tn_op_add(g, INPUT("a", 3, 8), INPUT("b", 3, 8));
    OUTPUT("y", NAMED("norm", tn_op_rms_norm(g, sum, WEIGHT("w", 8), 1e-5f)));
    OUTPUT("sum", sum);
}

static void add_norm_used_later(void)
{
    tn_tensor *sum = tn_op_add(g, INPUT("a", 3, 8), INPUT("b", 3, 8));
    tn_tensor *norm = NAMED("norm", tn_op_rms_norm(g, sum, NULL, 1e-5f));
    OUTPUT("y", tn_op_mul(g, sum, norm));
}

static void add_norm_broadcast(void)
{
    tn_tensor *sum = tn_op_add(g, INPUT("a", 3, 8), WEIGHT("b", 8));
    OUTPUT("y", NAMED("norm", tn_op_rms_norm(g, sum, WEIGHT("w", 8), 1e-5f)));
}

static void add_norm_late(void)
{
    tn_tensor *sum = tn_op_add(g, INPUT("a", 3, 8), INPUT("b", 3, 8));
    tn_tensor *w = unary(WEIGHT("w", 8), TN_UNARY_TANH);
    OUTPUT("y", NAMED("norm", tn_op_rms_norm(g, sum, w, 1e-5f)));
}

static tn_tensor *norm_then_rope(tn_tensor *w, tn_tensor **norm)
{
    *norm = tn_op_rms_norm(g, INPUT("x", 2, 3, 8), w, 1e-5f);
    tn_tensor *y = tn_op_rope(g, *norm, IDS("pos", 2), WEIGHT("factors", 4), &turn);
    OUTPUT("y", NAMED("turned", y));
    return y;
}

static void norm_rope(void)
{
    tn_tensor *norm;
    norm_then_rope(WEIGHT("w", 8), &norm);
}

static void norm_rope_plain(void)
{
    tn_tensor *norm;
    norm_then_rope(NULL, &norm);
}

static void norm_rope_used(void)
{
    tn_tensor *norm, *y = norm_then_rope(WEIGHT("w", 8), &norm);
    OUTPUT("z", tn_op_add(g, y, norm));
}

static void norm_rope_output(void)
{
    tn_tensor *norm;
    norm_then_rope(WEIGHT("w", 8), &norm);
    OUTPUT("norm", norm);
}

static void gate_and_up(void)
{
    tn_tensor *x = INPUT("x", 3, 8);
    tn_tensor *gate = tn_op_matmul(g, x, WEIGHT("g", 5, 8)), *up = tn_op_matmul(g, x, WEIGHT("u", 5, 8));
    OUTPUT("y", NAMED("act", tn_op_glu(g, gate, up, &silu_glu)));
}

static void gate_of_other(void)
{
    tn_tensor *gate = tn_op_matmul(g, INPUT("x", 3, 8), WEIGHT("g", 5, 8));
    OUTPUT("y", NAMED("act",
                      tn_op_glu(g, gate, tn_op_matmul(g, INPUT("x2", 3, 8), WEIGHT("u", 5, 8)), &silu_glu)));
}

static void gate_used(void)
{
    tn_tensor *x = INPUT("x", 3, 8);
    tn_tensor *gate = tn_op_matmul(g, x, WEIGHT("g", 5, 8)), *up = tn_op_matmul(g, x, WEIGHT("u", 5, 8));
    OUTPUT("y", tn_op_add(g, NAMED("act", tn_op_glu(g, gate, up, &silu_glu)), gate));
}

static void gate_output(void)
{
    gate_and_up();
    OUTPUT("up", g->nodes[1]->dst[0]);
}

static void gate_type(void)
{
    tn_tensor *x = INPUT("x", 3, 32), *gate = tn_op_matmul(g, x, WEIGHT("g", 5, 32));
    tn_tensor *up = tn_op_matmul(g, x, tn_graph_weight(g, "u", TN_TYPE_Q8_0, SHAPE(5, 32)));
    OUTPUT("y", NAMED("act", tn_op_glu(g, gate, up, &silu_glu)));
}

static void experts(void)
{
    tn_tensor *x = INPUT("x", 3, 1, 8), *ids = IDS("ids", 3, 2);
    tn_tensor *gate = tn_op_matmul_id(g, x, WEIGHT("g", 4, 5, 8), ids);
    OUTPUT("y",
           NAMED("act", tn_op_glu(g, gate, tn_op_matmul_id(g, x, WEIGHT("u", 4, 5, 8), ids), &silu_glu)));
}

static void experts_differ(void)
{
    tn_tensor *x = INPUT("x", 3, 1, 8), *gate = tn_op_matmul_id(g, x, WEIGHT("g", 4, 5, 8), IDS("ids", 3, 2));
    tn_tensor *up = tn_op_matmul_id(g, x, WEIGHT("u", 4, 5, 8), IDS("ids2", 3, 2));
    OUTPUT("y", NAMED("act", tn_op_glu(g, gate, up, &silu_glu)));
}

static void two_products(void)
{
    tn_tensor *x = INPUT("x", 3, 8), *a = NAMED("a", tn_op_matmul(g, x, WEIGHT("wa", 5, 8)));
    OUTPUT("y",
           tn_op_concat(g, a, tn_op_add(g, tn_op_matmul(g, x, WEIGHT("wb", 4, 8)), WEIGHT("bias", 4)), 1));
}

static void four_products(void)
{
    static const char *const names[] = {"w0", "w1", "w2", "w3"};
    tn_tensor *x = INPUT("x", 3, 8);
    for (int i = 0; i < 4; i++)
        OUTPUT(names[i] + 1, NAMED(names[i], tn_op_matmul(g, x, WEIGHT(names[i], 4 + i, 8))));
}

static void product_of_product(void)
{
    tn_tensor *x = INPUT("x", 3, 8), *y = NAMED("first", tn_op_matmul(g, x, WEIGHT("w", 8, 8)));
    OUTPUT("y", tn_op_matmul(g, x, y));
}

static void products_biased_output(void)
{
    tn_tensor *x = INPUT("x", 3, 8), *a = NAMED("a", tn_op_matmul(g, x, WEIGHT("wa", 4, 8)));
    tn_tensor *b = tn_op_matmul(g, x, WEIGHT("wb", 4, 8));
    OUTPUT("a", a);
    OUTPUT("y", tn_op_mul(g, tn_op_add(g, a, WEIGHT("bias", 4)), b));
}

static void linear_all(void)
{
    tn_tensor *y = NAMED("product", tn_op_matmul(g, INPUT("x", 3, 8), WEIGHT("w", 5, 8)));
    y = unary(tn_op_add(g, y, WEIGHT("bias", 5)), TN_UNARY_GELU);
    OUTPUT("y", tn_op_add(g, INPUT("r", 3, 5), y));
}

static void linear_late_residual(void)
{
    tn_tensor *y = tn_op_add(g, NAMED("product", tn_op_matmul(g, INPUT("x", 3, 8), WEIGHT("w", 5, 8))),
                             WEIGHT("bias", 5));
    OUTPUT("y", tn_op_add(g, unary(INPUT("r", 3, 5), TN_UNARY_TANH), y));
}

static void linear_alone(void)
{
    tn_tensor *y = NAMED("product", tn_op_matmul(g, INPUT("x", 3, 8), WEIGHT("w", 5, 8)));
    OUTPUT("y", unary(tn_op_add(g, y, y), TN_UNARY_SILU)); // twice the product: neither bias nor residual
}

static void linear_output(void)
{
    tn_tensor *y = NAMED("product", tn_op_matmul(g, INPUT("x", 3, 8), WEIGHT("w", 5, 8)));
    OUTPUT("product", y);
    OUTPUT("y", unary(tn_op_add(g, y, WEIGHT("bias", 5)), TN_UNARY_SILU));
}

static void linear_broadcast(void)
{
    tn_tensor *y = NAMED("product", tn_op_matmul(g, INPUT("x", 3, 8), WEIGHT("w", 5, 8)));
    OUTPUT("y", tn_op_add(g, y, INPUT("row", 5))); // no weight: neither a bias nor a residual of that shape
}

// --- mixtures of experts

typedef struct router {
    int32_t choice; // TN_GATING_*: what is ordered
    bool bias, choice_bias, plain_norm, computed;
    float scale;        // of the softmax
    const char *result; // name of a value in between that is a result, too
} router;

static tn_tensor *routed_sum(const router *r, tn_tensor *x)
{
    tn_tensor *h = NAMED("normed", tn_op_rms_norm(g, x, r->plain_norm ? NULL : WEIGHT("norm", 8), 1e-5f));
    tn_tensor *w = WEIGHT("router", 6, 8),
              *logits = tn_op_matmul(g, h, r->computed ? unary(w, TN_UNARY_TANH) : w);
    if (r->bias) logits = tn_op_add(g, logits, WEIGHT("bias", 6));
    logits = NAMED("logits", logits);
    tn_tensor *score = logits;
    if (r->choice == TN_GATING_SIGMOID) score = NAMED("score", unary(logits, TN_UNARY_SIGMOID));
    if (r->choice == TN_GATING_SOFTMAX) score = NAMED("score", tn_op_softmax(g, logits, NULL, r->scale));
    if (r->choice == TN_GATING_SOFTMAX_SELECTED) score = NAMED("score", unary(logits, TN_UNARY_TANH));
    tn_tensor *ids = NAMED("ids", tn_op_top_k(g, score, r->choice_bias ? WEIGHT("choice", 6) : NULL,
                                              &(tn_top_k_params){.k = 2}));
    tn_tensor *weights = NAMED(
        "weights", tn_op_moe_weights(g, logits, ids, &(tn_moe_weights_params){TN_GATING_SOFTMAX, 1, 0.5f}));
    tn_tensor *y =
        tn_op_matmul_id(g, tn_op_reshape(g, h, 3, (int64_t[]){-1, 1, 8}), WEIGHT("experts", 6, 8, 8), ids);
    for (int32_t i = 0; r->result && i < g->n_nodes; i++)
        if (strcmp(g->nodes[i]->dst[0]->name, r->result) == 0) OUTPUT("between", g->nodes[i]->dst[0]);
    return NAMED("sum", tn_op_moe_sum(g, y, weights));
}

static void mixture(const router *r)
{
    tn_tensor *x = INPUT("x", 3, 8);
    OUTPUT("y", tn_op_add(g, routed_sum(r, x), x));
}

static void route_plain(void)
{
    mixture(&(router){0});
}
static void route_biased(void)
{
    mixture(&(router){.bias = true, .choice_bias = true, .choice = TN_GATING_SIGMOID});
}
static void route_softmax(void)
{
    mixture(&(router){.choice_bias = true, .choice = TN_GATING_SOFTMAX, .scale = 1.0f});
}
static void route_scaled(void)
{
    mixture(&(router){.choice = TN_GATING_SOFTMAX, .scale = 0.5f});
}
static void route_other(void)
{
    mixture(&(router){.choice = TN_GATING_SOFTMAX_SELECTED});
}
static void route_computed(void)
{
    mixture(&(router){.computed = true});
}
static void route_unweighted(void)
{
    mixture(&(router){.plain_norm = true});
}
static void route_score(void)
{
    mixture(&(router){.choice = TN_GATING_SIGMOID, .result = "score"});
}
static void route_logits(void)
{
    mixture(&(router){.result = "logits"});
}
static void route_normed(void)
{
    mixture(&(router){.result = "normed"});
}
static void route_ids(void)
{
    mixture(&(router){.result = "ids"});
}

// A shared expert, recorded after the sum, with a weight of its own.
static tn_tensor *combined(tn_tensor **sum)
{
    tn_tensor *x = INPUT("x", 3, 8), *y = routed_sum(&(router){0}, x);
    tn_tensor *shared = NAMED("shared", tn_op_matmul(g, x, WEIGHT("shared_w", 8, 8)));
    tn_tensor *factor = unary(tn_op_matmul(g, x, WEIGHT("factor_w", 1, 8)), TN_UNARY_SIGMOID);
    *sum = tn_op_add(g, y, NAMED("scaled", tn_op_mul(g, shared, factor)));
    return tn_op_add(g, x, *sum);
}

static void combine_all(void)
{
    tn_tensor *sum;
    OUTPUT("y", combined(&sum));
}

static void combine_used(void)
{
    tn_tensor *sum, *y = combined(&sum);
    OUTPUT("y", tn_op_mul(g, y, sum));
}

static void combine_nothing(void)
{
    tn_tensor *x = INPUT("x", 3, 8), *y = routed_sum(&(router){0}, x);
    OUTPUT("y", tn_op_add(g, y, WEIGHT("row", 8))); // a row for all: no residual
}

// The first value added is read from a state, of which the next version is written before the second exists.
static void combine_state(void)
{
    tn_tensor *x = INPUT("x", 3, 8), *state = tn_graph_state(g, "state", TN_TYPE_F32, SHAPE(1, 1, 3, 8));
    tn_tensor *y = tn_op_add(g, routed_sum(&(router){0}, x), tn_op_reshape(g, state, 2, (int64_t[]){3, 8}));
    tn_tensor *rows = tn_op_reshape(g, tn_op_slice(g, x, 0, 0, 2), 3, (int64_t[]){2, 1, 8});
    OUTPUT("state", tn_op_copy(g, tn_op_cache_write(g, state, rows, IDS("slots", 2)), TN_TYPE_F32));
    OUTPUT("y", tn_op_add(g, y, unary(x, TN_UNARY_TANH)));
}

typedef struct fuse_case {
    void (*build)(void);
    const char *note; // line of the plan text; NULL: nothing is noted
    int32_t n_fused, n_steps;
} fuse_case;

static const fuse_case fuse_cases[] = {
    {add_norm, "residual add + rms_norm at norm: fired", 1, 1},
    {add_norm_used_later, "residual add + rms_norm at norm: fired", 1, 2},
    {add_norm_broadcast, "residual add + rms_norm at norm: the sum broadcasts", 0, 2},
    {add_norm_late, "residual add + rms_norm at norm: a source is made too late", 0, 3},
    {norm_rope, "rms_norm + rope at turned: fired", 1, 1},
    {norm_rope_plain, "rms_norm + rope at turned: the norm has no weight", 0, 2},
    {norm_rope_used, "rms_norm + rope at turned: the norm has other uses", 0, 3},
    {norm_rope_output, "rms_norm + rope at turned: the norm has other uses", 0, 2},
    {gate_and_up, "glu of two matmuls at act: fired", 1, 1},
    {gate_of_other, "glu of two matmuls at act: gate and up have different inputs", 0, 3},
    {gate_used, "glu of two matmuls at act: gate or up has other uses", 1, 3},
    {gate_output, "glu of two matmuls at act: gate or up has other uses", 1, 2},
    {gate_type, "glu of two matmuls at act: gate and up have different types", 1, 2},
    {experts, "glu of two matmuls at act: fired", 1, 1},
    {experts_differ, "glu of two matmuls at act: gate and up have different experts", 0, 3},
    {two_products, "matmuls of one input at a: fired", 1, 2},
    {four_products, "matmuls of one input at w0: fired", 1, 2},
    {product_of_product, "matmuls of one input at first: a source is made too late", 0, 2},
    {products_biased_output, "matmuls of one input at a: fired", 1, 3},
    {linear_all, "matmul + bias + activation + residual at product: fired", 1, 1},
    {linear_late_residual, "matmul + bias + activation + residual at product: fired", 1, 3},
    {linear_alone, NULL, 0, 3},
    {linear_output, NULL, 0, 3},
    {linear_broadcast, NULL, 0, 2},
    {route_plain, "rms_norm + router at ids: fired", 4, 3},
    {route_biased, "router + routing of experts at ids: fired", 4, 3},
    {route_softmax, "routing of experts at weights: fired", 4, 3},
    {route_scaled, "routing of experts at weights: the softmax is scaled", 1, 7},
    {route_other, "routing of experts at weights: the experts are not routed by these logits", 1, 7},
    {route_computed, "router + routing of experts at ids: the router is computed", 2, 6},
    {route_unweighted, "rms_norm + router at ids: the norm has no weight", 3, 4},
    {route_score, "routing of experts at weights: the probabilities have other uses", 1, 7},
    {route_logits, "router + routing of experts at ids: the logits have other uses", 2, 5},
    {route_normed, "rms_norm + router at ids: fired", 4, 3},
    {route_ids, "rms_norm + router at ids: fired", 4, 3},
    {combine_all, "sum of experts + shared expert + residual at sum: fired", 5, 5},
    {combine_used, "sum of experts + shared expert + residual at sum: fired", 5, 7},
    {combine_nothing, NULL, 3, 4},
    {combine_state, "sum of experts + shared expert + residual at sum: a source is made too late", 3, 8},
};

// Fused results equal unfused ones, here and on the best level.
static void check_same_results(void (*build)(void), tn_context *on)
{
    static float plain[CAPACITY], fused[CAPACITY];
    size_t n = 0, m = 0;
    tn_plan_config off;
    tn_plan_config_default(&off);
    off.fusion = 0;
    g = new_graph(on);
    build();
    TEST_CHECK_STATUS(evaluate(g, &off, plain, CAPACITY, &n), TN_OK);
    TEST_CHECK_STATUS(evaluate(g, NULL, fused, CAPACITY, &m), TN_OK);
    TEST_CHECK(n > 0 && n == m && deviation(fused, plain, n) < 1e-5);
    tn_graph_destroy(&g);
}

static void test_fuse(void)
{
    for (size_t i = 0; i < TN_COUNT(fuse_cases); i++) {
        const fuse_case *c = &fuse_cases[i];
        g = new_graph(ctx);
        c->build();
        tn_plan *plan = compile_plan(g, 1), *unfused = compile_plan(g, 0);
        bool ok = plan && TEST_CHECK(!c->note || plan_says(plan, c->note));
        ok = plan && TEST_CHECK(plan->info.n_fused == c->n_fused && plan->info.n_steps == c->n_steps) && ok;
        if (!ok) printf("    case %zu: %s\n", i, c->note ? c->note : "no note");
        TEST_CHECK(unfused && unfused->info.n_fused == 0 && !unfused->notes);
        tn_plan_unref(&plan);
        tn_plan_unref(&unfused);
        tn_graph_destroy(&g);
        check_same_results(c->build, ctx);
        check_same_results(c->build, best_ctx);
    }
}

static void test_refused(void)
{
    tn_device fake = fake_device(ctx), *devices[] = {&fake};
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = devices;
    cfg.n_devices = 1;
    fake_refuses = REFUSE(matmul_glu) | REFUSE(add_rms_norm);
    void (*const builds[])(void) = {gate_and_up, add_norm};
    static const char *const notes[] = {
        "glu of two matmuls at act: the device has no kernel for the fused op",
        "residual add + rms_norm at norm: the device has no kernel for the fused op"};
    for (int i = 0; i < 2; i++) {
        tn_plan *plan = NULL;
        g = new_graph(ctx);
        builds[i]();
        TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
        TEST_CHECK(plan && plan_says(plan, notes[i]) && count_steps(plan, TN_OP_transfer) == 0);
        tn_plan_unref(&plan);
        tn_graph_destroy(&g);
    }
    fake_refuses = 0;
}

int main(void)
{
    ctx = graph_context("reference", 1);
    best_ctx = graph_context(NULL, 2);
    test_fuse();
    test_refused();
    tn_context_destroy(&best_ctx);
    tn_context_destroy(&ctx);
    return test_done();
}
