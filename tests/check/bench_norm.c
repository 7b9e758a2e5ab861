// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of the norms.
#include "tests/check/bench.h"

void check_bench_norm(bench_run *r)
{
    static const int32_t ops[] = {TN_OP_rms_norm, TN_OP_layer_norm, TN_OP_add_rms_norm};
    for (int32_t i = 0; i < bench_n_rows(r); i++)
        for (size_t k = 0; k < TN_COUNT(ops); k++) {
            check_case c = bench_named(ops[k], "");
            bench_rows(r, &c, ops[k] == TN_OP_add_rms_norm ? 2 : 1, ops[k] == TN_OP_layer_norm ? 2 : 1,
                       (int64_t[]){bench_rows_of(r, i), BENCH_D_MODEL});
        }
}
