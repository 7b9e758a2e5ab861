// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/request.h"

#include "tools/server/api/fields.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_BYTES = 16 * 1024, // read on the thread of HTTP, which takes some 3 ms at most
    WAITING_BODIES = 16,     // of the largest size, that wait in all
    RETRY_SECONDS = 10,      // after which a model that failed may be loaded again
};
static const uint64_t second_ns = 1000000000u;

// --- memory ----------------------------------------------------------------------------------------------

static void forget(exchange *x);

static request *new_request(server *s, exchange *x)
{
    request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->s = s;
    r->x = x;
    r->route = x->route;
    r->text = x->body;
    r->n_text = x->n_body;
    r->is_long = x->n_body > SHORT_BYTES;
    r->salt = mix_bits(now_ns() ^ s->id_salt ^ ++s->next_id);
    x->body = NULL;
    x->n_body = 0;
    r->next = s->requests;
    r->link = &s->requests;
    if (r->next) r->next->link = &r->next;
    s->requests = r;
    s->n_waiting_bytes += r->n_text;
    s->n_requests++;
    x->user = r;
    x->forget = forget;
    return r;
}

static void free_request(request *r)
{
    if (r->held) model_forget(r->m, r);
    if (r->m) model_unuse(r->m);
    if (r->x) r->x->user = NULL;
    if (r->outcome.state) r->outcome.drop(r->outcome.state);
    free(r->outcome.text);
    body_fini(&r->body);
    r->s->n_waiting_bytes -= r->n_text;
    r->s->n_requests--;
    free(r->text);
    *r->link = r->next;
    if (r->next) r->next->link = r->link;
    free(r);
}

// The client left.
static void forget(exchange *x)
{
    request *r = x->user;
    r->x->user = NULL;
    r->x = NULL;
    atomic_store(&r->left, true);
    if (!r->on_thread) free_request(r);
}

// --- the answer ------------------------------------------------------------------------------------------

static void fail_with(request *r, error_id id, const char *param, const char *message)
{
    reply_error(r->s, r->x, id, param, "%s", message);
    free_request(r);
}

static void to_thread(request *r, void (*run)(worker_task *task), void (*done)(worker_task *task))
{
    r->task = (worker_task){.run = run, .done = done};
    r->on_thread = true;
    worker_add_task(r->s->texts, &r->task);
}

static void run_work(worker_task *task)
{
    request *r = (request *)(void *)task;
    r->outcome.work(r->outcome.state);
}

static void has_worked(worker_task *task)
{
    request *r = (request *)(void *)task;
    r->outcome.worked(r->outcome.state);
    free_request(r);
}

