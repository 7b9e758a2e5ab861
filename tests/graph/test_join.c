// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The join pass: which steps share work on a device that could join any pair, or none of a kind, and why
// others do not; what the memory pass keeps alive for them, and that segments do not part them.
#include "tests/graph/run_graph.h"

#include <stddef.h>

static tn_context *ctx;
static tn_graph *g;

// --- a device that joins whatever it is asked about, but for the kinds that it refuses -----------

static uint32_t refused_kinds;
static tn_backend joining;

static uint32_t fake_joins(const tn_device *device, const tn_step_pair *pair)
{
    TN_UNUSED(device);
    bool reads = false;
    for (int32_t k = 0; k < pair->reader->n_src; k++) reads = reads || pair->from[k] >= 0;
    TEST_CHECK(reads);
    return (TN_JOIN_FOLD | TN_JOIN_STAGE | TN_JOIN_PACK | TN_JOIN_DEFER) & ~refused_kinds;
}

static size_t fake_staged_size(const tn_device *device, const tn_step *step)
{
    TN_UNUSED(device);
    return (size_t)tn_view_n_elems(&step->dst[0]) + 7;
}

// Two launches of every matrix product, one of any other step.
static tn_status fake_launches(tn_device *device, const tn_program *program, int32_t i,
                               const tn_launch_sink *sink)
{
    TN_UNUSED(device);
    const tn_step *step = &program->steps[i];
    if (step->join.next & TN_JOIN_FOLD) return TN_OK;
    tn_status status =
        tn_op_info_get(step->op)->flags & TN_OP_PRODUCT ? sink->put(sink->user, "prepare") : TN_OK;
    return status == TN_OK ? sink->put(sink->user, "run") : status;
}

// What is joined comes in one program.
static tn_status fake_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                              tn_executable **out)
{
    TEST_CHECK(program->n_steps > 0 && program->steps[0].join.previous == 0);
    TEST_CHECK(program->steps[program->n_steps - 1].join.next == 0);
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_step_join *j = &program->steps[i].join;
        TEST_CHECK((j->staged_x.ne[3] > 0) == (j->staged_x.data != NULL));
        TEST_CHECK((j->staged_y.ne[3] > 0) == (j->staged_y.data != NULL));
    }
    return tn_backend_cpu.prepare(device, program, scratch, out);
}

static tn_device joining_device(void)
{
    tn_device d = fake_device(ctx);
    joining = *d.backend;
    joining.joins = fake_joins;
    joining.staged_size = fake_staged_size;
    joining.launches = fake_launches;
    joining.prepare = fake_prepare;
    d.backend = &joining;
    return d;
}

// --- recording -----------------------------------------------------------------------------------

static tn_node *record(int32_t op, const void *params, int32_t n_src, tn_tensor *const *src)
{
    tn_node *n = NULL;
    TEST_CHECK_STATUS(tn_graph_record(g, op, n_src, src, params, &n), TN_OK);
    return n;
}

static tn_tensor *exp_of(tn_tensor *x)
{
    return tn_op_unary(g, x, &(tn_unary_params){.kind = TN_UNARY_EXP});
}

enum { HEADS = 4, KV_HEADS = 2, DIM = 8, BLOCK = 4, WIDTH = HEADS * DIM, N = 16 };

// x through an optional norm, times w, plus an optional residual.
static tn_tensor *linear(tn_tensor *x, tn_tensor *w, tn_tensor *residual, tn_tensor *norm)
{
    tn_linear_params p = {
        .act = TN_UNARY_NONE, .has_residual = residual != NULL, .has_norm = norm != NULL, .eps = 1e-5f};
    tn_tensor *src[4] = {x, w};
    int32_t n = 2;
    if (residual) src[n++] = residual;
    if (norm) src[n++] = norm;
    return record(TN_OP_linear, &p, n, src)->dst[0];
}

// --- rope_cache in attention ---------------------------------------------------------------------

enum { PLAIN, Q_IS_OUTPUT, Q_IS_READ, STEP_BETWEEN, LENGTH_COMPUTED, POS_COMPUTED };

