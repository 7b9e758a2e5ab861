// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Generating text: one token per step. Its bytes are searched for stop strings and cut to complete UTF-8
// characters before the caller gets them. The chosen token is evaluated at the next step, so that the last
// one costs nothing; the sequence is therefore one token shorter than the chosen tokens.
#include "models/run/generation.h"

#include "models/model.h"
#include "models/run/sample.h"

#include <string.h>

enum { RETURNS_MAX = 10000 };

tn_status tn_generation_stats_get(const tn_generation *g, tn_generation_stats *out)
{
    TN_NEED(NULL, g);
    return TN_STRUCT_WRITE(g->ctx, tn_generation_stats, out, &g->stats);
}

// --- guesses -----------------------------------------------------------------------------------------

// Guesses at the end of the sequence that are not accepted yet. With another length the caller has changed
// the sequence in the meantime, and they are no part of it.
static int32_t guesses_left(const tn_generation *g)
{
    bool there = g->n_guesses > 0 && tn_session_length(g->session, g->cfg.seq) == g->guessed_length;
    return there ? g->n_guesses - g->row : 0;
}

// Number of tokens in the sequence, without guesses that were not accepted yet, and without a token that it
// holds ahead of its step.
static int32_t held(const tn_generation *g)
{
    return tn_session_length(g->session, g->cfg.seq) - guesses_left(g) - g->ahead;
}

// Removes guesses that were not accepted from the sequence.
static tn_status drop_guesses(tn_generation *g)
{
    int32_t n = held(g), guesses = guesses_left(g);
    g->n_guesses = g->n_rows = 0;
    return guesses > 0 ? tn_session_truncate(g->session, g->cfg.seq, n) : TN_OK;
}

// The last pass evaluated guesses: if the token is the next of them, its row of logits exists; else the
// guesses are wrong.
static tn_status compare_guess(tn_generation *g, int32_t token)
{
    if (g->n_guesses == 0) {
        g->n_rows = 0;
        return TN_OK;
    }
    bool right = g->row < g->n_guesses && g->batch[g->row + 1] == token, last = g->row == g->n_guesses;
    if (right) g->stats.n_accepted++;
    if (right) return TN_OK;
    tn_speculation_learn(g->speculation, g->row, !last);
    return drop_guesses(g);
}

void tn_generation_destroy(tn_generation **generation)
{
    if (!generation || !*generation) return;
    tn_generation *g = *generation;
    tn_status status = drop_guesses(g); // a failure of the device is returned by the next call
    TN_UNUSED(status);
    tn_strbuf_fini(&g->text);
    tn_arena_fini(&g->arena);
    tn_free(g->ctx, g->logits);
    tn_sampler_destroy(&g->sampler);
    tn_speculation_destroy(&g->speculation);
    tn_constraint_fini(&g->constraint);
    tn_bans_destroy(&g->bans);
    tn_strbuf_fini(&g->ban_piece);
    tn_free(g->ctx, g);
    *generation = NULL;
}

// --- prompt ------------------------------------------------------------------------------------------

static tn_status check_prompt(tn_generation *g, const int32_t *ids, size_t n, int32_t length)
{
    if (n > 0 && !ids) return tn_fail(g->ctx, TN_ERR_ARG, "generation: %zu prompt tokens at NULL", n);
    if (n == 0 && length == 0)
        return tn_fail(g->ctx, TN_ERR_ARG,
                       "generation: the prompt is empty and the sequence holds nothing; "
                       "start with at least one token, such as the beginning-of-text token");
    size_t capacity = (size_t)TN_MAX(g->n_ctx - length, 0);
    if (n > capacity && !g->shift.kept)
        return tn_fail(g->ctx, TN_ERR_CONTEXT_FULL,
                       "generation: a prompt of %zu tokens, but of the context of "
                       "%d tokens %d are in use and %zu free",
                       n, (int)g->n_ctx, (int)length, capacity);
    if (n > INT32_MAX / 2) return tn_fail(g->ctx, TN_ERR_ARG, "generation: a prompt of %zu tokens", n);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= g->n_vocab)
            return tn_fail(g->ctx, TN_ERR_ARG,
                           "generation: token %d of the prompt is outside the vocabulary of %d", (int)ids[i],
                           (int)g->n_vocab);
    return TN_OK;
}

