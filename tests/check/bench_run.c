// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Running and comparing single kernels; see bench_ops.h.
#include "tests/check/bench_ops.h"

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/matmul.h"
#include "core/backend.h"
#include "core/cpu_features.h"
#include "core/fp16.h"
#include "ops/quant.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 64, POISON = 0xa5 };

struct tn_cpu_barrier {
    _Atomic int32_t arrived;
    _Atomic uint32_t round;
};

bool tn_cpu_stopped(const tn_cpu_task *task)
{
    TN_UNUSED(task);
    return false;
}

void tn_cpu_barrier_wait(const tn_cpu_task *task)
{
    tn_cpu_barrier *b = task->barrier;
    uint32_t round = atomic_load(&b->round);
    if (atomic_fetch_add(&b->arrived, 1) == task->nth - 1) {
        atomic_store(&b->arrived, 0);
        atomic_store(&b->round, round + 1);
    }
    while (task->nth > 1 && atomic_load(&b->round) == round) TN_PAUSE();
}

// No devices: kernels are called directly.
const tn_backend *const tn_backends[] = {NULL};
const char *const tn_backends_not_built[] = {NULL};

#define GENERIC    TN_ISA_GENERIC
#define AVX2       TN_ISA_AVX2
#define AVX512     TN_ISA_AVX512
#define AVX512VNNI TN_ISA_AVX512VNNI
static const tn_cpu_kernel rows[] = {
#define TN_CPU_KERNEL(op, isa, name, accepts, scratch, flags)                                                \
    {TN_OP_##op, isa, #name, accepts, scratch, tn_##name, flags},
#include "backends/cpu/kernels.def"
};

static struct {
    double nmse, ulp;
    int n;
} worst[TN_OP_COUNT];
static int n_failed;
static uint64_t seed = 0x9e3779b97f4a7c15u;

uint32_t bench_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

static float random_normal(void)
{
    float s = 0.0f;
    for (int i = 0; i < 4; i++) s += (float)(bench_random() >> 8) * 0x1p-24f;
    return (s - 2.0f) * 1.7320508f;
}

static size_t view_size(const tn_view *v)
{
    return tn_dtype_row_size(v->dtype, v->ne[3]) * (size_t)tn_view_n_rows(v);
}

tn_view bench_view(tn_dtype type, int64_t a, int64_t b, int64_t c, int64_t d)
{
    tn_view v = {.dtype = type, .n_dims = 4, .ne = {a, b, c, d}};
    tn_view_set_contiguous(&v);
    char *p = aligned_alloc(64, (view_size(&v) + 2 * GUARD + 63) / 64 * 64);
    if (!p) exit(2);
    memset(p, POISON, view_size(&v) + 2 * GUARD);
    v.data = p + GUARD;
    return v;
}

void bench_free(tn_view *v)
{
    free((char *)v->data - GUARD);
    v->data = NULL;
}

void bench_fill(tn_view *v, float scale)
{
    for (int64_t r = 0; r < tn_view_n_rows(v); r++) {
        float *row = malloc((size_t)v->ne[3] * sizeof *row);
        if (!row) exit(2);
        for (int64_t i = 0; i < v->ne[3]; i++) row[i] = random_normal() * scale;
        tn_quant_info_get(v->dtype)->from_f32(row, tn_view_row(v, r), v->ne[3], NULL);
        free(row);
    }
}

void bench_scale(tn_view *v, float scale, float offset)
{
    for (int64_t i = 0; i < tn_view_n_elems(v); i++)
        ((float *)v->data)[i] = ((float *)v->data)[i] * scale + offset;
}

void bench_swap_dims(tn_view *v, int a, int b)
{
    int64_t ne = v->ne[a], nb = v->nb[a];
    v->ne[a] = v->ne[b], v->nb[a] = v->nb[b];
    v->ne[b] = ne, v->nb[b] = nb;
}

tn_step bench_step(const bench_case *c)
{
    tn_step s = {.op = c->op, .n_src = c->n_src, .n_dst = c->n_dst, .params = c->params};
    memcpy(s.src, c->src, sizeof s.src);
    memcpy(s.dst, c->dst, sizeof s.dst);
    return s;
}

static void *scratch_alloc(const tn_cpu_kernel *kernel, const tn_step *step, int n_threads)
{
    size_t size = kernel->scratch ? kernel->scratch(step, n_threads) : 0;
    void *scratch = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!scratch) exit(2);
    memset(scratch, 0xff, size); // NaN: what is read before it is written shows
    return scratch;
}