static void rope(int how)
{
    tn_tensor *k = tn_graph_state(g, "cache k", TN_TYPE_F16, SHAPE(2, KV_HEADS, BLOCK, DIM));
    tn_tensor *v = tn_graph_state(g, "cache v", TN_TYPE_F16, SHAPE(2, KV_HEADS, BLOCK, DIM));
    tn_tensor *one = tn_op_argmax(g, INPUT("logits", 1, 2));
    tn_tensor *src[] = {k,
                        v,
                        INPUT("q", 1, HEADS, DIM),
                        INPUT("k", 1, KV_HEADS, DIM),
                        INPUT("v", 1, KV_HEADS, DIM),
                        how == POS_COMPUTED ? one : IDS("pos", 1),
                        IDS("slots", 1)};
    const tn_rope_cache_params p = {.rope = {.n_rot = DIM, .base = 10000.0f}};
    tn_node *r = record(TN_OP_rope_cache, &p, 7, src);
    tn_attention_args a = {.q = r->dst[2],
                           .k = r->dst[0],
                           .v = r->dst[1],
                           .q_start = IDS("q_start", 2),
                           .kv_len = how == LENGTH_COMPUTED ? one : IDS("kv_len", 1),
                           .block_table = IDS("table", 1, 2)};
    if (how == STEP_BETWEEN) a.sinks = exp_of(INPUT("sinks", HEADS));
    tn_tensor *y = tn_op_attention(g, &a, &(tn_attention_params){.scale = 1.0f, .causal = 1});
    OUTPUT("y", tn_op_matmul(g, tn_op_reshape(g, y, SHAPE(1, WIDTH)), WEIGHT("w", N, WIDTH)));
    if (how == Q_IS_OUTPUT) OUTPUT("turned", r->dst[2]);
    if (how == Q_IS_READ) OUTPUT("of turned", exp_of(r->dst[2]));
}

// --- experts -------------------------------------------------------------------------------------

enum { EXPERTS = 4, USED = 2, TOKENS = 3, SUM_IS_FAR = 10, RESULTS_READ, ADDED };

static void experts(int how)
{
    const tn_moe_route_params route = {
        .top_k = {.k = USED}, .weights = {.gating = TN_GATING_SOFTMAX}, .has_product = 1};
    tn_tensor *x = INPUT("x", TOKENS, WIDTH);
    tn_node *r = record(TN_OP_moe_route, &route, 2, (tn_tensor *[]){x, WEIGHT("router", EXPERTS, WIDTH)});
    if (how == STEP_BETWEEN) x = exp_of(x);
    tn_tensor *src[] = {tn_op_reshape(g, x, SHAPE(TOKENS, 1, WIDTH)), WEIGHT("gate", EXPERTS, N, WIDTH),
                        WEIGHT("up", EXPERTS, N, WIDTH), r->dst[0]};
    const tn_matmul_id_glu_params glu = {.glu = {.act = TN_UNARY_SILU}};
    tn_tensor *h = record(TN_OP_matmul_id_glu, &glu, 4, src)->dst[0];
    tn_tensor *down = tn_op_matmul_id(g, h, WEIGHT("down", EXPERTS, WIDTH, N), r->dst[0]);
    tn_tensor *factors = how == SUM_IS_FAR ? exp_of(r->dst[1]) : r->dst[1];
    if (how == ADDED) {
        tn_tensor *parts[] = {down, factors, INPUT("added", TOKENS, WIDTH)};
        OUTPUT("y", record(TN_OP_moe_combine, &(tn_moe_combine_params){.n_added = 1}, 3, parts)->dst[0]);
    } else {
        OUTPUT("y", tn_op_moe_sum(g, down, factors));
    }
    if (how == RESULTS_READ) OUTPUT("z", exp_of(down));
}

// --- packed rows and staged activations ----------------------------------------------------------

enum { RESIDUAL = 20, SAME_NORM, OTHER_NORM, COMPUTED_NORM, COMPUTED_WEIGHT, FROM_STATE, FAR_READER, CHAIN };

static void gated(int how)
{
    const tn_matmul_glu_params glu = {.glu = {.act = TN_UNARY_SILU}};
    tn_tensor *src[] = {INPUT("x", TOKENS, WIDTH), WEIGHT("gate", N, WIDTH), WEIGHT("up", N, WIDTH)};
    tn_tensor *h = record(TN_OP_matmul_glu, &glu, 3, src)->dst[0];
    tn_tensor *w = how == STEP_BETWEEN ? exp_of(INPUT("w", N, N)) : WEIGHT("w", N, N);
    OUTPUT("y", linear(h, w, how == RESIDUAL ? h : NULL, NULL));
    if (how == Q_IS_OUTPUT) OUTPUT("h", h);
    if (how == Q_IS_READ) OUTPUT("z", exp_of(h));
}

