// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Session files: what was saved goes on bit for bit; damaged, foreign and unfitting files change nothing; a
// save that is killed or runs out of space leaves the file before it.
#include "core/hash.h"
#include "models/gguf/cursor.h"
#include "models/run/state.h"
#include "tests/models/far_device.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tenon/graph.h>
#include <time.h>
#include <unistd.h>

enum { VOCAB = TINY_MODEL_VOCAB, N_CTX = 250, SEQ = 4 };

typedef struct saved {
    char *bytes;
    size_t size;
} saved;

static tn_context *context(void)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.n_threads = 1;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    return ctx;
}

static tn_session *session_of(tn_model *model, int32_t n_ctx, int32_t n_seq, tn_dtype k, tn_dtype v)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    tn_session_config_default(&cfg);
    cfg.n_ctx = n_ctx;
    cfg.n_seq = n_seq;
    cfg.cache_type_k = k;
    cfg.cache_type_v = v;
    if (!TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK)) abort();
    return s;
}

static tn_session *session(tn_model *model)
{
    return session_of(model, N_CTX, SEQ, TN_TYPE_F16, TN_TYPE_F16);
}

// Blocks that are shared, copied, partly cut; a sequence that holds nothing.
static void fill(tn_session *s)
{
    int32_t tokens[N_CTX];
    for (int32_t i = 0; i < N_CTX; i++) tokens[i] = (i * 37 + 11) % VOCAB;
    TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens, 150), TN_OK);
    TEST_CHECK_STATUS(tn_session_branch(s, 0, 1, 100), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(s, 1, tokens + 3, 5), TN_OK);
    TEST_CHECK_STATUS(tn_session_branch(s, 0, 3, 140), TN_OK);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 130), TN_OK);
}

static saved save(tn_session *s)
{
    saved b = {0};
    if (!TEST_CHECK_STATUS(tn_session_save_memory(s, &b.bytes, &b.size), TN_OK)) abort();
    return b;
}

static void drop(tn_context *ctx, saved *b)
{
    tn_text_free(ctx, b->bytes);
}

// Whether a session is in the state that was saved: the blocks have numbers by use, so the bytes are the
// same.
static bool same_state(tn_session *s, const saved *want)
{
    saved b = save(s);
    bool same = b.size == want->size && memcmp(b.bytes, want->bytes, b.size) == 0;
    drop(s->ctx, &b);
    return same;
}

static void seal(saved *b)
{
    tn_hash h;
    size_t n = b->size - TN_STATE_CHECKSUM_SIZE;
    tn_hash_init(&h);
    tn_hash_add(&h, b->bytes, n);
    uint64_t v = tn_hash_value(&h);
    for (size_t i = 0; i < 8; i++) b->bytes[n + i] = (char)(v >> 8 * i);
}

static saved copy_of(tn_context *ctx, const saved *b)
{
    saved c = {tn_alloc(ctx, b->size), b->size};
    if (!c.bytes) abort();
    memcpy(c.bytes, b->bytes, b->size);
    return c;
}

// --- the hash ------------------------------------------------------------------------------------------

static void test_hash(void)
{
    static const struct {
        const char *text;
        uint64_t value;
    } rows[] = {{"", 0xef46db3751d8e999u},
                {"a", 0xd24ec4f1a98c6e5bu},
                {"abc", 0x44bc2cf5ad770999u},
                {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1u}};
    tn_hash h;
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_hash_init(&h);
        tn_hash_add(&h, rows[i].text, strlen(rows[i].text));
        TEST_CHECK(tn_hash_value(&h) == rows[i].value);
    }
    uint8_t data[200];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + 1);
    tn_hash_init(&h);
    tn_hash_add(&h, data, sizeof data);
    uint64_t whole = tn_hash_value(&h);
    for (size_t step = 1; step < 70; step++) { // any cuts
        tn_hash_init(&h);
        for (size_t at = 0; at < sizeof data; at += step)
            tn_hash_add(&h, data + at, TN_MIN(step, sizeof data - at));
        TEST_CHECK(tn_hash_value(&h) == whole);
    }
}

