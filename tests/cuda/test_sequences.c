// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One token of each of several sequences on the emulated device: rope_cache and attention share a launch
// where nobody else reads the rotated queries. Results and caches are those of the reference then, and those
// of two launches.
#include "tests/cuda/fake.h"
#include "tests/graph/run_graph.h"

enum { MAX_SEQS = 5, HEADS = 6, KV_HEADS = 2, BLOCK = 64, MOST_BLOCKS = 20, MOST_DIM = 128 };
enum { MOST_ROW = HEADS * MOST_DIM, MOST_CACHE = MAX_SEQS * MOST_BLOCKS * KV_HEADS * BLOCK * MOST_DIM };

typedef struct layer {
    tn_dtype type; // of the caches
    int32_t dim, n_seqs, len[MAX_SEQS]; // keys, that of the token among them; 0: a token that is not stored
    bool normed;
} layer;

static int32_t blocks_of(const layer *l)
{
    int32_t most = 1;
    for (int32_t i = 0; i < l->n_seqs; i++) most = TN_MAX(most, (l->len[i] + BLOCK - 1) / BLOCK);
    return most;
}

// `apart`: the rotated queries are a result too.
static void record(tn_graph *g, const layer *l, bool apart)
{
    int32_t n = l->n_seqs, d = l->dim, blocks = blocks_of(l);
    const int64_t cache[] = {n * blocks, KV_HEADS, BLOCK, d};
    tn_tensor *src[9] = {tn_graph_state(g, "cache k", l->type, 4, cache),
                         tn_graph_state(g, "cache v", l->type, 4, cache),
                         INPUT("q", n, HEADS, d),
                         INPUT("k", n, KV_HEADS, d),
                         INPUT("v", n, KV_HEADS, d),
                         IDS("pos", n),
                         IDS("slots", n)};
    const tn_rope_cache_params p = {
        .has_norm = {l->normed, l->normed}, .eps = 1e-5f, .rope = {.n_rot = d, .base = 10000.0f}};
    if (l->normed) src[7] = WEIGHT("norm q", d), src[8] = WEIGHT("norm k", d);
    tn_node *rope = NULL;
    TEST_CHECK_STATUS(tn_graph_record(g, TN_OP_rope_cache, l->normed ? 9 : 7, src, &p, &rope), TN_OK);
    tn_attention_args a = {.q = rope->dst[2],
                           .k = rope->dst[0],
                           .v = rope->dst[1],
                           .q_start = IDS("q_start", n + 1),
                           .kv_len = IDS("kv_len", n),
                           .block_table = IDS("table", n, blocks),
                           .one_query = TN_QUERIES_ONE};
    const tn_attention_params params = {.scale = 0.2f, .causal = 1};
    OUTPUT("y", tn_op_attention(g, &a, &params));
    if (apart) OUTPUT("turned", rope->dst[2]);
    a.q = INPUT("other q", n, HEADS, d); // reads what was stored
    OUTPUT("z", tn_op_attention(g, &a, &params));
}

// Integers of the step: pages are dealt to the sequences in turns.
typedef struct tables {
    int32_t pos[MAX_SEQS], slots[MAX_SEQS], start[MAX_SEQS + 1], len[MAX_SEQS], pages[MAX_SEQS * MOST_BLOCKS];
} tables;

static void fill_tables(const layer *l, tables *t)
{
    int32_t n = l->n_seqs, blocks = blocks_of(l);
    for (int32_t i = 0; i < n; i++) {
        for (int32_t b = 0; b < blocks; b++) t->pages[i * blocks + b] = b * n + (b + i) % n;
        t->start[i] = i, t->len[i] = TN_MAX(l->len[i], 1), t->pos[i] = t->len[i] - 1;
        t->slots[i] = t->pages[i * blocks + t->pos[i] / BLOCK] * BLOCK + t->pos[i] % BLOCK;
        if (l->len[i] == 0) t->slots[i] = -1;
    }
    t->start[n] = n;
}

