// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What is timed: decode (one token) and prefill shapes of models of 1 to 8 billion weights.
#include "ops/quant.h"
#include "tests/check/bench.h"

#include <math.h>
#include <string.h>

enum {
    D_MODEL = 4096,
    D_FF = 11008,
    D_KV = 1024,
    D_EXPERT = 1408,
    N_EXPERTS = 32,
    N_USED = 4,
    PREFILL = 128,
    VOCAB = 151936
};

static double operand_bytes(const bench_case *b)
{
    double sum = 0.0;
    for (int32_t i = 0; i < b->c.n_src; i++) sum += b->c.src[i].shared ? 0.0 : (double)check_operand_size(&b->c.src[i]);
    return sum;
}

static void begin(bench_case *b, int32_t op, tn_dtype type)
{
    *b = (bench_case){0};
    check_begin(&b->c, op);
    b->c.type = type;
}

static check_operand *weight(bench_case *b, tn_dtype type, int64_t experts, int64_t n, int64_t k)
{
    check_operand *w = check_weight(&b->c, type, experts, n, k);
    w->random_blocks = tn_dtype_block_elems(type) > 1;
    return w;
}

// --- matrix products -------------------------------------------------------------------------------

static void time_matmul(bench_run *r, tn_dtype type, int64_t m, int64_t n, int64_t k)
{
    bench_case b;
    begin(&b, TN_OP_matmul, type);
    check_mat(&b.c, TN_TYPE_F32, m, k);
    weight(&b, type, 0, n, k);
    b.bytes = operand_bytes(&b) + 4.0 * (double)(m * n);
    b.flops = 2.0 * (double)(m * n * k);
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %lld, k %lld", (long long)m, (long long)n, (long long)k);
    check_bench_case(r, &b);
}

// One token through the matrices of two models: gate and up, down, q k v, o, head.
static void time_decode(bench_run *r, tn_dtype type)
{
    static const int32_t shapes[][2] = {{28672, 4096}, {4096, 14336}, {6144, 4096}, {4096, 4096}, {128256, 4096},
                                        {16384, 2048}, {2048, 8192},  {3072, 2048}, {2048, 2048}};
    for (size_t i = 0; i < TN_COUNT(shapes); i++) time_matmul(r, type, 1, shapes[i][0], shapes[i][1]);
}

static void time_fused(bench_run *r, tn_dtype type, int64_t m)
{
    bench_case b;
    begin(&b, TN_OP_linear, type);
    check_mat(&b.c, TN_TYPE_F32, m, D_FF);
    weight(&b, type, 0, D_MODEL, D_FF);
    check_mat(&b.c, TN_TYPE_F32, m, D_MODEL);
    b.c.params.linear = (tn_linear_params){.act = TN_UNARY_NONE, .has_residual = 1};
    b.bytes = operand_bytes(&b) + 4.0 * (double)m * D_MODEL;
    b.flops = 2.0 * (double)m * D_MODEL * D_FF;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d, k %d, residual", (long long)m, D_MODEL, D_FF);
    check_bench_case(r, &b);

    begin(&b, TN_OP_matmul_multi, type);
    check_mat(&b.c, TN_TYPE_F32, m, D_MODEL);
    weight(&b, type, 0, D_MODEL, D_MODEL);
    weight(&b, type, 0, D_KV, D_MODEL);
    weight(&b, type, 0, D_KV, D_MODEL);
    b.c.params.matmul_multi.n_weights = 3;
    b.bytes = operand_bytes(&b) + 4.0 * (double)m * (D_MODEL + 2 * D_KV);
    b.flops = 2.0 * (double)m * D_MODEL * (D_MODEL + 2 * D_KV);
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d + 2 x %d, k %d", (long long)m, D_MODEL, D_KV, D_MODEL);
    check_bench_case(r, &b);

    begin(&b, TN_OP_matmul_glu, type);
    check_mat(&b.c, TN_TYPE_F32, m, D_MODEL);
    for (int32_t i = 0; i < 2; i++) weight(&b, type, 0, D_FF, D_MODEL);
    b.c.params.matmul_glu.glu.act = TN_UNARY_SILU;
    b.bytes = operand_bytes(&b) + 4.0 * (double)m * D_FF;
    b.flops = 4.0 * (double)m * D_MODEL * D_FF;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n 2 x %d, k %d", (long long)m, D_FF, D_MODEL);
    check_bench_case(r, &b);
}