// --- round trips -----------------------------------------------------------------------------------------

// Tokens of a generation that goes on behind what a sequence holds.
static void go_on(tn_session *s, int32_t seq, float temperature, int32_t *out, int32_t n)
{
    tn_generation_config cfg;
    tn_sampling sampling;
    tn_generation *g = NULL;
    int32_t prompt[2] = {5, 9};
    tn_generation_config_default(&cfg);
    tn_sampling_default(&sampling);
    cfg.sampling = &sampling;
    cfg.seq = seq;
    sampling.temperature = temperature;
    sampling.seed = 77;
    if (!TEST_CHECK_STATUS(tn_generation_create(s, &cfg, &g), TN_OK)) abort();
    TEST_CHECK_STATUS(tn_generation_prompt(g, prompt, 2), TN_OK);
    for (int32_t i = 0; i < n; i++) {
        tn_piece piece = {.struct_size = sizeof piece, .token = -1};
        TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
        out[i] = piece.token;
    }
    tn_generation_destroy(&g);
}

static void check_goes_on(tn_session *a, tn_session *b)
{
    static const int32_t seqs[] = {0, 1, 3};
    enum { N = 10 };
    for (size_t i = 0; i < TN_COUNT(seqs); i++) {
        int32_t q = seqs[i], length = tn_session_length(a, q), of_a[N_CTX], of_b[N_CTX];
        TEST_CHECK(tn_session_length(b, q) == length);
        TEST_CHECK(tn_session_tokens(a, q, 0, of_a, N_CTX) == length &&
                   tn_session_tokens(b, q, 0, of_b, N_CTX) == length);
        TEST_CHECK(memcmp(of_a, of_b, (size_t)length * sizeof *of_a) == 0);
        for (int32_t seeded = 0; seeded < 2; seeded++) {
            go_on(a, q, seeded ? 2.0f : 0.0f, of_a, N);
            go_on(b, q, seeded ? 2.0f : 0.0f, of_b, N);
            TEST_CHECK(memcmp(of_a, of_b, N * sizeof *of_a) == 0);
        }
        TEST_CHECK(memcmp(tn_session_logits(a, 0), tn_session_logits(b, 0), VOCAB * sizeof(float)) == 0);
    }
}

// Nothing of what was cut off is in a file: it is the same as if it had never been there. Sequences that
// share a block reach differently far into it.
static void check_cut(tn_model *model, tn_dtype k, tn_dtype v)
{
    enum { KEPT = 70, CUT = 30 };
    tn_session *s = session_of(model, N_CTX, SEQ, k, v);
    int32_t tokens[KEPT + CUT];
    for (int32_t i = 0; i < KEPT + CUT; i++) tokens[i] = (i * 29 + 5) % VOCAB;
    TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens, KEPT), TN_OK);
    saved before = save(s);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens + KEPT, CUT), TN_OK);
    saved longer = save(s);
    TEST_CHECK(longer.size == before.size && memcmp(longer.bytes, before.bytes, before.size) != 0);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, KEPT), TN_OK);
    TEST_CHECK(same_state(s, &before));
    TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens + KEPT, CUT), TN_OK);
    TEST_CHECK_STATUS(tn_session_branch(s, 0, 1, KEPT - 3), TN_OK);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, KEPT), TN_OK);
    TEST_CHECK_STATUS(tn_session_truncate(s, 1, 0), TN_OK);
    TEST_CHECK(same_state(s, &before));
    drop(s->ctx, &before);
    drop(s->ctx, &longer);
    tn_session_destroy(&s);
}

