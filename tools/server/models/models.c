// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/models/models.h"

#include "tools/server/job.h"
#include "tools/server/models/loader.h"
#include "tools/server/request.h"

#include <string.h>

static const uint64_t second_ns = 1000000000u;
enum {
    PATIENCE_SECONDS = 10, // that a model waits for memory before one in use takes no more requests
    RETRY_SECONDS = 10,    // after which a model that failed may be loaded again
    STUCK_SECONDS = 30,
    STUCK_TIMES = 10,
};

static bool in_use(const model *m)
{
    return m->n_users > m->n_held;
}

// --- what routes ask -------------------------------------------------------------------------------------

model *models_find(server *s, const char *name, bool ollama)
{
    model_list *list = &s->models;
    if (!name || !*name) return &list->all[0];
    for (int i = 0; i < list->n; i++) {
        model *m = &list->all[i];
        size_t n = strlen(m->name);
        if (strcmp(m->name, name) == 0) return m;
        // Names of Ollama have a tag.
        if (ollama && strncmp(m->name, name, n) == 0 && name[n] == ':') return m;
    }
    return opt_flag(s->opt, OPT_ANY_MODEL) ? &list->all[0] : NULL;
}

const char *model_status(const model *m)
{
    if (m->state == MODEL_READY) return "loaded";
    if (m->state == MODEL_LOST || (m->was_lost && m->failure[0])) return "lost";
    if (m->state == MODEL_LOADING || m->wanted_ns) return "loading";
    return m->failure[0] ? "failed" : "unloaded";
}

int64_t model_expires(const model *m)
{
    if (m->keep_seconds < 0) return INT64_C(253402300799); // the end of the year 9999
    uint64_t idle = in_use(m) ? 0 : (now_ns() - m->idle_ns) / second_ns;
    int64_t rest = m->keep_seconds - (int64_t)idle;
    return unix_seconds() + (rest > 0 ? rest : 0);
}

uint64_t model_size(const model *m)
{
    uint64_t size = 0;
    for (int i = 0; i < m->facts.n_needs; i++) size += m->facts.needs[i].size;
    return size > m->facts.file_size ? size : m->facts.file_size;
}

// A pass may take long, but not that much longer than all before.
bool model_is_stuck(const model *m)
{
    uint64_t limit = STUCK_SECONDS * second_ns + STUCK_TIMES * m->longest_ns;
    return m->state == MODEL_READY && m->busy_before && now_ns() > m->progress_ns + limit;
}

bool model_is_lost(const model *m)
{
    return m->state == MODEL_LOST || (m->was_lost && (m->state == MODEL_UNLOADING || m->failure[0]));
}

// --- use -------------------------------------------------------------------------------------------------

void model_use(model *m)
{
    m->n_users++;
}

void model_unuse(model *m)
{
    m->n_users--;
    m->idle_ns = now_ns();
}

void model_hold(model *m, request *r)
{
    r->next_held = NULL;
    *m->held_end = r;
    m->held_end = &r->next_held;
    m->n_held++;
    if (!m->wanted_ns) m->wanted_ns = now_ns();
}

void model_forget(model *m, request *r)
{
    request **at = &m->held;
    while (*at && *at != r) at = &(*at)->next_held;
    if (!*at) return;
    *at = r->next_held;
    m->n_held--;
    if (m->held_end == &r->next_held) m->held_end = at;
    if (!m->held) m->wanted_ns = 0;
}

// Requests that wait go on, or are answered with the failure.
static void release(model *m, bool facts_only)
{
    request *list = m->held;
    m->held = NULL;
    m->held_end = &m->held;
    m->wanted_ns = 0;
    m->n_held = 0;
    while (list) {
        request *r = list;
        list = r->next_held;
        if (facts_only && !request_needs_facts(r) && !m->failure[0])
            model_hold(m, r);
        else
            request_go_on(r);
    }
}

// --- memory ----------------------------------------------------------------------------------------------

static uint64_t need_of(const model *m, const char *device)
{
    uint64_t size = 0;
    for (int i = 0; i < m->facts.n_needs; i++)
        if (!device || strcmp(m->facts.needs[i].device, device) == 0) size += m->facts.needs[i].size;
    return size;
}

static uint64_t used_of(const model_list *list, const char *device)
{
    uint64_t size = 0;
    for (int i = 0; i < list->n; i++)
        if (list->all[i].state != MODEL_UNLOADED) size += need_of(&list->all[i], device);
    return size;
}

// NULL: all devices together.
static uint64_t free_of(const model_list *list, const char *device)
{
    for (int i = 0; i < list->n_free; i++)
        if (strcmp(list->free[i].device, device) == 0) return list->free[i].size;
    return 0;
}

static uint64_t budget(const server *s)
{
    return (uint64_t)opt_int(s->opt, OPT_MODELS_MEMORY) << 20;
}

