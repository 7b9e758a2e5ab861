// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The feeds of a pass: the next token of every request that continues its text, and pieces of prompts.
//
// How many tokens of prompts a pass takes is a choice between the sizes that passes have, by what they were
// measured to take (costs.h). A token of a prompt costs twofold: the pass takes longer, and while it runs
// those whose prompts are not complete continue no text. The size with the lowest cost for a token is taken,
// as long as the pass does not stall the others. Large pieces are cheaper, because a pass that reads all
// weights costs little more for some more rows; so a small prompt may wait some passes for others.
//
// The pieces go to the prompts with the fewest tokens left, so that short ones do not wait behind long ones.
// A part of each pass is the oldest prompt's, so that none starves.
#include "models/engine/engine.h"

// --- the prompts ---------------------------------------------------------------------------------------

static int64_t tokens_left(const tn_engine *e, const tn_request *r)
{
    return r->n_tokens - tn_session_length(e->session, r->seq);
}

// Those that are not complete: the fewest tokens left first, then the oldest.
static void list_prompts(tn_engine *e)
{
    e->n_prompts = e->oldest_prompt = 0;
    e->prompt_tokens = 0;
    for (int32_t q = 0; q < e->n_seq; q++) {
        tn_request *r = e->running[q];
        if (!r || tokens_left(e, r) <= 0) continue;
        int32_t at = tn_session_length(e->session, q), stop = tn_engine_last_block_end(r), i = e->n_prompts++;
        int32_t most = tn_session_has_states(e->session) && at < stop ? stop - at : r->n_tokens - at;
        for (; i > 0; i--) {
            const tn_request *other = e->prompts[i - 1].request;
            int64_t more = tokens_left(e, other) - tokens_left(e, r);
            if (more < 0 || (more == 0 && other->order < r->order)) break;
            e->prompts[i] = e->prompts[i - 1];
        }
        e->prompts[i] = (tn_prompt){.request = r, .at = at, .most = most};
        e->prompt_tokens += most;
    }
    for (int32_t i = 1; i < e->n_prompts; i++)
        if (e->prompts[i].request->order < e->prompts[e->oldest_prompt].request->order) e->oldest_prompt = i;
}

// Divides so many tokens among the prompts. *added: sequences that fill up the pass.
static tn_pass_size divide(tn_engine *e, int32_t budget, int32_t *added)
{
    enum { OLDEST_PART = 4 };  // of the tokens one in four at least is the oldest prompt's
    enum { QUERY_TILE = 128 }; // attention of fewer tokens takes about as long as of these
    tn_prompt *oldest = &e->prompts[e->oldest_prompt];
    int32_t kept = TN_MIN(TN_MAX(budget / OLDEST_PART, 1), oldest->most), left = budget - kept, n_seq = 0;
    tn_pass_size pass = {.n_continued = e->n_continued};
    for (int32_t i = 0; i < e->n_prompts; i++) {
        tn_prompt *p = &e->prompts[i];
        int32_t own = p == oldest ? kept : 0, more = TN_MIN(p->most - own, left);
        p->n = own + more;
        left -= more;
        n_seq += p->n > 0;
        pass.n_prompt += p->n;
        if (p->n > 0) pass.pairs += (double)TN_MAX(p->n, QUERY_TILE) * (p->at + 0.5 * p->n);
    }
    pass.rows = e->n_continued + pass.n_prompt;
    n_seq += e->n_continued;
    *added = -n_seq;
    (void)tn_session_padded(e->session, &pass.rows, &n_seq);
    *added += n_seq;
    return pass;
}

// --- how many tokens of them ---------------------------------------------------------------------------

// A pass keeps so much below the longest that is allowed, because not every pass takes the mean. One of a
// size that was not measured yet may take all.
static const double MEASURED_PART = 0.93;
// How much more the time of those counts who wait for their first token.
static const double WAITING_WEIGHT = 2.0;

// Divides as many tokens as a pass of so many rows holds. Sequences that fill up the pass need rows too.
static tn_pass_size divide_rows(tn_engine *e, int32_t rows, int32_t capacity)
{
    tn_pass_size pass = {.n_continued = e->n_continued};
    int32_t budget = TN_MIN(rows - e->n_continued, capacity), added;
    for (int32_t tries = 0; budget > 0 && tries < 3; tries++) {
        pass = divide(e, budget, &added);
        if (pass.rows <= rows) break;
        budget = rows - e->n_continued - added;
    }
    return pass;
}

