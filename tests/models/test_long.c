// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Talks that are longer than the context: what a shift leaves is what a new session makes of the same tokens,
// a start that is refused changes nothing, and a chat of 200 turns goes on.
//
//     test_long FOLDER     with the bundled model
#include "models/run/session.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/graph.h>
#include <tenon/text.h>

enum { CTX = 96, MAX_TEXT = 1024 };

static counting count;
static tn_context *ctx;

static tn_session *make_session(tn_model *model, int32_t n_ctx, int32_t n_seq, tn_dtype cache)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    tn_session_config_default(&cfg);
    cfg.n_ctx = n_ctx;
    cfg.n_batch = 40; // a shift feeds several batches
    cfg.n_seq = n_seq;
    cfg.n_checkpoints = 0;
    cfg.cache_type_k = cfg.cache_type_v = cache;
    tiny_must(tn_session_create(model, &cfg, &s));
    return s;
}

static tn_generation *make_generation(tn_session *s, int32_t full, int32_t keep, int32_t ngram)
{
    tn_generation_config cfg;
    tn_sampling sampling;
    tn_generation *g = NULL;
    tn_generation_config_default(&cfg);
    tn_sampling_default(&sampling);
    sampling.temperature = 0;
    cfg.sampling = &sampling;
    cfg.ignore_end = 1;
    cfg.context_full = full;
    cfg.n_keep = keep;
    cfg.spec_ngram = ngram;
    tiny_must(tn_generation_create(s, &cfg, &g));
    return g;
}

// --- shifts ------------------------------------------------------------------------------------------

// What must stay of n tokens.
static int32_t kept_of(const int32_t *text, int32_t n, int32_t keep, int32_t *out)
{
    int32_t first = TN_MIN(keep, CTX / 2), last = (CTX - first) / 2;
    memcpy(out, text, (size_t)first * sizeof *out);
    memcpy(out + first, text + n - last, (size_t)last * sizeof *out);
    return first + last;
}

// A new session with the kept tokens, then the one that was chosen before the shift.
static void compare_fresh(tn_model *model, tn_dtype cache, const int32_t *kept, int32_t n, int32_t pending,
                          const tn_piece *want)
{
    tn_session *s = make_session(model, CTX, 1, cache);
    tn_generation *g = make_generation(s, TN_CONTEXT_STOP, 0, 0);
    tn_piece piece = {.struct_size = sizeof piece};
    TEST_CHECK_STATUS(tn_session_feed(s, 0, kept, n), TN_OK);
    TEST_CHECK_STATUS(tn_generation_prompt(g, &pending, 1), TN_OK);
    TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
    TEST_CHECK(piece.token == want->token && memcmp(&piece.logprob, &want->logprob, sizeof(float)) == 0);
    tn_generation_destroy(&g);
    tn_session_destroy(&s);
}

// The tokens of the sequence are followed from outside, and each shift is compared.
static void check_shifts(tn_model *model, tn_dtype cache, int32_t keep, int32_t *text_out)
{
    static const int32_t prompt[] = {1, 17, 40, 99, 12, 7, 30, 31, 5, 6};
    int32_t text[MAX_TEXT], n = TN_COUNT(prompt), n_shifts = 0, bound = keep < 0 ? n : keep, dropped = 0;
    memcpy(text, prompt, sizeof prompt);
    tn_session *s = make_session(model, CTX, 1, cache);
    tn_generation *g = make_generation(s, TN_CONTEXT_SHIFT, keep, 0);
    TEST_CHECK_STATUS(tn_generation_start(g, prompt, TN_COUNT(prompt)), TN_OK);
    for (int32_t i = 0; i < 300; i++) {
        tn_piece piece = {.struct_size = sizeof piece};
        if (!TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK)) break;
        TEST_CHECK(piece.stop == TN_STOP_NONE && piece.token >= 0);
        TEST_CHECK((piece.n_dropped > 0) == (n == CTX + 1)); // the last one was not evaluated before
        if (piece.n_dropped > 0) {
            int32_t kept[CTX], n_kept = kept_of(text, CTX, bound, kept), pending = text[CTX];
            TEST_CHECK(piece.n_dropped == CTX - n_kept);
            compare_fresh(model, cache, kept, n_kept, pending, &piece);
            memcpy(text, kept, (size_t)n_kept * sizeof *kept);
            text[n_kept] = pending;
            n = n_kept + 1;
            n_shifts++;
            dropped += piece.n_dropped;
        }
        int32_t held[CTX];
        TEST_CHECK(tn_session_tokens(s, 0, 0, held, CTX) == n && memcmp(held, text, (size_t)n * 4) == 0);
        text[n++] = text_out[i] = piece.token;
    }
    tn_generation_stats stats = {.struct_size = sizeof stats};
    tn_generation_stats_get(g, &stats);
    TEST_CHECK(n_shifts >= 4 && stats.n_dropped == dropped && stats.n_generated == 300);
    tn_generation_destroy(&g);
    tn_session_destroy(&s);
}

