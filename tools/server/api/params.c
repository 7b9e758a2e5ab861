// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampling, limits and constraints of a request, on top of the options of the server.
#include "tools/server/api/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SALT_SIZE = 1024 };
enum { STOPS_MAX = 16, STOP_SIZE = 256, TOP_CHAT = 20, TOP_COMPLETION = 5, COMPLETION_TOKENS = 16 };

// The defaults of the server's command line, with a new seed.
static void set_defaults(const fields *f, request_params *p)
{
    *p = (request_params){.n = 1};
    answer_config(&f->m->r, 0, &p->sampling, &p->cfg);
    p->sampling.seed = f->salt;
    p->sampling.n_logprobs = 0;
}

static void read_seed(fields *f, request_params *p)
{
    const node *v = field_of(f, "seed", NODE_NUMBER);
    if (v && !v->whole) field_fail(f, ERROR_FIELD, "seed", "a whole number is expected");
    if (v && v->integer != -1) p->sampling.seed = (uint64_t)v->integer;
}

static void read_sampling(fields *f, request_params *p)
{
    tn_sampling *s = &p->sampling;
    s->temperature = (float)field_number(f, "temperature", 0, 100, (double)s->temperature);
    int64_t top_k = field_int(f, "top_k", -1, INT32_MAX, s->top_k);
    s->top_k = top_k < 0 ? 0 : (int32_t)top_k;
    s->top_p = (float)field_number(f, "top_p", 0, 1, (double)s->top_p);
    s->min_p = (float)field_number(f, "min_p", 0, 1, (double)s->min_p);
    s->typical_p = (float)field_number(f, "typical_p", 0, 1, (double)s->typical_p);
    double repeat = field_number(f, "repetition_penalty", .01, 100, (double)s->repeat_penalty);
    s->repeat_penalty = (float)field_number(f, "repeat_penalty", .01, 100, repeat);
    s->penalty_last_n = (int32_t)field_int(f, "repeat_last_n", -1, 1000000, s->penalty_last_n);
    s->frequency_penalty = (float)field_number(f, "frequency_penalty", -2, 2, (double)s->frequency_penalty);
    s->presence_penalty = (float)field_number(f, "presence_penalty", -2, 2, (double)s->presence_penalty);
    read_seed(f, p);
}

static void add_stop(fields *f, request_params *p, const node *v)
{
    if (v->kind != NODE_TEXT || v->n_text == 0 || v->n_text > STOP_SIZE)
        field_fail(f, ERROR_FIELD, "stop", "each item must be a string of 1 to %d bytes", STOP_SIZE);
    else if (p->cfg.n_stops >= STOPS_MAX)
        field_fail(f, ERROR_FIELD, "stop", "at most %d strings are accepted", STOPS_MAX);
    else
        p->stops[p->cfg.n_stops++] = v->text;
}

static void read_stops(fields *f, request_params *p)
{
    const node *v = field(f, "stop");
    p->cfg.stops = p->stops;
    p->cfg.n_stops = 0;
    if (!v) return;
    if (v->kind == NODE_TEXT) {
        add_stop(f, p, v);
    } else if (v->kind == NODE_LIST) {
        for (const node *item = v->first; item && !f->failed; item = item->next) add_stop(f, p, item);
    } else {
        field_fail(f, ERROR_FIELD, "stop", "%s was found, a string or a list of strings is expected",
                   node_kind_name(v));
    }
}

static void read_bias(fields *f, request_params *p)
{
    const node *v = field_of(f, "logit_bias", NODE_OBJECT);
    if (!v || v->n == 0) return;
    p->bias_tokens = calloc(v->n, sizeof *p->bias_tokens);
    p->bias_values = calloc(v->n, sizeof *p->bias_values);
    if (!p->bias_tokens || !p->bias_values) {
        field_fail(f, ERROR_OWN, "logit_bias", "out of memory");
        return;
    }
    int32_t n = 0;
    for (const node *item = v->first; item; item = item->next, n++) {
        char *end;
        long long id = strtoll(item->key, &end, 10);
        if (end == item->key || *end || id < 0 || id >= f->m->r.info.n_vocab) {
            field_fail(f, ERROR_FIELD, "logit_bias", "'%.40s' is no token id from 0 to %d", item->key,
                       f->m->r.info.n_vocab - 1);
            return;
        }
        if (item->kind != NODE_NUMBER || fabs(item->number) > 100) {
            field_fail(f, ERROR_FIELD, "logit_bias", "the value of %lld must be a number from -100 to 100",
                       id);
            return;
        }
        p->bias_tokens[n] = (int32_t)id;
        // OpenAI: -100 bans a token.
        p->bias_values[n] = item->number <= -100 ? -INFINITY : (float)item->number;
    }
    p->sampling.bias_tokens = p->bias_tokens;
    p->sampling.bias_values = p->bias_values;
    p->sampling.n_bias = n;
}

static void read_logprobs(fields *f, request_params *p, bool chat)
{
    if (!chat) {
        int64_t n = field_int(f, "logprobs", 0, TOP_COMPLETION, -1);
        p->logprobs = n >= 0;
        p->sampling.n_logprobs = n > 0 ? (int32_t)n : 0;
        return;
    }
    p->logprobs = field_bool(f, "logprobs", false);
    int64_t top = field_int(f, "top_logprobs", 0, TOP_CHAT, 0);
    if (top > 0 && !p->logprobs) field_fail(f, ERROR_FIELD, "top_logprobs", "it needs logprobs to be true");
    p->sampling.n_logprobs = (int32_t)top;
}

