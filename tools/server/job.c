// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/job.h"

#include "tools/server/prefix_key.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

enum { SILENCE_SECONDS = 15 };
static const uint64_t second_ns = 1000000000u;

// --- memory ----------------------------------------------------------------------------------------------

bool text_add(text_buf *t, const void *data, size_t n)
{
    if (t->n + n + 1 > t->capacity) {
        size_t capacity = (t->n + n) * 2 + 64;
        char *more = realloc(t->data, capacity);
        if (!more) return false;
        t->data = more;
        t->capacity = capacity;
    }
    if (n) memcpy(t->data + t->n, data, n);
    t->data[t->n += n] = 0;
    return true;
}

static void fini_choice(choice *c)
{
    free(c->content.data);
    free(c->thought.data);
    free(c->entries);
    free(c->tops);
    free((char *)(uintptr_t)c->echo);
    answer_destroy(&c->answer);
}

static void free_job(job *j)
{
    *j->link = j->next;
    if (j->next) j->next->link = j->link;
    if (j->x) j->x->user = NULL;
    for (int32_t i = 0; i < j->n; i++) fini_choice(&j->choices[i]);
    free(j->choices);
    if (j->state) j->proto->free_state(j->state);
    model_unuse(j->m);
    free(j);
}

// What the log says about it: tokens, times, and why it ended.
static void write_note(job *j)
{
    uint64_t end = j->end_ns ? j->end_ns : now_ns(), first = j->first_ns ? j->first_ns : end;
    const char *reason = j->failed ? "error" : j->end_ns ? j->choices[0].reason : "cancelled";
    uint64_t before = first > j->start_ns + j->queue_ns ? first - j->start_ns - j->queue_ns : 0;
    snprintf(j->x->note, sizeof j->x->note,
             ", tokens: %zu prompt, %d cached, %d generated, ms: %.1f queue, %.1f prefill, %.1f decode, %s",
             j->n_prompt, j->n_cached, job_n_generated(j), (double)j->queue_ns * 1e-6, (double)before * 1e-6,
             (double)(end - first) * 1e-6, reason ? reason : "stop");
}

// The engine still has events for choices that are open; the last one frees the job.
static void leave_job(job *j)
{
    if (j->x) write_note(j);
    if (j->x) j->x->user = NULL;
    j->x = NULL;
    atomic_store(&j->left, true);
    if (j->submitting) return; // job_submitted calls this again
    for (int32_t i = 0; i < j->n; i++)
        if (j->choices[i].open) tn_engine_cancel(j->m->engine, j->choices[i].id);
    if (j->n_open == 0) free_job(j);
}

// The client left.
static void forget(exchange *x)
{
    leave_job(x->user);
}

// --- starting --------------------------------------------------------------------------------------------

static job *new_job(model *m, exchange *x, int32_t n)
{
    server *s = m->s;
    job *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    j->choices = calloc((size_t)n, sizeof *j->choices);
    if (!j->choices) {
        free(j);
        return NULL;
    }
    model_use(m);
    *j = (job){
        .s = s, .m = m, .x = x, .choices = j->choices, .n = n, .start_ns = x->start_ns, .next = s->jobs};
    j->link = &s->jobs;
    if (j->next) j->next->link = &j->next;
    s->jobs = j;
    x->user = j;
    x->forget = forget;
    return j;
}

// The end of the prompt decides whether the answer begins inside of a thought.
static bool begin_thoughts(const model *m, choice *c, const job_prompt *prompt)
{
    char *end = NULL;
    tn_status status = answer_prompt_end(&m->r, prompt->ids, prompt->n, &end);
    if (status == TN_OK) answer_begin_thoughts(&c->answer, end);
    tn_text_free(m->r.t.ctx, end);
    return status == TN_OK;
}

static tn_status begin_calls(const model *m, choice *c, const tool_use *tools)
{
    const job *j = c->job;
    tn_tool_config config;
    tn_tool_config_default(&config);
    config.format = tools->format;
    config.tools = tools->allowed;
    config.stream_arguments = j->stream && j->proto->call_arguments;
    answer *a = &c->answer;
    a->format = tools->format;
    a->single = tools->single;
    a->n_before = tools->n_before;
    a->next_id = &m->s->next_id;
    a->id_salt = m->s->id_salt;
    return tn_tool_parser_create(m->r.t.ctx, &config, &a->parser);
}

