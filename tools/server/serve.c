// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon serve: the life of the server. This thread has HTTP; the engine has its own, and worker.c one that
// loads the model.
#include "tools/server/job.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/version.h>
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

// --- the model, on the thread of the worker --------------------------------------------------------------

static int open_engine(server *s)
{
    tn_session_config session;
    tn_engine_config cfg;
    int code = tool_engine_config(&s->r.t, &s->r.info, &session, &cfg);
    if (code) return code;
    tn_status status = tn_engine_create(s->r.model, &cfg, &s->engine);
    if (status != TN_OK)
        return tool_fail(&s->r.t, status, "%s: a cache of %d tokens", s->r.path, (int)session.n_ctx);
    s->n_ctx = session.n_ctx_seq;
    s->n_seq = session.n_seq;
    return 0;
}

static int open_embedder(server *s)
{
    tn_embedder_config cfg;
    tool_embedder_config(&s->r.t, &cfg);
    cfg.max_tokens = (int32_t)opt_int(s->r.t.opt, OPT_PROMPT_MAX);
    // An answer has one vector for each text.
    if (s->r.info.pooling == TN_POOLING_NONE) cfg.pooling = TN_POOLING_MEAN;
    tn_status status = tn_embedder_create(s->r.model, &cfg, &s->embedder);
    if (status != TN_OK) return tool_fail(&s->r.t, status, "%s", s->r.path);
    s->n_ctx = tn_embedder_max_tokens(s->embedder);
    s->n_seq = 1;
    return 0;
}

static int open_model(void *user)
{
    server *s = user;
    run_state *r = &s->r;
    int code = tool_open(&r->t, r->t.opt);
    if (!code) code = tool_load(&r->t, r->path, LOAD_WEIGHTS, &r->model);
    if (code) return code;
    r->info.struct_size = sizeof r->info;
    tn_model_info_get(r->model, &r->info);
    if (!r->info.has_tokenizer) return fail(EXIT_FAILED, "%s has no tokenizer", r->path);
    code = answer_options(r);
    bool ranks = r->info.n_classes > 0 && r->info.pooling == TN_POOLING_RANK;
    return code ? code : r->info.is_encoder || ranks ? open_embedder(s) : open_engine(s);
}

// --- the thread of HTTP ----------------------------------------------------------------------------------

static void wake(void *user)
{
    server *s = user;
    transport_wake(s->t);
}

static void stop_with(server *s, int code)
{
    s->code = code;
    s->stop = 1;
}

// Runs the engine, if there is one; its events wake this thread.
static int start_engine(server *s)
{
    if (!s->engine) return 0;
    tn_status status = tn_engine_start(s->engine);
    if (status != TN_OK) return tool_fail(&s->r.t, status, "the thread of the engine");
    return transport_watch(s->t, tn_engine_descriptor(s->engine));
}

static void on_opened(server *s)
{
    int code, opened = worker_opened(s->w, &code);
    if (opened == 0) return;
    if (opened > 0) code = start_engine(s);
    if (code) {
        stop_with(s, code);
        return;
    }
    s->created = unix_seconds();
    snprintf(s->fingerprint, sizeof s->fingerprint, "tenon-%s-%08llx", tn_version(),
             (unsigned long long)(s->r.info.file_size ^ s->r.info.n_params) & 0xffffffffu);
    s->state = SERVER_READY;
    note("listening on %s", transport_address(s->t));
}

static void on_failure(server *s, tn_status status)
{
    enum { TRIES = 3 };
    char message[512] = "";
    // Memory may come back; a device does not.
    if (status == TN_ERR_MEMORY && ++s->n_failures < TRIES) return;
    (void)tn_context_error(s->r.t.ctx, message, sizeof message);
    if (!message[0]) snprintf(message, sizeof message, "%s", tn_status_text(status));
    if (s->state != SERVER_DRAINING) s->state = SERVER_LOST;
    note("the engine has failed: %s", message);
    tn_engine_stop(s->engine);
    job_end_all(s, ERROR_LOST, message, true);
}

static void take_events(server *s)
{
    const tn_engine_event *const *events;
    int32_t n;
    while (s->engine && s->state != SERVER_LOST) {
        tn_status status = tn_engine_take(s->engine, &events, &n);
        uint64_t now = now_ns();
        if (status != TN_OK) {
            on_failure(s, status);
            return;
        }
        if (n == 0) return;
        s->n_failures = 0;
        for (int32_t i = 0; i < n; i++) job_event(s, events[i], now);
    }
}

static void on_wake(void *user)
{
    server *s = user;
    if (!s->w) return;
    if (s->state == SERVER_LOADING) on_opened(s);
    if (s->state == SERVER_LOADING) return;
    take_events(s);
    worker_end_tasks(s->w);
}