// The products of a layer of 8 billion weights: width 4096, 32 heads and 8 for keys, 14336 inside.
static void time_layer(bench_run *r, tn_dtype type, int64_t m)
{
    enum { WIDTH = 4096, INNER = 14336, KV = 1024 };
    bench_case b;
    begin(&b, TN_OP_matmul_multi, type);
    check_mat(&b.c, TN_TYPE_F32, m, WIDTH);
    weight(&b, type, 0, WIDTH, WIDTH);
    for (int32_t i = 0; i < 2; i++) weight(&b, type, 0, KV, WIDTH);
    b.c.params.matmul_multi.n_weights = 3;
    b.bytes = operand_bytes(&b) + 4.0 * (double)m * (WIDTH + 2 * KV);
    b.flops = 2.0 * (double)m * WIDTH * (WIDTH + 2 * KV);
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d + 2 x %d, k %d", (long long)m, WIDTH, KV, WIDTH);
    check_bench_case(r, &b);

    for (int32_t i = 0; i < 2; i++) {
        int64_t k = i == 0 ? WIDTH : INNER;
        begin(&b, TN_OP_linear, type);
        check_mat(&b.c, TN_TYPE_F32, m, k);
        weight(&b, type, 0, WIDTH, k);
        check_mat(&b.c, TN_TYPE_F32, m, WIDTH);
        b.c.params.linear = (tn_linear_params){.act = TN_UNARY_NONE, .has_residual = 1};
        b.bytes = operand_bytes(&b) + 4.0 * (double)m * WIDTH;
        b.flops = 2.0 * (double)m * WIDTH * (double)k;
        snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d, k %lld, residual", (long long)m, WIDTH, (long long)k);
        check_bench_case(r, &b);
    }

    begin(&b, TN_OP_matmul_glu, type);
    check_mat(&b.c, TN_TYPE_F32, m, WIDTH);
    for (int32_t i = 0; i < 2; i++) weight(&b, type, 0, INNER, WIDTH);
    b.c.params.matmul_glu.glu.act = TN_UNARY_SILU;
    b.bytes = operand_bytes(&b) + 4.0 * (double)m * INNER;
    b.flops = 4.0 * (double)m * WIDTH * INNER;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n 2 x %d, k %d", (long long)m, INNER, WIDTH);
    check_bench_case(r, &b);
}

static void time_experts(bench_run *r, int32_t op, tn_dtype type, int64_t m)
{
    bench_case b;
    enum { K = 2048 };
    begin(&b, op, type);
    int32_t n_weights = op == TN_OP_matmul_id_glu ? 2 : 1;
    check_cube(&b.c, TN_TYPE_F32, m, 1, K);
    for (int32_t i = 0; i < n_weights; i++) weight(&b, type, N_EXPERTS, D_EXPERT, K);
    check_operand *ids = check_mat(&b.c, TN_TYPE_I32, m, N_USED);
    ids->fill = CHECK_DATA;
    for (int32_t i = 0; i < m * N_USED; i++) b.c.ints[i] = i * 7 % N_EXPERTS;
    b.c.params.matmul_id_glu.glu = (tn_glu_params){.act = TN_UNARY_SILU};
    double used = fmin((double)(m * N_USED), N_EXPERTS);
    b.bytes = n_weights * used * D_EXPERT * (double)tn_dtype_row_size(type, K) +
              4.0 * (double)m * (K + N_USED * D_EXPERT);
    b.flops = 2.0 * n_weights * (double)m * N_USED * K * D_EXPERT;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, %d of %d experts, n %d, k %d", (long long)m, N_USED,
             N_EXPERTS, D_EXPERT, K);
    check_bench_case(r, &b);
}

