// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops with a state per sequence: not timed yet, their share of a token is small.
#include "tests/check/bench.h"

void check_bench_recurrent(bench_run *r)
{
    TN_UNUSED(r);
}
