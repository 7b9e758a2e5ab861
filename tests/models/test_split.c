// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Models split over two devices: the same bits as on one at every count of layers, what was predicted is what
// is taken, layers that do not fit stay on the host, and every failure is a status that leaves nothing
// behind.
//
//     test_split BUNDLED_DIR [STEP]   only every STEP-th failing allocation (default 1)
#include "tests/models/far_device.h"
#include "tests/models/feeds.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <limits.h>
#include <tenon/graph.h>
#include <tenon/session.h>

enum { N_PROMPT = 70, N_DECODE = 6, PLENTY = 1 << 30 };

static const char *model_path; // NULL: a tiny shape
static tiny_shape model_shape;
static char events[4096]; // of the context, one per line

static void keep_event(void *user, int32_t code, const char *text)
{
    TN_UNUSED(user);
    size_t n = strlen(events);
    snprintf(events + n, sizeof events - n, "%d %s\n", code, text);
}

static counting count;

static tn_context *context(const char *isa)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.isa = isa;
    cfg.n_threads = 2;
    cfg.event = keep_event;
    cfg.allocator = (tn_allocator){&count, counting_alloc, counting_free};
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    events[0] = 0;
    return ctx;
}

static tn_status open_model(tn_context *ctx, const tn_model_config *cfg, tn_model **out)
{
    if (model_path) return tn_model_open(ctx, model_path, cfg, out);
    tiny_file *f = malloc(sizeof *f);
    size_t size;
    if (!f) abort();
    tiny_describe(&model_shape, f);
    void *data = tiny_write(ctx, f, &size);
    free(f);
    return tn_model_open_memory(ctx, data, size, model_shape.arch, cfg, out);
}

static tn_model_config on_far(tn_context *ctx, int32_t n_layers)
{
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = tn_context_device_by_name(ctx, "far");
    cfg.device_layers = n_layers;
    return cfg;
}

static tn_session_config small_session(void)
{
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 200;
    cfg.n_batch = 48;
    cfg.n_seq = 2;
    return cfg;
}

static const tn_device_memory *memory_of(const tn_session_memory *m, const char *device)
{
    for (int32_t i = 0; i < m->n_devices; i++)
        if (strcmp(m->devices[i].device, device) == 0) return &m->devices[i];
    return NULL;
}

// A prompt, a branch in the middle of a block, tokens on both sequences, a cut: logits of every step.
static tn_status run(tn_session *s, int32_t n_vocab, float *out)
{
    int32_t tokens[N_PROMPT];
    for (int32_t i = 0; i < N_PROMPT; i++) tokens[i] = (i * 37 + 11) % TN_MIN(n_vocab, 250);
    tn_status status = tn_session_feed(s, 0, tokens, N_PROMPT);
    size_t row = (size_t)n_vocab;
    for (int32_t i = 0; i < N_DECODE && status == TN_OK; i++, out += 2 * row) {
        const float *x = tn_session_logits(s, 0);
        if (x) memcpy(out, x, row * sizeof *out);
        else status = TN_ERR_INTERNAL;
        if (i == 0 && status == TN_OK) status = tn_session_branch(s, 0, 1, 20);
        if (i == 3 && status == TN_OK) status = tn_session_truncate(s, 0, 65);
        tn_feed feeds[] = {FEED(0, 1, tokens + i, TN_OUTPUT_LAST),
                           FEED(1, 1, tokens + 2 * i, TN_OUTPUT_LAST)};
        if (status == TN_OK) status = tn_session_eval(s, feeds, 2);
        if (status == TN_OK && tn_session_logits(s, 1))
            memcpy(out + row, tn_session_logits(s, 1), row * sizeof *out);
        int32_t best = -1;
        if (status == TN_OK) status = tn_session_best(s, 1, &best, NULL);
        for (size_t k = 0; k < row && status == TN_OK; k++)
            if (out[row + k] > out[row + (size_t)best]) status = TN_ERR_INTERNAL;
    }
    return status;
}

