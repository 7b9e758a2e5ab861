// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of attention over a paged cache.
#include "tests/check/check.h"

#include <math.h>

// --- attention -------------------------------------------------------------------------------------

enum { MAX_SEQS = 24 };

typedef struct attention_shape {
    int32_t n_seqs, q_len[MAX_SEQS], kv_len[MAX_SEQS];
    int32_t heads, kv_heads, k_dim, v_dim, block;
    tn_dtype k_type, v_type;
    bool sinks, strided_q;
    int32_t v_longer;                     // elements that the rows of v are a part of, more than v_dim
    bool v_in_k;                          // those rows are the ones of k
    bool one_query, uneven, apart, mixed; // said of the sequences, see tn_step_join
    double q_scale, v_scale;              // 0: normal
} attention_shape;

// Blocks in shuffled order with a few unused ones between; table rows are longer than needed, and what is
// not needed points outside, since nobody may read it.
static void add_tables(check_case *c, const attention_shape *s, int32_t max_blocks, int32_t n_blocks)
{
    check_rng r = {(uint64_t)c->n_ints + (uint64_t)n_blocks * 977u};
    int32_t *start = check_ints(c, check_vec(c, TN_TYPE_I32, s->n_seqs + 1), s->n_seqs + 1);
    int32_t *len = check_ints(c, check_vec(c, TN_TYPE_I32, s->n_seqs), s->n_seqs);
    int32_t *table =
        check_ints(c, check_mat(c, TN_TYPE_I32, s->n_seqs, max_blocks), (int64_t)s->n_seqs * max_blocks);
    int32_t order[CHECK_POOL];
    for (int32_t i = 0; i < n_blocks; i++) order[i] = i;
    for (int32_t i = n_blocks - 1; i > 0; i--) {
        int32_t j = (int32_t)check_random_int(&r, 0, i), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    start[0] = 0;
    for (int32_t q = 0, next = 0; q < s->n_seqs; q++) {
        start[q + 1] = start[q] + s->q_len[q];
        len[q] = s->kv_len[q];
        for (int32_t b = 0; b < max_blocks; b++)
            table[q * max_blocks + b] = b * s->block < s->kv_len[q] ? order[next++] : 0x7fffff00;
    }
}

static void attention_case(check_run *run, const attention_shape *s, const tn_attention_params *p)
{
    int32_t n_tokens = 0, n_blocks = 2, max_blocks = 1;
    for (int32_t i = 0; i < s->n_seqs; i++) {
        int32_t blocks = (s->kv_len[i] + s->block - 1) / s->block;
        n_tokens += s->q_len[i];
        n_blocks += blocks;
        max_blocks = TN_MAX(max_blocks, blocks + 1);
    }
    check_case c;
    check_begin(&c, TN_OP_attention);
    c.type = s->k_type;
    c.one_query = s->one_query, c.uneven = s->uneven, c.apart = s->apart, c.mixed = s->mixed;
    c.params.attention = *p;
    if (p->scale == 0.0f) c.params.attention.scale = (float)(1.0 / sqrt((double)s->k_dim));
    check_operand *q = check_cube(&c, TN_TYPE_F32, n_tokens, s->heads, s->k_dim);
    if (s->q_scale != 0.0) check_range(q, CHECK_NORMAL, 0.0, s->q_scale);
    if (s->strided_q) { // heads of a fused projection: longer token rows
        q->parent[2] += 2;
        q->start[2] = 1;
    }
    check_src(&c, s->k_type, 4, (int64_t[]){n_blocks, s->kv_heads, s->block, s->k_dim});
    check_operand *v = check_src(&c, s->v_type, 4, (int64_t[]){n_blocks, s->kv_heads, s->block, s->v_dim});
    if (s->v_scale != 0.0) check_range(v, CHECK_NORMAL, 0.0, s->v_scale);
    v->parent[3] += s->v_longer;
    v->shared = s->v_in_k;
    add_tables(&c, s, max_blocks, n_blocks);
    if (s->sinks) check_vec(&c, TN_TYPE_F32, s->heads);
    snprintf(c.note, sizeof c.note, "q %d kv %d, %s causal %d window %d chunk %d softcap %g alibi %g%s",
             s->q_len[0], s->kv_len[0], tn_dtype_name(s->v_type), p->causal, p->window, p->chunk,
             (double)p->softcap, (double)p->max_bias, s->sinks ? " sinks" : "");
    check_emit(run, &c);
}

static const attention_shape base = {.n_seqs = 1,
                                     .q_len = {3},
                                     .kv_len = {37},
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .k_dim = 64,
                                     .v_dim = 64,
                                     .block = 16,
                                     .k_type = TN_TYPE_F16,
                                     .v_type = TN_TYPE_F16};

static void cases_types(check_run *run)
{
    tn_attention_params p = {.causal = 1};
    for (size_t i = 0; i < TN_COUNT(check_cache_types); i++) {
        for (size_t j = 0; j < TN_COUNT(check_cache_types); j++) {
            attention_shape s = base;
            s.k_type = check_cache_types[i];
            s.v_type = check_cache_types[j];
            attention_case(run, &s, &p);
            s.q_len[0] = s.kv_len[0] = 21; // prefill
            attention_case(run, &s, &p);
            s.q_len[0] = 1; // decode
            s.kv_len[0] = 130;
            attention_case(run, &s, &p);
        }
    }
}

static void cases_dims(check_run *run)
{
    static const int32_t dims[] = {32, 64, 80, 96, 128, 256},
                         heads[][2] = {{2, 2}, {4, 2}, {4, 1}, {8, 1}, {6, 2}};
    tn_attention_params p = {.causal = 1};
    for (size_t i = 0; i < TN_COUNT(dims); i++) {
        for (size_t j = 0; j < TN_COUNT(heads); j++) {
            attention_shape s = base;
            bool q8 = (i + j) % 2 == 1 && dims[i] % 32 == 0;
            s.k_dim = s.v_dim = dims[i];
            s.k_type = s.v_type = q8 ? TN_TYPE_Q8_0 : j % 2 == 0 ? TN_TYPE_F32 : TN_TYPE_F16;
            s.heads = heads[j][0];
            s.kv_heads = heads[j][1];
            s.strided_q = j == 1;
            attention_case(run, &s, &p);
            s.q_len[0] = 1;
            s.kv_len[0] = 70;
            attention_case(run, &s, &p);
        }
    }
    attention_shape s = base; // keys wider than values, a single key, odd sizes
    s.k_dim = 192, s.v_dim = 128;
    attention_case(run, &s, &p);
    s = base;
    s.k_dim = s.v_dim = 40, s.k_type = s.v_type = TN_TYPE_F32;
    attention_case(run, &s, &p);
    s.k_dim = 24, s.v_dim = 576, s.kv_heads = 1;
    attention_case(run, &s, &p);
    s = base;
    s.q_len[0] = s.kv_len[0] = 1;
    attention_case(run, &s, &p);
}

static void cases_masks(check_run *run)
{
    static const tn_attention_params rows[] = {
        {.causal = 0},
        {.causal = 1, .window = 8},
        {.causal = 1, .window = 1},
        {.causal = 0, .window = 12},
        {.causal = 1, .chunk = 16},
        {.causal = 1, .chunk = 24, .window = 20},
        {.causal = 1, .softcap = 5.0f},
        {.causal = 1, .max_bias = 8.0f},
        {.causal = 0, .max_bias = 8.0f},
        {.causal = 1, .softcap = 2.0f, .max_bias = 4.0f, .window = 10},
        {.causal = 1, .scale = 1.0f},
    };
    static const int32_t blocks[] = {16, 32, 64, 256};
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        for (size_t j = 0; j < TN_COUNT(blocks); j++) {
            attention_shape s = base;
            s.block = blocks[j];
            s.heads = 6; // no power of two: both ALiBi branches
            s.sinks = j % 2 == 1;
            s.q_len[0] = j == 0 ? 1 : 5 + 10 * (int32_t)j;
            s.kv_len[0] = 45 + 5 * (int32_t)j;
            s.k_type = j == 2 ? TN_TYPE_Q8_0 : TN_TYPE_F16;
            attention_case(run, &s, &rows[i]);
        }
    }
}