// Whether only the beginning-of-text token comes before the first generated token; its leading space is then
// dropped. A grammar describes the whole text, so with a grammar nothing is dropped.
static bool starts_text(const tn_generation *g, const int32_t *ids, size_t n, int32_t length)
{
    if (!g->tokenizer || g->constraint.matcher || !tn_tokenizer_add_space_prefix(g->tokenizer) || length > 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (ids[i] != tn_tokenizer_special(g->tokenizer, TN_SPECIAL_BOS)) return false;
    return true;
}

// Reuses the longest prefix of the prompt that the session holds, without its last token, whose logits are
// needed.
static tn_status reuse_prompt(tn_generation *g, const int32_t *ids, size_t n, int32_t *n_reused)
{
    tn_status status = tn_session_reuse(g->session, g->cfg.seq, ids, (int32_t)n - 1, n_reused);
    if (status != TN_OK) return status;
    tn_sampler_set_length(g->sampler, 0);
    for (int32_t i = 0; i < *n_reused; i++) tn_sampler_push(g->sampler, ids[i]);
    return TN_OK;
}

// Appends the prompt to the sequence, in place of a token that was chosen but never evaluated.
static tn_status feed_prompt(tn_generation *g, const int32_t *ids, size_t n, int32_t length)
{
    g->pending = -1;
    tn_sampler_set_length(g->sampler, length);
    tn_status status = tn_session_feed(g->session, g->cfg.seq, ids, (int32_t)n);
    int32_t fed = tn_session_length(g->session, g->cfg.seq) - length; // fewer than n if it failed
    for (int32_t i = 0; i < fed; i++) tn_sampler_push(g->sampler, ids[i]);
    g->stats.n_prompt = TN_MAX(fed, 0);
    return status;
}

// A row of the session's last pass.
static tn_status find_logits(const tn_generation *g, int32_t row, const float **out)
{
    tn_status status = tn_session_row(g->session, row, out);
    if (status != TN_ERR_STATE) return status;
    return tn_fail(g->ctx, status, "generation: the session has no logits to choose from");
}

// n rows of the session's last pass.
static tn_status keep_rows(tn_generation *g, int32_t first, int32_t n)
{
    tn_status status = TN_OK;
    g->rows_best = tn_sampler_is_greedy(g->sampler) && tn_session_has_best(g->session);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        const float *logits = NULL;
        if (g->rows_best)
            status = tn_session_best(g->session, first + i, &g->best[i], &g->best_logprob[i]);
        else
            status = find_logits(g, first + i, &logits);
        if (logits)
            memcpy(g->logits + (size_t)i * (size_t)g->n_vocab, logits, (size_t)g->n_vocab * sizeof *logits);
    }
    g->row = 0;
    g->n_rows = status == TN_OK ? n : 0;
    return status;
}

// The token before the text: of the prompt, or what the sequence ends with.
static int32_t token_before(const tn_generation *g, const int32_t *ids, size_t n, int32_t length)
{
    int32_t token = n > 0 ? ids[n - 1] : g->pending;
    if (token < 0) (void)tn_session_tokens(g->session, g->cfg.seq, length - 1, &token, 1);
    return token;
}

// A text begins with a prompt of n ids behind the `length` tokens that the sequence holds.
static void reset(tn_generation *g, const int32_t *ids, size_t n, int32_t length)
{
    g->stats = (tn_generation_stats){0};
    g->ready = false;
    g->n_rows = 0;
    g->session_row = 0;
    if (g->speculation) tn_speculation_reset(g->speculation);
    g->drop_space = starts_text(g, ids, n, length);
    g->n_released = 0;
    tn_strbuf_clear(&g->text);
    tn_stops_reset(&g->stops);
    if (n > 0) tn_sampler_mark_text(g->sampler, false);
    if (g->bans) tn_bans_begin(g->bans, token_before(g, ids, n, length));
    g->end = TN_STOP_NONE;
    g->n_returns = 0;
}

