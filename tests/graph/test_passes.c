// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The passes, one by one: what each must do, what it must leave alone, and that results stay the same. Fusion
// is in test_fuse.c, random graphs in test_random_graphs.c, memory plans of models in test_memory.c.
#include "tests/graph/run_graph.h"
#include "tests/models/far_device.h"

#include <math.h>

static tn_context *ctx; // reference: the definition of every op
static tn_graph *g;

enum { CAPACITY = 4096 };

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
    OUTPUT("y",
           unary(tn_op_copy(g, tn_op_copy(g, INPUT("x", 2, 8), TN_TYPE_F32), TN_TYPE_F32), TN_UNARY_SILU));
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

// The copy stays, because a weight cannot be read as a result.
static void view_of_copied_weight(void)
{
    OUTPUT("y", tn_op_reshape(g, tn_op_copy(g, WEIGHT("w", 8), TN_TYPE_F32), SHAPE(2, 4)));
}

static void test_simplify(void)
{
    static const simplify_case cases[] = {
        {"dead code", dead_code, 1},           {"copy", copy_of_contiguous, 1},
        {"strided copy", copy_of_strided, 2},  {"copied output", copy_as_output, 1},
        {"copy to f16", copy_to_f16, 2},       {"scale by one", scale_by_one, 2},
        {"same reshape", reshape_to_same, 2},  {"views", view_of_bypassed, 3},
        {"copy of a state", copy_of_state, 3}, {"view of a copied weight", view_of_copied_weight, 1},
    };
    for (size_t i = 0; i < TN_COUNT(cases); i++) {
        g = new_graph(ctx);
        cases[i].build();
        tn_plan *plan = compile_plan(g, 0);
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

// --- place -----------------------------------------------------------------------------------------

static int n_events; // nodes that the events tell of: "softmax (F32) x 2 runs on cpu: .."

static void count_events(void *user, int32_t code, const char *text)
{
    TN_UNUSED(user);
    const char *count = strstr(text, ") x ");
    if (code == TN_EVENT_DEVICE_FALLBACK && count && strstr(text, "fake has no kernel"))
        n_events += atoi(count + 4);
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
    static float here[CAPACITY], placed[CAPACITY];
    size_t n = 0, m = 0;
    tn_context *c = event_context(0);
    tn_device fake = fake_device(c), *devices[] = {&fake};
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = 0;
    g = new_graph(c);
    build();
    TEST_CHECK_STATUS(evaluate(g, &cfg, here, CAPACITY, &n), TN_OK);
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
    TEST_CHECK(plan && evaluate_plan(plan, placed, CAPACITY, &m) == TN_OK && n == m &&
               memcmp(here, placed, n * sizeof *here) == 0);
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

// A product on the other device, its bias here; a cache that is wanted on both.
static void two_sides(void)
{
    tn_tensor *x = INPUT("x", 3, 8), *s = tn_graph_state(g, "s", TN_TYPE_F32, SHAPE(1, 1, 4, 8));
    tn_graph_want(g, 1);
    tn_tensor *h = tn_op_matmul(g, x, WEIGHT("w", 8, 8));
    tn_graph_want(g, 0);
    h = tn_op_add(g, h, WEIGHT("b", 8));
    tn_tensor *rows = tn_op_reshape(g, tn_op_slice(g, h, 0, 0, 2), SHAPE(2, 1, 8));
    tn_tensor *s1 = tn_op_cache_write(g, s, rows, IDS("slots", 2));
    tn_graph_want(g, 1);
    OUTPUT("y", tn_op_mul(g, tn_op_copy(g, tn_op_reshape(g, s1, SHAPE(4, 8)), TN_TYPE_F32), WEIGHT("v", 8)));
    OUTPUT("z", unary(tn_op_add(g, h, x), TN_UNARY_TANH));
}

static int32_t device_of(const tn_plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].step.op == op) return plan->steps[i].device;
    return -1;
}

static void test_wanted(void)
{
    static float here[CAPACITY], placed[CAPACITY];
    size_t n = 0, m = 0;
    tn_context *c = event_context(0);
    tn_device fake = fake_device(c), *devices[] = {&fake, tn_context_device_by_name(c, "cpu")};
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    g = new_graph(c);
    two_sides();
    tn_plan *plan = NULL;
    TEST_CHECK_STATUS(tn_plan_create(g, NULL, &plan), TN_ERR_INTERNAL); // there is one device only
    cfg.devices = devices;
    cfg.n_devices = 2;
    n_events = 0;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    TEST_CHECK(plan && device_of(plan, TN_OP_matmul) == 1 && count_steps(plan, TN_OP_linear) == 0 &&
               n_events == 0);
    TEST_CHECK(plan && plan_says(plan, "the parts belong to different devices"));
    TEST_CHECK(plan && device_of(plan, TN_OP_cache_write) == 1 &&
               device_of(plan, TN_OP_copy) == 1); // with its reader
    TEST_CHECK(plan && plan->input_size[0] == 0 && plan->input_size[1] > 0 && plan->state_size[0] == 0);
    TEST_CHECK(plan && check_memory(plan) == NULL);
    TEST_CHECK(plan && evaluate_plan(plan, placed, CAPACITY, &m) == TN_OK);
    tn_plan_unref(&plan);
    for (int32_t i = 0; i < g->n_nodes; i++) g->nodes[i]->wanted = 0;
    TEST_CHECK_STATUS(evaluate(g, &cfg, here, CAPACITY, &n), TN_OK);
    TEST_CHECK(n == m && n > 0 && deviation(here, placed, n) < 1e-6);
    fake_refuses = REFUSE(matmul) | REFUSE(binary);
    cfg.fusion = 0;
    cfg.fallback = TN_FALLBACK_ERROR;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_ERR_UNSUPPORTED);
    TEST_CHECK(message_has(c, "fake has no kernel for matmul (F32, F32) x 1, binary (F32, F32) x 3"));
    cfg.fallback = TN_FALLBACK_QUIET;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    TEST_CHECK(n_events == 0);
    tn_plan_unref(&plan);
    fake_refuses = 0;
    tn_graph_destroy(&g);
    tn_context_destroy(&c);
}

