// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Prefix reuse: a sequence that starts from what sequences hold evaluates the rest only, and gives the same
// logits as one that evaluates everything.
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/session.h>

enum { VOCAB = TINY_MODEL_VOCAB, N_CTX = 200, SEQ = 3 };

// The level below AVX2: rows do not depend on their batch, so everything is equal to the bit.
static tn_context *context(void)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.isa = "generic";
    cfg.n_threads = 1;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    return ctx;
}

static tn_session *session(tn_model *model, int32_t n_seq)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    tn_session_config_default(&cfg);
    cfg.n_ctx = N_CTX;
    cfg.n_seq = n_seq;
    if (!TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK)) abort();
    return s;
}

static void fill(int32_t *tokens, int32_t n, uint32_t seed)
{
    for (int32_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(((uint32_t)i * 2654435761u ^ seed * 40503u) >> 7 & 0xff);
}

static bool holds(const tn_session *s, int32_t seq, const int32_t *tokens, int32_t n)
{
    int32_t held[N_CTX];
    return tn_session_length(s, seq) == n && tn_session_tokens(s, seq, 0, held, N_CTX) == n &&
           memcmp(held, tokens, (size_t)n * sizeof *held) == 0;
}

// Starts from what is held, feeds the rest; the logits are those of a session that was fed everything.
static void check_start(tn_session *s, int32_t seq, const int32_t *tokens, int32_t n, int32_t want_reused)
{
    int32_t n_reused = -1;
    TEST_CHECK_STATUS(tn_session_reuse(s, seq, tokens, n - 1, &n_reused), TN_OK);
    if (!TEST_CHECK(n_reused == want_reused)) printf("    reused %d, expected %d\n", n_reused, want_reused);
    TEST_CHECK(holds(s, seq, tokens, n_reused));
    TEST_CHECK_STATUS(tn_session_feed(s, seq, tokens + n_reused, n - n_reused), TN_OK);
    TEST_CHECK(holds(s, seq, tokens, n));
    tn_session *plain = session(tn_session_model(s), 1);
    TEST_CHECK_STATUS(tn_session_feed(plain, 0, tokens, n), TN_OK);
    TEST_CHECK(memcmp(tn_session_logits(s, 0), tn_session_logits(plain, 0), VOCAB * sizeof(float)) == 0);
    tn_session_destroy(&plain);
}

static void test_prefixes(tn_model *model)
{
    int32_t a[N_CTX], b[N_CTX], c[N_CTX], n_reused = 7;
    fill(a, N_CTX, 1);
    memcpy(b, a, sizeof b);
    fill(b + 100, N_CTX - 100, 2); // parts in the middle of the second block
    memcpy(c, b, sizeof c);
    c[150]++;
    tn_session *s = session(model, SEQ);
    check_start(s, 0, a, 150, 0);
    check_start(s, 0, a, 150, 149);  // the same again: one token for its logits
    check_start(s, 0, a, 40, 39);    // shorter
    check_start(s, 0, a, 130, 40);   // longer
    check_start(s, 1, b, 140, 100);  // from another sequence, in the middle of a block
    TEST_CHECK(holds(s, 0, a, 130)); // which is as it was
    check_start(s, 2, c, 160, 140);  // from the longest of two
    TEST_CHECK(holds(s, 1, b, 140));
    check_start(s, 1, a, 120, 119); // its own 100 against 119 of another
    TEST_CHECK(holds(s, 0, a, 130));
    TEST_CHECK_STATUS(tn_session_feed(s, 0, c, 3), TN_OK); // does not reach the copy
    TEST_CHECK(holds(s, 1, a, 120));
    TEST_CHECK_STATUS(tn_session_reuse(s, 0, a, 0, &n_reused), TN_OK);
    TEST_CHECK(n_reused == 0 && tn_session_length(s, 0) == 0);
    n_reused = 7;
    TEST_CHECK_STATUS(tn_session_reuse(s, -1, a, 3, &n_reused), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_reuse(s, SEQ, a, 3, &n_reused), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_reuse(s, 0, a, -1, &n_reused), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_reuse(s, 0, NULL, 1, &n_reused), TN_ERR_ARG);
    TEST_CHECK(n_reused == 7);
    int32_t some[4] = {-1, -1, -1, -1};
    TEST_CHECK(tn_session_tokens(s, 1, 118, some, 4) == 2 && some[0] == a[118] && some[1] == a[119] &&
               some[2] == -1);
    TEST_CHECK(tn_session_tokens(s, 1, -1, some, 4) == 0 && tn_session_tokens(s, 1, 120, some, 4) == 0 &&
               tn_session_tokens(s, 9, 0, some, 4) == 0 && tn_session_tokens(s, 1, 0, some, -4) == 0);
    tn_session_destroy(&s);
}

// n tokens from a prompt on; counts of the prompt in *stats.
static void generate(tn_session *s, const int32_t *prompt, size_t n_prompt, int32_t *out, int32_t n,
                     tn_generation_stats *stats)
{
    tn_generation_config cfg;
    tn_sampling sampling;
    tn_generation *g = NULL;
    tn_generation_config_default(&cfg);
    tn_sampling_default(&sampling);
    cfg.sampling = &sampling;
    sampling.temperature = 3.0f;
    sampling.frequency_penalty = 2.0f; // looks back over the prompt too
    sampling.penalty_last_n = -1;
    sampling.seed = 11;
    if (!TEST_CHECK_STATUS(tn_generation_create(s, &cfg, &g), TN_OK)) abort();
    TEST_CHECK_STATUS(tn_generation_start(g, prompt, 0), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_generation_start(g, prompt, N_CTX + 1), TN_ERR_CONTEXT_FULL);
    TEST_CHECK_STATUS(tn_generation_start(g, prompt, n_prompt), TN_OK);
    for (int32_t i = 0; i < n; i++) {
        tn_piece piece = {.struct_size = sizeof piece, .token = -1};
        TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
        out[i] = piece.token;
    }
    tn_generation_stats_get(g, stats);
    tn_generation_destroy(&g);
}

// Two turns: the second evaluates what is new, and says the same as if it had evaluated everything.
static void test_turns(tn_model *model)
{
    enum { FIRST = 70, ANSWER = 12, SECOND = 110 };
    int32_t prompt[N_CTX + 1], answer[ANSWER], again[ANSWER], fresh[ANSWER];
    tn_generation_stats stats = {.struct_size = sizeof stats};
    tn_session *s = session(model, 1), *other = session(model, 1);
    fill(prompt, N_CTX + 1, 3);
    generate(s, prompt, FIRST, answer, ANSWER, &stats);
    TEST_CHECK(stats.n_prompt == FIRST && stats.n_reused == 0);
    memcpy(prompt + FIRST, answer, sizeof answer);
    generate(s, prompt, SECOND, again, ANSWER, &stats);
    // The last token of the answer was chosen, but never evaluated.
    TEST_CHECK(stats.n_reused == FIRST + ANSWER - 1 && stats.n_prompt == SECOND - stats.n_reused);
    generate(other, prompt, SECOND, fresh, ANSWER, &stats);
    TEST_CHECK(stats.n_prompt == SECOND && memcmp(again, fresh, sizeof fresh) == 0);
    generate(s, prompt, SECOND, again, ANSWER, &stats); // once more, as a chat does that is asked to
    TEST_CHECK(stats.n_prompt == 1 && stats.n_reused == SECOND - 1 &&
               memcmp(again, fresh, sizeof fresh) == 0);
    tn_session_destroy(&s);
    tn_session_destroy(&other);
}

int main(void)
{
    tn_context *ctx = context();
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    test_prefixes(model);
    test_turns(model);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    return test_done();
}
