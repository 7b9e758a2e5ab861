// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Each call of the Vulkan driver fails once while a model is used: opening it, a prompt, eight tokens, the
// end. It runs out of memory, or loses the device for good. Then a message names what failed, nothing is
// left, and the same context does all of it again, or says that the device is lost. And each submission never
// ends once: then the driver keeps what it has, and nothing calls it any more. Through the library between
// backend and loader, whose shaders do nothing here; one life before and one after have the real ones.
//     test_calls [STRIDE]   every STRIDE-th call (default 1)
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"
#include "tests/vulkan/between.h"

#include <dlfcn.h>
#include <tenon/session.h>
#include <unistd.h>

static between_state *between;
static char folder[] = "/tmp/tn-vulkan-XXXXXX"; // of verdicts: no kernel is tried again
static char path[64];                           // of the model

// Functions, what a message says of them, and how often they have failed.
static struct {
    const char *name, *said;
    bool absent;   // the context goes on without the device
    bool harmless; // or the next use of the device tells
    int64_t n;
} functions[] = {
    {"CreateInstance", NULL, true, false, 0},
    {"EnumeratePhysicalDevices", NULL, true, false, 0},
    {"EnumerateDeviceExtensionProperties", NULL, true, false, 0},
    {"CreateDevice", "making a device", false, false, 0},
    {"CreateCommandPool", "making a command pool", false, false, 0},
    {"CreateSemaphore", "making a semaphore", false, false, 0},
    {"CreatePipelineLayout", "making a layout", false, false, 0},
    {"CreatePipelineCache", "making a cache", false, false, 0},
    {"CreateShaderModule", "making a pipeline", false, false, 0},
    {"CreateComputePipelines", "making a pipeline", false, false, 0},
    {"CreateBuffer", "making a buffer", false, false, 0},
    {"AllocateMemory", "", false, false, 0}, // "allocating" or "out of memory"
    {"BindBufferMemory", "binding memory", false, false, 0},
    {"MapMemory", "mapping memory", false, false, 0},
    {"AllocateCommandBuffers", "making commands", false, false, 0},
    {"BeginCommandBuffer", "recording", false, false, 0},
    {"EndCommandBuffer", "recording", false, false, 0},
    {"QueueSubmit", "submitting", false, false, 0},
    {"WaitSemaphores", "running", false, true, 0},
};

static int32_t function_of(const char *name)
{
    for (int32_t i = 0; i < (int32_t)TN_COUNT(functions); i++)
        if (strcmp(functions[i].name, name) == 0) return i;
    printf("    %s is not in the table\n", name);
    abort();
}

static int64_t timeout_ms; // of the contexts; 0: that of the library

static tn_context *new_context(counting *count)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    *count = (counting){0};
    cfg.allocator = (tn_allocator){count, counting_alloc, counting_free};
    cfg.backend = "vulkan";
    cfg.device_timeout_ms = timeout_ms;
    cfg.cache_dir = folder;
    cfg.n_threads = 1; // so that calls come in one order
    return tn_context_create(&cfg, &ctx) == TN_OK ? ctx : NULL;
}

static tn_status use_session(tn_model *model, float *logits)
{
    static const int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2};
    tn_session *s = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 70;
    tn_status status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = tn_session_feed(s, 0, prompt, 7);
    for (int32_t i = 0; i < 8 && status == TN_OK; i++) status = tn_session_feed(s, 0, prompt + i % 7, 1);
    const float *last = status == TN_OK ? tn_session_logits(s, 0) : NULL;
    if (last) memcpy(logits, last, TINY_MODEL_VOCAB * sizeof *logits);
    tn_session_destroy(&s);
    return status;
}

// A model is opened, used and closed.
static tn_status live(tn_context *ctx, float *logits)
{
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = tn_context_device_by_name(ctx, "vulkan");
    if (!cfg.device) return TN_ERR_UNSUPPORTED;
    tn_status status = tn_model_open(ctx, path, &cfg, &model);
    if (status == TN_OK) status = use_session(model, logits);
    tn_model_unref(&model);
    return status;
}

static void reset(bool no_kernels)
{
    *between = (between_state){.no_kernels = no_kernels};
}

// Whether the first use of the context ended as it may, with this message.
static bool outcome_right(int32_t function, tn_status status, bool lost, const char *text)
{
    if (functions[function].absent) return status == TN_ERR_UNSUPPORTED && strstr(text, "vulkan: ");
    if (status == TN_OK) return functions[function].harmless;
    const char *said = functions[function].said;
    return status == (lost ? TN_ERR_DEVICE : TN_ERR_MEMORY) && strstr(text, "vulkan:0: ") && said &&
           strstr(text, said) && (!lost || strstr(text, "lost"));
}