// Guesses change no token.
static void check_guesses(tn_model *model, tn_dtype cache, int32_t keep, const int32_t *want)
{
    static const int32_t prompt[] = {1, 17, 40, 99, 12, 7, 30, 31, 5, 6};
    tn_session *s = make_session(model, CTX, 1, cache);
    tn_generation *g = make_generation(s, TN_CONTEXT_SHIFT, keep, 2);
    int32_t n_same = 0;
    TEST_CHECK_STATUS(tn_generation_start(g, prompt, TN_COUNT(prompt)), TN_OK);
    for (int32_t i = 0; i < 300; i++) {
        tn_piece piece = {.struct_size = sizeof piece};
        if (!TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK)) break;
        n_same += piece.token == want[i];
    }
    TEST_CHECK(n_same == 300);
    tn_generation_destroy(&g);
    tn_session_destroy(&s);
}

static void test_shifts(void)
{
    static const int32_t archs[] = {TINY_LLAMA, TINY_GEMMA3, TINY_QWEN35}, keeps[] = {0, 4, 33, 500, -1};
    int32_t text[300];
    for (size_t a = 0; a < TN_COUNT(archs); a++) {
        tn_model *model = tiny_model_open(ctx, &tiny_shapes[archs[a]]);
        for (size_t k = 0; k < TN_COUNT(keeps); k++) {
            tn_dtype cache = k % 2 ? TN_TYPE_Q8_0 : TN_TYPE_F16;
            check_shifts(model, cache, keeps[k], text);
            if (archs[a] == TINY_LLAMA) check_guesses(model, cache, keeps[k], text);
        }
        tn_model_unref(&model);
    }
}

static void test_long_prompts(void)
{
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session *s = make_session(model, CTX, 1, TN_TYPE_F16);
    int32_t prompt[3 * CTX], held[CTX], kept[CTX];
    for (int32_t i = 0; i < 3 * CTX; i++) prompt[i] = 1 + i % 250;
    tn_generation *g = make_generation(s, TN_CONTEXT_SHIFT, 8, 0);
    tn_generation_stats stats = {.struct_size = sizeof stats};
    int32_t n = kept_of(prompt, 3 * CTX, 8, kept);
    TEST_CHECK_STATUS(tn_generation_start(g, prompt, 3 * CTX), TN_OK);
    TEST_CHECK(tn_session_tokens(s, 0, 0, held, CTX) == n && memcmp(held, kept, (size_t)n * 4) == 0);
    tn_generation_stats_get(g, &stats);
    TEST_CHECK(stats.n_dropped == 3 * CTX - n);
    // Appended: the sequence and the prompt are one text.
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 0), TN_OK);
    TEST_CHECK_STATUS(tn_generation_prompt(g, prompt, CTX - 10), TN_OK);
    TEST_CHECK_STATUS(tn_generation_prompt(g, prompt + CTX - 10, 50), TN_OK);
    n = kept_of(prompt, CTX + 40, 8, kept);
    TEST_CHECK(tn_session_tokens(s, 0, 0, held, CTX) == n && memcmp(held, kept, (size_t)n * 4) == 0);
    tn_generation_destroy(&g);
    tn_generation_config cfg;
    tn_generation_config_default(&cfg);
    cfg.context_full = 2;
    TEST_CHECK_STATUS(tn_generation_create(s, &cfg, &g), TN_ERR_ARG);
    tn_session_destroy(&s);
    tn_model_unref(&model);
}

// --- refused starts ----------------------------------------------------------------------------------

static void check_refused(tn_session *s, tn_generation *g, const int32_t *ids, size_t n, bool append,
                          tn_status want)
{
    int32_t before[2 * CTX], after[2 * CTX], length = tn_session_length(s, 0);
    tn_session_tokens(s, 0, 0, before, 2 * CTX);
    TEST_CHECK_STATUS(append ? tn_generation_prompt(g, ids, n) : tn_generation_start(g, ids, n), want);
    TEST_CHECK(tn_session_length(s, 0) == length);
    TEST_CHECK(tn_session_tokens(s, 0, 0, after, 2 * CTX) == length);
    TEST_CHECK(memcmp(before, after, (size_t)length * sizeof *before) == 0);
}