static size_t n_logits(int32_t n_vocab)
{
    return 2 * N_DECODE * (size_t)n_vocab;
}

// The far device holds what was predicted, and a step takes nothing more.
static void check_memory(tn_model *model, const tn_session_config *cfg, tn_session *s)
{
    tn_session_memory m = {.struct_size = sizeof m};
    tn_context *ctx = tn_model_context(model);
    TEST_CHECK_STATUS(tn_session_predict(model, cfg, &m), TN_OK);
    const tn_device_memory *f = memory_of(&m, "far");
    uint64_t predicted = f ? f->total : 0;
    double off = ((double)far.used - (double)predicted) / (double)(predicted + 1);
    if (!TEST_CHECK(off < 0.01 && off > -0.01))
        printf("    %zu bytes used, %llu predicted\n", far.used, (unsigned long long)predicted);
    TEST_CHECK(m.total == m.cache + m.arena + m.scratch + m.other && memory_of(&m, "cpu") != NULL);
    uint64_t allocs = tn_context_n_allocs(ctx);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < 3 && status == TN_OK; i++) status = tn_session_feed(s, 0, (int32_t[]){i + 1}, 1);
    TEST_CHECK_STATUS(status, TN_OK);
    TEST_CHECK(tn_context_n_allocs(ctx) == allocs);
}

// --- the same bits ---------------------------------------------------------------------------------

static bool split_run(tn_context *ctx, int32_t n, const tn_session_config *cfg, float *out)
{
    tn_model_config mc = on_far(ctx, n);
    tn_model *model = NULL;
    tn_session *s = NULL;
    bool ok = TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    tn_model_info info = {.struct_size = sizeof info};
    if (ok) {
        tn_model_info_get(model, &info);
        ok = TEST_CHECK(strcmp(info.device, n > 0 ? "far" : "cpu") == 0 &&
                        info.device_layers == (n > 0 ? n : info.n_layers)) &&
             TEST_CHECK(info.device_size == far.used && (info.device_size > 0) == (n > 0));
    }
    ok = ok && TEST_CHECK_STATUS(tn_session_create(model, cfg, &s), TN_OK);
    if (ok && !TEST_CHECK_STATUS(run(s, info.n_vocab, out), TN_OK)) {
        char text[512];
        tn_context_error(ctx, text, sizeof text);
        printf("    %s\n", text);
    }
    if (ok) check_memory(model, cfg, s);
    tn_session_destroy(&s);
    tn_model_unref(&model);
    TEST_CHECK(far.used == 0 && far.n_buffers == 0 && far.n_foreign == 0);
    return ok;
}

// Norms and adds at the border are not fused there: only without fusion every level gives the same bits.
static void test_bits(const char *isa, int32_t fusion)
{
    tn_context *ctx = context(isa);
    far_add(ctx, PLENTY);
    tn_model *model = NULL;
    tn_session *s = NULL;
    tn_session_config cfg = small_session();
    cfg.fusion = fusion;
    tn_model_config mc;
    tn_model_config_default(&mc);
    mc.device = tn_context_device_by_name(ctx, "cpu");
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    tn_model_info info = {.struct_size = sizeof info};
    tn_model_info_get(model, &info);
    size_t n = n_logits(info.n_vocab);
    float *plain = calloc(n, sizeof *plain), *split = calloc(n, sizeof *split);
    if (!plain || !split) abort();
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK);
    TEST_CHECK_STATUS(run(s, info.n_vocab, plain), TN_OK);
    tn_session_destroy(&s);
    for (int32_t k = 0; k <= info.n_layers; k++) {
        memset(split, 0, n * sizeof *split);
        if (split_run(ctx, k, &cfg, split) && !TEST_CHECK(memcmp(plain, split, n * sizeof *split) == 0)) {
            double worst = 0.0;
            for (size_t i = 0; i < n; i++) {
                double diff = fabs((double)plain[i] - split[i]);
                if (diff > worst) worst = diff; // fmax here ends in an internal error of gcc 12 for aarch64
            }
            printf("    %s, level %s, fusion %d, %d of %d layers: off by %g\n", info.arch, isa ? isa : "best",
                   fusion, k, info.n_layers, worst);
        }
    }
    TEST_CHECK(events[0] == 0);
    free(plain);
    free(split);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
}