// --- answers ---------------------------------------------------------------------------------------------

const char *job_reason(int32_t stop)
{
    return stop == TN_STOP_LIMIT || stop == TN_STOP_CONTEXT ? "length" : "stop";
}

int32_t job_n_generated(const job *j)
{
    int32_t n = 0;
    for (int32_t i = 0; i < j->n; i++) n += j->choices[i].n_generated;
    return n;
}

int32_t job_n_thought(const job *j)
{
    int32_t n = 0;
    for (int32_t i = 0; i < j->n; i++) n += j->choices[i].n_thought;
    return n;
}

void job_send_event(job *j, bool sse)
{
    size_t n;
    if (sse)
        fputs("\n\n", j->s->out.f);
    else
        fputc('\n', j->s->out.f);
    const char *text = reply_text(j->s, &n);
    if (n > 0)
        exchange_write(j->x, text, n);
    else // out of memory: a stream without a part of it must not look complete
        exchange_abort(j->x);
    j->sent_ns = now_ns();
}

static void send_head(job *j)
{
    if (j->head_sent || !j->stream) return;
    j->head_sent = true;
    j->sent_ns = now_ns();
    exchange_begin(j->x, 200, j->proto->stream_type, -1);
}

// Ends the job with an error, as an answer or inside of its stream.
static void break_job(job *j, error_id id, const char *message)
{
    exchange *x = j->x;
    j->failed = true;
    j->s->figures.finished[FINISH_ERROR]++;
    if (j->head_sent) {
        j->proto->broken(j, id, message);
        x->closes = true;
        exchange_end(x);
    } else {
        reply_error(j->s, x, id, NULL, "%s", message);
    }
    leave_job(j);
}

static void end_job(job *j)
{
    j->end_ns = now_ns();
    metrics *m = &j->s->figures;
    m->cached_tokens += (uint64_t)j->n_cached;
    j->m->counts.cached_tokens += (uint64_t)j->n_cached;
    if (j->first_ns > j->start_ns) {
        m->prompt_seconds += (double)(j->first_ns - j->start_ns) * 1e-9;
        m->generate_seconds += (double)(j->end_ns - j->first_ns) * 1e-9;
    }
    if (j->stream) {
        j->proto->end(j);
        exchange_end(j->x);
    } else {
        j->proto->whole(j);
    }
    leave_job(j);
}

// --- submitting ------------------------------------------------------------------------------------------

static void answer_refusal(const job *j)
{
    const job_start *start = &j->start;
    const request_params *p = start->params;
    const model *m = j->m;
    server *s = m->s;
    size_t n_prompt = start->prompts[j->n_submitted / p->n].n;
    bool grammar = strncmp(j->message, "grammar", 7) == 0, schema = strncmp(j->message, "schema", 6) == 0;
    if (j->status == TN_ERR_CONTEXT_FULL)
        reply_too_long(s, j->x, start->param, n_prompt, m->facts.n_ctx);
    else if (m->state == MODEL_LOST)
        reply_error(s, j->x, ERROR_LOST, NULL, "the device of the model has failed");
    else if (j->status == TN_ERR_BUSY)
        reply_error(s, j->x, ERROR_BUSY, NULL, "too many requests wait; try again later");
    else if ((grammar || schema) && (p->cfg.grammar || p->cfg.json_schema))
        reply_error(s, j->x, ERROR_SCHEMA,
                    p->tools          ? "tools"
                    : p->schema_field ? p->schema_field
                                      : "grammar",
                    "%s", j->message);
    else if (j->status == TN_ERR_ARG || j->status == TN_ERR_UNSUPPORTED)
        reply_error(s, j->x, ERROR_FIELD, start->param, "%s", j->message);
    else
        reply_error(s, j->x, ERROR_OWN, NULL, "%s", j->message[0] ? j->message : tn_status_text(j->status));
}

static tn_status begin_choice(job *j, int32_t i)
{
    const request_params *p = j->start.params;
    const job_prompt *prompt = &j->start.prompts[i / p->n];
    choice *c = &j->choices[i];
    *c = (choice){.job = j, .index = i};
    if (i % p->n == 0) j->n_prompt += prompt->n;
    c->echo = prompt->echo ? strdup(prompt->echo) : NULL;
    c->text_offset = c->echo ? strlen(c->echo) : 0;
    if (j->proto->splits_thoughts && !begin_thoughts(j->m, c, prompt)) return TN_ERR_MEMORY;
    return p->tools ? begin_calls(j->m, c, p->tools) : TN_OK;
}

