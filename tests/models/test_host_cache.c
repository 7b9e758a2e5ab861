// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks in the memory of the host: a small cache with them finds the prefixes that a large one finds, and
// gives the same texts; their number is bounded; a copy that fails costs time and nothing else.
//     test_host_cache [DEVICE]
#include "tests/models/engine_requests.h"
#include "tests/models/far_device.h"

enum {
    REQUESTS = 40,
    ANSWER = 8,
    LONGEST = 400,
    SMALL = 512, // tokens of a cache
    LARGE = 64 * 256,
};

// The emulated device takes some seconds for a thousand tokens.
static struct {
    int32_t n_requests, n_texts, longest, answer, small; // longest: tokens of a prompt
} load = {REQUESTS, 6, LONGEST, ANSWER, SMALL}, short_load = {14, 3, 140, 2, 192};

typedef struct outcome {
    int32_t tokens[REQUESTS][ANSWER], n_reused[REQUESTS];
    tn_engine_stats stats;
} outcome;

// --- copies that fail ----------------------------------------------------------------------------------

static size_t failing_size; // of the copies that fail, 0: none do
static long n_copies, n_failed;

static bool fails(size_t n)
{
    bool now = failing_size > 0 && n == failing_size && ++n_copies % 5 == 0;
    n_failed += now;
    return now;
}

tn_status __real_tn_buffer_read(const tn_buffer *b, size_t offset, void *bytes, size_t n);
tn_status __wrap_tn_buffer_read(const tn_buffer *b, size_t offset, void *bytes, size_t n);
tn_status __wrap_tn_buffer_read(const tn_buffer *b, size_t offset, void *bytes, size_t n)
{
    return fails(n) ? TN_ERR_DEVICE : __real_tn_buffer_read(b, offset, bytes, n);
}

tn_status __real_tn_buffer_write(tn_buffer *b, size_t offset, const void *bytes, size_t n);
tn_status __wrap_tn_buffer_write(tn_buffer *b, size_t offset, const void *bytes, size_t n);
tn_status __wrap_tn_buffer_write(tn_buffer *b, size_t offset, const void *bytes, size_t n)
{
    return fails(n) ? TN_ERR_DEVICE : __real_tn_buffer_write(b, offset, bytes, n);
}

// --- a load --------------------------------------------------------------------------------------------

static tn_engine *open_engine(tn_model *model, int32_t n_ctx, uint64_t host_cache, tn_status want)
{
    tn_session_config scfg = session_config(n_ctx, 2);
    tn_engine_config cfg;
    tn_engine *e = NULL;
    scfg.n_ctx_seq = n_ctx < 512 ? n_ctx : 512;
    scfg.n_batch = 128;
    tn_engine_config_default(&cfg);
    cfg.session = &scfg;
    cfg.host_cache = host_cache;
    TEST_CHECK_STATUS(tn_engine_create(model, &cfg, &e), want);
    return e;
}

// The beginning of one of some texts, of a salt of its own now and then: the same ones for each engine.
static void ask(tn_engine *e)
{
    int32_t ids[LONGEST], n = 65 + below(load.longest - 65), text = below(load.n_texts);
    uint64_t id;
    tn_generation_config g;
    tn_request_config r;
    for (int32_t i = 0; i < n; i++) ids[i] = (i * 11 + (i / 100 + 1) * text * 29) % 250;
    tn_generation_config_default(&g);
    tn_request_config_default(&r);
    g.max_tokens = load.answer;
    r.tokens = ids, r.n_tokens = n, r.generation = &g, r.salt = below(8) == 0;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
}

static void run_load(tn_model *model, int32_t n_ctx, uint64_t host_cache, outcome *o)
{
    tn_engine *e = open_engine(model, n_ctx, host_cache, TN_OK);
    memset(o, 0, sizeof *o);
    random_state = 5;
    for (int32_t i = 0; e && i < load.n_requests; i++) {
        const tn_engine_event *const *events;
        int32_t n, n_tokens = 0;
        ask(e);
        while (tn_engine_pending(e) > 0) {
            if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) abort();
            for (int32_t k = 0; k < n; k++) {
                TEST_CHECK_STATUS(events[k]->status, TN_OK);
                o->n_reused[i] = events[k]->stats->n_reused;
                if (events[k]->piece->token >= 0) o->tokens[i][n_tokens++] = events[k]->piece->token;
            }
        }
    }
    o->stats = (tn_engine_stats){.struct_size = sizeof o->stats};
    tn_engine_stats_get(e, &o->stats);
    TEST_CHECK(o->stats.n_free == o->stats.n_blocks);
    tn_engine_destroy(&e);
}

static bool same_texts(const outcome *a, const outcome *b)
{
    return memcmp(a->tokens, b->tokens, sizeof a->tokens) == 0;
}

