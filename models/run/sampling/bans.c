// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/sampling/bans.h"

#include <string.h>

enum { SPARE = 256 }; // tokens that may be held back besides those of the longest banned text

// Knuth, Morris, Pratt 1977: `matched` bytes of the text's end could still become the banned text.
typedef struct ban {
    char *text;
    int32_t *border; // [size] longest proper prefix of text[0..i] that also ends it
    int32_t size, matched;
} ban;

typedef struct held {
    int32_t token;
    float logprob;
    size_t n_bytes;
    int32_t n_logprobs;
    int32_t matched; // bytes behind it that could become a banned text
} held;

struct tn_bans {
    tn_context *ctx;
    ban *bans;
    int32_t n_bans, before;
    held *tokens; // [capacity]
    int32_t n, capacity, max_logprobs;
    char *bytes; // of all held tokens
    size_t n_bytes;
    tn_logprob *logprobs; // [capacity + 1][max_logprobs], the last row for the token that was removed
};

static int32_t advance(const ban *b, int32_t matched, char byte)
{
    if (matched == b->size) matched = b->border[matched - 1];
    while (matched > 0 && b->text[matched] != byte) matched = b->border[matched - 1];
    return matched + (b->text[matched] == byte);
}

static tn_status init_ban(tn_bans *b, const char *text)
{
    size_t size = text ? strlen(text) : 0;
    ban *one = &b->bans[b->n_bans];
    if (size == 0 || size > TN_BAN_SIZE_MAX)
        return tn_fail(b->ctx, TN_ERR_ARG, "generation: bans[%d] has %zu bytes, allowed 1..%d",
                       (int)b->n_bans, size, (int)TN_BAN_SIZE_MAX);
    b->n_bans++;
    one->text = tn_strdup(b->ctx, text);
    one->border = tn_calloc(b->ctx, size, sizeof *one->border);
    if (!one->text || !one->border) return TN_ERR_MEMORY;
    one->size = (int32_t)size;
    for (int32_t k = 1; k < one->size; k++) one->border[k] = advance(one, one->border[k - 1], text[k]);
    return TN_OK;
}

tn_status tn_bans_create(tn_context *ctx, const char *const *texts, int32_t n, size_t piece_max,
                         int32_t n_logprobs, tn_bans **out)
{
    tn_bans *b = tn_calloc(ctx, 1, sizeof *b);
    tn_status status = TN_OK;
    if (!b) return TN_ERR_MEMORY;
    *b = (tn_bans){.ctx = ctx, .before = -1, .max_logprobs = n_logprobs};
    b->bans = tn_calloc(ctx, (size_t)n, sizeof *b->bans);
    if (!b->bans) status = TN_ERR_MEMORY;
    for (int32_t i = 0; i < n && status == TN_OK; i++) status = init_ban(b, texts[i]);
    for (int32_t i = 0; i < b->n_bans; i++) b->capacity = TN_MAX(b->capacity, b->bans[i].size);
    b->capacity += SPARE;
    if (status == TN_OK) {
        b->tokens = tn_calloc(ctx, (size_t)b->capacity, sizeof *b->tokens);
        b->bytes = tn_calloc(ctx, (size_t)b->capacity, piece_max);
        b->logprobs = tn_calloc(ctx, ((size_t)b->capacity + 1) * (size_t)n_logprobs, sizeof *b->logprobs);
        if (!b->tokens || !b->bytes || !b->logprobs) status = TN_ERR_MEMORY;
    }
    if (status != TN_OK)
        tn_bans_destroy(&b);
    else
        *out = b;
    return status;
}

void tn_bans_destroy(tn_bans **bans)
{
    if (!bans || !*bans) return;
    tn_bans *b = *bans;
    for (int32_t i = 0; i < b->n_bans; i++) {
        tn_free(b->ctx, b->bans[i].text);
        tn_free(b->ctx, b->bans[i].border);
    }
    tn_free(b->ctx, b->bans);
    tn_free(b->ctx, b->tokens);
    tn_free(b->ctx, b->bytes);
    tn_free(b->ctx, b->logprobs);
    tn_free(b->ctx, b);
    *bans = NULL;
}

