// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks and times the CPU's matrix products without a context or a graph.
//
//   bench_matmul check [--seed N] [TYPE ...]
//       every op, type and level on random shapes against the reference on the same rounded x; results must
//       not depend on the number of threads, stay inside their rows, and carry NaNs.
//   bench_matmul bench [--isa N] [--threads N] [--peak-int8 G] [--peak-f32 G] [--decode 1] [TYPE ...]
//       decode (m 1, 4) and prefill (m 128, 512) on matrices of a 1B model; working set beyond the caches.
//       Peaks: Gop/s of all threads together, for the last column.
#include "backends/cpu/matmul.h"
#include "core/fp16.h"
#include "ops/ops.h"
#include "ops/quant.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 64, GUARD = 64, WORKING_SET = 768 << 20 };

struct tn_cpu_barrier {
    _Atomic int32_t arrived, phase;
};

bool tn_cpu_stopped(const tn_cpu_task *task)
{
    TN_UNUSED(task);
    return false;
}

void tn_cpu_barrier_wait(const tn_cpu_task *task)
{
    tn_cpu_barrier *b = task->barrier;
    int32_t phase = atomic_load(&b->phase);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == task->nth) {
        atomic_store(&b->arrived, 0);
        atomic_fetch_add(&b->phase, 1);
        return;
    }
    while (atomic_load(&b->phase) == phase) TN_PAUSE();
}

typedef void (*work_fn)(void *arg, int32_t ith, int32_t nth);

typedef struct pool {
    pthread_t threads[MAX_THREADS];
    int32_t n;
    work_fn work;
    void *arg;
    _Atomic int32_t go, left; // go counts runs; left: threads still working
} pool;

typedef struct pool_thread {
    pool *p;
    int32_t ith;
} pool_thread;

static pool team;

static void *pool_main(void *arg)
{
    pool_thread me = *(pool_thread *)arg;
    free(arg);
    for (int32_t seen = 0;;) {
        while (atomic_load(&me.p->go) == seen) TN_PAUSE();
        seen++;
        if (!me.p->work) return NULL;
        if (me.ith < me.p->n) me.p->work(me.p->arg, me.ith, me.p->n);
        atomic_fetch_sub(&me.p->left, 1);
    }
}

static int32_t n_started = 1;