// Nothing is changed before everything that can be refused was checked.
static tn_status check_space(tn_generation *g, const int32_t *ids, size_t n, bool reuse)
{
    bool fits = n == 0 || tn_session_fits(g->session, g->cfg.seq, ids, (int32_t)n, reuse);
    return fits ? TN_OK
                : tn_fail(
                      g->ctx, TN_ERR_CONTEXT_FULL,
                      "generation: a prompt of %zu tokens, but other sequences hold the blocks of the cache",
                      n);
}

// reuse: the ids are the whole contents of the sequence; else they are appended.
static tn_status begin(tn_generation *g, const int32_t *ids, size_t n, bool reuse)
{
    uint64_t start = tn_time_ns();
    if (g->cfg.seq >= tn_session_n_seq(g->session))
        return tn_fail(g->ctx, TN_ERR_ARG, "generation: sequence %d, but the session has %d", g->cfg.seq,
                       tn_session_n_seq(g->session));
    int32_t length = held(g), n_reused = 0;
    tn_status status = drop_guesses(g);
    if (status == TN_OK) status = check_prompt(g, ids, n, reuse ? 0 : length);
    if (status != TN_OK) return status;
    g->shift.keep = g->cfg.n_keep >= 0 ? g->cfg.n_keep : (int32_t)n + (reuse ? 0 : length);
    int32_t n_dropped = tn_shift_prompt(&g->shift, g->session, g->cfg.seq, &ids, &n, &reuse);
    status = check_space(g, ids, n, reuse);
    if (status != TN_OK) return status;
    reset(g, ids, n, reuse ? 0 : length);
    if (reuse) {
        status = reuse_prompt(g, ids, n, &n_reused);
        length = n_reused;
    }
    if (status == TN_OK && n > 0) status = feed_prompt(g, ids + n_reused, n - (size_t)n_reused, length);
    if (n > 0) tn_sampler_mark_text(g->sampler, true);
    g->stats.n_reused = n_reused;
    g->stats.n_dropped = n_dropped;
    if (status == TN_OK && g->pending < 0) status = keep_rows(g, 0, 1);
    g->stats.prompt_ns = tn_time_ns() - start;
    g->ready = status == TN_OK;
    return status;
}

tn_status tn_generation_prompt(tn_generation *g, const int32_t *ids, size_t n)
{
    TN_NEED(NULL, g);
    if (n > 0) TN_NEED(g->ctx, ids);
    return begin(g, ids, n, false);
}

tn_status tn_generation_start(tn_generation *g, const int32_t *ids, size_t n)
{
    TN_NEED(NULL, g);
    if (n > 0) TN_NEED(g->ctx, ids);
    return begin(g, ids, n, true);
}

// --- ends ------------------------------------------------------------------------------------------

static bool at_limit(const tn_generation *g)
{
    return g->cfg.max_tokens >= 0 && g->stats.n_generated >= g->cfg.max_tokens;
}

// n_before: tokens of the text before this one.
static int32_t reason_to_stop(const tn_generation *g, int32_t token, int32_t n_before, bool string_found)
{
    bool ends = g->tokenizer && tn_tokenizer_is_eog(g->tokenizer, token);
    bool goes_on = g->cfg.ignore_end || n_before < g->cfg.min_tokens;
    if (ends && (!goes_on || g->constraint.matcher)) return TN_STOP_END;
    if (string_found) return TN_STOP_STRING;
    if (g->bans && tn_bans_held(g->bans) > 0) return TN_STOP_NONE;
    if (at_limit(g)) return TN_STOP_LIMIT;
    return held(g) >= g->n_ctx && !g->shift.kept ? TN_STOP_CONTEXT : TN_STOP_NONE;
}

// --- passes of others -------------------------------------------------------------------------------