// 128 experts of which 8 are used: width 2048, 768 inside.
static void time_many_experts(bench_run *r, tn_dtype type, int64_t m)
{
    enum { WIDTH = 2048, INNER = 768, EXPERTS = 128, USED = 8 };
    for (int32_t form = 0; form < 2; form++) {
        bench_case b;
        begin(&b, form == 0 ? TN_OP_matmul_id_glu : TN_OP_matmul_id, type);
        int64_t k = form == 0 ? WIDTH : INNER, n = form == 0 ? INNER : WIDTH;
        check_cube(&b.c, TN_TYPE_F32, m, form == 0 ? 1 : USED, k);
        for (int32_t i = 0; i < 2 - form; i++) weight(&b, type, EXPERTS, n, k);
        check_range(check_mat(&b.c, TN_TYPE_I32, m, USED), CHECK_INT, 0, EXPERTS - 1);
        b.c.params.matmul_id_glu.glu = (tn_glu_params){.act = TN_UNARY_SILU};
        double used = fmin((double)(m * USED), EXPERTS);
        b.bytes = (2 - form) * used * (double)n * (double)tn_dtype_row_size(type, k) + 4.0 * (double)m * (double)(k + USED * n);
        b.flops = 2.0 * (2 - form) * (double)m * USED * (double)k * (double)n;
        snprintf(b.c.note, sizeof b.c.note, "m %lld, %d of %d experts, n %lld, k %lld", (long long)m, USED, EXPERTS, (long long)n, (long long)k);
        check_bench_case(r, &b);
    }
}

// What only devices can time: a layer with the rows of a prompt, and of many sequences at once.
static void layers(bench_run *r)
{
    static const tn_dtype types[] = {TN_TYPE_BF16, TN_TYPE_Q4_0, TN_TYPE_Q8_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    static const int64_t rows[] = {32, 512, 4096};
    if (strcmp(r->target->device->backend->name, "cpu") == 0) return;
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < TN_COUNT(rows); i++) {
            time_layer(r, types[t], rows[i]);
            time_many_experts(r, types[t], rows[i]);
        }
}

static void products(bench_run *r)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_Q8_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    static const tn_dtype decoded[] = {TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    static const int64_t rows[] = {1, 4, PREFILL};
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        bool whole = type == TN_TYPE_F64 || (type >= TN_TYPE_I8 && type <= TN_TYPE_I64); // no model has these
        for (size_t i = 0; !whole && tn_quant_info_get(type)->to_f32 && i < TN_COUNT(rows); i++)
            time_matmul(r, type, rows[i], D_MODEL, D_MODEL);
    }
    for (size_t t = 0; t < TN_COUNT(decoded); t++) time_decode(r, decoded[t]);
    for (size_t t = 0; t < TN_COUNT(types); t++) {
        for (size_t i = 0; i < TN_COUNT(rows); i += 2) {
            time_fused(r, types[t], rows[i]);
            time_experts(r, TN_OP_matmul_id, types[t], rows[i]);
            time_experts(r, TN_OP_matmul_id_glu, types[t], rows[i]);
        }
    }
}

// --- attention -------------------------------------------------------------------------------------

typedef struct heads {
    int32_t n, kv, dim, v_dim; // v_dim below dim: values are the first part of the keys' rows
} heads;

static const heads usual = {32, 8, 128, 128}, compressed = {16, 1, 576, 512};

