// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokens so far, as samplers need them, and the stages that read them: penalties and DRY.
#include "models/run/sampling/sampler_impl.h"

#include <string.h>

bool tn_stage_penalties_active(const tn_sampling *c)
{
    return c->penalty_last_n != 0 &&
           (c->repeat_penalty != 1 || c->presence_penalty != 0 || c->frequency_penalty != 0);
}

bool tn_stage_dry_active(const tn_sampling *c)
{
    return c->dry_multiplier > 0 && c->dry_penalty_last_n != 0;
}

static const char *const default_breakers[] = {"\n", ":", "\"", "*"};

const char *const *tn_sampling_breakers(const tn_sampling *c, int32_t *n)
{
    *n = c->n_dry_breakers < 0 ? (int32_t)TN_COUNT(default_breakers) : c->n_dry_breakers;
    return c->n_dry_breakers < 0 ? default_breakers : c->dry_breakers;
}

tn_status tn_history_reserve(tn_sampler *s, const tn_sampling *cfg)
{
    size_t n = (size_t)s->max_history, n_vocab = (size_t)s->n_vocab;
    bool penalties = tn_stage_penalties_active(cfg), dry = tn_stage_dry_active(cfg);
    if (cfg->mirostat == 2) {
        s->mu = tn_calloc(s->ctx, n, sizeof *s->mu);
        if (!s->mu) return TN_ERR_MEMORY;
    }
    if (!penalties && !dry) return TN_OK;
    s->history = tn_calloc(s->ctx, n, sizeof *s->history);
    if (!s->history) return TN_ERR_MEMORY;
    if (penalties) {
        s->counts = tn_calloc(s->ctx, n_vocab, sizeof *s->counts);
        if (!s->counts) return TN_ERR_MEMORY;
    }
    if (!dry) return TN_OK;
    int32_t n_breakers;
    const char *const *breakers = tn_sampling_breakers(cfg, &n_breakers);
    s->breaks = tn_calloc(s->ctx, n, sizeof *s->breaks);
    s->repeats = tn_calloc(s->ctx, n, sizeof *s->repeats);
    s->longest = tn_calloc(s->ctx, n_vocab, sizeof *s->longest);
    s->breakers = tn_calloc(s->ctx, (size_t)n_breakers, sizeof *s->breakers);
    if (!s->breaks || !s->repeats || !s->longest || !s->breakers) return TN_ERR_MEMORY;
    for (; s->n_breakers < n_breakers; s->n_breakers++) {
        tn_breaker *b = &s->breakers[s->n_breakers];
        b->size = strlen(breakers[s->n_breakers]);
        memcpy(b->text, breakers[s->n_breakers], b->size);
    }
    return TN_OK;
}

void tn_history_fini(tn_sampler *s)
{
    tn_strbuf_fini(&s->piece);
    tn_free(s->ctx, s->mu);
    tn_free(s->ctx, s->breakers);
    tn_free(s->ctx, s->longest);
    tn_free(s->ctx, s->repeats);
    tn_free(s->ctx, s->breaks);
    tn_free(s->ctx, s->counts);
    tn_free(s->ctx, s->history);
}

// Tokens that the file suppresses are appended to the bias list with -inf.
static tn_status add_suppressed(tn_sampler *s)
{
    int32_t n = TN_MIN(tn_tokenizer_n_tokens(s->tokenizer), s->n_vocab), n_bias = s->cfg.n_bias, at = n_bias;
    for (int32_t i = 0; i < n; i++) n_bias += tn_tokenizer_is_suppressed(s->tokenizer, i);
    if (n_bias == at) return TN_OK;
    tn_bias_pair *bias = tn_alloc(s->ctx, (size_t)n_bias * sizeof *bias);
    if (!bias) return TN_ERR_MEMORY;
    if (at > 0) memcpy(bias, s->bias, (size_t)at * sizeof *bias);
    for (int32_t i = 0; i < n; i++)
        if (tn_tokenizer_is_suppressed(s->tokenizer, i)) bias[at++] = (tn_bias_pair){i, -INFINITY};
    tn_free(s->ctx, s->bias);
    s->bias = bias;
    s->cfg.n_bias = n_bias;
    return TN_OK;
}

