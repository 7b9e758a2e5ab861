// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Peaks of the processor (the roofs of a roofline model). Reading: every thread sums its own part of 640 MB,
// far above any cache here. Copying: every thread copies one half of its part to the other. Computing: chains
// of multiply-add that live in registers; 12 independent chains hide 4-cycle latency on machines with up to
// three multipliers. The variants are built with target attributes and chosen at run time, so that the file
// needs no flags of its own.
#include "tools/costs/peak.h"

#include "tools/common.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_X86 1
#else
#define HAS_X86 0
#endif

enum {
    CHAINS = 12,
    ROUNDS = 4096, // of all chains, between two readings of the clock
    SLICE_MS = 10, // measured at a time; the best slice counts, so that other programs disturb less
    SLICES = 16,
    READ_PASSES = 6,
    READ_MB = 640,
    THREADS_MAX = 512,
};

// --- chains ----------------------------------------------------------------------------------------------

typedef struct chain_row {
    const char *isa;
    double ops; // of one call
    float (*run)(float seed);
} chain_row;

static float chain_plain(float seed)
{
    float acc[CHAINS * 4], mul = 1 - seed * 1e-6f, sum = 0;
    for (int k = 0; k < CHAINS * 4; k++) acc[k] = seed + (float)k;
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < CHAINS * 4; k++) acc[k] = acc[k] * mul + seed;
    for (int k = 0; k < CHAINS * 4; k++) sum += acc[k];
    return sum;
}

#if HAS_X86
// The chains are written out: an array that is indexed in a loop would live in memory, not in registers.
#define EACH_CHAIN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
// Keeps a chain in its register. Without it gcc adds the integers of several chains in an order that needs
// more registers than there are: with AVX2 the chains of bytes ran at two thirds of their speed.
#define KEEP(a) __asm__("" : "+x"(a))
// With BEGIN, ROUND and COLLECT of one kind of arithmetic.
#define RUN_CHAINS                                                                                           \
    EACH_CHAIN(BEGIN)                                                                                        \
    for (int i = 0; i < ROUNDS; i++) {                                                                       \
        EACH_CHAIN(ROUND)                                                                                    \
    }                                                                                                        \
    EACH_CHAIN(COLLECT)

__attribute__((target("avx2,fma"))) static float chain_f32_avx2(float seed)
{
    __m256 mul = _mm256_set1_ps(1 - seed * 1e-6f), add = _mm256_set1_ps(seed);
#define BEGIN(k)   __m256 a##k = _mm256_set1_ps(seed + k);
#define ROUND(k)   a##k = _mm256_fmadd_ps(a##k, mul, add);
#define COLLECT(k) add = _mm256_add_ps(add, a##k);
    RUN_CHAINS
#undef BEGIN
#undef ROUND
#undef COLLECT
    return _mm256_cvtss_f32(add);
}

__attribute__((target("avx512f"))) static float chain_f32_avx512(float seed)
{
    __m512 mul = _mm512_set1_ps(1 - seed * 1e-6f), add = _mm512_set1_ps(seed);
#define BEGIN(k)   __m512 a##k = _mm512_set1_ps(seed + k);
#define ROUND(k)   a##k = _mm512_fmadd_ps(a##k, mul, add);
#define COLLECT(k) add = _mm512_add_ps(add, a##k);
    RUN_CHAINS
#undef BEGIN
#undef ROUND
#undef COLLECT
    return _mm512_cvtss_f32(add);
}