static bool fits(const server *s, const model *m)
{
    const model_list *list = &s->models;
    if (budget(s)) return used_of(list, NULL) + need_of(m, NULL) <= budget(s);
    if (used_of(list, NULL) == 0) return true; // loading says what is missing, if anything is
    for (int i = 0; i < m->facts.n_needs; i++) {
        const device_size *need = &m->facts.needs[i];
        if (used_of(list, need->device) + need->size > free_of(list, need->device)) return false;
    }
    return true;
}

// The model that was used least recently; `used`: one that is in use.
static model *victim(server *s, bool used)
{
    model *oldest = NULL;
    for (int i = 0; i < s->models.n; i++) {
        model *m = &s->models.all[i];
        if (m->state != MODEL_READY || in_use(m) != used) continue;
        if (!oldest || m->idle_ns < oldest->idle_ns) oldest = m;
    }
    return oldest;
}

// --- loading and unloading -------------------------------------------------------------------------------

static void stop_with(server *s, int code)
{
    s->code = code;
    s->stop = 1;
}

static void get_ready(server *s)
{
    s->created = unix_seconds();
    s->state = SERVER_READY;
    note("listening on %s", transport_address(s->t));
}

static void fail_load(model *m, const loader_task *t)
{
    snprintf(m->failure, sizeof m->failure, "%s", t->failure);
    m->failed_ns = now_ns();
    m->counts.load_failures++;
    m->state = MODEL_UNLOADED;
}

static void on_surveyed(loader_task *t)
{
    model *m = t->m;
    m->surveyed = true;
    m->facts = t->facts;
    if (t->code) fail_load(m, t);
    release(m, true);
}

static void on_unloaded(loader_task *t)
{
    t->m->state = MODEL_UNLOADED;
    tool_info(&t->s->tool, "%s was unloaded", t->m->name);
}

static void unload(server *s, model *m)
{
    tn_engine_stats e = {.struct_size = sizeof e};
    tn_engine_stats *sum = &s->models.retired;
    if (!loader_run(s, m, LOADER_UNLOAD, on_unloaded)) return;
    m->state = MODEL_UNLOADING;
    m->leaves = false;
    if (m->watch) transport_unwatch(m->watch);
    m->watch = NULL;
    if (!m->engine) return;
    tn_engine_stats_get(m->engine, &e);
    sum->n_hits += e.n_hits;
    sum->n_evicted += e.n_evicted;
    sum->n_steps += e.n_steps;
    sum->n_preempted += e.n_preempted;
    sum->n_host_saved += e.n_host_saved;
    sum->n_host_loaded += e.n_host_loaded;
}

static void lose(model *m, const char *message)
{
    m->state = MODEL_LOST;
    m->was_lost = true;
    note("%s has failed and will be loaded again: %s", m->name, message);
    if (m->engine) tn_engine_stop(m->engine);
    job_end_all(m->s, m, ERROR_LOST, message, true);
}

void models_lose(server *s, model *m, tn_status status, const char *message)
{
    bool alone = status == TN_ERR_MEMORY;
    s->models.lost = s->models.lost || !alone;
    for (int i = 0; i < s->models.n; i++) {
        model *other = &s->models.all[i];
        if (other->state == MODEL_READY && (other == m || !alone)) lose(other, message);
    }
}

// Whether something was begun for the models that were lost, or they wait for what still uses one.
static bool unload_lost(server *s)
{
    bool any = false;
    for (int i = 0; i < s->models.n; i++) {
        model *m = &s->models.all[i];
        any = any || m->state != MODEL_UNLOADED;
        if (m->state != MODEL_LOST) continue;
        job_abandon(s, m, "the device has failed");
        if (in_use(m)) continue;
        unload(s, m);
        return true;
    }
    s->models.lost = s->models.lost && any;
    return s->models.lost;
}

static void begin_ready(model *m, const loader_task *t)
{
    m->facts = t->facts;
    m->surveyed = true;
    m->failure[0] = 0;
    m->was_lost = false;
    m->state = MODEL_READY;
    m->leaves = m->busy_before = false;
    m->n_failures = 0;
    m->n_steps = m->n_tokens = m->longest_ns = 0;
    m->idle_ns = m->progress_ns = now_ns();
    m->counts.loads++;
    m->counts.load_seconds += (double)(t->end_ns - t->start_ns) * 1e-9;
}

static void on_loaded(loader_task *t)
{
    model *m = t->m, *other;
    server *s = t->s;
    if (!t->code && m->engine) m->watch = transport_watch(s->t, tn_engine_descriptor(m->engine));
    if (!t->code && m->engine && !m->watch) {
        t->code = fail(EXIT_FAILED, "%s: too few file descriptors (ulimit -n)", m->name);
        snprintf(t->failure, sizeof t->failure, "%s", failure_text());
        loader_free(m);
    }
    if (t->code == EXIT_MEMORY && (other = victim(s, false)) != NULL) {
        m->state = MODEL_UNLOADED; // and tried again when that one is gone
        unload(s, other);
        return;
    }
    if (s->models.lost) { // meanwhile: it is loaded again
        m->state = t->code ? MODEL_UNLOADED : MODEL_LOST;
        m->was_lost = true;
        return;
    }
    if (t->code)
        fail_load(m, t);
    else
        begin_ready(m, t);
    if (s->state == SERVER_LOADING && t->code) stop_with(s, t->code);
    if (s->state == SERVER_LOADING && !t->code) get_ready(s);
    release(m, false);
}