// Between two devices with memory of their own results go through the host in pieces, of which the last is
// shorter.
static bool refuses_exp(const tn_device *device, const tn_step *step)
{
    return step->op != TN_OP_unary && tn_backend_cpu.accepts(device, step);
}

static void test_far(void)
{
    enum { N = 9001 };
    static float x[N], y[N];
    tn_context *c = graph_context(NULL, 1);
    tn_device *first = far_add(c, 1 << 20), second = *first, *devices[] = {first, &second};
    tn_backend other = far.backend;
    far.refuses = FAR_REFUSE(binary);
    other.accepts = refuses_exp;
    second.backend = &other;
    memcpy(second.name, "far2", 5);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = devices;
    cfg.n_devices = 2;
    cfg.fallback = TN_FALLBACK_QUIET;
    g = new_graph(c);
    tn_tensor *in = INPUT("x", N), *e = unary(in, TN_UNARY_EXP);
    OUTPUT("y", unary(tn_op_add(g, e, in), TN_UNARY_SQUARE)); // there and back
    for (int i = 0; i < N; i++) x[i] = (float)(i % 97) / 97.0f;
    tn_plan *plan = NULL;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    TEST_CHECK(plan && device_of(plan, TN_OP_binary) == 1 && count_steps(plan, TN_OP_transfer) == 2);
    const tn_binding input = {"x", x, sizeof x}, output = {"y", y, sizeof y};
    const run_args args = {.inputs = &input, .n_inputs = 1};
    if (plan) TEST_CHECK_STATUS(run_plan(plan, &args, &output, 1), TN_OK);
    int n_wrong = 0;
    for (int i = 0; i < N; i++) n_wrong += !(fabsf(y[i] - (expf(x[i]) + x[i]) * (expf(x[i]) + x[i])) < 1e-4f);
    TEST_CHECK(n_wrong == 0 && far.n_foreign == 0 && far.n_buffers == 0);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    tn_context_destroy(&c);
}

