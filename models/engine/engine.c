// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Engines: creation, submitting and cancelling requests.
#include "models/engine/engine.h"

#include "models/model.h"

#include <string.h>

enum {
    DEFAULT_SEQUENCES = 8,
    MAX_SEQUENCES = 256, // of a session
    DEFAULT_WAITING = 256,
    MAX_WAITING = 65536,
    MAX_PROMPT_TOKENS = 65536,
    MAX_PRIORITY = 1000,
    PLACES_PER_PRIORITY = 16,
};

static const double LEAST_GAP_LIMIT = 1.25, MOST_GAP_LIMIT = 1e6;

void tn_engine_config_init(tn_engine_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_engine_config, cfg, struct_size,
                   {.n_waiting = DEFAULT_WAITING, .waiting_tokens = 1 << 24, .gap_limit = 3.0});
}

void tn_request_config_init(tn_request_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_request_config, cfg, struct_size, {.n_tokens = 0});
}

// --- creation ------------------------------------------------------------------------------------------

static tn_status read_config(tn_context *ctx, const tn_engine_config *given, tn_engine_config *c)
{
    tn_engine_config_default(c);
    tn_status status = TN_STRUCT_READ(ctx, tn_engine_config, given, c);
    if (status != TN_OK) return status;
    if (c->n_waiting < 1 || c->n_waiting > MAX_WAITING)
        return tn_fail(ctx, TN_ERR_ARG, "engine: n_waiting is %d, must be 1 to %d", c->n_waiting,
                       MAX_WAITING);
    if (c->waiting_tokens < 1)
        return tn_fail(ctx, TN_ERR_ARG, "engine: waiting_tokens is %lld, must be at least 1",
                       (long long)c->waiting_tokens);
    if (c->prompt_tokens < 0 || c->prompt_tokens > MAX_PROMPT_TOKENS)
        return tn_fail(ctx, TN_ERR_ARG, "engine: prompt_tokens is %d, must be 0 to %d", c->prompt_tokens,
                       MAX_PROMPT_TOKENS);
    if (!(c->gap_limit >= LEAST_GAP_LIMIT && c->gap_limit <= MOST_GAP_LIMIT))
        return tn_fail(ctx, TN_ERR_ARG, "engine: gap_limit is %g, must be %g to %g", c->gap_limit,
                       LEAST_GAP_LIMIT, MOST_GAP_LIMIT);
    return TN_OK;
}

static tn_status make_arrays(tn_engine *e)
{
    size_t n = (size_t)e->n_seq;
    e->max_events = 2 * e->n_seq;
    e->running = tn_calloc(e->ctx, n, sizeof *e->running);
    e->feeds = tn_calloc(e->ctx, n, sizeof *e->feeds);
    e->fed = tn_calloc(e->ctx, n, sizeof *e->fed);
    e->prompts = tn_calloc(e->ctx, n, sizeof *e->prompts);
    e->pending = tn_calloc(e->ctx, n, sizeof *e->pending);
    e->events = tn_calloc(e->ctx, 2 * n, sizeof *e->events);
    e->event_list = tn_calloc(e->ctx, 2 * n, sizeof *e->event_list);
    e->selecting = tn_calloc(e->ctx, n, sizeof *e->selecting);
    e->pieces = tn_calloc(e->ctx, n, sizeof *e->pieces);
    e->masked = tn_calloc(e->ctx, 2 * n, sizeof *e->masked);
    e->statuses = tn_calloc(e->ctx, n, sizeof *e->statuses);
    bool all = e->running && e->feeds && e->fed && e->prompts && e->pending && e->events && e->event_list;
    return all && e->selecting && e->pieces && e->statuses && e->masked ? TN_OK : TN_ERR_MEMORY;
}

// Where a new plan costs more than some rows: on devices that capture their steps.
static bool fills_steps_up(const tn_model *model)
{
    return model->device && !model->device->host_memory;
}

// The session of an engine. The sequence that fills steps up needs a place besides all others.
static tn_status read_session(const tn_model *model, const tn_engine_config *cfg, tn_session_config *session,
                              int32_t *n_seq)
{
    tn_session_config_default(session);
    session->n_seq = DEFAULT_SEQUENCES;
    tn_status status = TN_STRUCT_READ(model->ctx, tn_session_config, cfg->session, session);
    *n_seq = session->n_seq;
    if (fills_steps_up(model) && session->n_seq > 0 && session->n_seq < MAX_SEQUENCES) session->n_seq++;
    return status;
}

