// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The passes, one by one: what each must do, what it must leave alone, and that results stay the same. Random
// graphs are in test_random_graphs.c, memory plans of models in test_memory.c.
#include "tests/graph/run_graph.h"

static tn_context *ctx;       // reference: its device takes every fused op
static tn_context *best_ctx;  // the best level of this machine
static tn_graph *g;

enum { ROOM = 4096 };

#define SHAPE(...)        (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__}
#define INPUT(name, ...)  tn_graph_input(g, name, TN_TYPE_F32, SHAPE(__VA_ARGS__))
#define IDS(name, ...)    tn_graph_input(g, name, TN_TYPE_I32, SHAPE(__VA_ARGS__))
#define WEIGHT(name, ...) tn_graph_weight(g, name, TN_TYPE_F32, SHAPE(__VA_ARGS__))
#define NAMED(name, ...)  tn_graph_name(g, __VA_ARGS__, name)
#define OUTPUT(name, ...) tn_graph_output(g, name, __VA_ARGS__)

static tn_plan *compile(const tn_graph *graph, int32_t fusion)
{
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = fusion;
    tn_plan *plan = NULL;
    if (!TEST_CHECK_STATUS(tn_plan_create(graph, &cfg, &plan), TN_OK)) message_has(graph->ctx, "-");
    return plan;
}

static tn_tensor *unary(tn_tensor *x, int32_t kind)
{
    return tn_op_unary(g, x, &(tn_unary_params){kind, 0.5f, 0.25f});
}

// --- simplify --------------------------------------------------------------------------------------

typedef struct simplify_case {
    const char *name;
    void (*build)(void);
    int32_t n_steps; // that stay, without fusion
} simplify_case;

static void dead_code(void)
{
    tn_tensor *x = INPUT("x", 2, 8), *y = unary(x, TN_UNARY_SILU);
    OUTPUT("y", y);
    unary(unary(y, TN_UNARY_TANH), TN_UNARY_EXP);
    tn_op_reshape(g, tn_op_matmul(g, x, WEIGHT("w", 3, 8)), SHAPE(6));
}

static void copy_of_contiguous(void)
{
    OUTPUT("y", unary(tn_op_copy(g, tn_op_copy(g, INPUT("x", 2, 8), TN_TYPE_F32), TN_TYPE_F32), TN_UNARY_SILU));
}

static void copy_of_strided(void)
{
    OUTPUT("y", unary(tn_op_copy(g, tn_op_slice(g, INPUT("x", 2, 8), 1, 2, 4), TN_TYPE_F32), TN_UNARY_SILU));
}

static void copy_as_output(void)
{
    OUTPUT("y", tn_op_copy(g, INPUT("x", 2, 8), TN_TYPE_F32));
}

static void copy_to_f16(void)
{
    OUTPUT("y", tn_op_copy(g, tn_op_copy(g, INPUT("x", 2, 8), TN_TYPE_F16), TN_TYPE_F32));
}

static void scale_by_one(void)
{
    tn_tensor *x = tn_op_scale(g, INPUT("x", 2, 8), 1.0f);
    OUTPUT("y", tn_op_scale(g, tn_op_unary(g, x, &(tn_unary_params){TN_UNARY_AFFINE, 1.0f, 0.5f}), 2.0f));
}

static void reshape_to_same(void)
{
    tn_tensor *x = unary(INPUT("x", 2, 8), TN_UNARY_SILU);
    OUTPUT("y", unary(tn_op_slice(g, tn_op_reshape(g, x, SHAPE(2, 8)), 0, 1, 1), TN_UNARY_TANH));
}

// Views of a bypassed copy of a view: offsets add up.
static void view_of_bypassed(void)
{
    tn_tensor *x = unary(INPUT("x", 6, 8), TN_UNARY_SILU);
    tn_tensor *rows = tn_op_copy(g, tn_op_slice(g, x, 0, 2, 4), TN_TYPE_F32); // contiguous: bypassed
    tn_tensor *v = tn_op_reshape(g, tn_op_slice(g, tn_op_slice(g, rows, 0, 1, 2), 1, 3, 4), SHAPE(2, 2, 2));
    OUTPUT("y", tn_op_copy(g, tn_op_permute(g, v, (int32_t[]){2, 0, 1}), TN_TYPE_F32));
    OUTPUT("z", unary(rows, TN_UNARY_TANH));
}