// --- missing kernels -------------------------------------------------------------------------------

static void check_fallback(uint64_t refuses, const char *op, bool moves_cache)
{
    tn_context *ctx = context("generic");
    far_add(ctx, PLENTY);
    tn_session_config cfg = small_session();
    cfg.fusion = 0;
    size_t n = n_logits(TINY_MODEL_VOCAB);
    float *all = calloc(n, sizeof *all), *some = calloc(n, sizeof *some);
    if (!all || !some) abort();
    split_run(ctx, 1, &cfg, all);
    far.refuses = refuses;
    if (split_run(ctx, 1, &cfg, some)) TEST_CHECK(memcmp(all, some, n * sizeof *all) == 0);
    if (!TEST_CHECK(strstr(events, op) && strstr(events, "runs on cpu: far has no kernel")))
        printf("    %s: %s\n", op, events);
    tn_model_config mc = on_far(ctx, 2);
    tn_model *model = NULL;
    tn_session *s = NULL;
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    tn_session_memory m = {.struct_size = sizeof m};
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &m), TN_OK);
    TEST_CHECK(memory_of(&m, "far") && (memory_of(&m, "far")->cache == 0) == moves_cache);
    tn_model_unref(&model);
    // Forbidden: the message lists every op at once.
    mc.no_fallback = 1;
    far.refuses = refuses | FAR_REFUSE(get_rows) | FAR_REFUSE(rms_norm);
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_ERR_UNSUPPORTED);
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    bool listed = strstr(text, "far has no kernel for") && strstr(text, op) && strstr(text, "get_rows (") &&
                  strstr(text, "rms_norm (");
    if (!TEST_CHECK(listed && strstr(text, ") x "))) printf("    %s\n", text);
    tn_model_unref(&model);
    mc.device_layers = -1; // a fit makes plans: it fails before anything is copied
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_ERR_UNSUPPORTED);
    TEST_CHECK(!model && !s && far.used == 0);
    far.refuses = 0;
    free(all);
    free(some);
    tn_context_destroy(&ctx);
}

// --- parts of a pass --------------------------------------------------------------------------------

// A device that takes so much work at a time gets a pass in parts, with the same bits, and a pass can be
// cancelled between them.
static void test_parts(void)
{
    tn_context *ctx = context(NULL);
    tn_device *device = far_add(ctx, PLENTY);
    tn_model_config mc = on_far(ctx, INT32_MAX);
    tn_session_config cfg = small_session();
    tn_model *model = NULL;
    int32_t tokens[48];
    for (int32_t i = 0; i < 48; i++) tokens[i] = 3 + i;
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    float logits[2][TINY_MODEL_VOCAB];
    long parts[2] = {0, 0};
    for (int32_t cut = 0; cut < 2; cut++) {
        tn_session *s = NULL;
        device->max_work = cut ? 2e5 : 0.0;
        TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK);
        far.n_submits = 0;
        TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens, 48), TN_OK);
        parts[cut] = far.n_submits;
        memcpy(logits[cut], tn_session_logits(s, 0), sizeof logits[cut]);
        if (cut) { // in the middle, and once more to the end
            TEST_CHECK_STATUS(tn_session_truncate(s, 0, 0), TN_OK);
            far.n_submits = 0;
            far.cancel_at = parts[1] / 2;
            far.cancel = s;
            TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens, 48), TN_ERR_CANCELLED);
            TEST_CHECK(far.n_submits == far.cancel_at + 1 && tn_session_length(s, 0) == 0);
            far.cancel_at = 0;
            tn_session_cancel(s, 0);
            TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens, 48), TN_OK);
            TEST_CHECK(memcmp(logits[0], tn_session_logits(s, 0), sizeof logits[0]) == 0);
        }
        tn_session_destroy(&s);
    }
    if (!TEST_CHECK(parts[0] == 1 && parts[1] > 4)) printf("    %ld and %ld parts\n", parts[0], parts[1]);
    TEST_CHECK(memcmp(logits[0], logits[1], sizeof logits[0]) == 0);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// --- memory ----------------------------------------------------------------------------------------