static tn_status no_host_memory(tn_device *device, size_t size, void **out)
{
    TN_UNUSED(size);
    *out = NULL;
    return tn_fail(device->ctx, TN_ERR_INTERNAL, "only plans are made here");
}

// Small outputs are copied to the host by each run, larger ones when they are asked for.
static void test_fetches(void)
{
    static const struct {
        int64_t n;
        bool fetched;
    } rows[] = {{1, true}, {4096, true}, {4097, false}};
    tn_context *c = graph_context(NULL, 1);
    tn_device *device = far_add(c, 1 << 20);
    far.backend.host_create = no_host_memory;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = &device;
    cfg.n_devices = 1;
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_plan *plan = NULL;
        g = new_graph(c);
        OUTPUT("y", unary(INPUT("x", rows[i].n), TN_UNARY_EXP));
        TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
        TEST_CHECK(plan && tn_plan_fetches(plan, 0) == rows[i].fetched);
        tn_plan_unref(&plan);
        tn_graph_destroy(&g);
    }
    tn_context_destroy(&c);
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
    tn_binding in[] = {{"x", x, sizeof x}, {"slots", slots, sizeof slots}},
               bound = {"s", state, sizeof state};
    tn_binding out[] = {{"old", old, sizeof old}, {"new", fresh, sizeof fresh}, {"last", last, sizeof last}};
    TEST_CHECK_STATUS(run_graph(g, &(run_args){NULL, &bound, 1, in, 2}, out, 3), TN_OK);
    int bad = 0;
    for (int i = 0; i < 64; i++) {
        float v = i / 8 == 5   ? (float)tn_scalar_unary(TN_UNARY_TANH, x[i % 8], 0, 0)
                  : i / 8 == 2 ? (float)tn_scalar_unary(TN_UNARY_TANH, x[8 + i % 8], 0, 0)
                               : 0.0f;
        bad += old[i] != 0.0f || fresh[i] - v * v > 1e-6f || v * v - fresh[i] > 1e-6f ||
               last[i] - 4 * v * v > 1e-5f || (state[i] != 2 * v);
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
static void stale_version(void)
{
    g->nodes[4]->src[0] = g->nodes[1]->dst[0];
}
static void wrong_shape(void)
{
    g->nodes[2]->dst[0]->view.ne[3]--;
}
static void wrong_type(void)
{
    g->nodes[2]->dst[0]->view.dtype = TN_TYPE_F16;
}
static void wrong_stride(void)
{
    g->nodes[2]->dst[0]->view.nb[2] *= 2;
}
static void wrong_source(void)
{
    g->nodes[2]->src[0] = g->nodes[0]->dst[0], g->nodes[2]->dst[0]->view.ne[1]++;
}
static void lost_root(void)
{
    g->nodes[1]->dst[0]->root = g->nodes[1]->dst[0];
}
static void lost_producer(void)
{
    g->nodes[2]->dst[0]->producer = g->nodes[0];
}
static void two_producers(void)
{
    g->nodes[1] = g->nodes[0];
}
static void lost_output(void)
{
    g->n_nodes--;
}
static void lost_params(void)
{
    ((tn_unary_params *)g->nodes[2]->params)->kind = 99;
}

static void test_verify(void)
{
    static void (*const damages[])(void) = {swap_nodes,    stale_version, wrong_shape, wrong_type,
                                            wrong_stride,  wrong_source,  lost_root,   lost_producer,
                                            two_producers, lost_output,   lost_params};
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
    test_simplify();
    test_view_of_bypassed();
    test_place();
    test_wanted();
    test_far();
    test_fetches();
    test_schedule();
    test_verify();
    tn_context_destroy(&ctx);
    return test_done();
}
