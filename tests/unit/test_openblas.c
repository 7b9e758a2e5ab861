// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// When OpenBLAS runs, when it must not, and what happens to its number of threads, on fake libraries. That
// its products are right, tenon-check --variant 1 shows.
//     test_openblas LIBRARY PART       PART: one that lacks a function
#include "tests/unit/fake_openblas.h"
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <unistd.h>

enum { N = 160, K = 1280, MAX_M = 64 };

static char said[8192];
static const char *library;
static uint16_t weights[N * K]; // bf16
static float x[MAX_M * K];

static void on_log(void *user, int32_t level, const char *text)
{
    (void)user, (void)level;
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

static void on_environment(const char *parallel, const char *threads, const char *config)
{
    if (parallel) setenv("FAKE_PARALLEL", parallel, 1);
    if (!parallel) unsetenv("FAKE_PARALLEL");
    if (threads) setenv("FAKE_THREADS", threads, 1);
    if (!threads) unsetenv("FAKE_THREADS");
    if (config) setenv("FAKE_CONFIG", config, 1);
    if (!config) unsetenv("FAKE_CONFIG");
}

typedef struct work {
    tn_context *ctx;
    tn_graph *g;
    tn_plan *plan;
    tn_runner *run;
} work;

static tn_status start(work *w, const tn_context_config *given)
{
    tn_context_config cfg = *given;
    *w = (work){0};
    said[0] = 0;
    cfg.n_threads = 2;
    cfg.backend = "cpu";
    cfg.log = on_log;
    cfg.log_level = TN_LOG_INFO;
    return tn_context_create(&cfg, &w->ctx);
}

static tn_context_config config_of(const char *blas, const char *isa)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.blas = blas;
    cfg.isa = isa;
    return cfg;
}

static void end_plan(work *w)
{
    tn_runner_destroy(&w->run);
    tn_plan_unref(&w->plan);
    tn_graph_destroy(&w->g);
}

static void clean(work *w)
{
    end_plan(w);
    tn_context_destroy(&w->ctx);
}

// y = x w^T of m rows.
static tn_status product(work *w, int64_t m, float *y)
{
    int64_t x_shape[] = {m, K}, w_shape[] = {N, K};
    tn_status status = tn_graph_create(w->ctx, &w->g);
    if (status != TN_OK) return status;
    tn_graph_output(w->g, "y",
                    tn_op_matmul(w->g, tn_graph_input(w->g, "x", TN_TYPE_F32, 2, x_shape),
                                 tn_graph_weight(w->g, "w", TN_TYPE_BF16, 2, w_shape)));
    tn_binding bound[] = {{"w", weights, sizeof weights}};
    status = tn_plan_create(w->g, NULL, &w->plan);
    if (status == TN_OK) status = tn_runner_create(w->plan, bound, 1, &w->run);
    if (status == TN_OK) status = tn_runner_write(w->run, "x", x, (size_t)(m * K) * sizeof *x);
    if (status == TN_OK) status = tn_runner_run(w->run);
    if (status == TN_OK && y) status = tn_runner_read(w->run, "y", y, (size_t)(m * N) * sizeof *y);
    return status;
}

// The state of the fake library, if it is loaded; it stays so until release().
static void *held;
static fake_openblas *hold(void)
{
    fake_openblas *(*get)(void);
    held = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *at = held ? dlsym(held, "fake_openblas_get") : NULL;
    memcpy(&get, &at, sizeof get);
    return at ? get() : NULL;
}

static void release(void)
{
    if (held) dlclose(held);
    held = NULL;
}

static bool same(const float *a, const float *b, int64_t n)
{
    double off = 0.0, all = 0.0;
    for (int64_t i = 0; i < n; i++) {
        off += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
        all += (double)b[i] * (double)b[i];
    }
    return off <= 1e-12 * all;
}

