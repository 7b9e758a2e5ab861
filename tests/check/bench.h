// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark's loop (bench.c) and its list of shapes (bench_shapes.c) share.
#ifndef TN_TESTS_CHECK_BENCH_H
#define TN_TESTS_CHECK_BENCH_H

#include "tests/check/check.h"

typedef struct bench_case {
    check_case c; // c.note names the shape
    double bytes; // that have to be read or written at least once
    double flops; // multiplications and additions; 0: not counted
} bench_case;

typedef struct bench_run {
    check_run *run;
    const check_target *target;
    check_peaks peaks;
} bench_run;

// Times the case if the options want it, and prints a line.
void check_bench_case(bench_run *r, bench_case *b);
// All cases, on shapes of models of 1 to 8 billion weights.
void check_bench_shapes(bench_run *r);

#endif
