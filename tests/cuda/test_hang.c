// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA backend on a driver library where one piece of work never ends, each one once: while weights are
// copied, kernels are timed, and passes run. The wait for it ends with a message, all later uses fail, and
// what is destroyed then frees the memory of the host without a single call of the driver. Needs no GPU.
//     test_hang MODEL.gguf [STRIDE]   every STRIDE-th work hangs; LD_LIBRARY_PATH leads to the fake
//     libcuda.so.1
#include "tests/cuda/fake.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <string.h>
#include <tenon/engine.h>
#include <tenon/session.h>
#include <unistd.h>

enum { TIMEOUT_MS = 5, TOKENS = 48, DECODED = 3 };

static fake_state *fake;
static void (*end_process)(void);
static const char *path;
static char folder[] = "/tmp/tenon-hang-XXXXXX"; // of tuned kernels

typedef struct life {
    counting count;
    tn_context *ctx;
    tn_model *model;
    tn_session *session;
} life;

static void reset(int64_t hang_at)
{
    fake->hang_at = hang_at;
    fake->n_works = fake->asked_at = fake->n_blocked = 0;
}

static tn_status begin(life *l, int64_t timeout_ms, bool tune)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    *l = (life){0};
    cfg.allocator = (tn_allocator){&l->count, counting_alloc, counting_free};
    cfg.n_threads = 1;
    cfg.backend = "cuda";
    cfg.tune = tune;
    cfg.cache_dir = tune ? folder : NULL;
    cfg.device_timeout_ms = timeout_ms;
    return tn_context_create(&cfg, &l->ctx);
}

static tn_status use(life *l, const char *device)
{
    tn_model_config cfg;
    tn_session_config session;
    int32_t tokens[TOKENS];
    for (int32_t i = 0; i < TOKENS; i++) tokens[i] = i + 3;
    tn_model_config_default(&cfg);
    tn_session_config_default(&session);
    cfg.device = tn_context_device_by_name(l->ctx, device);
    session.n_ctx = 128;
    session.n_batch = 32;
    tn_status status = tn_model_open(l->ctx, path, &cfg, &l->model);
    if (status == TN_OK) status = tn_session_create(l->model, &session, &l->session);
    if (status == TN_OK) status = tn_session_feed(l->session, 0, tokens, TOKENS);
    for (int32_t i = 0; i < DECODED && status == TN_OK; i++)
        status = tn_session_feed(l->session, 0, tokens, 1);
    return status;
}

static void close_model(life *l)
{
    tn_session_destroy(&l->session);
    tn_model_unref(&l->model);
}

static bool message_has(const life *l, const char *part)
{
    char text[400];
    tn_context_error(l->ctx, text, sizeof text);
    if (strstr(text, part)) return true;
    printf("    \"%s\" has no \"%s\"\n", text, part);
    return false;
}

// Everything of the library is gone, and what the driver has is as it was when the wait ended.
static void end(life *l, int64_t alive)
{
    close_model(l);
    tn_context_destroy(&l->ctx);
    TEST_CHECK(l->count.live == 0);
    TEST_CHECK(fake->n_blocked == 0);
    if (!TEST_CHECK(fake->n_calls == fake->asked_at))
        printf("    %lld calls of the driver after it was given up\n",
               (long long)(fake->n_calls - fake->asked_at));
    TEST_CHECK(fake->n_alive == alive && alive > 0);
    end_process();
    TEST_CHECK(fake->n_alive == 0 && fake->used == 0);
}

