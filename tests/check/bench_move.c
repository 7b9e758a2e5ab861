// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of copies.
#include "ops/quant.h"
#include "tests/check/bench.h"

static void time_cache_write(bench_run *r, tn_dtype type, int64_t n_tokens)
{
    bench_case b;
    bench_begin(&b, TN_OP_cache_write, type);
    check_src(&b.c, type, 4, (int64_t[]){32, 8, 32, 128});
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 128);
    check_vec(&b.c, TN_TYPE_I32, n_tokens)->fill = CHECK_DATA;
    for (int32_t i = 0; i < n_tokens; i++) b.c.ints[i] = 100 + i;
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 8 heads of 128", (long long)n_tokens);
    check_bench_case(r, &b);
}

static void time_get_rows(bench_run *r, tn_dtype type, int64_t n_rows)
{
    bench_case b;
    bench_begin(&b, TN_OP_get_rows, type);
    bench_weight(&b, type, 0, 32000, BENCH_D_MODEL);
    check_range(check_vec(&b.c, TN_TYPE_I32, n_rows), CHECK_INT, 0, 31999);
    snprintf(b.c.note, sizeof b.c.note, "%lld of [32000, %d]", (long long)n_rows, BENCH_D_MODEL);
    check_bench_case(r, &b);
}

void check_bench_move(bench_run *r)
{
    for (size_t i = 0; i < CHECK_N_CACHE_TYPES; i++) time_cache_write(r, check_cache_types[i], 512);
    static const tn_dtype tables[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_Q8_0, TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    for (size_t i = 0; i < TN_COUNT(tables); i++) {
        if (bench_is_device(r)) time_get_rows(r, tables[i], 1);
        time_get_rows(r, tables[i], 512);
    }
    for (int32_t form = 0; form < 3; form++) {
        bench_case b;
        bench_begin(&b, TN_OP_copy, TN_TYPE_F32);
        b.c.params.copy.dtype = form == 0 ? TN_TYPE_F16 : TN_TYPE_F32;
        check_operand *x = check_cube(&b.c, TN_TYPE_F32, 32, 512, 128);
        if (form > 0) check_permuted(x, form, form == 1 ? 2 : 3);
        snprintf(b.c.note, sizeof b.c.note, "%s [32, 512, 128]",
                 form == 0   ? "to F16"
                 : form == 1 ? "heads swapped"
                             : "transposed");
        check_bench_case(r, &b);
    }
    bench_case b;
    bench_begin(&b, TN_OP_concat, TN_TYPE_F32);
    b.c.params.concat.axis = 1;
    for (int32_t i = 0; i < 2; i++) check_mat(&b.c, TN_TYPE_F32, 512, 2048);
    snprintf(b.c.note, sizeof b.c.note, "2 x [512, 2048]");
    check_bench_case(r, &b);
}