// Bytes times bytes as AVX2 does it: pairs are multiplied and added to 16 bits, then to 32 bits, then
// accumulated.
__attribute__((target("avx2"))) static float chain_int8_avx2(float seed)
{
    __m256i x = _mm256_set1_epi8((char)seed), one = _mm256_set1_epi16(1), sum = x;
#define BEGIN(k)   __m256i a##k = _mm256_set1_epi32(k);
#define ROUND(k)                                                                                             \
    a##k = _mm256_add_epi32(a##k, _mm256_madd_epi16(_mm256_maddubs_epi16(x, a##k), one));                    \
    KEEP(a##k);
#define COLLECT(k) sum = _mm256_add_epi32(sum, a##k);
    RUN_CHAINS
#undef BEGIN
#undef ROUND
#undef COLLECT
    return (float)_mm256_extract_epi32(sum, 0);
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) static float chain_int8_vnni(float seed)
{
    __m512i x = _mm512_set1_epi8((char)seed), y = _mm512_set1_epi8(3), sum = x;
#define BEGIN(k)   __m512i a##k = _mm512_set1_epi32(k);
#define ROUND(k)   a##k = _mm512_dpbusd_epi32(a##k, x, y);
#define COLLECT(k) sum = _mm512_add_epi32(sum, a##k);
    RUN_CHAINS
#undef BEGIN
#undef ROUND
#undef COLLECT
    return (float)_mm_cvtsi128_si32(_mm512_castsi512_si128(sum));
}

#if __GNUC__ >= 10
#define HAS_BF16 1
__attribute__((target("avx512f,avx512bw,avx512bf16"))) static float chain_bf16_avx512(float seed)
{
    __m512 add = _mm512_set1_ps(seed);
    __m512bh x = _mm512_cvtne2ps_pbh(add, add);
#define BEGIN(k)   __m512 a##k = _mm512_set1_ps(seed + k);
#define ROUND(k)   a##k = _mm512_dpbf16_ps(a##k, x, x);
#define COLLECT(k) add = _mm512_add_ps(add, a##k);
    RUN_CHAINS
#undef BEGIN
#undef ROUND
#undef COLLECT
    return _mm512_cvtss_f32(add);
}
#endif
#endif
#ifndef HAS_BF16
#define HAS_BF16 0
#endif

static chain_row best_f32(void)
{
#if HAS_X86
    if (__builtin_cpu_supports("avx512f"))
        return (chain_row){"avx512", 2.0 * 16 * CHAINS * ROUNDS, chain_f32_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (chain_row){"avx2", 2.0 * 8 * CHAINS * ROUNDS, chain_f32_avx2};
#endif
    return (chain_row){"generic", 2.0 * 4 * CHAINS * ROUNDS, chain_plain};
}

static chain_row best_int8(void)
{
#if HAS_X86
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return (chain_row){"avx512vnni", 2.0 * 64 * CHAINS * ROUNDS, chain_int8_vnni};
    if (__builtin_cpu_supports("avx2"))
        return (chain_row){"avx2", 2.0 * 32 * CHAINS * ROUNDS, chain_int8_avx2};
#endif
    return (chain_row){"generic", 2.0 * 4 * CHAINS * ROUNDS, chain_plain};
}

// run is NULL: the processor has none.
static chain_row best_bf16(void)
{
#if HAS_BF16
    if (__builtin_cpu_supports("avx512bf16"))
        return (chain_row){"avx512bf16", 2.0 * 32 * CHAINS * ROUNDS, chain_bf16_avx512};
#endif
    return (chain_row){"", 0, NULL};
}

// --- threads ---------------------------------------------------------------------------------------------

// Shared by the threads of one measurement.
// Threads wait at the first barrier until all of them exist, or until it is known that one could not be made.
typedef struct gate {
    atomic_int go; // 0: wait, 1: begin, -1: a thread could not be made, leave
    sys_barrier *start;
} gate;

typedef struct job {
    gate *gate;
    chain_row chain; // run == NULL: read instead, or copy
    bool copy;
    uint64_t *words;
    size_t n_words;
    double rate;          // out: operations or bytes per second
    volatile double sink; // so that the compiler keeps the work
} job;

static void run_chain(job *j)
{
    double sum = 0;
    for (int i = 0; i < SLICES; i++) {
        uint64_t start = now_ns(), now = start;
        double ops = 0;
        while (now - start < SLICE_MS * 1000000ull) {
            sum += (double)j->chain.run(1.5f);
            ops += j->chain.ops;
            now = now_ns();
        }
        double rate = ops * 1e9 / (double)(now - start);
        if (rate > j->rate) j->rate = rate;
    }
    j->sink = sum;
}

// Eight sums, so that no addition waits for the one before; 4 KiB ahead is prefetched, because the hardware
// prefetcher alone reaches three quarters of the bandwidth (21 to 24 instead of 28 to 32 GB/s on two cores of
// a Xeon).
static uint64_t sum_words(const uint64_t *p, size_t n)
{
    enum { AHEAD = 512 };
    uint64_t s[8] = {0};
    for (size_t i = 0; i + 8 <= n; i += 8) {
        __builtin_prefetch(p + i + AHEAD);
        for (size_t k = 0; k < 8; k++) s[k] += p[i + k];
    }
    return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

static uint64_t copy_words(uint64_t *p, size_t n)
{
    memcpy(p + n / 2, p, n / 2 * sizeof *p);
    return p[n - 1];
}

static void run_memory(job *j)
{
    for (int pass = 0; pass < READ_PASSES; pass++) {
        sys_barrier_wait(j->gate->start); // all read at the same time in every pass
        uint64_t start = now_ns();
        uint64_t sum = j->copy ? copy_words(j->words, j->n_words) : sum_words(j->words, j->n_words);
        double rate = (double)(j->n_words * 8) * 1e9 / (double)(now_ns() - start);
        if (rate > j->rate) j->rate = rate;
        j->sink = (double)sum;
    }
}

static void run_job(void *arg)
{
    job *j = arg;
    int go;
    while ((go = atomic_load(&j->gate->go)) == 0) continue; // for the microseconds that starting takes
    if (go < 0) return;
    // Touched first by the thread that reads it: pages lie on its memory node, and are no zero page.
    for (size_t i = 0; i < j->n_words; i++) j->words[i] = i;
    sys_barrier_wait(j->gate->start);
    if (j->chain.run)
        run_chain(j);
    else
        run_memory(j);
}

// Starts the threads and waits for them; the sum of their rates, 0 on failure.
static double run_threads(int32_t n, gate *g, job *jobs, sys_thread **threads)
{
    double rate = 0;
    int32_t made = 0;
    while (made < n && (threads[made] = sys_thread_start(run_job, &jobs[made])) != NULL) made++;
    atomic_store(&g->go, made == n ? 1 : -1);
    for (int32_t i = 0; i < made; i++) {
        sys_thread_join(threads[i]);
        rate += jobs[i].rate;
    }
    return made == n ? rate : 0;
}

// words: NULL, or what the threads read or copy, in equal parts.
static double run_jobs(int32_t n, const job *like, uint64_t *words, size_t n_words)
{
    gate g = {.start = sys_barrier_create(n)};
    job *jobs = calloc((size_t)n, sizeof *jobs);
    sys_thread **threads = calloc((size_t)n, sizeof *threads);
    double rate = 0;
    if (jobs && threads && g.start) {
        for (int32_t i = 0; i < n; i++) {
            size_t part = n_words / (size_t)n;
            jobs[i] = (job){.gate = &g, .chain = like->chain, .copy = like->copy};
            if (words) jobs[i].words = words + (size_t)i * part;
            if (words) jobs[i].n_words = part;
        }
        rate = run_threads(n, &g, jobs, threads);
    }
    sys_barrier_destroy(g.start);
    free(jobs);
    free(threads);
    return rate;
}

static double run_chains(int32_t n, chain_row chain)
{
    return chain.run ? run_jobs(n, &(job){.chain = chain}, NULL, 0) : 0;
}

bool peaks_measure(int32_t n_threads, peaks *out)
{
    *out = (peaks){.read = 0};
    snprintf(out->f32_isa, sizeof out->f32_isa, "%s", best_f32().isa);
    snprintf(out->int8_isa, sizeof out->int8_isa, "%s", best_int8().isa);
    if (n_threads < 1 || n_threads > THREADS_MAX) return false;
    size_t n_words = (size_t)READ_MB * 1000000 / 8;
    uint64_t *words = malloc(n_words * 8);
    if (!words) return false;
    out->read = run_jobs(n_threads, &(job){.copy = false}, words, n_words);
    out->copy = run_jobs(n_threads, &(job){.copy = true}, words, n_words);
    out->core_read = n_threads > 1 ? run_jobs(1, &(job){.copy = false}, words, n_words) : out->read;
    free(words);
    out->rate[TN_PRECISION_f32] = run_chains(n_threads, best_f32());
    out->rate[TN_PRECISION_int8] = run_chains(n_threads, best_int8());
    out->rate[TN_PRECISION_bf16] = run_chains(n_threads, best_bf16());
    out->core_f32 = n_threads > 1 ? run_chains(1, best_f32()) : out->rate[TN_PRECISION_f32];
    return out->read > 0 && out->rate[TN_PRECISION_f32] > 0 && out->rate[TN_PRECISION_int8] > 0;
}