tn_status tn_engine_predict(tn_model *model, const tn_engine_config *cfg, tn_session_memory *out)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), out);
    tn_engine_config read;
    tn_session_config session;
    int32_t n_seq;
    tn_status status = read_config(model->ctx, cfg, &read);
    if (status == TN_OK) status = read_session(model, &read, &session, &n_seq);
    return status == TN_OK ? tn_session_predict(model, &session, out) : status;
}

tn_status tn_engine_create(tn_model *model, const tn_engine_config *cfg, tn_engine **out)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), out);
    tn_context *ctx = tn_model_context(model);
    tn_engine *e = tn_calloc(ctx, 1, sizeof *e);
    if (!e) return TN_ERR_MEMORY;
    e->ctx = ctx;
    atomic_flag_clear(&e->lock);
    atomic_init(&e->next_row, 0);
    atomic_init(&e->threaded, false);
    atomic_init(&e->stopping, false);
    atomic_init(&e->bell, 0);
    e->signal = (tn_os_signal){-1, -1};
    tn_session_config session;
    bool pads = fills_steps_up(model);
    tn_status status = read_config(ctx, cfg, &e->cfg);
    if (status == TN_OK) status = read_session(model, &e->cfg, &session, &e->n_seq);
    e->cfg.session = NULL;
    if (status == TN_OK) status = tn_session_create(model, &session, &e->session);
    if (status == TN_OK && tn_session_result(e->session) != TN_RESULT_LOGITS)
        status = tn_fail(ctx, TN_ERR_UNSUPPORTED, "engine: the model or session gives no logits");
    if (status == TN_OK) e->session->pads = e->overlaps = pads;
    if (status == TN_OK) status = tn_cache_index_create(&e->session->cache);
    if (status == TN_OK && e->cfg.host_cache > 0)
        status = tn_cache_host_create(&e->session->cache, e->cfg.host_cache);
    if (status == TN_OK) status = make_arrays(e);
    if (status == TN_OK) e->published.n_free = e->published.n_blocks = e->session->cache.all.n_blocks;
    if (status != TN_OK)
        tn_engine_destroy(&e);
    else
        *out = e;
    return status;
}

void tn_engine_destroy(tn_engine **engine)
{
    if (!engine || !*engine) return;
    tn_engine *e = *engine;
    tn_engine_thread_fini(e);
    tn_status status = e->launched ? tn_session_collect(e->session) : TN_OK; // of nobody now
    TN_UNUSED(status);
    for (int32_t i = 0; e->running && i < e->n_seq; i++)
        if (e->running[i]) e->running[i]->next = NULL, tn_engine_destroy_requests(e->ctx, &e->running[i]);
    tn_engine_destroy_requests(e->ctx, &e->waiting);
    tn_engine_destroy_requests(e->ctx, &e->ended);
    tn_session_destroy(&e->session);
    tn_free(e->ctx, e->running);
    tn_free(e->ctx, e->feeds);
    tn_free(e->ctx, e->fed);
    tn_free(e->ctx, e->prompts);
    tn_free(e->ctx, e->pending);
    tn_free(e->ctx, e->events);
    tn_free(e->ctx, (void *)e->event_list);
    tn_free(e->ctx, e->masked);
    tn_free(e->ctx, e->selecting);
    tn_free(e->ctx, e->pieces);
    tn_free(e->ctx, e->statuses);
    tn_free(e->ctx, e);
    *engine = NULL;
}

// --- submitting ----------------------------------------------------------------------------------------

static tn_status check_request(const tn_engine *e, const tn_request_config *r)
{
    int32_t n_ctx = tn_session_n_ctx_seq(e->session), n_vocab = tn_session_width(e->session);
    if (r->n_tokens < 1 || !r->tokens)
        return tn_fail(e->ctx, TN_ERR_ARG, "request: an empty prompt; it needs at least one token");
    if (r->n_tokens >= n_ctx)
        return tn_fail(e->ctx, TN_ERR_CONTEXT_FULL,
                       "request: a prompt of %d tokens and one more do not fit into the context of %d",
                       r->n_tokens, n_ctx);
    for (int32_t i = 0; i < r->n_tokens; i++)
        if (r->tokens[i] < 0 || r->tokens[i] >= n_vocab)
            return tn_fail(e->ctx, TN_ERR_ARG, "request: token %d is outside the vocabulary of %d",
                           r->tokens[i], n_vocab);
    if (r->priority < -MAX_PRIORITY || r->priority > MAX_PRIORITY)
        return tn_fail(e->ctx, TN_ERR_ARG, "request: priority %d, must be %d to %d", r->priority,
                       -MAX_PRIORITY, MAX_PRIORITY);
    return TN_OK;
}