// How long the engine takes for a pass, as far as ticks can see it: what takes much longer is stuck.
static void watch_progress(server *s)
{
    tn_engine_stats e = {.struct_size = sizeof e};
    uint64_t now = now_ns();
    if (!s->engine || s->state == SERVER_LOADING) return;
    tn_engine_stats_get(s->engine, &e);
    bool moved = e.n_steps != s->n_steps;
    if (moved && s->busy_before && now - s->progress_ns > s->longest_ns) s->longest_ns = now - s->progress_ns;
    s->busy_before = tn_engine_pending(s->engine) > 0;
    if (moved || !s->busy_before) s->progress_ns = now;
    s->n_steps = e.n_steps;
}

static void begin_drain(server *s)
{
    s->drain_ns = now_ns() + (uint64_t)opt_int(s->r.t.opt, OPT_DRAIN) * second_ns;
    if (s->state == SERVER_LOADING) s->stop = 1;
    if (s->state != SERVER_LOST) s->state = SERVER_DRAINING;
    transport_drain(s->t);
    job_end_all(s, ERROR_DRAINING, "the server is shutting down", false);
    tool_info(&s->r.t, "shutting down");
}

static void on_tick(void *user)
{
    server *s = user;
    on_wake(s);
    watch_progress(s);
    if (n_reloads > 0) {
        n_reloads = 0;
        access_reload(&s->access);
    }
    if (n_ends > 0 && !s->drain_ns) begin_drain(s);
    if (s->drain_ns) {
        uint64_t now = now_ns();
        bool over = now > s->drain_ns || n_ends > 1;
        if (over) job_end_all(s, ERROR_DRAINING, "the server is shutting down", true);
        // Answers that are complete get another second to reach their clients.
        if (transport_n_busy(s->t) == 0 || now > s->drain_ns + second_ns) s->stop = 1;
        if (n_ends > 1 && s->drain_ns > now) s->drain_ns = now;
    }
    job_tick(s);
}

static void on_gone(void *user, exchange *x)
{
    server *s = user;
    double seconds = (double)(now_ns() - x->start_ns) * 1e-9;
    if (x->user) x->forget(x);
    if (x->status && x->route) metrics_count_request(&s->figures, x->route->metric, x->status, seconds);
    tool_info(&s->r.t, "%s %s %d %.1f ms%s", x->id[0] ? x->id : "-", x->path, x->status, seconds * 1e3,
              x->status && x->ended ? "" : ", the client left");
}

// The name that requests use: --alias, or the file's without its folder and ending.
static void name_model(server *s)
{
    const char *alias = opt_text(s->r.t.opt, OPT_ALIAS), *base = strrchr(s->r.path, '/');
    snprintf(s->name, sizeof s->name, "%s", alias ? alias : base ? base + 1 : s->r.path);
    size_t n = strlen(s->name);
    if (!alias && n > 5 && strcmp(s->name + n - 5, ".gguf") == 0) s->name[n - 5] = 0;
}

static int open_transport(server *s)
{
    const options *o = s->r.t.opt;
    transport_config cfg = {
        .host = opt_text(o, OPT_HOST),
        .port = (int)opt_int(o, OPT_PORT),
        .connections = (int)opt_int(o, OPT_CONNECTIONS),
        .body_max = (size_t)opt_int(o, OPT_BODY_LIMIT) << 20,
        .user = s,
        .head = router_head,
        .request = router_request,
        .gone = on_gone,
        .wake = on_wake,
        .tick = on_tick,
    };
    return transport_open(&cfg, &s->t);
}

static int serve(server *s)
{
    worker_config cfg = {.user = s, .open = open_model, .wake = wake};
    name_model(s);
    s->out = open_memstream(&s->out_text, &s->n_out_text);
    if (!s->out) return fail(EXIT_MEMORY, "out of memory for the server");
    s->id_salt = now_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32;
    int code = access_open(&s->access, s->r.t.opt);
    if (!code) code = open_transport(s);
    if (code) return code;
    catch_signals();
    code = worker_start(&cfg, &s->w);
    if (!code) transport_run(s->t, &s->stop);
    return code ? code : s->code;
}

int cmd_serve(const options *o)
{
    server s = {.r.t.opt = o};
    const char *const *args;
    int n_args;
    int code = tool_model_path(o, &s.r.path, &args, &n_args);
    if (!code && n_args > 0)
        code = fail(EXIT_USAGE, "'%s': one server has one model; start another one with another --port",
                    args[0]);
    if (!code) code = serve(&s);
    worker_stop(&s.w);
    transport_close(&s.t);
    job_close(&s);
    tn_engine_destroy(&s.engine);
    tn_embedder_destroy(&s.embedder);
    answer_fini(&s.r);
    tn_model_unref(&s.r.model);
    tool_close(&s.r.t);
    access_close(&s.access);
    if (s.out) fclose(s.out);
    free(s.out_text);
    return code;
}