// Runs the step on a device, or by the reference where that is NULL: the results y and z, and how many
// kernels ran.
static int64_t run(const layer *l, const char *device_name, bool apart, float *y, float *z)
{
    tn_context *ctx = graph_context(device_name ? NULL : "reference", 1);
    tn_graph *g = new_graph(ctx);
    record(g, l, apart);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = device_name ? tn_context_device_by_name(ctx, device_name) : NULL;
    if (device) cfg.devices = &device, cfg.n_devices = 1;
    size_t n = (size_t)l->n_seqs, d = (size_t)l->dim, rows = n * (size_t)blocks_of(l) * KV_HEADS * BLOCK;
    size_t cache = tn_dtype_row_size(l->type, (int64_t)(rows * d));
    tables t;
    fill_tables(l, &t);
    tn_binding bound[] = {{"cache k", values_of("cache k", l->type, rows * d), cache},
                          {"cache v", values_of("cache v", l->type, rows * d), cache},
                          {"norm q", values_of("norm q", TN_TYPE_F32, d), d * sizeof(float)},
                          {"norm k", values_of("norm k", TN_TYPE_F32, d), d * sizeof(float)}};
    tn_binding in[] = {{"q", values_of("q", TN_TYPE_F32, n * HEADS * d), n * HEADS * d * sizeof(float)},
                       {"k", values_of("k", TN_TYPE_F32, n * KV_HEADS * d), n * KV_HEADS * d * sizeof(float)},
                       {"v", values_of("v", TN_TYPE_F32, n * KV_HEADS * d), n * KV_HEADS * d * sizeof(float)},
                       {"other q", values_of("other", TN_TYPE_F32, n * HEADS * d),
                        n * HEADS * d * sizeof(float)},
                       {"pos", t.pos, n * sizeof(int32_t)},
                       {"slots", t.slots, n * sizeof(int32_t)},
                       {"q_start", t.start, (n + 1) * sizeof(int32_t)},
                       {"kv_len", t.len, n * sizeof(int32_t)},
                       {"table", t.pages, n * (size_t)blocks_of(l) * sizeof(int32_t)}};
    enum { N_BOUND = TN_COUNT(bound), N_VALUES = 4 };
    tn_binding out[] = {{"y", y, n * HEADS * d * sizeof *y}, {"z", z, n * HEADS * d * sizeof *z}};
    int64_t before = fake_get()->n_launches;
    run_args args = {&cfg, bound, l->normed ? N_BOUND : N_BOUND - 2, in, TN_COUNT(in)};
    if (!TEST_CHECK_STATUS(run_graph(g, &args, out, 2), TN_OK)) message_has(ctx, "-");
    for (size_t i = 0; i < N_BOUND; i++) free((void *)(uintptr_t)bound[i].data);
    for (size_t i = 0; i < N_VALUES; i++) free((void *)(uintptr_t)in[i].data);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    return fake_get()->n_launches - before;
}

static void check(layer l)
{
    static float y[3][MAX_SEQS * MOST_ROW], z[3][MAX_SEQS * MOST_ROW];
    size_t row = HEADS * (size_t)l.dim;
    run(&l, NULL, false, y[0], z[0]);
    int64_t together = run(&l, "cuda", false, y[1], z[1]), apart = run(&l, "cuda", true, y[2], z[2]);
    bool ok = TEST_CHECK(together + 1 == apart);
    double worst[3] = {0.0, 0.0, 0.0};
    for (int32_t i = 0; i < l.n_seqs; i++) {
        if (l.len[i] == 0) continue; // reads what another sequence may be writing
        size_t at = (size_t)i * row;
        // The device rounds angles, and with them rows of the cache, in another place.
        worst[0] = TN_MAX(worst[0], deviation(y[1] + at, y[0] + at, row));
        worst[1] = TN_MAX(worst[1], deviation(z[1] + at, z[0] + at, row));
        worst[2] = TN_MAX(worst[2], deviation(y[1] + at, y[2] + at, row));
    }
    ok &= TEST_CHECK(worst[0] < 2e-3) & TEST_CHECK(worst[1] < 2e-3) & TEST_CHECK(worst[2] < 1e-3);
    if (!ok)
        printf("    %s, heads of %d, %d sequences, keys %d: %d and %d launches; off by %g, %g, %g\n",
               tn_dtype_name(l.type), l.dim, l.n_seqs, l.len[0], (int)together, (int)apart, worst[0],
               worst[1], worst[2]);
}

int main(void)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    for (size_t i = 0; i < TN_COUNT(types); i++) {
        check((layer){types[i], 64, 5, {1, 63, 65, 0, 1000}, false});
        check((layer){types[i], 128, 3, {64, 1, 129}, true});
        check((layer){types[i], 128, 2, {300, 1280}, false});
    }
    return test_done();
}
