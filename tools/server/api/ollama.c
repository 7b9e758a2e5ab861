// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The routes of Ollama that chat clients use: one JSON object a line.
#include "tools/server/api/openai.h"
#include "tools/server/models/details.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <time.h>

// Clients ask for at least this version of Ollama, whose routes these are.
static const char ollama_version[] = "0.6.4";

static void put_time(json *j, const char *key, int64_t seconds)
{
    char text[80];
    time_t at = (time_t)seconds;
    struct tm t = {0};
    (void)gmtime_r(&at, &t);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
             t.tm_hour, t.tm_min, t.tm_sec);
    json_text(j, key, text);
}

// --- answers ---------------------------------------------------------------------------------------------

typedef struct text_part {
    const char *data;
    size_t n;
} text_part;

static json *begin_line(job *j)
{
    json *out = reply_json(j->s);
    json_object(out, NULL);
    json_text(out, "model", j->model);
    put_time(out, "created_at", unix_seconds());
    return out;
}

static void put_arguments(json *out, const tool_call *call)
{
    char *line = strdup(call->arguments);
    if (line) json_one_line(line);
    json_raw(out, "arguments", line ? line : "{}");
    free(line);
}

static void put_calls(json *out, const tool_call *calls, int32_t first, int32_t n)
{
    if (n == 0) return;
    json_array(out, "tool_calls");
    for (int32_t i = first; i < first + n; i++) {
        json_object(out, NULL);
        json_text(out, "id", calls[i].id);
        json_object(out, "function");
        json_int(out, "index", i);
        json_text(out, "name", calls[i].name);
        put_arguments(out, &calls[i]);
        json_end_object(out);
        json_end_object(out);
    }
    json_end_array(out);
}

// Logprobs of the tokens since the last line.
static void put_logprobs(job *j, json *out, choice *c)
{
    if (!j->logprobs || c->n_entries == 0) return;
    json_array(out, "logprobs");
    openai_put_entries(j, out, c);
    json_end_array(out);
}

// `calls`: the choice whose calls belong to it, or NULL.
static void put_text(job *j, json *out, text_part text, text_part thought, const choice *calls)
{
    if (j->is_generate) {
        json_bytes(out, "response", text.n ? text.data : "", text.n);
        if (thought.n) json_bytes(out, "thinking", thought.data, thought.n);
        return;
    }
    json_object(out, "message");
    json_text(out, "role", "assistant");
    json_bytes(out, "content", text.n ? text.data : "", text.n);
    if (thought.n) json_bytes(out, "thinking", thought.data, thought.n);
    if (calls) put_calls(out, calls->answer.calls, 0, calls->answer.n_calls);
    json_end_object(out);
}

static void put_end(job *j, json *out, const choice *c)
{
    uint64_t first = j->first_ns ? j->first_ns : j->start_ns, end = j->end_ns ? j->end_ns : first;
    json_bool(out, "done", true);
    // Ollama has no reason of its own for calls
    json_text(out, "done_reason", c->answer.n_calls > 0 && c->stop != TN_STOP_LIMIT ? "stop" : c->reason);
    json_size(out, "total_duration", end - j->start_ns);
    json_size(out, "load_duration", 0);
    json_size(out, "prompt_eval_count", j->n_prompt);
    json_size(out, "prompt_eval_duration", first - j->start_ns);
    json_int(out, "eval_count", job_n_generated(j));
    json_size(out, "eval_duration", end - first);
    json_end_object(out);
}

static void line_begin(job *j, choice *c)
{
    (void)j, (void)c;
}

static bool line_piece(job *j, choice *c, const char *text, size_t n, bool is_thought)
{
    json *out = begin_line(j);
    const text_part part = {text, n}, none = {"", 0};
    put_text(j, out, is_thought ? none : part, is_thought ? part : none, NULL);
    if (!is_thought) put_logprobs(j, out, c);
    json_bool(out, "done", false);
    json_end_object(out);
    job_send_event(j, false);
    return true;
}

static bool line_call(job *j, choice *c, const tool_call *call)
{
    json *out = begin_line(j);
    json_object(out, "message");
    json_text(out, "role", "assistant");
    json_text(out, "content", "");
    put_calls(out, c->answer.calls, (int32_t)(call - c->answer.calls), 1);
    json_end_object(out);
    json_bool(out, "done", false);
    json_end_object(out);
    job_send_event(j, false);
    return true;
}

static bool line_end_choice(job *j, choice *c)
{
    (void)j, (void)c;
    return true;
}