static void cases_batches(check_run *run)
{
    static const attention_shape rows[] = {
        {.n_seqs = 3, .q_len = {1, 1, 1}, .kv_len = {1, 65, 17}},
        {.n_seqs = 4, .q_len = {5, 1, 20, 2}, .kv_len = {5, 40, 33, 2}},
        {.n_seqs = 2, .q_len = {0, 3}, .kv_len = {9, 64}},
        {.n_seqs = 2, .q_len = {33, 1}, .kv_len = {33, 300}},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        for (int32_t causal = 0; causal < 2; causal++) {
            attention_shape s = base;
            s.n_seqs = rows[i].n_seqs;
            for (int32_t q = 0; q < s.n_seqs; q++)
                s.q_len[q] = rows[i].q_len[q], s.kv_len[q] = rows[i].kv_len[q];
            s.v_type = causal ? TN_TYPE_Q4_0 : TN_TYPE_F32;
            attention_case(run, &s, &(tn_attention_params){.causal = causal});
        }
    }
}

// Long caches: decode, and a chunk of queries at the end of one.
static void cases_long(check_run *run)
{
    static const int32_t rows[][2] = {{1, 2049}, {1, 4500}, {1, 3000}, {4, 1500}, {17, 700}};
    size_t count = run->options.quick ? 2 : TN_COUNT(rows);
    for (size_t i = 0; i < count; i++) {
        for (int32_t form = 0; form < 3; form++) {
            attention_shape s = base;
            s.heads = form == 1 ? 11 : 2, s.kv_heads = 1;
            s.q_len[0] = rows[i][0];
            s.kv_len[0] = rows[i][1];
            s.block = form == 0 ? 16 : 64;
            s.k_type = s.v_type = form == 2 ? TN_TYPE_Q8_0 : TN_TYPE_F16;
            s.sinks = form == 1;
            attention_case(run, &s, &(tn_attention_params){.causal = 1, .window = form == 1 ? 1024 : 0});
        }
    }
    attention_shape s = base; // scores so far apart that one key takes all, and all alike
    s.q_scale = 1000.0;
    attention_case(run, &s, &(tn_attention_params){.causal = 1});
    s.q_scale = 1e-20;
    attention_case(run, &s, &(tn_attention_params){.causal = 1});
}