// Fields that other servers know and that change nothing here.
static bool is_ignored(const char *name)
{
    static const char *const names[] = {"user",
                                        "safety_identifier",
                                        "metadata",
                                        "store",
                                        "service_tier",
                                        "prompt_cache_key",
                                        "prompt_cache_retention",
                                        "verbosity",
                                        "prediction",
                                        "moderation",
                                        "keep_alive",
                                        "options",
                                        "cache_prompt",
                                        "return_progress",
                                        "timings_per_token",
                                        "include",
                                        "truncation",
                                        "context",
                                        "template",
                                        "shift",
                                        "truncate",
                                        "stream_options",
                                        "logprobs",
                                        "top_logprobs",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "encoding_format"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

// The log names a field once; names are the client's, so what is no plain word is not repeated.
static void log_unknown(server *s, const char *name)
{
    enum { NAMES_MAX = 64, NAME_MAX = 40 };
    size_t n = strlen(name);
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) hash = mix_bits(hash ^ (unsigned char)name[i]);
    for (int i = 0; i < s->n_unknown; i++)
        if (s->unknown[i] == hash) return;
    if (!s->unknown) s->unknown = calloc(NAMES_MAX, sizeof *s->unknown);
    if (!s->unknown || s->n_unknown == NAMES_MAX) return;
    s->unknown[s->n_unknown++] = hash;
    bool plain = n <= NAME_MAX &&
                 strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
    tool_info(&s->tool, "the field %s of requests is not known and was ignored",
              plain ? name : "(no plain name)");
}

static void count_unknown(request *r)
{
    const node *root = r->body.root;
    if (r->outcome.failed || !root || root->kind != NODE_OBJECT) return;
    for (const node *v = root->first; v; v = v->next) {
        if (v->seen || is_ignored(v->key)) continue;
        r->s->figures.unknown_fields++;
        log_unknown(r->s, v->key);
    }
}

static void finish(request *r)
{
    outcome *o = &r->outcome;
    exchange *x = r->x;
    count_unknown(r);
    x->user = NULL; // who goes on sets it anew
    r->x = NULL;
    if (o->failed && o->id == ERROR_CONTEXT)
        reply_too_long(r->s, x, o->param, o->n_prompt, r->m->facts.n_ctx);
    else if (o->failed)
        reply_error(r->s, x, o->id, o->param[0] ? o->param : NULL, "%s", o->message);
    else if (o->finish)
        o->finish(r->s, x, r->m, &o->state);
    else if (o->text)
        reply_bytes(x, 200, "application/json", o->text, o->n_text);
    else
        reply_error(r->s, x, ERROR_OWN, NULL, "out of memory for the answer");
    if (o->failed || !o->work) {
        free_request(r);
    } else if (o->slow) {
        to_thread(r, run_work, has_worked);
    } else {
        run_work(&r->task);
        has_worked(&r->task);
    }
}

// --- steps -----------------------------------------------------------------------------------------------

static void refuse(request *r, error_id id, const char *param, const char *message)
{
    outcome *o = &r->outcome;
    o->failed = true;
    o->id = id;
    snprintf(o->param, sizeof o->param, "%s", param ? param : "");
    snprintf(o->message, sizeof o->message, "%s", message);
}

static void read_body(request *r)
{
    char message[160];
    body *b = &r->body;
    if (r->n_text == 0) {
        refuse(r, ERROR_JSON, NULL, "body is empty; a JSON object is expected");
    } else if (!body_parse(b, r->text, r->n_text) && b->no_memory) {
        refuse(r, ERROR_OWN, NULL, "out of memory for the body");
    } else if (!b->root) {
        snprintf(message, sizeof message, "the body is not valid JSON: byte %zu: %s", b->at, b->why);
        refuse(r, ERROR_JSON, NULL, message);
    } else if (b->root->kind != NODE_OBJECT) {
        snprintf(message, sizeof message, "the body is %s; a JSON object is expected",
                 node_kind_name(b->root));
        refuse(r, ERROR_FIELD, NULL, message);
    }
}

static void handle(request *r, writer *w)
{
    fields f = {.s = r->s, .m = r->m, .w = w, .o = &r->outcome, .object = r->body.root, .salt = r->salt};
    r->route->post(&f);
}

static void run_read(worker_task *task)
{
    request *r = (request *)(void *)task;
    if (!atomic_load(&r->left)) read_body(r);
}

static void run_handle(worker_task *task)
{
    request *r = (request *)(void *)task;
    if (!atomic_load(&r->left)) handle(r, &r->s->texts_out);
}

static void choose(request *r);

// False: the request is gone.
static bool back_from_thread(request *r)
{
    r->on_thread = false;
    if (!r->x) {
        free_request(r);
        return false;
    }
    if (r->s->state == SERVER_DRAINING) {
        fail_with(r, ERROR_DRAINING, NULL, "the server is shutting down");
        return false;
    }
    return true;
}

static void was_read(worker_task *task)
{
    request *r = (request *)(void *)task;
    if (back_from_thread(r)) choose(r);
}

static void was_handled(worker_task *task)
{
    request *r = (request *)(void *)task;
    if (back_from_thread(r)) finish(r);
}

// --- the model -------------------------------------------------------------------------------------------

bool request_needs_facts(const request *r)
{
    return (r->route->flags & ROUTE_FACTS) != 0;
}

// False: the field is wrong, or there is no such model.
static bool find_model(request *r)
{
    char message[512];
    const node *v = node_get(r->body.root, "model");
    if (v && v->kind != NODE_TEXT) {
        snprintf(message, sizeof message, "model is %s; a string is expected", node_kind_name(v));
        refuse(r, ERROR_FIELD, "model", message);
        return false;
    }
    model *m = models_find(r->s, v ? v->text : NULL, (r->route->flags & ROUTE_OLLAMA) != 0);
    if (m) {
        r->m = m;
        model_use(m);
        return true;
    }
    const model_list *list = &r->s->models;
    if (list->n == 1)
        snprintf(message, sizeof message, "the model '%.100s' does not exist; this server has '%.255s'",
                 v->text, list->all[0].name);
    else
        snprintf(message, sizeof message,
                 "the model '%.100s' does not exist; GET /v1/models lists those of this server", v->text);
    refuse(r, ERROR_MODEL, "model", message);
    return false;
}

static void answer_failure(request *r)
{
    char message[700];
    snprintf(message, sizeof message, "the model cannot be loaded%s: %s",
             r->m->was_lost ? " again after its device has failed" : "", r->m->failure);
    fail_with(r, r->m->was_lost ? ERROR_LOST : ERROR_LOAD, r->m->was_lost ? NULL : "model", message);
}

// Ids are made of its texts for long, or a grammar of its tools or schema, or the keys of a file are read.
static bool takes_long(const request *r)
{
    static const char *const constraints[] = {"tools", "response_format", "json_schema", "format", "text"};
    bool compiles = false;
    for (size_t i = 0; i < sizeof constraints / sizeof *constraints; i++)
        compiles = compiles || node_get(r->body.root, constraints[i]);
    return r->is_long || request_needs_facts(r) || compiles;
}

// The model is ready, or it is as ready as the request needs it.
static void use_model(request *r)
{
    char message[400];
    const model *m = r->m;
    if (!m->facts.gives_text && (r->route->flags & ROUTE_TEXT)) {
        snprintf(message, sizeof message,
                 "%s gives no text; /v1/embeddings and /v1/rerank are for models like this", m->name);
        fail_with(r, ERROR_KIND, "model", message);
    } else if (takes_long(r)) {
        to_thread(r, run_handle, was_handled);
    } else {
        handle(r, &r->s->out);
        finish(r);
    }
}

// "5m", "1h30m"; a number alone means seconds. False: it is no duration.
static bool read_duration(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } known[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"h", 3600}, {"m", 60}, {"s", 1}};
    double sign = *text == '-' ? -1 : 1;
    text += *text == '-' || *text == '+';
    *seconds = 0;
    bool any = false;
    while (*text >= '0' && *text <= '9') {
        char *end;
        double value = strtod(text, &end), each = 0;
        for (size_t i = 0; i < sizeof known / sizeof *known && each == 0; i++)
            if (strncmp(end, known[i].name, strlen(known[i].name)) == 0) {
                each = known[i].seconds;
                end += strlen(known[i].name);
            }
        *seconds += sign * value * (each > 0 ? each : 1);
        any = true;
        text = end;
    }
    return any && !*text;
}

