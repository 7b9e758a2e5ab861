// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon batch: many prompts through an engine, several at a time. Answers are written as they end, one object
// a line. Lines that the file has already are not made again, so an interrupted run goes on where it was.
#include "tools/commands/batch.h"

#include "tools/chat/generate.h"
#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/json/json_read.h"
#include "tools/output.h"
#include "tools/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/engine.h>

enum { AHEAD = 2 };

typedef struct batch_answer {
    size_t index; // of the prompt, from 0
    char *id;     // JSON value or NULL
    char *text;
    size_t n_text, capacity, n_prompt;
    uint64_t submitted_ns, last_ns;
} batch_answer;

typedef struct batch_state {
    run_state r;
    text_source source;
    tn_engine *engine;
    FILE *out;
    const char *out_name;
    bool *done; // by index: the file has the answer
    size_t n_done, index;
    bool at_end; // no prompt is left
    int code;    // of the first failure that ends the command
    batch_figures figures;
} batch_state;

// --- answers of an earlier run -------------------------------------------------------------------------

static bool set_done(batch_state *b, size_t index)
{
    enum { MOST = 1 << 30 };
    if (index >= MOST) return false;
    if (index >= b->n_done) {
        size_t n = index * 2 + 64;
        bool *more = realloc(b->done, n * sizeof *more);
        if (!more) return false;
        memset(more + b->n_done, 0, (n - b->n_done) * sizeof *more);
        b->done = more;
        b->n_done = n;
    }
    if (!b->done[index]) b->figures.n_before++;
    b->done[index] = true;
    return true;
}

// The number behind "index" of a complete line; -1: it is no answer.
static int64_t index_of(const char *line, size_t n)
{
    json_in in = {.p = line, .end = line + n};
    int64_t index = -1;
    char *key;
    if (!json_open(&in, '{')) return -1;
    while (json_key(&in, &key)) {
        char *value = json_copy(&in), *end = NULL;
        if (value && strcmp(key, "index") == 0) {
            index = strtoll(value, &end, 10);
            if (end == value || *end) index = -1;
        }
        free(value);
        free(key);
    }
    return in.failed ? -1 : index;
}

// Reads the answers that are there. What follows the last complete line was cut off by the end of that run.
static int read_answers(batch_state *b, const char *path)
{
    char *text;
    size_t n, at = 0;
    sys_status st;
    if (!sys_file_status(path, &st) && errno == ENOENT) return 0;
    int code = read_input(path, &text, &n);
    if (code) return code;
    for (char *end; !code && at < n && (end = memchr(text + at, '\n', n - at));
         at = (size_t)(end - text) + 1) {
        int64_t index = index_of(text + at, (size_t)(end - text) - at);
        if (index < 0)
            code = fail(EXIT_FAILED, "%s: byte %zu: this is no answer of 'tenon batch'; give another file",
                        path, at);
        else if (!set_done(b, (size_t)index))
            code = fail(EXIT_MEMORY, "%s: out of memory for its answers", path);
    }
    free(text);
    if (!code && at < n && !sys_truncate(path, at))
        code = fail(EXIT_FAILED, "%s: cannot cut off the incomplete line at byte %zu: %s", path, at,
                    strerror(errno));
    return code;
}

static int open_out(batch_state *b)
{
    const char *path = opt_text(b->r.t.opt, OPT_RESULTS);
    b->out = stdout;
    b->out_name = "standard output";
    if (!path || strcmp(path, "-") == 0) return 0;
    b->out_name = path;
    int code = out_is_special(path) ? 0 : read_answers(b, path);
    if (code) return code;
    b->out = sys_open(path, "ab");
    return b->out ? 0 : fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
}

// --- answers -------------------------------------------------------------------------------------------

static void free_answer(batch_answer *a)
{
    if (!a) return;
    free(a->id);
    free(a->text);
    free(a);
}

static bool append(batch_answer *a, const char *text, size_t n)
{
    if (a->n_text + n > a->capacity) {
        size_t capacity = (a->n_text + n) * 2 + 64;
        char *more = realloc(a->text, capacity);
        if (!more) return false;
        a->text = more;
        a->capacity = capacity;
    }
    if (n > 0) memcpy(a->text + a->n_text, text, n);
    a->n_text += n;
    return true;
}

