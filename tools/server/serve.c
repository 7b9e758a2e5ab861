// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon serve: the life of the server. This thread has HTTP; each engine has its own, and workers load models
// and read long requests.
#include "tools/server/job.h"
#include "tools/server/models/loader.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000u;

// --- signals ---------------------------------------------------------------------------------------------

// A signal handler has no argument, so its data is global.
static volatile sig_atomic_t n_ends, n_reloads;

static void on_signal(int signal_number)
{
    if (signal_number == SIGHUP)
        n_reloads = n_reloads + 1;
    else
        n_ends = n_ends + 1;
}

static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

// --- engines ---------------------------------------------------------------------------------------------

void server_wake(void *user)
{
    transport_wake(((server *)user)->t);
}

static void on_failure(model *m, tn_status status)
{
    enum { TRIES = 3 };
    char message[512] = "";
    // Memory may come back.
    if (status == TN_ERR_MEMORY && ++m->n_failures < TRIES) return;
    (void)tn_context_error(m->r.t.ctx, message, sizeof message);
    if (!message[0]) snprintf(message, sizeof message, "%s", tn_status_text(status));
    models_lose(m->s, m, status, message);
}

static void take_events(model *m)
{
    const tn_engine_event *const *events;
    int32_t n;
    while (m->state == MODEL_READY && m->engine) {
        tn_status status = tn_engine_take(m->engine, &events, &n);
        uint64_t now = now_ns();
        if (status != TN_OK) {
            on_failure(m, status);
            return;
        }
        if (n == 0) return;
        m->n_failures = 0;
        metrics_pass(&m->s->figures, n);
        for (int32_t i = 0; i < n; i++) job_event(m->s, events[i], now);
    }
}

static void on_wake(void *user)
{
    server *s = user;
    if (!s->models.loader) return;
    for (int i = 0; i < s->models.n; i++) take_events(&s->models.all[i]);
    worker_end_tasks(s->texts);
    models_update(s);
}

// How long the engine takes for a pass, as far as ticks can see it: what takes much longer is stuck.
static void watch_progress(model *m)
{
    tn_engine_stats e = {.struct_size = sizeof e};
    uint64_t now = now_ns();
    if (m->state != MODEL_READY || !m->engine) return;
    tn_engine_stats_get(m->engine, &e);
    bool moved = e.n_steps != m->n_steps;
    uint64_t n_tokens = e.n_prompt + e.n_generated;
    if (moved) metrics_passes(&m->s->figures, e.n_steps - m->n_steps, n_tokens - m->n_tokens);
    m->n_tokens = n_tokens;
    if (moved && m->busy_before && now - m->progress_ns > m->longest_ns) m->longest_ns = now - m->progress_ns;
    m->busy_before = tn_engine_pending(m->engine) > 0;
    if (moved || !m->busy_before) m->progress_ns = now;
    m->n_steps = e.n_steps;
}

// --- the thread of HTTP ----------------------------------------------------------------------------------

static void begin_drain(server *s)
{
    s->drain_ns = now_ns() + (uint64_t)opt_int(s->opt, OPT_DRAIN) * second_ns;
    if (s->state == SERVER_LOADING) s->stop = 1;
    s->state = SERVER_DRAINING;
    transport_drain(s->t);
    requests_end(s, ERROR_DRAINING, "the server is shutting down");
    job_end_all(s, NULL, ERROR_DRAINING, "the server is shutting down", false);
    tool_info(&s->tool, "shutting down");
}

static void on_tick(void *user)
{
    server *s = user;
    on_wake(s);
    for (int i = 0; i < s->models.n; i++) watch_progress(&s->models.all[i]);
    if (n_reloads > 0) {
        n_reloads = 0;
        access_reload(&s->access);
    }
    if (n_ends > 0 && !s->drain_ns) begin_drain(s);
    if (s->drain_ns) {
        uint64_t now = now_ns();
        bool over = now > s->drain_ns || n_ends > 1;
        if (over) job_end_all(s, NULL, ERROR_DRAINING, "the server is shutting down", true);
        // Answers that are complete get another second to reach their clients.
        if (transport_n_busy(s->t) == 0 || now > s->drain_ns + second_ns) s->stop = 1;
        if (n_ends > 1 && s->drain_ns > now) s->drain_ns = now;
    }
    requests_tick(s);
    job_tick(s);
}

static void on_gone(void *user, exchange *x)
{
    server *s = user;
    double seconds = (double)(now_ns() - x->start_ns) * 1e-9;
    if (x->user) x->forget(x);
    if (x->status && x->route) metrics_count_request(&s->figures, x->route->metric, x->status, seconds);
    // The route, not the path: that is the client's, and may hold anything.
    const char *name = x->route ? route_names[x->route->metric] : NULL;
    tool_info(&s->tool, "%s %s %d %.1f ms%s%s", x->id[0] ? x->id : "-", name ? name : "(no route)", x->status,
              seconds * 1e3, x->note, x->status && x->ended ? "" : ", the client left");
}

static int open_transport(server *s)
{
    const options *o = s->opt;
    transport_config cfg = {
        .host = opt_is_set(o, OPT_HOST) ? opt_text(o, OPT_HOST) : NULL,
        .port = (int)opt_int(o, OPT_PORT),
        .connections = (int)opt_int(o, OPT_CONNECTIONS),
        .body_max = (size_t)opt_int(o, OPT_BODY_LIMIT) << 20,
        .user = s,
        .head = router_head,
        .request = router_request,
        .late = router_late,
        .identify = router_identify,
        .gone = on_gone,
        .wake = on_wake,
        .tick = on_tick,
    };
    return transport_open(&cfg, &s->t);
}

static int serve(server *s)
{
    const worker_config texts = {.user = s, .wake = server_wake};
    int code = models_open(s);
    if (code) return code;
    if (!writer_open(&s->out) || !writer_open(&s->texts_out))
        return fail(EXIT_MEMORY, "out of memory for the server");
    s->id_salt = now_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32;
    code = access_open(&s->access, s->opt);
    if (!code) code = open_transport(s);
    if (code) return code;
    catch_signals();
    code = worker_start(&texts, &s->texts);
    if (!code) code = models_start(s);
    if (!code) transport_run(s->t, &s->stop);
    return code ? code : s->code;
}

// Threads first, then connections, then what both of them held.
static void close_server(server *s)
{
    s->stop = 1; // ends a load
    worker_stop(s->texts);
    worker_stop(s->models.loader);
    for (int i = 0; i < s->models.n; i++) worker_stop(s->models.all[i].w);
    transport_close(&s->t);
    worker_destroy(&s->texts);
    worker_destroy(&s->models.loader);
    requests_close(s);
    job_close(s);
    for (int i = 0; i < s->models.n; i++) loader_free(&s->models.all[i]);
    models_close(s);
    if (s->tool.trace) {
        int code = tool_profile(&s->tool);
        if (!s->code) s->code = code;
    }
    tool_close(&s->tool);
    access_close(&s->access);
    free(s->unknown);
    writer_close(&s->out);
    writer_close(&s->texts_out);
}

int cmd_serve(const options *o)
{
    server s = {.opt = o};
    s.code = serve(&s);
    close_server(&s);
    return s.code;
}