static void on_context(loader_task *t)
{
    server *s = t->s;
    if (t->code)
        stop_with(s, t->code);
    else if (!s->models.single)
        get_ready(s);
}

static void load(server *s, model *m)
{
    if (loader_run(s, m, LOADER_LOAD, on_loaded)) m->state = MODEL_LOADING;
}

// It can never be loaded within the budget.
static void refuse(server *s, model *m)
{
    char need[32], most[32];
    snprintf(m->failure, sizeof m->failure, "%s needs %s, and all models together may have %s", m->name,
             size_text(need_of(m, NULL), need, sizeof need), size_text(budget(s), most, sizeof most));
    m->failed_ns = now_ns();
    m->counts.load_failures++;
    release(m, false);
}

// Makes one step towards loading it; false: it has to wait for others.
static bool advance(server *s, model *m)
{
    model *other;
    if (!m->surveyed && !s->models.single)
        (void)loader_run(s, m, LOADER_SURVEY, on_surveyed);
    else if (budget(s) && need_of(m, NULL) > budget(s))
        refuse(s, m);
    else if (fits(s, m))
        load(s, m);
    else if ((other = victim(s, false)) != NULL)
        unload(s, other);
    else
        return false;
    return true;
}

// The model that has waited longest, of those that wait longer than `after`.
static model *next_wanted(server *s, uint64_t after)
{
    model *first = NULL;
    for (int i = 0; i < s->models.n; i++) {
        model *m = &s->models.all[i];
        if (m->state != MODEL_UNLOADED || m->wanted_ns <= after) continue;
        if (!first || m->wanted_ns < first->wanted_ns) first = m;
    }
    return first;
}

static bool any_leaves(const server *s)
{
    bool any = false;
    for (int i = 0; i < s->models.n; i++) any |= s->models.all[i].leaves;
    return any;
}

// Nobody waits for memory any more.
static void stop_leaving(server *s)
{
    for (int i = 0; i < s->models.n && !next_wanted(s, 0); i++) {
        model *m = &s->models.all[i];
        if (!m->leaves) continue;
        m->leaves = false;
        if (m->state == MODEL_READY) release(m, false);
    }
}

// Whether something was begun for the models that requests wait for.
static bool serve_wanted(server *s)
{
    uint64_t now = now_ns();
    for (model *m = next_wanted(s, 0); m; m = next_wanted(s, m->wanted_ns)) {
        if (advance(s, m)) return true;
        if (now - m->wanted_ns < PATIENCE_SECONDS * second_ns) continue;
        // Models in use might never be without requests: one of them takes no more of them.
        model *other = any_leaves(s) ? NULL : victim(s, true);
        if (other) other->leaves = true;
        return true; // and what it frees is for this one
    }
    stop_leaving(s);
    return false;
}

static bool unload_idle(server *s)
{
    for (int i = 0; i < s->models.n; i++) {
        model *m = &s->models.all[i];
        if (m->state != MODEL_READY || in_use(m) || m->keep_seconds < 0) continue;
        if (now_ns() - m->idle_ns < (uint64_t)m->keep_seconds * second_ns) continue;
        unload(s, m);
        return true;
    }
    return false;
}

// Of an embedder, while the loader leaves it alone.
static bool has_worker(const model *m)
{
    return (m->state == MODEL_READY || m->state == MODEL_LOST) && m->w;
}

void models_update(server *s)
{
    worker_end_tasks(s->models.loader);
    for (int i = 0; i < s->models.n; i++)
        if (has_worker(&s->models.all[i])) worker_end_tasks(s->models.all[i].w);
    if (s->models.task || s->state == SERVER_DRAINING) return;
    if (s->state == SERVER_LOADING) {
        if (s->models.single && s->models.n_free > 0 && !s->stop) load(s, &s->models.all[0]);
        return;
    }
    if (unload_lost(s) || serve_wanted(s) || unload_idle(s)) return;
    for (int i = 0; i < s->models.n && !s->models.single; i++) {
        if (s->models.all[i].surveyed) continue;
        (void)loader_run(s, &s->models.all[i], LOADER_SURVEY, on_surveyed);
        return;
    }
}

int models_start(server *s)
{
    const worker_config cfg = {.user = s, .wake = server_wake};
    int code = worker_start(&cfg, &s->models.loader);
    if (code) return code;
    return loader_run(s, NULL, LOADER_OPEN, on_context) ? 0 : fail(EXIT_MEMORY, "out of memory");
}