static void test_types(tn_context *ctx)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_F32, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_GEMMA3]);
    for (size_t i = 0; i < TN_COUNT(types); i++) {
        tn_dtype k = types[i], v = types[(i + (i == 1 ? 3 : 0)) % TN_COUNT(types)];
        tn_session *a = session_of(model, N_CTX, SEQ, k, v);
        tn_session *b = session_of(model, N_CTX + 100, SEQ + 3, k, v),
                   *c = session_of(model, N_CTX, SEQ, k, TN_TYPE_F16);
        fill(a);
        fill(b); // what it holds goes away
        TEST_CHECK_STATUS(tn_session_feed(b, 5, (int32_t[]){1, 2, 3}, 3), TN_OK);
        saved state = save(a), before = save(c);
        TEST_CHECK_STATUS(tn_session_load_memory(b, state.bytes, state.size), TN_OK);
        TEST_CHECK(same_state(b, &state) && tn_session_length(b, 5) == 0 && tn_session_length(b, 2) == 0);
        check_goes_on(a, b);
        TEST_CHECK_STATUS(tn_session_load_memory(c, state.bytes, state.size),
                          v == TN_TYPE_F16 ? TN_OK : TN_ERR_TYPE);
        TEST_CHECK(same_state(c, v == TN_TYPE_F16 ? &state : &before));
        TEST_CHECK_STATUS(tn_session_load_memory(b, before.bytes, before.size),
                          v == TN_TYPE_F16 ? TN_OK : TN_ERR_TYPE);
        check_cut(model, k, v);
        drop(ctx, &state);
        drop(ctx, &before);
        tn_session_destroy(&a);
        tn_session_destroy(&b);
        tn_session_destroy(&c);
    }
    tn_model_unref(&model);
}

// Latent attention, layers that share keys, recurrent states: the last state of each sequence goes along, so
// that nothing is evaluated again.
static void test_archs(tn_context *ctx)
{
    static const int32_t archs[] = {TINY_DEEPSEEK2, TINY_GEMMA4, TINY_LLAMA4, TINY_QWEN35, TINY_QWEN3NEXT};
    for (size_t i = 0; i < TN_COUNT(archs); i++) {
        tn_model *model = tiny_model_open(ctx, &tiny_shapes[archs[i]]);
        tn_session *a = session(model), *b = session(model);
        fill(a);
        TEST_CHECK_STATUS(tn_session_feed(b, 2, (int32_t[]){1, 2, 3}, 3), TN_OK);
        saved state = save(a);
        TEST_CHECK_STATUS(tn_session_load_memory(b, state.bytes, state.size), TN_OK);
        TEST_CHECK(same_state(b, &state));
        int32_t slot, furthest = 0;
        for (int32_t q = 0; q < SEQ && a->cache.n_slots > 0; q++) {
            int32_t position = tn_cache_state_find(&a->cache, q, &slot);
            TEST_CHECK(tn_cache_state_find(&b->cache, q, &slot) == position);
            furthest = TN_MAX(furthest, position);
        }
        TEST_CHECK(a->cache.n_slots == 0 || furthest == 105); // sequence 1
        check_goes_on(a, b);
        check_cut(model, TN_TYPE_F16, TN_TYPE_F16);
        drop(ctx, &state);
        tn_session_destroy(&a);
        tn_session_destroy(&b);
        tn_model_unref(&model);
    }
}

// Nothing is lost: a loaded session can still be filled to the last block, and shared blocks stay shared.
static void test_blocks(tn_model *model)
{
    tn_session *a = session(model), *b = session(model);
    int32_t tokens[N_CTX] = {0};
    fill(a);
    saved state = save(a);
    for (int32_t i = 0; i < 3; i++)
        TEST_CHECK_STATUS(tn_session_load_memory(b, state.bytes, state.size), TN_OK);
    TEST_CHECK(b->cache.all.n_free == a->cache.all.n_free);
    TEST_CHECK_STATUS(tn_session_feed(b, 2, tokens, b->cache.all.n_free * TN_CACHE_BLOCK), TN_OK);
    TEST_CHECK(b->cache.all.n_free == 0);
    for (int32_t q = 0; q < SEQ; q++) TEST_CHECK_STATUS(tn_session_truncate(b, q, 0), TN_OK);
    TEST_CHECK(b->cache.all.n_free == b->cache.all.n_blocks);
    TEST_CHECK_STATUS(tn_session_feed(b, 2, tokens, N_CTX), TN_OK);
    drop(a->ctx, &state);
    state = save(b);
    TEST_CHECK_STATUS(tn_session_truncate(b, 2, 0), TN_OK);
    saved empty = save(b);
    TEST_CHECK_STATUS(tn_session_load_memory(a, empty.bytes, empty.size), TN_OK);
    TEST_CHECK(tn_session_length(a, 0) == 0 && a->cache.all.n_free == a->cache.all.n_blocks);
    drop(a->ctx, &state);
    drop(a->ctx, &empty);
    tn_session_destroy(&a);
    tn_session_destroy(&b);
}

