// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One step of an engine: requests come and go, one pass evaluates tokens of many, each selects its next
// token.
#include "models/run/engine.h"

// The share of the latest measurement in the running averages.
static const double WEIGHT = 0.2;

static void average(double *value, double now)
{
    *value = *value > 0.0 ? (1.0 - WEIGHT) * *value + WEIGHT * now : now;
}

static void measure(tn_engine *e, uint64_t ns)
{
    if (e->n_prompt_fed == 0) {
        average(&e->continue_ns, (double)ns);
        return;
    }
    double rest = (double)ns - (e->n_continued > 0 ? e->continue_ns : 0.0);
    if (rest > 0.0) average(&e->prompt_token_ns, rest / e->n_prompt_fed);
}

// What was evaluated; each request with an output row is given it. One whose row cannot be read ends.
static void give_rows(tn_engine *e)
{
    static const tn_piece none = {.token = -1, .text = "", .stop = TN_STOP_NONE};
    int32_t row = 0;
    for (int32_t i = 0; i < e->n_feeds; i++) {
        tn_request *r = e->fed[i];
        e->last_use[r->seq] = e->stats.n_steps;
        if (i < e->n_continued)
            r->n_tokens++;
        else
            e->stats.n_prompt += (uint64_t)e->feeds[i].n_tokens;
        bool wanted = e->feeds[i].outputs != TN_OUTPUT_NONE;
        tn_status status = wanted ? tn_generation_evaluated(r->generation, row++) : TN_OK;
        if (status != TN_OK) tn_engine_end(e, r, &none, status);
        if (!wanted || status != TN_OK) e->fed[i] = NULL;
    }
}

// The request selects its next token.
static void select_token(tn_engine *e, tn_request *r)
{
    tn_piece piece = {.token = -1, .text = "", .stop = TN_STOP_NONE};
    tn_status status = tn_generation_step(r->generation, &piece);
    e->stats.n_generated += status == TN_OK && piece.token >= 0;
    if (status != TN_OK || piece.stop != TN_STOP_NONE) {
        tn_engine_end(e, r, &piece, status);
        return;
    }
    // Going back from a banned text shortens the sequence.
    r->n_tokens = tn_session_length(e->session, r->seq);
    tn_engine_event *event = &e->events[e->n_events++];
    *event = (tn_engine_event){.id = r->id, .user = r->user, .piece = piece};
    tn_generation_stats_get(r->generation, &event->stats);
    event->stats.n_reused = r->n_reused;
}

static tn_status run_pass(tn_engine *e)
{
    uint64_t start = tn_time_ns();
    tn_status status = tn_session_eval(e->session, e->feeds, e->n_feeds);
    if (status != TN_OK) return status;
    e->stats.n_steps++;
    give_rows(e);
    measure(e, tn_time_ns() - start);
    // Those that may run passes of their own come last, because these replace the rows of the others.
    for (int32_t own = 0; own < 2; own++)
        for (int32_t i = 0; i < e->n_feeds; i++)
            if (e->fed[i] && tn_generation_evaluates(e->fed[i]->generation) == (own == 1))
                select_token(e, e->fed[i]);
    return TN_OK;
}

tn_status tn_engine_step(tn_engine *e, const tn_engine_event **events, int32_t *n)
{
    tn_engine_end_cancelled(e);
    tn_status status = tn_engine_admit(e);
    if (status == TN_OK) status = tn_engine_compose(e);
    if (status == TN_OK && e->n_feeds > 0) status = run_pass(e);
    *events = e->events;
    *n = e->n_events;
    return status;
}
