// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA backend on a driver library whose calls fail on request: every failure is a status, nothing leaks,
// other contexts live on, and after running out of memory a smaller request succeeds. Needs no GPU.
//     test_failures MODEL.gguf [STRIDE]   every STRIDE-th call fails; LD_LIBRARY_PATH leads to the fake
//     libcuda.so.1
#include "tests/cuda/fake.h"
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <tenon/session.h>
#include <unistd.h>

static fake_state *fake;
static const char *path;
static int32_t layers = -1; // on the device
static int64_t n_failures;  // calls that failed, in all

typedef struct work {
    tn_context *ctx;
    tn_model *model;
    tn_session *session;
} work;

static void clean(work *w)
{
    tn_session_destroy(&w->session);
    tn_model_unref(&w->model);
    tn_context_destroy(&w->ctx);
}

static tn_status open_layers(work *w, int32_t n_layers)
{
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = tn_context_device_by_name(w->ctx, "cuda");
    cfg.device_layers = n_layers;
    if (!cfg.device) return TN_ERR_DEVICE;
    return tn_model_open(w->ctx, path, &cfg, &w->model);
}

static tn_status open_model(work *w)
{
    return open_layers(w, layers);
}

static tn_status open_session(work *w, int32_t n_ctx)
{
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = n_ctx;
    cfg.n_batch = 32;
    return tn_session_create(w->model, &cfg, &w->session);
}

static tn_status feed(work *w)
{
    int32_t tokens[48];
    for (int32_t i = 0; i < 48; i++) tokens[i] = i + 3;
    tn_status status = tn_session_feed(w->session, 0, tokens, 48);
    for (int32_t i = 0; i < 8 && status == TN_OK; i++) status = tn_session_feed(w->session, 0, tokens, 1);
    return status;
}

// Everything from opening to reading logits; *w holds what was made.
static tn_status run(work *w)
{
    *w = (work){0};
    tn_status status = tn_context_create(NULL, &w->ctx);
    if (status == TN_OK) status = open_model(w);
    if (status == TN_OK) status = open_session(w, 128);
    if (status == TN_OK) status = feed(w);
    // Logits have no status of their own: they are there or not.
    bool absent = status == TN_OK && !tn_session_logits(w->session, 0);
    if (absent) status = fake->error == CUDA_ERROR_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_DEVICE;
    return status;
}

static void reset(void)
{
    fake->fail_at = 0;
    fake->n_calls = 0;
    fake->lost = CUDA_SUCCESS;
    fake->fail_stays = false;
    fake->failed[0] = 0;
}

static bool nothing_alive(void)
{
    return fake->n_alive == 0 && fake->used == 0 && fake->n_captures == 0;
}

static void test_plain(int compute)
{
    work w;
    reset();
    fake->compute = compute;
    TEST_CHECK_STATUS(run(&w), TN_OK);
    if (test_failed > 0) {
        char text[300] = "";
        if (w.ctx) tn_context_error(w.ctx, text, sizeof text);
        printf("    capability %d: %s\n", compute, text);
    }
    clean(&w);
    TEST_CHECK(nothing_alive());
    fake->compute = 90;
}

// The same context once more: after a failure that passed it works, and a lost device says so.
static bool check_again(work *w, bool lost)
{
    char text[300] = "";
    if (!w->ctx || !tn_context_device_by_name(w->ctx, "cuda")) return true;
    tn_status status = open_model(w);
    if (status == TN_OK) status = open_session(w, 128);
    if (status == TN_OK) status = feed(w);
    tn_context_error(w->ctx, text, sizeof text);
    bool right = TEST_CHECK(lost ? status == TN_ERR_DEVICE && strstr(text, "lost") : status == TN_OK);
    if (!right) printf("    again, after %s: %s: %s\n", fake->failed, tn_status_text(status), text);
    return right;
}

// How often each function of the driver has failed, by its name.
static struct {
    char name[64];
    int64_t n;
} faults[48];

static void count_fault(void)
{
    size_t i = 0;
    while (faults[i].n > 0 && strcmp(faults[i].name, fake->failed) != 0) i++;
    if (i + 1 == sizeof faults / sizeof *faults) abort();
    snprintf(faults[i].name, sizeof faults[i].name, "%s", fake->failed);
    faults[i].n++;
    n_failures++;
}

static void print_faults(void)
{
    for (size_t i = 0; faults[i].n > 0; i++) printf("%s: %lld\n", faults[i].name, (long long)faults[i].n);
    printf("%lld calls failed\n", (long long)n_failures);
}

