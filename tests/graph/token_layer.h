// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer that gets one token of each of several sequences: rope_cache, the attention that reads its results,
// and another attention that reads what was stored. Devices may do the first two together.
#ifndef TN_TESTS_GRAPH_TOKEN_LAYER_H
#define TN_TESTS_GRAPH_TOKEN_LAYER_H

#include "tests/graph/run_graph.h"

enum { MAX_SEQS = 5, HEADS = 6, KV_HEADS = 2, BLOCK = 64, MOST_BLOCKS = 20, MOST_DIM = 128 };
enum { MOST_ROW = HEADS * MOST_DIM };

typedef struct layer {
    tn_dtype type;                      // of the caches
    int32_t dim, n_seqs, len[MAX_SEQS]; // keys, that of the token among them; 0: a token that is not stored
    bool normed, factors;
    int32_t n_rot;                 // elements of a head that are turned; 0: all
    int32_t mode;                  // TN_ROPE_*
    tn_attention_params attention; // scale 0: 0.2, causal
    bool sinks;
} layer;

static inline int32_t blocks_of(const layer *l)
{
    int32_t most = 1;
    for (int32_t i = 0; i < l->n_seqs; i++) most = TN_MAX(most, (l->len[i] + BLOCK - 1) / BLOCK);
    return most;
}

static inline int32_t turned_of(const layer *l)
{
    return l->n_rot > 0 ? l->n_rot : l->dim;
}

// `apart`: the rotated queries are a result too.
static inline void record_layer(tn_graph *g, const layer *l, bool apart)
{
    int32_t n = l->n_seqs, d = l->dim, blocks = blocks_of(l), n_src = 7;
    const int64_t cache[] = {n * blocks, KV_HEADS, BLOCK, d};
    tn_tensor *src[10] = {tn_graph_state(g, "cache k", l->type, 4, cache),
                          tn_graph_state(g, "cache v", l->type, 4, cache),
                          INPUT("q", n, HEADS, d),
                          INPUT("k", n, KV_HEADS, d),
                          INPUT("v", n, KV_HEADS, d),
                          IDS("pos", n),
                          IDS("slots", n)};
    const tn_rope_cache_params p = {.has_norm = {l->normed, l->normed},
                                    .eps = 1e-5f,
                                    .rope = {.n_rot = turned_of(l), .base = 10000.0f, .mode = l->mode}};
    if (l->normed) src[7] = WEIGHT("norm q", d), src[8] = WEIGHT("norm k", d), n_src = 9;
    if (l->factors) src[9] = WEIGHT("factors", turned_of(l) / 2), n_src = 10;
    tn_node *rope = NULL;
    TEST_CHECK_STATUS(tn_graph_record(g, TN_OP_rope_cache, n_src, src, &p, &rope), TN_OK);
    tn_attention_args a = {.q = rope->dst[2],
                           .k = rope->dst[0],
                           .v = rope->dst[1],
                           .q_start = IDS("q_start", n + 1),
                           .kv_len = IDS("kv_len", n),
                           .block_table = IDS("table", n, blocks),
                           .sinks = l->sinks ? WEIGHT("sinks", HEADS) : NULL,
                           .one_query = TN_QUERIES_ONE};
    tn_attention_params params = l->attention;
    if (params.scale == 0.0f) params.scale = 0.2f, params.causal = 1;
    OUTPUT("y", tn_op_attention(g, &a, &params));
    if (apart) OUTPUT("turned", rope->dst[2]);
    a.q = INPUT("other q", n, HEADS, d); // reads what was stored
    OUTPUT("z", tn_op_attention(g, &a, &params));
}

// Integers of the step: pages are dealt to the sequences in turns.
typedef struct tables {
    int32_t pos[MAX_SEQS], slots[MAX_SEQS], start[MAX_SEQS + 1], len[MAX_SEQS], pages[MAX_SEQS * MOST_BLOCKS];
} tables;

static inline void fill_tables(const layer *l, tables *t)
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

