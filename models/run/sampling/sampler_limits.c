// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tokens are allowed, whatever their probability: those of the grammar, without those excluded at a
// position.
#include "models/run/sampling/sampler_impl.h"

#include <string.h>

void tn_sampler_set_matcher(tn_sampler *s, tn_matcher *matcher)
{
    s->matcher = matcher;
}

tn_status tn_sampler_reserve_excluded(tn_sampler *s, int32_t n)
{
    s->excluded = tn_calloc(s->ctx, (size_t)n, sizeof *s->excluded);
    if (!s->excluded) return TN_ERR_MEMORY;
    s->max_excluded = n;
    return TN_OK;
}

void tn_sampler_mark_text(tn_sampler *s, bool generated)
{
    s->text_start = generated ? s->length : INT32_MAX;
    s->n_excluded = 0;
    s->limit_status = TN_OK;
    if (s->matcher) tn_matcher_truncate(s->matcher, 0);
}

void tn_sampler_exclude(tn_sampler *s, int32_t token)
{
    if (s->max_excluded == 0) return;
    if (s->n_excluded == s->max_excluded) // the oldest are farthest back
        memmove(s->excluded, s->excluded + 1, (size_t)--s->n_excluded * sizeof *s->excluded);
    s->excluded[s->n_excluded++] = (tn_excluded){s->length, token};
}

void tn_limits_push(tn_sampler *s, int32_t token)
{
    if (!s->matcher || s->length < s->text_start || s->limit_status != TN_OK) return;
    s->limit_status = tn_matcher_accept(s->matcher, token);
}

void tn_limits_cut(tn_sampler *s)
{
    while (s->n_excluded > 0 && s->excluded[s->n_excluded - 1].position > s->length) s->n_excluded--;
    if (s->text_start == INT32_MAX) return;
    s->text_start = TN_MIN(s->text_start, s->length);
    if (s->matcher) tn_matcher_truncate(s->matcher, s->length - s->text_start);
}

tn_status tn_limits_apply(tn_sampler *s)
{
    for (int32_t i = s->n_excluded; i > 0 && s->excluded[i - 1].position == s->length; i--)
        s->logits[s->excluded[i - 1].token] = -INFINITY;
    if (!s->matcher) return TN_OK;
    const uint64_t *bits;
    bool any;
    tn_status status = s->limit_status;
    if (status == TN_OK) status = tn_matcher_mask(s->matcher, &bits, &any);
    if (status != TN_OK) return status;
    // A model may have more outputs than its tokenizer has tokens: they have no text.
    int32_t n = TN_MIN(tn_matcher_n_tokens(s->matcher), s->n_vocab);
    for (int32_t i = 0; i < n; i++)
        if (!(bits[i / 64] >> (i % 64) & 1)) s->logits[i] = -INFINITY;
    for (int32_t i = n; i < s->n_vocab; i++) s->logits[i] = -INFINITY;
    return TN_OK;
}
