// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Answers as JSON, and errors in the two forms that clients know.
#include "tools/server/server.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGE_SIZE = 1024 };

typedef struct error_row {
    int status;
    const char *type, *code; // code NULL: null
    int reject;              // REJECT_*
} error_row;

static const error_row errors[ERROR_COUNT] = {
    [ERROR_JSON] = {400, "invalid_request_error", "invalid_json", REJECT_PARSE},
    [ERROR_FIELD] = {400, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_UNSUPPORTED] = {400, "invalid_request_error", "unsupported_parameter", REJECT_NONE},
    [ERROR_VALUE] = {400, "invalid_request_error", "unsupported_value", REJECT_NONE},
    [ERROR_CONTEXT] = {400, "invalid_request_error", "context_length_exceeded", REJECT_NONE},
    [ERROR_SCHEMA] = {400, "invalid_request_error", "invalid_schema", REJECT_NONE},
    [ERROR_KEY] = {401, "authentication_error", "invalid_api_key", REJECT_KEY},
    [ERROR_FORBIDDEN] = {403, "permission_error", NULL, REJECT_NONE},
    [ERROR_PATH] = {404, "not_found_error", NULL, REJECT_NONE},
    [ERROR_MODEL] = {404, "invalid_request_error", "model_not_found", REJECT_NONE},
    [ERROR_KIND] = {400, "invalid_request_error", "unsupported_model", REJECT_NONE},
    [ERROR_METHOD] = {405, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_REQUEST] = {400, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_LENGTH] = {411, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_SIZE] = {413, "invalid_request_error", NULL, REJECT_SIZE},
    [ERROR_URI] = {414, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_LATE] = {408, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_EXPECT] = {417, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_CODING] = {501, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_VERSION] = {505, "invalid_request_error", NULL, REJECT_NONE},
    [ERROR_BUSY] = {429, "rate_limit_error", "queue_full", REJECT_QUEUE},
    [ERROR_LOADING] = {503, "unavailable_error", "loading", REJECT_NONE},
    [ERROR_DRAINING] = {503, "unavailable_error", "shutting_down", REJECT_DRAINING},
    [ERROR_LOST] = {503, "unavailable_error", "device_lost", REJECT_NONE},
    [ERROR_LOAD] = {500, "server_error", "model_load_failed", REJECT_NONE},
    [ERROR_TIME] = {503, "server_error", "timeout", REJECT_NONE},
    [ERROR_OWN] = {500, "server_error", NULL, REJECT_NONE},
};

int64_t unix_seconds(void)
{
    return (int64_t)time(NULL);
}

uint64_t mix_bits(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// --- JSON ------------------------------------------------------------------------------------------------

bool writer_open(writer *w)
{
    w->f = open_memstream(&w->text, &w->n);
    return w->f != NULL;
}

void writer_close(writer *w)
{
    if (w->f) fclose(w->f);
    free(w->text);
    *w = (writer){.f = NULL};
}

json *writer_json(writer *w)
{
    clearerr(w->f); // memory may have run out before
    (void)fseeko(w->f, 0, SEEK_SET);
    json_init(&w->j, w->f);
    w->j.compact = true;
    return &w->j;
}

const char *writer_text(writer *w, size_t *n)
{
    *n = fflush(w->f) == 0 && !ferror(w->f) ? w->n : 0;
    return w->text;
}

char *writer_copy(writer *w)
{
    size_t n;
    const char *text = writer_text(w, &n);
    char *out = n > 0 ? malloc(n + 1) : NULL;
    if (!out) return NULL;
    memcpy(out, text, n);
    out[n] = 0;
    return out;
}

json *reply_json(server *s)
{
    return writer_json(&s->out);
}

const char *reply_text(server *s, size_t *n)
{
    return writer_text(&s->out, n);
}

void reply_bytes(exchange *x, int status, const char *type, const char *text, size_t n)
{
    exchange_begin(x, status, type, (int64_t)n);
    exchange_write(x, text, n);
    exchange_end(x);
}

void reply_send(server *s, exchange *x, int status)
{
    size_t n;
    static const char none[] = "{\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\","
                               "\"param\":null,\"code\":null}}";
    const char *text = reply_text(s, &n);
    if (n > 0)
        reply_bytes(x, status, "application/json", text, n);
    else
        reply_bytes(x, errors[ERROR_OWN].status, "application/json", none, sizeof none - 1);
}

int reply_error_status(error_id id)
{
    return errors[id].status;
}

void reply_error_json(server *s, const exchange *x, error_id id, const char *param, const char *message)
{
    json *j = reply_json(s);
    json_object(j, NULL);
    if (x->route && (x->route->flags & ROUTE_OLLAMA)) {
        json_text(j, "error", message);
    } else {
        json_object(j, "error");
        json_text(j, "message", message);
        json_text(j, "type", errors[id].type);
        json_text(j, "param", param);
        json_text(j, "code", errors[id].code);
        json_end_object(j);
    }
    json_end_object(j);
}

static void add_error_headers(exchange *x, error_id id)
{
    if (errors[id].status == 429 || errors[id].status == 503) exchange_header(x, "retry-after", "1");
    if (id == ERROR_KEY) exchange_header(x, "www-authenticate", "Bearer");
    // It would fail again.
    if (id == ERROR_TIME || id == ERROR_LOAD) exchange_header(x, "x-should-retry", "false");
    // What follows such a request in the connection cannot be trusted, or is not wanted.
    if (id == ERROR_REQUEST || id == ERROR_LENGTH || id == ERROR_SIZE || id == ERROR_DRAINING ||
        id == ERROR_LATE || id == ERROR_CODING || id == ERROR_VERSION)
        x->closes = true;
}

void reply_error(server *s, exchange *x, error_id id, const char *param, const char *fmt, ...)
{
    char message[MESSAGE_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    s->figures.rejected[errors[id].reject]++;
    reply_error_json(s, x, id, param, message);
    add_error_headers(x, id);
    reply_send(s, x, errors[id].status);
}

void reply_too_long(server *s, exchange *x, const char *param, size_t n_prompt, int32_t n_ctx)
{
    char message[MESSAGE_SIZE];
    snprintf(message, sizeof message,
             "the request exceeds the available context size: maximum context length is %d tokens, the %s "
             "%s %zu; reduce its length",
             n_ctx, param, strcmp(param, "messages") == 0 ? "have" : "has", n_prompt);
    if (x->route->flags & ROUTE_OLLAMA) {
        reply_error(s, x, ERROR_CONTEXT, param, "%s", message);
        return;
    }
    json *j = reply_json(s);
    json_object(j, NULL);
    json_object(j, "error");
    json_text(j, "message", message);
    json_text(j, "type", errors[ERROR_CONTEXT].type);
    json_text(j, "param", param);
    json_text(j, "code", errors[ERROR_CONTEXT].code);
    json_size(j, "n_prompt_tokens", n_prompt);
    json_int(j, "n_ctx", n_ctx);
    json_end_object(j);
    json_end_object(j);
    reply_send(s, x, errors[ERROR_CONTEXT].status);
}

void reply_id(server *s, exchange *x, const char *prefix, char *out, size_t size)
{
    uint64_t k = ++s->next_id * 0x9e3779b97f4a7c15u; // spreads the count over all digits; one to one
    snprintf(out, size, "%s%016llx", prefix, (unsigned long long)(k ^ s->id_salt));
    if (!x->id[0]) snprintf(x->id, sizeof x->id, "%s", out);
}