// The n-th call fails; false: the life has fewer.
static bool check_call(int64_t n, bool lost)
{
    counting count;
    float logits[TINY_MODEL_VOCAB] = {0};
    char text[512] = "", again_text[512] = "";
    reset(true);
    between->fail_at = n;
    between->error = lost ? VK_ERROR_DEVICE_LOST : VK_ERROR_OUT_OF_DEVICE_MEMORY;
    between->fail_stays = lost;
    tn_context *ctx = new_context(&count);
    if (!TEST_CHECK(ctx != NULL)) return false;
    tn_status status = live(ctx, logits), again = TN_OK;
    bool within = between->failed[0] != 0; // else while the context ends
    if (status == TN_ERR_UNSUPPORTED)
        tn_context_absent_backends(ctx, text, sizeof text);
    else
        tn_context_error(ctx, text, sizeof text);
    if (within) again = live(ctx, logits);
    tn_context_error(ctx, again_text, sizeof again_text);
    tn_context_destroy(&ctx);
    if (!between->failed[0]) return false;
    int32_t function = function_of(between->failed);
    functions[function].n++;
    bool right = TEST_CHECK(within ? outcome_right(function, status, lost, text) : status == TN_OK);
    if (within && !functions[function].absent)
        right =
            TEST_CHECK(lost ? again == TN_ERR_DEVICE && strstr(again_text, "lost") : again == TN_OK) && right;
    right = TEST_CHECK(between->n_alive == 0 && count.live == 0) && right;
    if (!right)
        printf("    call %lld, %s, %s: %s: %s\n    again: %s: %s\n    %lld objects, %ld allocations left\n",
               (long long)n, between->failed, lost ? "lost" : "no memory", tn_status_text(status), text,
               tn_status_text(again), again_text, (long long)between->n_alive, count.live);
    return true;
}

// The n-th submission never ends; false: the life has fewer.
static bool check_hang(int64_t n)
{
    counting count;
    float logits[TINY_MODEL_VOCAB] = {0};
    char text[512] = "", again_text[512] = "";
    reset(true);
    between->hang_at = n;
    tn_context *ctx = new_context(&count);
    if (!TEST_CHECK(ctx != NULL)) return false;
    tn_status status = live(ctx, logits), again = TN_OK;
    tn_context_error(ctx, text, sizeof text);
    if (between->hung) again = live(ctx, logits);
    tn_context_error(ctx, again_text, sizeof again_text);
    int64_t alive = between->n_alive;
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    if (!between->hung) return TEST_CHECK(status == TN_OK && between->n_alive == 0) && false;
    bool right = TEST_CHECK(status == TN_ERR_DEVICE && again == TN_ERR_DEVICE && !between->waits_forever);
    right = TEST_CHECK(strstr(text, "vulkan:0: ") && strstr(text, "the device was lost: its work")) && right;
    right = TEST_CHECK(strstr(again_text, "vulkan:0: ") && strstr(again_text, "it was given up")) && right;
    // One call: whether the work has come further since.
    right = TEST_CHECK(between->n_after == 1 && between->n_alive == alive && alive > 0) && right;
    if (!right)
        printf("    submission %lld: %s\n    again: %s\n    %lld calls, %lld objects of %lld\n", (long long)n,
               text, again_text, (long long)between->n_after, (long long)between->n_alive, (long long)alive);
    return true;
}

static void write_model(void)
{
    counting count;
    tiny_shape shape = tiny_shapes[TINY_LLAMA];
    tiny_file *f = malloc(sizeof *f);
    tn_context *ctx = new_context(&count);
    if (!f || !ctx) abort();
    shape.dtype = TN_TYPE_Q8_0;
    tiny_describe(&shape, f);
    size_t size;
    void *bytes = tiny_write(ctx, f, &size);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes, 1, size, out) != size || fclose(out) != 0) abort();
    tn_free(ctx, bytes);
    tn_context_destroy(&ctx);
    free(f);
}

// With the real shaders; *fail_name fails always.
static void live_really(float *logits, const char *fail_name)
{
    counting count;
    reset(false);
    between->fail_name = fail_name;
    tn_context *ctx = new_context(&count);
    if (!TEST_CHECK(ctx != NULL)) return;
    TEST_CHECK_STATUS(live(ctx, logits), TN_OK);
    tn_context_destroy(&ctx);
    TEST_CHECK(between->n_alive == 0 && count.live == 0);
}

int main(int argc, char **argv)
{
    static float before[TINY_MODEL_VOCAB], after[TINY_MODEL_VOCAB];
    int64_t stride = argc > 1 ? atoll(argv[1]) : 1, all = 0;
    void *library = dlopen("libvulkan.so.1", RTLD_NOW);
    void *entry = library ? dlsym(library, "between_get") : NULL;
    if (!entry || !mkdtemp(folder)) {
        printf("the library between is not the first libvulkan.so.1\n");
        return 1;
    }
    between_state *(*get)(void);
    memcpy(&get, &entry, sizeof get);
    between = get();
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    write_model();
    live_really(before, "GetPipelineCacheData"); // what was compiled is not kept, that is all
    live_really(after, NULL);
    TEST_CHECK(memcmp(before, after, sizeof before) == 0);
    for (int32_t lost = 0; lost < 2; lost++)
        for (int64_t n = 1; test_failed == 0 && check_call(n, lost != 0);) n += stride;
    int64_t n_hung = 0;
    timeout_ms = 20;
    for (int64_t n = 1; test_failed == 0 && check_hang(n); n += stride) n_hung++;
    timeout_ms = 0;
    TEST_CHECK(n_hung > 0);
    live_really(after, NULL);
    TEST_CHECK(memcmp(before, after, sizeof before) == 0);
    for (size_t i = 0; i < TN_COUNT(functions); i++) {
        if (functions[i].n > 0) printf("%s: %lld\n", functions[i].name, (long long)functions[i].n);
        all += functions[i].n;
    }
    printf("%lld calls failed, %lld submissions hung\n", (long long)all, (long long)n_hung);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    TEST_CHECK(system(command) == 0);
    return test_done();
}
