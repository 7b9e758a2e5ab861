// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of layers with a sliding window. They see the last positions only, so their K and V have a pool of
// their own, with as many blocks as the windows of all sequences and one step need, whatever the length of
// the context. A sequence has a second list of ids for them, by the same index as its other blocks.
//
// Blocks before the window of a sequence are released when others are short of blocks, the oldest first, and
// never during a step that sees them. Until then the sequence can be cut to where its window begins with
// them. A sequence that is cut further back holds nothing any more in these layers: its tokens are evaluated
// again before the next step (run/replay.c), as for recurrent states.
//
// The pool is as large as the largest need, so it is never short: nobody has to ask before a step.
#include "models/run/cache/cache.h"

// A sequence can be cut back by so many tokens at any time without evaluating its tokens again: drafts that
// were rejected, banned texts.
enum { REWIND = 64 };

int32_t tn_cache_window_blocks(const tn_cache_config *cfg)
{
    int64_t all = tn_cache_n_blocks(cfg->n_ctx, cfg->n_seq), n_seq = cfg->n_seq;
    if (cfg->window <= 0 || cfg->n_states > 0) return 0;
    // A window and n new tokens lie in (window + REWIND - 1 + n) / 64 blocks, and in one more at each end.
    int64_t window = ((int64_t)cfg->window + REWIND - 1) / TN_CACHE_BLOCK + 1;
    int64_t n = n_seq * (window + 2) + cfg->n_batch / TN_CACHE_BLOCK;
    n += n_seq / 2 * window; // of ended texts, so that a prompt that continues one finds its window
    return n < all ? (int32_t)n : 0;
}

static int32_t keep_of(const tn_cache *c, int32_t length)
{
    return tn_cache_window_start(c, TN_MAX(length - REWIND, 0));
}

void tn_cache_window_release(tn_cache *c, int32_t id)
{
    tn_cache_pool *p = &c->sliding;
    if (--p->refs[id] == 0 && !tn_cache_index_keep_window(c, id)) p->free_ids[p->n_free++] = id;
}

int32_t tn_cache_window_take(tn_cache *c)
{
    tn_cache_pool *p = &c->sliding;
    int32_t id = p->n_free > 0 ? p->free_ids[--p->n_free] : tn_cache_index_evict_window(c);
    if (id >= 0) p->refs[id] = 1;
    return id;
}

// What lies before the windows of all sequences.
static void reclaim(tn_cache *c)
{
    for (int32_t q = 0; q < c->n_seq; q++) {
        tn_cache_seq *s = &c->seqs[q];
        int32_t end = TN_MIN(s->window_keep, tn_cache_blocks_of(s->window_length));
        for (; s->window_first < end; s->window_first++)
            tn_cache_window_release(c, s->window_blocks[s->window_first]);
    }
}

// As in cache.c: a sequence that appends to a shared block gets a copy of its own.
static tn_status own_last_block(tn_cache *c, tn_cache_seq *s)
{
    if (s->window_length % TN_CACHE_BLOCK == 0) return TN_OK;
    int32_t *last = &s->window_blocks[s->window_length / TN_CACHE_BLOCK];
    if (c->sliding.refs[*last] == 1) {
        tn_cache_index_forget_window(c, *last);
        return TN_OK;
    }
    int32_t id = tn_cache_window_take(c);
    if (id < 0) return tn_fail(c->ctx, TN_ERR_INTERNAL, "cache: no block for a window");
    tn_status status = tn_cache_copy_block(c, &c->sliding, *last, id);
    c->sliding.used[id] = true;
    tn_cache_window_release(c, status == TN_OK ? *last : id);
    if (status == TN_OK) *last = id;
    return status;
}

tn_status tn_cache_window_extend(tn_cache *c, int32_t seq, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (!tn_cache_has_window(c)) return TN_OK;
    int32_t have = tn_cache_blocks_of(s->window_length), want = tn_cache_blocks_of(s->window_length + n);
    if (want - have + 1 > c->sliding.n_free) reclaim(c);
    tn_status status = own_last_block(c, s);
    int32_t got = have;
    for (; got < want && status == TN_OK; got++) {
        s->window_blocks[got] = tn_cache_window_take(c);
        if (s->window_blocks[got] >= 0) continue;
        status = tn_fail(c->ctx, TN_ERR_INTERNAL, "cache: no block for a window");
        break;
    }
    if (status == TN_OK) status = tn_cache_clear_used(c, &c->sliding, s->window_blocks + have, want - have);
    if (status != TN_OK) {
        while (got > have) tn_cache_window_release(c, s->window_blocks[--got]);
        return status;
    }
    s->window_length += n;
    return TN_OK;
}

void tn_cache_window_settle(tn_cache *c, int32_t seq)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (tn_cache_has_window(c)) s->window_keep = keep_of(c, s->window_length);
}

// Releases the blocks from `first` on, the last one first.
static void release_from(tn_cache *c, tn_cache_seq *s, int32_t first)
{
    for (int32_t i = tn_cache_blocks_of(s->window_length); i-- > TN_MAX(first, s->window_first);)
        tn_cache_window_release(c, s->window_blocks[i]);
}

void tn_cache_window_truncate(tn_cache *c, int32_t seq, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (!tn_cache_has_window(c) || n >= s->window_length) return;
    bool lost = n == 0 || s->window_first > tn_cache_window_start(c, n);
    release_from(c, s, lost ? 0 : tn_cache_blocks_of(n));
    s->window_length = lost ? 0 : n;
    if (lost) s->window_first = 0;
    s->window_keep = keep_of(c, s->window_length);
}

void tn_cache_window_branch(tn_cache *c, int32_t from, int32_t to, int32_t n)
{
    const tn_cache_seq *f = &c->seqs[from];
    tn_cache_seq *t = &c->seqs[to];
    if (!tn_cache_has_window(c)) return;
    n = TN_MIN(n, f->window_length);
    if (f->window_first > tn_cache_window_start(c, n)) n = 0;
    t->window_first = n > 0 ? f->window_first : 0;
    t->window_length = n;
    t->window_keep = keep_of(c, n);
    for (int32_t i = t->window_first; i < tn_cache_blocks_of(n); i++) {
        t->window_blocks[i] = f->window_blocks[i];
        c->sliding.refs[t->window_blocks[i]]++;
    }
}

int32_t tn_cache_window_slot(const tn_cache *c, int32_t seq, int32_t position)
{
    return c->seqs[seq].window_blocks[position / TN_CACHE_BLOCK] * TN_CACHE_BLOCK + position % TN_CACHE_BLOCK;
}

void tn_cache_window_row(const tn_cache *c, int32_t seq, int32_t *row)
{
    const tn_cache_seq *s = &c->seqs[seq];
    int32_t end = tn_cache_blocks_of(s->window_length);
    for (int32_t i = 0; i < c->max_blocks; i++)
        row[i] = s->window_blocks[TN_MIN(TN_MAX(i, s->window_first), TN_MAX(end - 1, 0))];
}