static void test_fit(void)
{
    static const size_t mib = (size_t)1 << 20;
    tn_context *ctx = context(NULL);
    tn_device *device = far_add(ctx, PLENTY);
    int32_t before = INT32_MAX, seen = 0, n_layers = model_shape.n_layers;
    // From memory for everything down to none, beyond the margin of 512 MiB.
    for (size_t left = 12 * mib; left > mib; left -= mib / 4) {
        far.total = device->memory_total = 512 * mib + left;
        tn_model_config mc = on_far(ctx, -1);
        tn_session_config cfg = small_session();
        mc.session = &cfg;
        tn_model *model = NULL;
        tn_session *s = NULL;
        tn_model_info info = {.struct_size = sizeof info};
        events[0] = 0;
        if (!TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK)) break;
        tn_model_info_get(model, &info);
        int32_t n = strcmp(info.device, "far") == 0 ? info.device_layers : 0;
        TEST_CHECK(n <= before && (n == n_layers) == (events[0] == 0));
        seen += n != before;
        before = n;
        TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK);
        TEST_CHECK(far.used <= left);
        tn_session_destroy(&s);
        tn_model_unref(&model);
    }
    TEST_CHECK(before == 0 && seen == n_layers + 1);
    // Asked for by name, a device that takes nothing is a failure.
    tn_model_config mc = on_far(ctx, -1);
    mc.no_fallback = 1;
    tn_model *model = NULL;
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_ERR_MEMORY);
    // The caller's own reserve counts instead of an estimate.
    far.total = device->memory_total = 1024 * mib;
    mc.reserve_size = 2048 * mib;
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_ERR_MEMORY);
    mc.reserve_size = 100 * mib;
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// Where some layers do not fit, but all would without their experts, the message says so.
static void test_fit_experts(void)
{
    static const char *const advice = "; with all experts on cpu all layers would fit";
    tn_context *ctx = context(NULL);
    tn_device *device = far_add(ctx, PLENTY);
    tn_model_info info = {.struct_size = sizeof info};
    tn_session_config cfg = small_session();
    tn_model *model = NULL;
    tn_model_config mc = on_far(ctx, INT32_MAX);
    mc.session = &cfg;
    tiny_must(open_model(ctx, &mc, &model));
    tn_model_info_get(model, &info);
    uint64_t weights = info.device_size;
    tn_model_unref(&model);
    mc.device_layers = -1;
    for (int32_t enough = 0; enough < 2; enough++) { // for the weights alone; for hardly any of them
        far.total = device->memory_total = ((size_t)512 << 20) + (enough ? weights : 1 << 20);
        events[0] = 0;
        TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
        tn_model_info_get(model, &info);
        TEST_CHECK(info.device_layers < info.n_layers || strcmp(info.device, "cpu") == 0);
        if (!TEST_CHECK((strstr(events, advice) != NULL) == enough)) printf("    %s", events);
        tn_model_unref(&model);
    }
    tn_context_destroy(&ctx);
}

// A device with a limit for one buffer: the weights lie in several, and count as a whole.
static uint64_t keeps_half(tn_device *device, const void *from, size_t n)
{
    TN_UNUSED(device);
    TEST_CHECK(from != NULL);
    return n / 2;
}

