// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of the ops around the experts of a mixture.
#include "ops/quant.h"
#include "tests/check/bench.h"

static void time_router(bench_run *r, int64_t n_tokens)
{
    bench_case b;
    bench_begin(&b, TN_OP_moe_weights, TN_TYPE_F32);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 128);
    check_range(check_mat(&b.c, TN_TYPE_I32, n_tokens, 8), CHECK_INT, 0, 127);
    b.c.params.moe_weights = (tn_moe_weights_params){TN_GATING_SOFTMAX, 1, 0.0f};
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 of 128 experts", (long long)n_tokens);
    check_bench_case(r, &b);
    bench_begin(&b, TN_OP_moe_sum, TN_TYPE_F32);
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 2048);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 8);
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 experts, n 2048", (long long)n_tokens);
    check_bench_case(r, &b);
}

// The whole router: from the row before the norm where a token is alone, from logits where there are many.
static void time_route(bench_run *r, int64_t n_tokens, int64_t n_experts, int64_t k)
{
    bench_case b;
    bench_begin(&b, TN_OP_moe_route, TN_TYPE_F32);
    tn_moe_route_params *p = &b.c.params.moe_route;
    p->top_k.k = 8;
    p->weights = (tn_moe_weights_params){TN_GATING_SOFTMAX, 1, 0.0f};
    p->has_product = p->has_norm = k > 0;
    p->eps = 1e-6f;
    check_mat(&b.c, TN_TYPE_F32, n_tokens, k > 0 ? k : n_experts);
    if (k > 0) bench_weight(&b, TN_TYPE_F32, 0, n_experts, k);
    if (k > 0) check_vec(&b.c, TN_TYPE_F32, k);
    if (k > 0)
        snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 of %lld experts, from rows of %lld",
                 (long long)n_tokens, (long long)n_experts, (long long)k);
    else
        snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 of %lld experts, from logits",
                 (long long)n_tokens, (long long)n_experts);
    check_bench_case(r, &b);
}

static void time_combine(bench_run *r, int64_t n_tokens)
{
    bench_case b;
    bench_begin(&b, TN_OP_moe_combine, TN_TYPE_F32);
    b.c.params.moe_combine.n_added = 1;
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 2048);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 8);
    check_mat(&b.c, TN_TYPE_F32, n_tokens, 2048);
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 experts and a residual, n 2048", (long long)n_tokens);
    check_bench_case(r, &b);
}

static void time_top_k(bench_run *r, int64_t m, int64_t n, int32_t k)
{
    check_case c = bench_named(TN_OP_top_k, k == 8 ? "8 of" : "40 of");
    c.params.top_k.k = k;
    bench_rows(r, &c, 1, 0, (int64_t[]){m, n});
}

void check_bench_moe(bench_run *r)
{
    bool device = bench_is_device(r);
    for (int32_t i = 0; i < bench_n_rows(r); i++) time_top_k(r, bench_rows_of(r, i), 128, 8);
    time_top_k(r, 1, BENCH_VOCAB, 40); // as samplers do
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
