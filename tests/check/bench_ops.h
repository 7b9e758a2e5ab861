// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What bench_ops.c and bench_attention.c share: views on fresh memory, running one kernel with a team of
// threads, comparing with the reference.
#ifndef TN_TESTS_BENCH_OPS_H
#define TN_TESTS_BENCH_OPS_H

#include "backends/cpu/kernel.h"
#include "ops/ops.h"

typedef struct bench_case {
    int32_t op, n_src, n_dst;
    const void *params;
    tn_view src[TN_MAX_SRC], dst[TN_MAX_DST];
    char note[64];
    bool alias;           // dst 0 is src 0
    bool ulp;             // report the largest error in units in the last place
    int64_t bytes, flops; // per run, for times
} bench_case;

uint32_t bench_random(void);
tn_view bench_view(tn_dtype type, int64_t a, int64_t b, int64_t c, int64_t d);
void bench_free(tn_view *v);
void bench_fill(tn_view *v, float scale);                // normal values, of any type that can be written
void bench_scale(tn_view *v, float scale, float offset); // F32
void bench_swap_dims(tn_view *v, int a, int b);
tn_step bench_step(const bench_case *c);
void bench_run(const tn_cpu_kernel *kernel, const tn_step *step, int n_threads);
// Next kernel of an op that this machine can run, after `previous` (NULL: the first).
const tn_cpu_kernel *bench_next_kernel(int32_t op, const tn_cpu_kernel *previous);
void bench_check(bench_case *c);
void bench_fail(const char *kernel, const char *note, const char *what);
void bench_time(const bench_case *c, int n_threads);
int bench_report(void); // prints the worst error per op; exit status

#endif
