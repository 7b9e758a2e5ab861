// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// From a request to its handler: the table of routes, and what is checked before a handler runs.
#include "tools/server/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    OPEN = ROUTE_OPEN,
    UNREADY = ROUTE_UNREADY,
    TEXT = ROUTE_TEXT,
    FACTS = ROUTE_FACTS,
    O = ROUTE_OLLAMA,
};

// clang-format off
static const route routes[] = {
    {"/",                                  OPEN | UNREADY,             route_page, NULL, 19},
    {"/page.js",                           OPEN | UNREADY,             route_page, NULL, 19},
    {"/page.css",                          OPEN | UNREADY,             route_page, NULL, 19},
    {"/page.svg",                          OPEN | UNREADY,             route_page, NULL, 19},
    {"/page-licenses.txt",                 OPEN | UNREADY,             route_page, NULL, 19},
    {"/health",                            OPEN | UNREADY,             route_health, NULL, 0},
    {"/v1/health",                         OPEN | UNREADY,             route_health, NULL, 0},
    {"/v1/models",                         0,                          route_models, NULL, 1},
    {"/models",                            0,                          route_models, NULL, 1},
    {"/v1/models/",                        ROUTE_PREFIX,               route_model, NULL, 2},
    {"/v1/chat/completions",               TEXT,                       NULL, route_chat, 3},
    {"/chat/completions",                  TEXT,                       NULL, route_chat, 3},
    {"/v1/chat/completions/input_tokens",  TEXT,                       NULL, route_input_tokens, 4},
    {"/v1/responses",                      TEXT,                       NULL, route_responses, 20},
    {"/v1/completions",                    TEXT,                       NULL, route_completions, 5},
    {"/v1/embeddings",                     0,                          NULL, route_embeddings, 6},
    {"/v1/rerank",                         0,                          NULL, route_rerank, 18},
    {"/rerank",                            0,                          NULL, route_rerank, 18},
    {"/v1/reranking",                      0,                          NULL, route_rerank, 18},
    {"/tokenize",                          0,                          NULL, route_tokenize, 7},
    {"/detokenize",                        0,                          NULL, route_detokenize, 8},
    {"/apply-template",                    TEXT,                       NULL, route_apply_template, 9},
    {"/metrics",                           UNREADY | ROUTE_LOCAL_OPEN, route_metrics, NULL, 10},
    {"/api/version",                       O | UNREADY,                route_ollama_version, NULL, 11},
    {"/api/tags",                          O,                          route_ollama_tags, NULL, 12},
    {"/api/ps",                            O,                          route_ollama_ps, NULL, 13},
    {"/api/show",                          O | FACTS,                  NULL, route_ollama_show, 14},
    {"/api/chat",                          TEXT | O,                   NULL, route_ollama_chat, 15},
    {"/api/generate",                      TEXT | O,                   NULL, route_ollama_generate, 16},
    {"/api/embed",                         O,                          NULL, route_ollama_embed, 17},
    {"/api/embeddings",                    O,                          NULL, route_ollama_embeddings, 21},
};
// clang-format on

const char *const route_names[METRIC_ROUTES] = {"/health",
                                                "/v1/models",
                                                "/v1/models/{id}",
                                                "/v1/chat/completions",
                                                "/v1/chat/completions/input_tokens",
                                                "/v1/completions",
                                                "/v1/embeddings",
                                                "/tokenize",
                                                "/detokenize",
                                                "/apply-template",
                                                "/metrics",
                                                "/api/version",
                                                "/api/tags",
                                                "/api/ps",
                                                "/api/show",
                                                "/api/chat",
                                                "/api/generate",
                                                "/api/embed",
                                                "/v1/rerank",
                                                "/",
                                                "/v1/responses",
                                                "/api/embeddings"};

// For errors before a route is known: their form follows the path.
static const route no_route = {"", 0, NULL, NULL, METRIC_ROUTES - 1};
static const route no_ollama_route = {"", ROUTE_OLLAMA, NULL, NULL, METRIC_ROUTES - 1};

static const route *find_route(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const route *r = &routes[i];
        size_t n = strlen(r->path);
        if (r->flags & ROUTE_PREFIX ? strncmp(path, r->path, n) == 0 && path[n] : strcmp(path, r->path) == 0)
            return r;
    }
    return strncmp(path, "/api/", 5) == 0 ? &no_ollama_route : &no_route;
}