// --- constraints -----------------------------------------------------------------------------------------

static void set_schema(fields *f, request_params *p, const node *schema, const char *name)
{
    static const char any_object[] = "{\"type\":\"object\"}";
    if (schema && schema->kind != NODE_OBJECT && schema->kind != NODE_BOOL) {
        field_fail(f, ERROR_SCHEMA, name, "%s was found, a schema is an object", node_kind_name(schema));
        return;
    }
    free(p->schema);
    p->schema = schema ? node_copy(schema) : strdup(any_object);
    if (!p->schema) field_fail(f, ERROR_OWN, name, "out of memory");
    p->cfg.json_schema = p->schema;
    p->schema_field = name;
}

static void read_format(fields *f, request_params *p)
{
    const node *v = field_of(f, "response_format", NODE_OBJECT);
    if (!v) return;
    const node *type = node_get(v, "type"), *inner = node_get(v, "json_schema");
    const char *name = type && type->kind == NODE_TEXT ? type->text : "";
    if (strcmp(name, "text") == 0) return;
    if (strcmp(name, "json_object") == 0) {
        set_schema(f, p, node_get(v, "schema"), "response_format.schema");
    } else if (strcmp(name, "json_schema") == 0) {
        const node *schema = inner ? node_get(inner, "schema") : NULL;
        if (!schema)
            field_fail(f, ERROR_FIELD, "response_format.json_schema.schema", "a schema is expected");
        else
            set_schema(f, p, schema, "response_format.json_schema.schema");
    } else {
        field_fail(f, ERROR_FIELD, "response_format.type", "it must be text, json_object or json_schema");
    }
}

static void read_constraints(fields *f, request_params *p)
{
    read_format(f, p);
    const node *schema = field_of(f, "json_schema", NODE_OBJECT);
    if (schema) set_schema(f, p, schema, "json_schema");
    p->cfg.grammar = field_text(f, "grammar", NULL);
    if (p->cfg.grammar && p->cfg.json_schema)
        field_fail(f, ERROR_FIELD, "grammar", "it excludes a schema; give one of them");
}

// --- the whole -------------------------------------------------------------------------------------------

static void read_limit(fields *f, request_params *p, bool chat)
{
    int64_t otherwise = chat ? p->cfg.max_tokens : COMPLETION_TOKENS;
    int64_t n = field_int(f, "max_tokens", -1, INT32_MAX, otherwise);
    n = field_int(f, "max_completion_tokens", -1, INT32_MAX, n);
    // Evaluations of models ask for the logprobs of the prompt alone.
    if (n == 0 && (chat || !field_bool(f, "echo", false)))
        field_fail(f, ERROR_FIELD, "max_tokens", "0 was found, at least 1 is expected, or -1 for no limit");
    p->cfg.max_tokens = (int32_t)n;
}

// FNV-1a, 64 bits. Users with salts of their own share no prefixes.
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

bool params_read(fields *f, request_params *p, bool chat)
{
    set_defaults(f, p);
    p->stream = field_bool(f, "stream", false);
    const node *stream = field_of(f, "stream_options", NODE_OBJECT);
    fields inner = fields_inner(f, stream, "stream_options.");
    p->include_usage = stream && field_bool(&inner, "include_usage", false);
    f->failed = f->failed || inner.failed;
    read_limit(f, p, chat);
    read_sampling(f, p);
    read_stops(f, p);
    read_bias(f, p);
    read_logprobs(f, p, chat);
    read_constraints(f, p);
    p->cfg.ignore_end = field_bool(f, "ignore_eos", false);
    p->cfg.min_tokens = (int32_t)field_int(f, "min_tokens", 0, INT32_MAX, 0);
    const char *salt = field_text(f, "cache_salt", NULL);
    if (salt && (!*salt || strlen(salt) > SALT_SIZE))
        field_fail(f, ERROR_FIELD, "cache_salt", "1 to %d bytes are expected", SALT_SIZE);
    p->salt = salt ? hash_of(salt) : 0;
    p->n = (int32_t)field_int(f, "n", 1, f->m->facts.n_seq, 1);
    return !f->failed;
}

bool params_read_ollama(fields *f, request_params *p)
{
    set_defaults(f, p);
    p->stream = field_bool(f, "stream", true);
    const node *inner = field_of(f, "options", NODE_OBJECT), *format = field(f, "format");
    fields o = fields_inner(f, inner, "options.");
    p->cfg.max_tokens = (int32_t)field_int(&o, "num_predict", -2, INT32_MAX, p->cfg.max_tokens);
    if (p->cfg.max_tokens < 0) p->cfg.max_tokens = -1;
    int64_t n_ctx = field_int(&o, "num_ctx", 1, INT32_MAX, 1);
    if (n_ctx > f->m->facts.n_ctx)
        field_fail(&o, ERROR_FIELD, "num_ctx", "%lld was found, the model has %d", (long long)n_ctx,
                   f->m->facts.n_ctx);
    read_sampling(&o, p);
    read_stops(&o, p);
    f->failed = f->failed || o.failed;
    read_logprobs(f, p, true);
    if (format && format->kind == NODE_TEXT && strcmp(format->text, "json") == 0)
        set_schema(f, p, NULL, "format");
    else if (format && !(format->kind == NODE_TEXT && format->n_text == 0))
        set_schema(f, p, format, "format");
    return !f->failed;
}

void params_fini(request_params *p)
{
    free(p->bias_tokens);
    free(p->bias_values);
    free(p->schema);
}
