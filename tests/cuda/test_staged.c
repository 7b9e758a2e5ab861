// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One token of each of 9 to 64 sequences on the emulated device: attention over a cache in f16 leaves its
// result as x of the skinny product that reads it, and no launch makes x; with a cache in bf16 one does.
#include "tests/cuda/fake.h"
#include "tests/graph/run_graph.h"

enum { WIDTH = 512, N = 80, MAX_TOKENS = 80, KV_HEADS = 2, KEYS = 64 };

typedef struct layer {
    const char *device;
    tn_dtype type, cache; // of the weight; of keys and values
    int32_t n_tokens, dim;
} layer;

static void record(tn_graph *g, const layer *l)
{
    int32_t n = l->n_tokens;
    const int64_t cache[] = {n, KV_HEADS, KEYS, l->dim};
    tn_attention_args a = {.q = INPUT("q", n, WIDTH / l->dim, l->dim),
                           .k = tn_graph_state(g, "cache k", l->cache, 4, cache),
                           .v = tn_graph_state(g, "cache v", l->cache, 4, cache),
                           .q_start = IDS("q_start", n + 1),
                           .kv_len = IDS("kv_len", n),
                           .block_table = IDS("table", n, 1),
                           .one_query = TN_QUERIES_ONE};
    tn_tensor *heads = tn_op_attention(g, &a, &(tn_attention_params){.scale = 0.2f, .causal = 1});
    tn_tensor *w = tn_graph_weight(g, "w", l->type, SHAPE(N, WIDTH));
    OUTPUT("y", tn_op_matmul(g, tn_op_reshape(g, heads, SHAPE(n, WIDTH)), w));
}

// y, and how many kernels ran.
static int64_t run(const layer *l, float *y)
{
    tn_context *ctx = graph_context(l->device ? NULL : "reference", 1);
    tn_graph *g = new_graph(ctx);
    record(g, l);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = l->device ? tn_context_device_by_name(ctx, l->device) : NULL;
    if (device) cfg.devices = &device, cfg.n_devices = 1;
    size_t n = (size_t)l->n_tokens, cache = n * KV_HEADS * KEYS * (size_t)l->dim;
    int32_t start[MAX_TOKENS + 1], len[MAX_TOKENS], pages[MAX_TOKENS];
    for (int32_t i = 0; i <= l->n_tokens; i++) start[i] = i;
    for (int32_t i = 0; i < l->n_tokens; i++) len[i] = 1 + i * 7 % KEYS, pages[i] = l->n_tokens - 1 - i;
    tn_binding bound[] = {
        {"cache k", values_of("cache k", l->cache, cache), tn_dtype_row_size(l->cache, (int64_t)cache)},
        {"cache v", values_of("cache v", l->cache, cache), tn_dtype_row_size(l->cache, (int64_t)cache)},
        {"w", values_of("w", l->type, N * WIDTH), tn_dtype_row_size(l->type, N * WIDTH)}};
    tn_binding in[] = {{"q", values_of("q", TN_TYPE_F32, n * WIDTH), n * WIDTH * sizeof(float)},
                       {"q_start", start, (n + 1) * sizeof *start},
                       {"kv_len", len, n * sizeof *len},
                       {"table", pages, n * sizeof *pages}};
    tn_binding out[] = {{"y", y, n * N * sizeof *y}};
    run_args args = {&cfg, bound, TN_COUNT(bound), in, TN_COUNT(in)};
    int64_t before = fake_get()->n_launches;
    if (!TEST_CHECK_STATUS(run_graph(g, &args, out, 1), TN_OK)) message_has(ctx, "-");
    for (size_t i = 0; i < TN_COUNT(bound); i++) free((void *)(uintptr_t)bound[i].data);
    free((void *)(uintptr_t)in[0].data);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    return fake_get()->n_launches - before;
}

static void check(layer l)
{
    static float y[3][MAX_TOKENS * N];
    size_t n = (size_t)l.n_tokens * N;
    l.cache = TN_TYPE_F16;
    run(&l, y[0]);
    l.device = "cuda";
    int64_t staged = run(&l, y[1]);
    l.cache = TN_TYPE_BF16;
    int64_t apart = run(&l, y[2]);
    double off = deviation(y[1], y[0], n);
    bool ok = TEST_CHECK(off < 1e-3) & TEST_CHECK(staged + 1 == apart);
    if (!ok)
        printf("    %s, %d tokens, heads of %d: %d and %d launches, off by %g\n", tn_dtype_name(l.type),
               l.n_tokens, l.dim, (int)staged, (int)apart, off);
}

int main(void)
{
    check((layer){.type = TN_TYPE_Q4_K, .n_tokens = 9, .dim = 128});
    check((layer){.type = TN_TYPE_Q8_0, .n_tokens = 17, .dim = 64});
    check((layer){.type = TN_TYPE_Q6_K, .n_tokens = 33, .dim = 64});
    check((layer){.type = TN_TYPE_Q5_K, .n_tokens = 64, .dim = 128});
    check((layer){.type = TN_TYPE_Q4_K, .n_tokens = MAX_TOKENS, .dim = 128});
    return test_done();
}
