// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/score.h"

#include "tools/common.h"

#include <math.h>

enum {
    PIECE = 64,   // tokens that are evaluated at a time: each has a row of results
    TOPS_MAX = 5, // of the field logprobs
};

static tn_status open_scorer(model *m)
{
    tn_session_config cfg;
    if (m->scorer) return TN_OK;
    tool_session_config(&m->r.t, &cfg);
    cfg.n_seq = 1;
    cfg.n_ctx = m->facts.n_ctx;
    cfg.n_ctx_seq = 0;
    cfg.n_batch = PIECE;
    return tn_session_create(m->r.model, &cfg, &m->scorer);
}

// The logarithm of the sum of exp(x[i]).
static double log_sum(const float *x, int32_t n)
{
    double sum = 0, most = -INFINITY;
    for (int32_t i = 0; i < n; i++)
        if ((double)x[i] > most) most = (double)x[i];
    for (int32_t i = 0; i < n; i++) sum += exp((double)x[i] - most);
    return most + log(sum);
}

// The most probable tokens, best first, of equal ones the first.
static void find_tops(const float *x, int32_t n, double sum, tn_logprob *tops, int32_t n_top)
{
    int32_t found = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t at = found < n_top ? found++ : n_top;
        float logprob = (float)((double)x[i] - sum);
        for (; at > 0 && tops[at - 1].logprob < logprob; at--)
            if (at < n_top) tops[at] = tops[at - 1];
        if (at < n_top) tops[at] = (tn_logprob){i, logprob};
    }
}

static bool take_row(const float *x, int32_t n_vocab, int32_t token, int32_t n_top,
                     bool (*take)(void *user, const tn_piece *piece), void *user)
{
    tn_logprob tops[TOPS_MAX] = {{0, 0}};
    double sum = log_sum(x, n_vocab);
    if (n_top > TOPS_MAX) n_top = TOPS_MAX;
    find_tops(x, n_vocab, sum, tops, n_top);
    const tn_piece piece = {.struct_size = sizeof piece,
                            .token = token,
                            .text = "",
                            .logprobs = tops,
                            .n_logprobs = n_top,
                            .logprob = (float)((double)x[token] - sum)};
    return take(user, &piece);
}

// The last token has nothing behind it that would be scored.
static tn_status score(tn_session *s, const int32_t *ids, int32_t n, int32_t n_top, const atomic_bool *left,
                       bool (*take)(void *user, const tn_piece *piece), void *user)
{
    int32_t n_vocab = tn_session_width(s);
    for (int32_t at = 0; at + 1 < n; at += PIECE) {
        int32_t k = n - 1 - at < PIECE ? n - 1 - at : PIECE;
        const tn_feed feed = {
            .struct_size = sizeof feed, .n_tokens = k, .tokens = ids + at, .outputs = TN_OUTPUT_ALL};
        if (atomic_load(left)) return TN_ERR_CANCELLED;
        tn_status status = tn_session_eval(s, &feed, 1);
        if (status != TN_OK) return status;
        for (int32_t i = 0; i < k; i++) {
            const float *row = tn_session_logits(s, i);
            if (!row) return TN_ERR_DEVICE;
            if (!take_row(row, n_vocab, ids[at + i + 1], n_top, take, user)) return TN_ERR_MEMORY;
        }
    }
    return TN_OK;
}

tn_status score_prompt(model *m, const int32_t *ids, size_t n, int32_t n_top, const atomic_bool *left,
                       bool (*take)(void *user, const tn_piece *piece), void *user)
{
    if (n >= (size_t)m->facts.n_ctx) return TN_OK; // the engine refuses it
    const tn_piece first = {.struct_size = sizeof first, .token = ids[0], .text = "", .logprob = NAN};
    if (!take(user, &first)) return TN_ERR_MEMORY;
    tn_status status = n > 1 ? open_scorer(m) : TN_OK;
    if (status != TN_OK || n < 2) return status;
    status = score(m->scorer, ids, (int32_t)n, n_top, left, take, user);
    tn_status emptied = tn_session_truncate(m->scorer, 0, 0);
    return status != TN_OK ? status : emptied;
}