// What a failure may lead to, with the message of the context. A context may go on without the device that
// it cannot list: then there is none to run on.
static bool outcome_right(const work *w, tn_status status, tn_status want, bool stays, const char *text)
{
    if (status == TN_OK) return !stays; // in what the work can do without
    if (!tn_context_device_by_name(w->ctx, "cuda")) return status == TN_ERR_DEVICE && strstr(text, "cuda: ");
    bool named =
        strstr(text, "cuda:0") && (strstr(text, "CUDA_ERROR_") || strstr(text, "out of memory") ||
                                   strstr(text, "MiB are free")); // what could not be asked counts as none
    return named && (status == want || (stays && status == TN_ERR_DEVICE));
}

// A whole life in which the n-th call fails.
static void test_one(int64_t n, tn_status want, bool stays)
{
    work w;
    char text[300] = "";
    fake->fail_at = n;
    tn_status status = run(&w);
    bool failed = fake->failed[0] != 0;
    if (!TEST_CHECK(w.ctx != NULL)) return;
    tn_context_error(w.ctx, text, sizeof text);
    if (!tn_context_device_by_name(w.ctx, "cuda")) tn_context_absent_backends(w.ctx, text, sizeof text);
    if (!TEST_CHECK(failed ? outcome_right(&w, status, want, stays, text) : status == TN_OK))
        printf("    call %lld, %s: %s: %s\n", (long long)n, fake->failed, tn_status_text(status), text);
    tn_session_destroy(&w.session);
    tn_model_unref(&w.model);
    if (fake->failed[0]) check_again(&w, stays); // the call may have been one of the two above
    clean(&w);
    if (fake->failed[0]) count_fault();
    if (!TEST_CHECK(nothing_alive()))
        printf("    call %lld, %s: %lld alive, %zu bytes\n", (long long)n, fake->failed,
               (long long)fake->n_alive, fake->used);
}

// The n-th call fails, for good (a lost device) or once, for n of 1, 1 + stride, ..
static void test_each(CUresult error, bool stays, tn_status want, int64_t stride)
{
    reset();
    work w;
    TEST_CHECK_STATUS(run(&w), TN_OK);
    clean(&w);
    int64_t total = fake->n_calls;
    for (int64_t n = 1; n <= total && test_failed == 0; n += stride) {
        reset();
        fake->error = error;
        fake->fail_stays = stays;
        test_one(n, want, stays);
    }
}

// A lost device poisons its sessions; the model on the processor, and a new context, work on.
static void test_lost(void)
{
    work w, other;
    reset();
    TEST_CHECK_STATUS(run(&w), TN_OK);
    fake->lost = CUDA_ERROR_ILLEGAL_ADDRESS;
    TEST_CHECK_STATUS(feed(&w), TN_ERR_DEVICE);
    fake->lost = CUDA_SUCCESS; // the driver context would stay broken: so does the device
    TEST_CHECK_STATUS(feed(&w), TN_ERR_DEVICE);
    char text[300] = "";
    tn_context_error(w.ctx, text, sizeof text);
    TEST_CHECK(strstr(text, "lost") != NULL);
    tn_model *on_cpu = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = tn_context_device_by_name(w.ctx, "cpu");
    TEST_CHECK_STATUS(tn_model_open(w.ctx, path, &cfg, &on_cpu), TN_OK);
    tn_session *session = NULL;
    if (on_cpu) TEST_CHECK_STATUS(tn_session_create(on_cpu, NULL, &session), TN_OK);
    if (session) TEST_CHECK_STATUS(tn_session_feed(session, 0, (int32_t[]){3}, 1), TN_OK);
    tn_session_destroy(&session);
    tn_model_unref(&on_cpu);
    TEST_CHECK_STATUS(run(&other), TN_OK);
    clean(&other);
    clean(&w);
    TEST_CHECK(nothing_alive());
}

