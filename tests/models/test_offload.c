// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights that are given to the CPU while their layer is on a device with memory of its own: the same logits
// wherever they lie, only what is left takes memory of the device, and the words that tell of a fit.
//
//     test_offload [--backend NAME [FILE]...]   with golden models on a real or emulated device instead
#include "tests/models/adapter_files.h"
#include "tests/models/far_device.h"
#include "tests/models/feeds.h"
#include "tests/unit/test.h"

#include <limits.h>
#include <tenon/graph.h>

enum { N_ROWS = 5, VOCAB = TINY_MODEL_VOCAB, PLENTY = 1 << 30 };

static counting count;
static tn_context *ctx;

static void begin(void)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = 2;
    cfg.allocator = (tn_allocator){&count, counting_alloc, counting_free};
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
}

static void end(void)
{
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
}

static void must(tn_status status)
{
    char text[512];
    if (status == TN_OK) return;
    tn_context_error(ctx, text, sizeof text);
    printf("setting up failed: %s\n", text);
    fflush(stdout);
    abort();
}

static double rel_l2(const float *got, const float *want, size_t n)
{
    double diff = 0.0, norm = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        diff += d * d;
        norm += (double)want[i] * want[i];
    }
    return sqrt(diff / norm);
}

// A prompt in two pieces, tokens, a cut, tokens.
static tn_status run(tn_session *s, int32_t n_vocab, float *out)
{
    int32_t tokens[40];
    tn_status status = TN_OK;
    for (int32_t i = 0; i < 40; i++) tokens[i] = (i * 37 + 11) % TN_MIN(n_vocab, 250);
    for (int32_t i = 0; i < N_ROWS && status == TN_OK; i++) {
        if (i == 3) status = tn_session_truncate(s, 0, 20);
        if (status == TN_OK) status = tn_session_feed(s, 0, tokens + i, i == 0 ? 32 : i == 4 ? 3 : 1);
        const float *x = status == TN_OK ? tn_session_logits(s, 0) : NULL;
        if (x)
            memcpy(out + (size_t)i * (size_t)n_vocab, x, (size_t)n_vocab * sizeof *out);
        else if (status == TN_OK)
            status = TN_ERR_INTERNAL;
    }
    return status;
}

static tn_session *open_session(tn_model *model, int32_t fusion, const tn_adapter_use *use)
{
    tn_session *s = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 128;
    cfg.n_batch = 24;
    cfg.fusion = fusion;
    cfg.cache_type_k = cfg.cache_type_v = TN_TYPE_F32;
    cfg.adapters = use;
    cfg.n_adapters = use != NULL;
    must(tn_session_create(model, &cfg, &s));
    return s;
}

// --- where weights lie -------------------------------------------------------------------------------

// A host's choice: which weights go to the CPU, as a number that names decide, or as a part of their names.
typedef struct choice {
    uint32_t seed; // 0: none
    const char *part;
    tn_device *host, *device;
    long calls;
} choice;

static tn_device *place(void *user, const char *tensor)
{
    choice *c = user;
    uint32_t h = c->seed * 2654435761u;
    c->calls++;
    if (c->part) return strstr(tensor, c->part) ? c->host : NULL;
    for (const char *p = tensor; *p; p++) h = (h ^ (uint8_t)*p) * 16777619u;
    h >>= 16;
    return h % 3 == 0 ? c->host : h % 3 == 1 ? c->device : NULL;
}

static tn_model_config on(tn_device *device, int32_t layers, int32_t experts, choice *c)
{
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = device;
    cfg.device_layers = layers;
    cfg.host_experts = experts;
    if (c) {
        c->host = tn_context_device_by_name(ctx, "cpu");
        c->device = device;
        cfg.place = place;
        cfg.place_user = c;
    }
    return cfg;
}

static tn_model *open_tiny(int32_t arch, const tn_model_config *cfg)
{
    tiny_file *f = malloc(sizeof *f);
    size_t size;
    tn_model *model = NULL;
    if (!f) abort();
    tiny_describe(&tiny_shapes[arch], f);
    void *data = tiny_write(ctx, f, &size);
    free(f);
    must(tn_model_open_memory(ctx, data, size, "tiny", cfg, &model));
    return model;
}

static uint64_t experts_size(const tn_model *m)
{
    uint64_t size = 0;
    for (int64_t i = 0; i < m->n_weights; i++)
        if (strstr(m->weights[i].name, "_exps.")) size += tn_weight_size(&m->weights[i]);
    return size;
}

