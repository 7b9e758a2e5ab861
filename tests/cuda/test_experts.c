// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers of experts on the emulated device: the last product and the sum of its results share a launch where
// nobody else reads what is between, quantised activations are staged from router to experts and from sum to
// the next product, and the results stay what they are without. With more tokens the gated pair leaves x of
// the last product.
//
//     LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu test_experts --card
//
// compares results on a card, whose driver counts no launches. The path leads to that driver, because the
// emulated one lies beside the program.
#include "tests/cuda/fake.h"
#include "tests/graph/run_graph.h"

#include <dlfcn.h>

static fake_state *counts; // of the driver of the tests; NULL on a card

enum {
    WIDTH = 256,
    HIDDEN = 512,
    EXPERTS = 6,
    USED = 3,
    MAX_TOKENS = 3,
    MANY_TOKENS = 30,
    NEXT = 64,
    ROOM = 2 * MANY_TOKENS * WIDTH
};

typedef struct layer {
    const char *device;
    tn_dtype gate, down; // of the weights of the experts
    int64_t n_tokens;
    bool strange;    // an expert that does not exist
    bool apart;      // what is summed is a result too
    bool pair_apart; // the gated pair is
} layer;

static tn_tensor *experts(tn_graph *g, const layer *l, tn_tensor *x, tn_tensor *ids)
{
    tn_tensor *gate =
        tn_op_matmul_id(g, x, tn_graph_weight(g, "gate", l->gate, SHAPE(EXPERTS, HIDDEN, WIDTH)), ids);
    tn_tensor *up =
        tn_op_matmul_id(g, x, tn_graph_weight(g, "up", l->gate, SHAPE(EXPERTS, HIDDEN, WIDTH)), ids);
    tn_tensor *h = tn_op_glu(g, gate, up, &(tn_glu_params){.act = TN_UNARY_SILU});
    if (l->pair_apart) OUTPUT("pair", h);
    return tn_op_matmul_id(g, h, tn_graph_weight(g, "down", l->down, SHAPE(EXPERTS, WIDTH, HIDDEN)), ids);
}

// Those of an input are refused if they lead outside; those that the graph makes may be anything.
static tn_tensor *strange_ids(tn_graph *g, int64_t n_tokens)
{
    tn_tensor *ids = IDS("ids", n_tokens, USED);
    return tn_op_concat(g, tn_op_slice(g, ids, 1, 0, 1), tn_op_slice(g, ids, 1, 1, USED - 1), 1);
}

static void record(tn_graph *g, const layer *l)
{
    tn_tensor *x = INPUT("x", l->n_tokens, WIDTH), *norm = tn_op_rms_norm(g, x, WEIGHT("norm", WIDTH), 1e-5f);
    tn_tensor *logits = tn_op_matmul(g, norm, WEIGHT("router", EXPERTS, WIDTH));
    tn_tensor *ids = tn_op_top_k(g, logits, NULL, &(tn_top_k_params){.k = USED});
    tn_tensor *factors = tn_op_moe_weights(
        g, logits, ids, &(tn_moe_weights_params){.gating = TN_GATING_SOFTMAX, .normalise = 1});
    tn_tensor *used = l->strange ? strange_ids(g, l->n_tokens) : ids;
    tn_tensor *down = experts(g, l, tn_op_reshape(g, norm, SHAPE(l->n_tokens, 1, WIDTH)), used);
    tn_tensor *y = tn_op_add(g, tn_op_moe_sum(g, down, factors), x);
    OUTPUT("y", y);
    OUTPUT("z", tn_op_matmul(g, tn_op_rms_norm(g, y, WEIGHT("next norm", WIDTH), 1e-5f),
                             tn_graph_weight(g, "next", l->down, SHAPE(NEXT, WIDTH))));
    if (l->apart) OUTPUT("between", down);
}

static int64_t launches(void)
{
    return counts ? counts->n_launches : 0;
}

static bool count_is(int64_t n, int64_t want)
{
    return !counts || n == want;
}

// y and z, and how many kernels ran.
static int64_t run(const layer *l, float *y, float *z)
{
    tn_context *ctx = graph_context(l->device ? NULL : "reference", 1);
    tn_graph *g = new_graph(ctx);
    record(g, l);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = l->device ? tn_context_device_by_name(ctx, l->device) : NULL;
    if (device) cfg.devices = &device, cfg.n_devices = 1;
    const named_values given[] = {{"norm", TN_TYPE_F32, WIDTH},
                                  {"router", TN_TYPE_F32, EXPERTS * WIDTH},
                                  {"gate", l->gate, EXPERTS * HIDDEN * WIDTH},
                                  {"up", l->gate, EXPERTS * HIDDEN * WIDTH},
                                  {"down", l->down, EXPERTS * HIDDEN * WIDTH},
                                  {"next norm", TN_TYPE_F32, WIDTH},
                                  {"next", l->down, NEXT * WIDTH}};
    enum { N_GIVEN = TN_COUNT(given) };
    tn_binding bound[N_GIVEN];
    bind_values(given, N_GIVEN, bound);
    size_t size = (size_t)l->n_tokens * WIDTH * sizeof *y;
    void *x = values_of("x", TN_TYPE_F32, (size_t)l->n_tokens * WIDTH);
    static const int32_t some_ids[] = {2, EXPERTS, 0, 1, 5, -1, 4, 3, 2};
    int32_t ids[MANY_TOKENS * USED];
    for (size_t i = 0; i < TN_COUNT(ids); i++) ids[i] = some_ids[i % TN_COUNT(some_ids)];
    tn_binding in[] = {{"x", x, size}, {"ids", ids, (size_t)l->n_tokens * USED * sizeof *ids}};
    tn_binding out[] = {{"y", y, size}, {"z", z, (size_t)l->n_tokens * NEXT * sizeof *z}};
    int64_t before = launches();
    tn_status status = run_graph(g, &(run_args){&cfg, bound, N_GIVEN, in, l->strange ? 2 : 1}, out, 2);
    char message[256] = "";
    if (!TEST_CHECK_STATUS(status, TN_OK)) tn_context_error(ctx, message, sizeof message);
    if (message[0]) printf("    %s\n", message);
    free_values(bound, N_GIVEN);
    free(x);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    return launches() - before;
}