static tn_status make_request(tn_engine *e, const tn_request_config *c, tn_request **out)
{
    tn_request *r = tn_calloc(e->ctx, 1, sizeof *r);
    if (!r) return TN_ERR_MEMORY;
    *r = (tn_request){
        .user = c->user, .salt = c->salt, .seq = -1, .n_tokens = c->n_tokens, .capacity = c->n_tokens};
    r->submitted_ns = tn_time_ns();
    r->tokens = tn_alloc(e->ctx, (size_t)c->n_tokens * sizeof *r->tokens);
    tn_status status = r->tokens ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        memcpy(r->tokens, c->tokens, (size_t)c->n_tokens * sizeof *r->tokens);
        status = tn_generation_create(e->session, c->generation, &r->generation);
    }
    if (status == TN_OK) status = tn_generation_attach(r->generation, r->tokens, r->n_tokens);
    if (status != TN_OK)
        tn_engine_destroy_requests(e->ctx, &r);
    else
        *out = r;
    return status;
}

// Appends the request if there is space for it in the queue.
static bool enqueue(tn_engine *e, tn_request *r, int32_t priority, uint64_t *id)
{
    tn_engine_lock(e);
    bool fits = e->n_waiting < e->cfg.n_waiting && e->waiting_tokens + r->n_tokens <= e->cfg.waiting_tokens;
    if (fits) {
        *id = r->id = ++e->last_id; // when the lock is released, the request may end at once
        r->order = (int64_t)r->id - (int64_t)priority * PLACES_PER_PRIORITY;
        r->next = e->waiting;
        e->waiting = r;
        e->n_waiting++;
        e->n_alive++;
        e->n_pending++;
        e->waiting_tokens += r->n_tokens;
    }
    tn_engine_unlock(e);
    return fits;
}

tn_status tn_engine_submit(tn_engine *e, const tn_request_config *cfg, uint64_t *id)
{
    TN_NEED(NULL, e);
    TN_NEED(e->ctx, id);
    tn_request_config c;
    tn_request *r = NULL;
    tn_request_config_default(&c);
    tn_status status = TN_STRUCT_READ(e->ctx, tn_request_config, cfg, &c);
    if (status == TN_OK) status = check_request(e, &c);
    if (status == TN_OK) status = make_request(e, &c, &r);
    if (status != TN_OK) return status;
    if (!enqueue(e, r, c.priority, id)) {
        tn_engine_destroy_requests(e->ctx, &r);
        return tn_fail(e->ctx, TN_ERR_BUSY, "request: %d requests wait, as many as the engine allows",
                       e->cfg.n_waiting);
    }
    tn_engine_ring(e);
    return TN_OK;
}

void tn_engine_cancel(tn_engine *e, uint64_t id)
{
    if (!e) return;
    tn_engine_lock(e);
    for (tn_request *r = e->waiting; r; r = r->next)
        if (r->id == id) r->cancelled = true;
    for (int32_t i = 0; i < e->n_seq; i++)
        if (e->running[i] && e->running[i]->id == id) e->running[i]->cancelled = true;
    tn_engine_unlock(e);
    tn_engine_ring(e);
}

int32_t tn_engine_pending(tn_engine *e)
{
    if (!e) return 0;
    tn_engine_lock(e);
    int32_t n = e->n_pending;
    tn_engine_unlock(e);
    return n;
}

// The buffers are those of the session since the engine was made.
tn_status tn_engine_memory_get(const tn_engine *e, tn_session_memory *out)
{
    TN_NEED(NULL, e);
    return tn_session_memory_get(e->session, out);
}

tn_status tn_engine_stats_get(tn_engine *e, tn_engine_stats *out)
{
    TN_NEED(NULL, e);
    tn_engine_lock(e);
    tn_engine_stats s = e->published;
    s.n_waiting = e->n_waiting;
    s.n_running = e->n_alive - e->n_waiting;
    tn_engine_unlock(e);
    return TN_STRUCT_WRITE(e->ctx, tn_engine_stats, out, &s);
}