static void line_end(job *j)
{
    json *out = begin_line(j);
    put_text(j, out, (text_part){"", 0}, (text_part){"", 0}, NULL);
    put_logprobs(j, out, &j->choices[0]);
    put_end(j, out, &j->choices[0]);
    job_send_event(j, false);
}

static void line_whole(job *j)
{
    choice *c = &j->choices[0];
    json *out = begin_line(j);
    put_text(j, out, (text_part){c->content.data, c->content.n}, (text_part){c->thought.data, c->thought.n},
             c);
    put_logprobs(j, out, c);
    put_end(j, out, c);
    reply_send(j->s, j->x, 200);
}

static void line_broken(job *j, error_id id, const char *message)
{
    reply_error_json(j->s, j->x, id, NULL, message);
    job_send_event(j, false);
}

static const protocol line_protocol = {
    .stream_type = "application/x-ndjson",
    .begin = line_begin,
    .piece = line_piece,
    .call_end = line_call,
    .end_choice = line_end_choice,
    .end = line_end,
    .whole = line_whole,
    .broken = line_broken,
    .splits_thoughts = true,
};

static const protocol generate_protocol = {
    .stream_type = "application/x-ndjson",
    .begin = line_begin,
    .piece = line_piece,
    .end_choice = line_end_choice,
    .end = line_end,
    .whole = line_whole,
    .broken = line_broken,
    .splits_thoughts = true,
    .is_generate = true,
};

// A request without a prompt only asks for the model to be loaded, which it is by now, or unloaded.
static void answer_load(fields *f, bool generate)
{
    int64_t seconds = 1;
    bool unload = request_keep_alive(f->object, &seconds) && seconds == 0;
    json *j = writer_json(f->w);
    json_object(j, NULL);
    json_text(j, "model", f->m->name);
    put_time(j, "created_at", unix_seconds());
    if (generate) {
        json_text(j, "response", "");
    } else {
        json_object(j, "message");
        json_text(j, "role", "assistant");
        json_text(j, "content", "");
        json_end_object(j);
    }
    json_bool(j, "done", true);
    json_text(j, "done_reason", unload ? "unload" : "load");
    json_end_object(j);
    fields_send(f);
}

// --- requests --------------------------------------------------------------------------------------------

void route_ollama_chat(fields *f)
{
    const node *list = node_get(f->object, "messages");
    if (!list || (list->kind == NODE_LIST && list->n == 0)) {
        answer_load(f, false);
        return;
    }
    text_request *t = openai_request(f, &line_protocol, "chat-", "messages");
    if (t && params_read_ollama(f, &t->p)) openai_start_chat(f, t);
}

static tn_status generate_ids(fields *f, messages *m, const char *prompt, const char *system, int32_t **ids,
                              size_t *n)
{
    const run_state *r = &f->m->r;
    if (field_bool(f, "raw", false))
        return tn_tokenize(r->model, prompt, strlen(prompt), TN_TEXT_ADD_SPECIAL | TN_TEXT_PARSE_SPECIAL, ids,
                           n);
    tn_turn turns[2] = {{.struct_size = sizeof *turns, .role = "system", .content = system},
                        {.struct_size = sizeof *turns, .role = "user", .content = prompt}};
    tn_chat_config chat;
    if (!messages_chat(f, m, &chat)) return TN_ERR_ARG;
    return tn_chat_tokenize(r->model, system ? turns : turns + 1, system ? 2 : 1, &chat, ids, n);
}

static void start_generate(fields *f, const char *prompt, const char *system)
{
    text_request *t = openai_request(f, &generate_protocol, "gen-", "prompt");
    size_t n = 0;
    if (!t || !params_read_ollama(f, &t->p)) return;
    if (generate_ids(f, &t->turns, prompt, system && *system ? system : NULL, &t->ids[0], &n) != TN_OK) {
        field_fail(f, ERROR_FIELD, "prompt", "the chat template refuses it");
        return;
    }
    t->tokenized[0] = true;
    t->list[t->n++] = (job_prompt){t->ids[0], n, NULL};
    if (!tools_constrain(f, &t->turns.tools, &t->p, t->ids[0], n)) return;
    openai_start(f);
}

void route_ollama_generate(fields *f)
{
    const char *prompt = field_text(f, "prompt", ""), *system = field_text(f, "system", NULL);
    const char *suffix = field_text(f, "suffix", "");
    const node *images = field_of(f, "images", NODE_LIST);
    if (*suffix) field_fail(f, ERROR_UNSUPPORTED, "suffix", "this is not offered");
    if (images && images->n > 0) field_fail(f, ERROR_VALUE, "images", "this model reads no images");
    if (f->failed) return;
    if (*prompt)
        start_generate(f, prompt, system);
    else
        answer_load(f, true);
}

