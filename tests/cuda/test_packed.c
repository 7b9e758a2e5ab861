// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Results in 16 bits on the emulated device: rope_cache leaves the queries of attention over many queries in
// the type of the cache, attention leaves its result as bf16 or f16 rows of the product after it, and a gated
// pair as f16 rows, where nobody else reads them. All round what they leave as their readers would, so
// results have the same bits as with separate steps; but for f16, whose smallest values have fewer bits:
// there the power of two that a row is multiplied by is another one, and results differ by some 1e-7. Up to 8
// rows of a gated pair in bf16 are left as two parts each, which lose nothing either.
#include "ops/operands.h"
#include "ops/quant.h"
#include "tests/cuda/fake.h"
#include "tests/graph/run_graph.h"

#include <math.h>

// What may differ where rows are f16, as a share of the largest result of a row.
#define SMALL   1e-6
#define ROUNDED 7.8125e-3 // 2^-7: results of attention are rounded to bf16 from sums in another order

enum {
    TOKENS = 150, // of two sequences; more than 128 rows, so that the product is gemm_bf16
    FIRST = 97,   // tokens of the first one
    SINGLE = 7,   // sequences of one token that sees so many keys, which may be there, too
    SEEN = 30,
    SEQS = 2 + SINGLE,
    KV_HEADS = 2,
    BLOCK = 64,
    BLOCKS = 4 + SINGLE,
    NEXT = 40,
    MOST_HEADS = 6,
    MOST_DIM = 128,
    MOST = TOKENS * MOST_HEADS * MOST_DIM,
};

typedef struct shape {
    int64_t heads, dim;
    tn_dtype cache, weight;
    bool apart;     // queries and the result of attention are results too
    int32_t single; // the last so many tokens are sequences of their own
    bool mixed;     // TN_QUERIES_MIXED
} shape;

static float values[MOST];

static float *fill(const char *name, size_t n)
{
    fill_value(name, TN_TYPE_F32, values, n * sizeof *values);
    return values;
}

static size_t bytes_of(tn_dtype type, size_t n)
{
    return n / (size_t)tn_dtype_block_elems(type) * (size_t)tn_dtype_block_size(type);
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
                           .q_start = IDS("q_start", 3 + s->single),
                           .kv_len = IDS("kv_len", 2 + s->single),
                           .block_table = IDS("table", 2 + s->single, 2),
                           .one_query = s->mixed ? TN_QUERIES_MIXED : TN_QUERIES_ANY};
    tn_tensor *y = tn_op_attention(g, &a, &(tn_attention_params){.scale = 0.1f, .causal = 1});
    tn_tensor *w = tn_graph_weight(g, "w", s->weight, SHAPE(NEXT, s->heads * s->dim));
    OUTPUT("z", tn_op_matmul(g, tn_op_reshape(g, y, SHAPE(TOKENS, s->heads * s->dim)), w));
    if (!s->apart) return;
    OUTPUT("turned", r->dst[TN_DST_rope_cache_q]);
    OUTPUT("y", y);
}

