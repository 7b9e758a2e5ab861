// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The cache of prefixes: whatever is written, cut, copied, given back and found, a block that is found holds
// what its tokens and its salt say; and in engines, who finds what.
#include "tests/models/engine_requests.h"

// --- the index alone -----------------------------------------------------------------------------------

enum { SEQ = 5, BLOCKS = 24, SEQ_BLOCKS = 8, LONGEST = SEQ_BLOCKS * TN_CACHE_BLOCK };

// What should be in a block: a hash of the salt and of all tokens up to its last one that was written.
typedef struct shadow {
    tn_cache cache;
    uint64_t written[BLOCKS][TN_CACHE_BLOCK]; // per slot
    uint64_t salt[SEQ];
    int32_t tokens[SEQ][LONGEST];
} shadow;

static uint64_t mix(uint64_t h, uint64_t x)
{
    return (h ^ x) * 0x9e3779b97f4a7c15u + (h >> 29);
}

static uint64_t content(const shadow *m, int32_t seq, int32_t n)
{
    uint64_t h = mix(17, m->salt[seq]);
    for (int32_t i = 0; i < n; i++) h = mix(h, (uint64_t)m->tokens[seq][i] + 1);
    return h;
}

static bool holds_its_text(const shadow *m, int32_t seq)
{
    uint64_t h = mix(17, m->salt[seq]);
    for (int32_t i = 0; i < m->cache.seqs[seq].length; i++) {
        int32_t slot = tn_cache_slot(&m->cache, seq, i);
        h = mix(h, (uint64_t)m->tokens[seq][i] + 1);
        if (m->cache.ids[slot] != m->tokens[seq][i]) return false;
        if (m->written[slot / TN_CACHE_BLOCK][slot % TN_CACHE_BLOCK] != h) return false;
    }
    return true;
}

// Every block is free, idle or held, and counted as often as sequences hold it.
static bool counts_are_right(const shadow *m)
{
    int32_t refs[BLOCKS] = {0}, held = 0;
    const tn_cache *c = &m->cache;
    for (int32_t q = 0; q < SEQ; q++)
        for (int32_t i = 0; i < tn_cache_blocks_of(c->seqs[q].length); i++) refs[c->seqs[q].blocks[i]]++;
    for (int32_t i = 0; i < c->all.n_blocks; i++) {
        if (refs[i] != c->all.refs[i]) return false;
        held += refs[i] > 0;
    }
    return held + tn_cache_n_available(c) == c->all.n_blocks;
}

// Texts of a small tree: tokens differ at a small number of places only.
static int32_t token_at(int32_t text, int32_t i)
{
    return i % 50 == 49 ? text >> (i / 50 % 3) & 1 : i % 7;
}

static void extend(shadow *m, int32_t seq, int32_t n)
{
    tn_cache *c = &m->cache;
    int32_t first = c->seqs[seq].length, text = below(8);
    if (n > LONGEST - first) n = LONGEST - first;
    int32_t last = first % TN_CACHE_BLOCK ? c->seqs[seq].blocks[first / TN_CACHE_BLOCK] : 0;
    bool fits = tn_cache_blocks_for(c, seq, n) <= tn_cache_n_available(c);
    tn_status status = n > 0 ? tn_cache_extend(c, seq, n) : TN_ERR_CONTEXT_FULL;
    TEST_CHECK(status == (fits && n > 0 ? TN_OK : TN_ERR_CONTEXT_FULL));
    if (status != TN_OK) return;
    if (first % TN_CACHE_BLOCK) // which may have been copied, because another sequence holds it
        memmove(m->written[c->seqs[seq].blocks[first / TN_CACHE_BLOCK]], m->written[last],
                sizeof m->written[0]);
    uint64_t h = content(m, seq, first);
    for (int32_t i = first; i < first + n; i++) {
        int32_t slot = tn_cache_slot(c, seq, i), token = token_at(text, i);
        h = mix(h, (uint64_t)token + 1);
        m->tokens[seq][i] = c->ids[slot] = token;
        m->written[slot / TN_CACHE_BLOCK][slot % TN_CACHE_BLOCK] = h;
    }
    if (below(10) == 0) // the pass fails
        tn_cache_truncate(c, seq, first);
    else
        tn_cache_list(c, seq);
}

static void attach(shadow *m, int32_t seq)
{
    int32_t text = below(8), n = below(LONGEST), n_idle, blocks[SEQ_BLOCKS];
    tn_cache_truncate(&m->cache, seq, 0);
    m->salt[seq] = (uint64_t)below(2);
    for (int32_t i = 0; i < n; i++) m->tokens[seq][i] = token_at(text, i);
    int32_t found = tn_cache_find(&m->cache, m->salt[seq], m->tokens[seq], n, blocks, &n_idle);
    int32_t before = tn_cache_n_idle(&m->cache);
    int32_t length = tn_cache_attach(&m->cache, seq, m->salt[seq], m->tokens[seq], n);
    TEST_CHECK(length == found * TN_CACHE_BLOCK && length <= n);
    TEST_CHECK(before - tn_cache_n_idle(&m->cache) == n_idle);
}