static void test_small_buffers(void)
{
    float *want = malloc(n_logits(TINY_MODEL_VOCAB) * sizeof *want),
          *got = malloc(n_logits(TINY_MODEL_VOCAB) * sizeof *got);
    if (!want || !got) abort();
    for (int32_t limited = 0; limited < 2; limited++) {
        tn_context *ctx = context(NULL);
        tn_device *device = far_add(ctx, PLENTY);
        tn_session_config cfg = small_session();
        tn_session_memory m = {.struct_size = sizeof m};
        tn_model_config mc = on_far(ctx, INT32_MAX);
        tn_model *model = NULL;
        tn_session *s = NULL;
        tiny_must(open_model(ctx, &mc, &model));
        size_t whole = far.used;
        if (limited) {
            tn_model_unref(&model);
            device->max_buffer_size = whole / 3;
            tiny_must(open_model(ctx, &mc, &model));
            TEST_CHECK(model->n_uploaded > 2 && far.used == whole);
            for (int32_t i = 0; i < model->n_uploaded; i++)
                TEST_CHECK(model->uploaded[i].size > 0 && model->uploaded[i].size <= whole / 3);
        } else {
            TEST_CHECK(model->n_uploaded == 1);
        }
        tiny_must(tn_session_create(model, &cfg, &s));
        TEST_CHECK_STATUS(run(s, TINY_MODEL_VOCAB, limited ? got : want), TN_OK);
        tiny_must(tn_session_memory_get(s, &m));
        TEST_CHECK(memory_of(&m, "far") && memory_of(&m, "far")->weights == whole);
        far.backend.derived_used = keeps_half; // as where kernels want the weights in another order
        tiny_must(tn_session_memory_get(s, &m));
        TEST_CHECK(memory_of(&m, "far")->weights == whole + whole / 2 && m.parts[0].converted == whole / 2);
        tn_session_destroy(&s);
        tn_model_unref(&model);
        tn_context_destroy(&ctx);
    }
    TEST_CHECK(memcmp(got, want, n_logits(TINY_MODEL_VOCAB) * sizeof *want) == 0);
    free(want);
    free(got);
}

// Sessions that leave the batch open get the device's own, where the device holds all layers and has memory
// for it.
static void test_batch(void)
{
    enum { OWN = 1500, CTX = 3000 };
    static const size_t margin = (size_t)512 << 20;
    tn_context *ctx = context(NULL);
    tn_device *device = far_add(ctx, PLENTY);
    device->n_batch = OWN;
    int32_t n_layers = model_shape.n_layers;
    tn_session_config cfg = small_session();
    cfg.n_ctx = CTX;
    uint64_t least = UINT64_MAX, most = 0;
    for (int32_t given = 512; given <= OWN; given += OWN - 512) { // what both batches take, all layers there
        tn_model_config mc = on_far(ctx, n_layers);
        tn_model *model = NULL;
        tn_session_memory m = {.struct_size = sizeof m};
        cfg.n_batch = given;
        TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
        TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &m), TN_OK);
        uint64_t total = memory_of(&m, "far")->total;
        least = TN_MIN(least, total);
        most = TN_MAX(most, total);
        tn_model_unref(&model);
    }
    TEST_CHECK(least < most);
    const struct {
        size_t total;
        int32_t layers, batch, want; // batch: given
    } rows[] = {
        {PLENTY, -1, 0, OWN},           {PLENTY, n_layers, 0, OWN},
        {PLENTY, n_layers - 1, 0, 512}, {PLENTY, 0, 0, 512},
        {PLENTY, -1, 100, 100},         {margin + most, -1, 0, OWN},
        {margin + least, -1, 0, 512},   {margin + least, n_layers, 0, 512},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_model_config mc = on_far(ctx, rows[i].layers);
        tn_model *model = NULL;
        tn_session *s = NULL;
        tn_model_info info = {.struct_size = sizeof info};
        cfg.n_batch = rows[i].batch;
        mc.session = &cfg;
        far.total = device->memory_total = rows[i].total;
        TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
        tn_model_info_get(model, &info);
        TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK);
        if (!TEST_CHECK(s && tn_session_n_batch(s) == rows[i].want &&
                        (rows[i].layers >= 0 || info.device_layers == n_layers)))
            printf("    case %zu: batch of %d, %d layers\n", i, s ? tn_session_n_batch(s) : 0,
                   info.device_layers);
        tn_session_destroy(&s);
        tn_model_unref(&model);
    }
    tn_context_destroy(&ctx);
}