// Gives z, and how many kernels ran.
static int64_t run(const shape *s, float *z)
{
    static int32_t pos[TOKENS], slots[TOKENS], q_start[SEQS + 1], kv_len[SEQS],
        table[2 * SEQS] = {2, 0, 3, 1};
    static uint16_t w[NEXT * MOST_HEADS * MOST_DIM], zeros[BLOCKS * KV_HEADS * BLOCK * MOST_DIM];
    static float q[MOST], k[TOKENS * KV_HEADS * MOST_DIM], v[TOKENS * KV_HEADS * MOST_DIM];
    size_t n_q = (size_t)(TOKENS * s->heads * s->dim), n_kv = (size_t)(TOKENS * KV_HEADS * s->dim),
           n_w = (size_t)(NEXT * s->heads * s->dim), n_cache = (size_t)(BLOCKS * KV_HEADS * BLOCK * s->dim);
    const int32_t n_seq = 2 + s->single;
    for (int32_t i = 0; i < n_seq; i++) {
        if (i >= 2) table[2 * i] = table[2 * i + 1] = 2 + i;
        q_start[i + 1] = i == 0 ? FIRST : TOKENS - s->single + TN_MAX(i - 1, 0);
        kv_len[i] = i < 2 ? q_start[i + 1] - q_start[i] : SEEN;
        for (int32_t t = q_start[i]; t < q_start[i + 1]; t++) {
            pos[t] = kv_len[i] - (q_start[i + 1] - t);
            slots[t] = table[2 * i + pos[t] / BLOCK] * BLOCK + pos[t] % BLOCK;
        }
    }
    memcpy(q, fill("q", n_q), n_q * sizeof *q);
    memcpy(k, fill("k", n_kv), n_kv * sizeof *k);
    memcpy(v, fill("v", n_kv), n_kv * sizeof *v);
    tn_quant_info_get(s->weight)->from_f32(fill("w", n_w), w, (int64_t)n_w, NULL);
    tn_context *ctx = graph_context(NULL, 1);
    tn_graph *g = new_graph(ctx);
    record(g, s);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    const tn_binding bound[] = {
        {"cache k", zeros, n_cache * 2}, {"cache v", zeros, n_cache * 2}, {"w", w, bytes_of(s->weight, n_w)}};
    const tn_binding in[] = {{"q", q, n_q * 4},
                             {"k", k, n_kv * 4},
                             {"v", v, n_kv * 4},
                             {"pos", pos, sizeof pos},
                             {"slots", slots, sizeof slots},
                             {"q_start", q_start, (size_t)(n_seq + 1) * sizeof *q_start},
                             {"kv_len", kv_len, (size_t)n_seq * sizeof *kv_len},
                             {"table", table, 2 * (size_t)n_seq * sizeof *table}};
    const tn_binding out[] = {{"z", z, TOKENS * NEXT * sizeof *z}};
    int64_t before = fake_get()->n_launches;
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, bound, 3, in, TN_COUNT(in)}, out, 1), TN_OK);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    return fake_get()->n_launches - before;
}

// The largest difference of rows of `n` values, as a share of the largest value of a row.
static double largest_difference(const float *a, const float *b, int64_t rows, int64_t n)
{
    double worst = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        double largest = 0.0, off = 0.0;
        for (int64_t i = r * n; i < (r + 1) * n; i++) {
            largest = fmax(largest, fabs((double)b[i]));
            off = fmax(off, fabs((double)a[i] - (double)b[i]));
        }
        if (off > 0.0 && !(off <= worst * largest)) worst = off / largest;
    }
    return worst;
}

static void test_attention(void)
{
    static const shape shapes[] = {{.heads = 6, .dim = 64, .cache = TN_TYPE_F16, .weight = TN_TYPE_BF16},
                                   {.heads = 2, .dim = 128, .cache = TN_TYPE_BF16, .weight = TN_TYPE_BF16},
                                   {.heads = 4, .dim = 128, .cache = TN_TYPE_F16, .weight = TN_TYPE_BF16},
                                   {.heads = 6, .dim = 64, .cache = TN_TYPE_BF16, .weight = TN_TYPE_BF16},
                                   {.heads = 4, .dim = 64, .cache = TN_TYPE_F16, .weight = TN_TYPE_Q4_K},
                                   {.heads = 4, .dim = 128, .cache = TN_TYPE_F16, .weight = TN_TYPE_Q6_K}};
    static float z[2][TOKENS * NEXT];
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        shape s = shapes[i];
        int64_t together = run(&s, z[0]);
        s.apart = true;
        int64_t apart = run(&s, z[1]);
        // The launch that would round the result of attention.
        bool ok = TEST_CHECK(together + 1 == apart);
        ok &= TEST_CHECK(largest_difference(z[0], z[1], TOKENS, NEXT) <=
                         (s.weight == TN_TYPE_BF16 ? 0.0 : SMALL));
        if (!ok)
            printf("    %d heads of %d, %s, %s: %d and %d launches\n", (int)s.heads, (int)s.dim,
                   tn_dtype_name(s.cache), tn_dtype_name(s.weight), (int)together, (int)apart);
    }
}

// Single tokens beside two pieces of prompts have a launch of their own where there are so many that they
// fill the device (with TN_EMULATED_SMS=1).
static void test_mixed(void)
{
    static const shape shapes[] = {
        {.heads = 6, .dim = 64, .cache = TN_TYPE_BF16, .weight = TN_TYPE_BF16, .single = SINGLE},
        {.heads = 4, .dim = 128, .cache = TN_TYPE_F16, .weight = TN_TYPE_BF16, .single = SINGLE},
        {.heads = 4, .dim = 128, .cache = TN_TYPE_F16, .weight = TN_TYPE_Q6_K, .single = SINGLE}};
    static float z[2][TOKENS * NEXT];
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        shape s = shapes[i];
        for (int32_t apart = 0; apart < 2; apart++) {
            s.apart = apart, s.mixed = false;
            int64_t one = run(&s, z[0]);
            s.mixed = true;
            int64_t two = run(&s, z[1]);
            double off = largest_difference(z[1], z[0], TOKENS, NEXT);
            if (!TEST_CHECK(one + 1 == two) || !TEST_CHECK(off <= ROUNDED))
                printf("    %d heads of %d, %s: %d and %d launches, %g\n", (int)s.heads, (int)s.dim,
                       tn_dtype_name(s.cache), (int)one, (int)two, off);
        }
    }
}