tn_status tn_sampler_set_tokenizer(tn_sampler *s, const tn_tokenizer *tokenizer)
{
    static const char zeros[64];
    size_t most = 0;
    s->tokenizer = tokenizer;
    tn_status status = tokenizer ? add_suppressed(s) : TN_OK;
    if (status != TN_OK || !tokenizer || !s->breaks) return status;
    int32_t n = tn_tokenizer_n_tokens(tokenizer);
    for (int32_t i = 0; i < n; i++) most = TN_MAX(most, tn_tokenizer_text(tokenizer, i).size);
    while (s->piece.status == TN_OK && s->piece.capacity <= most)
        tn_strbuf_append(&s->piece, zeros, sizeof zeros);
    tn_strbuf_clear(&s->piece);
    return s->piece.status;
}

// --- breakers ----------------------------------------------------------------------------------------

// Bytes of a token; nothing for those that are unknown.
static void read_piece(tn_sampler *s, int32_t token)
{
    tn_strbuf_clear(&s->piece);
    if (token < 0 || !s->tokenizer || token >= tn_tokenizer_n_tokens(s->tokenizer)) return;
    if (tn_tokenizer_piece(s->tokenizer, token, true, &s->piece) != TN_OK) tn_strbuf_clear(&s->piece);
}

// Whether `b` ends in the piece that follows the tail.
static bool breaker_ends(const tn_sampler *s, const tn_breaker *b)
{
    size_t n = s->n_tail + s->piece.size;
    for (size_t end = TN_MAX(s->n_tail + 1, b->size); end <= n; end++) {
        size_t k = 0;
        for (; k < b->size; k++) {
            size_t at = end - b->size + k;
            if (b->text[k] != (at < s->n_tail ? s->tail[at] : s->piece.data[at - s->n_tail])) break;
        }
        if (k == b->size) return true;
    }
    return false;
}

static void append_tail(tn_sampler *s)
{
    size_t n = TN_MIN(s->piece.size, TN_BREAKER_SIZE_MAX), keep = TN_MIN(s->n_tail, TN_BREAKER_SIZE_MAX - n);
    if (n == 0) return;
    memmove(s->tail, s->tail + s->n_tail - keep, keep);
    memcpy(s->tail + keep, s->piece.data + s->piece.size - n, n);
    s->n_tail = keep + n;
}

static bool breaks_here(tn_sampler *s, int32_t token)
{
    bool found = token < 0; // an unknown token repeats nothing
    read_piece(s, token);
    for (int32_t i = 0; i < s->n_breakers && !found; i++) found = breaker_ends(s, &s->breakers[i]);
    append_tail(s);
    return found;
}

// After tokens were dropped: the last bytes of the text again. Each token has a byte or more, or none at all.
static void rebuild_tail(tn_sampler *s)
{
    int32_t first = s->length;
    for (size_t n = 0; first > 0 && n < TN_BREAKER_SIZE_MAX; n += s->piece.size)
        read_piece(s, s->history[--first]);
    s->n_tail = 0;
    for (; first < s->length; first++) {
        read_piece(s, s->history[first]);
        append_tail(s);
    }
}

// --- the list ----------------------------------------------------------------------------------------

static void count(tn_sampler *s, int32_t position, int32_t by)
{
    if (s->counts && position >= 0 && s->history[position] >= 0) s->counts[s->history[position]] += by;
}

// Position that leaves the window when the list grows from n to n + 1; negative: none does.
static int32_t leaving(const tn_sampler *s, int32_t n)
{
    return s->cfg.penalty_last_n < 0 ? -1 : n - s->cfg.penalty_last_n;
}