// A life in which work n never ends; false: it has fewer.
static bool check_work(int64_t n, bool tune)
{
    life l;
    reset(n);
    TEST_CHECK_STATUS(begin(&l, TIMEOUT_MS, tune), TN_OK);
    uint64_t start = tn_time_ns();
    tn_status status = use(&l, "cuda");
    uint64_t ns = tn_time_ns() - start;
    if (fake->n_works < n) {
        TEST_CHECK_STATUS(status, TN_OK);
        close_model(&l);
        tn_context_destroy(&l.ctx);
        TEST_CHECK(l.count.live == 0 && fake->n_alive == 0);
        return false;
    }
    int64_t alive = fake->n_alive;
    bool right = TEST_CHECK_STATUS(status, TN_ERR_DEVICE) && TEST_CHECK(ns >= TIMEOUT_MS * 1000000u);
    right =
        TEST_CHECK(message_has(&l, "cuda:0: ") && message_has(&l, "the device was lost: its work")) && right;
    tn_status again = l.session ? tn_session_feed(l.session, 0, (int32_t[]){3}, 1) : TN_ERR_DEVICE;
    right = TEST_CHECK_STATUS(again, TN_ERR_DEVICE) && right;
    close_model(&l);
    right = TEST_CHECK_STATUS(use(&l, "cuda"), TN_ERR_DEVICE) && right;
    right = TEST_CHECK(message_has(&l, "given up, because its work did not end within 0.005 s")) && right;
    tn_device_info info = {.struct_size = sizeof info};
    TEST_CHECK_STATUS(tn_device_info_get(tn_context_device_by_name(l.ctx, "cuda"), &info), TN_OK);
    TEST_CHECK(info.memory_free == 0);
    end(&l, alive);
    if (!right || test_failed > 0) printf("    work %lld\n", (long long)n);
    return true;
}

static int64_t check_works(bool tune, int64_t stride)
{
    int64_t n = 0;
    for (int64_t at = 1; test_failed == 0 && check_work(at, tune); at += stride) n++;
    return n;
}

// The processor works on in the same context, and a new context has the device when it is well again.
static void test_others(void)
{
    life l, other;
    reset(1);
    TEST_CHECK_STATUS(begin(&l, TIMEOUT_MS, false), TN_OK);
    TEST_CHECK_STATUS(use(&l, "cuda"), TN_ERR_DEVICE);
    int64_t alive = fake->n_alive;
    close_model(&l);
    TEST_CHECK_STATUS(use(&l, "cpu"), TN_OK);
    end(&l, alive);
    reset(0);
    TEST_CHECK_STATUS(begin(&other, TIMEOUT_MS, false), TN_OK);
    TEST_CHECK_STATUS(use(&other, "cuda"), TN_OK);
    close_model(&other);
    tn_context_destroy(&other.ctx);
    TEST_CHECK(other.count.live == 0 && fake->n_alive == 0);
}

// A request that runs, and each later one, are told.
static void test_engine(void)
{
    life l;
    tn_engine *e = NULL;
    tn_engine_config cfg;
    tn_request_config request;
    const tn_engine_event *const *events;
    uint64_t id;
    int32_t ids[] = {3, 4, 5}, n;
    reset(0);
    TEST_CHECK_STATUS(begin(&l, TIMEOUT_MS, false), TN_OK);
    TEST_CHECK_STATUS(use(&l, "cuda"), TN_OK);
    tn_session_destroy(&l.session);
    tn_engine_config_default(&cfg);
    tn_request_config_default(&request);
    TEST_CHECK_STATUS(tn_engine_create(l.model, &cfg, &e), TN_OK);
    fake->hang_at = fake->n_works + 1;
    request.tokens = ids;
    request.n_tokens = 3;
    if (e) TEST_CHECK_STATUS(tn_engine_submit(e, &request, &id), TN_OK);
    tn_status status = TN_OK;
    for (int32_t i = 0; e && i < 8 && status == TN_OK; i++) status = tn_engine_step(e, &events, &n);
    TEST_CHECK_STATUS(status, TN_ERR_DEVICE);
    int64_t alive = fake->n_alive;
    tn_engine_destroy(&e);
    end(&l, alive);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !mkdtemp(folder)) return 2;
    path = argv[1];
    int64_t stride = argc > 2 ? atoll(argv[2]) : 1;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *get = library ? dlsym(library, "fake_get") : NULL,
         *last = library ? dlsym(library, "fake_end") : NULL;
    if (!get || !last) {
        printf("SKIP: libcuda.so.1 is not the fake one\n");
        return 77;
    }
    fake_state *(*function)(void);
    memcpy(&function, &get, sizeof function);
    memcpy(&end_process, &last, sizeof end_process);
    fake = function();
    int64_t n = check_works(false, stride), tuned = check_works(true, 8 * stride);
    TEST_CHECK(n > 0 && tuned > 0);
    test_others();
    test_engine();
    printf("%lld works hung, %lld while kernels were timed\n", (long long)n, (long long)tuned);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    TEST_CHECK(system(command) == 0);
    return test_done();
}