// n_seqs sequences of n_tokens queries and kv_len keys each.
static void time_heads(bench_run *r, tn_dtype type, const heads *h, int32_t n_seqs, int32_t n_tokens, int32_t kv_len)
{
    bench_case b;
    begin(&b, TN_OP_attention, type);
    int32_t block = 64; // as in the cache of a model; the table has to fit the pool of integers of a case
    while (n_seqs * (kv_len / block + 2) + n_seqs + 1 > CHECK_POOL) block *= 2;
    int32_t n_blocks = (kv_len + block - 1) / block, start = n_seqs + 1, all = n_seqs * n_tokens;
    b.c.params.attention = (tn_attention_params){.scale = 0.08838834764f, .causal = 1};
    check_cube(&b.c, TN_TYPE_F32, all, h->n, h->dim);
    check_src(&b.c, type, 4, (int64_t[]){n_seqs * n_blocks, h->kv, block, h->dim});
    check_operand *v = check_src(&b.c, type, 4, (int64_t[]){n_seqs * n_blocks, h->kv, block, h->v_dim});
    v->parent[3] = h->dim;
    v->shared = h->v_dim < h->dim;
    check_vec(&b.c, TN_TYPE_I32, start)->fill = CHECK_DATA;
    check_vec(&b.c, TN_TYPE_I32, n_seqs)->fill = CHECK_DATA;
    check_mat(&b.c, TN_TYPE_I32, n_seqs, n_blocks)->fill = CHECK_DATA;
    b.c.src[4].ints_off = start;
    b.c.src[5].ints_off = start + n_seqs;
    for (int32_t i = 0; i < n_seqs; i++) b.c.ints[i + 1] = (i + 1) * n_tokens, b.c.ints[start + i] = kv_len;
    for (int32_t i = 0; i < n_seqs * n_blocks; i++) b.c.ints[start + n_seqs + i] = i;
    b.bytes = operand_bytes(&b) + 4.0 * all * h->n * h->v_dim;
    b.flops = 2.0 * all * h->n * (h->dim + h->v_dim) * (kv_len - 0.5 * (n_tokens - 1)); // half of the last square is masked
    snprintf(b.c.note, sizeof b.c.note, "%d x %d queries, %d keys, %d/%d heads of %d", n_seqs, n_tokens, kv_len, h->n, h->kv, h->dim);
    check_bench_case(r, &b);
}

static void time_attention(bench_run *r, tn_dtype type, int32_t n_seqs, int32_t n_tokens, int32_t kv_len)
{
    time_heads(r, type, &usual, n_seqs, n_tokens, kv_len);
}

static void time_cache_write(bench_run *r, tn_dtype type, int64_t n_tokens)
{
    bench_case b;
    begin(&b, TN_OP_cache_write, type);
    check_src(&b.c, type, 4, (int64_t[]){32, 8, 32, 128});
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 128);
    check_vec(&b.c, TN_TYPE_I32, n_tokens)->fill = CHECK_DATA;
    for (int32_t i = 0; i < n_tokens; i++) b.c.ints[i] = 100 + i;
    b.bytes = (double)n_tokens * 8 * (4 * 128 + (double)tn_dtype_row_size(type, 128));
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 heads of 128", (long long)n_tokens);
    check_bench_case(r, &b);
}

static void time_rope(bench_run *r, int32_t op, int64_t n_tokens)
{
    bench_case b;
    begin(&b, op, TN_TYPE_F32);
    tn_rope_params p = {.mode = TN_ROPE_NEOX, .n_rot = 128, .base = 1e6f};
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 32, 128);
    if (op == TN_OP_norm_rope) check_vec(&b.c, TN_TYPE_F32, 128);
    check_range(check_vec(&b.c, TN_TYPE_I32, n_tokens), CHECK_INT, 0, 8000);
    if (op == TN_OP_norm_rope)
        b.c.params.norm_rope = (tn_norm_rope_params){1e-6f, p};
    else
        b.c.params.rope = p;
    b.bytes = 2.0 * operand_bytes(&b);
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 32 heads of 128", (long long)n_tokens);
    check_bench_case(r, &b);
}