// The line of an answer; `error` in place of a text if there is none.
static int put_answer(batch_state *b, const batch_answer *a, const tn_engine_event *event, const char *error)
{
    json j;
    json_init(&j, b->out);
    json_object(&j, NULL);
    json_size(&j, "index", a->index);
    if (a->id) json_raw(&j, "id", a->id);
    if (error) {
        json_text(&j, "error", error);
    } else {
        json_bytes(&j, "text", a->text ? a->text : "", a->n_text);
        json_text(&j, "stop", answer_stop_name(event->piece->stop));
        json_size(&j, "prompt_tokens", a->n_prompt);
        json_int(&j, "reused_tokens", event->stats->n_reused);
        json_int(&j, "tokens", event->stats->n_generated);
    }
    json_end_object(&j);
    b->figures.n_answers++;
    b->figures.n_failed += error != NULL;
    if (fflush(b->out) == 0 && !ferror(b->out)) return 0;
    return fail(EXIT_FAILED, "cannot write %s: %s", b->out_name, strerror(errno));
}

static int take_event(batch_state *b, const tn_engine_event *event)
{
    batch_answer *a = event->user;
    uint64_t now = now_ns();
    int code = append(a, event->piece->text, event->piece->n_text)
                   ? 0
                   : fail(EXIT_MEMORY, "out of memory for an answer");
    if (event->piece->token >= 0) {
        batch_times_add(a->last_ns ? &b->figures.gaps : &b->figures.first,
                        now - (a->last_ns ? a->last_ns : a->submitted_ns));
        a->last_ns = now;
        b->figures.n_generated++;
    }
    if (event->status == TN_OK && event->piece->stop == TN_STOP_NONE) return code;
    b->figures.n_reused += (uint64_t)event->stats->n_reused;
    b->figures.n_prompt += a->n_prompt - (uint64_t)event->stats->n_reused;
    if (!code) code = put_answer(b, a, event, event->status == TN_OK ? NULL : event->message);
    free_answer(a);
    return code;
}

// --- prompts -------------------------------------------------------------------------------------------

static int tokenize(batch_state *b, const text_item *item, int32_t **ids, size_t *n)
{
    run_state *r = &b->r;
    if (r->templated) return run_chat_prompt(r, item->text, ids, n);
    tn_status status =
        tn_tokenize(r->model, item->text, item->n_text, TN_TEXT_ADD_SPECIAL | TN_TEXT_PARSE_SPECIAL, ids, n);
    return status == TN_OK ? 0 : tool_fail(&r->t, status, "%s, prompt %zu", b->source.name, item->line);
}

// A prompt that the engine refuses has an answer too: why.
static int submit(batch_state *b, batch_answer *a, const int32_t *ids, size_t n)
{
    tn_generation_config cfg;
    tn_sampling sampling;
    tn_request_config request;
    uint64_t id;
    char message[512];
    answer_config(&b->r, b->r.seed + a->index, &sampling, &cfg);
    tn_request_config_default(&request);
    request.tokens = ids;
    request.n_tokens = n < INT32_MAX ? (int32_t)n : INT32_MAX;
    request.generation = &cfg;
    request.user = a;
    a->n_prompt = n;
    a->submitted_ns = now_ns();
    tn_status status = tn_engine_submit(b->engine, &request, &id);
    if (status == TN_OK) return 0;
    // The other reasons, such as a grammar, are the same for all prompts.
    bool own = n == 0 || status == TN_ERR_CONTEXT_FULL;
    int code = own ? 0 : tool_fail(&b->r.t, status, "%s", b->r.path);
    (void)tn_context_error(b->r.t.ctx, message, sizeof message);
    if (!code) code = put_answer(b, a, NULL, message);
    free_answer(a);
    return code;
}

static int next_prompt(batch_state *b)
{
    text_item item;
    int code = 0, got = texts_next(&b->source, &item, &code);
    if (got < 0) return code;
    if (got == 0) {
        b->at_end = true;
        return 0;
    }
    size_t index = b->index++;
    if (index < b->n_done && b->done[index]) return 0;
    batch_answer *a = calloc(1, sizeof *a);
    int32_t *ids = NULL;
    size_t n = 0;
    if (!a) return fail(EXIT_MEMORY, "out of memory for a prompt");
    a->index = index;
    if (item.id) {
        a->id = malloc(item.n_id + 1);
        if (a->id) memcpy(a->id, item.id, item.n_id), a->id[item.n_id] = 0;
        if (!a->id) code = fail(EXIT_MEMORY, "out of memory for a prompt");
    }
    if (!code) code = tokenize(b, &item, &ids, &n);
    if (code) free_answer(a);
    if (!code) code = submit(b, a, ids, n);
    tn_tokens_free(b->r.model, ids);
    return code;
}

// --- all of it -----------------------------------------------------------------------------------------