static void launch(const tn_cpu_kernel *kernel, const tn_step *step, int n_threads, void *scratch)
{
    tn_cpu_barrier barrier = {0, 0};
#pragma omp parallel num_threads(n_threads)
    {
        tn_cpu_task task = {.step = step,
                            .ith = omp_get_thread_num(),
                            .nth = omp_get_num_threads(),
                            .barrier = &barrier,
                            .scratch = scratch};
        kernel->launch(&task);
    }
}

void bench_run(const tn_cpu_kernel *kernel, const tn_step *step, int n_threads)
{
    void *scratch = scratch_alloc(kernel, step, n_threads);
    launch(kernel, step, n_threads, scratch);
    free(scratch);
}

static int machine_isa(void)
{
    tn_cpu_features f;
    tn_cpu_features_get(&f);
    return f.avx512vnni ? TN_ISA_AVX512VNNI
           : f.avx512   ? TN_ISA_AVX512
           : f.avx2     ? TN_ISA_AVX2
                        : TN_ISA_GENERIC;
}

const tn_cpu_kernel *bench_next_kernel(int32_t op, const tn_cpu_kernel *previous)
{
    for (size_t i = previous ? (size_t)(previous - rows) + 1 : 0; i < TN_COUNT(rows); i++)
        if (rows[i].op == op && rows[i].isa <= machine_isa()) return &rows[i];
    return NULL;
}

void bench_fail(const char *kernel, const char *note, const char *what)
{
    if (n_failed++ < 40) printf("FAILED %-26s %-32s %s\n", kernel, note, what);
}

static bool guards_intact(const tn_view *v)
{
    const uint8_t *p = v->data;
    for (int i = 1; i <= GUARD; i++)
        if (p[-i] != POISON || p[view_size(v) + (size_t)i - 1] != POISON) return false;
    return true;
}

static double ulp_error(double got, double want)
{
    float w = (float)want;
    double ulp = (double)(nextafterf(fabsf(w), INFINITY) - fabsf(w));
    return isfinite(ulp) ? fabs(got - want) / ulp : 0.0;
}

// NMSE over the finite elements; negative if the others differ in kind.
static double compare(const tn_view *got, const tn_view *want, double *ulp)
{
    double error = 0.0, norm = 0.0;
    for (int64_t r = 0; r < tn_view_n_rows(got); r++)
        for (int64_t j = 0; j < got->ne[3]; j++) {
            double a = tn_view_get_row(got, r, j), b = tn_view_get_row(want, r, j);
            if (!isfinite(a) || !isfinite(b)) {
                if (!(isnan(a) && isnan(b)) && a != b) return -1.0;
                continue;
            }
            error += (a - b) * (a - b);
            norm += b * b;
            *ulp = fmax(*ulp, ulp_error(a, b));
        }
    return error == 0.0 ? 0.0 : norm > 0.0 ? error / norm : INFINITY;
}

static void fresh_outputs(const bench_case *c, tn_step *step)
{
    for (int i = 0; i < c->n_dst; i++) {
        const tn_view *v = &c->dst[i];
        tn_view fresh = bench_view(v->dtype, v->ne[0], v->ne[1], v->ne[2], v->ne[3]);
        fresh.n_dims = v->n_dims;
        if (c->alias && i == 0) memcpy(fresh.data, c->src[0].data, view_size(v));
        step->dst[i] = fresh;
    }
    if (c->alias) step->src[0] = step->dst[0];
}

static void free_outputs(tn_step *step)
{
    for (int i = 0; i < step->n_dst; i++) bench_free(&step->dst[i]);
}