// Out of memory is a status with a message; a smaller request then succeeds.
static void test_full_device(void)
{
    tn_context *ctx = context(NULL);
    far_add(ctx, PLENTY);
    tn_model_config mc = on_far(ctx, 1);
    tn_model *model = NULL;
    tn_session *s = NULL;
    tn_session_config cfg = small_session();
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    tn_session_memory m = {.struct_size = sizeof m};
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &m), TN_OK);
    far.total = (size_t)memory_of(&m, "far")->total;
    cfg.n_ctx = 4000;
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_ERR_MEMORY);
    char text[512] = "";
    tn_context_error(ctx, text, sizeof text);
    TEST_CHECK(strstr(text, "out of memory") && strstr(text, "far"));
    cfg = small_session();
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK); // exactly what was predicted
    tn_session_destroy(&s);
    tn_model_unref(&model);
    // More layers than the device has memory for.
    far.total -= 1 + (size_t)(memory_of(&m, "far")->total - memory_of(&m, "far")->weights);
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_ERR_MEMORY);
    tn_context_error(ctx, text, sizeof text);
    if (!TEST_CHECK(strstr(text, "1 layers take") && far.used == 0)) printf("    %s\n", text);
    mc.device_layers = 0;
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

static void test_plan_text(void)
{
    tn_context *ctx = context(NULL);
    far_add(ctx, PLENTY);
    tn_model_config mc = on_far(ctx, 1);
    mc.metadata_only = 1;
    tn_model *model = NULL;
    char *text = NULL;
    TEST_CHECK_STATUS(open_model(ctx, &mc, &model), TN_OK);
    TEST_CHECK_STATUS(tn_model_plan_dump(model, NULL, 1, TN_PLAN_TEXT, &text), TN_OK);
    TEST_CHECK(strstr(text, " far matmul") && strstr(text, " cpu matmul") && strstr(text, " far transfer") &&
               !strstr(text, " cpu transfer"));
    TEST_CHECK(strstr(text, "memory on far: arena ") && strstr(text, "memory on cpu: arena "));
    tn_text_free(ctx, text);
    TEST_CHECK_STATUS(tn_model_plan_dump(model, NULL, 1, TN_PLAN_JSON, &text), TN_OK);
    TEST_CHECK(strstr(text, "{\"name\": \"far\", \"arena_bytes\": "));
    tn_text_free(ctx, text);
    TEST_CHECK_STATUS(tn_model_plan_dump(model, NULL, 1, TN_PLAN_SVG, &text), TN_OK);
    TEST_CHECK(strstr(text, ">far</text>") && strstr(text, ">cpu</text>") && strstr(text, " of cpu, steps "));
    tn_text_free(ctx, text);
    TEST_CHECK(far.used == 0);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// --- failing allocations ---------------------------------------------------------------------------

static tn_status live_once(tn_context *ctx, const void *bytes, size_t size, int32_t n_layers)
{
    tn_model *model = NULL;
    tn_session *s = NULL;
    tn_model_config mc = on_far(ctx, n_layers);
    tn_session_config cfg = small_session();
    void *data = tn_alloc(ctx, size);
    if (!data) return TN_ERR_MEMORY;
    memcpy(data, bytes, size);
    tn_status status = tn_model_open_memory(ctx, data, size, "split", &mc, &model);
    if (status == TN_OK) status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = tn_session_feed(s, 0, (int32_t[]){1, 2, 3, 4}, 4);
    if (status == TN_OK) status = tn_session_branch(s, 0, 1, 3);
    if (status == TN_OK) status = tn_session_feed(s, 1, (int32_t[]){5}, 1);
    if (status == TN_OK && !tn_session_logits(s, 0)) status = TN_ERR_MEMORY;
    tn_session_destroy(&s);
    tn_model_unref(&model);
    return status;
}

static void test_failing(int32_t n_layers, uint64_t refuses, bool for_good, long step)
{
    tn_context *ctx = context(NULL);
    far_add(ctx, PLENTY);
    far.refuses = refuses;
    tiny_file *f = malloc(sizeof *f);
    size_t size, memory;
    if (!f) abort();
    tiny_describe(&model_shape, f);
    void *bytes = tiny_write(ctx, f, &size);
    free(f);
    counting_start_threads(ctx);
    memory = tn_context_memory(ctx);
    long live = count.live, start = count.calls, n_wrong = 0, n_failed = 0;
    TEST_CHECK_STATUS(live_once(ctx, bytes, size, n_layers), TN_OK);
    long n_points = count.calls - start;
    for (long point = 0; point < n_points; point += step) {
        count.fail_from = count.calls + point;
        count.fail_to = for_good ? LONG_MAX : count.fail_from + 1;
        tn_status status = live_once(ctx, bytes, size, n_layers);
        count.fail_from = count.fail_to = 0;
        bool ok = status == TN_OK || status == TN_ERR_MEMORY;
        ok = ok && count.live == live && tn_context_memory(ctx) == memory && far.used == 0 &&
             far.n_buffers == 0;
        n_failed += status == TN_ERR_MEMORY;
        if (!ok && n_wrong++ < 5)
            printf("    point %ld: \"%s\", %ld left, %zu on far\n", point, tn_status_text(status),
                   count.live - live, far.used);
    }
    TEST_CHECK(n_wrong == 0 && n_failed >= (n_points + step - 1) / step * 9 / 10);
    printf("%d layers: %ld points, %ld gave out of memory\n", n_layers, (n_points + step - 1) / step,
           n_failed);
    tn_free(ctx, bytes);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
}

int main(int argc, char **argv)
{
    long step = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    char path[1024];
    for (int32_t i = 0; i < TINY_ARCHS; i++) {
        model_shape = tiny_shapes[i];
        if (i != TINY_GEMMA4)
            model_shape.n_layers = TN_MIN(model_shape.n_layers, 3); // whose layers are pairs
        if (i % 2) model_shape.dtype = TN_TYPE_Q8_0;
        test_bits("generic", 1);
        test_bits(NULL, 0);
        test_bits(NULL, 1);
    }
    model_shape = tiny_shapes[TINY_LLAMA];
    check_fallback(FAR_REFUSE(attention), "attention (", true);
    check_fallback(FAR_REFUSE(cache_write), "cache_write (", true);
    check_fallback(FAR_REFUSE(matmul), "matmul (", false);
    check_fallback(FAR_REFUSE(argmax) | FAR_REFUSE(glu), "glu (", false);
    test_parts();
    test_full_device();
    test_plan_text();
    test_small_buffers();
    test_failing(1, 0, false, step);
    test_failing(1, FAR_REFUSE(attention), true, step);
    test_failing(-1, 0, false, step);
    model_shape.n_layers = 5;
    model_shape.n_embd = 256;
    model_shape.n_ff = 512;
    test_fit();
    test_batch();
    model_shape = tiny_shapes[TINY_QWEN3MOE];
    model_shape.n_embd = model_shape.n_ff_expert = 256;
    test_fit_experts();
    if (argc > 1) {
        snprintf(path, sizeof path, "%s/tenon-tiny.gguf", argv[1]);
        model_path = path;
        test_bits(NULL, 1);
        test_bits("generic", 0);
    }
    return test_done();
}
