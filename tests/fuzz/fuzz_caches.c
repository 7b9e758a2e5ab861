// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the files that a context keeps in its cache directory: results of tuning, of which the CPU reads
// those of OpenBLAS, and pipelines of Vulkan, with a driver of the target's own. The first byte of an input
// selects the kind of file, and whether its checksum is made right, so that what lies behind it is reached.
#include "core/context.h"
#include "core/hash.h"
#include "core/tuning/tuning_file.h"
#include "tests/fuzz/fuzz.h"

#include <inttypes.h>
#include <tenon/graph.h>
#include <tenon/version.h>
#include <unistd.h>

// The reader of Vulkan's file, also in a build without Vulkan; with other names, as the library may have it.
#if __has_include(<vulkan/vulkan.h>)
#define HAS_VULKAN                  1
#define tn_vk_check                 fuzz_vk_check
#define tn_vk_is_given_up           fuzz_vk_is_given_up
#define tn_vk_pipeline_cache_create fuzz_vk_pipeline_cache_create
#define tn_vk_pipeline_cache_save   fuzz_vk_pipeline_cache_save
#define tn_vk_pipeline_cache_free   fuzz_vk_pipeline_cache_free
#include "backends/vulkan/runtime/pipeline_cache.c"
#else
#define HAS_VULKAN 0
#endif

enum { SEALED = 1, KINDS = 3, SUM_LINE_SIZE = 4 + 16 + 1, TEXT_MAX = 1 << 16 };
static const char description[] = "a device of the fuzzer";

static struct {
    tn_context *ctx; // on the folder
    char folder[32];
    char cpu[TN_TUNING_LINE_SIZE - 80]; // description of the processor
} fixture;

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", fixture.folder);
    if (system(command) != 0) fprintf(stderr, "%s stays\n", fixture.folder);
}

static tn_context *new_context(void)
{
    tn_context *ctx = NULL;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = 1;
    cfg.backend = "cpu";
    cfg.cache_dir = fixture.folder;
    fuzz_must(tn_context_create(&cfg, &ctx) == TN_OK);
    return ctx;
}

static void fixture_init(void)
{
    tn_device_info info = {.struct_size = sizeof info};
    if (fixture.ctx) return;
    // In memory where the system has such a folder: files are written out before they get their names.
    snprintf(fixture.folder, sizeof fixture.folder, "/dev/shm/tenon-caches-XXXXXX");
    if (!mkdtemp(fixture.folder)) {
        snprintf(fixture.folder, sizeof fixture.folder, "/tmp/tenon-caches-XXXXXX");
        fuzz_must(mkdtemp(fixture.folder) != NULL);
    }
    fuzz_must(atexit(remove_folder) == 0);
    fixture.ctx = new_context();
    tn_device_info_get(tn_context_device_by_name(fixture.ctx, "cpu"), &info);
    snprintf(fixture.cpu, sizeof fixture.cpu, "%s", info.description);
}

static uint64_t hash_of(const void *bytes, size_t n)
{
    tn_hash h;
    tn_hash_init(&h);
    tn_hash_add(&h, bytes, n);
    return tn_hash_value(&h);
}

