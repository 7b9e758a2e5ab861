// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers with a sliding window keep the blocks of the window: a session that does gives the same bits as one
// that keeps the whole context, and takes less memory, whatever is cut, branched, saved or found by others.
#include "tests/models/engine_requests.h"

enum { N_CTX = 1024, N_SEQ = 3, N_BATCH = 48 };

typedef struct pair {
    tn_session *whole, *window;
    int32_t tokens[N_SEQ][N_CTX], length[N_SEQ];
} pair;

static tn_session *session(tn_model *model, int32_t whole, int32_t n_seq)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    tn_session_config_default(&cfg);
    cfg.n_ctx = N_CTX;
    cfg.n_seq = n_seq;
    cfg.n_batch = N_BATCH;
    cfg.free_windows = !whole;
    if (!TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK)) abort();
    return s;
}

static void same_logits(const pair *p)
{
    const float *a = tn_session_logits(p->whole, 0), *b = tn_session_logits(p->window, 0);
    TEST_CHECK(a && b && memcmp(a, b, VOCAB * sizeof *a) == 0);
}

static void feed(pair *p, int32_t seq, int32_t n)
{
    int32_t *at = p->tokens[seq] + p->length[seq];
    n = TN_MIN(n, N_CTX / N_SEQ - p->length[seq]);
    if (n < 1) return;
    for (int32_t i = 0; i < n; i++) at[i] = below(VOCAB);
    TEST_CHECK_STATUS(tn_session_feed(p->whole, seq, at, n), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(p->window, seq, at, n), TN_OK);
    p->length[seq] += n;
    same_logits(p);
}

static void cut(pair *p, int32_t seq, int32_t n)
{
    TEST_CHECK_STATUS(tn_session_truncate(p->whole, seq, n), TN_OK);
    TEST_CHECK_STATUS(tn_session_truncate(p->window, seq, n), TN_OK);
    p->length[seq] = n;
}

static void branch(pair *p, int32_t from, int32_t to, int32_t n)
{
    TEST_CHECK_STATUS(tn_session_branch(p->whole, from, to, n), TN_OK);
    TEST_CHECK_STATUS(tn_session_branch(p->window, from, to, n), TN_OK);
    memcpy(p->tokens[to], p->tokens[from], sizeof p->tokens[to]);
    p->length[to] = n;
}

// Saved by one, loaded by the other kind and by its own.
static void save(pair *p, tn_model *model, bool swap)
{
    char *bytes[2];
    size_t n[2];
    TEST_CHECK_STATUS(tn_session_save_memory(p->whole, &bytes[0], &n[0]), TN_OK);
    TEST_CHECK_STATUS(tn_session_save_memory(p->window, &bytes[1], &n[1]), TN_OK);
    tn_session_destroy(&p->window);
    p->window = session(model, 0, N_SEQ);
    TEST_CHECK_STATUS(tn_session_load_memory(p->window, bytes[!swap], n[!swap]), TN_OK);
    tn_text_free(tn_model_context(model), bytes[0]);
    tn_text_free(tn_model_context(model), bytes[1]);
}

// Every block of the window is free or held, as often as is counted.
static bool counts_are_right(const tn_cache *c)
{
    int32_t held;
    return window_refs_are_right(c, &held) && held + c->sliding.n_free == c->sliding.n_blocks;
}

static void test_random(tn_model *model, uint32_t seed)
{
    pair *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->whole = session(model, 1, N_SEQ);
    p->window = session(model, 0, N_SEQ);
    random_state = seed;
    const tn_cache *c = &p->window->cache;
    TEST_CHECK(tn_cache_has_window(c) && !tn_cache_has_window(&p->whole->cache));
    TEST_CHECK(c->sliding.n_blocks < c->all.n_blocks && c->sizes[0] < p->whole->cache.sizes[0]);
    for (int32_t step = 0; step < 60; step++) {
        int32_t seq = below(N_SEQ), to = below(N_SEQ), what = below(12), length = p->length[seq];
        if (what < 5)
            feed(p, seq, 1 + below(3));
        else if (what < 8)
            feed(p, seq, 1 + below(150));
        else if (what < 10)
            cut(p, seq, below(length + 1));
        else if (what < 11 && to != seq)
            branch(p, seq, to, below(length + 1));
        else
            save(p, model, below(2) == 0);
        TEST_CHECK(counts_are_right(&p->window->cache));
    }
    tn_session_destroy(&p->whole);
    tn_session_destroy(&p->window);
    free(p);
}

