// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/speculate.h"

#include "models/model.h"

#include <math.h>
#include <string.h>

enum {
    NGRAM_MAX = 16,
    MAX_DEFAULT = 5,  // guesses on devices whose rows_alike promises nothing
    PROBE_EVERY = 16, // if the smaller model is mostly wrong, one token is guessed once in so many steps
    START_WEIGHT = 3, // the first estimate of a probability weighs as much as 3 outcomes
    SEEN_MAX = 7,     // outcomes that are averaged besides; from then on a new one has the weight 1/10
};

// A further token is guessed while the probability that it and all guesses before it are right is at least
// this. One more row of a verifying pass costs 0.05 (large models, bound by memory) to 0.24 (7 MB, in the
// cache) of a pass, so with less probability it gains nothing. Models with recurrent states evaluate the
// tokens before a wrong guess once more.
static const double likely_enough = 0.25, likely_enough_recurrent = 0.6;

struct tn_speculation {
    tn_context *ctx;
    tn_session *session, *draft; // draft NULL: guesses come from the text
    int32_t seq;
    int32_t ngram, max, min;
    int32_t *tokens; // [capacity]
    int32_t n, capacity;
    double enough;  // see likely_enough
    int32_t n_same; // tokens that the draft's sequence shares with this one
    // Estimated probability that a guess is right, by the number of tokens that matched, and its number of
    // outcomes; [0]: of the smaller model.
    double right[NGRAM_MAX + 1];
    int32_t n_seen[NGRAM_MAX + 1];
    uint32_t n_waits;
};

// --- creation ------------------------------------------------------------------------------------------

static tn_status check_vocabulary(tn_context *ctx, const tn_model *a, const tn_model *b)
{
    const tn_tokenizer *x = tn_model_tokenizer(a), *y = tn_model_tokenizer(b);
    if (!x || !y) {
        if (!x && !y && a->config.n_vocab == b->config.n_vocab) return TN_OK;
        return tn_fail(ctx, TN_ERR_MODEL,
                       "draft model: its vocabulary cannot be compared: a tokenizer is missing");
    }
    int32_t n = tn_tokenizer_n_tokens(x), m = tn_tokenizer_n_tokens(y);
    if (n != m)
        return tn_fail(ctx, TN_ERR_MODEL,
                       "draft model: it has %d tokens, the model %d; both must have the same vocabulary", m,
                       n);
    for (int32_t i = 0; i < n; i++) {
        tn_gguf_str s = tn_tokenizer_text(x, i), t = tn_tokenizer_text(y, i);
        if (s.size != t.size || memcmp(s.data, t.data, s.size) != 0)
            return tn_fail(
                ctx, TN_ERR_MODEL,
                "draft model: token %d is another one than in the model; both must have the same vocabulary",
                i);
    }
    return TN_OK;
}

static tn_status check_draft(tn_context *ctx, tn_session *session, tn_session *draft)
{
    const tn_model *model = tn_session_model(session), *other = tn_session_model(draft);
    if (draft == session) return tn_fail(ctx, TN_ERR_ARG, "draft: it is the session itself");
    if (tn_model_context(other) != ctx)
        return tn_fail(ctx, TN_ERR_ARG, "draft: its model belongs to another context");
    return check_vocabulary(ctx, model, other);
}

// As many rows as have the same bits as alone (rows_alike), one of them for the token before the guess.
static int32_t most_guesses(tn_session *session, int32_t asked)
{
    int32_t alike = tn_session_rows_alike(session), most = asked > 0   ? asked
                                                           : alike > 1 ? alike - 1
                                                                       : MAX_DEFAULT;
    return TN_MIN(most, tn_session_n_batch(session) - 1);
}

