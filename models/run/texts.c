// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Models of whole texts: the inputs of a pass. K and V of the pass are blocks of one token, in the
// order of the tokens, so the block table of a text counts from its first token.
#include "models/run/session.h"

tn_status tn_session_text_too_long(tn_session *s, int32_t n)
{
    return tn_fail(
        s->ctx, TN_ERR_CONTEXT_FULL,
        "a text of %d tokens: it is evaluated at once, and the session takes %d (context %d, batch %d)", n,
        s->setup.max_blocks, s->cfg.n_ctx, s->cfg.n_batch);
}

tn_status tn_session_fill_texts(tn_session *s, const tn_feed *feeds, int32_t n_feeds, tn_plan_key *key)
{
    int32_t t = 0, out = 0;
    for (int32_t i = 0; i < n_feeds; i++)
        if (feeds[i].n_tokens > s->setup.max_blocks) return tn_session_text_too_long(s, feeds[i].n_tokens);
    for (int32_t i = 0; i < n_feeds; i++) {
        const tn_feed *f = &feeds[i];
        int32_t *row = s->table + (size_t)i * (size_t)s->setup.max_blocks;
        s->q_start[i] = t;
        s->kv_len[i] = f->n_tokens;
        for (int32_t k = 0; k < f->n_tokens; k++, t++) {
            s->tokens[t] = f->tokens[k];
            s->positions[t] = k;
            row[k] = t;
            if (tn_feed_wants(f, k)) s->out_rows[out++] = t;
        }
    }
    if (out == 0) return tn_fail(s->ctx, TN_ERR_ARG, "no rows are wanted, and this model keeps nothing");
    s->q_start[n_feeds] = t;
    *key = (tn_plan_key){.n_tokens = t, .n_seq = n_feeds, .n_outputs = out};
    return TN_OK;
}