// --- gated pairs -------------------------------------------------------------------------------------

enum { WIDTH = 512, INNER = 768 };

// y = down (silu(gate x) (up x)) of `rows` rows; `apart`: the gated pair is a result too. Gives how many
// kernels ran.
static int64_t run_pair(tn_dtype type, int64_t rows, bool apart, float *y)
{
    static float x[TOKENS * WIDTH], wide[INNER * WIDTH];
    static char w[3][INNER * WIDTH * 2];
    static const char *const names[] = {"gate", "up", "down"};
    tn_context *ctx = graph_context(NULL, 1);
    tn_graph *g = new_graph(ctx);
    tn_binding bound[3];
    tn_tensor *in = INPUT("x", rows, WIDTH), *weights[3];
    for (int32_t i = 0; i < 3; i++) {
        fill_value(names[i], TN_TYPE_F32, wide, sizeof wide);
        tn_quant_info_get(type)->from_f32(wide, w[i], INNER * WIDTH, NULL);
        bound[i] = (tn_binding){names[i], w[i], bytes_of(type, INNER * WIDTH)};
        weights[i] = i < 2 ? tn_graph_weight(g, names[i], type, SHAPE(INNER, WIDTH))
                           : tn_graph_weight(g, names[i], type, SHAPE(WIDTH, INNER));
    }
    tn_tensor *gate = tn_op_matmul(g, in, weights[0]), *up = tn_op_matmul(g, in, weights[1]);
    tn_tensor *h = tn_op_glu(g, gate, up, &(tn_glu_params){.act = TN_UNARY_SILU});
    OUTPUT("y", tn_op_matmul(g, h, weights[2]));
    if (apart) OUTPUT("h", h);
    fill_value("x", TN_TYPE_F32, x, sizeof x);
    for (int32_t i = 0; i < WIDTH; i++) x[i] *= 1e-3f, x[WIDTH + i] *= 1e4f; // rows of other sizes
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    const tn_binding inputs[] = {{"x", x, (size_t)(rows * WIDTH) * sizeof *x}};
    const tn_binding out[] = {{"y", y, (size_t)(rows * WIDTH) * sizeof *y}};
    int64_t before = fake_get()->n_launches;
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, bound, 3, inputs, 1}, out, 1), TN_OK);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    return fake_get()->n_launches - before;
}

static void test_pairs(void)
{
    static const struct {
        tn_dtype type;
        int64_t rows;
        int64_t measures; // launches
    } pairs[] = {{TN_TYPE_Q4_K, TOKENS, 4},
                 {TN_TYPE_Q6_K, 83, 4},
                 {TN_TYPE_Q8_0, 129, 4},
                 {TN_TYPE_BF16, 8, 0},
                 {TN_TYPE_BF16, 3, 0}};
    static float y[2][TOKENS * WIDTH];
    for (size_t i = 0; i < TN_COUNT(pairs); i++) {
        int64_t together = run_pair(pairs[i].type, pairs[i].rows, false, y[0]);
        int64_t apart = run_pair(pairs[i].type, pairs[i].rows, true, y[1]);
        // Two launches for the norm of each weight that is measured once; then that for x of the last
        // product.
        bool ok = TEST_CHECK(together - pairs[i].measures + 1 == apart);
        ok &= TEST_CHECK(largest_difference(y[0], y[1], pairs[i].rows, WIDTH) <=
                         (pairs[i].type == TN_TYPE_BF16 ? 0.0 : SMALL));
        if (!ok)
            printf("    %s, %d rows: %d and %d launches\n", tn_dtype_name(pairs[i].type), (int)pairs[i].rows,
                   (int)together, (int)apart);
    }
}

int main(void)
{
    if (fake_get()->n_sms == 1) {
        test_mixed();
        return test_done();
    }
    test_attention();
    test_pairs();
    return test_done();
}