static int open_engine(batch_state *b)
{
    tn_session_config session;
    tn_engine_config cfg;
    int code = tool_engine_config(&b->r.t, &b->r.info, &session, &cfg);
    if (code) return code;
    // run_steps submits no more than that, so the engine never refuses a prompt because others wait.
    cfg.n_waiting = session.n_seq * AHEAD;
    cfg.waiting_tokens = (int64_t)session.n_ctx_seq * cfg.n_waiting;
    cfg.gap_limit = 1e6; // nobody reads along: what counts is the time of all answers
    tn_status status = tn_engine_create(b->r.model, &cfg, &b->engine);
    tool_trace_loaded(&b->r.t);
    if (status == TN_OK) return 0;
    return tool_fail(&b->r.t, status, "%s: a cache of %d tokens", b->r.path, (int)session.n_ctx);
}

static int run_steps(batch_state *b)
{
    int32_t ahead = (int32_t)opt_int(b->r.t.opt, OPT_PARALLEL) * AHEAD;
    int code = 0;
    while (!code && !interrupted()) {
        while (!code && !b->at_end && tn_engine_pending(b->engine) < ahead) code = next_prompt(b);
        if (code || (b->at_end && tn_engine_pending(b->engine) == 0)) break;
        const tn_engine_event *const *events;
        int32_t n;
        tn_status status = tn_engine_step(b->engine, &events, &n);
        for (int32_t i = 0; i < n && !code; i++) code = take_event(b, events[i]);
        if (status != TN_OK && !code) code = tool_fail(&b->r.t, status, "generating");
        batch_progress(&b->figures, false);
    }
    batch_progress(&b->figures, true);
    return code ? code : interrupted() ? EXIT_INTERRUPTED : 0;
}

static void report(batch_state *b)
{
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_engine_stats_get(b->engine, &stats);
    batch_report(&b->figures, &stats);
}

static int open_model(batch_state *b)
{
    run_state *r = &b->r;
    int code = tool_open(&r->t, r->t.opt);
    if (!code) code = tool_load(&r->t, r->path, LOAD_WEIGHTS, &r->model);
    if (!code) code = tool_load_adapters(&r->t, r->model);
    if (code) return code;
    r->info.struct_size = sizeof r->info;
    tn_model_info_get(r->model, &r->info);
    if (r->info.is_encoder)
        return fail(EXIT_FAILED, "%s: %s models give embeddings, not text; see 'tenon help embed'", r->path,
                    r->info.arch);
    if (!r->info.has_tokenizer) return fail(EXIT_FAILED, "%s has no tokenizer", r->path);
    return answer_options(r);
}

static size_t count_lines(const text_source *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->size; i++) n += s->data[i] == '\n';
    return n + (s->size > 0 && s->data[s->size - 1] != '\n');
}

static int run_all(batch_state *b, const char *const *args, int n_args)
{
    const options *o = b->r.t.opt;
    b->r.templated = opt_flag(o, OPT_CHAT) || opt_is_set(o, OPT_SYSTEM) || opt_is_set(o, OPT_SYSTEM_FILE);
    if (b->r.templated && opt_flag(o, OPT_RAW))
        return fail(EXIT_USAGE, "--raw contradicts --chat and -sys; give one of them");
    int code = texts_open(&b->source, o, args, n_args);
    if (!code) b->figures.n_total = count_lines(&b->source);
    if (!code) code = open_out(b);
    if (!code) code = open_model(b);
    if (!code) code = open_engine(b);
    b->figures.start_ns = now_ns();
    if (!code) code = run_steps(b);
    if (!code) code = tool_profile(&b->r.t);
    if (opt_flag(o, OPT_REPORT) && (code == 0 || code == EXIT_INTERRUPTED)) report(b);
    if (b->out && b->out != stdout && fclose(b->out) != 0 && !code)
        code = fail(EXIT_FAILED, "cannot write %s: %s", b->out_name, strerror(errno));
    return code;
}

int cmd_batch(const options *o)
{
    batch_state b = {.r.t.opt = o};
    const char *const *args;
    int n_args;
    interrupt_poll(true);
    int code = tool_model_path(o, &b.r.path, &args, &n_args);
    if (!code) code = run_all(&b, args, n_args);
    interrupt_poll(false);
    tn_engine_destroy(&b.engine);
    answer_fini(&b.r);
    tn_model_unref(&b.r.model);
    tool_close(&b.r.t);
    texts_close(&b.source);
    batch_figures_fini(&b.figures);
    free(b.done);
    return code;
}