// The level generic needs no measurement. Its number of threads is 1 as long as the context lives; a program
// that changes it takes the library away.
static void test_use(void)
{
    static float want[MAX_M * N], got[MAX_M * N];
    work w;
    tn_context_config off = config_of("off", "generic"), on = config_of(library, "generic");
    TEST_CHECK_STATUS(start(&w, &off), TN_OK);
    TEST_CHECK_STATUS(product(&w, MAX_M, want), TN_OK);
    clean(&w);
    on_environment(NULL, NULL, NULL);
    TEST_CHECK_STATUS(start(&w, &on), TN_OK);
    TEST_CHECK_STATUS(product(&w, MAX_M, got), TN_OK);
    fake_openblas *fake = hold();
    if (!TEST_CHECK(fake)) return;
    TEST_CHECK(fake->n_calls == 4 && fake->n_wrong == 0 &&
               fake->n_threads == 1); // 2 x 128 rows, 2 parts of k
    TEST_CHECK(same(got, want, MAX_M * N) && strstr(said, "core Fake"));
    char text[1000];
    tn_device_details(tn_context_device_get(w.ctx, 0), text, sizeof text);
    TEST_CHECK(strstr(text, "core Fake; OpenBLAS 0.0 fake") && strstr(text, "not timed"));
    end_plan(&w);
    TEST_CHECK_STATUS(product(&w, 8, got), TN_OK); // few rows must not depend on each other
    end_plan(&w);
    TEST_CHECK(fake->n_calls == 4);
    TEST_CHECK_STATUS(product(&w, MAX_M, NULL), TN_OK);
    fake->n_threads = 3;
    long before = fake->n_calls;
    TEST_CHECK_STATUS(tn_runner_run(w.run), TN_OK);
    TEST_CHECK_STATUS(tn_runner_read(w.run, "y", got, sizeof got), TN_OK);
    TEST_CHECK(fake->n_calls == before && strstr(said, "more threads") && same(got, want, MAX_M * N));
    clean(&w);
    TEST_CHECK(fake->n_threads == 3); // the program's
    release();
    TEST_CHECK_STATUS(start(&w, &on), TN_OK);
    fake = hold();
    TEST_CHECK(fake && fake->n_threads == 1);
    clean(&w);
    TEST_CHECK(fake && fake->n_threads == 4); // as before
    release();
    TEST_CHECK(!hold());
}

// A deterministic context never uses it.
static void test_deterministic(void)
{
    work w;
    tn_context_config cfg = config_of(library, "generic");
    cfg.deterministic = 1;
    TEST_CHECK_STATUS(start(&w, &cfg), TN_OK);
    TEST_CHECK_STATUS(product(&w, MAX_M, NULL), TN_OK);
    TEST_CHECK(!hold());
    clean(&w);
}

static void refused(const char *name, const char *why)
{
    work w;
    char text[1000];
    tn_context_config cfg = config_of(name, NULL);
    tn_status status = start(&w, &cfg);
    tn_last_error(text, sizeof text);
    if (!TEST_CHECK(status == TN_ERR_DEVICE && strstr(text, why)))
        printf("    %s: %s\n", tn_status_text(status), text);
    if (status == TN_OK) clean(&w);
}

static void test_refusals(const char *part)
{
    refused("no-such-library.so", "no-such-library.so cannot be loaded");
    refused(part, "it has no openblas_get_corename");
    on_environment("0", "1", NULL);
    refused(library, "built for one thread");
    on_environment("2", "4", NULL);
    refused(library, "threads of OpenMP");
    on_environment(NULL, NULL, "OpenBLAS 0.0 MAX_THREADS=1");
    refused(library, "built for fewer threads");
    on_environment(NULL, NULL, "OpenBLAS 0.0 USE64BITINT MAX_THREADS=64");
    refused(library, "its integers have 64 bits");
    on_environment(NULL, NULL, NULL);
}