static void time_rope_cache(bench_run *r, int64_t n_tokens)
{
    bench_case b;
    begin(&b, TN_OP_rope_cache, TN_TYPE_F16);
    b.c.params.rope_cache = (tn_rope_cache_params){.rope = {.mode = TN_ROPE_NORM, .n_rot = 128, .base = 1e6f}};
    for (int32_t i = 0; i < 2; i++) check_src(&b.c, TN_TYPE_F16, 4, (int64_t[]){128, 8, 32, 128});
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 32, 128);
    for (int32_t i = 0; i < 2; i++) check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 128);
    for (int32_t i = 0; i < 2; i++) check_vec(&b.c, TN_TYPE_I32, n_tokens)->fill = CHECK_DATA;
    for (int32_t i = 0; i < n_tokens; i++) b.c.ints[i] = i;
    check_absent(&b.c);
    check_absent(&b.c);
    b.bytes = (double)n_tokens * 128 * (4.0 * (2 * 32 + 2 * 8) + 2.0 * 2 * 8);
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 32 and 8 heads of 128", (long long)n_tokens);
    check_bench_case(r, &b);
}

// What takes a CPU minutes.
static void device_attention(bench_run *r, tn_dtype type)
{
    time_attention(r, type, 1, 1, 512);
    time_attention(r, type, 1, 1, 32768);
    time_attention(r, type, 1, 4, 4096);
    time_attention(r, type, 32, 1, 512);
    time_attention(r, type, 32, 1, 4096);
    if (type == TN_TYPE_F16) time_attention(r, type, 32, 1, 32768);
    time_attention(r, type, 1, 2048, 2048);
    time_attention(r, type, 1, 4096, 4096);
    time_heads(r, type, &compressed, 1, 1, 4096);
    time_heads(r, type, &compressed, 1, 1, 32768);
    time_heads(r, type, &compressed, 32, 1, 4096);
    time_heads(r, type, &compressed, 1, 512, 4096);
}