// From one device to another and back, whose memory nobody else can touch.
static void test_devices(void)
{
    tn_context *ctx = context();
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    tn_model *near = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]), *model = NULL;
    tiny_file *f = malloc(sizeof *f);
    size_t size;
    if (!f) abort();
    tiny_describe(&tiny_shapes[TINY_LLAMA], f);
    cfg.device = far_add(ctx, 64 << 20);
    cfg.device_layers = 1; // of two
    void *data = tiny_write(ctx, f, &size);
    free(f);
    if (!TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model), TN_OK)) abort();
    tn_session *a = session(near), *b = session(model);
    fill(a);
    saved state = save(a);
    TEST_CHECK_STATUS(tn_session_load_memory(b, state.bytes, state.size), TN_OK);
    TEST_CHECK(same_state(b, &state) && b->cache.sizes[0] > 0 && b->cache.sizes[1] > 0);
    check_goes_on(a, b);
    drop(ctx, &state);
    state = save(b);
    TEST_CHECK_STATUS(tn_session_load_memory(a, state.bytes, state.size), TN_OK);
    TEST_CHECK(same_state(a, &state));
    check_cut(model, TN_TYPE_F16, TN_TYPE_F16);
    drop(ctx, &state);
    tn_session_destroy(&a);
    tn_session_destroy(&b);
    tn_model_unref(&model);
    tn_model_unref(&near);
    tn_context_destroy(&ctx);
}

// Every copy to the device fails once: the session is empty then, and nothing of its cache is lost.
static void test_failing_copies(int32_t arch)
{
    tn_context *ctx = context();
    tn_model_config cfg;
    tn_session_config scfg;
    tn_model_config_default(&cfg);
    tn_session_config_default(&scfg);
    scfg.n_ctx = 40 * TN_CACHE_BLOCK; // else windows have no blocks of their own
    scfg.n_seq = SEQ;
    scfg.n_batch = TN_CACHE_BLOCK;
    scfg.free_windows = 1;
    tn_model *model = NULL;
    tn_session *s = NULL;
    tiny_file *f = malloc(sizeof *f);
    size_t size;
    if (!f) abort();
    tiny_describe(&tiny_shapes[arch], f);
    cfg.device = far_add(ctx, 64 << 20);
    cfg.device_layers = tiny_shapes[arch].n_layers;
    void *data = tiny_write(ctx, f, &size);
    free(f);
    if (!TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model), TN_OK)) abort();
    if (!TEST_CHECK_STATUS(tn_session_create(model, &scfg, &s), TN_OK)) abort();
    tn_cache *c = &s->cache;
    TEST_CHECK(arch == TINY_GEMMA3 ? tn_cache_has_window(c) : c->n_states > 0);
    fill(s);
    saved state = save(s);
    long n_failed = 0;
    for (tn_status status = TN_ERR_DEVICE; status != TN_OK && n_failed < 1000; n_failed += status != TN_OK) {
        far.write_fails = n_failed + 1;
        status = tn_session_load_memory(s, state.bytes, state.size);
        far.write_fails = 0;
        if (status == TN_OK) break;
        TEST_CHECK_STATUS(status, TN_ERR_DEVICE);
        for (int32_t q = 0; q < SEQ; q++) TEST_CHECK(tn_session_length(s, q) == 0);
        TEST_CHECK(c->all.n_free == c->all.n_blocks && c->sliding.n_free == c->sliding.n_blocks);
        for (int32_t i = 0; i < c->n_slots; i++) TEST_CHECK(c->slot_refs[i] == 0);
    }
    TEST_CHECK(n_failed > 10 && same_state(s, &state));
    drop(ctx, &state);
    tn_session_destroy(&s);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

