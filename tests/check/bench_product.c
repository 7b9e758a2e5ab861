// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of matrix products.
#include "ops/quant.h"
#include "tests/check/bench.h"

#include <string.h>

static void time_matmul(bench_run *r, tn_dtype type, int64_t m, int64_t n, int64_t k)
{
    bench_case b;
    bench_begin(&b, TN_OP_matmul, type);
    check_mat(&b.c, TN_TYPE_F32, m, k);
    bench_weight(&b, type, 0, n, k);
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %lld, k %lld", (long long)m, (long long)n, (long long)k);
    check_bench_case(r, &b);
}

// One token through the matrices of two models: gate and up, down, q k v, o, head.
static void time_decode(bench_run *r, tn_dtype type)
{
    static const int32_t shapes[][2] = {{28672, 4096}, {4096, 14336},  {6144, 4096},
                                        {4096, 4096},  {128256, 4096}, {16384, 2048},
                                        {2048, 8192},  {3072, 2048},   {2048, 2048}};
    for (size_t i = 0; i < TN_COUNT(shapes); i++) time_matmul(r, type, 1, shapes[i][0], shapes[i][1]);
}

static void time_fused(bench_run *r, tn_dtype type, int64_t m)
{
    bench_case b;
    bench_begin(&b, TN_OP_linear, type);
    check_mat(&b.c, TN_TYPE_F32, m, BENCH_D_FF);
    bench_weight(&b, type, 0, BENCH_D_MODEL, BENCH_D_FF);
    check_mat(&b.c, TN_TYPE_F32, m, BENCH_D_MODEL);
    b.c.params.linear = (tn_linear_params){.act = TN_UNARY_NONE, .has_residual = 1};
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d, k %d, residual", (long long)m, BENCH_D_MODEL,
             BENCH_D_FF);
    check_bench_case(r, &b);

    bench_begin(&b, TN_OP_matmul_multi, type);
    check_mat(&b.c, TN_TYPE_F32, m, BENCH_D_MODEL);
    bench_weight(&b, type, 0, BENCH_D_MODEL, BENCH_D_MODEL);
    bench_weight(&b, type, 0, BENCH_D_KV, BENCH_D_MODEL);
    bench_weight(&b, type, 0, BENCH_D_KV, BENCH_D_MODEL);
    b.c.params.matmul_multi.n_weights = 3;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d + 2 x %d, k %d", (long long)m, BENCH_D_MODEL,
             BENCH_D_KV, BENCH_D_MODEL);
    check_bench_case(r, &b);

    bench_begin(&b, TN_OP_matmul_glu, type);
    check_mat(&b.c, TN_TYPE_F32, m, BENCH_D_MODEL);
    for (int32_t i = 0; i < 2; i++) bench_weight(&b, type, 0, BENCH_D_FF, BENCH_D_MODEL);
    b.c.params.matmul_glu.glu.act = TN_UNARY_SILU;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n 2 x %d, k %d", (long long)m, BENCH_D_FF, BENCH_D_MODEL);
    check_bench_case(r, &b);
}

// The products of a layer of 8 billion weights: width 4096, 32 heads and 8 for keys, 14336 inside.
static void time_layer(bench_run *r, tn_dtype type, int64_t m)
{
    enum { WIDTH = 4096, INNER = 14336, KV = 1024 };
    bench_case b;
    bench_begin(&b, TN_OP_matmul_multi, type);
    check_mat(&b.c, TN_TYPE_F32, m, WIDTH);
    bench_weight(&b, type, 0, WIDTH, WIDTH);
    for (int32_t i = 0; i < 2; i++) bench_weight(&b, type, 0, KV, WIDTH);
    b.c.params.matmul_multi.n_weights = 3;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d + 2 x %d, k %d", (long long)m, WIDTH, KV, WIDTH);
    check_bench_case(r, &b);

    for (int32_t i = 0; i < 2; i++) {
        int64_t k = i == 0 ? WIDTH : INNER;
        bench_begin(&b, TN_OP_linear, type);
        check_mat(&b.c, TN_TYPE_F32, m, k);
        bench_weight(&b, type, 0, WIDTH, k);
        check_mat(&b.c, TN_TYPE_F32, m, WIDTH);
        b.c.params.linear = (tn_linear_params){.act = TN_UNARY_NONE, .has_residual = 1};
        snprintf(b.c.note, sizeof b.c.note, "m %lld, n %d, k %lld, residual", (long long)m, WIDTH,
                 (long long)k);
        check_bench_case(r, &b);
    }

    bench_begin(&b, TN_OP_matmul_glu, type);
    check_mat(&b.c, TN_TYPE_F32, m, WIDTH);
    for (int32_t i = 0; i < 2; i++) bench_weight(&b, type, 0, INNER, WIDTH);
    b.c.params.matmul_glu.glu.act = TN_UNARY_SILU;
    snprintf(b.c.note, sizeof b.c.note, "m %lld, n 2 x %d, k %d", (long long)m, INNER, WIDTH);
    check_bench_case(r, &b);
}