// --- models ----------------------------------------------------------------------------------------------

void route_ollama_version(server *s, exchange *x)
{
    json *j = reply_json(s);
    json_object(j, NULL);
    json_text(j, "version", ollama_version);
    json_end_object(j);
    reply_send(s, x, 200);
}

static void put_details(const model_facts *facts, json *j)
{
    char size[32];
    double n = (double)facts->n_params;
    snprintf(size, sizeof size, n >= 1e9 ? "%.1fB" : "%.1fM", n >= 1e9 ? n * 1e-9 : n * 1e-6);
    json_object(j, "details");
    json_text(j, "parent_model", "");
    json_text(j, "format", "gguf");
    json_text(j, "family", facts->arch);
    json_array(j, "families");
    json_text(j, NULL, facts->arch);
    json_end_array(j);
    json_text(j, "parameter_size", size);
    json_text(j, "quantization_level", facts->quant);
    json_end_object(j);
}

static void put_model(const model *m, json *j, bool running)
{
    char digest[72];
    const model_facts *facts = &m->facts;
    // No hash of the file: reading all of it would take long. The figures of the model in its place.
    snprintf(digest, sizeof digest, "%016llx%016llx%032d", (unsigned long long)facts->file_size,
             (unsigned long long)facts->n_params, 0);
    json_object(j, NULL);
    json_text(j, "name", m->name);
    json_text(j, "model", m->name);
    if (!running) put_time(j, "modified_at", m->modified);
    json_size(j, "size", running ? model_size(m) : facts->file_size);
    json_text(j, "digest", digest);
    put_details(facts, j);
    if (running) {
        put_time(j, "expires_at", model_expires(m));
        json_size(j, "size_vram", facts->device_size);
        json_int(j, "context_length", facts->n_ctx);
    }
    json_end_object(j);
}

static void answer_models(server *s, exchange *x, bool running)
{
    json *j = reply_json(s);
    json_object(j, NULL);
    json_array(j, "models");
    for (int i = 0; i < s->models.n; i++) {
        const model *m = &s->models.all[i];
        if (running ? m->state == MODEL_READY : !m->failure[0]) put_model(m, j, running);
    }
    json_end_array(j);
    json_end_object(j);
    reply_send(s, x, 200);
}

void route_ollama_tags(server *s, exchange *x)
{
    answer_models(s, x, false);
}

void route_ollama_ps(server *s, exchange *x)
{
    answer_models(s, x, true);
}

// Whether its chat template writes or turns off thoughts.
static bool has_thoughts(const char *chat_template)
{
    static const char *const marks[] = {"<think>", "enable_thinking", "reasoning_effort", "[THINK]",
                                        "<|START_THINKING|>"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(chat_template, marks[i])) return true;
    return false;
}

static void put_capabilities(const model_facts *facts, const char *chat_template, json *j)
{
    json_array(j, "capabilities");
    json_text(j, NULL, facts->gives_text ? "completion" : "embedding");
    if (facts->gives_text) json_text(j, NULL, "tools");
    if (facts->gives_text && has_thoughts(chat_template)) json_text(j, NULL, "thinking");
    json_end_array(j);
}

static void put_info(fields *f, const tn_file *file, json *j)
{
    const model_facts *facts = &f->m->facts;
    json_object(j, "model_info");
    json_size(j, "general.parameter_count", facts->n_params);
    if (file)
        details_put_keys(f->s->tool.ctx, file, j);
    else
        json_text(j, "general.architecture", facts->arch);
    json_end_object(j);
}

void route_ollama_show(fields *f)
{
    tn_file *file = NULL;
    if (tn_file_open(f->s->tool.ctx, f->m->path, &file) != TN_OK) file = NULL; // it is gone by now
    char *chat_template = file ? details_template(f->s->tool.ctx, file) : strdup("");
    const char *text = chat_template ? chat_template : "";
    json *j = writer_json(f->w);
    json_object(j, NULL);
    json_text(j, "modelfile", "");
    json_text(j, "parameters", "");
    json_text(j, "template", text);
    put_details(&f->m->facts, j);
    put_info(f, file, j);
    put_capabilities(&f->m->facts, text, j);
    json_end_object(j);
    fields_send(f);
    tn_file_close(&file);
    free(chat_template);
}
