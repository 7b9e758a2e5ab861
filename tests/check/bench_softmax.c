// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of the ops that reduce rows.
#include "tests/check/bench.h"

void check_bench_softmax(bench_run *r)
{
    for (int32_t i = 0; i < bench_n_rows(r); i++) {
        int64_t m = bench_rows_of(r, i), model[] = {m, BENCH_D_MODEL}, vocab[] = {m, BENCH_VOCAB};
        check_case c = bench_named(TN_OP_softmax, "");
        bench_rows(r, &c, 1, 0, model);
        c = bench_named(TN_OP_reduce, "sum");
        bench_rows(r, &c, 1, 0, model);
        if (m > 32) continue; // logits of that many rows would take gigabytes
        c = bench_named(TN_OP_argmax, "");
        bench_rows(r, &c, 1, 0, vocab);
        c = bench_named(TN_OP_argmax_logprob, "");
        bench_rows(r, &c, 1, 0, vocab);
    }
}
