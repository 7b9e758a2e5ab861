// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan backend on devices that are not like the driver of this machine, that are lost, slow or never
// ready, whose memory other programs have, and beside other processes: through a library between it and the
// loader.
//     test_devices   LD_LIBRARY_PATH leads to the libvulkan.so.1 of this folder
#include "tests/unit/counting.h"
#include "tests/vulkan/profile.h"
#include "tests/vulkan/with_between.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs this program again; returns its exit code.
static int run_self(const char *self, const char *environment, const char *arguments)
{
    char text[1200];
    snprintf(text, sizeof text, "%s '%s' %s", environment, self, arguments);
    int code = system(text);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

// --- profiles ------------------------------------------------------------------------------------

// In a process of its own: the device of TN_BETWEEN_PROFILE makes a product within its limits.
static void profile(void)
{
    double error = 1.0;
    tn_context *ctx = context(NULL, false);
    const between_profile *p = between->profile;
    if (!TEST_CHECK(ctx != NULL && p != NULL)) return;
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    TEST_CHECK(error < 1e-3);
    TEST_CHECK(between->broken[0] == 0);
    // Where there are several sizes of subgroups, pipelines ask for one if they can.
    TEST_CHECK((between->n_required > 0) == (p->can_require && p->least != p->most && p->lanes > 0));
    TEST_CHECK((between->n_copies == 0) == p->unified);
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    TEST_CHECK(device && tn_device_has_precision(device, TN_PRECISION_f16) == (p->matrix_rows > 0));
    TEST_CHECK(device && device->max_buffer_size <= PROFILE_ALLOCATION);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
}

static void profiles(const char *self)
{
    static const char *const names[] = {
#define TN_VK_PROFILE(name, ...) #name,
#include "tests/vulkan/profiles.def"
    };
    char environment[64];
    for (size_t i = 0; i < TN_COUNT(names); i++) {
        snprintf(environment, sizeof environment, "TN_BETWEEN_PROFILE=%s", names[i]);
        if (!TEST_CHECK(run_self(self, environment, "profile") == 0)) printf("    %s\n", names[i]);
    }
}

// A device without buffer device addresses is refused, and the reason is told.
static void no_addresses(void)
{
    char text[512] = "";
    reset();
    between->no_addresses = true;
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    TEST_CHECK(!tn_context_device_by_name(ctx, "vulkan"));
    tn_context_absent_backends(ctx, text, sizeof text);
    TEST_CHECK(strstr(text, "it lacks bufferDeviceAddress") != NULL);
    tn_context_destroy(&ctx);
}

// --- memory that others have -----------------------------------------------------------------------

static void budget(void)
{
    enum { LEFT = 64 << 20 };
    tn_buffer b = {0};
    reset();
    between->others = 1;
    tn_context *ctx = context(NULL, false);
    tn_device *device = ctx ? tn_context_device_by_name(ctx, "vulkan") : NULL;
    if (!TEST_CHECK(device != NULL)) return;
    uint64_t total = device->memory_total;
    TEST_CHECK(device->backend->memory_free(device) == total - 1);
    between->others = total - LEFT;
    TEST_CHECK(device->backend->memory_free(device) == LEFT);
    TEST_CHECK_STATUS(tn_buffer_create(device, 2 * LEFT, &b), TN_ERR_MEMORY);
    TEST_CHECK(message_has(ctx, "128 MiB are needed, and this program and others leave 64 MiB"));
    TEST_CHECK_STATUS(tn_buffer_create(device, LEFT / 2, &b), TN_OK);
    tn_buffer_destroy(&b);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
}

// --- a lost device -----------------------------------------------------------------------------------

// The device is lost at each submission of a product once; the next product in the same context is right.
static void lost(void)
{
    double error;
    reset();
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    int64_t before = between->n_submits;
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    int64_t n = between->n_submits - before;
    TEST_CHECK(n > 0);
    for (int64_t i = 1; i <= n; i++) {
        between->lose_at = between->n_submits + i;
        TEST_CHECK_STATUS(product(ctx, &error), TN_ERR_DEVICE);
        TEST_CHECK(message_has(ctx, "the device was lost"));
        if (!TEST_CHECK_STATUS(product(ctx, &error), TN_OK)) {
            char text[300];
            tn_context_error(ctx, text, sizeof text);
            printf("    %lld of %lld: %s\n", (long long)i, (long long)n, text);
        }
        TEST_CHECK(error < 1e-3);
    }
    // While something of the lost device is left, nothing new is made on it.
    tn_buffer b = {0};
    TEST_CHECK_STATUS(tn_buffer_create(tn_context_device_by_name(ctx, "vulkan"), 4096, &b), TN_OK);
    between->lose_at = between->n_submits + 1;
    TEST_CHECK_STATUS(product(ctx, &error), TN_ERR_DEVICE);
    TEST_CHECK_STATUS(product(ctx, &error), TN_ERR_DEVICE);
    tn_buffer_destroy(&b);
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
}

// --- a device whose work does not end ----------------------------------------------------------------

// Calls of the driver after a wait was over: whether the work has come further since, and no more.
enum { ASKED = 1, LIMIT_MS = 20 };

// With that limit. Waits take as long as they need until something hangs.
static tn_context *limited_context(counting *count)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    *count = (counting){0};
    cfg.allocator = (tn_allocator){count, counting_alloc, counting_free};
    cfg.backend = "vulkan";
    cfg.n_threads = 1;
    cfg.device_timeout_ms = LIMIT_MS;
    reset(); // the count of what is left, too
    between->hang_at = INT64_MAX;
    return tn_context_create(&cfg, &ctx) == TN_OK ? ctx : NULL;
}