static float plain[N_ROWS * VOCAB], got[N_ROWS * VOCAB];

// Steps by where they run, from the plan of one token, which has a line for each.
static int32_t count_steps(tn_model *model, const char *what, const char *device)
{
    char *text = NULL;
    int32_t n = 0;
    must(tn_model_plan_dump(model, NULL, 1, TN_PLAN_JSON, &text)); // also of equal layers
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        n += strstr(line, what) && strstr(line, device);
    tn_text_free(ctx, text);
    return n;
}

static void check_run(const char *what, int32_t arch, const tn_model_config *cfg, int32_t fusion, bool bits)
{
    tn_model *model = open_tiny(arch, cfg);
    tn_session *s = open_session(model, fusion, NULL);
    memset(got, 0, sizeof got);
    TEST_CHECK_STATUS(run(s, VOCAB, got), TN_OK);
    double off = rel_l2(got, plain, N_ROWS * VOCAB);
    if (!TEST_CHECK(bits ? memcmp(got, plain, sizeof got) == 0 : off < 1e-5))
        printf("    %s, %s, fusion %d: off by %g\n", tiny_shapes[arch].arch, what, fusion, off);
    TEST_CHECK(far.n_foreign == 0);
    // What was predicted is what is taken.
    tn_session_memory m = {.struct_size = sizeof m};
    tn_session_config sc;
    tn_session_config_default(&sc);
    sc.n_ctx = 128, sc.n_batch = 24, sc.fusion = fusion, sc.cache_type_k = sc.cache_type_v = TN_TYPE_F32;
    TEST_CHECK_STATUS(tn_session_predict(model, &sc, &m), TN_OK);
    if (strcmp(m.devices[0].device, "far") == 0 && !TEST_CHECK(far.used == m.devices[0].total))
        printf("    %s: %zu bytes used, %llu predicted\n", what, far.used,
               (unsigned long long)m.devices[0].total);
    tn_session_destroy(&s);
    tn_model_unref(&model);
    TEST_CHECK(far.used == 0 && far.n_buffers == 0);
}

static void test_places(int32_t arch)
{
    begin();
    tn_device *device = far_add(ctx, PLENTY);
    for (int32_t fusion = 0; fusion < 2; fusion++) {
        tn_model_config all = on(device, INT32_MAX, 0, NULL);
        tn_model *model = open_tiny(arch, &all);
        tn_session *s = open_session(model, fusion, NULL);
        TEST_CHECK_STATUS(run(s, VOCAB, plain), TN_OK);
        tn_session_destroy(&s);
        tn_model_unref(&model);
        for (int32_t n = 1; n <= tiny_shapes[arch].n_layers && tiny_shapes[arch].n_experts > 0; n++) {
            tn_model_config cfg = on(device, n % 2 ? INT32_MAX : 1, n, NULL);
            check_run("experts on the CPU", arch, &cfg, fusion, fusion == 0);
        }
        for (uint32_t seed = 1; seed < 5; seed++) {
            choice c = {.seed = seed};
            tn_model_config cfg = on(device, seed % 2 ? INT32_MAX : 1, 0, &c);
            check_run("any weights anywhere", arch, &cfg, fusion, fusion == 0);
            TEST_CHECK(c.calls > 0);
        }
    }
    end();
}

