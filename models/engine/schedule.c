// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler of an engine. A pass first takes the next token of every request that continues its text,
// then pieces of prompts, oldest request first. A request that waits starts when a sequence is free and the
// cache has blocks for its prompt. If the cache becomes full, sequences of ended requests are emptied, the
// one not used for longest first; then the newest running request has to wait again, and is evaluated again
// later.
#include "models/engine/engine.h"

#include <string.h>

// --- sequences -----------------------------------------------------------------------------------------

// The free sequence that holds the longest prefix of the request, or was not used for longest; -1: none.
static int32_t free_sequence(const tn_engine *e, const tn_request *r)
{
    int32_t best = -1, best_same = 0;
    for (int32_t q = 0; q < e->n_seq; q++) {
        if (e->running[q]) continue;
        int32_t same = tn_session_common_prefix(e->session, q, r->tokens, r->n_tokens);
        bool better =
            best < 0 || same > best_same || (same == best_same && e->last_use[q] < e->last_use[best]);
        if (better) best = q, best_same = same;
    }
    return best;
}

// Empties the free sequence that was not used for longest; false: all are empty.
static bool drop_oldest(tn_engine *e)
{
    int32_t oldest = -1;
    for (int32_t q = 0; q < e->n_seq; q++)
        if (!e->running[q] && tn_session_length(e->session, q) > 0 &&
            (oldest < 0 || e->last_use[q] < e->last_use[oldest]))
            oldest = q;
    if (oldest >= 0) tn_cache_truncate(&e->session->cache, oldest, 0);
    return oldest >= 0;
}

// --- waiting and starting ------------------------------------------------------------------------------