// --- files that are refused ------------------------------------------------------------------------------

// The load fails with `want` (TN_OK: in any way), and the session is as before.
static void refuse(tn_session *s, const saved *before, const saved *b, tn_status want, const char *what)
{
    tn_status status = tn_session_load_memory(s, b->bytes, b->size);
    if (!TEST_CHECK(status == want || (want == TN_OK && status != TN_OK)) ||
        !TEST_CHECK(same_state(s, before)))
        printf("    %s: %s\n", what, tn_status_text(status));
}

static void test_damage(tn_model *model)
{
    tn_session *a = session(model), *s = session(model);
    fill(a);
    TEST_CHECK_STATUS(tn_session_feed(s, 2, (int32_t[]){3, 1, 4}, 3), TN_OK);
    saved state = save(a), before = save(s);
    for (size_t n = 0; n < state.size; n += n < 400 || n + 20 > state.size ? 1 : 4099) {
        saved cut = {state.bytes, n};
        refuse(s, &before, &cut, TN_OK, "cut");
    }
    for (size_t at = 0; at < state.size; at += at < 400 || at + 20 > state.size ? 1 : 1013) {
        state.bytes[at] ^= (char)(1 << at % 8);
        refuse(s, &before, &state, TN_OK, "flipped bit");
        state.bytes[at] ^= (char)(1 << at % 8);
    }
    saved longer = {tn_calloc(s->ctx, state.size + 1, 1), state.size + 1};
    if (!longer.bytes) abort();
    memcpy(longer.bytes, state.bytes, state.size);
    refuse(s, &before, &longer, TN_ERR_FORMAT, "a byte too many");
    saved text = {"GGUF, or a text that somebody wrote by hand; it has 64 bytes or so....", 70};
    refuse(s, &before, &text, TN_ERR_FORMAT, "a text");
    TEST_CHECK_STATUS(tn_session_load_memory(s, NULL, 4), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_load_memory(s, NULL, 0), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_session_load_memory(s, state.bytes, state.size), TN_OK);
    TEST_CHECK(same_state(s, &state));
    drop(s->ctx, &longer);
    drop(s->ctx, &state);
    drop(s->ctx, &before);
    tn_session_destroy(&a);
    tn_session_destroy(&s);
}

static uint32_t number_at(const saved *b, size_t at)
{
    return (uint32_t)tn_load_le((const uint8_t *)b->bytes + at, 4);
}