static void time_experts(bench_run *r, int32_t op, tn_dtype type, int64_t m)
{
    bench_case b;
    enum { K = 2048 };
    bench_begin(&b, op, type);
    int32_t n_weights = op == TN_OP_matmul_id_glu ? 2 : 1;
    check_cube(&b.c, TN_TYPE_F32, m, 1, K);
    for (int32_t i = 0; i < n_weights; i++) bench_weight(&b, type, BENCH_N_EXPERTS, BENCH_D_EXPERT, K);
    check_operand *ids = check_mat(&b.c, TN_TYPE_I32, m, BENCH_N_USED);
    ids->fill = CHECK_DATA;
    for (int32_t i = 0; i < m * BENCH_N_USED; i++) b.c.ints[i] = i * 7 % BENCH_N_EXPERTS;
    b.c.params.matmul_id_glu.glu = (tn_glu_params){.act = TN_UNARY_SILU};
    snprintf(b.c.note, sizeof b.c.note, "m %lld, %d of %d experts, n %d, k %d", (long long)m, BENCH_N_USED,
             BENCH_N_EXPERTS, BENCH_D_EXPERT, K);
    check_bench_case(r, &b);
}

// 128 experts of which 8 are used: width 2048, 768 inside.
static void time_many_experts(bench_run *r, tn_dtype type, int64_t m)
{
    enum { WIDTH = 2048, INNER = 768, EXPERTS = 128, USED = 8 };
    for (int32_t form = 0; form < 2; form++) {
        bench_case b;
        bench_begin(&b, form == 0 ? TN_OP_matmul_id_glu : TN_OP_matmul_id, type);
        int64_t k = form == 0 ? WIDTH : INNER, n = form == 0 ? INNER : WIDTH;
        check_cube(&b.c, TN_TYPE_F32, m, form == 0 ? 1 : USED, k);
        for (int32_t i = 0; i < 2 - form; i++) bench_weight(&b, type, EXPERTS, n, k);
        check_range(check_mat(&b.c, TN_TYPE_I32, m, USED), CHECK_INT, 0, EXPERTS - 1);
        b.c.params.matmul_id_glu.glu = (tn_glu_params){.act = TN_UNARY_SILU};
        snprintf(b.c.note, sizeof b.c.note, "m %lld, %d of %d experts, n %lld, k %lld", (long long)m, USED,
                 EXPERTS, (long long)n, (long long)k);
        check_bench_case(r, &b);
    }
}

// What only devices can time: a layer with the rows of a prompt, and of many sequences at once.
static void layers(bench_run *r)
{
    static const tn_dtype types[] = {TN_TYPE_BF16, TN_TYPE_Q4_0, TN_TYPE_Q8_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    static const int64_t rows[] = {32, 512, 4096}, more[] = {2, 4, 8, 16, 64, 128, 256};
    if (strcmp(r->target->device->backend->name, "cpu") == 0) return;
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < TN_COUNT(rows); i++) {
            time_layer(r, types[t], rows[i]);
            time_many_experts(r, types[t], rows[i]);
        }
    for (size_t i = 0; i < TN_COUNT(more); i++) time_layer(r, TN_TYPE_BF16, more[i]);
}

static void products(bench_run *r)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_Q8_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    static const tn_dtype decoded[] = {TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    static const int64_t rows[] = {1, 4, BENCH_PREFILL};
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        bool whole = type == TN_TYPE_F64 || (type >= TN_TYPE_I8 && type <= TN_TYPE_I64); // no model has these
        for (size_t i = 0; !whole && tn_quant_info_get(type)->to_f32 && i < TN_COUNT(rows); i++)
            time_matmul(r, type, rows[i], BENCH_D_MODEL, BENCH_D_MODEL);
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

void check_bench_product(bench_run *r)
{
    products(r);
    layers(r);
}