// Each submission of a product hangs once. All of the context is destroyed, the driver keeps what it has, and
// a new context has the device again.
static void hangs(void)
{
    double error;
    counting count;
    tn_context *ctx = limited_context(&count);
    if (!TEST_CHECK(ctx != NULL)) return;
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    int64_t before = between->n_submits;
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    int64_t n = between->n_submits - before;
    tn_context_destroy(&ctx);
    TEST_CHECK(n > 0 && between->n_alive == 0 && count.live == 0);
    for (int64_t i = 1; i <= n && test_failed == 0; i++) {
        ctx = limited_context(&count);
        if (!TEST_CHECK(ctx != NULL)) return;
        TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
        between->hang_at = between->n_submits + i;
        uint64_t start = tn_time_ns();
        TEST_CHECK_STATUS(product(ctx, &error), TN_ERR_DEVICE);
        TEST_CHECK(tn_time_ns() - start >= LIMIT_MS * 1000000u && between->hung && !between->waits_forever);
        TEST_CHECK(message_has(ctx, "vulkan:0: running: the device was lost: its work did not end within"));
        int64_t alive = between->n_alive;
        TEST_CHECK_STATUS(product(ctx, &error), TN_ERR_DEVICE); // although nothing is left on it
        TEST_CHECK(message_has(ctx, "lost: it was given up, because its work did not end within 0.02 s"));
        tn_context_destroy(&ctx);
        TEST_CHECK(count.live == 0);
        if (!TEST_CHECK(between->n_after == ASKED && between->n_alive == alive && alive > 0))
            printf("    %lld of %lld: %lld calls, %lld objects of %lld\n", (long long)i, (long long)n,
                   (long long)between->n_after, (long long)between->n_alive, (long long)alive);
    }
    ctx = limited_context(&count);
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    TEST_CHECK(error < 1e-3);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0 && count.live == 0);
}

// Work in pieces takes longer than the limit, while each piece does not.
static void pieces(void)
{
    double error;
    counting count;
    tn_context *ctx = limited_context(&count);
    if (!TEST_CHECK(ctx != NULL)) return;
    between->n_late = 5;
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    TEST_CHECK(error < 1e-3 && between->n_late == 0);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
}

// --- a slow device -----------------------------------------------------------------------------------

// Runs a chain of products so many times; returns the submissions of the last run.
static int64_t run_chain(tn_runner *r, int32_t times, const _Atomic int32_t *cancel)
{
    tn_submit_options options = {.cancel = cancel};
    int64_t before = 0;
    for (int32_t i = 0; i < times; i++) {
        before = between->n_submits;
        TEST_CHECK_STATUS(tn_runner_submit(r, &options), TN_OK);
        TEST_CHECK_STATUS(tn_runner_wait(r), TN_OK);
    }
    return between->n_submits - before;
}