bool request_keep_alive(const node *root, int64_t *seconds)
{
    const node *v = node_get(root, "keep_alive");
    const double most = 1e9;
    double value = 0;
    if (v && v->kind == NODE_NUMBER)
        value = v->number;
    else if (!v || v->kind != NODE_TEXT || !read_duration(v->text, &value))
        return false;
    *seconds = value < 0 ? -1 : value > most ? (int64_t)most : (int64_t)value;
    return true;
}

static bool is_empty(const node *v)
{
    return !v || (v->kind == NODE_LIST && v->n == 0) || (v->kind == NODE_TEXT && v->n_text == 0);
}

// Ollama: sets how long the model stays. True: the request asks for nothing but to unload it.
static bool keep_model(request *r)
{
    int64_t seconds;
    const node *root = r->body.root;
    if (!(r->route->flags & ROUTE_OLLAMA) || !request_keep_alive(root, &seconds)) return false;
    bool stays = r->s->models.single && !opt_is_set(r->s->opt, OPT_KEEP_ALIVE);
    if (!stays) r->m->keep_seconds = seconds;
    return seconds == 0 && (r->route->flags & ROUTE_TEXT) && is_empty(node_get(root, "messages")) &&
           is_empty(node_get(root, "prompt"));
}

static bool check_keep_alive(request *r)
{
    int64_t seconds;
    const node *root = r->body.root;
    bool wrong = (r->route->flags & ROUTE_OLLAMA) && node_get(root, "keep_alive") &&
                 !request_keep_alive(root, &seconds);
    if (wrong)
        refuse(r, ERROR_FIELD, "keep_alive",
               "keep_alive: a duration such as \"5m\", or seconds, is expected");
    return !wrong;
}