job *job_begin(model *m, exchange *x, const job_start *start)
{
    server *s = m->s;
    request_params *p = start->params;
    job *j = new_job(m, x, start->n_prompts * p->n);
    if (!j) {
        reply_error(s, x, ERROR_OWN, NULL, "out of memory");
        return NULL;
    }
    j->start = *start;
    j->proto = start->proto;
    j->state = p->state;
    p->state = NULL;
    j->is_generate = j->proto->is_generate;
    j->stream = p->stream;
    j->include_usage = p->include_usage;
    j->logprobs = p->logprobs;
    j->special = p->cfg.print_special != 0;
    j->created = unix_seconds();
    reply_id(s, x, start->id_prefix, j->id, sizeof j->id);
    snprintf(j->model, sizeof j->model, "%s", m->name);
    for (int32_t i = 0; i < j->n && j->status == TN_OK; i++) j->status = begin_choice(j, i);
    if (j->status != TN_OK) {
        (void)tn_context_error(m->r.t.ctx, j->message, sizeof j->message);
        answer_refusal(j);
        leave_job(j);
        return NULL;
    }
    // An event of the first choice may come before the last one is submitted.
    for (int32_t i = 0; i < j->n; i++) j->choices[i].open = true;
    j->n_open = j->n;
    j->submitting = true;
    prefix_key_add(x, start->prompts[0].ids, start->prompts[0].n, p->salt);
    return j;
}

void job_submit(job *j)
{
    request_params *p = j->start.params;
    uint64_t seed = p->sampling.seed;
    p->cfg.sampling = &p->sampling;
    for (int32_t i = 0; i < j->n && !atomic_load(&j->left); i++) {
        const job_prompt *prompt = &j->start.prompts[i / p->n];
        tn_request_config r;
        tn_request_config_default(&r);
        p->sampling.seed = seed + (uint64_t)i;
        r.tokens = prompt->ids;
        r.n_tokens = prompt->n < INT32_MAX ? (int32_t)prompt->n : INT32_MAX;
        r.generation = &p->cfg;
        r.user = &j->choices[i];
        r.salt = p->salt;
        j->status = tn_engine_submit(j->m->engine, &r, &j->choices[i].id);
        if (j->status != TN_OK) break;
        j->n_submitted++;
    }
    // The message belongs to this thread.
    if (j->status != TN_OK) (void)tn_context_error(j->m->r.t.ctx, j->message, sizeof j->message);
}

void job_submitted(job *j)
{
    j->submitting = false;
    for (int32_t i = j->n_submitted; i < j->n; i++) j->choices[i].open = false;
    j->n_open -= j->n - j->n_submitted;
    if (j->status == TN_OK && j->n_submitted == j->n) {
        j->s->figures.prompt_tokens += j->n_prompt;
        j->m->counts.prompt_tokens += j->n_prompt;
    }
    if (j->x && j->status == TN_OK) return;
    if (j->x && j->head_sent) {
        break_job(j, ERROR_BUSY, j->message);
        return;
    }
    if (j->x) answer_refusal(j);
    leave_job(j);
}

// --- events ----------------------------------------------------------------------------------------------

static bool grow(void **data, size_t *capacity, size_t wanted, size_t item)
{
    if (wanted <= *capacity) return true;
    size_t more = wanted * 2 + 16;
    void *p = realloc(*data, more * item);
    if (!p) return false;
    *data = p;
    *capacity = more;
    return true;
}

static bool keep_entry(choice *c, const tn_piece *piece)
{
    size_t n = (size_t)piece->n_logprobs;
    void *entries = c->entries, *tops = c->tops;
    bool ok = grow(&entries, &c->entries_capacity, c->n_entries + 1, sizeof *c->entries);
    c->entries = entries;
    ok = ok && grow(&tops, &c->tops_capacity, c->n_tops + n + 1, sizeof *c->tops);
    c->tops = tops;
    if (!ok) return false;
    c->entries[c->n_entries++] = (token_entry){.token = piece->token,
                                               .logprob = piece->logprob,
                                               .first_top = (int32_t)c->n_tops,
                                               .n_top = piece->n_logprobs};
    if (n) memcpy(c->tops + c->n_tops, piece->logprobs, n * sizeof *c->tops);
    c->n_tops += n;
    return true;
}

