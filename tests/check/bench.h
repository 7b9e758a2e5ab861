// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark's loop (bench.c) and its shapes (bench_shapes.c, bench_<family>.c) share.
#ifndef TN_TESTS_CHECK_BENCH_H
#define TN_TESTS_CHECK_BENCH_H

#include "ops/cost.h"
#include "tests/check/check.h"

typedef struct bench_case {
    check_case c; // c.note names the shape
    tn_cost cost; // filled when it is timed
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
// Those of the ops of a family, in bench_<family>.c.
#define TN_FAMILY(name, set) void check_bench_##name(bench_run *r);
#include "ops/families.def"

// Sizes of a model that several of them use.
enum {
    BENCH_D_MODEL = 4096,
    BENCH_D_FF = 11008,
    BENCH_D_KV = 1024,
    BENCH_D_EXPERT = 1408,
    BENCH_N_EXPERTS = 32,
    BENCH_N_USED = 4,
    BENCH_PREFILL = 128,
    BENCH_VOCAB = 151936
};

// Whether the target keeps weights in a layout of its own, as devices do: then there is more to time, and
// time for it.
bool bench_is_device(const bench_run *r);
// Numbers of rows of activations to time the ops on rows with.
int32_t bench_n_rows(const bench_run *r);
int64_t bench_rows_of(const bench_run *r, int32_t i);
// Begins a case of an op about a type; a case with nothing but a note.
void bench_begin(bench_case *b, int32_t op, tn_dtype type);
check_case bench_named(int32_t op, const char *note);
check_operand *bench_weight(bench_case *b, tn_dtype type, int64_t experts, int64_t n, int64_t k);
// Times an op whose sources are n_sources of [m, n], followed by n_vectors vectors [n]; shape: m and n.
void bench_rows(bench_run *r, const check_case *like, int32_t n_sources, int32_t n_vectors,
                const int64_t *shape);

#endif