// A text as long as the context: blocks before the window are used again.
static void test_long(tn_model *model)
{
    tn_session *whole = session(model, 1, 1), *window = session(model, 0, 1);
    const tn_cache *c = &window->cache;
    int32_t tokens[N_CTX];
    for (int32_t i = 0; i < N_CTX; i++) tokens[i] = i * 7919 % VOCAB;
    for (int32_t at = 0, n = 700; at < N_CTX; at += n, n = 1) {
        TEST_CHECK_STATUS(tn_session_feed(whole, 0, tokens + at, n), TN_OK);
        TEST_CHECK_STATUS(tn_session_feed(window, 0, tokens + at, n), TN_OK);
        const float *a = tn_session_logits(whole, 0), *b = tn_session_logits(window, 0);
        TEST_CHECK(memcmp(a, b, VOCAB * sizeof *a) == 0);
    }
    TEST_CHECK(c->seqs[0].window_first > 0 && c->sliding.n_blocks < 8);
    printf("    window: %d blocks of %d, %zu bytes of %zu\n", c->sliding.n_blocks, c->all.n_blocks,
           c->sizes[0], whole->cache.sizes[0]);
    tn_session_memory predicted = {.struct_size = sizeof predicted};
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = N_CTX;
    cfg.n_batch = N_BATCH;
    cfg.free_windows = 1;
    TEST_CHECK_STATUS(tn_session_predict(model, &cfg, &predicted), TN_OK);
    TEST_CHECK(predicted.cache == c->sizes[0]);
    tn_session_destroy(&whole);
    tn_session_destroy(&window);
}

// --- what engines find again ----------------------------------------------------------------------------

enum { PREFIX = 256, PROMPT = PREFIX + 20, TEXTS = 12 };

// The prompt `which` of text `text`: all of a text share the prefix.
static uint64_t run_prompt(tn_engine *e, int32_t text, int32_t which)
{
    int32_t tokens[PROMPT];
    uint64_t id;
    tn_request_config r;
    tn_generation_config g;
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_generation_config_default(&g);
    tn_request_config_default(&r);
    for (int32_t i = 0; i < PROMPT; i++) tokens[i] = (i * 7 + text * 31 + (i < PREFIX ? 0 : which)) % 250;
    g.max_tokens = 4;
    r.tokens = tokens, r.n_tokens = PROMPT, r.generation = &g;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
    while (tn_engine_pending(e) > 0) {
        const tn_engine_event *const *events;
        int32_t n;
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
    }
    tn_engine_stats_get(e, &stats);
    return stats.n_reused;
}

// A prefix is found as long as the window behind it is there. It is lost before the rest of the text is.
static void test_engine_prefixes(tn_model *model)
{
    tn_session_config cfg = session_config(8192, 4);
    cfg.n_batch = 64;
    cfg.free_windows = 1;
    tn_engine *e = make_engine(model, &cfg, 0);
    const tn_cache *c = &e->session->cache;
    TEST_CHECK(tn_cache_has_window(c) && c->sliding.n_blocks < c->all.n_blocks / 4);
    uint64_t reused = run_prompt(e, 0, 0);
    TEST_CHECK(reused == 0);
    reused = run_prompt(e, 0, 1); // what it has in common with the text before
    TEST_CHECK(reused == PREFIX);
    for (int32_t text = 1; text < TEXTS; text++) TEST_CHECK(run_prompt(e, text, 0) == reused);
    TEST_CHECK(run_prompt(e, TEXTS - 1, 1) == reused + PREFIX);
    TEST_CHECK(tn_cache_n_evicted(c) == 0); // the keys and values of other layers are there still
    TEST_CHECK(run_prompt(e, 0, 2) == reused + PREFIX);
    TEST_CHECK(run_prompt(e, 0, 3) == reused + 2 * PREFIX);
    tn_engine_destroy(&e);
}

int main(void)
{
    static const int32_t shapes[] = {TINY_GEMMA3, TINY_GPT_OSS, TINY_GEMMA4};
    tn_context *ctx = context(NULL, 1);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        tn_model *model = tiny_model_open(ctx, &tiny_shapes[shapes[i]]);
        test_long(model);
        test_engine_prefixes(model);
        for (uint32_t seed = 1; seed <= 4; seed++) test_random(model, seed);
        tn_model_unref(&model);
    }
    tn_context_destroy(&ctx);
    return test_done();
}
