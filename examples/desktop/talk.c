// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "talk.h"

#include <glib-unix.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/text.h>

enum { CONTEXT = 2048, TURNS_MAX = 256, TAKES_MAX = 4 };

typedef enum job_what { JOB_OPEN, JOB_ASK, JOB_CLOSE, JOB_QUIT } job_what;

typedef struct job {
    job_what what;
    char *text, *device;
    int max_tokens;
} job;

typedef struct note {
    talk *talk;
    talk_report report;
    char *text, *devices;
} note;

struct talk {
    talk_fn fn;
    void *user;
    GThread *thread;
    GAsyncQueue *jobs;
    // of the thread
    tn_model *model;
    GPtrArray *turns; // texts: question, answer, question, ...
    // of the main loop
    guint source;
    GString *answer;
    gboolean closing;
    // of both, one after the other: the thread makes and destroys them while the main loop does not use them
    tn_context *ctx;
    tn_engine *engine;
    // of both at any time
    gint share; // of 10^6
    gint stop, no_memory, lost;
    guint64 id;   // of the request, 0: none yet
    guint serial; // of the question whose answer is shown, 0: none
    guint asked;  // questions so far
    GMutex lock;  // guards id, serial, asked, and the last answer, which the thread adds to the turns
    char *last;
};

// --- reports -----------------------------------------------------------------------------------------------

static gboolean deliver(gpointer user);

static void post(talk *t, talk_what what, tn_status status, const char *text, const char *devices)
{
    note *n = g_new0(note, 1);
    n->talk = t;
    n->report.what = what;
    n->report.status = status;
    n->text = g_strdup(text);
    n->devices = g_strdup(devices);
    g_idle_add_full(G_PRIORITY_DEFAULT, deliver, n, NULL);
}

static void post_failure(talk *t, tn_status status, const char *what)
{
    char message[600];
    tn_last_error(message, sizeof message);
    char *text = g_strdup_printf("%s: %s", what, *message ? message : tn_status_text(status));
    post(t, TALK_FAILED, status, text, NULL);
    g_free(text);
}

// --- on the thread -----------------------------------------------------------------------------------------