tn_status tn_speculation_create(tn_session *session, const tn_generation_config *cfg, tn_speculation **out)
{
    tn_context *ctx = tn_model_context(tn_session_model(session));
    *out = NULL;
    if (cfg->spec_ngram == 0 && !cfg->draft) return TN_OK;
    int32_t max = most_guesses(session, cfg->draft_max);
    if (cfg->draft_min > max)
        return tn_fail(ctx, TN_ERR_ARG, "generation: draft_min is %d, but at most %d tokens are guessed",
                       cfg->draft_min, max);
    tn_status status = cfg->draft ? check_draft(ctx, session, cfg->draft) : TN_OK;
    if (status == TN_OK) status = tn_session_prepare_rows(session, max + 1);
    if (status != TN_OK) return status;
    tn_speculation *s = tn_calloc(ctx, 1, sizeof *s);
    if (!s) return TN_ERR_MEMORY;
    *s = (tn_speculation){
        .ctx = ctx, .session = session, .draft = cfg->draft, .seq = cfg->seq, .ngram = cfg->spec_ngram};
    s->max = max;
    s->enough = tn_session_has_states(session) ? likely_enough_recurrent : likely_enough;
    s->min = TN_MAX(cfg->draft_min, 1);
    s->capacity = tn_session_n_ctx_seq(session) + 1; // one token is chosen, but not evaluated
    s->tokens = tn_calloc(ctx, (size_t)s->capacity, sizeof *s->tokens);
    if (!s->tokens) {
        tn_speculation_destroy(&s);
        return TN_ERR_MEMORY;
    }
    // A match of one or two tokens is weak evidence: it is not used until such matches have been right
    // before.
    static const double start[] = {0.7, 0.15, 0.2, 0.5};
    for (int32_t i = 0; i <= NGRAM_MAX; i++) s->right[i] = i < (int32_t)TN_COUNT(start) ? start[i] : 0.65;
    *out = s;
    return TN_OK;
}

void tn_speculation_destroy(tn_speculation **s)
{
    if (!*s) return;
    tn_free((*s)->ctx, (*s)->tokens);
    tn_free((*s)->ctx, *s);
    *s = NULL;
}

int32_t tn_speculation_max(const tn_speculation *s)
{
    return s->max;
}

// --- guesses -----------------------------------------------------------------------------------------------

// The number of tokens worth guessing if each is right with this probability.
static int32_t worth(double right, double enough, int32_t capacity)
{
    int32_t n = 0;
    for (double p = right; n < capacity && p >= enough; p *= right) n++;
    return n;
}

static int32_t common_end(const int32_t *tokens, int32_t a, int32_t b, int32_t most)
{
    int32_t n = 0;
    while (n < most && n <= a && tokens[a - n] == tokens[b - n]) n++;
    return n;
}

// The last earlier occurrence of the longest run of tokens that ends the text, with s->ngram tokens at most.
static int32_t find_before(const tn_speculation *s, int32_t *length)
{
    const int32_t *t = s->tokens;
    int32_t last = s->n - 1, at = -1;
    *length = 0;
    for (int32_t i = last - 1; i >= 0 && *length < s->ngram; i--) {
        if (t[i] != t[last]) continue;
        int32_t n = common_end(t, i, last, s->ngram);
        if (n > *length) *length = n, at = i;
    }
    return at;
}

static int32_t guess_from_text(const tn_speculation *s, int32_t capacity, int32_t *out)
{
    int32_t length, at = find_before(s, &length);
    if (at < 0) return 0;
    int32_t n = worth(s->right[length], s->enough, capacity);
    // Beyond the end of the text the guess continues with its own tokens: a loop repeats.
    for (int32_t i = 0; i < n; i++) {
        int32_t from = at + 1 + i;
        out[i] = from < s->n ? s->tokens[from] : out[from - s->n];
    }
    return n;
}

// A mean at first, later a moving average in which recent outcomes weigh more.
static void learn(tn_speculation *s, int32_t row, bool right)
{
    s->n_seen[row] = TN_MIN(s->n_seen[row] + 1, SEEN_MAX);
    s->right[row] += ((right ? 1.0 : 0.0) - s->right[row]) / (START_WEIGHT + s->n_seen[row]);
}