tn_status tn_generation_attach(tn_generation *g, const int32_t *ids, int32_t n)
{
    tn_status status = check_prompt(g, ids, (size_t)n, 0);
    if (status == TN_OK && n < 1) status = tn_fail(g->ctx, TN_ERR_ARG, "generation: an empty prompt");
    if (status == TN_OK && (g->speculation || g->shift.kept))
        status = tn_fail(g->ctx, TN_ERR_UNSUPPORTED,
                         "generation: speculation or a shift of the context in a pass of others");
    if (status != TN_OK) return status;
    reset(g, ids, (size_t)n, 0);
    g->pending = -1;
    tn_sampler_set_length(g->sampler, 0);
    for (int32_t i = 0; i < n; i++) tn_sampler_push(g->sampler, ids[i]);
    tn_sampler_mark_text(g->sampler, true);
    g->stats.n_prompt = n;
    return TN_OK;
}

void tn_generation_set_sequence(tn_generation *g, int32_t seq)
{
    g->cfg.seq = seq;
}

int32_t tn_generation_pending(const tn_generation *g)
{
    return g->pending;
}

tn_status tn_generation_evaluated(tn_generation *g, int32_t row)
{
    g->pending = -1;
    g->ahead = false;
    g->session_row = row;
    g->n_rows = 0;
    g->ready = true;
    // Going back from a banned text takes passes of its own, which would replace the rows of the others.
    return g->bans ? keep_rows(g, row, 1) : TN_OK;
}

bool tn_generation_peek(const tn_generation *g, int32_t *token)
{
    const tn_sample_result *sampled = tn_session_sampled(g->session, g->session_row);
    bool best = tn_sampler_is_greedy(g->sampler) && tn_session_has_best(g->session);
    if (g->bans || g->row < g->n_rows || (!best && !sampled)) return false;
    if (best && tn_session_best(g->session, g->session_row, token, NULL) != TN_OK) return false;
    if (!best) *token = sampled->token;
    bool last = g->cfg.max_tokens >= 0 && g->stats.n_generated + 1 >= g->cfg.max_tokens;
    if (*token >= 0 && (last || reason_to_stop(g, *token, g->stats.n_generated, false) != TN_STOP_NONE))
        *token = -1;
    return true;
}

void tn_generation_set_ahead(tn_generation *g, bool ahead)
{
    g->ahead = ahead;
}

int32_t tn_generation_length(const tn_generation *g)
{
    return held(g);
}

bool tn_generation_evaluates(const tn_generation *g)
{
    return g->bans != NULL;
}

void tn_generation_describe(tn_generation *g, int32_t row, bool *masked)
{
    tn_session_sampling *p = tn_session_sampling_get(g->session);
    *masked = false;
    if (!g->fits_device || tn_sampler_is_greedy(g->sampler) || row >= p->n_rows) return;
    if (!tn_sampler_describe(g->sampler, &p->rows[row], p->edits + p->n_edits, p->max_edits - p->n_edits))
        return;
    p->rows[row].first_edit = p->n_edits;
    p->n_edits += p->rows[row].n_edits;
    *masked = tn_sampler_masks(g->sampler);
    if (*masked) p->rows[row].mask = p->n_masks++;
}

void tn_generation_mask(tn_generation *g, int32_t row)
{
    tn_session_sampling *p = tn_session_sampling_get(g->session);
    uint32_t *words = p->masks + (size_t)p->rows[row].mask * (size_t)p->mask_words;
    // Without a mask the host selects, and reports what was wrong.
    if (tn_sampler_mask(g->sampler, words) != TN_OK) p->rows[row].kind = TN_SAMPLE_NONE;
}

int32_t tn_generation_row(const tn_generation *g)
{
    return g->session_row;
}

bool tn_generation_reads_logits(const tn_generation *g)
{
    if (tn_session_sampled(g->session, g->session_row)) return false;
    return !tn_sampler_is_greedy(g->sampler) || !tn_session_has_best(g->session);
}

// --- step --------------------------------------------------------------------------------------------

static void describe_own(void *user)
{
    tn_generation *g = user;
    bool masked;
    tn_sampler_set_length(g->sampler, held(g));
    tn_generation_describe(g, 0, &masked);
    if (masked) tn_generation_mask(g, 0);
}

// A pass of the pending token alone, from whose logits the device selects if it can.
static tn_status feed_one(tn_generation *g)
{
    tn_session_sampling *p = g->samples ? tn_session_sampling_get(g->session) : NULL;
    if (p) p->describe = describe_own, p->user = g;
    tn_status status = tn_session_feed(g->session, g->cfg.seq, &g->pending, 1);
    if (p) p->describe = NULL;
    return status;
}

