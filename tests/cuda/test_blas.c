// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt as a candidate, on fake libraries: it runs only where tuning has found it faster, each of its
// calls may fail, and it may go away. Needs no GPU. That its products are right, tenon-check --variant 16
// shows.
//     test_blas FOLDER     of a libcublasLt.so.13 that cannot be loaded; LD_LIBRARY_PATH leads to the fake
//     libraries
#include "backends/cuda/product/gemm/cublas.h"
#include "tests/cuda/fake.h"
#include "tests/cuda/fake_blas.h"
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <unistd.h>

enum { M = 96, N = 64, K = 256 };

static fake_state *fake;
static fake_blas *blas; // NULL: the real library, or none, is what the backend finds
static char said[8192];

static void on_log(void *user, int32_t level, const char *text)
{
    (void)user, (void)level;
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

typedef struct work {
    tn_context *ctx;
    tn_graph *g;
    tn_plan *plan;
    tn_runner *run;
} work;

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
    TEST_CHECK(fake->n_alive == 0 && fake->used == 0 && fake->n_captures == 0);
    if (blas) TEST_CHECK(blas->n_alive == 0);
}

// x w^T of m rows in the context of `w`.
static tn_status product(work *w, int64_t m)
{
    static uint16_t data[N * K];
    int64_t x[] = {m, K}, n[] = {N, K};
    tn_status status = tn_graph_create(w->ctx, &w->g);
    if (status != TN_OK) return status;
    tn_tensor *y = tn_op_matmul(w->g, tn_graph_input(w->g, "x", TN_TYPE_F32, 2, x),
                                tn_graph_weight(w->g, "w", TN_TYPE_BF16, 2, n));
    tn_graph_output(w->g, "y", y);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(w->ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    tn_binding weights[] = {{"w", data, sizeof data}};
    status = tn_plan_create(w->g, &cfg, &w->plan);
    if (status == TN_OK) status = tn_runner_create(w->plan, weights, 1, &w->run);
    return status == TN_OK ? tn_runner_run(w->run) : status;
}

static tn_status start(work *w, const char *dir, int32_t tune)
{
    *w = (work){0};
    said[0] = 0;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.cache_dir = dir;
    cfg.tune = tune;
    cfg.backend = "cuda";
    cfg.log = on_log;
    cfg.log_level = TN_LOG_INFO;
    return tn_context_create(&cfg, &w->ctx);
}

static tn_status run(work *w, const char *dir, int32_t tune)
{
    tn_status status = start(w, dir, tune);
    return status == TN_OK ? product(w, M) : status;
}

static void reset(void)
{
    fake->n_calls = 0;
    *blas = (fake_blas){0};
}

static void forget_choices(const char *dir)
{
    char command[200];
    snprintf(command, sizeof command, "rm -f %s/tuning-cuda-*.txt", dir);
    TEST_CHECK(system(command) == 0);
}

// Without tuning, with tuning that finds it slower, faster, and afterwards.
static void test_choice(const char *dir)
{
    work w;
    reset();
    TEST_CHECK_STATUS(run(&w, dir, 0), TN_OK);
    clean(&w);
    TEST_CHECK(blas->n_calls == 0 && !strstr(said, "cuBLASLt"));
    fake->host_ms = 1.0f;
    TEST_CHECK_STATUS(run(&w, dir, 1), TN_OK);
    clean(&w);
    int64_t timed = blas->n_products;
    TEST_CHECK(timed > 1 && blas->n_asked == 1 && strstr(said, "cuBLASLt 13.1.0"));
    TEST_CHECK_STATUS(run(&w, dir, 0), TN_OK);
    clean(&w);
    TEST_CHECK(blas->n_products == timed && !strstr(said, "cuBLASLt"));
    forget_choices(dir);
    reset();
    fake->host_ms = 0.5f; // as fast as the others: those run
    TEST_CHECK_STATUS(run(&w, dir, 1), TN_OK);
    clean(&w);
    TEST_CHECK(blas->n_products == timed);
    forget_choices(dir);
    reset();
    fake->host_ms = 0.25f;
    TEST_CHECK_STATUS(run(&w, dir, 1), TN_OK);
    int64_t ran = fake->n_host;
    TEST_CHECK_STATUS(tn_runner_run(w.run), TN_OK);
    TEST_CHECK(fake->n_host == ran + 1);
    clean(&w);
    TEST_CHECK(blas->n_products == timed + 1 && blas->n_asked == 1);
    TEST_CHECK_STATUS(run(&w, dir, 0), TN_OK);
    end_plan(&w);
    TEST_CHECK(blas->n_products == timed + 2 && blas->n_asked == 2);
    TEST_CHECK_STATUS(product(&w, 32), TN_OK); // few rows, and other shapes, are none of its business
    end_plan(&w);
    TEST_CHECK_STATUS(product(&w, 2 * M), TN_OK);
    clean(&w);
    TEST_CHECK(blas->n_products == timed + 2);
}

// The n-th call fails. A product that has begun gives a status, before that another kernel runs; and one runs
// next.
static void test_each(const char *dir, int32_t tune, int32_t error, tn_status want)
{
    work w;
    int64_t failures = 0;
    for (int64_t n = 1;; n += n < 24 ? 1 : 11) { // what is timed repeats itself
        if (tune) forget_choices(dir);
        reset();
        blas->fail_at = n;
        blas->error = error;
        tn_status status = run(&w, dir, tune);
        if (blas->failed[0] == 0) { // or at the end, where all is released
            TEST_CHECK_STATUS(status, TN_OK);
            clean(&w);
            if (blas->failed[0] == 0) break;
            continue;
        }
        char text[300] = "";
        tn_context_error(w.ctx, text, sizeof text);
        bool released = strstr(blas->failed, "destroy") != NULL;
        bool right =
            status == want ? strstr(text, "cuBLASLt: ") && strstr(text, "CUBLAS_STATUS_") : status == TN_OK;
        right = right && (status != TN_OK || released ||
                          strstr(said, tune ? "left out: cuda:0: cuBLASLt: " : "another kernel runs"));
        if (!TEST_CHECK(right))
            printf("    call %lld, %s: %s: %s\n%s\n", (long long)n, blas->failed, tn_status_text(status),
                   text, said);
        failures += status != TN_OK;
        int64_t before = blas->n_products;
        end_plan(&w);
        TEST_CHECK_STATUS(product(&w, M), TN_OK);
        if (status != TN_OK) TEST_CHECK(blas->n_products == before);
        clean(&w);
    }
    TEST_CHECK(tune || failures > 0);
}

// What was chosen runs by another kernel where the library is gone. Called in a process whose path leads to
// none.
static void test_absent(const char *dir)
{
    for (int32_t tune = 0; tune < 2; tune++) {
        work w;
        TEST_CHECK_STATUS(run(&w, dir, tune), TN_OK);
        int64_t ran = fake->n_host;
        TEST_CHECK_STATUS(tn_runner_run(w.run), TN_OK);
        TEST_CHECK(fake->n_host == ran);
        clean(&w);
        if (!TEST_CHECK(strstr(said, "no cuBLASLt"))) printf("    %s\n", said);
    }
}

static void test_gone(const char *dir, const char *self, const char *folder)
{
    char command[2000];
    const char *libraries = getenv("LD_LIBRARY_PATH");
    snprintf(command, sizeof command, "LD_LIBRARY_PATH='%s':'%s' '%s' absent %s", folder,
             libraries ? libraries : "", self, dir);
    reset();
    forget_choices(dir);
    fake->host_ms = 0.25f;
    work w;
    TEST_CHECK_STATUS(run(&w, dir, 1), TN_OK);
    clean(&w);
    fflush(stdout);
    TEST_CHECK(system(command) == 0);
    forget_choices(dir);
}

static void *look_up(const char *library, const char *symbol)
{
    void *at = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return at ? dlsym(at, symbol) : NULL;
}

int main(int argc, char **argv)
{
    fake_state *(*get)(void);
    fake_blas *(*get_blas)(void);
    void *driver = look_up("libcuda.so.1", "fake_get");
    if (argc < 2) return 2;
    if (!driver) {
        printf("SKIP: libcuda.so.1 is not the fake one\n");
        return 77;
    }
    memcpy(&get, &driver, sizeof get);
    fake = get();
    fake->l2_size = 1 << 16; // what tuning fills between runs
    if (strcmp(argv[1], "absent") == 0) {
        test_absent(argv[2]);
        return test_done();
    }
    void *library = look_up("libcublasLt.so.13", "fake_blas_get");
    char dir[] = "/tmp/tenon-blas-XXXXXX";
    if (!TEST_CHECK(library && mkdtemp(dir))) return test_done();
    memcpy(&get_blas, &library, sizeof get_blas);
    blas = get_blas();
    test_choice(dir);
    test_each(dir, 1, TN_BLAS_NOT_SUPPORTED, TN_ERR_DEVICE);
    forget_choices(dir);
    reset();
    work w;
    TEST_CHECK_STATUS(run(&w, dir, 1), TN_OK);
    clean(&w);
    test_each(dir, 0, TN_BLAS_EXECUTION_FAILED, TN_ERR_DEVICE);
    test_each(dir, 0, TN_BLAS_ALLOC_FAILED, TN_ERR_MEMORY);
    test_gone(dir, argv[0], argv[1]);
    rmdir(dir);
    return test_done();
}
