// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A session that follows a script, in place of the real one: its model, its functions, and what tests of
// generations do with it. Include it once in a program.
#ifndef TN_TESTS_UNIT_SCRIPT_SESSION_H
#define TN_TESTS_UNIT_SCRIPT_SESSION_H

#include "models/model.h"
#include "models/run/sample.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

#include <tenon/session.h>

enum { SCRIPT_MAX = 320, VOCAB_MAX = 600, BOS = 1, EOS = 2 };

static counting allocs;
static tn_context *ctx;

// --- the doubles -------------------------------------------------------------------------------------

// The next token of the script gets the highest logit whenever tokens were fed.
static struct {
    tn_model model;
    int32_t n_ctx, n_vocab, length, n_script, script_pos, fed[SCRIPT_MAX];
    int32_t script[SCRIPT_MAX];
    tn_status fail_with; // of the feed with number fail_at
    int32_t n_feeds, fail_at;
    float logits[VOCAB_MAX];
    bool no_logits;
} fake;
static tn_session *const session = (tn_session *)&fake;

tn_model *tn_session_model(const struct tn_session *s)
{
    TN_UNUSED(s);
    return &fake.model;
}

tn_context *tn_model_context(const tn_model *m)
{
    TN_UNUSED(m);
    return ctx;
}

const tn_gguf *tn_model_gguf(const tn_model *m)
{
    return m->gguf;
}

const tn_tokenizer *tn_model_tokenizer(const tn_model *m)
{
    return m->tokenizer;
}

tn_status tn_model_info_get(const tn_model *model, tn_model_info *info)
{
    TN_UNUSED(model);
    *info = (tn_model_info){.n_vocab = fake.n_vocab};
    return TN_OK;
}

int32_t tn_session_result(const tn_session *s)
{
    TN_UNUSED(s);
    return TN_RESULT_LOGITS;
}

int32_t tn_session_n_ctx_seq(const tn_session *s)
{
    TN_UNUSED(s);
    return fake.n_ctx;
}

int32_t tn_session_length(const tn_session *s, int32_t seq)
{
    TN_UNUSED(s);
    return seq == 0 ? fake.length : -1;
}

tn_status tn_session_feed(tn_session *s, int32_t seq, const int32_t *tokens, int32_t n)
{
    TN_UNUSED(s);
    if (seq != 0) return TN_ERR_ARG;
    if (fake.n_feeds++ == fake.fail_at) return fake.fail_with;
    if (n > fake.n_ctx - fake.length) return TN_ERR_CONTEXT_FULL;
    memcpy(fake.fed + fake.length, tokens, (size_t)n * sizeof *tokens);
    fake.length += n;
    for (int32_t i = 0; i < fake.n_vocab; i++) fake.logits[i] = 0;
    if (fake.script_pos < fake.n_script) fake.logits[fake.script[fake.script_pos++]] = 50;
    return TN_OK;
}

int32_t tn_session_n_seq(const struct tn_session *s)
{
    (void)s;
    return 1;
}

bool tn_session_fits(const struct tn_session *s, int32_t seq, const int32_t *tokens, int32_t n, bool reuse)
{
    (void)tokens;
    return n <= tn_session_n_ctx_seq(s) - (reuse ? 0 : tn_session_length(s, seq));
}

tn_status tn_session_reuse(tn_session *s, int32_t seq, const int32_t *tokens, int32_t n, int32_t *n_reused)
{
    TN_UNUSED(s);
    if (seq != 0) return TN_ERR_ARG;
    *n_reused = 0;
    while (*n_reused < TN_MIN(n, fake.length) && fake.fed[*n_reused] == tokens[*n_reused]) ++*n_reused;
    fake.length = *n_reused;
    return TN_OK;
}

// Asked for by speculation, which stays off here.
tn_status tn_session_eval(tn_session *s, const tn_feed *feeds, int32_t n_feeds)
{
    TN_UNUSED(n_feeds);
    return tn_session_feed(s, feeds->seq, feeds->tokens, feeds->n_tokens);
}

tn_status tn_session_truncate(tn_session *s, int32_t seq, int32_t n)
{
    TN_UNUSED(s);
    TN_UNUSED(seq);
    fake.length = n;
    return TN_OK;
}

int32_t tn_session_tokens(const tn_session *s, int32_t seq, int32_t first, int32_t *out, int32_t n)
{
    TN_UNUSED(s);
    TN_UNUSED(seq);
    memcpy(out, fake.fed + first, (size_t)n * sizeof *out);
    return n;
}

int32_t tn_session_rows_alike(const tn_session *s)
{
    TN_UNUSED(s);
    return 0;
}

tn_status tn_session_prepare_rows(struct tn_session *s, int32_t n)
{
    TN_UNUSED(s);
    TN_UNUSED(n);
    return TN_OK;
}

bool tn_session_cancelled(const struct tn_session *s)
{
    TN_UNUSED(s);
    return false;
}