// As many guesses as can still become part of the text.
static tn_status feed_pending(tn_generation *g)
{
    int32_t n = 0, capacity = g->n_ctx - held(g) - 1;
    if (g->cfg.max_tokens >= 0) capacity = TN_MIN(capacity, g->cfg.max_tokens - g->stats.n_generated - 1);
    tn_status status =
        g->speculation ? tn_speculation_guess(g->speculation, capacity, g->batch + 1, &n) : TN_OK;
    if (status != TN_OK) return tn_fail_at(g->ctx, status, "draft model");
    if (n == 0) return feed_one(g);
    g->batch[0] = g->pending;
    tn_feed feed = {.struct_size = sizeof feed,
                    .seq = g->cfg.seq,
                    .n_tokens = n + 1,
                    .tokens = g->batch,
                    .outputs = TN_OUTPUT_ALL};
    status = tn_session_eval(g->session, &feed, 1);
    // Other sequences may use the blocks that guesses would need.
    if (status == TN_ERR_CONTEXT_FULL) return tn_session_feed(g->session, g->cfg.seq, &g->pending, 1);
    if (status == TN_OK) status = keep_rows(g, 0, n + 1);
    if (status != TN_OK) return status;
    g->n_guesses = n;
    g->guessed_length = tn_session_length(g->session, g->cfg.seq);
    g->stats.n_drafted += n;
    return TN_OK;
}

// Makes space in a full context for the pending token.
static tn_status shift(tn_generation *g)
{
    int32_t length = held(g), n = 0;
    tn_status status = drop_guesses(g);
    if (status == TN_OK) status = tn_shift_sequence(&g->shift, g->session, g->cfg.seq, &n);
    if (status != TN_OK) return status;
    g->n_rows = 0;
    tn_sampler_set_length(g->sampler, 0);
    for (int32_t i = 0; i < n; i++) tn_sampler_push(g->sampler, g->shift.kept[i]);
    tn_sampler_push(g->sampler, g->pending);
    if (g->speculation) tn_speculation_reset(g->speculation);
    g->n_dropped = length - n;
    g->stats.n_dropped += length - n;
    return TN_OK;
}

// Evaluates the token chosen last. Cancellation and a full cache set *stop.
static tn_status evaluate_pending(tn_generation *g, int32_t *stop)
{
    if (g->pending < 0) return TN_OK;
    g->session_row = 0;     // of the pass below
    if (g->n_guesses > 0) { // it was guessed, and evaluated with the tokens before it
        g->row++;
        g->pending = -1;
        return TN_OK;
    }
    tn_status status = g->shift.kept && held(g) >= g->n_ctx ? shift(g) : TN_OK;
    if (status == TN_OK) status = feed_pending(g);
    if (status == TN_ERR_CANCELLED || status == TN_ERR_CONTEXT_FULL) {
        *stop = status == TN_ERR_CANCELLED ? TN_STOP_CANCELLED : TN_STOP_CONTEXT;
        return TN_OK;
    }
    if (status == TN_OK) g->pending = -1;
    return status;
}

static tn_status choose_token(tn_generation *g, tn_piece *piece)
{
    bool kept = g->row < g->n_rows;
    if (kept && g->rows_best) {
        piece->token = g->best[g->row];
        piece->logprob = g->best_logprob[g->row];
        return TN_OK;
    }
    if (!kept && tn_sampler_is_greedy(g->sampler) && tn_session_has_best(g->session))
        return tn_session_best(g->session, g->session_row, &piece->token, &piece->logprob);
    const tn_sample_result *sampled = kept ? NULL : tn_session_sampled(g->session, g->session_row);
    if (sampled) {
        tn_status status = tn_sampler_chosen(g->sampler, sampled, &piece->token, &piece->logprob);
        if (status == TN_OK) piece->logprobs = tn_sampler_logprobs(g->sampler, &piece->n_logprobs);
        return status;
    }
    const float *logits = kept ? g->logits + (size_t)g->row * (size_t)g->n_vocab : NULL;
    tn_status status = kept ? TN_OK : find_logits(g, g->session_row, &logits);
    if (status == TN_OK) status = tn_sampler_choose(g->sampler, logits, &piece->token, &piece->logprob);
    if (status == TN_OK) piece->logprobs = tn_sampler_logprobs(g->sampler, &piece->n_logprobs);
    return status;
}

