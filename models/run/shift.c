// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/shift.h"

#include "core/compiler.h"

// What the sequence holds, then n_more tokens at `more`.
typedef struct whole_text {
    const tn_session *s;
    int32_t seq, n_held;
    const int32_t *more;
    int32_t n_more;
} whole_text;

// Fills f->kept; returns the number of tokens that stay.
static int32_t take(const tn_shift *f, const whole_text *t)
{
    int32_t total = t->n_held + t->n_more, first = TN_MIN(TN_MIN(f->keep, f->n_ctx / 2), total);
    // The last token stays always: the next one is chosen behind it.
    int32_t n = TN_MIN(first + TN_MAX((f->n_ctx - first) / 2, 1), total);
    for (int32_t i = 0; i < n; i++) {
        int32_t at = i < first ? i : total - n + i;
        if (at >= t->n_held)
            f->kept[i] = t->more[at - t->n_held];
        else
            (void)tn_session_tokens(t->s, t->seq, at, &f->kept[i], 1);
    }
    return n;
}

int32_t tn_shift_prompt(const tn_shift *f, const tn_session *s, int32_t seq, const int32_t **ids, size_t *n,
                        bool *reuse)
{
    whole_text t = {s, seq, *reuse ? 0 : tn_session_length(s, seq), *ids, (int32_t)*n};
    int32_t total = t.n_held + t.n_more;
    if (!f->kept || total <= f->n_ctx) return 0;
    *n = (size_t)take(f, &t);
    *ids = f->kept;
    *reuse = true;
    return total - (int32_t)*n;
}

tn_status tn_shift_sequence(const tn_shift *f, tn_session *s, int32_t seq, int32_t *n_kept)
{
    whole_text t = {s, seq, tn_session_length(s, seq), NULL, 0};
    *n_kept = take(f, &t);
    tn_status status = tn_session_truncate(s, seq, 0);
    return status == TN_OK ? tn_session_feed(s, seq, f->kept, *n_kept) : status;
}