static void test_sizes(void)
{
    begin();
    tn_device *device = far_add(ctx, PLENTY);
    tn_model_config cfg = on(device, INT32_MAX, 0, NULL);
    tn_model_info info = {.struct_size = sizeof info};
    tn_model *model = open_tiny(TINY_QWEN3MOE, &cfg);
    tn_model_info_get(model, &info);
    uint64_t all = info.device_size, experts = experts_size(model);
    TEST_CHECK(experts > 0 && info.placed_size == 0);
    TEST_CHECK(count_steps(model, "\"op\": \"matmul_id", "\"cpu\"") == 0);
    tn_model_unref(&model);
    for (int32_t n = 1; n <= 3; n++) {
        cfg = on(device, INT32_MAX, n, NULL);
        model = open_tiny(TINY_QWEN3MOE, &cfg);
        tn_model_info_get(model, &info);
        uint64_t placed = experts * (uint64_t)TN_MIN(n, 2) / 2;
        TEST_CHECK(info.placed_size == placed && info.device_size == all - placed);
        TEST_CHECK(info.device_layers == 2);
        tn_model_unref(&model);
    }
    // A host's own choice goes first: one layer's experts stay on the device.
    choice c = {.part = "attn_q.weight"};
    cfg = on(device, INT32_MAX, 1, &c);
    model = open_tiny(TINY_QWEN3MOE, &cfg);
    tn_model_info_get(model, &info);
    TEST_CHECK(info.placed_size == experts / 2 + 2 * 128 * 64 * sizeof(float));
    tn_model_unref(&model);
    // Between the experts and behind them nothing goes back to the device.
    cfg = on(device, INT32_MAX, INT32_MAX, NULL);
    model = open_tiny(TINY_QWEN3MOE, &cfg);
    // x, experts and their weights; their sum
    TEST_CHECK(count_steps(model, "\"op\": \"transfer\"", "") == 2 * 4);
    tn_model_unref(&model);
    // Of no effect in host memory.
    c = (choice){.seed = 3};
    cfg = on(tn_context_device_by_name(ctx, "cpu"), -1, 2, &c);
    model = open_tiny(TINY_QWEN3MOE, &cfg);
    tn_model_info_get(model, &info);
    TEST_CHECK(info.placed_size == 0 && c.calls == 0);
    tn_model_unref(&model);
    end();
}

static tn_device *place_wrong(void *user, const char *tensor)
{
    return strstr(tensor, "ffn") ? user : NULL;
}

static void test_refused(void)
{
    begin();
    tn_device *device = far_add(ctx, PLENTY);
    tn_model_config cfg = on(device, INT32_MAX, -1, NULL);
    tn_model *model = NULL;
    char text[512];
    size_t size;
    tiny_file *f = malloc(sizeof *f);
    if (!f) abort();
    tiny_describe(&tiny_shapes[TINY_LLAMA], f);
    void *data = tiny_write(ctx, f, &size);
    TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model), TN_ERR_ARG);
    cfg = on(device, INT32_MAX, 0, NULL);
    cfg.place = place_wrong;
    cfg.place_user = tn_context_device_by_name(ctx, "null");
    data = tiny_write(ctx, f, &size);
    if (cfg.place_user) {
        TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model), TN_ERR_ARG);
        tn_context_error(ctx, text, sizeof text);
        TEST_CHECK(strstr(text, "blk.0.ffn_") && strstr(text, "is wanted on null"));
    } else {
        tn_free(ctx, data);
    }
    TEST_CHECK(!model && far.used == 0);
    free(f);
    end();
}

// Adapters of weights that were given to the CPU are computed there.
static void test_adapters(void)
{
    begin();
    tn_device *device = far_add(ctx, PLENTY);
    static tiny_file file;
    static adapter_file described;
    size_t size;
    tiny_describe(&tiny_shapes[TINY_QWEN3MOE], &file);
    adapter_describe(&described, &file, 4, 8.0f, TN_TYPE_F32);
    void *bytes = adapter_write(ctx, &described, &size);
    for (int32_t experts = 0; experts < 3; experts++) {
        tn_model_config cfg = on(device, INT32_MAX, experts, NULL);
        tn_model *model = open_tiny(TINY_QWEN3MOE, &cfg);
        tn_adapter *adapter = NULL;
        must(tn_adapter_open_memory(model, bytes, size, "adapter", &adapter));
        tn_session *s = open_session(model, 1, &(tn_adapter_use){sizeof(tn_adapter_use), adapter, 0.5f, 0});
        TEST_CHECK_STATUS(run(s, VOCAB, experts ? got : plain), TN_OK);
        TEST_CHECK(!experts || rel_l2(got, plain, N_ROWS * VOCAB) < 1e-5);
        TEST_CHECK(far.n_foreign == 0);
        tn_session_destroy(&s);
        tn_adapter_unref(&adapter);
        tn_model_unref(&model);
    }
    tn_free(ctx, bytes);
    end();
}

// --- words -------------------------------------------------------------------------------------------