// A program that uses the library itself: its setting stays.
static void test_program(void)
{
    work w;
    void *own = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    fake_openblas *fake = hold();
    if (!TEST_CHECK(own && fake)) return;
    refused(library, "the program has loaded it for itself");
    TEST_CHECK(fake->n_threads == 4);
    fake->n_threads = 1;
    tn_context_config cfg = config_of(library, "generic");
    TEST_CHECK_STATUS(start(&w, &cfg), TN_OK);
    TEST_CHECK_STATUS(product(&w, MAX_M, NULL), TN_OK);
    clean(&w);
    TEST_CHECK(fake->n_threads == 1 && fake->n_calls > 0);
    release();
    dlclose(own);
}

// One run with tuning or without; gives the calls of the last product.
static long run_tuned(const char *dir, int32_t tune, bool fast)
{
    work w;
    tn_context_config cfg = config_of(library, NULL);
    cfg.cache_dir = dir;
    cfg.tune = tune;
    if (!TEST_CHECK(start(&w, &cfg) == TN_OK)) return -1;
    fake_openblas *fake = hold();
    if (!TEST_CHECK(fake)) return -1;
    fake->does_nothing = fast;
    fake->sleeps = !fast;
    TEST_CHECK_STATUS(product(&w, MAX_M, NULL), TN_OK);
    long before = fake->n_calls;
    TEST_CHECK_STATUS(tn_runner_run(w.run), TN_OK);
    long calls = fake->n_calls - before;
    TEST_CHECK(fake->n_wrong == 0);
    clean(&w);
    release();
    return calls;
}

static void forget(const char *dir)
{
    char command[200];
    snprintf(command, sizeof command, "rm -f %s/tuning-cpu-*.txt", dir);
    TEST_CHECK(system(command) == 0);
}

// Beside kernels of the processor's own it runs only if it was measured to be faster, by this build of it.
static void test_tuning(const char *dir)
{
    work w;
    char text[1000];
    TEST_CHECK_STATUS(start(&w, &(tn_context_config){.struct_size = sizeof(tn_context_config)}), TN_ERR_ARG);
    tn_context_config plain = config_of(NULL, NULL);
    TEST_CHECK_STATUS(start(&w, &plain), TN_OK);
    tn_device_info info = {.struct_size = sizeof info};
    tn_device_info_get(tn_context_device_get(w.ctx, 0), &info);
    bool has_own = !strstr(info.description, "generic");
    clean(&w);
    if (has_own) TEST_CHECK(run_tuned(dir, 0, true) == 0);
    TEST_CHECK(run_tuned(dir, 1, false) == 0);
    TEST_CHECK(run_tuned(dir, 0, true) == 0); // measured to be slower
    forget(dir);
    TEST_CHECK(run_tuned(dir, 1, true) > 0);
    TEST_CHECK(run_tuned(dir, 0, true) > 0);
    tn_context_config cfg = config_of(library, NULL);
    cfg.cache_dir = dir;
    TEST_CHECK_STATUS(start(&w, &cfg), TN_OK);
    tn_device_details(tn_context_device_get(w.ctx, 0), text, sizeof text);
    TEST_CHECK(strstr(text, "matmul BF16 m 64 n 160 k 1280: ") && strstr(text, ", which runs"));
    clean(&w);
    on_environment(NULL, NULL, "OpenBLAS 0.1 fake MAX_THREADS=64");
    if (has_own) TEST_CHECK(run_tuned(dir, 0, true) == 0 && strstr(said, "run bench --tune again"));
    on_environment(NULL, NULL, NULL);
    forget(dir);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    library = argv[1];
    for (int64_t i = 0; i < N * K; i++) weights[i] = (uint16_t)(0x3f00 + i * 37 % 251);
    for (int64_t i = 0; i < MAX_M * K; i++) x[i] = (float)(i * 29 % 97) / 97.0f - 0.4f;
    char dir[] = "/tmp/tenon-openblas-XXXXXX";
    if (!TEST_CHECK(mkdtemp(dir) != NULL)) return test_done();
    test_use();
    test_deterministic();
    test_refusals(argv[2]);
    test_program();
    test_tuning(dir);
    rmdir(dir);
    return test_done();
}