static void parallel(int32_t n, work_fn work, void *arg)
{
    team.n = n;
    team.work = work;
    team.arg = arg;
    atomic_store(&team.left, n_started - 1);
    atomic_fetch_add(&team.go, 1);
    work(arg, 0, n);
    while (atomic_load(&team.left) > 0) TN_PAUSE();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t rng = 88172645463325252ull;

static uint32_t rnd(void)
{
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    return (uint32_t)(rng >> 32);
}

static float rnd_float(void) // roughly normal
{
    float s = 0.0f;
    for (int i = 0; i < 6; i++) s += (float)rnd() * (1.0f / 4294967296.0f) - 0.5f;
    return s * 1.414f;
}

static void *need(size_t size)
{
    void *p = aligned_alloc(64, (size + 4095) / 4096 * 4096 + 4096);
    if (!p) abort();
    return p;
}

// --- kernels -----------------------------------------------------------------------------------------

static const struct {
    const char *name;
    tn_cpu_launch_fn launch;
} levels[] = {
    {"generic", tn_matmul_generic},
#if defined(__x86_64__)
    {"avx2", tn_matmul_avx2},
    {"avx512", tn_matmul_avx512},
    {"avx512vnni", tn_matmul_avx512vnni},
#endif
};

static int n_levels(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return 2;
    return __builtin_cpu_supports("avx512vnni") ? 4 : 3;
#else
    return 1;
#endif
}

typedef struct run {
    const tn_step *step;
    tn_cpu_launch_fn launch;
    void *scratch;
    tn_cpu_barrier barrier;
} run;

static void run_thread(void *arg, int32_t ith, int32_t nth)
{
    run *r = arg;
    tn_cpu_task task = {.step = r->step, .ith = ith, .nth = nth, .barrier = &r->barrier, .scratch = r->scratch};
    r->launch(&task);
}

static void launch(run *r, int32_t nth)
{
    parallel(nth, run_thread, r);
}

// --- tensors -----------------------------------------------------------------------------------------

static tn_view view(tn_dtype type, void *data, int64_t n1, int64_t n2, int64_t n3, int64_t pad)
{
    tn_view v = {.data = data, .dtype = type, .n_dims = n1 > 1 ? 3 : 2, .ne = {1, n1, n2, n3}};
    v.nb[3] = (int64_t)tn_dtype_block_size(type);
    v.nb[2] = (int64_t)tn_dtype_row_size(type, n3) + pad * v.nb[3];
    v.nb[1] = v.nb[2] * n2;
    v.nb[0] = v.nb[1] * n1;
    return v;
}

// Memory of tensors, freed together.
static void *tensors[64];
static int n_tensors;

static void *tensor_memory(size_t size)
{
    if (n_tensors == TN_COUNT(tensors)) abort();
    return tensors[n_tensors++] = need(size);
}

static void free_tensors(void)
{
    while (n_tensors > 0) free(tensors[--n_tensors]);
}

static tn_view floats(int64_t n1, int64_t n2, int64_t n3, int64_t pad)
{
    tn_view v = view(TN_TYPE_F32, NULL, n1, n2, n3, pad);
    v.data = tensor_memory((size_t)v.nb[0] + 64);
    for (int64_t i = 0; i < v.nb[0] / 4; i++) ((float *)v.data)[i] = rnd_float();
    return v;
}

// Integers below 64.
static void fill_integers(uint8_t *to, size_t size, size_t elem_size)
{
    for (size_t i = 0; i < size; i++) to[i] = i % elem_size == 0 ? (uint8_t)(rnd() & 63) : 0;
}

// n rows of random weights; at most 96 different ones, K types are slow to quantise.
static void fill_weights(tn_dtype type, uint8_t *to, int64_t n, int64_t k)
{
    size_t row = tn_dtype_row_size(type, k);
    float *x = need((size_t)k * sizeof(float));
    const tn_quant_info *info = tn_quant_info_get(type);
    for (int64_t r = 0; r < TN_MIN(n, 96); r++) {
        for (int64_t i = 0; i < k; i++) x[i] = rnd_float() * 0.05f + (r % 3 == 0 ? 0.02f : 0.0f);
        if (info->from_f32) info->from_f32(x, to + (size_t)r * row, k, NULL);
        else if (tn_dtype_block_elems(type) == 1) fill_integers(to + (size_t)r * row, row, tn_dtype_block_size(type));
        else memset(to + (size_t)r * row, (int)(rnd() & 0x3f), row); // scales stay finite
    }
    for (int64_t r = 96; r < n; r++) memcpy(to + (size_t)r * row, to + (size_t)(rnd() % 96) * row, row);
    free(x);
}

static tn_view weights(tn_dtype type, int64_t n1, int64_t n, int64_t k)
{
    tn_view v = view(type, NULL, n1, n, k, 0);
    uint8_t *p = tensor_memory((size_t)v.nb[0] + 64);
    v.data = p + 2; // blocks lie at any even address in a file
    fill_weights(type, v.data, n1 * n, k);
    return v;
}

// --- check -------------------------------------------------------------------------------------------

typedef struct params {
    tn_linear_params linear;
    tn_matmul_multi_params multi;
    tn_matmul_glu_params glu;
    tn_matmul_id_glu_params id_glu;
} params;

static void results(tn_step *s, int i, int64_t n1, int64_t n2, int64_t n)
{
    s->dst[i] = floats(n1, n2, n, 3);
    s->n_dst = i + 1;
}

static tn_view ids_view(int64_t t, int64_t u, int64_t n_expert)
{
    tn_view v = view(TN_TYPE_I32, tensor_memory((size_t)(t * u) * 4 + 64), 1, t, u, 0);
    for (int64_t i = 0; i < t * u; i++) {
        ((int32_t *)v.data)[i] = (int32_t)(rnd() % (uint32_t)n_expert);
        if (rnd() % 16 == 0) ((int32_t *)v.data)[i] = -1;
    }
    return v;
}

static tn_step make_step(int32_t op, tn_dtype type, int64_t m, int64_t n, int64_t k, params *p)
{
    tn_step s = {.op = op, .n_dst = 1, .name = "check"};
    int64_t n_expert = op == TN_OP_matmul_id || op == TN_OP_matmul_id_glu ? 5 : 1, used = 3;
    bool slots = n_expert > 1, wide = slots && rnd() % 2;
    tn_glu_params glu = {.act = rnd() % 2 ? TN_UNARY_SILU : TN_UNARY_GELU};
    if (rnd() % 3 == 0) glu = (tn_glu_params){.limit = 7.0f, .alpha = 1.702f};
    *p = (params){.glu.glu = glu, .id_glu.glu = glu};
    s.src[s.n_src++] = slots ? floats(m, wide ? used : 1, k, 1) : floats(1, m, k, 5);
    s.src[s.n_src++] = weights(type, n_expert, n, k);
    results(&s, 0, slots ? m : 1, slots ? used : m, n);
    if (op == TN_OP_matmul_glu || op == TN_OP_matmul_id_glu) s.src[s.n_src++] = weights(type, n_expert, n, k);
    if (slots) s.src[s.n_src++] = ids_view(m, used, n_expert);
    if (op == TN_OP_linear) {
        static const int32_t acts[] = {TN_UNARY_NONE, TN_UNARY_SILU, TN_UNARY_GELU, TN_UNARY_GELU_ERF, TN_UNARY_RELU};
        p->linear = (tn_linear_params){.act = acts[rnd() % 5], .has_bias = rnd() % 2, .has_residual = rnd() % 2};
        if (p->linear.has_bias) s.src[s.n_src++] = floats(1, 1, n, 0);
        if (p->linear.has_residual) s.src[s.n_src++] = floats(1, m, n, 2);
        s.params = &p->linear;
    }
    if (op == TN_OP_matmul_multi) {
        p->multi = (tn_matmul_multi_params){.n_weights = 2 + (int32_t)(rnd() % 2), .has_bias = {1, 0, rnd() % 2}};
        tn_dtype second = tn_matmul_rounds(type) && k % 256 == 0 ? TN_TYPE_Q6_K : type;
        for (int i = 1; i < p->multi.n_weights; i++) {
            s.src[s.n_src++] = weights(i == 1 ? second : type, 1, n + 16 * i, k);
            results(&s, i, 1, m, n + 16 * i);
        }
        for (int i = 0; i < p->multi.n_weights; i++)
            if (p->multi.has_bias[i]) s.src[s.n_src++] = floats(1, 1, n + (i ? 16 * i : 0), 0);
        s.params = &p->multi;
    }
    if (op == TN_OP_matmul_glu) s.params = &p->glu;
    if (op == TN_OP_matmul_id_glu) s.params = &p->id_glu;
    return s;
}

// Bytes of all results, gaps between rows included.
static size_t copy_results(const tn_step *s, uint8_t *to)
{
    size_t size = 0;
    for (int i = 0; i < s->n_dst; i++) {
        if (to) memcpy(to + size, s->dst[i].data, (size_t)s->dst[i].nb[0]);
        size += (size_t)s->dst[i].nb[0];
    }
    return size;
}

static void poison(const tn_step *s)
{
    for (int i = 0; i < s->n_dst; i++) memset(s->dst[i].data, 0xa5, (size_t)s->dst[i].nb[0]);
}

// NMSE of the results in s against those saved; gaps must be untouched.
static double compare(const tn_step *s, const uint8_t *want, bool *gaps_ok)
{
    double err = 0.0, ref = 0.0;
    size_t at = 0;
    for (int i = 0; i < s->n_dst; i++) {
        const tn_view *y = &s->dst[i];
        for (int64_t r = 0; r < tn_view_n_rows(y); r++) {
            const float *a = (const float *)(const void *)((const char *)y->data + r * y->nb[2]);
            const float *b = (const float *)(const void *)(want + at + (size_t)(r * y->nb[2]));
            for (int64_t j = 0; j < y->ne[3]; j++) {
                double d = (double)a[j] - (double)b[j];
                if (isnan(a[j]) != isnan(b[j])) d = 1e9;
                if (isnan(a[j]) && isnan(b[j])) continue;
                err += d * d;
                ref += (double)b[j] * (double)b[j];
            }
            for (int64_t j = y->ne[3]; j < y->nb[2] / 4; j++) *gaps_ok = *gaps_ok && tn_f32_bits(a[j]) == 0xa5a5a5a5u;
        }
        at += (size_t)y->nb[0];
    }
    return ref > 0.0 ? err / ref : err;
}

static void round_x(const tn_step *s)
{
    const tn_view *x = &s->src[0];
    for (int64_t r = 0; r < tn_view_n_rows(x); r++) {
        float *row = tn_view_row(x, r);
        tn_matmul_round_row(row, row, x->ne[3]);
    }
}

static int check_case(int32_t op, tn_dtype type, int64_t m, int64_t n, int64_t k)
{
    params p;
    tn_step s = make_step(op, type, m, n, k, &p);
    bool rounds = tn_matmul_rounds(type);
    int failed = 0;
    if (rnd() % 3 == 0) ((float *)s.src[0].data)[rnd() % (uint32_t)k] = rnd() % 2 ? NAN : 0.0f;
    if (!(rounds ? tn_matmul_accepts_rounding : tn_matmul_accepts_plain)(&s)) {
        printf("%s %s: not accepted\n", tn_op_name(op), tn_dtype_name(type));
        return 1;
    }
    size_t x_size = (size_t)s.src[0].nb[0], size = copy_results(&s, NULL);
    uint8_t *x = need(x_size), *want = need(size), *one = need(size), *two = need(size);
    memcpy(x, s.src[0].data, x_size);
    if (rounds) round_x(&s);
    tn_op_info_get(op)->ref(&s);
    copy_results(&s, want);
    memcpy(s.src[0].data, x, x_size);
    run r = {.step = &s};
    for (int level = 0; level < n_levels(); level++) {
        r.launch = levels[level].launch;
        bool same = true, gaps = true;
        for (int32_t nth = 1; nth <= 3; nth++) {
            size_t need_size = tn_matmul_scratch(&s, nth);
            r.scratch = aligned_alloc(64, (need_size + 63) / 64 * 64);
            poison(&s);
            launch(&r, nth);
            copy_results(&s, nth == 1 ? one : two);
            same = same && (nth == 1 || memcmp(one, two, size) == 0);
            free(r.scratch);
        }
        double nmse = compare(&s, want, &gaps);
        if (!(nmse < 1e-10) || !same || !gaps) {
            printf("FAIL %s %s %s m %lld n %lld k %lld: nmse %.2e%s%s\n", tn_op_name(op), tn_dtype_name(type),
                   levels[level].name, (long long)m, (long long)n, (long long)k, nmse, same ? "" : " depends on threads",
                   gaps ? "" : " writes outside");
            failed++;
        }
    }
    free(x), free(want), free(one), free(two);
    free_tensors();
    return failed;
}

static int check(const char *const *names)
{
    static const int32_t ops[] = {TN_OP_matmul,     TN_OP_linear,    TN_OP_matmul_multi,
                                  TN_OP_matmul_glu, TN_OP_matmul_id, TN_OP_matmul_id_glu};
    int failed = 0, cases = 0;
    for (; *names; names++) {
        tn_dtype type = tn_dtype_by_name(*names);
        if (type < 0) continue;
        if (!tn_quant_info_get(type)->to_f32) {
            printf("%s: no decoder\n", tn_dtype_name(type));
            continue;
        }
        for (size_t o = 0; o < TN_COUNT(ops); o++) {
            for (int c = 0; c < 4; c++, cases++) {
                static const int64_t ms[] = {1, 3, 7, 19, 33}, ns[] = {1, 16, 47, 96, 130};
                int64_t block = tn_dtype_block_elems(type), k = block * (1 + rnd() % (block > 200 ? 5 : 2048 / (uint32_t)block));
                if (block == 1) k = 1 + rnd() % 700;
                failed += check_case(ops[o], type, ms[(c + rnd() % 2) % 5], ns[rnd() % 5], k);
            }
        }
    }
    printf("%d cases, %d failed\n", cases, failed);
    return failed != 0;
}

// --- bench -------------------------------------------------------------------------------------------

// Times of many runs; what counts is the one at 5 %: the very best ones have found w in a cache, most of the
// others shared the machine.
typedef struct samples {
    double t[4096];
    int n;
} samples;

static void samples_add(samples *s, double t)
{
    if (s->n < (int)TN_COUNT(s->t)) s->t[s->n++] = t;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double samples_typical(samples *s)
{
    qsort(s->t, (size_t)s->n, sizeof s->t[0], compare_times);
    return s->t[s->n / 20];
}

typedef struct reader {
    const uint8_t *p;
    size_t n;
    _Atomic uint64_t sink;
} reader;

static void read_thread(void *arg, int32_t ith, int32_t nth)
{
    enum { LINE = 64, FAR = 4096 };
    reader *r = arg;
    size_t a = r->n / LINE * (size_t)ith / (size_t)nth * LINE, b = r->n / LINE * ((size_t)ith + 1) / (size_t)nth * LINE;
    uint64_t sum = 0;
    for (size_t i = a; i < b; i += LINE) { // one load per line, the prefetch fetches the rest of it
        TN_PREFETCH(r->p + i + FAR);
        sum |= r->p[i];
    }
    atomic_fetch_or(&r->sink, sum);
}

// In pieces of 16 MiB.
static double read_bandwidth(const uint8_t *p, size_t size, int32_t nth)
{
    const size_t piece = 16 << 20;
    samples times = {.n = 0};
    for (size_t i = 0; i < size / piece * 3; i++) {
        reader r = {.p = p + i % (size / piece) * piece, .n = piece};
        double t = now();
        parallel(nth, read_thread, &r);
        samples_add(&times, now() - t);
    }
    return (double)piece / samples_typical(&times) * 1e-9;
}

typedef struct options {
    int level;
    int32_t nth;
    double peak_int8, peak_f32;
    bool decode; // only
    uint8_t *w; // WORKING_SET bytes
    double read_rate;
} options;

// Time of one product, over `reps` passes through all copies of w, which keep it out of the caches.
static double time_product(const options *o, tn_step *s, uint8_t *w, size_t copy_size, int n_copies, int reps)
{
    run r = {.step = s, .launch = levels[o->level].launch, .scratch = need(tn_matmul_scratch(s, o->nth))};
    samples times = {.n = 0};
    for (int i = 0; i < reps * n_copies; i++) {
        s->src[1].data = w + (size_t)(i % n_copies) * copy_size;
        double t = now();
        launch(&r, o->nth);
        samples_add(&times, now() - t);
    }
    free(r.scratch);
    return samples_typical(&times);
}

static void bench_shape(const options *o, tn_dtype type, int64_t n, int64_t k)
{
    uint8_t *w = o->w;
    size_t size = tn_dtype_row_size(type, k) * (size_t)n;
    if (size > WORKING_SET) return;
    int copies = (int)(WORKING_SET / size);
    fill_weights(type, w, n, k);
    for (int c = 1; c < copies; c++) memcpy(w + (size_t)c * size, w, size);
    printf("%-7s %6lld x %-5lld", tn_dtype_name(type), (long long)n, (long long)k);
    static const int64_t ms[] = {1, 2, 4, 8, 16, 128, 512};
    for (size_t i = 0; i < TN_COUNT(ms); i++) {
        int64_t m = ms[i];
        if (m > 8 && (n > 20000 || o->decode)) break;
        tn_step s = {.op = TN_OP_matmul, .n_src = 2, .n_dst = 1, .name = "bench"};
        s.src[0] = floats(1, m, k, 0);
        s.src[1] = view(type, w, 1, n, k, 0);
        s.dst[0] = floats(1, m, n, 0);
        double t = time_product(o, &s, w, size, m < 16 ? copies : TN_MIN(copies, 2), m < 16 ? 5 : 8);
        double peak = tn_matmul_rounds(type) ? o->peak_int8 : o->peak_f32;
        double rate = (double)size / t * 1e-9, ops = 2.0 * (double)m * (double)n * (double)k / t * 1e-9;
        if (m < 16) printf(" | m%lld %5.1f %3.0f%%", (long long)m, rate, 100.0 * rate / o->read_rate);
        else printf(" | m%lld %6.0f %3.0f%%", (long long)m, ops, peak > 0.0 ? 100.0 * ops / peak : 0.0);
        fflush(stdout);
        free_tensors();
    }
    printf("\n");
}

static int bench(options *o, const char *const *names)
{
    o->w = need(WORKING_SET);
    memset(o->w, 1, WORKING_SET);
    o->read_rate = read_bandwidth(o->w, WORKING_SET, o->nth);
    printf("%s, %d threads, read bandwidth %.1f GB/s; m < 16: GB/s of w, else Gop/s\n", levels[o->level].name, o->nth,
           o->read_rate);
    static const int64_t shapes[][2] = {{8192, 2048}, {2048, 8192}, {128256, 2048}};
    for (; *names; names++) {
        tn_dtype type = tn_dtype_by_name(*names);
        if (type < 0) continue;
        for (size_t i = 0; i < TN_COUNT(shapes); i++)
            bench_shape(o, type, shapes[i][0], shapes[i][1]);
    }
    free(o->w);
    return 0;
}

int main(int argc, char **argv)
{
    options o = {.level = n_levels() - 1, .nth = 2};
    static const char *const all[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0", "Q4_1",   "Q5_0",   "Q5_1",  "Q2_K",
                          "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", NULL};
    int i = 2;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (!strcmp(argv[i], "--isa")) o.level = TN_MIN(atoi(argv[i + 1]), n_levels() - 1);
        if (!strcmp(argv[i], "--threads")) o.nth = TN_MIN(atoi(argv[i + 1]), MAX_THREADS);
        if (!strcmp(argv[i], "--peak-int8")) o.peak_int8 = atof(argv[i + 1]);
        if (!strcmp(argv[i], "--peak-f32")) o.peak_f32 = atof(argv[i + 1]);
        if (!strcmp(argv[i], "--decode")) o.decode = atoi(argv[i + 1]) != 0;
        if (!strcmp(argv[i], "--seed")) rng ^= strtoull(argv[i + 1], NULL, 10) * 0x9e3779b97f4a7c15ull;
    }
    bool checking = argc < 2 || !strcmp(argv[1], "check");
    for (; n_started < (checking ? 3 : o.nth);) { // all threads before the first run
        pool_thread *t = malloc(sizeof *t);
        if (!t) return 1;
        *t = (pool_thread){&team, n_started};
        if (pthread_create(&team.threads[n_started++], NULL, pool_main, t)) return 1;
    }
    const char *names[TN_TYPE_COUNT + 1] = {NULL};
    for (int t = 0; t < TN_TYPE_COUNT; t++)
        names[t] = i >= argc ? tn_dtype_name(t) : t < argc - i ? argv[i + t] : NULL;
    return checking ? check(names) : bench(&o, i < argc ? names : all);
}