// Makes the draft session hold the sequence without its last token. Only the main session is cancelled by
// callers, so the draft session polls the cancel flag of that one.
static tn_status draft_follow(tn_speculation *s)
{
    tn_session *d = s->draft;
    int32_t held = tn_session_length(d, 0), token;
    // The tokens that it guessed may have been right; only they have to be compared.
    s->n_same = TN_MIN(s->n_same, held);
    while (s->n_same < TN_MIN(held, s->n - 1) && tn_session_tokens(d, 0, s->n_same, &token, 1) == 1 &&
           token == s->tokens[s->n_same])
        s->n_same++;
    tn_status status = tn_session_truncate(d, 0, TN_MIN(s->n_same, s->n - 1));
    s->n_same = tn_session_length(d, 0);
    while (status == TN_OK && s->n_same < s->n - 1 && !tn_session_cancelled(s->session)) {
        int32_t n = TN_MIN(s->n - 1 - s->n_same, tn_session_n_batch(d));
        status = tn_session_feed(d, 0, s->tokens + s->n_same, n);
        s->n_same = tn_session_length(d, 0);
    }
    return status;
}

static tn_status guess_with_model(tn_speculation *s, int32_t capacity, int32_t *out, int32_t *n)
{
    capacity = TN_MIN(capacity, tn_session_n_ctx_seq(s->draft) - s->n);
    int32_t most = capacity > 0 ? worth(s->right[0], s->enough, capacity) : 0, token = s->tokens[s->n - 1],
            vocab = tn_session_model(s->draft)->config.n_vocab;
    // If no guess is likely to be right, one token is still guessed now and then: the text may have changed.
    if (capacity > 0 && most == 0 && ++s->n_waits % PROBE_EVERY == 0) most = 1;
    if (most == 0) return TN_OK;
    tn_status status = draft_follow(s);
    if (status != TN_OK || s->n_same < s->n - 1) return status;
    double likely = 1;
    while (status == TN_OK && *n < most) {
        float logprob = 0;
        status = tn_session_feed(s->draft, 0, &token, 1);
        if (status == TN_OK) status = tn_session_best(s->draft, 0, &token, &logprob);
        likely *= exp((double)logprob);
        // A guess ends where the smaller model itself is unsure, besides the estimate from outcomes, unless
        // it is nearly always right.
        bool doubts = *n > 0 && likely < s->enough && s->right[0] < 0.9;
        if (status != TN_OK || doubts || token >= vocab) break;
        out[(*n)++] = token;
    }
    return status;
}

tn_status tn_speculation_guess(tn_speculation *s, int32_t capacity, int32_t *out, int32_t *n)
{
    tn_status status = TN_OK;
    *n = 0;
    capacity = TN_MIN(capacity, s->max);
    if (capacity < s->min || s->n < 2 || s->n > s->capacity) return TN_OK;
    if (s->draft)
        status = guess_with_model(s, capacity, out, n);
    else
        *n = guess_from_text(s, capacity, out);
    if (*n < s->min) *n = 0;
    return status;
}

// Guesses from the text are compared when their tokens come (tn_speculation_push).
void tn_speculation_learn(tn_speculation *s, int32_t n_right, bool wrong)
{
    if (!s->draft) return;
    for (int32_t i = 0; i < n_right; i++) learn(s, 0, true);
    if (wrong) learn(s, 0, false);
}

// --- the sequence ----------------------------------------------------------------------------------------

void tn_speculation_push(tn_speculation *s, int32_t token)
{
    // The token that the text suggested for this place is compared even if it was not guessed. That costs no
    // pass, and lets guessing stop when the text stops repeating itself, and begin again when it does.
    int32_t length, at = s->draft || s->n < 2 || s->n >= s->capacity ? -1 : find_before(s, &length);
    if (at >= 0) learn(s, length, s->tokens[at + 1] == token);
    if (s->n < s->capacity) s->tokens[s->n] = token;
    s->n++;
}

void tn_speculation_reset(tn_speculation *s)
{
    s->n = s->n_same = 0;
}

void tn_speculation_follow(tn_speculation *s, int32_t n)
{
    s->n = TN_MIN(s->n, n);
    s->n_same = TN_MIN(s->n_same, s->n);
    s->n += tn_session_tokens(s->session, s->seq, s->n, s->tokens + s->n, n - s->n);
}
