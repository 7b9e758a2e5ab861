// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One step of an engine: requests come and go, one pass evaluates tokens of many, each selects its next
// token.
//
// Where a device evaluates, a step returns while its pass runs, and gives the events of the pass before:
//
//     wait for the pass, whose tokens the device has selected  ->  compose and launch the next one
//     ->  texts, stop strings, grammars and events  ->  how the next tokens are to be selected
//
// so that the device waits for the first line only. A text that turns out to end there has a token in the
// pass that was launched; its sequence is given back, and the row is not read. Where a token is not known
// before its text (banned texts, samplers that need the logits on the host), where cutting a sequence costs a
// pass (recurrent states, windows), and where blocks are short, the texts come before the next pass.
#include "models/engine/engine.h"

// ns: of the whole pass with the selection of tokens, which is what a text waits for. A pass that made its
// plan says nothing about the next one.
static void measure(tn_engine *e, uint64_t ns, bool made_plan)
{
    static const double WEIGHT = 0.06; // of the last pass among those that prompts arrived in
    e->arrival += WEIGHT * ((double)e->arrived - e->arrival);
    e->arrived = 0;
    e->n_held = e->n_prompts > 0 && e->pass.n_prompt == 0 ? e->n_held + 1 : 0;
    if (made_plan)
        tn_costs_skip(&e->costs, &e->pass);
    else
        tn_costs_add(&e->costs, &e->pass, (double)ns);
}

// What was evaluated; each request with an output row is given it. One whose row cannot be read ends.
static void give_rows(tn_engine *e)
{
    static const tn_piece none = {.token = -1, .text = "", .stop = TN_STOP_NONE};
    int32_t row = 0;
    e->n_selecting = 0;
    for (int32_t i = 0; i < e->n_feeds; i++) {
        tn_request *r = e->fed[i];
        bool wanted = e->feeds[i].outputs != TN_OUTPUT_NONE;
        row += wanted;
        if (i >= e->n_continued) e->stats.n_prompt += (uint64_t)e->feeds[i].n_tokens;
        if (r && i < e->n_continued) r->n_tokens++;
        if (!r || !wanted) continue;
        tn_status status = tn_generation_evaluated(r->generation, row - 1);
        if (status != TN_OK)
            tn_engine_end(e, r, &none, status);
        else
            e->selecting[e->n_selecting++] = r;
    }
}

// --- what is done while the device makes the logits ---------------------------------------------------

static void make_masks(void *arg, int32_t task, int32_t n_tasks)
{
    tn_engine *e = arg;
    TN_UNUSED(task);
    TN_UNUSED(n_tasks);
    for (;;) {
        // Relaxed, as in select_tokens.
        int32_t i = atomic_fetch_add_explicit(&e->next_row, 1, memory_order_relaxed);
        if (i >= e->n_masked) return;
        tn_generation_mask(e->fed[e->masked[2 * i]]->generation, e->masked[2 * i + 1]);
    }
}

// How the device chooses from each output row. Grammars are asked here for the tokens that they allow.
static void describe_rows(void *user)
{
    tn_engine *e = user;
    int32_t row = 0;
    e->n_masked = 0;
    for (int32_t i = 0; i < e->n_feeds; i++) {
        bool masked;
        if (e->feeds[i].outputs == TN_OUTPUT_NONE) continue;
        masked = false;
        if (e->fed[i]) tn_generation_describe(e->fed[i]->generation, row, &masked);
        if (masked) {
            e->masked[2 * e->n_masked] = i;
            e->masked[2 * e->n_masked++ + 1] = row;
        }
        row++;
    }
    atomic_store_explicit(&e->next_row, 0, memory_order_relaxed);
    if (e->n_masked == 0) return;
    tn_status status = tn_parallel(e->ctx, TN_MIN(e->n_masked, tn_context_n_threads(e->ctx)), make_masks, e);
    if (status != TN_OK) make_masks(e, 0, 1); // without the threads that could not be started
}

// --- selecting -----------------------------------------------------------------------------------------

// Each thread takes the next request that has a row, until none is left.
static void select_tokens(void *arg, int32_t task, int32_t n_tasks)
{
    tn_engine *e = arg;
    TN_UNUSED(task);
    TN_UNUSED(n_tasks);
    for (;;) {
        // Relaxed: a counter; the end of the parallel run orders what was written.
        int32_t i = atomic_fetch_add_explicit(&e->next_row, 1, memory_order_relaxed);
        if (i >= e->n_selecting) return;
        tn_request *r = e->selecting[i];
        if (!r || tn_generation_evaluates(r->generation)) continue;
        e->pieces[i] =
            (tn_piece){.struct_size = sizeof(tn_piece), .token = -1, .text = "", .stop = TN_STOP_NONE};
        e->statuses[i] = tn_generation_step(r->generation, &e->pieces[i]);
        if (e->statuses[i] != TN_OK) (void)tn_context_error(e->ctx, r->message, sizeof r->message);
    }
}