static void staged(int how)
{
    tn_tensor *x = INPUT("x", TOKENS, WIDTH), *h = tn_op_matmul(g, x, WEIGHT("w0", N, WIDTH)), *norm = NULL;
    if (how == FROM_STATE) {
        tn_tensor *s = tn_graph_state(g, "s", TN_TYPE_F32, SHAPE(1, 1, 4, N));
        s = tn_op_cache_write(g, s, tn_op_reshape(g, h, SHAPE(TOKENS, 1, N)), IDS("slots", TOKENS));
        h = tn_op_reshape(g, s, SHAPE(4, N));
    }
    if (how == SAME_NORM || how == OTHER_NORM) norm = WEIGHT("norm", N);
    if (how == COMPUTED_NORM) norm = exp_of(INPUT("norm", N));
    tn_tensor *w = WEIGHT("w1", N, N), *between = how == FAR_READER ? exp_of(h) : NULL;
    if (between) OUTPUT("between", between);
    if (how == COMPUTED_WEIGHT) w = exp_of(w);
    OUTPUT("y", linear(h, w, NULL, norm));
    if (how == SAME_NORM) OUTPUT("z", linear(h, WEIGHT("w2", N, N), NULL, norm));
    if (how == OTHER_NORM) OUTPUT("z", linear(h, WEIGHT("w2", N, N), NULL, WEIGHT("other", N)));
}

// --- cases ---------------------------------------------------------------------------------------

static const struct {
    const char *pattern;
    void (*build)(int how);
    int how;
    uint32_t refused;
    const char *reason; // NULL: it fires
} cases[] = {
    {"rope_cache in attention", rope, PLAIN, 0, NULL},
    {"rope_cache in attention", rope, LENGTH_COMPUTED, 0, NULL},
    {"rope_cache in attention", rope, Q_IS_OUTPUT, 0, "its result is one of the plan"},
    {"rope_cache in attention", rope, Q_IS_READ, 0, "another step reads its result too"},
    {"rope_cache in attention", rope, STEP_BETWEEN, 0, "another step comes between"},
    {"rope_cache in attention", rope, PLAIN, TN_JOIN_FOLD, "the device has no kernels for it"},
    {"experts in their sum", experts, PLAIN, 0, NULL},
    {"experts in their sum", experts, ADDED, 0, NULL},
    {"experts in their sum", experts, SUM_IS_FAR, 0, "another step comes between"},
    {"experts in their sum", experts, RESULTS_READ, 0, "another step reads its result too"},
    {"experts in their sum", experts, PLAIN, TN_JOIN_FOLD, "the device has no kernels for it"},
    {"route in experts", experts, PLAIN, 0, NULL},
    {"route in experts", experts, STEP_BETWEEN, 0, "another step comes between"},
    {"route in experts", experts, PLAIN, TN_JOIN_DEFER, "the device has no kernels for it"},
    {"packed 16-bit rows", gated, PLAIN, 0, NULL},
    {"packed 16-bit rows", gated, Q_IS_OUTPUT, 0, "its result is one of the plan"},
    {"packed 16-bit rows", gated, Q_IS_READ, 0, "another step reads its result too"},
    {"packed 16-bit rows", gated, RESIDUAL, 0, "its result is read in two ways"},
    {"packed 16-bit rows", gated, STEP_BETWEEN, 0, "another step comes between"},
    {"packed 16-bit rows", gated, PLAIN, TN_JOIN_PACK, "the device has no kernels for it"},
    {"packed 16-bit rows", experts, PLAIN, 0, NULL},
    {"packed 16-bit rows", experts, PLAIN, TN_JOIN_PACK, "the device has no kernels for it"},
    {"packed 16-bit queries", rope, PLAIN, 0, "the reader does that step already"},
    {"packed 16-bit queries", rope, PLAIN, TN_JOIN_FOLD, NULL},
    {"packed 16-bit queries", rope, Q_IS_READ, TN_JOIN_FOLD, "another step reads its result too"},
    {"packed 16-bit queries", rope, PLAIN, TN_JOIN_FOLD | TN_JOIN_PACK, "the device has no kernels for it"},
    {"staged activations", staged, PLAIN, 0, NULL},
    {"staged activations", staged, FAR_READER, 0, NULL},
    {"staged activations", staged, SAME_NORM, 0, NULL},
    {"staged activations", staged, OTHER_NORM, 0, "another reader has another norm"},
    {"staged activations", staged, COMPUTED_NORM, 0, "the weight of the norm is computed"},
    {"staged activations", staged, FROM_STATE, 0, "x is a state"},
    {"staged activations", staged, PLAIN, TN_JOIN_STAGE, "the device has no kernels for it"},
    {"staged activations", gated, PLAIN, 0, "x comes as 16-bit rows"},
    {"staged activations", gated, PLAIN, TN_JOIN_PACK, NULL},
};

static tn_plan *plan_for(tn_device *device)
{
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = 0;
    cfg.devices = &device;
    cfg.n_devices = 1;
    tn_plan *plan = NULL;
    if (!TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK)) message_has(ctx, "-");
    return plan;
}

static tn_plan *build_plan(void (*build)(int how), int how, uint32_t refused, tn_device *device)
{
    g = new_graph(ctx);
    build(how);
    refused_kinds = refused;
    tn_plan *plan = plan_for(device);
    tn_graph_destroy(&g);
    return plan;
}