// What a token of a prompt costs in a pass that takes ns: see above.
static double cost_of_token(const tn_engine *e, const tn_pass_size *pass, double ns, double plain)
{
    double waiting = WAITING_WEIGHT * e->n_prompts * ns / (e->n_continued + e->n_prompts);
    return (TN_MAX(ns - plain, 0.0) + waiting) / pass->n_prompt;
}

static bool fills_up(const tn_engine *e)
{
    return e->session->pads && !tn_session_has_states(e->session);
}

static int32_t next_rows(const tn_engine *e, int32_t rows)
{
    // Where passes are not filled up a row is a row; powers of two, so that plans come again.
    return fills_up(e) ? tn_session_size_above(e->session, rows)
                       : e->n_continued + 2 * (rows - e->n_continued);
}

// Whether it is cheaper to leave all prompts, which a pass of this size takes and which then takes ns, to a
// later pass: with those that are likely to arrive until then they fill a larger one.
static bool should_hold(const tn_engine *e, const tn_pass_size *now, double ns, double plain, double longest)
{
    int32_t n = e->n_continued + e->n_prompts, rows = now->rows;
    if (now->n_prompt < e->prompt_tokens || e->arrival <= 0.0) return false;
    if (e->n_held >= TN_ENGINE_MOST_HELD) return false;
    while (rows < e->session->cfg.n_batch) {
        double later_ns;
        rows = next_rows(e, rows);
        tn_pass_size later = {e->n_continued, rows - e->n_continued, rows, now->pairs};
        if (tn_costs_mixed(&e->costs, &later, &later_ns) != TN_COST_MEASURED || later_ns > longest) continue;
        double passes = (later.n_prompt - now->n_prompt) / e->arrival + 1.0;
        if (passes > TN_ENGINE_MOST_HELD) return false;
        double saved = (ns - plain) - now->n_prompt * (later_ns - plain) / later.n_prompt;
        if (saved > passes * WAITING_WEIGHT * e->n_prompts * plain / n) return true;
    }
    return false;
}

static int32_t first_rows(const tn_engine *e)
{
    // Where passes are filled up to 16 rows anyway, 8 of them are worth it; elsewhere 4 tokens cost little.
    int32_t least = fills_up(e) ? 8 : 4, rows = e->n_continued + (int32_t)TN_MIN(least, e->prompt_tokens);
    return fills_up(e) ? tn_session_size_above(e->session, rows - 1) : rows;
}

// Of the sizes whose passes take up to `longest`, the one with the lowest cost for a token; what it takes is
// *ns. Without any of them the smallest size, and *ns is 0: something has to be taken. *shortest: what a pass
// with prompts takes at least.
static int32_t best_rows(tn_engine *e, int32_t capacity, double longest, double *ns, double *shortest)
{
    double plain = tn_costs_plain(&e->costs, e->n_continued), best = 0.0;
    int32_t chosen = 0;
    *ns = *shortest = 0.0;
    for (int32_t rows = first_rows(e);; rows = next_rows(e, rows)) {
        double now = 0.0;
        tn_pass_size pass = divide_rows(e, rows, capacity);
        bool fits = pass.n_prompt > 0 && pass.rows <= rows;
        tn_cost_source source = tn_costs_mixed(&e->costs, &pass, &now);
        if (fits && chosen == 0) chosen = rows;
        if (fits && source != TN_COST_UNKNOWN) {
            double cost = cost_of_token(e, &pass, now, plain);
            bool allowed = now <= (source == TN_COST_MEASURED ? MEASURED_PART * longest : longest);
            if (*shortest <= 0.0 || now < *shortest) *shortest = now;
            if (allowed && (best <= 0.0 || cost < best)) chosen = rows, best = cost, *ns = now;
        }
        if (pass.n_prompt >= TN_MIN(e->prompt_tokens, capacity) || rows >= e->session->cfg.n_batch) break;
    }
    return chosen;
}