// Logits that are needed are read here; on the threads below they are only looked up. If a row cannot be
// read, its request fails where it looks.
static int32_t selecting_threads(tn_engine *e)
{
    int32_t n = 0, n_rows = tn_session_n_outputs(e->session);
    for (int32_t i = 0; i < e->n_selecting; i++)
        n += e->selecting[i] && tn_generation_reads_logits(e->selecting[i]->generation);
    if (n == n_rows)
        return n < 2 || !tn_session_logits(e->session, 0) ? 1 : TN_MIN(n, tn_context_n_threads(e->ctx));
    for (int32_t i = 0; i < e->n_selecting; i++) {
        tn_request *r = e->selecting[i];
        if (!r || !tn_generation_reads_logits(r->generation)) continue;
        if (tn_session_read_row(e->session, tn_generation_row(r->generation)) != TN_OK) return 1;
    }
    return TN_MIN(TN_MAX(n, 1), tn_context_n_threads(e->ctx));
}

static void give_piece(tn_engine *e, tn_request *r, const tn_piece *piece, tn_status status, bool sampled)
{
    bool selected = status == TN_OK && piece->token >= 0;
    e->stats.n_generated += selected;
    e->stats.n_sampled += selected && sampled;
    if (status != TN_OK || piece->stop != TN_STOP_NONE) {
        tn_engine_end(e, r, piece, status);
        return;
    }
    // Going back from a banned text shortens the sequence.
    r->n_tokens = tn_generation_length(r->generation);
    (void)tn_engine_add_event(e, r, piece, TN_OK);
}

// Every request that has a row of the last pass selects its token and is given an event.
static void select_all(tn_engine *e)
{
    uint64_t begin = tn_span_begin(e->ctx);
    atomic_store_explicit(&e->next_row, 0, memory_order_relaxed);
    tn_status status = tn_parallel(e->ctx, selecting_threads(e), select_tokens, e);
    if (status != TN_OK) select_tokens(e, 0, 1); // without the threads that could not be started
    // Those that may run passes of their own come last, because these replace the rows of the others.
    for (int32_t i = 0; i < e->n_selecting; i++) {
        tn_request *r = e->selecting[i];
        if (!r) continue;
        bool sampled = !tn_generation_reads_logits(r->generation);
        if (tn_generation_evaluates(r->generation)) {
            sampled = false;
            e->pieces[i] =
                (tn_piece){.struct_size = sizeof(tn_piece), .token = -1, .text = "", .stop = TN_STOP_NONE};
            e->statuses[i] = tn_generation_step(r->generation, &e->pieces[i]);
        }
        give_piece(e, r, &e->pieces[i], e->statuses[i], sampled);
    }
    if (e->n_selecting > 0) tn_span_end(e->ctx, TN_SPAN_SAMPLE, "select tokens", begin, e->n_selecting);
    e->n_selecting = 0;
}

// --- passes --------------------------------------------------------------------------------------------

// What the next pass evaluates.
static tn_status compose(tn_engine *e)
{
    uint64_t begin = tn_span_begin(e->ctx);
    tn_engine_admit(e);
    tn_status status = tn_engine_compose(e);
    tn_span_end(e->ctx, TN_SPAN_RUN, "compose a pass", begin, e->n_feeds);
    return status;
}

// On the processor.
static tn_status run_pass(tn_engine *e)
{
    tn_status status = compose(e);
    uint64_t start = tn_time_ns(), n_plans = e->session->n_plans;
    if (status != TN_OK || e->n_feeds == 0) return status;
    status = tn_session_eval(e->session, e->feeds, e->n_feeds);
    if (status != TN_OK) return status;
    e->stats.n_steps++;
    give_rows(e);
    select_all(e);
    measure(e, tn_time_ns() - start, e->session->n_plans > n_plans);
    return TN_OK;
}

// Waits for the pass that the step before has launched. Nothing of it is given to the requests yet.
static tn_status collect_pass(tn_engine *e)
{
    uint64_t start = tn_time_ns();
    tn_status status = tn_session_collect(e->session);
    e->launched = false;
    if (status == TN_OK) {
        e->stats.n_steps++;
        measure(e, e->launch_ns + (tn_time_ns() - start), e->session->n_plans > e->n_plans);
        return TN_OK;
    }
    // Their sequences are what they were; the next pass is given the same tokens.
    for (int32_t i = 0; i < e->n_feeds; i++)
        if (e->fed[i]) tn_generation_set_ahead(e->fed[i]->generation, false);
    e->n_feeds = 0;
    return status;
}