static void attention(bench_run *r)
{
    static const tn_dtype types[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    for (size_t i = 0; i < TN_COUNT(types); i++) {
        time_attention(r, types[i], 1, 1, 4096);
        time_attention(r, types[i], 1, 512, 512);
        time_attention(r, types[i], 1, PREFILL, 4096);
        if (r->target->device->backend->weight_write && types[i] != TN_TYPE_F32) device_attention(r, types[i]);
        time_cache_write(r, types[i], 512);
    }
    for (int32_t i = 0; i < (r->target->device->backend->weight_write ? 3 : 2); i++) {
        static const int64_t tokens[] = {1, 512, 4096};
        time_rope(r, TN_OP_rope, tokens[i]);
        time_rope(r, TN_OP_norm_rope, tokens[i]);
        time_rope_cache(r, tokens[i]);
    }
}

// --- rows ------------------------------------------------------------------------------------------

// Ops whose sources are all [m, n], followed by n_vectors vectors [n].
static void time_rows(bench_run *r, const check_case *like, int32_t n_sources, int32_t n_vectors,
                      const int64_t *shape)
{
    bench_case b = {.c = *like};
    int64_t m = shape[0], n = shape[1];
    for (int32_t i = 0; i < n_sources; i++) check_mat(&b.c, TN_TYPE_F32, m, n);
    for (int32_t i = 0; i < n_vectors; i++) check_vec(&b.c, TN_TYPE_F32, n);
    tn_step step;
    b.bytes = operand_bytes(&b);
    if (check_step(r->target->ctx, &b.c, &step) == TN_OK)
        for (int32_t i = 0; i < step.n_dst; i++) b.bytes += 4.0 * (double)tn_view_n_elems(&step.dst[i]);
    snprintf(b.c.note, sizeof b.c.note, "%.40s%s[%lld, %lld]", like->note, like->note[0] ? " " : "",
             (long long)m, (long long)n);
    check_bench_case(r, &b);
}

static check_case named(int32_t op, const char *note)
{
    check_case c;
    check_begin(&c, op);
    snprintf(c.note, sizeof c.note, "%s", note);
    return c;
}

static void rows_of(bench_run *r, int64_t m)
{
    int64_t model[] = {m, D_MODEL}, ff[] = {m, D_FF}, vocab[] = {1, VOCAB}, experts[] = {m, 128};
    static const int32_t kinds[] = {TN_UNARY_AFFINE, TN_UNARY_SILU, TN_UNARY_GELU, TN_UNARY_GELU_ERF,
                                    TN_UNARY_EXP};
    for (size_t i = 0; i < TN_COUNT(kinds); i++) {
        check_case c = named(TN_OP_unary, tn_unary_name(kinds[i]));
        c.params.unary = (tn_unary_params){kinds[i], 0.5f, 0.1f};
        time_rows(r, &c, 1, 0, ff);
    }
    check_case c = named(TN_OP_binary, "add");
    time_rows(r, &c, 2, 0, model);
    c = named(TN_OP_glu, "silu");
    c.params.glu.act = TN_UNARY_SILU;
    time_rows(r, &c, 2, 0, ff);
    c = named(TN_OP_rms_norm, "");
    time_rows(r, &c, 1, 1, model);
    c = named(TN_OP_layer_norm, "");
    time_rows(r, &c, 1, 2, model);
    c = named(TN_OP_add_rms_norm, "");
    time_rows(r, &c, 2, 1, model);
    c = named(TN_OP_softmax, "");
    time_rows(r, &c, 1, 0, model);
    c = named(TN_OP_reduce, "sum");
    time_rows(r, &c, 1, 0, model);
    c = named(TN_OP_top_k, "8 of");
    c.params.top_k.k = 8;
    time_rows(r, &c, 1, 0, experts);
    if (m > 32) return;
    vocab[0] = m;
    c = named(TN_OP_argmax, "");
    time_rows(r, &c, 1, 0, vocab);
    c = named(TN_OP_argmax_logprob, "");
    time_rows(r, &c, 1, 0, vocab);
    if (m > 1) return;
    c = named(TN_OP_top_k, "40 of");
    c.params.top_k.k = 40;
    time_rows(r, &c, 1, 0, vocab);
}

static void time_get_rows(bench_run *r, tn_dtype type, int64_t n_rows)
{
    bench_case b;
    begin(&b, TN_OP_get_rows, type);
    weight(&b, type, 0, 32000, D_MODEL);
    check_range(check_vec(&b.c, TN_TYPE_I32, n_rows), CHECK_INT, 0, 31999);
    b.bytes = (double)n_rows * ((double)tn_dtype_row_size(type, D_MODEL) + 4.0 * D_MODEL);
    snprintf(b.c.note, sizeof b.c.note, "%lld of [32000, %d]", (long long)n_rows, D_MODEL);
    check_bench_case(r, &b);
}

static void time_moves(bench_run *r)
{
    static const tn_dtype tables[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_Q8_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    for (size_t i = 0; i < TN_COUNT(tables); i++) {
        if (r->target->device->backend->weight_write) time_get_rows(r, tables[i], 1);
        time_get_rows(r, tables[i], 512);
    }
    for (int32_t form = 0; form < 3; form++) {
        bench_case b;
        begin(&b, TN_OP_copy, TN_TYPE_F32);
        b.c.params.copy.dtype = form == 0 ? TN_TYPE_F16 : TN_TYPE_F32;
        check_operand *x = check_cube(&b.c, TN_TYPE_F32, 32, 512, 128);
        if (form > 0) check_permuted(x, form, form == 1 ? 2 : 3);
        b.bytes = operand_bytes(&b) * (form == 0 ? 1.5 : 2.0);
        snprintf(b.c.note, sizeof b.c.note, "%s [32, 512, 128]",
                 form == 0   ? "to F16"
                 : form == 1 ? "heads swapped"
                             : "transposed");
        check_bench_case(r, &b);
    }
    bench_case b;
    begin(&b, TN_OP_concat, TN_TYPE_F32);
    b.c.params.concat.axis = 1;
    for (int32_t i = 0; i < 2; i++) check_mat(&b.c, TN_TYPE_F32, 512, 2048);
    b.bytes = 2.0 * operand_bytes(&b);
    snprintf(b.c.note, sizeof b.c.note, "2 x [512, 2048]");
    check_bench_case(r, &b);
}

static void time_router(bench_run *r, int64_t n_tokens)
{
    bench_case b;
    begin(&b, TN_OP_moe_weights, TN_TYPE_F32);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 128);
    check_range(check_mat(&b.c, TN_TYPE_I32, n_tokens, 8), CHECK_INT, 0, 127);
    b.c.params.moe_weights = (tn_moe_weights_params){TN_GATING_SOFTMAX, 1, 0.0f};
    b.bytes = operand_bytes(&b) + 4.0 * (double)n_tokens * 8;
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 of 128 experts", (long long)n_tokens);
    check_bench_case(r, &b);
    begin(&b, TN_OP_moe_sum, TN_TYPE_F32);
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 2048);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 8);
    b.bytes = operand_bytes(&b) + 4.0 * (double)n_tokens * 2048;
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 experts, n 2048", (long long)n_tokens);
    check_bench_case(r, &b);
}

