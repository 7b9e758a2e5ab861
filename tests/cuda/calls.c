// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the calls into the driver cost, on a real device: a libcuda.so.1 that hands every call on to the real
// one and sums up times by function, printed at the end. Not part of the build:
//     cc -O2 -shared -fPIC -I. -I"$CUDA/include" -o calls/libcuda.so.1 tests/cuda/calls.c
//     LD_LIBRARY_PATH=$PWD/calls REAL_CUDA=/usr/lib/x86_64-linux-gnu/libcuda.so.1 tenon run m.gguf -p x -n 1
//     --backend cuda
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
#define TN_CUDA_FN(member, symbol, params) CALL_##member,
#include "backends/cuda/runtime/driver.def"
    CALLS
};

static const char *const names[CALLS] = {
#define TN_CUDA_FN(member, symbol, params) symbol,
#include "backends/cuda/runtime/driver.def"
};

typedef uint64_t word;
typedef int (*entry)(word, word, word, word, word, word, word, word, word, word, word, word);
static entry entries[CALLS];
static long counts[CALLS];
static double total_ms[CALLS], longest_ms[CALLS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void report(void)
{
    double all = 0.0;
    for (int i = 0; i < CALLS; i++) all += total_ms[i];
    fprintf(stderr, "%-32s %7.1f ms\n", "driver, all calls", all);
    for (int i = 0; i < CALLS; i++)
        if (total_ms[i] >= 0.5)
            fprintf(stderr, "%-32s %7.1f ms %6ld times, longest %.1f\n", names[i], total_ms[i], counts[i],
                    longest_ms[i]);
}

__attribute__((constructor)) static void load(void)
{
    const char *path = getenv("REAL_CUDA");
    double start = now();
    void *real = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!real) {
        fprintf(stderr, "calls: REAL_CUDA names no library: %s\n", path ? dlerror() : "it is not set");
        exit(1);
    }
    fprintf(stderr, "%-32s %7.1f ms\n", "loading the driver", now() - start);
    for (int i = 0; i < CALLS; i++) *(void **)&entries[i] = dlsym(real, names[i]);
    atexit(report);
}

// All arguments are integers or addresses; those that a function does not have are whatever lies there.
static int call(int i, word a, word b, word c, word d, word e, word f, word g, word h, word k, word l, word m,
                word n)
{
    double start = now();
    int result = entries[i](a, b, c, d, e, f, g, h, k, l, m, n);
    double ms = now() - start;
    counts[i]++;
    total_ms[i] += ms;
    if (ms > longest_ms[i]) longest_ms[i] = ms;
    return result;
}

#define TN_CUDA_FN(member, symbol, params)                                                                   \
    __attribute__((visibility("default"))) int traced_##member(                                              \
        word, word, word, word, word, word, word, word, word, word, word, word) __asm__(symbol);             \
    int traced_##member(word a, word b, word c, word d, word e, word f, word g, word h, word k, word l,      \
                        word m, word n)                                                                      \
    {                                                                                                        \
        return call(CALL_##member, a, b, c, d, e, f, g, h, k, l, m, n);                                      \
    }
#include "backends/cuda/runtime/driver.def"