static void *allocate(void *user, size_t size, size_t align)
{
    talk *t = user;
    void *p = NULL;
    if (g_atomic_int_get(&t->no_memory)) return NULL;
    return posix_memalign(&p, align < sizeof p ? sizeof p : align, size) == 0 ? p : NULL;
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

static int32_t on_progress(void *user, uint64_t done, uint64_t total)
{
    talk *t = user;
    g_atomic_int_set(&t->share, total ? (gint)((double)done / (double)total * 1e6) : 0);
    return g_atomic_int_get(&t->stop);
}

static void close_all(talk *t)
{
    tn_engine_destroy(&t->engine);
    tn_model_unref(&t->model);
    tn_context_destroy(&t->ctx);
    g_ptr_array_set_size(t->turns, 0);
}

static tn_status make_engine(talk *t)
{
    tn_session_config session;
    tn_engine_config cfg;
    tn_session_config_default(&session);
    tn_engine_config_default(&cfg);
    session.n_ctx = CONTEXT;
    session.n_seq = 1;
    cfg.session = &session;
    tn_status status = tn_engine_create(t->model, &cfg, &t->engine);
    return status == TN_OK ? tn_engine_start(t->engine) : status;
}

static void open_model(talk *t, const job *j)
{
    tn_context_config cfg;
    tn_model_config model;
    guint cores = g_get_num_processors();
    close_all(t);
    tn_context_config_default(&cfg);
    cfg.allocator = (tn_allocator){t, allocate, release};
    cfg.n_threads = cores > 1 ? (int32_t)cores - 1 : 1; // one core is for the window
    tn_status status = tn_context_create(&cfg, &t->ctx);
    tn_model_config_default(&model);
    model.progress = on_progress;
    model.progress_user = t;
    if (status == TN_OK && j->device) {
        model.device = tn_context_device_by_name(t->ctx, j->device);
        model.no_fallback = 1;
        if (!model.device) status = TN_ERR_DEVICE;
    }
    if (status == TN_OK) status = tn_model_open(t->ctx, j->text, &model, &t->model);
    if (status == TN_OK) status = make_engine(t);
    if (status != TN_OK) {
        post_failure(t, status, j->text);
        close_all(t);
        return;
    }
    GString *devices = g_string_new(NULL);
    for (int32_t i = 0; i < tn_context_n_devices(t->ctx); i++) {
        tn_device_info info = {.struct_size = sizeof info};
        tn_device_info_get(tn_context_device_get(t->ctx, i), &info);
        if (strcmp(info.backend, "null") == 0) continue;
        g_string_append_printf(devices, "%s%s", devices->len ? "," : "", info.name);
    }
    tn_model_info info = {.struct_size = sizeof info};
    tn_model_info_get(t->model, &info);
    char *text = g_strdup_printf("%s on %s", info.arch, info.device);
    post(t, TALK_OPENED, TN_OK, text, devices->str);
    g_free(text);
    g_string_free(devices, TRUE);
}

// The turns so far as tokens; a long talk loses its oldest exchanges.
static tn_status make_prompt(talk *t, int max_tokens, int32_t **ids, size_t *n)
{
    for (;;) {
        tn_turn turns[TURNS_MAX] = {0};
        guint n_turns = MIN(t->turns->len, TURNS_MAX - 1);
        for (guint i = 0; i < n_turns; i++)
            turns[i] = (tn_turn){.struct_size = sizeof *turns,
                                 .role = i % 2 ? "assistant" : "user",
                                 .content = g_ptr_array_index(t->turns, i)};
        tn_status status = tn_chat_tokenize(t->model, turns, n_turns, NULL, ids, n);
        if (status != TN_OK || *n + (size_t)max_tokens < CONTEXT || t->turns->len < 3) return status;
        tn_tokens_free(t->model, *ids);
        *ids = NULL;
        g_ptr_array_remove_range(t->turns, 0, 2);
    }
}

static void ask(talk *t, const job *j)
{
    int32_t *ids = NULL;
    size_t n = 0;
    guint64 id = 0;
    if (!t->engine) {
        post(t, TALK_FAILED, TN_ERR_STATE, "no model is open", NULL);
        return;
    }
    g_mutex_lock(&t->lock);
    if (t->last) g_ptr_array_add(t->turns, g_steal_pointer(&t->last));
    g_mutex_unlock(&t->lock);
    if (t->turns->len % 2) g_ptr_array_remove_index(t->turns, t->turns->len - 1); // it got no answer
    g_ptr_array_add(t->turns, g_strdup(j->text));
    tn_status status = make_prompt(t, j->max_tokens, &ids, &n);
    if (status == TN_OK) {
        tn_generation_config generation;
        tn_request_config request;
        tn_generation_config_default(&generation);
        tn_request_config_default(&request);
        generation.max_tokens = j->max_tokens;
        request.tokens = ids;
        request.n_tokens = (int32_t)n;
        request.generation = &generation;
        g_mutex_lock(&t->lock); // before: the first event may come sooner than the id
        t->serial = ++t->asked;
        t->id = 0;
        g_mutex_unlock(&t->lock);
        request.user = GUINT_TO_POINTER(t->serial);
        status = tn_engine_submit(t->engine, &request, &id);
    }
    tn_tokens_free(t->model, ids);
    if (status != TN_OK) {
        post_failure(t, status, "the question");
        return;
    }
    g_mutex_lock(&t->lock);
    t->id = id;
    g_mutex_unlock(&t->lock);
    if (g_atomic_int_get(&t->stop)) tn_engine_cancel(t->engine, id);
    post(t, TALK_ASKED, TN_OK, NULL, NULL);
}

static gpointer work(gpointer user)
{
    talk *t = user;
    for (gboolean quit = FALSE; !quit;) {
        job *j = g_async_queue_pop(t->jobs);
        if (j->what == JOB_OPEN) open_model(t, j);
        if (j->what == JOB_ASK) ask(t, j);
        if (j->what == JOB_CLOSE || j->what == JOB_QUIT) close_all(t);
        if (j->what == JOB_CLOSE) post(t, TALK_CLOSED, TN_OK, NULL, NULL);
        quit = j->what == JOB_QUIT;
        g_free(j->text);
        g_free(j->device);
        g_free(j);
    }
    return NULL;
}

// --- in the main loop --------------------------------------------------------------------------------------

static void report(talk *t, talk_what what, tn_status status, const char *text)
{
    t->fn(t->user, &(talk_report){.what = what, .status = status, .text = text});
}

static void end_answer(talk *t, tn_status status, const char *why)
{
    g_mutex_lock(&t->lock);
    g_free(t->last);
    t->last = t->answer->len ? g_strdup(t->answer->str) : NULL;
    t->serial = 0;
    g_mutex_unlock(&t->lock);
    g_string_truncate(t->answer, 0);
    report(t, status == TN_OK ? TALK_ANSWERED : TALK_FAILED, status, why);
}

static void use(talk *t, const tn_engine_event *e)
{
    static const char *const ends[] = {"", "end", "stop string", "limit", "context", "stopped", "blocked"};
    tn_status status = e->status;
    if (status == TN_OK && g_atomic_int_compare_and_exchange(&t->lost, 1, 0)) {
        tn_engine_cancel(t->engine, e->id); // what a lost device says with its next event, for the script
        end_answer(t, TN_ERR_DEVICE, "the device is lost");
        return;
    }
    if (status != TN_OK) {
        end_answer(t, status, e->message ? e->message : tn_status_text(status));
        return;
    }
    if (e->piece->n_text) {
        char *text = g_utf8_make_valid(e->piece->text, (gssize)e->piece->n_text);
        g_string_append(t->answer, text);
        report(t, TALK_PIECE, TN_OK, text);
        g_free(text);
    }
    if (e->piece->stop > 0 && e->piece->stop < (int)G_N_ELEMENTS(ends))
        end_answer(t, TN_OK, ends[e->piece->stop]);
}

// A few passes at a time, so that a fast model does not keep the window from being drawn.
static gboolean on_events(gint fd, GIOCondition condition, gpointer user)
{
    talk *t = user;
    (void)fd, (void)condition;
    for (int k = 0; k < TAKES_MAX; k++) {
        const tn_engine_event *const *events;
        int32_t n = 0;
        tn_status status = tn_engine_take(t->engine, &events, &n);
        if (status != TN_OK) {
            t->source = 0;
            end_answer(t, status, tn_status_text(status));
            return G_SOURCE_REMOVE;
        }
        g_mutex_lock(&t->lock);
        guint serial = t->serial;
        g_mutex_unlock(&t->lock);
        for (int32_t i = 0; i < n; i++) // those of other questions were given up
            if (serial && GPOINTER_TO_UINT(events[i]->user) == serial) use(t, events[i]);
        if (n == 0) break;
    }
    return G_SOURCE_CONTINUE;
}

static gboolean deliver(gpointer user)
{
    note *n = user;
    talk *t = n->talk;
    n->report.text = n->text;
    n->report.devices = n->devices;
    if (n->report.what == TALK_OPENED && !t->closing)
        t->source = g_unix_fd_add(tn_engine_descriptor(t->engine), G_IO_IN, on_events, t);
    if (!t->closing) t->fn(t->user, &n->report);
    g_free(n->text);
    g_free(n->devices);
    g_free(n);
    return G_SOURCE_REMOVE;
}

// The engine belongs to the thread again.
static void leave_engine(talk *t)
{
    if (t->source) g_source_remove(t->source);
    t->source = 0;
    g_mutex_lock(&t->lock);
    t->id = 0;
    t->serial = 0;
    g_clear_pointer(&t->last, g_free);
    g_mutex_unlock(&t->lock);
    g_string_truncate(t->answer, 0);
}

static void push(talk *t, job_what what, const char *text, const char *device, int max_tokens)
{
    job *j = g_new0(job, 1);
    *j = (job){what, g_strdup(text), g_strdup(device), max_tokens};
    g_async_queue_push(t->jobs, j);
}

void talk_open(talk *t, const char *path, const char *device)
{
    leave_engine(t);
    g_atomic_int_set(&t->stop, 0);
    g_atomic_int_set(&t->share, 0);
    push(t, JOB_OPEN, path, device, 0);
}

void talk_ask(talk *t, const char *question, int max_tokens)
{
    g_atomic_int_set(&t->stop, 0);
    push(t, JOB_ASK, question, NULL, max_tokens);
}

void talk_stop(talk *t)
{
    g_atomic_int_set(&t->stop, 1);
    g_mutex_lock(&t->lock);
    if (t->id && t->source) tn_engine_cancel(t->engine, t->id);
    g_mutex_unlock(&t->lock);
}

void talk_close(talk *t)
{
    leave_engine(t);
    g_atomic_int_set(&t->stop, 1);
    push(t, JOB_CLOSE, NULL, NULL, 0);
}

double talk_progress(const talk *t)
{
    return g_atomic_int_get(&t->share) * 1e-6;
}

size_t talk_memory(const talk *t)
{
    return t->source ? tn_context_memory(t->ctx) : 0;
}

void talk_fail_memory(talk *t, gboolean on)
{
    g_atomic_int_set(&t->no_memory, on);
}

void talk_lose_device(talk *t)
{
    g_atomic_int_set(&t->lost, 1);
}

talk *talk_new(talk_fn fn, void *user)
{
    talk *t = g_new0(talk, 1);
    t->fn = fn;
    t->user = user;
    t->jobs = g_async_queue_new();
    t->turns = g_ptr_array_new_with_free_func(g_free);
    t->answer = g_string_new(NULL);
    g_mutex_init(&t->lock);
    t->thread = g_thread_new("model", work, t);
    return t;
}

void talk_free(talk *t)
{
    t->closing = TRUE;
    leave_engine(t);
    g_atomic_int_set(&t->stop, 1);
    push(t, JOB_QUIT, NULL, NULL, 0);
    g_thread_join(t->thread);
    while (g_main_context_iteration(NULL, FALSE)) {
    } // reports that wait
    g_async_queue_unref(t->jobs);
    g_ptr_array_unref(t->turns);
    g_string_free(t->answer, TRUE);
    g_mutex_clear(&t->lock);
    g_free(t->last);
    g_free(t);
}