// Many queries over pages as models have them: several tiles of rows and of keys, sequences that end inside
// them.
static void cases_prefill(check_run *run)
{
    static const attention_shape rows[] = {
        {.n_seqs = 1, .q_len = {150}, .kv_len = {150}, .heads = 4, .kv_heads = 2, .k_dim = 64},
        {.n_seqs = 3,
         .q_len = {70, 1, 40},
         .kv_len = {333, 200, 40},
         .heads = 2,
         .kv_heads = 1,
         .k_dim = 128},
        {.n_seqs = 2, .q_len = {0, 65}, .kv_len = {7, 257}, .heads = 3, .kv_heads = 1, .k_dim = 128},
        {.n_seqs = 2, .q_len = {50, 33}, .kv_len = {190, 33}, .heads = 2, .kv_heads = 2, .k_dim = 256},
        {.n_seqs = 4,
         .q_len = {127, 63, 0, 1},
         .kv_len = {127, 191, 3, 129},
         .heads = 3,
         .kv_heads = 3,
         .k_dim = 64},
        {.n_seqs = 1, .q_len = {260}, .kv_len = {389}, .heads = 2, .kv_heads = 1, .k_dim = 128},
    };
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    static const tn_attention_params params[] = {{.causal = 1},
                                                 {.causal = 0},
                                                 {.causal = 1, .window = 100},
                                                 {.causal = 1, .softcap = 5.0f, .max_bias = 4.0f}};
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        for (size_t t = 0; t < TN_COUNT(types); t++)
            for (size_t j = 0; j < TN_COUNT(params); j++) {
                if (run->options.quick && j != (i + t) % TN_COUNT(params)) continue;
                attention_shape s = rows[i];
                s.v_dim = s.k_dim;
                s.block = t == 3 ? 128 : 64;
                s.k_type = s.v_type = types[t];
                s.sinks = j == 1;
                s.strided_q = j == 2;
                attention_case(run, &s, &params[j]);
            }
}

