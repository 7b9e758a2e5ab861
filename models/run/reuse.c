// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokens of sequences, and starting a sequence from the longest prefix that any sequence holds.
#include "models/run/session.h"

#include <string.h>

int32_t tn_session_tokens(const tn_session *s, int32_t seq, int32_t first, int32_t *out, int32_t n)
{
    if (!s || !out) return 0;
    int32_t length = tn_session_length(s, seq);
    if (first < 0 || first >= length) return 0;
    n = TN_MIN(n, length - first);
    for (int32_t i = 0; i < n; i++) out[i] = tn_cache_token(&s->cache, seq, first + i);
    return TN_MAX(n, 0);
}

int32_t tn_session_common_prefix(const tn_session *s, int32_t seq, const int32_t *tokens, int32_t n)
{
    const tn_cache *c = &s->cache;
    int32_t same = 0, most = TN_MIN(n, c->seqs[seq].length);
    while (same < most && tn_cache_token(c, seq, same) == tokens[same]) same++;
    return same;
}

// The sequence with the longest common prefix. Among equals the sequence itself is preferred: then no block
// needs to be shared.
static int32_t find_prefix(const tn_session *s, int32_t seq, const int32_t *tokens, int32_t n, int32_t *from)
{
    int32_t same = tn_session_common_prefix(s, seq, tokens, n);
    *from = seq;
    for (int32_t q = 0; q < s->cfg.n_seq; q++) {
        bool other = q != seq && tn_session_same_adapters(s, q, seq);
        int32_t also = !other ? 0 : tn_session_common_prefix(s, q, tokens, n);
        if (also > same) same = also, *from = q;
    }
    return same;
}

// Blocks of the sequence behind its first `n`, that it alone holds.
static int32_t own_blocks(const tn_cache *c, int32_t seq, int32_t n)
{
    int32_t own = 0;
    for (int32_t i = n; i < tn_cache_blocks_of(c->seqs[seq].length); i++)
        own += c->all.refs[c->seqs[seq].blocks[i]] == 1;
    return own;
}

int32_t tn_session_n_seq(const tn_session *s)
{
    return s->cfg.n_seq;
}

bool tn_session_fits(const tn_session *s, int32_t seq, const int32_t *tokens, int32_t n, bool reuse)
{
    const tn_cache *c = &s->cache;
    if (!reuse)
        return n <= c->n_ctx_seq - c->seqs[seq].length &&
               tn_cache_blocks_for(c, seq, n) <= tn_cache_n_available(c);
    int32_t from, same = find_prefix(s, seq, tokens, n - 1, &from), shared = tn_cache_blocks_of(same);
    // A last block that is only partly reused is copied, if another sequence has it as well.
    bool copied =
        same % TN_CACHE_BLOCK != 0 && (from != seq || c->all.refs[c->seqs[seq].blocks[shared - 1]] > 1);
    int32_t freed = own_blocks(c, seq, from == seq ? shared : 0);
    return n <= c->n_ctx_seq && tn_cache_blocks_of(n) - shared + copied <= tn_cache_n_available(c) + freed;
}

tn_status tn_session_reuse(tn_session *s, int32_t seq, const int32_t *tokens, int32_t n, int32_t *n_reused)
{
    TN_NEED(NULL, s);
    if (n > 0) TN_NEED(s->ctx, tokens);
    TN_NEED(s->ctx, n_reused);
    if (seq < 0 || seq >= s->cfg.n_seq)
        return tn_fail(s->ctx, TN_ERR_ARG, "sequence %d of %d", seq, s->cfg.n_seq);
    if (n < 0 || (n > 0 && !tokens))
        return tn_fail(s->ctx, TN_ERR_ARG, "sequence %d: a prefix of %d tokens", seq, n);
    int32_t from, same = find_prefix(s, seq, tokens, n, &from);
    tn_status status =
        from == seq ? tn_session_truncate(s, seq, same) : tn_session_branch(s, from, seq, same);
    if (status == TN_OK) *n_reused = same;
    return status;
}