static void wait_for_model(request *r)
{
    r->held = true;
    model_hold(r->m, r);
    transport_wake(r->s->t);
}

// The body was read.
static void choose(request *r)
{
    if (r->outcome.failed || !check_keep_alive(r) || !find_model(r)) {
        finish(r);
        return;
    }
    model *m = r->m;
    m->counts.requests++;
    if (keep_model(r)) {
        handle(r, &r->s->out);
        finish(r);
        return;
    }
    bool facts = request_needs_facts(r);
    bool failed = m->failure[0] && now_ns() - m->failed_ns < RETRY_SECONDS * second_ns;
    if ((m->state == MODEL_READY && !m->leaves) || (facts && m->surveyed))
        use_model(r);
    else if (failed && m->state == MODEL_UNLOADED && !m->wanted_ns)
        answer_failure(r);
    else
        wait_for_model(r);
}

void request_go_on(request *r)
{
    model *m = r->m;
    r->held = false;
    if (m->failure[0] && m->state != MODEL_READY)
        answer_failure(r);
    else if (m->state == MODEL_READY || request_needs_facts(r))
        use_model(r);
    else
        wait_for_model(r);
}

// --- the whole -------------------------------------------------------------------------------------------

static bool is_full(const server *s, const exchange *x)
{
    size_t body_max = (size_t)opt_int(s->opt, OPT_BODY_LIMIT) << 20;
    return s->n_requests >= opt_int(s->opt, OPT_QUEUE) ||
           s->n_waiting_bytes + x->n_body > WAITING_BODIES * body_max;
}

void request_begin(server *s, exchange *x)
{
    if (is_full(s, x)) {
        reply_error(s, x, ERROR_BUSY, NULL, "too many requests wait; try again later");
        return;
    }
    request *r = new_request(s, x);
    if (!r) {
        reply_error(s, x, ERROR_OWN, NULL, "out of memory");
    } else if (r->is_long) {
        to_thread(r, run_read, was_read);
    } else {
        read_body(r);
        choose(r);
    }
}

void requests_end(server *s, error_id id, const char *message)
{
    for (request *r = s->requests, *next; r; r = next) {
        next = r->next;
        if (r->x && !r->on_thread) fail_with(r, id, NULL, message);
    }
}

void requests_tick(server *s)
{
    uint64_t now = now_ns(), limit = (uint64_t)opt_int(s->opt, OPT_TIME_LIMIT) * second_ns;
    for (request *r = s->requests, *next; r && limit; r = next) {
        next = r->next;
        if (r->x && !r->on_thread && now - r->x->start_ns > limit)
            fail_with(r, ERROR_TIME, NULL, "the time limit of a request is over");
    }
}

void requests_close(server *s)
{
    while (s->requests) free_request(s->requests);
}