static void check(layer l)
{
    static float y[3][ROOM], z[3][ROOM];
    size_t n = (size_t)l.n_tokens * WIDTH, m = (size_t)l.n_tokens * NEXT;
    run(&l, y[0], z[0]);
    l.device = "cuda";
    int64_t together = run(&l, y[1], z[1]);
    l.apart = true;
    int64_t apart = run(&l, y[2], z[2]);
    bool ok = TEST_CHECK(count_is(apart, together + 1));
    // The same integers make the same sums but for their order; z rounds once more.
    ok &= TEST_CHECK(deviation(y[1], y[2], n) < 1e-5) & TEST_CHECK(deviation(z[1], z[2], m) < 1e-2);
    // Against exact activations.
    ok &= TEST_CHECK(deviation(y[1], y[0], n) < 2e-2) & TEST_CHECK(deviation(z[1], z[0], m) < 3e-2);
    if (!ok)
        printf("    %s, %s, %d tokens%s: %d and %d launches; y %g, %g, z %g, %g\n", tn_dtype_name(l.gate),
               tn_dtype_name(l.down), (int)l.n_tokens, l.strange ? ", strange" : "", (int)together,
               (int)apart, deviation(y[1], y[2], n), deviation(y[1], y[0], n), deviation(z[1], z[2], m),
               deviation(z[1], z[0], m));
}

// So many tokens that products have tiles of 16 rows of x (`packs`), or of more. With 16, a gated pair that
// is no result leaves x of the last product, whose launch for x and ids goes. Norms of weights are measured
// in two launches each.
static void check_many(layer l, bool packs)
{
    static float y[3][ROOM], z[3][ROOM];
    enum { MEASURE = 2 * 2 };
    size_t n = (size_t)l.n_tokens * WIDTH;
    run(&l, y[0], z[0]);
    l.device = "cuda";
    int64_t together = run(&l, y[1], z[1]);
    l.pair_apart = true;
    int64_t apart = run(&l, y[2], z[2]);
    bool ok = TEST_CHECK(count_is(apart, together - (packs ? MEASURE - 1 : 0)));
    ok &= TEST_CHECK(deviation(y[1], y[2], n) < 1e-5) & TEST_CHECK(deviation(y[1], y[0], n) < 2e-3);
    if (!ok)
        printf("    %s, %s, %d tokens%s: %d and %d launches; y %g, %g\n", tn_dtype_name(l.gate),
               tn_dtype_name(l.down), (int)l.n_tokens, l.strange ? ", strange" : "", (int)together,
               (int)apart, deviation(y[1], y[2], n), deviation(y[1], y[0], n));
}

// The driver that the backend opens counts, if it is that of the tests.
static fake_state *find_counts(void)
{
    fake_state *(*get)(void);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *at = driver ? dlsym(driver, "fake_get") : NULL;
    if (!at) return NULL;
    memcpy(&get, &at, sizeof get);
    return get();
}

int main(int argc, char **argv)
{
    bool card = argc > 1 && strcmp(argv[1], "--card") == 0;
    counts = find_counts();
    if (!TEST_CHECK((counts == NULL) == card)) return test_done();
    static const tn_dtype types[] = {TN_TYPE_Q4_0, TN_TYPE_Q8_0, TN_TYPE_Q4_K, TN_TYPE_Q5_K, TN_TYPE_Q6_K};
    for (size_t i = 0; i < TN_COUNT(types); i++)
        check((layer){.gate = types[i], .down = types[i], .n_tokens = 1});
    // Activations of the last product that nobody rounded before.
    check((layer){.gate = TN_TYPE_F32, .down = TN_TYPE_Q4_K, .n_tokens = 1});
    check((layer){.gate = TN_TYPE_Q4_K, .down = TN_TYPE_Q6_K, .n_tokens = MAX_TOKENS});
    check((layer){.gate = TN_TYPE_Q8_0, .down = TN_TYPE_Q8_0, .n_tokens = MAX_TOKENS, .strange = true});
    check_many((layer){.gate = TN_TYPE_Q4_K, .down = TN_TYPE_Q4_K, .n_tokens = 12}, true);
    check_many((layer){.gate = TN_TYPE_Q4_K, .down = TN_TYPE_Q6_K, .n_tokens = 20, .strange = true}, true);
    check_many((layer){.gate = TN_TYPE_Q6_K, .down = TN_TYPE_Q4_K, .n_tokens = 21}, true);
    check_many((layer){.gate = TN_TYPE_Q4_K, .down = TN_TYPE_Q4_K, .n_tokens = MANY_TOKENS}, false);
    return test_done();
}