bool tn_session_has_states(const struct tn_session *s)
{
    TN_UNUSED(s);
    return false;
}

int32_t tn_session_n_batch(const tn_session *s)
{
    TN_UNUSED(s);
    return fake.n_ctx;
}

const float *tn_session_logits(tn_session *s, int32_t i)
{
    TN_UNUSED(s);
    return i == 0 && !fake.no_logits ? fake.logits : NULL;
}

tn_status tn_session_row(tn_session *s, int32_t row, const float **out)
{
    *out = tn_session_logits(s, row);
    return *out ? TN_OK : TN_ERR_STATE;
}

// Nothing is sampled on a device.
tn_session_sampling *tn_session_sampling_get(tn_session *s)
{
    TN_UNUSED(s);
    return NULL;
}

bool tn_session_samples(const tn_session *s)
{
    TN_UNUSED(s);
    return false;
}

const tn_sample_result *tn_session_sampled(const tn_session *s, int32_t row)
{
    TN_UNUSED(s);
    TN_UNUSED(row);
    return NULL;
}

bool tn_session_has_best(const tn_session *s)
{
    TN_UNUSED(s);
    return false;
}

tn_status tn_session_best(tn_session *s, int32_t i, int32_t *token, float *logprob)
{
    TN_UNUSED(s);
    TN_UNUSED(i);
    TN_UNUSED(token);
    TN_UNUSED(logprob);
    return TN_ERR_STATE;
}

// --- helpers -----------------------------------------------------------------------------------------

static int32_t id_of(const char *text, size_t n)
{
    int32_t id = tn_tokenizer_find(fake.model.tokenizer, text, n);
    if (id < 0) abort();
    return id;
}

// Empties the session; the script is token texts separated by blanks.
static inline void restart(const char *script)
{
    fake.length = fake.script_pos = fake.n_script = fake.n_feeds = 0;
    fake.fail_at = -1;
    fake.n_ctx = 100;
    fake.n_vocab = tn_tokenizer_n_tokens(fake.model.tokenizer);
    while (*script) {
        size_t n = strcspn(script, " ");
        fake.script[fake.n_script++] = id_of(script, n);
        script += n + (script[n] == ' ');
    }
}

static inline tn_generation *make(const tn_generation_config *cfg)
{
    tn_generation *g = NULL;
    if (!TEST_CHECK_STATUS(tn_generation_create(session, cfg, &g), TN_OK)) abort();
    return g;
}

// That of the last config().
static tn_sampling sampling;

static inline tn_generation_config config(int32_t n_stops, const char *const *stops)
{
    tn_generation_config cfg;
    tn_generation_config_default(&cfg);
    tn_sampling_default(&sampling);
    cfg.sampling = &sampling;
    sampling.temperature = 0;
    cfg.stops = stops;
    cfg.n_stops = n_stops;
    return cfg;
}

static inline bool message_has(const char *text)
{
    char message[1024];
    tn_context_error(ctx, message, sizeof message);
    bool found = strstr(message, text) != NULL;
    if (!found) printf("    message: %s\n", message);
    return found;
}

// Steps until it stops; the texts of the pieces separated by "|" go to `out`.
static int32_t run(tn_generation *g, char *out, size_t size)
{
    size_t used = 0;
    tn_piece piece = {.struct_size = sizeof piece};
    out[0] = 0;
    for (int32_t i = 0; i < SCRIPT_MAX; i++) {
        if (!TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK)) return -1;
        if (used + piece.n_text + 2 > size) abort();
        if (i > 0) out[used++] = '|';
        memcpy(out + used, piece.text, piece.n_text);
        used += piece.n_text;
        out[used] = 0;
        if (piece.stop != TN_STOP_NONE) break;
    }
    return piece.stop;
}

static inline void expect_run(int line, tn_generation *g, const char *want, int32_t want_stop)
{
    char got[1024];
    int32_t stop = run(g, got, sizeof got);
    bool ok = strcmp(got, want) == 0 && stop == want_stop;
    if (!test_report(ok, __FILE__, line, want)) printf("    got '%s', stop %d\n", got, (int)stop);
}
#define RUN(g, want, stop) expect_run(__LINE__, (g), (want), (stop))

// A whole generation: prompt of the beginning-of-text token, then the script.
static inline void expect_all(int line, const tn_generation_config *cfg, const char *script, const char *want,
                              int32_t stop)
{
    restart(script);
    tn_generation *g = make(cfg);
    TEST_CHECK_STATUS(tn_generation_prompt(g, (int32_t[]){BOS}, 1), TN_OK);
    uint64_t before = tn_context_n_allocs(ctx);
    expect_run(line, g, want, stop);
    TEST_CHECK(tn_context_n_allocs(ctx) == before);
    tn_generation_destroy(&g);
    TEST_CHECK(g == NULL);
}
#define ALL(cfg, script, want, stop) expect_all(__LINE__, (cfg), (script), (want), (stop))

#endif