static tn_status launch_pass(tn_engine *e)
{
    e->n_plans = e->session->n_plans;
    tn_status status = tn_session_launch(e->session, e->feeds, e->n_feeds);
    e->launched = status == TN_OK;
    for (int32_t i = 0; i < e->n_continued && e->launched; i++)
        tn_generation_set_ahead(e->fed[i]->generation, true);
    return status;
}

// Whether every token of the last pass is known before its text is made.
static bool may_go_ahead(const tn_engine *e)
{
    int32_t token;
    if (tn_session_has_states(e->session) || tn_cache_has_window(&e->session->cache)) return false;
    for (int32_t i = 0; i < e->n_selecting; i++)
        if (e->selecting[i] && !tn_generation_peek(e->selecting[i]->generation, &token)) return false;
    return e->n_selecting > 0;
}

// On a device: the next pass is launched, and the last one becomes texts.
static tn_status overlap_passes(tn_engine *e)
{
    bool ahead = may_go_ahead(e);
    tn_status status = TN_OK;
    if (ahead) {
        uint64_t begin = tn_span_begin(e->ctx);
        tn_engine_admit(e);
        ahead = tn_engine_compose_ahead(e);
        tn_span_end(e->ctx, TN_SPAN_RUN, "compose a pass ahead", begin, e->n_feeds);
    }
    if (!ahead) {
        select_all(e);
        status = compose(e);
    }
    uint64_t start = tn_time_ns();
    if (status == TN_OK && e->n_feeds > 0) status = launch_pass(e);
    if (ahead) select_all(e);
    if (!e->launched) return status;
    // Passes that generations run themselves have other rows.
    e->session->sampling.describe = tn_session_samples(e->session) ? describe_rows : NULL;
    e->session->sampling.user = e;
    tn_session_sample_launched(e->session);
    e->session->sampling.describe = NULL;
    e->launch_ns = tn_time_ns() - start;
    return TN_OK;
}

static void publish_stats(tn_engine *e)
{
    const tn_cache *c = &e->session->cache;
    e->stats.n_blocks = c->all.n_blocks;
    e->stats.n_free = tn_cache_n_available(c);
    e->stats.n_cached = tn_cache_n_idle(c);
    e->stats.n_plans = e->session->n_plans;
    e->stats.n_evicted = tn_cache_n_evicted(c);
    tn_cache_host_stats host = tn_cache_host_stats_of(c);
    e->stats.n_host = host.n_blocks;
    e->stats.n_host_saved = host.n_saved;
    e->stats.n_host_loaded = host.n_loaded;
    tn_engine_lock(e);
    e->published = e->stats;
    tn_engine_unlock(e);
}

tn_status tn_engine_run_step(tn_engine *e)
{
    uint64_t start = tn_time_ns(), waited = e->session->wait_ns, begin = tn_span_begin(e->ctx);
    bool collects = e->launched;
    tn_status status = collects ? collect_pass(e) : TN_OK;
    tn_engine_end_cancelled(e);
    if (collects && status == TN_OK) give_rows(e);
    if (status == TN_OK) status = e->overlaps ? overlap_passes(e) : run_pass(e);
    bool ran = collects || (!e->overlaps && e->n_feeds > 0);
    if (ran && e->session->n_plans == e->stats.n_plans) {
        e->stats.n_timed++;
        e->stats.step_ns += tn_time_ns() - start;
        e->stats.wait_ns += e->session->wait_ns - waited;
    }
    publish_stats(e);
    tn_span_end(e->ctx, TN_SPAN_RUN, "step of an engine", begin, e->n_feeds);
    return status;
}

tn_status tn_engine_step(tn_engine *e, const tn_engine_event *const **events, int32_t *n)
{
    TN_NEED(NULL, e);
    TN_NEED(e->ctx, events);
    TN_NEED(e->ctx, n);
    *n = 0;
    if (e->thread) return tn_fail(e->ctx, TN_ERR_STATE, "engine: its own thread steps; call tn_engine_take");
    // A thread that was stopped may have left events, which a pass would replace.
    tn_status status = e->keeps_events ? TN_OK : tn_engine_run_step(e);
    int32_t n_ended = 0;
    e->keeps_events = false;
    for (int32_t i = 0; i < e->n_events; i++) n_ended += tn_engine_note_ends(&e->events[i]);
    tn_engine_lock(e);
    e->n_pending -= n_ended;
    tn_engine_unlock(e);
    tn_engine_list_events(e->events, e->n_events, e->event_list);
    *events = e->event_list;
    *n = e->n_events;
    return status;
}