// The longest prefix that the request shares with a running one that has not evaluated it yet. If it is worth
// a block, the request waits for it.
static bool prefix_is_coming(const tn_engine *e, const tn_request *r)
{
    for (int32_t q = 0; q < e->n_seq; q++) {
        const tn_request *other = e->running[q];
        if (!other || tn_generation_pending(other->generation) >= 0) continue;
        int32_t same = 0, most = TN_MIN(r->n_tokens - 1, other->n_tokens);
        while (same < most && r->tokens[same] == other->tokens[same]) same++;
        if (same >= tn_session_length(e->session, q) + TN_CACHE_BLOCK) return true;
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

static int32_t n_running(const tn_engine *e)
{
    int32_t n = 0;
    for (int32_t q = 0; q < e->n_seq; q++) n += e->running[q] != NULL;
    return n;
}

// Blocks that running requests hold. Sequences share blocks from the first one on, at the same places.
int32_t tn_engine_blocks_in_use(const tn_engine *e)
{
    const tn_cache *c = &e->session->cache;
    int32_t n = 0;
    for (int32_t q = 0; q < e->n_seq; q++) {
        for (int32_t i = 0; e->running[q] && i < tn_cache_blocks_of(c->seqs[q].length); i++) {
            int32_t id = c->seqs[q].blocks[i];
            bool counted = false;
            for (int32_t k = 0; k < q && c->refs[id] > 1 && !counted; k++)
                counted =
                    e->running[k] && i < tn_cache_blocks_of(c->seqs[k].length) && c->seqs[k].blocks[i] == id;
            n += !counted;
        }
    }
    return n;
}

// Whether the prompt fits besides one more block for each request that runs. What free sequences hold can be
// dropped.
static bool has_blocks(const tn_engine *e, const tn_request *r)
{
    int32_t running = n_running(e), shared = 0;
    if (running == 0) return true;
    for (int32_t q = 0; q < e->n_seq; q++)
        if (e->running[q])
            shared = TN_MAX(shared, tn_session_common_prefix(e->session, q, r->tokens, r->n_tokens - 1));
    int32_t needed = tn_cache_blocks_of(r->n_tokens + 1) - shared / TN_CACHE_BLOCK + running;
    return needed <= e->session->cache.n_blocks - tn_engine_blocks_in_use(e);
}

tn_status tn_engine_admit(tn_engine *e)
{
    int64_t after = INT64_MIN;
    for (;;) {
        tn_request *r = next_waiting(e, after);
        if (!r) return TN_OK;
        int32_t seq = free_sequence(e, r);
        if (seq < 0 || !has_blocks(e, r)) return TN_OK;
        after = r->order;
        if (prefix_is_coming(e, r)) continue;
        // The last token of a prompt is evaluated for its logits, unless a selected token follows it.
        int32_t most = r->n_tokens - (tn_generation_pending(r->generation) < 0), reused = 0;
        tn_status status = tn_session_reuse(e->session, seq, r->tokens, most, &reused);
        if (status != TN_OK) return status;
        unlink_waiting(e, r, seq);
        tn_generation_set_sequence(r->generation, seq);
        if (tn_generation_pending(r->generation) < 0) r->n_reused = reused;
        e->stats.n_reused += (uint64_t)reused;
        e->last_use[seq] = e->stats.n_steps;
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

static tn_status preempt(tn_engine *e, tn_request *r)
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

static tn_request *newest_running(const tn_engine *e)
{
    tn_request *newest = NULL;
    for (int32_t q = 0; q < e->n_seq; q++)
        if (e->running[q] && (!newest || e->running[q]->order > newest->order)) newest = e->running[q];
    return newest;
}

// --- the feeds of a pass -------------------------------------------------------------------------------

// Tokens of prompts that a pass may take besides the texts that continue: with these it takes up to three
// times as long as without. A power of two, so that plans of a small number of shapes are made.
static int32_t prompt_budget(const tn_engine *e, int32_t capacity)
{
    enum { LEAST = 16, UNKNOWN = 64 };
    if (e->n_continued == 0) return capacity;
    if (e->cfg.prompt_tokens > 0) return TN_MIN(e->cfg.prompt_tokens, capacity);
    double most = UNKNOWN;
    if (e->continue_ns > 0.0 && e->prompt_token_ns > 0.0) most = 2.0 * e->continue_ns / e->prompt_token_ns;
    int32_t budget = LEAST;
    while (budget <= capacity / 2 && 2.0 * budget <= most) budget *= 2;
    return TN_MIN(budget, capacity);
}

static void add_feed(tn_engine *e, tn_request *r, tn_feed f)
{
    e->feeds[e->n_feeds] = f;
    e->fed[e->n_feeds++] = r;
}

static void feed_continued(tn_engine *e)
{
    e->n_feeds = e->n_prompt_fed = e->n_continued = 0;
    for (int32_t q = 0; q < e->n_seq; q++) {
        tn_request *r = e->running[q];
        if (!r || tn_session_length(e->session, q) < r->n_tokens) continue;
        e->pending[q] = tn_generation_pending(r->generation);
        add_feed(e, r, (tn_feed){q, 1, &e->pending[q], TN_OUTPUT_LAST});
    }
    e->n_continued = e->n_feeds;
}

// Of the requests with an incomplete prompt, the next one behind `after`.
static tn_request *next_prompt(const tn_engine *e, int64_t after)
{
    tn_request *best = NULL;
    for (int32_t q = 0; q < e->n_seq; q++) {
        tn_request *r = e->running[q];
        if (!r || tn_session_length(e->session, q) >= r->n_tokens || r->order <= after) continue;
        if (!best || r->order < best->order) best = r;
    }
    return best;
}

static void feed_prompts(tn_engine *e)
{
    int32_t budget = prompt_budget(e, tn_session_n_batch(e->session) - e->n_continued);
    int64_t after = INT64_MIN;
    for (tn_request *r; budget > 0 && (r = next_prompt(e, after)); after = r->order) {
        int32_t at = tn_session_length(e->session, r->seq), n = TN_MIN(r->n_tokens - at, budget);
        bool last = at + n == r->n_tokens && tn_generation_pending(r->generation) < 0;
        add_feed(e, r, (tn_feed){r->seq, n, r->tokens + at, last ? TN_OUTPUT_LAST : TN_OUTPUT_NONE});
        budget -= n;
        e->n_prompt_fed += n;
    }
}

static int32_t blocks_needed(const tn_engine *e)
{
    int32_t n = 0;
    for (int32_t i = 0; i < e->n_feeds; i++)
        n += tn_cache_blocks_for(&e->session->cache, e->feeds[i].seq, e->feeds[i].n_tokens);
    return n;
}

tn_status tn_engine_compose(tn_engine *e)
{
    static const tn_piece full = {.token = -1, .text = "", .stop = TN_STOP_CONTEXT};
    for (;;) {
        feed_continued(e);
        feed_prompts(e);
        if (blocks_needed(e) <= e->session->cache.n_free) return TN_OK;
        if (drop_oldest(e)) continue;
        tn_request *r = newest_running(e);
        if (n_running(e) == 1) {
            tn_engine_end(e, r, &full, TN_OK);
            continue;
        }
        tn_status status = preempt(e, r);
        if (status != TN_OK) return status;
    }
}