void tn_bans_begin(tn_bans *b, int32_t before)
{
    b->before = before;
    b->n = 0;
    b->n_bytes = 0;
    for (int32_t i = 0; i < b->n_bans; i++) b->bans[i].matched = 0;
}

// The held token that byte `at` belongs to.
static int32_t token_at(const tn_bans *b, size_t at)
{
    int32_t i = 0;
    for (size_t end = b->tokens[0].n_bytes; end <= at; end += b->tokens[i].n_bytes) i++;
    return i;
}

static int32_t longest_match(const tn_bans *b)
{
    int32_t longest = 0;
    for (int32_t i = 0; i < b->n_bans; i++) longest = TN_MAX(longest, b->bans[i].matched);
    return longest;
}

// Of the banned texts that are complete at a byte, the one that begins first counts.
static bool scan(tn_bans *b, size_t start, size_t *begin)
{
    for (size_t pos = start; pos < b->n_bytes; pos++) {
        int32_t longest = 0;
        for (int32_t i = 0; i < b->n_bans; i++) {
            ban *one = &b->bans[i];
            one->matched = advance(one, one->matched, b->bytes[pos]);
            if (one->matched == one->size) longest = TN_MAX(longest, one->size);
        }
        if (longest == 0) continue;
        *begin = pos + 1 - (size_t)longest;
        return true;
    }
    return false;
}

bool tn_bans_push(tn_bans *b, const tn_piece *piece, const char *bytes, size_t n, int32_t *at)
{
    size_t start = b->n_bytes, begin = 0;
    int32_t n_logprobs = TN_MIN(piece->n_logprobs, b->max_logprobs);
    if (n) memcpy(b->bytes + start, bytes, n);
    if (n_logprobs)
        memcpy(b->logprobs + (size_t)b->n * (size_t)b->max_logprobs, piece->logprobs,
               (size_t)n_logprobs * sizeof *b->logprobs);
    b->tokens[b->n++] = (held){piece->token, piece->logprob, n, n_logprobs, 0};
    b->n_bytes += n;
    bool found = scan(b, start, &begin);
    b->tokens[b->n - 1].matched = longest_match(b);
    if (found) *at = token_at(b, begin);
    return found;
}

void tn_bans_cut(tn_bans *b, int32_t n)
{
    size_t begin;
    while (b->n > n) b->n_bytes -= b->tokens[--b->n].n_bytes;
    for (int32_t i = 0; i < b->n_bans; i++) b->bans[i].matched = 0;
    bool found = scan(b, 0, &begin); // never true: complete texts were removed before
    TN_UNUSED(found);
}

int32_t tn_bans_held(const tn_bans *b)
{
    return b->n;
}

bool tn_bans_full(const tn_bans *b)
{
    return b->n == b->capacity;
}

int32_t tn_bans_token(const tn_bans *b, int32_t i)
{
    return i < 0 ? b->before : b->tokens[i].token;
}

// The generation may later return to any token in which a banned text began. So a token may only be released
// if no banned text can begin in it or in a token before it.
int32_t tn_bans_free(const tn_bans *b)
{
    size_t end = b->n_bytes;
    int32_t n_free = b->n;
    for (int32_t i = b->n; i > 0 && i >= n_free; i--) {
        int32_t matched = b->tokens[i - 1].matched;
        if (matched > 0) n_free = TN_MIN(n_free, token_at(b, end - (size_t)matched));
        end -= b->tokens[i - 1].n_bytes;
    }
    return n_free;
}

void tn_bans_pop(tn_bans *b, tn_piece *piece)
{
    held first = b->tokens[0];
    size_t row = (size_t)b->max_logprobs;
    tn_logprob *out = b->logprobs + (size_t)b->capacity * row;
    piece->token = b->before = first.token;
    piece->logprob = first.logprob;
    piece->n_logprobs = first.n_logprobs;
    piece->logprobs = out;
    memcpy(out, b->logprobs, row * sizeof *out);
    memmove(b->logprobs, b->logprobs + row, (size_t)(b->n - 1) * row * sizeof *out);
    memmove(b->tokens, b->tokens + 1, (size_t)(b->n - 1) * sizeof *b->tokens);
    memmove(b->bytes, b->bytes + first.n_bytes, b->n_bytes - first.n_bytes);
    b->n--;
    b->n_bytes -= first.n_bytes;
}
