// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler of an engine. A pass first takes the next token of every request that continues its text,
// then pieces of prompts, oldest request first. A request that waits starts when a sequence is free and the
// cache has blocks for its prompt, less those that hold a part of it already. If the cache becomes full, the
// newest running request has to wait again. Its blocks can be found until others need them, so that often
// little of it is evaluated twice.
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

// Where a pass over the prompt ends so that recurrent states exist behind its last full block.
static int32_t last_block_end(const tn_request *r)
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
        if (tn_session_has_states(e->session) && same < last_block_end(other)) continue;
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

static int32_t n_running(const tn_engine *e)
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
    if (n_running(e) == 0) return true;
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

// Under load there are always prompts, so that no pass would be without them by itself. One in 33 is, and one
// when the texts that continue have doubled: what they take alone decides how much of a prompt fits.
static bool should_measure(const tn_engine *e)
{
    enum { MIXED_MOST = 32 };
    return e->n_mixed >= MIXED_MOST || e->n_continued >= 2 * e->n_measured;
}

// Tokens of prompts that a pass may take besides the texts that continue: with these it takes up to three
// times as long as without. What a pass with prompts costs besides their tokens counts as theirs, so larger
// pieces follow from smaller ones until that is reached. A small number of sizes occurs: steps that a device
// fills up, or else powers of two.
static int32_t prompt_budget(const tn_engine *e, int32_t capacity)
{
    // Devices fill a pass up to 16 tokens anyway; where sequences are not filled up, 4 tokens cost little.
    enum { LEAST_PADDED = 16, LEAST = 4 };
    if (e->n_continued == 0) return capacity;
    if (e->cfg.prompt_tokens > 0) return TN_MIN(e->cfg.prompt_tokens, capacity);
    if (should_measure(e)) return 0;
    // Before both were measured a pass stays as short as it can be.
    double most = e->prompt_token_ns > 0.0 ? 2.0 * e->continue_ns / e->prompt_token_ns : 0.0;
    if (!e->session->pads) {
        int32_t budget = LEAST;
        while (budget <= capacity / 2 && 2.0 * budget <= most) budget *= 2;
        return TN_MIN(budget, capacity);
    }
    int32_t budget = TN_MIN(most < capacity ? TN_MAX((int32_t)most, LEAST_PADDED) : capacity, capacity),
            fits = tn_session_bucket_below(e->session, e->n_continued + budget);
    return fits > e->n_continued ? fits - e->n_continued : budget;
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
        add_feed(e, r, (tn_feed){sizeof(tn_feed), q, 1, &e->pending[q], TN_OUTPUT_LAST, 0});
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
        int32_t stop = tn_session_has_states(e->session) ? last_block_end(r) : 0;
        if (at < stop) n = TN_MIN(n, stop - at);
        bool last = at + n == r->n_tokens && tn_generation_pending(r->generation) < 0;
        int32_t outputs = last ? TN_OUTPUT_LAST : TN_OUTPUT_NONE;
        add_feed(e, r, (tn_feed){sizeof(tn_feed), r->seq, n, r->tokens + at, outputs, 0});
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
        if (blocks_needed(e) <= tn_cache_n_available(&e->session->cache)) return TN_OK;
        tn_request *r = newest_running(e);
        if (n_running(e) == 1) {
            tn_engine_end(e, r, &full, TN_OK);
            continue;
        }
        tn_status status = preempt(e, r);
        if (status != TN_OK) return status;
    }
}