// --- checks before the body is read ----------------------------------------------------------------------

static const char *methods_of(const route *r)
{
    return r->get ? "GET, HEAD, OPTIONS" : r->post ? "POST, OPTIONS" : "GET, HEAD, POST, OPTIONS";
}

static const struct {
    error_id id;
    const char *message;
} faults[HTTP_FAULTS] = {
    [HTTP_BAD_LENGTH] = {ERROR_REQUEST,
                         "Content-Length is not one plain number, or comes with Transfer-Encoding"},
    [HTTP_CHUNKED] = {ERROR_LENGTH, "chunked bodies are not accepted; send the body with its Content-Length"},
    [HTTP_BAD_CODING] = {ERROR_REQUEST, "Transfer-Encoding does not end with chunked, once"},
    [HTTP_OTHER_CODING] = {ERROR_CODING, "Transfer-Encoding has a coding that is not known here"},
    [HTTP_BAD_VERSION] = {ERROR_REQUEST, "the request line does not end with HTTP/1.1 or HTTP/1.0"},
    [HTTP_OTHER_VERSION] = {ERROR_VERSION, "HTTP/1.1 and HTTP/1.0 are spoken here"},
    [HTTP_BAD_EXPECT] = {ERROR_EXPECT, "of Expect only 100-continue is known"},
    [HTTP_REPEATED] = {ERROR_REQUEST, "Host or Content-Type occurs twice"},
    [HTTP_BAD_PATH] = {ERROR_REQUEST, "the path has a byte 0"},
    [HTTP_LONG_PATH] = {ERROR_URI, "the path or the query is too long"},
};

static bool check_http(server *s, exchange *x)
{
    const char *host = x->headers[HEADER_HOST];
    if (x->no_memory) {
        x->closes = true;
        reply_error(s, x, ERROR_OWN, NULL, "out of memory for the headers");
    } else if (x->fault) {
        reply_error(s, x, faults[x->fault].id, NULL, "%s", faults[x->fault].message);
    } else if (!host && !x->http10) {
        reply_error(s, x, ERROR_REQUEST, NULL, "the header Host is missing");
    } else if (host && !host_is_formed(host)) {
        reply_error(s, x, ERROR_REQUEST, NULL, "the header Host is no name with or without a port");
    } else if (host && !access_host(&s->access, host)) {
        reply_error(s, x, ERROR_FORBIDDEN, NULL,
                    "this name of the host is not allowed; --allow-host of the server adds one");
    }
    return !x->status;
}

void router_identify(void *user, exchange *x)
{
    char id[sizeof x->id];
    reply_id(user, x, "req-", id, sizeof id);
}

void router_late(void *user, exchange *x)
{
    reply_error(user, x, ERROR_LATE, NULL, "the body did not come in time");
}

// A page that a browser shows may only use the server if its origin is allowed. Without a key a request that
// a browser sends without asking first (text/plain, a form) would otherwise use the model.
static bool check_origin(server *s, exchange *x)
{
    const char *origin = x->headers[HEADER_ORIGIN], *type = x->headers[HEADER_CONTENT_TYPE];
    if (!origin) return true;
    if (access_origin(&s->access, origin)) {
        exchange_header(x, "access-control-allow-origin", origin);
        exchange_header(x, "vary", "Origin");
        exchange_header(x, "access-control-expose-headers", "x-request-id, x-prefix-key, retry-after");
        return true;
    }
    bool simple = !type || strncasecmp(type, "text/plain", 10) == 0 ||
                  strncasecmp(type, "multipart/", 10) == 0 ||
                  strncasecmp(type, "application/x-www-form-urlencoded", 33) == 0;
    if (x->method != HTTP_POST || !simple || s->access.n_keys > 0) return true;
    reply_error(s, x, ERROR_FORBIDDEN, NULL,
                "pages of this origin are not allowed; --allow-origin of the server adds one");
    return false;
}