// A context that does not fit is refused whole, and a smaller one then works.
static void test_memory(void)
{
    work w = {0};
    reset();
    TEST_CHECK_STATUS(tn_context_create(NULL, &w.ctx), TN_OK);
    TEST_CHECK_STATUS(open_model(&w), TN_OK);
    size_t before = fake->used, memory = fake->memory;
    fake->memory =
        fake->used + (64u << 20); // what products of 64 rows sum up in takes 26 MB, whatever the model
    TEST_CHECK_STATUS(open_session(&w, 100000), TN_ERR_MEMORY);
    char text[300] = "";
    tn_context_error(w.ctx, text, sizeof text);
    if (!TEST_CHECK(strstr(text, "memory") != NULL)) printf("    %s\n", text);
    TEST_CHECK(fake->used == before);
    TEST_CHECK_STATUS(open_session(&w, 64), TN_OK);
    if (w.session) TEST_CHECK_STATUS(tn_session_feed(w.session, 0, (int32_t[]){3}, 1), TN_OK);
    clean(&w);
    // A model that does not fit, by request or as it happens.
    fake->memory = 1u << 20;
    TEST_CHECK_STATUS(tn_context_create(NULL, &w.ctx), TN_OK);
    TEST_CHECK_STATUS(open_layers(&w, INT32_MAX), TN_ERR_MEMORY);
    TEST_CHECK_STATUS(open_layers(&w, 1), TN_ERR_MEMORY);
    TEST_CHECK_STATUS(open_model(&w), TN_OK);
    tn_model_info info = {.struct_size = sizeof info};
    if (w.model) tn_model_info_get(w.model, &info);
    TEST_CHECK(info.device && strcmp(info.device, "cpu") == 0 && info.device_size == 0);
    clean(&w);
    TEST_CHECK(nothing_alive());
    fake->memory = memory;
}

static int32_t n_retired; // messages that a tuning file is of another version

static void on_log(void *user, int32_t level, const char *text)
{
    (void)user;
    (void)level;
    if (strstr(text, "tuning file") && strstr(text, "another version")) n_retired++;
}

static tn_status run_in(const char *dir, int32_t tune, work *w)
{
    *w = (work){0};
    n_retired = 0;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.cache_dir = dir;
    cfg.tune = tune;
    cfg.log = on_log;
    tn_status status = tn_context_create(&cfg, &w->ctx);
    if (status == TN_OK) status = open_model(w);
    if (status == TN_OK) status = open_session(w, 128);
    return status == TN_OK ? feed(w) : status;
}