// A copy taken before a state changes is no repetition of the state.
static void copy_of_state(void)
{
    tn_tensor *s = tn_graph_state(g, "s", TN_TYPE_F32, SHAPE(1, 1, 4, 8));
    tn_tensor *before = tn_op_copy(g, s, TN_TYPE_F32);
    tn_tensor *after = tn_op_cache_write(g, s, INPUT("x", 2, 1, 8), IDS("slots", 2));
    OUTPUT("y", tn_op_binary(g, TN_BINARY_SUB, after, before));
}

static void test_simplify(void)
{
    static const simplify_case cases[] = {
        {"dead code", dead_code, 1},           {"copy", copy_of_contiguous, 1}, {"strided copy", copy_of_strided, 2},
        {"copied output", copy_as_output, 1},  {"copy to f16", copy_to_f16, 2}, {"scale by one", scale_by_one, 2},
        {"same reshape", reshape_to_same, 2},  {"views", view_of_bypassed, 3},  {"copy of a state", copy_of_state, 3},
    };
    for (size_t i = 0; i < TN_COUNT(cases); i++) {
        g = new_graph(ctx);
        cases[i].build();
        tn_plan *plan = compile(g, 0);
        if (!TEST_CHECK(plan && plan->info.n_steps == cases[i].n_steps)) printf("    %s\n", cases[i].name);
        tn_plan_unref(&plan);
        tn_graph_destroy(&g);
    }
}

static void test_view_of_bypassed(void)
{
    float x[48], y[8], z[32];
    for (int i = 0; i < 48; i++) x[i] = (float)i / 64.0f;
    g = new_graph(ctx);
    view_of_bypassed();
    tn_binding in = {"x", x, sizeof x}, out[] = {{"y", y, sizeof y}, {"z", z, sizeof z}};
    TEST_CHECK_STATUS(run_graph(g, &(run_args){.inputs = &in, .n_inputs = 1}, out, 2), TN_OK);
    int bad = 0;
    for (int i = 0; i < 8; i++) { // y[a][b][c] = silu(x)[3 + b][3 + 2 * c + a]
        float v = x[(3 + i / 2 % 2) * 8 + 3 + 2 * (i % 2) + i / 4];
        bad += !(deviation(&y[i], &(float){(float)tn_scalar_unary(TN_UNARY_SILU, v, 0, 0)}, 1) < 1e-6);
    }
    TEST_CHECK(bad == 0);
    tn_graph_destroy(&g);
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
    OUTPUT("y", NAMED("act", tn_op_glu(g, gate, tn_op_matmul(g, INPUT("x2", 3, 8), WEIGHT("u", 5, 8)), &silu_glu)));
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
    OUTPUT("y", NAMED("act", tn_op_glu(g, gate, tn_op_matmul_id(g, x, WEIGHT("u", 4, 5, 8), ids), &silu_glu)));
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
    OUTPUT("y", tn_op_concat(g, a, tn_op_add(g, tn_op_matmul(g, x, WEIGHT("wb", 4, 8)), WEIGHT("bias", 4)), 1));
}