static void test_refused(void)
{
    enum { N_CTX = 4 * TN_CACHE_BLOCK, MORE = N_CTX + 9 };
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    tn_session *s = make_session(model, N_CTX, 2, TN_TYPE_F16);
    tn_generation *g = make_generation(s, TN_CONTEXT_STOP, 0, 0);
    int32_t ids[MORE], other[MORE];
    for (int32_t i = 0; i < MORE; i++) ids[i] = 1 + i % 250, other[i] = 3 + i % 120;
    TEST_CHECK_STATUS(tn_session_feed(s, 0, ids, 70), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(s, 1, other, 3 * TN_CACHE_BLOCK - 5), TN_OK);
    check_refused(s, g, ids, 3 * TN_CACHE_BLOCK, false, TN_ERR_CONTEXT_FULL);
    check_refused(s, g, ids, 2 * TN_CACHE_BLOCK, true, TN_ERR_CONTEXT_FULL);
    check_refused(s, g, ids, MORE, false, TN_ERR_CONTEXT_FULL);
    other[5] = TINY_MODEL_VOCAB;
    check_refused(s, g, other, 20, false, TN_ERR_ARG);
    check_refused(s, g, other, 20, true, TN_ERR_ARG);
    // What fits is not refused: as much as there are blocks, shared ones included.
    other[5] = 3 + 5 % 120;
    TEST_CHECK_STATUS(tn_generation_start(g, ids, 2 * TN_CACHE_BLOCK), TN_OK);
    TEST_CHECK_STATUS(tn_generation_start(g, other, 3 * TN_CACHE_BLOCK - 20), TN_OK);
    tn_generation_destroy(&g);
    tn_session_destroy(&s);
    tn_model_unref(&model);
}

// --- training ----------------------------------------------------------------------------------------

static void hear(void *user, int32_t code, const char *text)
{
    (void)text;
    if (code == TN_EVENT_CONTEXT_BEYOND_TRAINING) ++*(int32_t *)user;
}

static void test_training(void)
{
    for (int32_t strict = 0; strict < 2; strict++) {
        int32_t n_events = 0;
        tn_context *c = NULL;
        tn_context_config cfg;
        tn_context_config_default(&cfg);
        cfg.event = hear;
        cfg.user = &n_events;
        cfg.strict = strict;
        tiny_must(tn_context_create(&cfg, &c));
        tn_model *model = tiny_model_open(c, &tiny_shapes[TINY_LLAMA]);
        tn_session_config sc;
        tn_session *s = NULL;
        tn_session_config_default(&sc);
        sc.n_ctx = tiny_shapes[TINY_LLAMA].n_ctx;
        TEST_CHECK_STATUS(tn_session_create(model, &sc, &s), TN_OK);
        tn_session_destroy(&s);
        sc.n_ctx++;
        TEST_CHECK(n_events == 0);
        TEST_CHECK_STATUS(tn_session_create(model, &sc, &s), strict ? TN_ERR_UNSUPPORTED : TN_OK);
        TEST_CHECK(n_events == !strict);
        tn_session_destroy(&s);
        sc.n_ctx_seq = sc.n_ctx - 1; // shared by sequences that each stay within it
        TEST_CHECK_STATUS(tn_session_create(model, &sc, &s), TN_OK);
        TEST_CHECK(n_events == !strict);
        tn_session_destroy(&s);
        tn_model_unref(&model);
        tn_context_destroy(&c);
    }
}

// --- conversations -----------------------------------------------------------------------------------

enum { TURNS = 200, CHAT_CTX = 512, ANSWER = 40 };

static void add(tn_turn *turns, size_t *n, const char *role, const char *text)
{
    turns[(*n)++] = (tn_turn){.struct_size = sizeof *turns, .role = role, .content = text};
}

// One exchange; the answer is one more turn. *n_left_out grows with the turns that no longer fit.
static bool talk(tn_model *model, tn_session *s, tn_turn *turns, size_t *n, size_t *n_left_out, char *answer)
{
    tn_turn *shown = calloc(*n, sizeof *shown);
    int32_t *ids = NULL;
    size_t n_ids = 0, n_dropped = 99, n_text = 0, n_shown = *n - *n_left_out;
    if (!shown) abort();
    shown[0] = turns[0];
    memcpy(shown + 1, turns + 1 + *n_left_out, (n_shown - 1) * sizeof *shown);
    tn_status status =
        tn_chat_tokenize_last(model, shown, n_shown, NULL, CHAT_CTX - ANSWER, &n_dropped, &ids, &n_ids);
    free(shown);
    if (!TEST_CHECK_STATUS(status, TN_OK)) return false;
    TEST_CHECK(n_ids <= CHAT_CTX - ANSWER && n_dropped % 2 == 0);
    *n_left_out += n_dropped;
    tn_generation_config cfg;
    tn_generation_config_default(&cfg);
    cfg.max_tokens = ANSWER;
    tn_generation *g = NULL;
    tiny_must(tn_generation_create(s, &cfg, &g));
    tn_piece piece = {.struct_size = sizeof piece};
    status = tn_generation_start(g, ids, n_ids);
    while (status == TN_OK && piece.stop == TN_STOP_NONE) {
        status = tn_generation_step(g, &piece);
        if (status != TN_OK || n_text + piece.n_text > 2000) break;
        if (piece.n_text) memcpy(answer + n_text, piece.text, piece.n_text);
        n_text += piece.n_text;
    }
    answer[n_text] = 0;
    bool ok = TEST_CHECK_STATUS(status, TN_OK) && TEST_CHECK(piece.stop != TN_STOP_CONTEXT);
    tn_generation_destroy(&g);
    tn_tokens_free(model, ids);
    add(turns, n, "assistant", answer);
    return ok;
}