// The file with the header that files had before they carried a version number.
static void make_older(const char *name)
{
    static char text[1 << 16];
    FILE *file = fopen(name, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[n] = 0;
    const char *on = strstr(text, " kernels on ");
    file = on ? fopen(name, "w") : NULL;
    if (!TEST_CHECK(file != NULL)) return;
    fprintf(file, "tenon 0.1.0%s", on);
    fclose(file);
}

// A file of another version is not used and the user is told so, until tuning replaces the file. all_known:
// calls of the driver where no kernel has to be timed.
static void check_older(const char *dir, const char *name, int64_t all_known)
{
    work w;
    make_older(name);
    TEST_CHECK_STATUS(run_in(dir, 0, &w), TN_OK);
    clean(&w);
    TEST_CHECK(n_retired == 1);
    int64_t before = fake->n_calls;
    TEST_CHECK_STATUS(run_in(dir, 1, &w), TN_OK);
    clean(&w);
    TEST_CHECK(n_retired == 1 && fake->n_calls - before > all_known);
    before = fake->n_calls;
    TEST_CHECK_STATUS(run_in(dir, 1, &w), TN_OK);
    clean(&w);
    TEST_CHECK(n_retired == 0 && fake->n_calls - before == all_known);
}

// Choices are kept, a damaged file counts as none, and a folder that cannot be written to is an error with
// its name.
static void test_tuning(void)
{
    char dir[] = "/tmp/tenon-tuning-XXXXXX", command[200], name[300] = "";
    reset();
    if (!TEST_CHECK(mkdtemp(dir) != NULL)) return;
    work w;
    TEST_CHECK_STATUS(run_in(dir, 1, &w), TN_OK);
    clean(&w);
    snprintf(command, sizeof command, "ls %s/tuning-cuda-*.txt", dir);
    FILE *list = popen(command, "r");
    bool found = list && fgets(name, sizeof name, list);
    if (list) pclose(list);
    name[strcspn(name, "\n")] = 0;
    TEST_CHECK(found);
    int64_t before = fake->n_calls;
    TEST_CHECK_STATUS(run_in(dir, 1, &w), TN_OK); // all is known: nothing is timed
    clean(&w);
    int64_t second = fake->n_calls - before;
    TEST_CHECK(n_retired == 0);
    check_older(dir, name, second);
    FILE *file = fopen(name, "r+");
    if (TEST_CHECK(file != NULL)) {
        fseek(file, -40, SEEK_END); // the last choice, before the sum
        fputc('~', file);
        fclose(file);
    }
    before = fake->n_calls;
    TEST_CHECK_STATUS(run_in(dir, 1, &w), TN_OK);
    clean(&w);
    TEST_CHECK(fake->n_calls - before > second && n_retired == 0);
    remove(name);
    rmdir(dir);
    TEST_CHECK_STATUS(run_in(dir, 0, &w), TN_OK); // nothing is written without tuning
    clean(&w);
    TEST_CHECK_STATUS(run_in(dir, 1, &w), TN_ERR_IO);
    char text[300] = "";
    tn_context_error(w.ctx, text, sizeof text);
    TEST_CHECK(strstr(text, dir) != NULL);
    clean(&w);
    TEST_CHECK(nothing_alive());
}

// Kernels of a x w1, then x times w2 or times what came of the first product, that start when all before has
// ended.
static int64_t count_alone(bool computed)
{
    enum { K = 256, N = 64, M = 4 };
    static float data[K * N];
    tn_context *ctx = NULL;
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    tn_runner *run = NULL;
    TEST_CHECK_STATUS(tn_context_create(NULL, &ctx), TN_OK);
    TEST_CHECK_STATUS(tn_graph_create(ctx, &g), TN_OK);
    int64_t a[] = {M, K}, w1[] = {N, K}, x[] = {1, N}, w2[] = {M, N};
    tn_tensor *first = tn_op_matmul(g, tn_graph_input(g, "a", TN_TYPE_F32, 2, a),
                                    tn_graph_weight(g, "w1", TN_TYPE_F32, 2, w1));
    tn_tensor *given = computed ? NULL : tn_graph_weight(g, "w2", TN_TYPE_F32, 2, w2);
    tn_graph_output(g, "first", first);
    tn_graph_output(g, "y",
                    tn_op_matmul(g, tn_graph_input(g, "x", TN_TYPE_F32, 2, x), computed ? first : given));
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    tn_binding weights[] = {{"w1", data, sizeof data}, {"w2", data, M * N * sizeof *data}};
    int64_t before = fake->n_alone;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    if (plan) TEST_CHECK_STATUS(tn_runner_create(plan, weights, computed ? 1 : 2, &run), TN_OK);
    if (run) TEST_CHECK_STATUS(tn_runner_run(run), TN_OK);
    tn_runner_destroy(&run);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    return fake->n_alone - before;
}

// Products read their matrix before the kernels before them have ended, unless one of these makes it.
static void test_computed_matrix(void)
{
    reset();
    int64_t given = count_alone(false), computed = count_alone(true);
    if (!TEST_CHECK(computed == given + 1))
        printf("    alone: %lld, %lld\n", (long long)given, (long long)computed);
    TEST_CHECK(nothing_alive());
}

// Other backends are not started where there is a device, if that is asked for.
static void test_one_backend(void)
{
    reset();
    for (int32_t one = 0; one < 2; one++) {
        char absent[1024] = "";
        tn_context *ctx = NULL;
        tn_context_config cfg;
        tn_context_config_default(&cfg);
        cfg.one_backend = one;
        TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_OK);
        tn_context_absent_backends(ctx, absent, sizeof absent);
        TEST_CHECK(tn_context_device_by_name(ctx, "cuda") && tn_context_device_by_name(ctx, "cpu"));
        if (!strstr(absent, "vulkan: not part")) // of this build
            TEST_CHECK((strstr(absent, "vulkan: not looked for, as there is cuda:0") != NULL) == (one != 0));
        TEST_CHECK(!one || !tn_context_device_by_name(ctx, "vulkan"));
        tn_context_destroy(&ctx);
    }
    TEST_CHECK(nothing_alive());
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    path = argv[1];
    int64_t stride = argc > 2 ? atoll(argv[2]) : 1;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *get = library ? dlsym(library, "fake_get") : NULL;
    if (!get) {
        printf("SKIP: libcuda.so.1 is not the fake one\n");
        return 77;
    }
    fake_state *(*function)(void);
    memcpy(&function, &get, sizeof function);
    fake = function();
    static const int capabilities[] = {75, 80, 86, 89, 90, 100, 120};
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) test_plain(capabilities[i]);
    if (test_failed == 0) {
        test_each(CUDA_ERROR_OUT_OF_MEMORY, false, TN_ERR_MEMORY, stride);
        test_each(CUDA_ERROR_LAUNCH_FAILED, true, TN_ERR_DEVICE, stride);
        layers = 3; // the others on the processor
        test_plain(90);
        test_each(CUDA_ERROR_OUT_OF_MEMORY, false, TN_ERR_MEMORY, 4 * stride);
        layers = -1;
        test_lost();
        test_memory();
        test_tuning();
        test_computed_matrix();
        test_one_backend();
        print_faults();
    }
    dlclose(library);
    return test_done();
}