// Without knowledge parts are submitted one by one, then as many together as took 0.1 s.
static void slow(void)
{
    enum { N = 384, LAYERS = 6 };
    static float w[N][N];
    const uint64_t ms = 1000000;
    reset();
    tn_context *ctx = context(NULL, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    tn_graph *g = new_graph(ctx);
    tn_tensor *x = INPUT("x", N, N), *weight = WEIGHT("w", N, N);
    for (int32_t i = 0; i < LAYERS; i++) x = tn_op_matmul(g, x, weight);
    OUTPUT("y", x);
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    cfg.devices = &device;
    cfg.n_devices = 1;
    tn_plan *plan = NULL;
    tn_runner *r = NULL;
    TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
    TEST_CHECK_STATUS(tn_runner_create(plan, &(tn_binding){"w", w, sizeof w}, 1, &r), TN_OK);
    between->slow_ns = 150 * ms;
    TEST_CHECK(run_chain(r, 1, NULL) == LAYERS);
    TEST_CHECK(run_chain(r, 2, NULL) == LAYERS);
    between->longest_ns = 0;
    between->slow_ns = 30 * ms; // and what the processor needs for a product
    run_chain(r, 4, NULL);
    TEST_CHECK(between->longest_ns > 0 && between->longest_ns <= 100 * ms);
    // What can be cancelled is submitted in shorter pieces.
    _Atomic int32_t cancel = 0;
    between->longest_ns = 0;
    TEST_CHECK(run_chain(r, 2, &cancel) == LAYERS);
    TEST_CHECK(between->longest_ns == 30 * ms);
    atomic_store(&cancel, 1);
    TEST_CHECK_STATUS(tn_runner_submit(r, &(tn_submit_options){.cancel = &cancel}), TN_ERR_CANCELLED);
    tn_runner_destroy(&r);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0);
}

// --- the cache of pipelines ------------------------------------------------------------------------

// In a process of its own: a product with a cache. `compiles`: whether its kernels may have to be compiled.
static void with_cache(const char *dir, bool compiles)
{
    double error;
    reset();
    tn_context *ctx = context(dir, false);
    if (!TEST_CHECK(ctx != NULL)) return;
    TEST_CHECK_STATUS(product(ctx, &error), TN_OK);
    TEST_CHECK(error < 1e-3 && (compiles || n_compiled == 0));
    tn_context_destroy(&ctx);
}

// Number of files in a folder.
static int32_t n_files(const char *dir)
{
    char text[200], line[16] = "";
    snprintf(text, sizeof text, "ls -A %s | wc -l", dir);
    FILE *f = popen(text, "r");
    bool ok = f && fgets(line, sizeof line, f);
    if (f) pclose(f);
    return ok ? atoi(line) : -1;
}

static void cache(const char *self)
{
    char dir[] = "/tmp/tn-vulkan-XXXXXX", text[200];
    if (!TEST_CHECK(mkdtemp(dir) != NULL)) return;
    // A disk that is full after some bytes: the product is right, and no part of a file stays.
    struct rlimit all, few;
    getrlimit(RLIMIT_FSIZE, &all);
    few = all;
    few.rlim_cur = 100;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &few);
    with_cache(dir, true);
    setrlimit(RLIMIT_FSIZE, &all);
    signal(SIGXFSZ, handler);
    TEST_CHECK(n_files(dir) == 0);
    // Two processes that write the same file at the same time, several times.
    for (int32_t i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "cache %s & '%s' cache %s; wait $!", dir, self, dir);
        TEST_CHECK(run_self(self, "", text) == 0);
        TEST_CHECK(n_files(dir) == 1);
        snprintf(text, sizeof text, "warm %s", dir);
        TEST_CHECK(run_self(self, "", text) == 0);
        snprintf(text, sizeof text, "rm -r %s && mkdir %s", dir, dir);
        TEST_CHECK(system(text) == 0);
    }
    snprintf(text, sizeof text, "rm -r %s", dir);
    TEST_CHECK(system(text) == 0);
}

int main(int argc, char **argv)
{
    if (!find_between()) return 1;
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "profile") == 0) {
        profile();
        return test_done();
    }
    if (argc > 2) {
        with_cache(argv[2], strcmp(mode, "cache") == 0);
        return test_done();
    }
    profiles(argv[0]);
    no_addresses();
    budget();
    lost();
    hangs();
    pieces();
    slow();
    cache(argv[0]);
    return test_done();
}