static void four_products(void)
{
    static const char *const names[] = {"w0", "w1", "w2", "w3"};
    tn_tensor *x = INPUT("x", 3, 8);
    for (int i = 0; i < 4; i++) OUTPUT(names[i] + 1, NAMED(names[i], tn_op_matmul(g, x, WEIGHT(names[i], 4 + i, 8))));
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
    tn_tensor *y = tn_op_add(g, NAMED("product", tn_op_matmul(g, INPUT("x", 3, 8), WEIGHT("w", 5, 8))), WEIGHT("bias", 5));
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
    {gate_and_up, "glu of two products at act: fired", 1, 1},
    {gate_of_other, "glu of two products at act: gate and up have different inputs", 0, 3},
    {gate_used, "glu of two products at act: gate or up has other uses", 1, 3},
    {gate_output, "glu of two products at act: gate or up has other uses", 1, 2},
    {gate_type, "glu of two products at act: gate and up have different types", 1, 2},
    {experts, "glu of two products at act: fired", 1, 1},
    {experts_differ, "glu of two products at act: gate and up have different experts", 0, 3},
    {two_products, "products of one input at a: fired", 1, 2},
    {four_products, "products of one input at w0: fired", 1, 2},
    {product_of_product, "products of one input at first: a source is made too late", 0, 2},
    {products_biased_output, "products of one input at a: fired", 1, 3},
    {linear_all, "matmul + bias + activation + residual at product: fired", 1, 1},
    {linear_late_residual, "matmul + bias + activation + residual at product: fired", 1, 3},
    {linear_alone, NULL, 0, 3},
    {linear_output, NULL, 0, 3},
    {linear_broadcast, NULL, 0, 2},
};

// Fused results equal unfused ones, here and on the best level.
static void check_same_results(void (*build)(void), tn_context *on)
{
    static float plain[ROOM], fused[ROOM];
    size_t n = 0, m = 0;
    tn_plan_config off;
    tn_plan_config_default(&off);
    off.fusion = 0;
    g = new_graph(on);
    build();
    TEST_CHECK_STATUS(evaluate(g, &off, plain, ROOM, &n), TN_OK);
    TEST_CHECK_STATUS(evaluate(g, NULL, fused, ROOM, &m), TN_OK);
    TEST_CHECK(n > 0 && n == m && deviation(fused, plain, n) < 1e-5);
    tn_graph_destroy(&g);
}