static tn_status choose(tn_generation *g, tn_piece *piece)
{
    int32_t length = held(g);
    uint64_t begin = tn_span_begin(g->ctx);
    tn_sampler_set_length(g->sampler, length);
    tn_status status = choose_token(g, piece);
    tn_span_end(g->ctx, TN_SPAN_SAMPLE, "select a token", begin, 1);
    if (status != TN_OK) return status;
    if (piece->token < 0) {
        bool complete = g->constraint.matcher && tn_matcher_complete(g->constraint.matcher);
        piece->stop = complete ? TN_STOP_END : TN_STOP_BLOCKED;
        return TN_OK;
    }
    tn_sampler_push(g->sampler, piece->token);
    if (g->speculation) {
        tn_speculation_follow(g->speculation, length);
        tn_speculation_push(g->speculation, piece->token);
    }
    g->pending = piece->token;
    g->stats.n_generated++;
    return compare_guess(g, piece->token);
}

// Appends the bytes of the token to those held back. A model may have more outputs than its tokenizer has
// tokens.
static tn_status append_text(tn_generation *g, int32_t token)
{
    size_t start = g->text.size;
    if (!g->tokenizer || token >= tn_tokenizer_n_tokens(g->tokenizer)) return TN_OK;
    tn_status status = tn_tokenizer_piece(g->tokenizer, token, g->cfg.print_special != 0, &g->text);
    if (status != TN_OK || !g->drop_space || g->text.size == start) return status;
    g->drop_space = false;
    if (g->text.data[start] != ' ') return TN_OK;
    g->text.size--;
    memmove(g->text.data + start, g->text.data + start + 1, g->text.size - start);
    return TN_OK;
}

// Drops the bytes of the last piece.
static void forget_released(tn_generation *g)
{
    if (g->n_released == 0) return;
    g->text.size -= g->n_released;
    memmove(g->text.data, g->text.data + g->n_released, g->text.size);
    g->n_released = 0;
}

// Generates one more token, or sets the reason why there is none.
static tn_status next_chosen(tn_generation *g, tn_piece *piece)
{
    if (at_limit(g)) piece->stop = TN_STOP_LIMIT;
    tn_status status = piece->stop == TN_STOP_NONE ? evaluate_pending(g, &piece->stop) : TN_OK;
    return status == TN_OK && piece->stop == TN_STOP_NONE ? choose(g, piece) : status;
}

// Cuts the sequence so that `token` comes next, chosen but not evaluated, at `position`.
static tn_status cut_to(tn_generation *g, int32_t position, int32_t token)
{
    tn_status status = drop_guesses(g);
    if (status == TN_OK && position < tn_session_length(g->session, g->cfg.seq))
        status = tn_session_truncate(g->session, g->cfg.seq, position);
    g->pending = token;
    return status;
}

// Returns to the held token `at`, in which a banned text begins, and excludes it there. The token before it
// is evaluated again for its logits.
static tn_status go_back(tn_generation *g, int32_t at)
{
    int32_t n = tn_bans_held(g->bans), position = held(g) + 1 - n + at;
    int32_t token = tn_bans_token(g->bans, at), before = tn_bans_token(g->bans, at - 1);
    g->stats.n_generated -= n - at;
    tn_bans_cut(g->bans, at);
    if (position < 1 || before < 0)
        return tn_fail(g->ctx, TN_ERR_STATE, "generation: nothing comes before the banned text");
    if (++g->n_returns > RETURNS_MAX) g->end = TN_STOP_BLOCKED;
    tn_status status = cut_to(g, position - 1, before);
    tn_sampler_set_length(g->sampler, position);
    tn_sampler_exclude(g->sampler, token);
    return status;
}

