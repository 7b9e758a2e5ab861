// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which requests run. A request that waits starts when a sequence is free and the cache has blocks for its
// prompt, less those that hold a part of it already. If the cache becomes full, the newest running request
// has to wait again. Its blocks can be found until others need them, so that often little of it is evaluated
// twice. What a pass takes of those that run: compose.c.
#include "models/engine/engine.h"

#include <string.h>

// --- waiting and starting ------------------------------------------------------------------------------

static int32_t free_sequence(const tn_engine *e)
{
    for (int32_t q = 0; q < e->n_seq; q++)
        if (!e->running[q]) return q;
    return -1;
}

// The last token of a prompt is evaluated for its logits, unless a selected token follows it.
static int32_t reusable(const tn_request *r)
{
    return r->n_tokens - (tn_generation_pending(r->generation) < 0);
}

int32_t tn_engine_last_block_end(const tn_request *r)
{
    return reusable(r) / TN_CACHE_BLOCK * TN_CACHE_BLOCK;
}

// Whether a running request will evaluate whole blocks that this one begins with, and that are not in the
// cache yet. It is better to wait for these. `found` blocks are in the cache.
static bool prefix_is_coming(const tn_engine *e, const tn_request *r, int32_t found)
{
    for (int32_t q = 0; q < e->n_seq; q++) {
        const tn_request *other = e->running[q];
        if (!other || other->salt != r->salt || tn_session_length(e->session, q) >= other->n_tokens) continue;
        int32_t same = 0, most = TN_MIN(reusable(r), reusable(other));
        while (same < most && r->tokens[same] == other->tokens[same]) same++;
        same = same / TN_CACHE_BLOCK * TN_CACHE_BLOCK;
        // With recurrent layers the only state that stays is the one behind its last full block.
        if (tn_session_has_states(e->session) && same < tn_engine_last_block_end(other)) continue;
        if (same / TN_CACHE_BLOCK > found && tn_session_length(e->session, q) < same) return true;
    }
    return false;
}

// The request with the smallest order that may start now. `after`: only those behind this order.
static tn_request *next_waiting(tn_engine *e, int64_t after)
{
    tn_request *best = NULL;
    tn_engine_lock(e);
    for (tn_request *r = e->waiting; r; r = r->next)
        if (r->order > after && (!best || r->order < best->order)) best = r;
    tn_engine_unlock(e);
    return best;
}

static void unlink_waiting(tn_engine *e, tn_request *r, int32_t seq)
{
    tn_engine_lock(e);
    tn_request **at = &e->waiting;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    r->next = NULL;
    r->seq = seq;
    e->running[seq] = r;
    e->n_waiting--;
    e->waiting_tokens -= r->n_tokens;
    tn_engine_unlock(e);
}

int32_t tn_engine_n_running(const tn_engine *e)
{
    int32_t n = 0;
    for (int32_t q = 0; q < e->n_seq; q++) n += e->running[q] != NULL;
    return n;
}

// Whether the rest of the prompt fits besides the rest of the prompts that run, and one more block for each
// request. *idle ones of the blocks that were found are no longer available when the request has them.
static bool has_blocks(const tn_engine *e, const tn_request *r, int32_t found, int32_t idle)
{
    int32_t needed = tn_cache_blocks_of(r->n_tokens + 1) - found + idle;
    if (tn_engine_n_running(e) == 0) return true;
    for (int32_t q = 0; q < e->n_seq; q++) {
        const tn_request *other = e->running[q];
        if (!other) continue;
        int32_t rest =
            tn_cache_blocks_of(other->n_tokens + 1) - tn_cache_blocks_of(tn_session_length(e->session, q));
        needed += TN_MAX(rest, 1);
    }
    return needed <= tn_cache_n_available(&e->session->cache);
}

static void start(tn_engine *e, tn_request *r, int32_t seq)
{
    int32_t reused = tn_cache_attach(&e->session->cache, seq, r->salt, r->tokens, reusable(r));
    unlink_waiting(e, r, seq);
    tn_generation_set_sequence(r->generation, seq);
    e->stats.n_reused += (uint64_t)reused;
    e->arrived += r->n_tokens - reused;
    if (r->queue_ns == 0) r->queue_ns = TN_MAX(tn_time_ns() - r->submitted_ns, 1);
    if (tn_generation_pending(r->generation) >= 0) return; // it ran before
    r->n_reused = reused;
    e->stats.n_hits += reused > 0;
}

void tn_engine_admit(tn_engine *e)
{
    enum { MOST_SKIPPED = 64 }; // of the requests that wait for the blocks of another one, in one step
    int64_t after = INT64_MIN;
    for (int32_t skipped = 0; skipped < MOST_SKIPPED;) {
        tn_request *r = next_waiting(e, after);
        int32_t seq = free_sequence(e), idle;
        if (!r || seq < 0) return;
        int32_t found = tn_cache_find(&e->session->cache, r->salt, r->tokens, reusable(r), NULL, &idle);
        if (!has_blocks(e, r, found, idle)) return;
        after = r->order;
        if (prefix_is_coming(e, r, found))
            skipped++;
        else
            start(e, r, seq);
    }
}

// --- a running request has to wait again ---------------------------------------------------------------

static tn_status keep_tokens(tn_engine *e, tn_request *r, int32_t n)
{
    if (n > r->capacity) {
        int32_t *more = tn_alloc(e->ctx, (size_t)n * sizeof *more);
        if (!more) return TN_ERR_MEMORY;
        tn_free(e->ctx, r->tokens);
        r->tokens = more;
        r->capacity = n;
    }
    (void)tn_session_tokens(e->session, r->seq, 0, r->tokens, n);
    r->n_tokens = n;
    return TN_OK;
}

tn_status tn_engine_preempt(tn_engine *e, tn_request *r)
{
    // If the sequence is not complete yet, the request has the tokens still.
    int32_t length = tn_session_length(e->session, r->seq);
    if (length >= r->n_tokens) {
        tn_status status = keep_tokens(e, r, length);
        if (status != TN_OK) return status;
    }
    tn_cache_truncate(&e->session->cache, r->seq, 0);
    tn_engine_lock(e);
    e->running[r->seq] = NULL;
    r->seq = -1;
    r->next = e->waiting;
    e->waiting = r;
    e->n_waiting++;
    e->waiting_tokens += r->n_tokens;
    tn_engine_unlock(e);
    e->stats.n_preempted++;
    return TN_OK;
}

tn_request *tn_engine_newest(const tn_engine *e)
{
    tn_request *newest = NULL;
    for (int32_t q = 0; q < e->n_seq; q++)
        if (e->running[q] && (!newest || e->running[q]->order > newest->order)) newest = e->running[q];
    return newest;
}