// The names that a preflight asks for, as far as they are allowed.
static void allow_headers(exchange *x)
{
    static const char *const known[] = {"authorization", "content-type", "x-api-key", "x-request-id",
                                        "x-prefix-key"};
    char out[512] = "authorization, content-type, x-api-key, x-request-id, x-prefix-key";
    size_t used = strlen(out);
    const char *p = x->headers[HEADER_REQUEST_HEADERS];
    while (p && *p) {
        p += strspn(p, " ,");
        size_t n = strcspn(p, " ,");
        bool extra = n > 12 && strncasecmp(p, "x-stainless-", 12) == 0;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            extra = extra && !(strlen(known[i]) == n && strncasecmp(p, known[i], n) == 0);
        if (extra && strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") >= n &&
            used + n + 3 < sizeof out)
            used += (size_t)snprintf(out + used, sizeof out - used, ", %.*s", (int)n, p);
        p += n;
    }
    exchange_header(x, "access-control-allow-headers", out);
}

static void answer_preflight(exchange *x)
{
    exchange_header(x, "allow", methods_of(x->route));
    const char *origin = x->headers[HEADER_ORIGIN];
    if (origin && x->headers[HEADER_REQUEST_METHOD] &&
        strstr(x->more_headers, "access-control-allow-origin")) {
        exchange_header(x, "access-control-allow-methods", "GET, POST, OPTIONS");
        allow_headers(x);
        exchange_header(x, "access-control-max-age", "600");
        exchange_header(x, "access-control-allow-private-network", "true");
    }
    exchange_begin(x, 204, NULL, 0);
    exchange_end(x);
}

static bool check_route(server *s, exchange *x)
{
    const route *r = x->route;
    if (!r->get && !r->post) {
        reply_error(s, x, ERROR_PATH, NULL, "there is no %.100s here; GET /v1/models lists the models",
                    x->path);
        return false;
    }
    bool allowed = x->method == HTTP_POST ? r->post != NULL : r->get && x->method != HTTP_OTHER;
    if (allowed) return true;
    exchange_header(x, "allow", methods_of(r));
    reply_error(s, x, ERROR_METHOD, NULL, "%s takes %s", r->path, methods_of(r));
    return false;
}

static bool check_key(server *s, exchange *x)
{
    const route *r = x->route;
    bool open = (r->flags & ROUTE_OPEN) || ((r->flags & ROUTE_LOCAL_OPEN) && x->from_loopback);
    const char *given = x->headers[HEADER_AUTHORIZATION], *key = x->headers[HEADER_API_KEY];
    if (open || access_key(&s->access, given, key)) return true;
    reply_error(s, x, ERROR_KEY, NULL,
                given || key ? "the key is wrong" : "a key is needed: Authorization: Bearer KEY");
    return false;
}

static bool check_state(server *s, exchange *x)
{
    if (x->route->flags & ROUTE_UNREADY) return true;
    if (s->state == SERVER_LOADING) reply_error(s, x, ERROR_LOADING, NULL, "the model is being loaded");
    if (s->state == SERVER_DRAINING) reply_error(s, x, ERROR_DRAINING, NULL, "the server is shutting down");
    return s->state == SERVER_READY;
}

static bool check_size(server *s, exchange *x)
{
    int64_t most = opt_int(s->opt, OPT_BODY_LIMIT) << 20;
    if (x->announced <= most) return true;
    reply_error(s, x, ERROR_SIZE, NULL, "the body has %lld bytes, at most %lld are accepted",
                (long long)x->announced, (long long)most);
    return false;
}

// An id of the client's is taken over if it is short and harmless.
static void take_id(exchange *x)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    enum { ID_MAX = 64 };
    const char *id = x->headers[HEADER_REQUEST_ID];
    size_t n = id ? strlen(id) : 0;
    if (n > 0 && n <= ID_MAX && strspn(id, allowed) == n) memcpy(x->id, id, n + 1);
}

void router_head(void *user, exchange *x)
{
    server *s = user;
    size_t n = strlen(x->path);
    if (n > 1 && x->path[n - 1] == '/') x->path[n - 1] = 0;
    x->route = find_route(x->path);
    take_id(x);
    if (!check_http(s, x) || !check_origin(s, x)) return;
    if (x->method == HTTP_OPTIONS) {
        answer_preflight(x);
        return;
    }
    (void)(check_route(s, x) && check_key(s, x) && check_state(s, x) && check_size(s, x));
}

// --- requests --------------------------------------------------------------------------------------------

void router_request(void *user, exchange *x)
{
    server *s = user;
    if (!check_state(s, x)) return;
    if (x->route->get)
        x->route->get(s, x);
    else
        request_begin(s, x);
}
