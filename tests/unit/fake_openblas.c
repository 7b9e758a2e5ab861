// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A library in the place of OpenBLAS, for test_openblas.c: environment variables say what it is when it is
// loaded. With FAKE_PART it lacks a function.
#include "tests/unit/fake_openblas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_openblas *fake_openblas_get(void);
EXPORT int openblas_get_num_threads(void);
EXPORT void openblas_set_num_threads(int n);
EXPORT int openblas_get_parallel(void);
EXPORT char *openblas_get_config(void);
EXPORT void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                        const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static fake_openblas state;
static char config[200];

__attribute__((constructor)) static void start(void)
{
    const char *parallel = getenv("FAKE_PARALLEL"), *threads = getenv("FAKE_THREADS"),
               *text = getenv("FAKE_CONFIG");
    state.parallel = parallel ? atoi(parallel) : 1;
    state.n_threads = threads ? atoi(threads) : 4;
    snprintf(config, sizeof config, "%s", text ? text : "OpenBLAS 0.0 fake MAX_THREADS=64");
}

fake_openblas *fake_openblas_get(void)
{
    return &state;
}

int openblas_get_num_threads(void)
{
    return state.n_threads;
}

void openblas_set_num_threads(int n)
{
    state.n_threads = n;
}

int openblas_get_parallel(void)
{
    return state.parallel;
}

char *openblas_get_config(void)
{
    return config;
}

#ifndef FAKE_PART
EXPORT char *openblas_get_corename(void);
char *openblas_get_corename(void)
{
    static char core[] = "Fake";
    return core;
}
#endif

// Rows of a and of b, both along k: all that the backend asks for.
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    state.n_calls++;
    if (order != 101 || transpose_a != 111 || transpose_b != 112 || state.n_threads != 1) state.n_wrong++;
    if (lda < k || ldb < k || ldc < n) state.n_wrong++;
    if (state.sleeps) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    for (int i = 0; i < m && !state.does_nothing; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0.0;
            for (int t = 0; t < k; t++) sum += (double)a[(long)i * lda + t] * (double)b[(long)j * ldb + t];
            float *to = &c[(long)i * ldc + j];
            *to = alpha * (float)sum + (beta != 0.0f ? beta * *to : 0.0f);
        }
}