static void check_kernel(const bench_case *c, const tn_cpu_kernel *k, const tn_step *want)
{
    tn_step one = bench_step(c), three = bench_step(c);
    fresh_outputs(c, &one);
    fresh_outputs(c, &three);
    bench_run(k, &one, 1);
    bench_run(k, &three, 3);
    for (int i = 0; i < c->n_dst; i++) {
        double ulp = 0.0, nmse = compare(&one.dst[i], &want->dst[i], &ulp);
        char text[64];
        snprintf(text, sizeof text, "result %d: NMSE %.3g", i, nmse);
        if (!(nmse >= 0.0 && nmse <= tn_op_info_get(c->op)->nmse)) bench_fail(k->name, c->note, text);
        if (!guards_intact(&one.dst[i]) || !guards_intact(&three.dst[i]))
            bench_fail(k->name, c->note, "writes outside");
        if (memcmp(one.dst[i].data, three.dst[i].data, view_size(&one.dst[i])) != 0)
            bench_fail(k->name, c->note, "depends on the number of threads");
        if (c->alias && memcmp(one.dst[i].data, want->dst[i].data, view_size(&one.dst[i])) != 0)
            bench_fail(k->name, c->note, "bytes differ from the reference");
        worst[c->op].nmse = fmax(worst[c->op].nmse, nmse);
        if (c->ulp) worst[c->op].ulp = fmax(worst[c->op].ulp, ulp);
        if (c->ulp && ulp > 16.0) printf("%-26s %-32s %.1f ulp\n", k->name, c->note, ulp);
    }
    worst[c->op].n++;
    free_outputs(&one);
    free_outputs(&three);
}

void bench_check(bench_case *c)
{
    tn_step want = bench_step(c);
    fresh_outputs(c, &want);
    tn_op_info_get(c->op)->ref(&want);
    for (const tn_cpu_kernel *k = bench_next_kernel(c->op, NULL); k; k = bench_next_kernel(c->op, k)) {
        tn_step step = bench_step(c);
        if (k->accepts(&step))
            check_kernel(c, k, &want);
        else
            bench_fail(k->name, c->note, "does not accept the step");
    }
    free_outputs(&want);
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_time(const bench_case *c, int n_threads)
{
    tn_step step = bench_step(c);
    for (const tn_cpu_kernel *k = bench_next_kernel(c->op, NULL); k; k = bench_next_kernel(c->op, k)) {
        if (k->isa == TN_ISA_GENERIC && c->flops > 20000000000) continue;
        enum { MAX_RUNS = 201 };
        double times[MAX_RUNS], begin = now();
        int n = 0;
        void *scratch = scratch_alloc(k, &step, n_threads);
        launch(k, &step, n_threads, scratch);
        while (n < MAX_RUNS && (n < 3 || now() - begin < 0.7)) {
            double start = now();
            launch(k, &step, n_threads, scratch);
            times[n++] = now() - start;
        }
        free(scratch);
        qsort(times, (size_t)n, sizeof *times, by_value);
        double t = times[n / 2];
        printf("  %-26s %-26s %10.1f us +-%4.1f%%  %7.1f GB/s", k->name, c->note, t * 1e6,
               (times[n * 3 / 4] - times[n / 4]) / t * 50.0, (double)c->bytes / t * 1e-9);
        if (c->flops) printf("  %7.1f GFLOP/s", (double)c->flops / t * 1e-9);
        printf("\n");
    }
}

int bench_report(void)
{
    for (int op = 0; op < TN_OP_COUNT; op++)
        if (worst[op].n > 0)
            printf("%-14s %5d runs, worst NMSE %.2g (limit %.0e)%s%.2g\n", tn_op_name(op), worst[op].n,
                   worst[op].nmse, tn_op_info_get(op)->nmse,
                   worst[op].ulp > 0.0 ? ", worst ulp of normal inputs " : " ", worst[op].ulp);
    printf("%d failed\n", n_failed);
    return n_failed > 0;
}