// Numbers that a checksum cannot refuse: somebody wrote them.
static void test_numbers(tn_model *model)
{
    tn_session *a = session(model), *s = session(model);
    fill(a);
    saved state = save(a), before = save(s);
    size_t parts = number_at(&state, 52) + number_at(&state, 56), seqs = TN_STATE_HEAD_SIZE + 8 * parts,
           ids = seqs;
    for (uint32_t i = 0; i < number_at(&state, 48); i++)
        ids += 8 + 4 * (((size_t)number_at(&state, ids + 4) + 63) / 64);
    const struct {
        const char *what;
        size_t at;
        uint32_t value;
        tn_status want;
    } rows[] = {
        {"version 2", 8, 2, TN_ERR_UNSUPPORTED},
        {"version 0", 8, 0, TN_ERR_UNSUPPORTED},
        {"other rope factors", 12, 1, TN_ERR_UNSUPPORTED},
        {"unknown flag", 12, 2, TN_ERR_UNSUPPORTED},
        {"size", 16, (uint32_t)state.size - 1, TN_ERR_FORMAT},
        {"size of terabytes", 20, 1000, TN_ERR_FORMAT},
        {"model", 24, number_at(&state, 24) ^ 1, TN_ERR_MODEL},
        {"K type", 32, 0, TN_ERR_TYPE},
        {"V type", 36, 0xffffffff, TN_ERR_TYPE},
        {"block of 32 tokens", 40, 32, TN_ERR_UNSUPPORTED},
        {"no blocks", 44, 0, TN_ERR_FORMAT},
        {"a block less", 44, number_at(&state, 44) - 1, TN_ERR_FORMAT},
        {"a block more", 44, number_at(&state, 44) + 1, TN_ERR_FORMAT},
        {"many blocks", 44, 0x7fffffff, TN_ERR_CONTEXT_FULL},
        {"all blocks", 44, 0xffffffff, TN_ERR_CONTEXT_FULL},
        {"a sequence less", 48, number_at(&state, 48) - 1, TN_ERR_FORMAT},
        {"a sequence more", 48, number_at(&state, 48) + 1, TN_OK},
        {"all sequences", 48, 0xffffffff, TN_OK},
        {"no parts", 52, 0, TN_ERR_FORMAT},
        {"many parts", 52, 0xffffffff, TN_ERR_FORMAT},
        {"size of a part", TN_STATE_HEAD_SIZE, 1, TN_ERR_FORMAT},
        {"huge part", TN_STATE_HEAD_SIZE + 4, 0xffffffff, TN_ERR_FORMAT},
        {"first sequence is 9", seqs, 9, TN_ERR_CONTEXT_FULL},
        {"first sequence is the second", seqs, 1, TN_ERR_FORMAT},
        {"empty sequence", seqs + 4, 0, TN_ERR_FORMAT},
        {"sequence of another block", seqs + 4, 193, TN_ERR_FORMAT},
        {"long sequence", seqs + 4, 0xffffffff, TN_ERR_FORMAT},
        {"block that is not there", seqs + 8, number_at(&state, 44), TN_ERR_FORMAT},
        {"block far away", seqs + 8, 0xffffffff, TN_ERR_FORMAT},
        {"token outside", ids, VOCAB, TN_ERR_FORMAT},
        {"negative token", ids + 4, 0xffffffff, TN_ERR_FORMAT},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        saved b = copy_of(s->ctx, &state);
        for (size_t k = 0; k < 4; k++) b.bytes[rows[i].at + k] = (char)(rows[i].value >> 8 * k);
        seal(&b);
        refuse(s, &before, &b, rows[i].want, rows[i].what);
        drop(s->ctx, &b);
    }
    drop(s->ctx, &state);
    drop(s->ctx, &before);
    tn_session_destroy(&a);
    tn_session_destroy(&s);
}

static void test_snapshots(tn_context *ctx)
{
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_QWEN35]);
    tn_session *a = session(model), *s = session(model);
    TEST_CHECK_STATUS(tn_session_feed(a, 1, (int32_t[]){3, 1, 4}, 3), TN_OK);
    saved state = save(a), before = save(s);
    size_t seqs = TN_STATE_HEAD_SIZE + 8 * ((size_t)number_at(&state, 52) + number_at(&state, 56)),
           at = seqs + 12;
    TEST_CHECK(number_at(&state, 60) == 1 && number_at(&state, at) == 1 && number_at(&state, at + 4) == 3);
    const struct {
        const char *what;
        size_t at;
        uint32_t value;
    } rows[] = {
        {"no states", 56, 0},           {"a state more", 56, number_at(&state, 56) + 1},
        {"no snapshots", 60, 0},        {"two snapshots", 60, 2},
        {"many snapshots", 60, ~0u},    {"of a sequence that is not there", at, 0},
        {"of one beyond", at, 2},       {"of one far away", at, ~0u},
        {"of no tokens", at + 4, 0},    {"of more tokens", at + 4, 4},
        {"of all tokens", at + 4, ~0u}, {"size of a state", seqs - 8, 4},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        saved b = copy_of(s->ctx, &state);
        for (size_t k = 0; k < 4; k++) b.bytes[rows[i].at + k] = (char)(rows[i].value >> 8 * k);
        seal(&b);
        refuse(s, &before, &b, TN_ERR_FORMAT, rows[i].what);
        drop(s->ctx, &b);
    }
    drop(ctx, &state);
    drop(ctx, &before);
    tn_session_destroy(&a);
    tn_session_destroy(&s);
    tn_model_unref(&model);
}