static void test_words(void)
{
    static const uint64_t mib = (uint64_t)1 << 20;
    static const struct {
        tn_fit_facts facts;
        const char *text;
    } rows[] = {
        {{"cuda:0", "cpu", 12, 32, 700, 20000, 8192, 512, 0},
         "12 of 32 layers are on cuda:0, the first 20 on cpu: all layers with a session would take 20000 "
         "MiB, "
         "and of 8192 MiB that are free there 7680 MiB can be used"},
        {{"cuda:0", "cpu", 0, 32, 900, 20000, 1000, 512, 0},
         "no layer is on cuda:0, all 32 on cpu: one layer with a session would take 900 MiB, and of 1000 MiB "
         "that are free there 488 MiB can be used"},
        {{"cuda:0", "cpu", 0, 32, 900, 20000, 2335, 7157, 0},
         "no layer is on cuda:0, all 32 on cpu: only 2335 MiB are free there, less than the 7157 MiB that "
         "are "
         "left to the driver and to other programs"},
        {{"cuda:0", "cpu", 0, 32, 900, 20000, 0, 512, 4000},
         "no layer is on cuda:0, all 32 on cpu: only 0 MiB are free there, less than the 512 MiB that are "
         "left "
         "to the driver and to other programs"},
        {{"vulkan:1", "cpu", 9, 48, 700, 18000, 8192, 512, 3000},
         "9 of 48 layers are on vulkan:1, the first 39 on cpu: all layers with a session would take 18000 "
         "MiB, "
         "and of 8192 MiB that are free there 7680 MiB can be used; with all experts on cpu all layers would "
         "fit"},
        {{"vulkan:1", "cpu", 9, 48, 700, 18000, 8192, 512, 7681},
         "9 of 48 layers are on vulkan:1, the first 39 on cpu: all layers with a session would take 18000 "
         "MiB, "
         "and of 8192 MiB that are free there 7680 MiB can be used"},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        char text[512];
        tn_fit_facts f = rows[i].facts;
        f.one *= mib, f.all *= mib, f.free *= mib, f.margin *= mib, f.without_experts *= mib;
        tn_fit_words(&f, text, sizeof text);
        if (!TEST_CHECK(strcmp(text, rows[i].text) == 0)) printf("    %s\n", text);
    }
}

// --- golden models on a device -----------------------------------------------------------------------

static void check_golden(const char *backend, const char *path)
{
    tn_device *device = tn_context_device_by_name(ctx, backend);
    float *want = NULL, *have = NULL;
    for (int32_t experts = 0; experts < 3; experts++) {
        choice c = {.part = "ffn_down"};
        tn_model_config cfg = on(device, INT32_MAX, experts == 1 ? INT32_MAX : 0, experts == 2 ? &c : NULL);
        tn_model *model = NULL;
        if (!TEST_CHECK_STATUS(tn_model_open(ctx, path, &cfg, &model), TN_OK)) break;
        tn_model_info info = {.struct_size = sizeof info};
        tn_model_info_get(model, &info);
        size_t n = N_ROWS * (size_t)info.n_vocab;
        if (!want) want = calloc(n, sizeof *want), have = calloc(n, sizeof *have);
        if (!want || !have) abort();
        tn_session *s = open_session(model, 1, NULL);
        TEST_CHECK_STATUS(run(s, info.n_vocab, experts ? have : want), TN_OK);
        double off = experts ? rel_l2(have, want, n) : 0.0;
        printf("%s, %s: off by %.2g, %llu bytes of weights on the CPU\n", path,
               experts == 0   ? "all on the device"
               : experts == 1 ? "experts on the CPU"
                              : "ffn_down on the CPU",
               off, (unsigned long long)info.placed_size);
        TEST_CHECK(off < 0.02 && (experts == 0) == (info.placed_size == 0));
        tn_session_destroy(&s);
        tn_model_unref(&model);
    }
    free(want);
    free(have);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--backend") == 0) {
        begin();
        bool found = tn_context_device_by_name(ctx, argv[2]) != NULL;
        for (int i = 3; i < argc && found; i++) check_golden(argv[2], argv[i]);
        end();
        if (found) return test_done();
        printf("SKIP: no device %s\n", argv[2]);
        return 77;
    }
    static const int32_t archs[] = {TINY_LLAMA,  TINY_QWEN3MOE, TINY_GPT2,   TINY_PHI3,      TINY_GPT_OSS,
                                    TINY_LLAMA4, TINY_GEMMA4,   TINY_QWEN35, TINY_DEEPSEEK2, TINY_QWEN3NEXT};
    for (size_t i = 0; i < TN_COUNT(archs); i++) test_places(archs[i]);
    test_sizes();
    test_refused();
    test_adapters();
    test_words();
    return test_done();
}