static void test_talk(tn_model *model)
{
    static tn_turn turns[2 * TURNS + 1];
    static char questions[TURNS][64], answers[TURNS][2048];
    size_t n = 0, n_left_out = 0;
    tn_session *s = make_session(model, CHAT_CTX, 1, TN_TYPE_F16);
    add(turns, &n, "system", "You are kind.");
    int32_t i = 0;
    for (bool ok = true; i < TURNS && ok; i++) {
        snprintf(questions[i], sizeof *questions, "What comes after the number %d?", (int)i);
        add(turns, &n, "user", questions[i]);
        ok = talk(model, s, turns, &n, &n_left_out, answers[i]);
    }
    TEST_CHECK(i == TURNS && n_left_out > TURNS && n_left_out < 2 * TURNS - 2);
    printf("%d turns, of which %zu were left out\n", (int)n, n_left_out);
    tn_session_destroy(&s);
}

static size_t tokens_of(tn_model *model, const tn_turn *turns, size_t n)
{
    int32_t *ids = NULL;
    size_t n_ids = 0;
    tiny_must(tn_chat_tokenize(model, turns, n, NULL, &ids, &n_ids));
    tn_tokens_free(model, ids);
    return n_ids;
}

// Each number of tokens: what is left out are the oldest exchanges and no more than needed.
static void test_dropping(tn_model *model)
{
    tn_turn turns[10];
    size_t n = 0;
    add(turns, &n, "system", "Be brief.");
    add(turns, &n, "user", "one");
    add(turns, &n, "assistant", "two");
    add(turns, &n, "user", "three and more of it");
    add(turns, &n, "assistant", "four");
    add(turns, &n, "assistant", "five");
    add(turns, &n, "user", "six");
    size_t all = tokens_of(model, turns, n);
    static const size_t starts[] = {1, 3, 6}; // of the exchanges
    for (size_t most = 1; most <= all + 1; most++) {
        int32_t *ids = NULL;
        size_t n_ids = 0, dropped = 99, want = 0;
        tn_turn left[10] = {turns[0]};
        bool fits = false;
        for (size_t k = 0; k < 3 && !fits; k++) {
            memcpy(left + 1, turns + starts[k], (n - starts[k]) * sizeof *left);
            want = tokens_of(model, left, n - starts[k] + 1);
            fits = want <= (k == 1 ? most / 4 * 3 : most);
            if (fits) want = starts[k] - 1;
        }
        tn_status status = tn_chat_tokenize_last(model, turns, n, NULL, most, &dropped, &ids, &n_ids);
        TEST_CHECK_STATUS(status, fits ? TN_OK : TN_ERR_CONTEXT_FULL);
        if (fits) TEST_CHECK(dropped == want && n_ids <= most);
        if (!fits) TEST_CHECK(dropped == 99 && !ids);
        tn_tokens_free(model, ids);
    }
    long live = count.live, k = 0;
    for (tn_status status = TN_ERR_MEMORY; status != TN_OK && k < 100000; k++) {
        int32_t *ids = NULL;
        size_t n_ids, dropped;
        count.fail_from = count.calls + k;
        count.fail_to = count.fail_from + 1;
        status = tn_chat_tokenize_last(model, turns, n, NULL, all - 1, &dropped, &ids, &n_ids);
        count.fail_from = count.fail_to = 0;
        TEST_CHECK(status == TN_OK || status == TN_ERR_MEMORY);
        tn_tokens_free(model, ids);
        TEST_CHECK(count.live == live);
    }
    TEST_CHECK(k > 10 && k < 100000);
}

int main(int argc, char **argv)
{
    char path[1024];
    tn_model *model = NULL;
    ctx = counting_context(&count);
    test_shifts();
    test_long_prompts();
    test_refused();
    test_training();
    snprintf(path, sizeof path, "%s/tenon-tiny.gguf", argc > 1 ? argv[1] : ".");
    tiny_must(tn_model_open(ctx, path, NULL, &model));
    test_dropping(model);
    test_talk(model);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