void tn_sampler_push(tn_sampler *s, int32_t token)
{
    if (s->length == s->max_history) return;
    if (token >= s->n_vocab) token = -1;
    if (s->history) {
        s->history[s->length] = token;
        count(s, s->length, 1);
        count(s, leaving(s, s->length), -1);
    }
    if (s->breaks) s->breaks[s->length] = breaks_here(s, token);
    if (s->mu) s->mu[s->length] = token >= 0 && token == s->chosen ? s->mu_chosen : tn_sampler_mu(s);
    tn_limits_push(s, token);
    s->chosen = -1;
    s->length++;
}

void tn_sampler_set_length(tn_sampler *s, int32_t n)
{
    n = TN_MIN(TN_MAX(n, 0), s->max_history);
    bool shorter = n < s->length;
    while (s->length > n) {
        s->length--;
        s->chosen = -1;
        if (!s->counts) continue;
        count(s, s->length, -1);
        count(s, leaving(s, s->length), 1);
    }
    if (shorter && s->breaks) rebuild_tail(s);
    if (shorter) tn_limits_cut(s);
    while (s->length < n) tn_sampler_push(s, -1);
}

// --- penalties ---------------------------------------------------------------------------------------

void tn_stage_penalties(tn_sampler *s)
{
    int32_t first = TN_MAX(leaving(s, s->length), 0);
    tn_logits_open(s);
    // Negative counts mark tokens that were handled already, because each token is penalised once.
    for (int32_t i = first; i < s->length; i++) {
        int32_t id = s->history[i];
        if (id < 0 || s->counts[id] < 0) continue;
        s->logits[id] = tn_logit_penalise(s->logits[id], s->cfg.repeat_penalty, s->cfg.presence_penalty,
                                          s->cfg.frequency_penalty, s->counts[id]);
        s->counts[id] = -s->counts[id];
    }
    for (int32_t i = first; i < s->length; i++) {
        int32_t id = s->history[i];
        if (id >= 0 && s->counts[id] < 0) s->counts[id] = -s->counts[id];
    }
    tn_logits_close(s);
}

// --- DRY ---------------------------------------------------------------------------------------------

// z[k], k from 1: how many tokens before place n - k equal those before the end (Gusfield 1997, section 1.4,
// on the reversed list).
static void measure_repeats(const int32_t *tokens, int32_t n, int32_t *z)
{
    const int32_t *last = tokens + n - 1;
    for (int32_t k = 1, left = 0, right = 0; k < n; k++) {
        int32_t len = k < right ? TN_MIN(z[k - left], right - k) : 0;
        while (k + len < n && last[-len] == last[-(k + len)]) len++;
        z[k] = len;
        if (k + len > right) {
            left = k;
            right = k + len;
        }
    }
}

// "Don't Repeat Yourself" (p-e-w 2024, text-generation-webui pull request 5677).
void tn_stage_dry(tn_sampler *s)
{
    const tn_sampling *c = &s->cfg;
    int32_t n = c->dry_penalty_last_n < 0 ? s->length : TN_MIN(s->length, c->dry_penalty_last_n), limit = 0;
    const int32_t *tokens = s->history + (s->length - n);
    const bool *breaks = s->breaks + (s->length - n);
    while (limit < n && !breaks[n - 1 - limit]) limit++;
    if (limit < c->dry_allowed_length) return;
    measure_repeats(tokens, n, s->repeats);
    for (int32_t k = 1; k < n; k++) {
        int32_t length = TN_MIN(s->repeats[k], limit), next = tokens[n - k];
        if (length >= c->dry_allowed_length && next >= 0) s->longest[next] = TN_MAX(s->longest[next], length);
    }
    tn_logits_open(s);
    for (int32_t k = 1; k < n; k++) {
        int32_t next = tokens[n - k];
        if (next < 0 || s->longest[next] == 0) continue;
        double power = pow((double)c->dry_base, s->longest[next] - c->dry_allowed_length);
        double penalty = TN_MIN((double)c->dry_multiplier * power, (double)FLT_MAX); // weakened, not excluded
        s->logits[next] = tn_logit_sum((double)s->logits[next] - penalty);
        s->longest[next] = 0;
    }
    tn_logits_close(s);
}