static void test_fuse(void)
{
    for (size_t i = 0; i < TN_COUNT(fuse_cases); i++) {
        const fuse_case *c = &fuse_cases[i];
        g = new_graph(ctx);
        c->build();
        tn_plan *plan = compile(g, 1), *unfused = compile(g, 0);
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
    static const char *const notes[] = {"glu of two products at act: the device has no kernel for the fused op",
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

// --- place -----------------------------------------------------------------------------------------

static int n_events;

static void count_events(void *user, int32_t code, const char *text)
{
    TN_UNUSED(user);
    n_events += code == TN_EVENT_DEVICE_FALLBACK && strstr(text, "fake has no kernel") != NULL;
}

static tn_context *event_context(int32_t strict)
{
    tn_context_config cfg;
    tn_context *c = NULL;
    tn_context_config_default(&cfg);
    cfg.event = count_events;
    cfg.strict = strict;
    if (tn_context_create(&cfg, &c) != TN_OK) abort();
    return c;
}

// Two silu and a softmax between products; `h` is read twice on the other device.
static void three_layers(void)
{
    tn_tensor *x = INPUT("x", 3, 8), *h = tn_op_matmul(g, x, WEIGHT("w0", 8, 8));
    tn_tensor *a = unary(h, TN_UNARY_SILU), *b = tn_op_softmax(g, h, NULL, 1.0f);
    tn_tensor *y = tn_op_matmul(g, tn_op_add(g, a, b), WEIGHT("w1", 8, 8));
    OUTPUT("y", unary(tn_op_reshape(g, y, SHAPE(24)), TN_UNARY_TANH));
    OUTPUT("a", a);
}

// Views on both sides of the border, strided and not.
static void views_between(void)
{
    tn_tensor *h = tn_op_matmul(g, INPUT("x", 4, 8), WEIGHT("w", 8, 8));
    tn_tensor *rows = unary(tn_op_slice(g, h, 0, 1, 2), TN_UNARY_SILU);
    tn_tensor *columns = unary(tn_op_slice(g, h, 1, 2, 4), TN_UNARY_SILU);
    OUTPUT("y", tn_op_concat(g, tn_op_reshape(g, rows, SHAPE(4, 4)), columns, 1));
}

static void check_placed(void (*build)(void), uint64_t refuses, int32_t n_transfers)
{
    static float here[ROOM], placed[ROOM];
    size_t n = 0, m = 0;
    tn_context *c = event_context(0);
    tn_device fake = fake_device(c), *devices[] = {&fake};
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = 0;
    g = new_graph(c);
    build();
    TEST_CHECK_STATUS(evaluate(g, &cfg, here, ROOM, &n), TN_OK);
    cfg.devices = devices;
    cfg.n_devices = 1;
    fake_refuses = refuses;
    n_events = 0;
    tn_plan *plan = NULL;
    if (!TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK)) message_has(c, "-");
    int32_t other = 0;
    for (int32_t i = 0; plan && i < plan->n_steps; i++)
        other += plan->steps[i].device == 1 && plan->steps[i].step.op != TN_OP_transfer;
    TEST_CHECK(plan && n_events == other && other > 0 && count_steps(plan, TN_OP_transfer) == n_transfers);
    TEST_CHECK(plan && check_memory(plan) == NULL);
    TEST_CHECK(plan && evaluate_plan(plan, placed, ROOM, &m) == TN_OK && n == m && memcmp(here, placed, n * sizeof *here) == 0);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    fake_refuses = 0;
    tn_context_destroy(&c);
}

static void test_place(void)
{
    check_placed(three_layers, REFUSE(unary) | REFUSE(softmax), 4); // h once, a and b back, y
    check_placed(three_layers, REFUSE(matmul), 3);                  // h back, the sum over, y back
    check_placed(views_between, REFUSE(unary), 4);
    tn_context *strict = event_context(1);
    tn_device fake = fake_device(strict), *devices[] = {&fake};
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = devices;
    cfg.n_devices = 1;
    tn_plan *plan = NULL;
    g = new_graph(strict);
    three_layers();
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    tn_plan_unref(&plan);
    fake_refuses = REFUSE(softmax);
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_ERR_UNSUPPORTED);
    TEST_CHECK(message_has(strict, "softmax") && plan == NULL);
    fake_refuses = 0;
    tn_graph_destroy(&g);
    tn_context_destroy(&strict);
}

// --- schedule and verify ---------------------------------------------------------------------------

// Reads of both versions of a state.
static void two_versions(void)
{
    tn_tensor *s = tn_graph_state(g, "s", TN_TYPE_F32, SHAPE(2, 1, 4, 8)), *slots = IDS("slots", 2);
    tn_tensor *x = unary(INPUT("x", 2, 1, 8), TN_UNARY_TANH);
    OUTPUT("old", unary(tn_op_reshape(g, s, SHAPE(8, 8)), TN_UNARY_SQUARE));
    tn_tensor *s1 = tn_op_cache_write(g, s, x, slots);
    OUTPUT("new", unary(tn_op_reshape(g, s1, SHAPE(8, 8)), TN_UNARY_SQUARE));
    tn_tensor *s2 = tn_op_cache_write(g, s1, tn_op_scale(g, x, 2.0f), slots);
    OUTPUT("last", unary(tn_op_reshape(g, s2, SHAPE(8, 8)), TN_UNARY_SQUARE));
}

static void test_schedule(void)
{
    g = new_graph(ctx);
    two_versions();
    uint32_t seed = 7;
    int wrong = 0, out_of_order = 0;
    for (int round = 0; round < 200; round++) {
        for (int32_t i = g->n_nodes - 1; i > 0; i--) {
            int32_t k = (int32_t)(next_random(&seed) % (uint32_t)(i + 1));
            tn_node *n = g->nodes[i];
            g->nodes[i] = g->nodes[k];
            g->nodes[k] = n;
        }
        out_of_order += tn_graph_verify(g, "a shuffle") != TN_OK;
        tn_pass_state s = {.ctx = ctx, .graph = g};
        wrong += tn_pass_schedule(&s) != TN_OK || tn_graph_verify(g, "schedule") != TN_OK;
    }
    TEST_CHECK(wrong == 0 && out_of_order > 190);
    float x[16], state[64] = {0}, old[64], fresh[64], last[64];
    for (int i = 0; i < 16; i++) x[i] = 1.0f + (float)i / 16.0f;
    int32_t slots[] = {5, 2};
    tn_binding in[] = {{"x", x, sizeof x}, {"slots", slots, sizeof slots}}, bound = {"s", state, sizeof state};
    tn_binding out[] = {{"old", old, sizeof old}, {"new", fresh, sizeof fresh}, {"last", last, sizeof last}};
    TEST_CHECK_STATUS(run_graph(g, &(run_args){NULL, &bound, 1, in, 2}, out, 3), TN_OK);
    int bad = 0;
    for (int i = 0; i < 64; i++) {
        float v = i / 8 == 5 ? (float)tn_scalar_unary(TN_UNARY_TANH, x[i % 8], 0, 0)
                             : i / 8 == 2 ? (float)tn_scalar_unary(TN_UNARY_TANH, x[8 + i % 8], 0, 0) : 0.0f;
        bad += old[i] != 0.0f || fresh[i] - v * v > 1e-6f || v * v - fresh[i] > 1e-6f || last[i] - 4 * v * v > 1e-5f ||
               (state[i] != 2 * v);
    }
    TEST_CHECK(bad == 0);
    tn_graph_destroy(&g);
}

// Damage to a sound graph; node numbers are those of two_versions.
static void swap_nodes(void)
{
    tn_node *n = g->nodes[0];
    g->nodes[0] = g->nodes[3];
    g->nodes[3] = n;
}
static void stale_version(void) { g->nodes[4]->src[0] = g->nodes[1]->dst[0]; }
static void wrong_shape(void) { g->nodes[2]->dst[0]->view.ne[3]--; }
static void wrong_type(void) { g->nodes[2]->dst[0]->view.dtype = TN_TYPE_F16; }
static void wrong_stride(void) { g->nodes[2]->dst[0]->view.nb[2] *= 2; }
static void wrong_source(void) { g->nodes[2]->src[0] = g->nodes[0]->dst[0], g->nodes[2]->dst[0]->view.ne[1]++; }
static void lost_root(void) { g->nodes[1]->dst[0]->root = g->nodes[1]->dst[0]; }
static void lost_producer(void) { g->nodes[2]->dst[0]->producer = g->nodes[0]; }
static void two_producers(void) { g->nodes[1] = g->nodes[0]; }
static void lost_output(void) { g->n_nodes--; }
static void lost_params(void) { ((tn_unary_params *)g->nodes[2]->params)->kind = 99; }

static void test_verify(void)
{
    static void (*const damages[])(void) = {swap_nodes,   stale_version, wrong_shape,   wrong_type,  wrong_stride, wrong_source,
                                            lost_root,    lost_producer, two_producers, lost_output, lost_params};
    for (size_t i = 0; i < TN_COUNT(damages); i++) {
        g = new_graph(ctx);
        two_versions();
        TEST_CHECK_STATUS(tn_graph_verify(g, "recording"), TN_OK);
        damages[i]();
        if (!TEST_CHECK_STATUS(tn_graph_verify(g, "damage"), TN_ERR_INTERNAL)) printf("    damage %zu\n", i);
        TEST_CHECK(message_has(ctx, "graph after damage"));
        tn_graph_destroy(&g);
    }
    tn_plan *plan = NULL;
    g = new_graph(ctx);
    two_versions();
    wrong_shape();
    TEST_CHECK_STATUS(tn_plan_create(g, NULL, &plan), TN_ERR_INTERNAL);
    TEST_CHECK(message_has(ctx, "graph after recording"));
    tn_graph_destroy(&g);
}

int main(void)
{
    ctx = graph_context("reference", 1);
    best_ctx = graph_context(NULL, 2);
    test_simplify();
    test_view_of_bypassed();
    test_fuse();
    test_refused();
    test_place();
    test_schedule();
    test_verify();
    tn_context_destroy(&best_ctx);
    tn_context_destroy(&ctx);
    return test_done();
}