// The whole router: from the row before the norm where a token is alone, from logits where there are many.
static void time_route(bench_run *r, int64_t n_tokens, int64_t n_experts, int64_t k)
{
    bench_case b;
    begin(&b, TN_OP_moe_route, TN_TYPE_F32);
    tn_moe_route_params *p = &b.c.params.moe_route;
    p->top_k.k = 8;
    p->weights = (tn_moe_weights_params){TN_GATING_SOFTMAX, 1, 0.0f};
    p->has_product = p->has_norm = k > 0;
    p->eps = 1e-6f;
    check_mat(&b.c, TN_TYPE_F32, n_tokens, k > 0 ? k : n_experts);
    if (k > 0) weight(&b, TN_TYPE_F32, 0, n_experts, k);
    if (k > 0) check_vec(&b.c, TN_TYPE_F32, k);
    b.bytes = operand_bytes(&b) + 4.0 * (double)n_tokens * (double)(k + 16);
    if (k > 0) snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 of %lld experts, from rows of %lld", (long long)n_tokens, (long long)n_experts, (long long)k);
    else snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 of %lld experts, from logits", (long long)n_tokens, (long long)n_experts);
    check_bench_case(r, &b);
}

static void time_combine(bench_run *r, int64_t n_tokens)
{
    bench_case b;
    begin(&b, TN_OP_moe_combine, TN_TYPE_F32);
    b.c.params.moe_combine.n_added = 1;
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 2048);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 8);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 2048);
    b.bytes = operand_bytes(&b) + 4.0 * (double)n_tokens * 2048;
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 experts and a residual, n 2048", (long long)n_tokens);
    check_bench_case(r, &b);
}

void check_bench_shapes(bench_run *r)
{
    products(r);
    layers(r);
    attention(r);
    bool device = r->target->device->backend->weight_write;
    rows_of(r, 1);
    if (device) rows_of(r, 32);
    rows_of(r, 512);
    if (device) rows_of(r, 4096);
    time_moves(r);
    if (device) time_router(r, 1);
    time_router(r, 512);
    if (device) {
        time_route(r, 1, 128, 2048);
        time_route(r, 8, 128, 2048);
        time_route(r, 1, 256, 7168);
        time_route(r, 1, 128, 0);
        time_combine(r, 1);
    }
    time_route(r, 512, 128, 0);
    time_combine(r, 512);
}