// Compressed caches: one KV head, keys wider than values, values that are the first part of longer rows.
static void cases_compressed(check_run *run)
{
    static const int32_t lengths[][2] = {{1, 70}, {3, 37}, {40, 150}};
    tn_attention_params p = {.causal = 1};
    for (size_t t = 0; t < TN_COUNT(check_cache_types); t++)
        for (size_t i = 0; i < TN_COUNT(lengths); i++) {
            attention_shape s = base;
            s.kv_heads = 1;
            s.heads = i == 2 ? 2 : 16;
            s.k_dim = 576, s.v_dim = 512, s.v_longer = 64, s.v_in_k = true;
            s.block = 64;
            s.k_type = s.v_type = check_cache_types[t];
            s.q_len[0] = lengths[i][0];
            s.kv_len[0] = lengths[i][1];
            attention_case(run, &s, &p);
            s.heads = 4, s.v_in_k = false;
            s.k_dim = 40, s.v_dim = 32, s.v_longer = 32;
            if (tn_dtype_block_elems(s.k_type) > 1) s.k_dim = 64;
            attention_case(run, &s, &p);
        }
    attention_shape s = base; // no multiple of a vector
    s.k_dim = 44, s.v_dim = 20, s.v_longer = 3, s.k_type = s.v_type = TN_TYPE_F32;
    attention_case(run, &s, &p);
}

// Heads wider than those of most models; compressed caches with every mask, and lengths that are split over
// blocks.
static void cases_wide(check_run *run)
{
    static const attention_shape rows[] = {
        {.n_seqs = 1, .q_len = {1}, .kv_len = {300}, .heads = 2, .kv_heads = 1, .k_dim = 512, .v_dim = 512},
        {.n_seqs = 3,
         .q_len = {1, 1, 1},
         .kv_len = {65, 1, 400},
         .heads = 8,
         .kv_heads = 2,
         .k_dim = 320,
         .v_dim = 288},
        {.n_seqs = 2,
         .q_len = {9, 0},
         .kv_len = {70, 5},
         .heads = 4,
         .kv_heads = 2,
         .k_dim = 512,
         .v_dim = 512},
        {.n_seqs = 1,
         .q_len = {2},
         .kv_len = {700},
         .heads = 16,
         .kv_heads = 1,
         .k_dim = 576,
         .v_dim = 512,
         .v_longer = 64,
         .v_in_k = true},
        {.n_seqs = 2,
         .q_len = {1, 1},
         .kv_len = {520, 40},
         .heads = 40,
         .kv_heads = 1,
         .k_dim = 576,
         .v_dim = 512,
         .v_longer = 64,
         .v_in_k = true},
        {.n_seqs = 2,
         .q_len = {11, 3},
         .kv_len = {180, 3},
         .heads = 7,
         .kv_heads = 1,
         .k_dim = 96,
         .v_dim = 64,
         .v_longer = 32,
         .v_in_k = true},
    };
    static const tn_attention_params params[] = {
        {.causal = 1}, {.causal = 1, .window = 50}, {.causal = 0, .softcap = 5.0f, .max_bias = 4.0f}};
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        for (size_t j = 0; j < (run->options.quick ? 1 : TN_COUNT(params)); j++) {
            attention_shape s = rows[i];
            s.block = 64;
            s.k_type = s.v_type = check_cache_types[(i + j + 1) % TN_COUNT(check_cache_types)];
            s.sinks = j == 1;
            s.strided_q = j == 2;
            attention_case(run, &s, &params[j]);
        }
}

// Blocks whose scales lie near the ends of f16, alone and in longer rows.
static void cases_scales(check_run *run)
{
    static const struct {
        tn_dtype type;
        double values;
    } rows[] = {{TN_TYPE_Q8_0, 1e-5}, {TN_TYPE_Q4_0, 8000.0}};
    for (size_t i = 0; i < 2 * TN_COUNT(rows); i++) {
        attention_shape s = base;
        s.k_type = s.v_type = rows[i / 2].type;
        s.v_scale = rows[i / 2].values;
        s.v_longer = i % 2 == 0 ? 0 : 32;
        s.q_len[0] = 40, s.kv_len[0] = 70;
        attention_case(run, &s, &(tn_attention_params){.causal = 1});
    }
}

// Keys and values of different types, as parts of longer rows.
static void cases_mixed(check_run *run)
{
    static const tn_dtype types[][2] = {
        {TN_TYPE_F16, TN_TYPE_Q4_0}, {TN_TYPE_Q8_0, TN_TYPE_BF16}, {TN_TYPE_Q4_0, TN_TYPE_Q8_0}};
    for (size_t i = 0; i < 2 * TN_COUNT(types); i++) {
        attention_shape s = base;
        s.k_type = types[i / 2][0], s.v_type = types[i / 2][1];
        s.v_longer = 32;
        s.q_len[0] = i % 2 == 0 ? 3 : 40, s.kv_len[0] = 150;
        attention_case(run, &s, &(tn_attention_params){.causal = 1});
    }
}