// Runs the layer on a device, or by the reference of a context without one: the results y and z. Returns
// whether the plan does rope_cache in attention.
static inline bool run_layer(tn_context *ctx, tn_device *device, const layer *l, bool apart, float *y,
                             float *z)
{
    tn_graph *g = new_graph(ctx);
    record_layer(g, l, apart);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    if (device) cfg.devices = &device, cfg.n_devices = 1;
    size_t n = (size_t)l->n_seqs, d = (size_t)l->dim, rows = n * (size_t)blocks_of(l) * KV_HEADS * BLOCK,
           heads = n * HEADS * d, kv_heads = n * KV_HEADS * d;
    const named_values given[] = {
        {"cache k", l->type, rows * d}, {"cache v", l->type, rows * d}, {"q", TN_TYPE_F32, heads},
        {"k", TN_TYPE_F32, kv_heads},   {"v", TN_TYPE_F32, kv_heads},   {"other q", TN_TYPE_F32, heads},
        {"norm q", TN_TYPE_F32, d},     {"norm k", TN_TYPE_F32, d},     {"sinks", TN_TYPE_F32, HEADS}};
    enum { N_GIVEN = TN_COUNT(given), N_STATES = 2, N_INPUTS = 4, N_NORMS = 2 };
    tn_binding values[N_GIVEN], bound[N_GIVEN + 1], in[N_INPUTS + 5];
    bind_values(given, N_GIVEN, values);
    float factors[MOST_DIM / 2];
    for (int32_t i = 0; i < MOST_DIM / 2; i++) factors[i] = 1.0f + (float)(i % 7) * 0.37f;
    tables t;
    fill_tables(l, &t);
    int32_t n_bound = 0, n_in = 0;
    for (int32_t i = 0; i < N_STATES; i++) bound[n_bound++] = values[i];
    for (int32_t i = 0; i < N_INPUTS; i++) in[n_in++] = values[N_STATES + i];
    for (int32_t i = 0; i < N_NORMS && l->normed; i++) bound[n_bound++] = values[N_STATES + N_INPUTS + i];
    if (l->sinks) bound[n_bound++] = values[N_GIVEN - 1];
    if (l->factors)
        bound[n_bound++] = (tn_binding){"factors", factors, (size_t)turned_of(l) / 2 * sizeof(float)};
    const tn_binding integers[] = {{"pos", t.pos, n * sizeof(int32_t)},
                                   {"slots", t.slots, n * sizeof(int32_t)},
                                   {"q_start", t.start, (n + 1) * sizeof(int32_t)},
                                   {"kv_len", t.len, n * sizeof(int32_t)},
                                   {"table", t.pages, n * (size_t)blocks_of(l) * sizeof(int32_t)}};
    for (size_t i = 0; i < TN_COUNT(integers); i++) in[n_in++] = integers[i];
    tn_binding out[] = {{"y", y, heads * sizeof *y}, {"z", z, heads * sizeof *z}};
    tn_plan *plan = NULL;
    bool folds = false;
    if (TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK)) {
        for (int32_t i = 0; i < plan->n_steps; i++)
            folds = folds || (plan->steps[i].step.join.next & TN_JOIN_FOLD) != 0;
        run_args args = {&cfg, bound, n_bound, in, n_in};
        if (!TEST_CHECK_STATUS(run_plan(plan, &args, out, 2), TN_OK)) message_has(ctx, "-");
    }
    tn_plan_unref(&plan);
    free_values(values, N_GIVEN);
    tn_graph_destroy(&g);
    return folds;
}

// How far results are from those that are wanted, of the sequences whose token is stored: the others read
// what another sequence may be writing.
static inline double layer_deviation(const layer *l, const float *got, const float *want)
{
    double worst = 0.0;
    size_t row = HEADS * (size_t)l->dim;
    for (int32_t i = 0; i < l->n_seqs; i++)
        if (l->len[i] > 0)
            worst = TN_MAX(worst, deviation(got + (size_t)i * row, want + (size_t)i * row, row));
    return worst;
}

// The results y and z of the reference, of a device that does both steps together, and of one that does them
// apart.
typedef struct layer_results {
    float y[3][MAX_SEQS * MOST_ROW], z[3][MAX_SEQS * MOST_ROW];
} layer_results;

// ok: what else was checked. The device rounds angles, and with them rows of the cache, in another place than
// the reference.
static inline void check_layer(const layer *l, const layer_results *r, bool ok)
{
    double far_y = layer_deviation(l, r->y[1], r->y[0]), far_z = layer_deviation(l, r->z[1], r->z[0]),
           far_apart = layer_deviation(l, r->y[1], r->y[2]);
    ok &= TEST_CHECK(far_y < 2e-3);
    ok &= TEST_CHECK(far_z < 2e-3);
    ok &= TEST_CHECK(far_apart < 1e-3);
    if (!ok)
        printf("    %s, heads of %d, %d sequences, keys %d: off by %g, %g, %g\n", tn_dtype_name(l->type),
               l->dim, l->n_seqs, l->len[0], far_y, far_z, far_apart);
}

#endif