bool job_keep_prompt(choice *c, const tn_piece *piece)
{
    if (!keep_entry(c, piece)) return false;
    c->entries[c->n_entries - 1].of_prompt = true;
    c->text_offset = 0;
    return true;
}

// Keeps the first n entries.
static void drop_entries(choice *c, size_t n)
{
    if (n < c->n_entries) c->n_tops = (size_t)c->entries[n].first_top;
    if (n < c->n_entries) c->n_entries = n;
    c->n_settled = c->n_entries;
}

static bool show_text(void *user, const char *text, size_t n, bool is_thought)
{
    choice *c = user;
    job *j = c->job;
    bool ok = true;
    if (is_thought) {
        c->thinks = true;
        drop_entries(c, 0); // logprobs are those of the answer
    }
    if (n > 0 && (j->stream || j->proto->collects))
        ok = j->proto->piece(j, c, text, n, is_thought);
    else if (n > 0)
        ok = text_add(is_thought ? &c->thought : &c->content, text, n);
    c->n_settled = c->n_entries;
    return ok;
}

// Whether the protocol gets calls as they come.
static bool shows_calls(choice *c)
{
    drop_entries(c, c->n_settled); // of markup
    return c->job->stream || c->job->proto->collects;
}

static bool show_begin(void *user, const tool_call *call)
{
    choice *c = user;
    const protocol *p = c->job->proto;
    return !shows_calls(c) || !p->call_begin || p->call_begin(c->job, c, call);
}

static bool show_arguments(void *user, const tool_call *call, const char *text, size_t n)
{
    choice *c = user;
    const protocol *p = c->job->proto;
    return !shows_calls(c) || !p->call_arguments || p->call_arguments(c->job, c, call, text, n);
}

static bool show_end(void *user, const tool_call *call)
{
    choice *c = user;
    const protocol *p = c->job->proto;
    return !shows_calls(c) || !p->call_end || p->call_end(c->job, c, call);
}

// Bytes of the piece without the text of the token that ended it.
static size_t text_size(const job *j, const tn_piece *piece)
{
    char *end = NULL;
    size_t n_end = 0, n = piece->n_text;
    if (!j->special || piece->stop != TN_STOP_END || piece->token < 0) return n;
    tn_status status = tn_detokenize(j->m->r.model, &piece->token, 1, TN_TEXT_PRINT_SPECIAL, &end, &n_end);
    if (status == TN_OK && n_end <= n && memcmp(piece->text + n - n_end, end, n_end) == 0) n -= n_end;
    tn_text_free(j->m->r.t.ctx, end);
    return n;
}

static bool take_piece(job *j, choice *c, const tn_engine_event *event)
{
    const tn_piece *piece = event->piece;
    bool is_token = piece->token >= 0 && piece->stop != TN_STOP_END, last = piece->stop != TN_STOP_NONE;
    answer *a = &c->answer;
    const answer_sink sink = {c, show_text, show_begin, show_arguments, show_end};
    if (j->logprobs && is_token && !keep_entry(c, piece)) return false;
    c->thinks = false;
    if (!answer_feed(a, piece->text, text_size(j, piece), last, &sink)) return false;
    bool inside = a->splits && thoughts_inside(&a->thoughts);
    if (inside) drop_entries(c, 0);
    if (inside || c->thinks) c->n_thought += is_token;
    if (last && a->n_calls > 0) drop_entries(c, c->n_settled);
    if (a->ended && !last) tn_engine_cancel(j->m->engine, event->id);
    return true;
}

static void count_token(job *j, choice *c, const tn_engine_event *event, uint64_t time_ns)
{
    metrics *m = &j->s->figures;
    if (c->n_generated == 0) metrics_queue(m, (double)event->queue_ns * 1e-9);
    if (!j->first_ns) j->queue_ns = event->queue_ns;
    m->generated_tokens++;
    j->m->counts.generated_tokens++;
    c->n_generated++;
    if (!j->first_ns) {
        j->first_ns = time_ns;
        metrics_first_token(m, (double)(time_ns - j->start_ns) * 1e-9);
    } else if (c->last_ns) {
        metrics_inter_token(m, (double)(time_ns - c->last_ns) * 1e-9);
    }
    c->last_ns = time_ns;
}

