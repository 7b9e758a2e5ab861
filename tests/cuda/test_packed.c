// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries on the emulated device: rope_cache leaves the queries in the type of the cache,
// and attention leaves its result as bf16 rows of the product after it, where nobody else reads them. Both
// round what they leave as their readers would, so results have the same bits as with separate steps.
#include "ops/operands.h"
#include "tests/cuda/fake.h"
#include "tests/graph/run_graph.h"

enum {
    TOKENS = 150, // of two sequences; more than 128 rows, so that the product is gemm_bf16
    FIRST = 97,   // tokens of the first one
    KV_HEADS = 2,
    BLOCK = 64,
    BLOCKS = 4,
    NEXT = 40,
    MOST_HEADS = 6,
    MOST_DIM = 128,
    MOST = TOKENS * MOST_HEADS * MOST_DIM,
};

typedef struct shape {
    int64_t heads, dim;
    tn_dtype cache;
    bool apart; // queries and the result of attention are results too
} shape;

static float values[MOST];

static float *fill(const char *name, size_t n)
{
    fill_value(name, TN_TYPE_F32, values, n * sizeof *values);
    return values;
}

static void record(tn_graph *g, const shape *s)
{
    tn_tensor *src[] = {tn_graph_state(g, "cache k", s->cache, SHAPE(BLOCKS, KV_HEADS, BLOCK, s->dim)),
                        tn_graph_state(g, "cache v", s->cache, SHAPE(BLOCKS, KV_HEADS, BLOCK, s->dim)),
                        INPUT("q", TOKENS, s->heads, s->dim),
                        INPUT("k", TOKENS, KV_HEADS, s->dim),
                        INPUT("v", TOKENS, KV_HEADS, s->dim),
                        IDS("pos", TOKENS),
                        IDS("slots", TOKENS)};
    const tn_rope_cache_params p = {.rope = {.n_rot = (int32_t)s->dim, .base = 10000.0f}};
    tn_node *r = NULL;
    TEST_CHECK_STATUS(tn_graph_record(g, TN_OP_rope_cache, 7, src, &p, &r), TN_OK);
    tn_attention_args a = {.q = r->dst[TN_DST_rope_cache_q],
                           .k = r->dst[TN_DST_rope_cache_cache_k],
                           .v = r->dst[TN_DST_rope_cache_cache_v],
                           .q_start = IDS("q_start", 3),
                           .kv_len = IDS("kv_len", 2),
                           .block_table = IDS("table", 2, 2)};
    tn_tensor *y = tn_op_attention(g, &a, &(tn_attention_params){.scale = 0.1f, .causal = 1});
    tn_tensor *w = tn_graph_weight(g, "w", TN_TYPE_BF16, SHAPE(NEXT, s->heads * s->dim));
    OUTPUT("z", tn_op_matmul(g, tn_op_reshape(g, y, SHAPE(TOKENS, s->heads * s->dim)), w));
    if (!s->apart) return;
    OUTPUT("turned", r->dst[TN_DST_rope_cache_q]);
    OUTPUT("y", y);
}

// Gives z, and how many kernels ran.
static int64_t run(const shape *s, float *z)
{
    static int32_t pos[TOKENS], slots[TOKENS];
    static const int32_t q_start[] = {0, FIRST, TOKENS}, kv_len[] = {FIRST, TOKENS - FIRST},
                         table[] = {2, 0, 3, 1};
    static uint16_t w[NEXT * MOST_HEADS * MOST_DIM], zeros[BLOCKS * KV_HEADS * BLOCK * MOST_DIM];
    static float q[MOST], k[TOKENS * KV_HEADS * MOST_DIM], v[TOKENS * KV_HEADS * MOST_DIM];
    size_t n_q = (size_t)(TOKENS * s->heads * s->dim), n_kv = (size_t)(TOKENS * KV_HEADS * s->dim),
           n_w = (size_t)(NEXT * s->heads * s->dim), n_cache = (size_t)(BLOCKS * KV_HEADS * BLOCK * s->dim);
    for (int32_t t = 0; t < TOKENS; t++) {
        pos[t] = t < FIRST ? t : t - FIRST;
        slots[t] = table[(t < FIRST ? 0 : 2) + pos[t] / BLOCK] * BLOCK + pos[t] % BLOCK;
    }
    memcpy(q, fill("q", n_q), n_q * sizeof *q);
    memcpy(k, fill("k", n_kv), n_kv * sizeof *k);
    memcpy(v, fill("v", n_kv), n_kv * sizeof *v);
    const float *from = fill("w", n_w);
    for (size_t i = 0; i < n_w; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        w[i] = (uint16_t)(bits >> 16);
    }
    tn_context *ctx = graph_context(NULL, 1);
    tn_graph *g = new_graph(ctx);
    record(g, s);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    const tn_binding bound[] = {
        {"cache k", zeros, n_cache * 2}, {"cache v", zeros, n_cache * 2}, {"w", w, n_w * 2}};
    const tn_binding in[] = {{"q", q, n_q * 4},
                             {"k", k, n_kv * 4},
                             {"v", v, n_kv * 4},
                             {"pos", pos, sizeof pos},
                             {"slots", slots, sizeof slots},
                             {"q_start", q_start, sizeof q_start},
                             {"kv_len", kv_len, sizeof kv_len},
                             {"table", table, sizeof table}};
    const tn_binding out[] = {{"z", z, TOKENS * NEXT * sizeof *z}};
    int64_t before = fake_get()->n_launches;
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, bound, 3, in, TN_COUNT(in)}, out, 1), TN_OK);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    return fake_get()->n_launches - before;
}

int main(void)
{
    static const shape shapes[] = {{6, 64, TN_TYPE_F16, false},
                                   {2, 128, TN_TYPE_BF16, false},
                                   {4, 128, TN_TYPE_F16, false},
                                   {6, 64, TN_TYPE_BF16, false}};
    static float z[2][TOKENS * NEXT];
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        shape s = shapes[i];
        int64_t together = run(&s, z[0]);
        s.apart = true;
        int64_t apart = run(&s, z[1]);
        // The launch that would round the result of attention.
        bool ok = TEST_CHECK(together + 1 == apart);
        ok &= TEST_CHECK(memcmp(z[0], z[1], sizeof z[0]) == 0);
        if (!ok)
            printf("    %d heads of %d, %s: %d and %d launches\n", (int)s.heads, (int)s.dim,
                   tn_dtype_name(s.cache), (int)together, (int)apart);
    }
    return test_done();
}
