// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What this machine can do at most, with all threads of a target: bytes read from memory, f32 multiply-adds
// and int8 products. A share of these is what a benchmark reports. Other devices than the CPU: not measured.
#include "tests/check/peak.h"

#include "tests/check/check.h"

#include <stdlib.h>
#include <string.h>

enum { READ_SIZE = 640 << 20, ROUNDS = 9, ARITHMETIC_ROUNDS = 20000000 };

typedef struct level {
    const char *name;
    float (*fma)(int64_t n);
    int32_t (*dot)(int64_t n); // NULL: the level has no product of integers worth the name
    int32_t fma_width, dot_width;
} level;

// Where no level below has vectors: one element at a time.
static float fma_scalar(int64_t n)
{
    float a = 0.999f, b = 1e-3f;
#define DECLARE(i) float v##i = (float)(i);
#define STEP(i)    v##i = v##i * a + b;
#define SUM(i)     b += v##i;
    CHECK_PEAK_REPEAT(DECLARE)
    for (int64_t r = 0; r < n; r++) {
        CHECK_PEAK_REPEAT(STEP)
    }
    CHECK_PEAK_REPEAT(SUM)
    return b;
#undef DECLARE
#undef STEP
#undef SUM
}

static const level levels[] = {
    {"scalar", fma_scalar, NULL, 1, 0}, // of machines without a row
#if defined(__x86_64__)
    {"generic", check_peak_fma_sse2, NULL, 4, 0},
    {"avx2", check_peak_fma_avx2, check_peak_dot_avx2, 8, 32},
    {"avx512", check_peak_fma_avx512, check_peak_dot_avx512, 16, 64},
    {"avx512vnni", check_peak_fma_avx512, check_peak_dot_avx512vnni, 16, 64},
#endif
};

typedef struct work {
    const level *level;
    const uint64_t *data;
    int64_t n; // words, or rounds
    volatile uint64_t sink;
} work;

static void fma_task(void *arg, int32_t i, int32_t team)
{
    work *w = arg;
    TN_UNUSED(i);
    TN_UNUSED(team);
    if (w->level->fma(w->n) == 0.5f) w->sink = 1; // never; keeps the result alive
}

static void dot_task(void *arg, int32_t i, int32_t team)
{
    work *w = arg;
    TN_UNUSED(i);
    TN_UNUSED(team);
    if (w->level->dot(w->n) == 1) w->sink = 1;
}

static void read_task(void *arg, int32_t i, int32_t team)
{
    work *w = arg;
    int64_t a = w->n * i / team / 8 * 8, b = w->n * (i + 1) / team / 8 * 8;
    uint64_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (const uint64_t *p = w->data + a, *end = w->data + b; p < end; p += 8) {
        TN_PREFETCH(p + 512); // 4 KiB: the hardware's own prefetch alone leaves a quarter of the bandwidth
        s0 += p[0] + p[1];
        s1 += p[2] + p[3];
        s2 += p[4] + p[5];
        s3 += p[6] + p[7];
    }
    if (s0 + s1 + s2 + s3 == 1) w->sink = 1;
}

// Seconds of the fastest of several rounds: a peak is what is possible.
static double fastest(const check_target *t, tn_parallel_fn task, work *w)
{
    double best = 0.0;
    for (int32_t i = 0; i < ROUNDS; i++) {
        uint64_t start = tn_time_ns();
        if (tn_parallel(t->ctx, tn_context_n_threads(t->ctx), task, w) != TN_OK) return 1e9;
        double seconds = (double)(tn_time_ns() - start) * 1e-9;
        if (i == 0 || seconds < best) best = seconds;
    }
    return best;
}

static double measure_read(const check_target *t)
{
    work w = {.n = READ_SIZE / 8};
    uint64_t *data = malloc(READ_SIZE);
    if (!data) return 0.0;
    memset(data, 1, READ_SIZE);
    w.data = data;
    double seconds = fastest(t, read_task, &w);
    free(data);
    return (double)READ_SIZE / seconds;
}

check_peaks check_peaks_measure(const check_target *t)
{
    check_peaks p = {0};
    const level *l = &levels[0];
    if (!t->device->host_memory) return p;
    for (size_t i = 0; i < TN_COUNT(levels); i++)
        if (strcmp(levels[i].name, t->label) == 0) l = &levels[i];
    double n_threads = tn_context_n_threads(t->ctx);
    work w = {.level = l, .n = ARITHMETIC_ROUNDS};
    double ops = 2.0 * CHECK_PEAK_CHAINS * (double)ARITHMETIC_ROUNDS * n_threads;
    p.read = measure_read(t);
    p.fma = ops * l->fma_width / fastest(t, fma_task, &w);
    if (l->dot) p.dot = ops * l->dot_width / fastest(t, dot_task, &w);
    return p;
}