// Chooses tokens until the first held one can be released: no banned text can begin in it, or the text ends.
static tn_status next_certain(tn_generation *g, tn_piece *piece)
{
    tn_bans *b = g->bans;
    while (g->end == TN_STOP_NONE && tn_bans_free(b) == 0) {
        tn_piece p = {.token = -1, .stop = TN_STOP_NONE};
        int32_t at;
        if (tn_bans_full(b)) { // the text stops rather than contain a banned text
            g->end = TN_STOP_BLOCKED;
            break;
        }
        tn_status status = next_chosen(g, &p);
        g->end = p.stop;
        if (status == TN_OK && p.token < 0) break;
        tn_strbuf_clear(&g->ban_piece);
        if (status == TN_OK && p.token < tn_tokenizer_n_tokens(g->tokenizer))
            status = tn_tokenizer_piece(g->tokenizer, p.token, g->cfg.print_special != 0, &g->ban_piece);
        if (status != TN_OK) return status;
        if (tn_bans_push(b, &p, g->ban_piece.data, g->ban_piece.size, &at))
            status = go_back(g, at);
        else if (reason_to_stop(g, p.token, g->stats.n_generated - 1, false) == TN_STOP_END)
            g->end = TN_STOP_END;
        if (status != TN_OK) return status;
    }
    if (tn_bans_held(b) > 0)
        tn_bans_pop(b, piece);
    else
        piece->stop = g->end;
    return TN_OK;
}

// The text ends here: tokens that were chosen after it are dropped.
static tn_status end_text(tn_generation *g, int32_t token)
{
    int32_t n = g->bans ? tn_bans_held(g->bans) : 0;
    if (n == 0) return drop_guesses(g);
    g->stats.n_generated -= n;
    tn_status status = cut_to(g, held(g) + (g->pending >= 0) - n - 1, token);
    tn_bans_cut(g->bans, 0);
    return status;
}

static tn_status step(tn_generation *g, tn_piece *piece)
{
    bool string_found = false;
    forget_released(g);
    size_t start = g->text.size, cut = 0;
    tn_status status = g->bans ? next_certain(g, piece) : next_chosen(g, piece);
    if (status == TN_OK && piece->token >= 0) {
        status = append_text(g, piece->token);
        if (status != TN_OK) return status;
        string_found = tn_stops_scan(&g->stops, g->text.data, start, g->text.size, &cut);
        int32_t n_held = g->bans ? tn_bans_held(g->bans) : 0;
        piece->stop = reason_to_stop(g, piece->token, g->stats.n_generated - 1 - n_held, string_found);
    }
    if (status == TN_OK && piece->stop != TN_STOP_NONE) status = end_text(g, piece->token);
    if (status != TN_OK) return status;
    size_t n = string_found ? cut : g->text.size;
    if (piece->stop == TN_STOP_NONE) n = tn_utf8_printable(g->text.data, n - tn_stops_held(&g->stops));
    piece->text = g->text.data;
    piece->n_text = n;
    // After a stop all bytes are released.
    g->n_released = piece->stop == TN_STOP_NONE ? n : g->text.size;
    return TN_OK;
}

tn_status tn_generation_step(tn_generation *g, tn_piece *out)
{
    TN_NEED(NULL, g);
    if (!g->ready)
        return tn_fail(g->ctx, TN_ERR_STATE,
                       "generation: it has stopped or not begun; call tn_generation_prompt");
    tn_status status = TN_STRUCT_CHECK(g->ctx, tn_piece, out);
    if (status != TN_OK) return status;
    uint64_t start = tn_time_ns();
    tn_piece piece = {.token = -1, .stop = TN_STOP_NONE};
    status = step(g, &piece);
    piece.n_dropped = g->n_dropped;
    g->n_dropped = 0;
    g->stats.generate_ns += tn_time_ns() - start;
    if (status != TN_OK) return status;
    if (g->stats.first_token_ns == 0 && piece.token >= 0)
        g->stats.first_token_ns = g->stats.prompt_ns + g->stats.generate_ns;
    g->ready = piece.stop == TN_STOP_NONE;
    return TN_STRUCT_WRITE(g->ctx, tn_piece, out, &piece);
}