// One token of one sequence over so many keys, or with so many heads, that each part that a kernel splits the
// keys into is long.
static void cases_many_keys(check_run *run)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    static const attention_shape rows[] = {
        {.kv_len = {1003}, .heads = 12, .kv_heads = 3, .k_dim = 128, .v_dim = 128},
        {.kv_len = {1105}, .heads = 21, .kv_heads = 3, .k_dim = 64, .v_dim = 64},
        {.kv_len = {900}, .heads = 33, .kv_heads = 3, .k_dim = 96, .v_dim = 64},
        {.kv_len = {2100}, .heads = 33, .kv_heads = 33, .k_dim = 128, .v_dim = 128},
        {.kv_len = {2112}, .heads = 66, .kv_heads = 66, .k_dim = 64, .v_dim = 64},
        {.kv_len = {1500},
         .heads = 16,
         .kv_heads = 1,
         .k_dim = 576,
         .v_dim = 512,
         .v_longer = 64,
         .v_in_k = true},
    };
    static const tn_attention_params params[] = {{.causal = 1},
                                                 {.causal = 1, .window = 905},
                                                 {.causal = 1, .softcap = 5.0f, .max_bias = 4.0f},
                                                 {.causal = 1, .chunk = 512}};
    size_t n = run->options.quick ? 2 : TN_COUNT(rows);
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < TN_COUNT(types); t++)
            for (size_t j = 0; j < TN_COUNT(params); j++) {
                if ((run->options.quick || i >= 3) && j != (i + t) % TN_COUNT(params)) continue;
                attention_shape s = rows[i];
                s.n_seqs = s.q_len[0] = 1;
                s.block = j == 1 ? 16 : 64;
                s.k_type = s.v_type = types[t];
                s.sinks = j == 1;
                attention_case(run, &s, &params[j]);
            }
}

// Small batches of queries of sequences whose lengths differ, so that kernels that cut keys at places that
// depend on lengths meet all kinds of rests; compressed caches of 16 rows of queries too.
static void cases_ragged(check_run *run)
{
    static const attention_shape rows[] = {
        {.n_seqs = 4, .q_len = {1, 1, 1, 1}, .kv_len = {1, 700, 63, 2100}, .heads = 8, .k_dim = 128},
        {.n_seqs = 3, .q_len = {2, 0, 1}, .kv_len = {300, 9, 1030}, .heads = 6, .k_dim = 96},
        {.n_seqs = 4, .q_len = {4, 1, 1, 7}, .kv_len = {129, 64, 65, 7}, .heads = 16, .k_dim = 64},
        {.n_seqs = 2, .q_len = {1, 1}, .kv_len = {520, 127}, .heads = 4, .k_dim = 80},
        {.n_seqs = 4, .q_len = {1, 1, 1, 1}, .kv_len = {700, 1, 129, 1000}, .heads = 16, .v_in_k = true},
        {.n_seqs = 2, .q_len = {2, 3}, .kv_len = {66, 400}, .heads = 7, .v_in_k = true},
    };
    static const tn_attention_params params[] = {{.causal = 1},
                                                 {.causal = 1, .window = 90},
                                                 {.causal = 0, .softcap = 5.0f, .max_bias = 4.0f},
                                                 {.causal = 1, .chunk = 512}};
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        for (size_t j = 0; j < TN_COUNT(params); j++) {
            attention_shape s = rows[i];
            s.block = 64;
            s.kv_heads = 2;
            s.v_dim = s.k_dim;
            s.k_type = s.v_type = s.k_dim % 64 != 0 ? types[j % 2] : types[(i + j) % TN_COUNT(types)];
            if (s.v_in_k) s.kv_heads = 1, s.k_dim = 576, s.v_dim = 512, s.v_longer = 64;
            if (s.v_in_k) s.k_type = s.v_type = TN_TYPE_F16;
            s.sinks = j == 1;
            s.strided_q = j == 2;
            if (!run->options.quick || j == i % TN_COUNT(params)) attention_case(run, &s, &params[j]);
        }
}