static void test_unfitting(tn_context *ctx, tn_model *model)
{
    tiny_shape other = tiny_shapes[TINY_LLAMA];
    other.n_ff += 32;
    tn_model *another = tiny_model_open(ctx, &other);
    tn_session *a = session(model), *few = session_of(model, N_CTX, 2, TN_TYPE_F16, TN_TYPE_F16);
    tn_session *small = session_of(model, 128, SEQ, TN_TYPE_F16, TN_TYPE_F16), *foreign = session(another);
    fill(a);
    saved state = save(a), nothing = save(few);
    refuse(few, &nothing, &state, TN_ERR_CONTEXT_FULL, "two sequences");
    refuse(small, &nothing, &state, TN_ERR_CONTEXT_FULL, "128 tokens");
    TEST_CHECK_STATUS(tn_session_load_memory(foreign, state.bytes, state.size), TN_ERR_MODEL);
    // What fits is taken: sequence 1 with 105 tokens alone.
    TEST_CHECK_STATUS(tn_session_truncate(a, 0, 0), TN_OK);
    TEST_CHECK_STATUS(tn_session_truncate(a, 3, 0), TN_OK);
    drop(ctx, &state);
    state = save(a);
    TEST_CHECK_STATUS(tn_session_load_memory(small, state.bytes, state.size), TN_OK);
    TEST_CHECK(same_state(small, &state) && tn_session_length(small, 1) == 105);
    drop(ctx, &state);
    drop(ctx, &nothing);
    tn_session_destroy(&a);
    tn_session_destroy(&few);
    tn_session_destroy(&small);
    tn_session_destroy(&foreign);
    tn_model_unref(&another);
}

// --- files on disk -------------------------------------------------------------------------------

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (!d) abort();
    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void test_files(tn_model *model)
{
    tn_session *a = session(model), *b = session(model);
    fill(a);
    saved state = save(a);
    const char *path = in_folder("state");
    TEST_CHECK_STATUS(tn_session_load(b, path), TN_ERR_IO); // not there
    TEST_CHECK_STATUS(tn_session_save(a, path), TN_OK);
    TEST_CHECK_STATUS(tn_session_load(b, path), TN_OK);
    TEST_CHECK(same_state(b, &state) && files_in_folder() == 1);
    TEST_CHECK_STATUS(tn_session_save(a, folder), TN_ERR_IO);
    TEST_CHECK_STATUS(tn_session_save(a, "/nowhere/at/all"), TN_ERR_IO);
    TEST_CHECK_STATUS(tn_session_save(a, "/dev/full"), TN_ERR_IO);
    TEST_CHECK_STATUS(tn_session_load(b, "/dev/zero"), TN_ERR_IO);
    TEST_CHECK_STATUS(tn_session_load(b, folder), TN_ERR_IO);
    TEST_CHECK_STATUS(tn_session_save(a, NULL), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_load(a, NULL), TN_ERR_ARG);
    // A disk that is full after some bytes: the old file stays, nothing else does.
    TEST_CHECK_STATUS(tn_session_truncate(a, 3, 0), TN_OK);
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t n = 0; n < state.size / 2; n += state.size / 9) {
        low = (struct rlimit){n, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &low);
        tn_status status = tn_session_save(a, path);
        setrlimit(RLIMIT_FSIZE, &old);
        TEST_CHECK_STATUS(status, TN_ERR_IO);
        TEST_CHECK(files_in_folder() == 1);
    }
    TEST_CHECK_STATUS(tn_session_load(b, path), TN_OK);
    TEST_CHECK(same_state(b, &state));
    unlink(path);
    drop(a->ctx, &state);
    tn_session_destroy(&a);
    tn_session_destroy(&b);
}

