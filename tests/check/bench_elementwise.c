// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of unary, binary and glu.
#include "ops/ops.h"
#include "tests/check/bench.h"

static void time_of(bench_run *r, int64_t m)
{
    static const int32_t kinds[] = {TN_UNARY_AFFINE, TN_UNARY_SILU, TN_UNARY_GELU, TN_UNARY_GELU_ERF,
                                    TN_UNARY_EXP};
    int64_t ff[] = {m, BENCH_D_FF};
    for (size_t i = 0; i < TN_COUNT(kinds); i++) {
        check_case c = bench_named(TN_OP_unary, tn_unary_name(kinds[i]));
        c.params.unary = (tn_unary_params){kinds[i], 0.5f, 0.1f};
        bench_rows(r, &c, 1, 0, ff);
    }
    check_case c = bench_named(TN_OP_binary, "add");
    bench_rows(r, &c, 2, 0, (int64_t[]){m, BENCH_D_MODEL});
    c = bench_named(TN_OP_glu, "silu");
    c.params.glu.act = TN_UNARY_SILU;
    bench_rows(r, &c, 2, 0, ff);
}

void check_bench_elementwise(bench_run *r)
{
    for (int32_t i = 0; i < bench_n_rows(r); i++) time_of(r, bench_rows_of(r, i));
}