// One token of each of several sequences, of very different lengths, as a step of many conversations has
// them: kernels may rely on one_query.
static void cases_one_query(check_run *run)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    static const attention_shape rows[] = {
        {.n_seqs = 4, .kv_len = {1, 63, 65, 1000}, .heads = 8, .kv_heads = 2, .k_dim = 128, .v_dim = 128},
        {.n_seqs = 4, .kv_len = {1000, 16, 1, 64}, .heads = 6, .kv_heads = 3, .k_dim = 64, .v_dim = 64},
        {.n_seqs = 3, .kv_len = {65, 2300, 1}, .heads = 33, .kv_heads = 3, .k_dim = 96, .v_dim = 64},
        {.n_seqs = 2, .kv_len = {63, 300}, .heads = 5, .kv_heads = 5, .k_dim = 256, .v_dim = 256},
        // More pairs of sequence and KV head than a large device has multiprocessors, with a few sequences
        // that are much longer than the others.
        {.n_seqs = 24,
         .kv_len = {9, 1,  1500, 40, 17, 64, 3,   33, 700, 5, 48, 16,
                    2, 20, 31,   7,  65, 12, 900, 4,  50,  8, 25, 11},
         .heads = 16,
         .kv_heads = 8,
         .k_dim = 64,
         .v_dim = 64,
         .uneven = true},
        {.n_seqs = 18,
         .kv_len = {2100, 3, 9, 90, 1, 16, 33, 5, 7, 12, 64, 2, 18, 40, 8, 6, 1, 500},
         .heads = 16,
         .kv_heads = 8,
         .k_dim = 128,
         .v_dim = 128,
         .uneven = true},
    };
    static const tn_attention_params params[] = {{.causal = 1},
                                                 {.causal = 1, .window = 70},
                                                 {.causal = 1, .softcap = 5.0f, .max_bias = 4.0f},
                                                 {.causal = 0, .chunk = 48},
                                                 {.causal = 1, .window = 700}};
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        for (size_t t = 0; t < TN_COUNT(types); t++)
            for (size_t j = 0; j < TN_COUNT(params); j++) {
                if (run->options.quick && j != (i + t) % TN_COUNT(params)) continue;
                attention_shape s = rows[i];
                for (int32_t q = 0; q < s.n_seqs; q++) s.q_len[q] = 1;
                s.block = j == 2 ? 16 : 64;
                s.k_type = s.v_type = types[t];
                if (tn_dtype_block_elems(s.k_type) > 1) s.k_dim = s.v_dim = s.k_dim == 96 ? 128 : s.k_dim;
                s.sinks = j == 1;
                s.strided_q = j == 3;
                s.one_query = true;
                attention_case(run, &s, &params[j]);
            }
}

// Pieces of prompts beside single tokens of other sequences, as passes of a server have them, over so many
// keys that kernels cut them; a piece alone; sequences of which only some are cut.
static void cases_pieces(check_run *run)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    static const attention_shape rows[] = {
        {.n_seqs = 4,
         .q_len = {1, 40, 1, 3},
         .kv_len = {1100, 1500, 63, 40},
         .heads = 4,
         .kv_heads = 2,
         .k_dim = 128},
        {.n_seqs = 1, .q_len = {70}, .kv_len = {2200}, .heads = 2, .kv_heads = 1, .k_dim = 64},
        {.n_seqs = 2, .q_len = {9, 130}, .kv_len = {2049, 1290}, .heads = 3, .kv_heads = 1, .k_dim = 128},
        {.n_seqs = 3, .q_len = {1, 0, 33}, .kv_len = {1030, 5, 700}, .heads = 2, .kv_heads = 2, .k_dim = 256},
    };
    static const tn_attention_params params[] = {{.causal = 1},
                                                 {.causal = 0},
                                                 {.causal = 1, .window = 1100},
                                                 {.causal = 1, .softcap = 5.0f, .max_bias = 4.0f}};
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        for (size_t t = 0; t < TN_COUNT(types); t++)
            for (size_t j = 0; j < TN_COUNT(params); j++) {
                if (run->options.quick && j != (i + t) % TN_COUNT(params)) continue;
                attention_shape s = rows[i];
                s.v_dim = s.k_dim;
                s.block = 64;
                s.k_type = s.v_type = types[t];
                s.sinks = j == 1;
                s.strided_q = j == 2;
                attention_case(run, &s, &params[j]);
            }
}