// Whoever dies while saving leaves the old file or the new one.
static void test_kill(tn_model *model)
{
    enum { KILLS = 40 };
    tn_session *a = session(model), *b = session(model);
    const char *path = in_folder("killed");
    fill(a);
    saved old = save(a);
    TEST_CHECK_STATUS(tn_session_save(a, path), TN_OK);
    TEST_CHECK_STATUS(tn_session_truncate(a, 3, 70), TN_OK);
    saved new = save(a);
    int n_old = 0, n_new = 0;
    for (int i = 0; i < KILLS || (n_new == 0 && i < 10 * KILLS); i++) {
        pid_t child = fork();
        if (child < 0) abort();
        if (child == 0) {
            for (;;)
                if (tn_session_save(a, path) != TN_OK) _exit(1);
        }
        nanosleep(&(struct timespec){0, 500000L * (i % KILLS)}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (!TEST_CHECK_STATUS(tn_session_load(b, path), TN_OK)) break;
        n_old += same_state(b, &old);
        n_new += same_state(b, &new);
    }
    TEST_CHECK(n_old + n_new >= KILLS && n_new > 0);
    DIR *d = opendir(folder); // temporary files of the killed
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') unlink(in_folder(e->d_name));
    closedir(d);
    drop(a->ctx, &old);
    drop(a->ctx, &new);
    tn_session_destroy(&a);
    tn_session_destroy(&b);
}

// --- memory that is out --------------------------------------------------------------------------

static void test_memory(void)
{
    counting c;
    tn_context *ctx = counting_context(&c);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session *a = session(model), *b = session(model);
    fill(a);
    saved state = save(a), before = save(b);
    const char *path = in_folder("memory");
    long live = c.live;
    bool done = false;
    for (long n = 0; !done && n < 200; n++) {
        saved again = {0};
        c.fail_from = c.calls + n;
        c.fail_to = c.fail_from + 1;
        tn_status to_memory = tn_session_save_memory(a, &again.bytes, &again.size);
        c.fail_from = c.calls + n;
        c.fail_to = c.fail_from + 1;
        tn_status to_file = tn_session_save(a, path);
        c.fail_from = c.calls + n;
        c.fail_to = c.fail_from + 1;
        tn_status from = tn_session_load_memory(b, state.bytes, state.size);
        done = to_memory == TN_OK && to_file == TN_OK && from == TN_OK;
        c.fail_from = c.fail_to = 0;
        TEST_CHECK(to_memory == TN_OK || (to_memory == TN_ERR_MEMORY && !again.bytes));
        TEST_CHECK(to_file == TN_OK || to_file == TN_ERR_MEMORY);
        TEST_CHECK(same_state(b, from == TN_OK ? &state : &before));
        drop(ctx, &again);
        TEST_CHECK(c.live == live);
    }
    TEST_CHECK(done);
    unlink(path);
    drop(ctx, &state);
    drop(ctx, &before);
    tn_session_destroy(&a);
    tn_session_destroy(&b);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
}

int main(void)
{
    const char *temp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/tenon-state-XXXXXX", temp ? temp : "/tmp");
    if (!mkdtemp(folder)) abort();
    tn_context *ctx = context();
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    test_hash();
    test_types(ctx);
    test_archs(ctx);
    test_blocks(model);
    test_devices();
    test_failing_copies(TINY_GEMMA3);
    test_failing_copies(TINY_QWEN35);
    test_damage(model);
    test_numbers(model);
    test_snapshots(ctx);
    test_unfitting(ctx, model);
    test_files(model);
    test_kill(model);
    test_memory();
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    rmdir(folder);
    return test_done();
}