// exact: a row has the same bits in every batch, also where the prefix that was found ends elsewhere.
static void check_model(tn_model *model, bool exact)
{
    static outcome large, small, host, less;
    enum { PLENTY = 1 << 26, LITTLE = 3 };
    run_load(model, LARGE, 0, &large);
    run_load(model, load.small, 0, &small);
    run_load(model, load.small, PLENTY, &host);
    TEST_CHECK(large.stats.n_evicted == 0 && large.stats.n_host == 0 && small.stats.n_host_saved == 0);
    TEST_CHECK(small.stats.n_evicted > 5 && small.stats.n_reused < large.stats.n_reused);
    TEST_CHECK(same_texts(&host, &large));
    TEST_CHECK(memcmp(host.n_reused, large.n_reused, sizeof host.n_reused) == 0);
    TEST_CHECK(host.stats.n_prompt == large.stats.n_prompt && host.stats.n_host_loaded > 0);
    // No block is copied to the host twice.
    TEST_CHECK(host.stats.n_host_saved == (uint64_t)host.stats.n_host);
    TEST_CHECK(host.stats.n_evicted >= host.stats.n_host_saved);
    if (!exact) return;
    TEST_CHECK(same_texts(&small, &large));
    size_t block = 0;
    tn_engine *e = open_engine(model, SMALL, 0, TN_OK);
    for (int32_t i = 0; i < e->session->cache.n_parts; i++) block += e->session->cache.parts[i].block_size;
    tn_engine_destroy(&e);
    run_load(model, SMALL, LITTLE * (block + 1024), &less);
    TEST_CHECK(same_texts(&less, &large) && less.stats.n_host == LITTLE);
    TEST_CHECK(less.stats.n_reused >= small.stats.n_reused && less.stats.n_reused < host.stats.n_reused);
    failing_size = 4096; // a block of K or V of a layer
    run_load(model, SMALL, PLENTY, &less);
    failing_size = 0;
    TEST_CHECK(same_texts(&less, &large));
}

static void check_refusals(tn_context *ctx, tn_model *model, counting *c)
{
    tn_engine *e = open_engine(model, SMALL, 100, TN_ERR_ARG);
    tn_model *recurrent = tiny_model_open(ctx, &tiny_shapes[TINY_QWEN35]);
    TEST_CHECK(!e && !open_engine(recurrent, SMALL, 1 << 20, TN_ERR_UNSUPPORTED));
    tn_model_unref(&recurrent);
    tn_model *windowed = tiny_model_open(ctx, &tiny_shapes[TINY_GEMMA3]);
    tn_session_config freed = session_config(64 * TN_CACHE_BLOCK, 2);
    tn_engine_config windows;
    freed.free_windows = 1;
    tn_engine_config_default(&windows);
    windows.session = &freed;
    windows.host_cache = 1 << 20;
    TEST_CHECK_STATUS(tn_engine_create(windowed, &windows, &e), TN_ERR_UNSUPPORTED);
    windows.host_cache = 0;
    TEST_CHECK(!e && TEST_CHECK_STATUS(tn_engine_create(windowed, &windows, &e), TN_OK));
    TEST_CHECK(tn_cache_has_window(&e->session->cache));
    tn_engine_destroy(&e);
    tn_model_unref(&windowed);
    long live = c->live, k = 0;
    for (; !e; k++) {
        tn_engine_config cfg;
        tn_session_config scfg = session_config(SMALL, 2);
        tn_engine_config_default(&cfg);
        cfg.session = &scfg;
        cfg.host_cache = 1 << 20;
        c->fail_from = c->calls + k, c->fail_to = c->fail_from + 1;
        tn_status status = tn_engine_create(model, &cfg, &e);
        c->fail_from = c->fail_to = 0;
        if (status == TN_OK) break;
        if (!TEST_CHECK(status == TN_ERR_MEMORY && !e && c->live == live)) break;
    }
    TEST_CHECK(k > 6);
    tn_engine_destroy(&e);
}

static tn_model *open_on(tn_context *ctx, const tiny_shape *shape, tn_device *device)
{
    size_t size;
    tn_model *model = NULL;
    tn_model_config cfg;
    tiny_file *f = malloc(sizeof *f);
    if (!f) abort();
    tn_model_config_default(&cfg);
    cfg.device = device;
    cfg.device_layers = shape->n_layers;
    tiny_describe(shape, f);
    void *data = tiny_write(ctx, f, &size);
    free(f);
    tiny_must(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model));
    return model;
}

// 0, or 77 if this machine has no such device.
static int check_device(const char *name)
{
    tn_context *ctx = context(NULL, 1);
    tn_device *device =
        strcmp(name, "far") == 0 ? far_add(ctx, (size_t)1 << 28) : tn_context_device_by_name(ctx, name);
    if (device) {
        tn_model *model = open_on(ctx, &tiny_shapes[TINY_LLAMA], device);
        check_model(model, false);
        tn_model_unref(&model);
    }
    tn_context_destroy(&ctx);
    return device ? 0 : 77;
}

int main(int argc, char **argv)
{
    static const int32_t shapes[] = {TINY_LLAMA, TINY_GEMMA3, TINY_DEEPSEEK2};
    if (argc > 1) {
        load = short_load;
        int code = check_device(argv[1]);
        if (code) printf("SKIP: there is no device %s\n", argv[1]);
        return code ? code : test_done();
    }
    counting c;
    tn_context *ctx = context(&c, 1);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        tn_model *model = tiny_model_open(ctx, &tiny_shapes[shapes[i]]);
        check_model(model, true);
        if (i == 0) TEST_CHECK(n_failed > 10);
        if (i == 0) check_refusals(ctx, model, &c);
        tn_model_unref(&model);
    }
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
    (void)check_device("far");
    return test_done();
}