// The same where kernels may treat each query as the only one of a sequence: with queries of long and short
// sequences, sequences without queries, and fewer or more pairs of query and KV head than a large device has
// multiprocessors.
static void cases_apart(check_run *run)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    static const attention_shape rows[] = {
        {.n_seqs = 4,
         .q_len = {1, 40, 1, 3},
         .kv_len = {1100, 1500, 63, 40},
         .heads = 4,
         .kv_heads = 2,
         .k_dim = 128},
        {.n_seqs = 3, .q_len = {1, 0, 7}, .kv_len = {2300, 5, 700}, .heads = 3, .kv_heads = 1, .k_dim = 64},
        {.n_seqs = 2, .q_len = {9, 30}, .kv_len = {9, 790}, .heads = 33, .kv_heads = 3, .k_dim = 128},
        {.n_seqs = 24,
         .q_len = {1, 1, 1, 5, 1, 1, 1, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 33},
         .kv_len = {9, 1,  1500, 40, 17, 64, 3,   33, 700, 5, 48, 16,
                    2, 20, 31,   7,  65, 12, 900, 4,  50,  8, 25, 33},
         .heads = 16,
         .kv_heads = 8,
         .k_dim = 64},
    };
    static const tn_attention_params params[] = {{.causal = 1},
                                                 {.causal = 1, .window = 70},
                                                 {.causal = 1, .softcap = 5.0f, .max_bias = 4.0f},
                                                 {.causal = 1, .chunk = 48},
                                                 {.causal = 0}};
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        for (size_t t = 0; t < TN_COUNT(types); t++)
            for (size_t j = 0; j < TN_COUNT(params); j++) {
                if (run->options.quick && j != (i + t) % TN_COUNT(params)) continue;
                attention_shape s = rows[i];
                s.v_dim = s.k_dim;
                s.block = j == 2 ? 16 : 64;
                s.k_type = s.v_type = types[t];
                s.sinks = j == 1;
                s.strided_q = j == 3;
                s.apart = true;
                attention_case(run, &s, &params[j]);
            }
}

// The same where single tokens of many sequences and pieces of prompts may have a launch each: with sequences
// that are much longer than the mean, without queries, and with one key.
static void cases_beside_pieces(check_run *run)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    static const attention_shape rows[] = {
        {.n_seqs = 24,
         .q_len = {1, 1, 1, 12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 33, 1, 1, 1, 1, 1},
         .kv_len = {9, 1, 400, 12, 17, 64, 3, 33, 130, 5, 48, 16, 2, 20, 31, 7, 65, 12, 99, 4, 50, 8, 25, 33},
         .heads = 45,
         .kv_heads = 45,
         .k_dim = 64},
        {.n_seqs = 23,
         .q_len = {1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 20},
         .kv_len = {130, 70, 900, 1, 1, 1, 1, 64, 65, 63, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 5, 20},
         .heads = 8,
         .kv_heads = 2,
         .k_dim = 128},
    };
    static const tn_attention_params params[] = {{.causal = 1},
                                                 {.causal = 1, .window = 70},
                                                 {.causal = 1, .softcap = 5.0f, .max_bias = 4.0f},
                                                 {.causal = 1, .chunk = 48}};
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        for (size_t t = 0; t < TN_COUNT(types); t++)
            for (size_t j = 0; j < TN_COUNT(params); j++) {
                if (run->options.quick && j != (i + t) % TN_COUNT(params)) continue;
                attention_shape s = rows[i];
                s.v_dim = s.k_dim, s.block = 64;
                s.k_type = s.v_type = types[t];
                s.sinks = j == 1;
                s.strided_q = j == 3;
                s.mixed = true;
                attention_case(run, &s, &params[j]);
            }
}

void check_cases_attention(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    cases_ragged(run);
    cases_types(run);
    cases_dims(run);
    cases_masks(run);
    cases_batches(run);
    cases_long(run);
    cases_prefill(run);
    cases_compressed(run);
    cases_wide(run);
    cases_scales(run);
    cases_mixed(run);
    cases_many_keys(run);
    cases_one_query(run);
    cases_pieces(run);
    cases_apart(run);
    cases_beside_pieces(run);
}