static void test_index(tn_context *ctx, uint32_t seed, long *n_found)
{
    shadow *m = calloc(1, sizeof *m);
    tn_cache_config cfg = {.n_ctx = (BLOCKS - SEQ + 1) * TN_CACHE_BLOCK, .n_seq = SEQ, .n_ctx_seq = LONGEST};
    if (!m || tn_cache_init(&m->cache, ctx, &cfg) != TN_OK) abort();
    TEST_CHECK(m->cache.all.n_blocks == BLOCKS);
    TEST_CHECK_STATUS(tn_cache_index_create(&m->cache), TN_OK);
    random_state = seed;
    for (int32_t step = 0; step < 3000; step++) {
        int32_t seq = below(SEQ), from = below(SEQ), what = below(8), length = m->cache.seqs[seq].length;
        if (what < 4) {
            extend(m, seq, 1 + below(below(2) == 0 ? 4 : 150));
        } else if (what < 5) {
            tn_cache_truncate(&m->cache, seq, below(length + 1));
        } else if (what < 7 || from == seq) {
            attach(m, seq);
            *n_found += m->cache.seqs[seq].length > 0;
        } else {
            m->salt[seq] = m->salt[from];
            memcpy(m->tokens[seq], m->tokens[from], sizeof m->tokens[seq]);
            length = below(m->cache.seqs[from].length + 1);
            TEST_CHECK_STATUS(tn_cache_branch(&m->cache, from, seq, length), TN_OK);
        }
        bool ok = counts_are_right(m);
        for (int32_t q = 0; q < SEQ; q++) ok = ok && holds_its_text(m, q);
        if (!TEST_CHECK(ok)) break;
    }
    for (int32_t q = 0; q < SEQ; q++) tn_cache_truncate(&m->cache, q, 0);
    TEST_CHECK(tn_cache_n_available(&m->cache) == BLOCKS);
    tn_cache_fini(&m->cache);
    free(m);
}

// --- in an engine --------------------------------------------------------------------------------------

enum { PREFIX = 192, PROMPT = 215, TOKENS = 12 };

static void fill_prompt(int32_t *prompt, int32_t text, int32_t which)
{
    for (int32_t i = 0; i < PROMPT; i++)
        prompt[i] = i < PREFIX ? (i * 11 + text * 29) % 250 : (i + which * 37) % 250;
}

static void submit_text(tn_engine *e, int32_t text, int32_t which, uint64_t salt)
{
    int32_t prompt[PROMPT];
    uint64_t id;
    tn_generation_config g;
    tn_request_config r;
    fill_prompt(prompt, text, which);
    tn_generation_config_default(&g);
    tn_request_config_default(&r);
    g.max_tokens = TOKENS;
    r.tokens = prompt, r.n_tokens = PROMPT, r.generation = &g, r.salt = salt;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &id), TN_OK);
}

// Runs all; the tokens of prompts that were evaluated, and how many requests found a part of theirs.
static tn_engine_stats run_all(tn_engine *e)
{
    tn_engine_stats stats = {.struct_size = sizeof stats};
    for (int32_t k = 0; k < 2000 && tn_engine_pending(e) > 0; k++) {
        const tn_engine_event *const *events;
        int32_t n;
        TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK);
    }
    TEST_CHECK(tn_engine_pending(e) == 0);
    tn_engine_stats_get(e, &stats);
    TEST_CHECK(stats.n_free == stats.n_blocks);
    return stats;
}

static void test_engine(tn_model *model)
{
    tn_session_config scfg = session_config(4 * 256, 4);
    scfg.n_ctx_seq = 256;
    scfg.n_batch = 64;
    bool states = model->config.delta.dim > 0;
    tn_engine *e = make_engine(model, &scfg, 0);
    // Four with the same new prefix: the first one evaluates it, the others wait for its blocks.
    for (int32_t i = 0; i < 4; i++) submit_text(e, 0, i, 0);
    tn_engine_stats s = run_all(e);
    TEST_CHECK(s.n_prompt == PROMPT + 3 * (PROMPT - PREFIX) && s.n_reused == 3 * PREFIX && s.n_hits == 3);
    // Later, and the same prompt once more: its last token is evaluated.
    submit_text(e, 0, 0, 0);
    tn_engine_stats t = run_all(e);
    TEST_CHECK(t.n_prompt - s.n_prompt == PROMPT - PREFIX && t.n_hits == 4 && t.n_evicted == 0);
    // Another salt finds nothing, and then what it has written itself.
    submit_text(e, 0, 0, 7);
    s = run_all(e);
    TEST_CHECK(s.n_prompt - t.n_prompt == PROMPT && s.n_hits == 4);
    submit_text(e, 0, 1, 7);
    t = run_all(e);
    TEST_CHECK(t.n_prompt - s.n_prompt == PROMPT - PREFIX && t.n_hits == 5 && t.n_cached > 0);
    // Other texts need the blocks: that of the first one is lost, the last one is still there.
    for (int32_t i = 1; i < 8; i++) {
        submit_text(e, i, 0, 0);
        t = run_all(e);
    }
    TEST_CHECK(t.n_evicted > 0 && t.n_hits == 5);
    submit_text(e, 7, 1, 0);
    s = run_all(e);
    TEST_CHECK(s.n_hits == 6);
    submit_text(e, 0, 0, 0);
    t = run_all(e);
    TEST_CHECK(t.n_hits == 6 && t.n_prompt - s.n_prompt == PROMPT);
    TEST_CHECK(states || t.n_reused == s.n_reused);
    tn_engine_destroy(&e);
}

int main(int argc, char **argv)
{
    counting c;
    tn_context *ctx = context(&c, 1);
    static const int32_t shapes[] = {TINY_LLAMA, TINY_GEMMA3, TINY_DEEPSEEK2, TINY_QWEN35};
    int32_t n_rounds = argc > 1 ? atoi(argv[1]) : 20;
    long n_found = 0;
    for (int32_t i = 0; i < n_rounds; i++) test_index(ctx, (uint32_t)i, &n_found);
    TEST_CHECK(n_found > 100 * n_rounds);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        tn_model *model = tiny_model_open(ctx, &tiny_shapes[shapes[i]]);
        test_engine(model);
        tn_model_unref(&model);
    }
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
    return test_done();
}