// The prompts are divided for the size that is chosen.
static tn_pass_size choose_size(tn_engine *e, int32_t capacity)
{
    // If even the shortest pass with prompts is too long, one that takes little more may take many tokens.
    static const double LITTLE_MORE = 1.25;
    double plain = tn_costs_plain(&e->costs, e->n_continued), ns, shortest;
    double longest = e->cfg.gap_limit * TN_MAX(plain, e->costs.median_ns);
    int32_t rows = best_rows(e, capacity, longest, &ns, &shortest);
    if (ns <= 0.0 && shortest > MEASURED_PART * longest) {
        longest = LITTLE_MORE * shortest / MEASURED_PART;
        rows = best_rows(e, capacity, longest, &ns, &shortest);
    }
    tn_pass_size pass = {.n_continued = e->n_continued};
    if (rows == 0) return pass;
    pass = divide_rows(e, rows, capacity);
    if (ns > 0.0 && should_hold(e, &pass, ns, plain, MEASURED_PART * longest)) pass.n_prompt = 0;
    return pass;
}

static void size_pass(tn_engine *e, int32_t capacity)
{
    int32_t added;
    e->pass = (tn_pass_size){.n_continued = e->n_continued, .rows = e->n_continued};
    if (e->n_prompts == 0 || capacity <= 0) return;
    if (e->n_continued == 0)
        e->pass = divide(e, capacity, &added);
    else if (e->cfg.prompt_tokens > 0)
        e->pass = divide(e, TN_MIN(e->cfg.prompt_tokens, capacity), &added);
    else if (!tn_costs_are_old(&e->costs, e->n_continued))
        e->pass = choose_size(e, capacity);
}

// --- the feeds -----------------------------------------------------------------------------------------

static void add_feed(tn_engine *e, tn_request *r, tn_feed f)
{
    e->feeds[e->n_feeds] = f;
    e->fed[e->n_feeds++] = r;
}

static void feed_continued(tn_engine *e)
{
    e->n_feeds = e->n_continued = 0;
    for (int32_t q = 0; q < e->n_seq; q++) {
        tn_request *r = e->running[q];
        if (!r || tokens_left(e, r) > 0) continue;
        int32_t token = tn_generation_pending(r->generation);
        if (token < 0 && !tn_generation_peek(r->generation, &token)) continue;
        if (token < 0) continue; // the text ends here
        e->pending[q] = token;
        add_feed(e, r, (tn_feed){sizeof(tn_feed), q, 1, &e->pending[q], TN_OUTPUT_LAST, 0});
    }
    e->n_continued = e->n_feeds;
}

static void feed_prompts(tn_engine *e)
{
    list_prompts(e);
    size_pass(e, tn_session_n_batch(e->session) - e->n_continued);
    for (int32_t i = 0; e->pass.n_prompt > 0 && i < e->n_prompts; i++) {
        const tn_prompt *p = &e->prompts[i];
        tn_request *r = p->request;
        if (p->n == 0) continue;
        bool last = p->at + p->n == r->n_tokens && tn_generation_pending(r->generation) < 0;
        int32_t outputs = last ? TN_OUTPUT_LAST : TN_OUTPUT_NONE;
        add_feed(e, r, (tn_feed){sizeof(tn_feed), r->seq, p->n, r->tokens + p->at, outputs, 0});
    }
}

static int32_t blocks_needed(const tn_engine *e)
{
    int32_t n = 0;
    for (int32_t i = 0; i < e->n_feeds; i++)
        n += tn_cache_blocks_for(&e->session->cache, e->feeds[i].seq, e->feeds[i].n_tokens);
    return n;
}

bool tn_engine_compose_ahead(tn_engine *e)
{
    feed_continued(e);
    feed_prompts(e);
    return blocks_needed(e) <= tn_cache_n_available(&e->session->cache);
}

tn_status tn_engine_compose(tn_engine *e)
{
    static const tn_piece full = {.token = -1, .text = "", .stop = TN_STOP_CONTEXT};
    for (;;) {
        if (tn_engine_compose_ahead(e)) return TN_OK;
        tn_request *r = tn_engine_newest(e);
        if (tn_engine_n_running(e) == 1) {
            tn_engine_end(e, r, &full, TN_OK);
            continue;
        }
        tn_status status = tn_engine_preempt(e, r);
        if (status != TN_OK) return status;
    }
}