static void write_bytes(const char *name, const char *about, const char *ending, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s-%016" PRIx64 "%s", fixture.folder, name, hash_of(about, strlen(about)),
             ending);
    FILE *f = fopen(path, "wb");
    fuzz_must(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

// --- tuning ------------------------------------------------------------------------------------------

// A file of these lines, with the head of this version and, if it is sealed, the right sum.
static void write_tuning(const char *backend, const char *about, const uint8_t *lines, size_t n, bool sealed)
{
    static char text[TEXT_MAX + 2 * TN_TUNING_LINE_SIZE];
    char name[32];
    int start = 0;
    if (sealed)
        start =
            snprintf(text, TN_TUNING_LINE_SIZE, "tenon tuning 1 of %s kernels on %s\n", TENON_VERSION, about);
    n = TN_MIN(n, TEXT_MAX);
    memcpy(text + start, lines, n);
    n += (size_t)start;
    if (sealed)
        n += (size_t)snprintf(text + n, TN_TUNING_LINE_SIZE, "sum %016" PRIx64 "\n", hash_of(text, n));
    snprintf(name, sizeof name, "tuning-%s", backend);
    write_bytes(name, about, ".txt", text, n);
}

typedef struct lines {
    const uint8_t *bytes;
    size_t size, at;
} lines;

// Lines come whole, in order.
static void take_line(void *user, const char *text)
{
    lines *l = user;
    size_t n = strlen(text);
    fuzz_must(n < TN_TUNING_LINE_SIZE && !strchr(text, '\n'));
    const uint8_t *end = memchr(l->bytes + l->at, '\n', l->size - l->at);
    fuzz_must(end && memcmp(l->bytes + l->at, text, n) == 0);
    l->at = (size_t)(end - l->bytes) + 1;
}

static void read_lines(const uint8_t *data, size_t size, bool sealed)
{
    static const tn_tuning_file file = {"fuzz", description, 1};
    lines l = {data, size, 0};
    write_tuning("fuzz", description, data, size, sealed);
    tn_tuning_file_read(fixture.ctx, &file, take_line, &l);
}

// A plan of a product that may run by OpenBLAS asks for what was measured.
static void use_choices(const uint8_t *data, size_t size, bool sealed)
{
    enum { M = 32, N = 64, K = 64 };
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    write_tuning("cpu", fixture.cpu, data, size, sealed);
    tn_context *ctx = new_context();
    fuzz_must(tn_graph_create(ctx, &g) == TN_OK);
    tn_tensor *x = tn_graph_input(g, "x", TN_TYPE_F32, 2, (int64_t[]){M, K});
    tn_tensor *w = tn_graph_weight(g, "w", TN_TYPE_F32, 2, (int64_t[]){N, K});
    tn_graph_output(g, "y", tn_op_matmul(g, x, w));
    fuzz_must(tn_plan_create(g, NULL, &plan) == TN_OK);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
}

// --- pipelines ---------------------------------------------------------------------------------------

#if HAS_VULKAN
static uint64_t seen; // the sum of the bytes that the driver was given

bool fuzz_vk_is_given_up(const tn_vk *v)
{
    return v->lost == TN_VK_GIVEN_UP;
}

tn_status fuzz_vk_check(tn_vk *v, VkResult r, const char *what)
{
    return r == VK_SUCCESS ? TN_OK : tn_fail(v->device->ctx, TN_ERR_DEVICE, "%s", what);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_cache(VkDevice d, const VkPipelineCacheCreateInfo *info,
                                                   const VkAllocationCallbacks *a, VkPipelineCache *out)
{
    TN_UNUSED(d);
    TN_UNUSED(a);
    seen = hash_of(info->pInitialData, info->initialDataSize); // reads all of them
    memset(out, 1, sizeof *out);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_cache(VkDevice d, VkPipelineCache c, const VkAllocationCallbacks *a)
{
    TN_UNUSED(d);
    TN_UNUSED(c);
    TN_UNUSED(a);
}

static VKAPI_ATTR VkResult VKAPI_CALL cache_data(VkDevice d, VkPipelineCache c, size_t *n, void *out)
{
    TN_UNUSED(d);
    TN_UNUSED(c);
    *n = sizeof description;
    if (out) memcpy(out, description, *n);
    return VK_SUCCESS;
}

// Whatever was read is there again, with one verdict more, when it was saved.
static void use_pipelines(const uint8_t *data, size_t size, bool sealed)
{
    tn_device device = {.ctx = fixture.ctx};
    tn_vk v = {.device = &device, .n_new = 1};
    tn_vk_pipeline added = {.code = 5, .verdict = TN_VK_GOOD};
    snprintf(device.description, sizeof device.description, "%s", description);
    v.f.CreatePipelineCache = create_cache;
    v.f.DestroyPipelineCache = destroy_cache;
    v.f.GetPipelineCacheData = cache_data;
    uint8_t *copy = fuzz_copy(data, size);
    if (sealed && size >= SUM_SIZE) {
        uint64_t sum = hash_of(copy + SUM_SIZE, size - SUM_SIZE);
        memcpy(copy, &sum, sizeof sum);
    }
    write_bytes("pipelines-vulkan", description, ".bin", copy, size);
    free(copy);
    fuzz_must(tn_vk_pipeline_cache_create(&v) == TN_OK);
    fuzz_must(v.n_known >= 0 && (size_t)v.n_known * sizeof *v.known <= size);
    tn_vk_stored_verdict k = known_of(&added);
    int32_t n = v.n_known + is_new(&v, &k);
    v.pipelines = &added;
    tn_vk_pipeline_cache_save(&v);
    tn_vk_pipeline_cache_free(&v);
    fuzz_must(tn_vk_pipeline_cache_create(&v) == TN_OK);
    fuzz_must(v.n_known == n && !is_new(&v, &k) && seen == hash_of(description, sizeof description));
    tn_vk_pipeline_cache_free(&v);
}
#endif

// --- the target --------------------------------------------------------------------------------------

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    fixture_init();
    fuzz_cost cost = fuzz_begin(fixture.ctx);
    bool sealed = data[0] & SEALED;
    int kind = data[0] / 2 % KINDS;
    if (kind == 0) read_lines(data + 1, size - 1, sealed);
    if (kind == 1) use_choices(data + 1, size - 1, sealed);
#if HAS_VULKAN
    if (kind == 2) use_pipelines(data + 1, size - 1, sealed);
#endif
    fuzz_end(&cost, size);
    return 0;
}

// --- inputs ------------------------------------------------------------------------------------------

static size_t put_choices(uint64_t *state, uint8_t *out, size_t n, size_t max)
{
    static const char *const numbers[] = {"1",  "20000", "21001", "-5", "0", "9223372036854775807",
                                          "1e", "",      " "};
    static const char *const classes[] = {"matmul f32 m 32 n 64 k 64", "matmul q8_0 m 16 n 64 k 64", "",
                                          "a b"};
    n = fuzz_put(out, n, max, "library OpenBLAS 0.3.21\n");
    for (uint64_t i = fuzz_random(state) % 5; i > 0; i--) {
        n = fuzz_put(out, n, max, classes[fuzz_random(state) % TN_COUNT(classes)]);
        n = fuzz_put(out, n, max, ": ");
        n = fuzz_put(out, n, max, numbers[fuzz_random(state) % TN_COUNT(numbers)]);
        n = fuzz_put(out, n, max, " ");
        n = fuzz_put(out, n, max, numbers[fuzz_random(state) % TN_COUNT(numbers)]);
        n = fuzz_put(out, n, max, "\n");
    }
    return n;
}

static size_t put_pipelines(uint64_t *state, uint8_t *out, size_t n, size_t max)
{
#if HAS_VULKAN
    tn_vk_stored_verdict k = {.code = 5, .verdict = TN_VK_BAD};
    head h = {.format = FORMAT, .n_verdicts = (uint32_t)(fuzz_random(state) % 4)};
    if (n + sizeof h + 4 * sizeof k > max) return n;
    memcpy(out + n, &h, sizeof h);
    n += sizeof h;
    for (uint32_t i = 0; i < h.n_verdicts; i++, k.code++, n += sizeof k) memcpy(out + n, &k, sizeof k);
#else
    TN_UNUSED(state);
#endif
    return fuzz_put(out, n, max, "bytes of a driver");
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    if (max < 16) return 0;
    int kind = (int)(fuzz_random(state) >> 8) % KINDS;
    out[0] = (uint8_t)(2 * kind + (fuzz_random(state) % 8 != 0));
    size_t n = kind < 2 ? put_choices(state, out, 1, max) : put_pipelines(state, out, 1, max);
    if (fuzz_random(state) % 4 != 0) n = 1 + fuzz_damage(state, out + 1, n - 1, n - 1);
    return n;
}

#include "tests/fuzz/fuzz_main.h"