static bool has_note(const tn_plan *plan, const char *pattern, const char *reason)
{
    for (const tn_fusion_note *n = plan->notes; n; n = n->next)
        if (strcmp(n->pattern, pattern) == 0 &&
            (reason ? n->reason && strcmp(n->reason, reason) == 0 : !n->reason))
            return true;
    return false;
}

static void test_reasons(void)
{
    tn_device device = joining_device();
    for (size_t i = 0; i < TN_COUNT(cases); i++) {
        tn_plan *plan = build_plan(cases[i].build, cases[i].how, cases[i].refused, &device);
        if (!plan) continue;
        bool ok = TEST_CHECK(has_note(plan, cases[i].pattern, cases[i].reason));
        const char *wrong = check_memory(plan);
        ok &= TEST_CHECK(!wrong);
        ok &= TEST_CHECK(plan_says(plan, cases[i].pattern));
        if (!ok) printf("    case %d, %s: %s\n", (int)i, cases[i].pattern, wrong ? wrong : "");
        tn_plan_unref(&plan);
    }
}

static const tn_plan_step *find_step(const tn_plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].step.op == op) return &plan->steps[i];
    abort();
}

// What a step is told, beside the reasons.
static void test_steps(void)
{
    tn_device device = joining_device();
    tn_plan *plan = build_plan(rope, PLAIN, 0, &device);
    const tn_plan_step *r = find_step(plan, TN_OP_rope_cache), *a = find_step(plan, TN_OP_attention);
    TEST_CHECK(r + 1 == a && r->step.join.next == TN_JOIN_FOLD && a->step.join.previous == TN_JOIN_FOLD);
    TEST_CHECK(a->step.join.early && a->n_launches == 1 && r->n_launches == 0);
    TEST_CHECK(a->staged_y.root >= 0 && a->staged_y.root == find_step(plan, TN_OP_matmul)->staged_x.root);
    TEST_CHECK(plan->info.n_launches == plan->n_launches && plan->info.n_joined == 2);
    tn_plan_unref(&plan);
    for (int how = LENGTH_COMPUTED; how <= POS_COMPUTED; how++) {
        plan = build_plan(rope, how, 0, &device);
        TEST_CHECK(!find_step(plan, TN_OP_attention)->step.join.early);
        tn_plan_unref(&plan);
    }
    plan = build_plan(rope, POS_COMPUTED, TN_JOIN_FOLD, &device); // the positions are none of attention alone
    TEST_CHECK(find_step(plan, TN_OP_attention)->step.join.early);
    tn_plan_unref(&plan);
    for (int32_t computed = 0; computed < 2; computed++) {
        plan = build_plan(staged, computed ? COMPUTED_WEIGHT : PLAIN, 0, &device);
        TEST_CHECK(find_step(plan, TN_OP_linear)->step.join.computed_weights == (computed != 0));
        TEST_CHECK(find_step(plan, TN_OP_matmul)->n_launches == 2);
        tn_plan_unref(&plan);
    }
}

// A folded step's sources are still there when the next step runs, and a deferred one's results from then on.
static void test_lives(void)
{
    tn_device device = joining_device();
    g = new_graph(ctx);
    experts(PLAIN);
    refused_kinds = TN_JOIN_PACK;
    tn_plan *plan = plan_for(&device);
    tn_graph_destroy(&g);
    const tn_plan_step *down = find_step(plan, TN_OP_matmul_id), *sum = find_step(plan, TN_OP_moe_sum);
    int32_t end = plan->places[sum->dst[0].root].first;
    TEST_CHECK(plan->places[down->src[0].root].last == end && plan->places[down->src[2].root].last == end);
    TEST_CHECK(down->staged_x.root >= 0 && plan->places[down->staged_x.root].last == end);
    tn_plan_unref(&plan);
}

// Every step would be a segment of its own, but for those that share a launch or the scratch memory.
static void test_segments(void)
{
    static void (*const builds[])(int how) = {rope, experts, gated, staged};
    tn_device device = joining_device();
    device.max_work = 1.0;
    for (size_t i = 0; i < TN_COUNT(builds); i++) {
        float out[1024];
        size_t n = 0;
        tn_plan *plan = build_plan(builds[i], PLAIN, 0, &device);
        if (plan) TEST_CHECK_STATUS(evaluate_plan(plan, out, TN_COUNT(out), &n), TN_OK);
        TEST_CHECK(n > 0);
        tn_plan_unref(&plan);
    }
}

int main(void)
{
    ctx = graph_context("reference", 1);
    test_reasons();
    test_steps();
    test_lives();
    test_segments();
    tn_context_destroy(&ctx);
    return test_done();
}