static int finish_of(const choice *c, int32_t stop)
{
    if (stop == TN_STOP_LIMIT || stop == TN_STOP_CONTEXT) return FINISH_LENGTH;
    if (c->answer.n_complete > 0) return FINISH_TOOL_CALLS;
    return stop == TN_STOP_CANCELLED ? FINISH_CANCELLED : FINISH_STOP;
}

static bool end_choice(job *j, choice *c, const tn_engine_event *event)
{
    int finish = finish_of(c, event->piece->stop);
    c->stop = event->piece->stop;
    c->reason = finish == FINISH_TOOL_CALLS ? "tool_calls" : job_reason(c->stop);
    j->n_cached += c->index == 0 ? event->stats->n_reused : 0;
    j->s->figures.finished[finish]++;
    return (!j->stream && !j->proto->collects) || j->proto->end_choice(j, c);
}

static bool has_failed(job *j, const tn_engine_event *event)
{
    if (event->status != TN_OK) {
        break_job(j, ERROR_OWN, event->message ? event->message : tn_status_text(event->status));
        return true;
    }
    if (event->piece->stop != TN_STOP_BLOCKED) return false;
    break_job(j, ERROR_OWN, "the grammar or schema allows no token here: the answer cannot be completed");
    return true;
}

void job_event(server *s, const tn_engine_event *event, uint64_t time_ns)
{
    choice *c = event->user;
    job *j = c->job;
    bool last = event->status != TN_OK || event->piece->stop != TN_STOP_NONE;
    (void)s;
    if (last) {
        c->open = false;
        j->n_open--;
    }
    if (!j->x) { // the client is gone
        if (last) s->figures.finished[FINISH_CANCELLED]++;
        if (j->n_open == 0 && !j->submitting) free_job(j);
        return;
    }
    if (event->piece->token >= 0 && !c->answer.ended) count_token(j, c, event, time_ns);
    if (has_failed(j, event)) return;
    send_head(j);
    if (!c->begun && j->stream) j->proto->begin(j, c);
    c->begun = true;
    bool ok = c->answer.ended || take_piece(j, c, event);
    if (ok && last) ok = end_choice(j, c, event);
    if (!ok)
        break_job(j, ERROR_OWN, "out of memory for the answer");
    else if (j->n_open == 0)
        end_job(j);
}

void job_tick(server *s)
{
    static const char ping[] = ": ping\n\n";
    uint64_t now = now_ns(), limit = (uint64_t)opt_int(s->opt, OPT_TIME_LIMIT) * second_ns;
    for (job *j = s->jobs, *next; j; j = next) {
        next = j->next;
        if (!j->x) continue;
        uint64_t since = j->sent_ns ? j->sent_ns : j->start_ns;
        bool silent = j->stream && now - since > SILENCE_SECONDS * second_ns;
        if (limit && now - j->start_ns > limit) {
            break_job(j, ERROR_TIME, "the time limit of a request is over");
        } else if (silent) {
            send_head(j);
            if (strcmp(j->proto->stream_type, "text/event-stream") == 0)
                exchange_write(j->x, ping, sizeof ping - 1);
            j->sent_ns = now;
        }
    }
}

void job_end_all(server *s, const model *m, error_id id, const char *message, bool begun_too)
{
    for (job *j = s->jobs, *next; j; j = next) {
        next = j->next;
        bool begun = j->head_sent || j->first_ns;
        if (j->x && (!m || j->m == m) && (begun_too || !begun)) break_job(j, id, message);
    }
}

void job_abandon(server *s, const model *m, const char *message)
{
    for (job *j = s->jobs, *next; j; j = next) {
        next = j->next;
        if (j->m != m || j->submitting) continue;
        j->n_open = 0;
        for (int32_t i = 0; i < j->n; i++) j->choices[i].open = false;
        if (j->x)
            break_job(j, ERROR_LOST, message);
        else
            free_job(j);
    }
}

void job_close(server *s)
{
    while (s->jobs) free_job(s->jobs);
}
