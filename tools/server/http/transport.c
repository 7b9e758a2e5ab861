// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 by libwebsockets. The library parses requests, keeps connections alive, notices their ends and
// writes when a socket can take more; the listening sockets are ours (listen.c), so that an address in use is
// reported with its reason and the number of connections is bounded.
#include "tools/server/http/transport.h"

#include "tools/common.h"
#include "tools/server/http/listen.h"
#include "tools/server/http/addresses.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    HEAD_MAX = 32 * 1024,     // bytes of all headers of a request
    OUT_MAX = 1 << 20,        // bytes of a stream that wait for its client
    WRITE_SIZE = 64 * 1024,   // bytes of one write
    LINE_MAX_SIZE = 8192,     // bytes of path and query
    DISCARD_MAX = 256 * 1024, // a refused body that is read, so that the client reads the answer
    ANSWER_HEAD = 4096,
    OTHER_DESCRIPTORS = 256, // that may be open besides those of connections
    ACCEPTS = 64,            // connections that are accepted at a time
    HEAD_SECONDS = 10,
    IDLE_SECONDS = 75,
    BODY_SECONDS = 30,
    BODY_BYTES_PER_SECOND = 64 * 1024,
    LINGER_SECONDS = 1,
    BLOCKED_SECONDS = 30, // of a client that reads nothing
    TICK_US = 100 * 1000,
};
static const uint64_t second_ns = 1000000000u;

_Static_assert(EXCHANGE_PRE >= LWS_PRE, "the library writes in front of what it sends");

struct transport {
    transport_config cfg;
    listeners l;
    struct lws_context *context;
    struct lws_vhost *vhost;
    addresses addresses;
    struct lws *listening[LISTEN_MAX];
    int n_listening;
    lws_sorted_usec_list_t timer;
    exchange *exchanges;
    int n_open, n_busy;
    bool paused, draining;
    char address[160];
};

// --- exchanges -------------------------------------------------------------------------------------------

static exchange *new_exchange(transport *t, struct lws *wsi)
{
    exchange *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->owner = t;
    x->connection = wsi;
    x->announced = -1;
    x->start_ns = now_ns();
    x->next = t->exchanges;
    if (x->next) x->next->before = x;
    t->exchanges = x;
    t->n_busy++;
    lws_set_opaque_user_data(wsi, x);
    return x;
}

// Its connection is gone, or goes on to the next request.
static void release(exchange *x)
{
    transport *t = x->owner;
    lws_set_opaque_user_data(x->connection, NULL);
    x->connection = NULL;
    t->cfg.gone(t->cfg.user, x);
    if (x->before)
        x->before->next = x->next;
    else
        t->exchanges = x->next;
    if (x->next) x->next->before = x->before;
    t->n_busy--;
    exchange_free(x);
}

// --- answers ---------------------------------------------------------------------------------------------

static void flush(exchange *x)
{
    if (x->connection) lws_callback_on_writable(x->connection);
}

static bool put_header(struct lws *wsi, const char *name, const char *value, uint8_t **p, uint8_t *end)
{
    return lws_add_http_header_by_name(wsi, (const uint8_t *)name, (const uint8_t *)value, (int)strlen(value),
                                       p, end) == 0;
}

static bool put_more_headers(exchange *x, uint8_t **p, uint8_t *end)
{
    for (char *line = x->more_headers; *line;) {
        char *value = strchr(line, ':'), *stop = strchr(line, '\n'), name[64];
        snprintf(name, sizeof name, "%.*s:", (int)(value - line), line);
        *stop = 0;
        if (!put_header(x->connection, name, value + 2, p, end)) return false;
        line = stop + 1;
    }
    return true;
}

void exchange_begin(exchange *x, int status, const char *type, int64_t length)
{
    uint8_t head[ANSWER_HEAD], *p = head, *end = head + sizeof head;
    char number[32], date[40];
    x->status = status;
    x->streams = length < 0;
    if (!x->connection) return;
    struct lws *wsi = x->connection;
    if (!x->id[0]) x->owner->cfg.identify(x->owner->cfg.user, x);
    if (x->http10 || x->awaits_continue || (x->owner->draining && !x->in_body)) x->closes = true;
    snprintf(number, sizeof number, "%lld", (long long)length);
    bool ok = lws_add_http_header_status(wsi, (unsigned int)status, &p, end) == 0 &&
              put_header(wsi, "date:", http_date(date, sizeof date), &p, end) &&
              (!type || put_header(wsi, "content-type:", type, &p, end));
    if (x->streams) {
        ok = ok && put_header(wsi, "cache-control:", "no-cache", &p, end) &&
             put_header(wsi, "x-accel-buffering:", "no", &p, end) &&
             (x->http10 || put_header(wsi, "transfer-encoding:", "chunked", &p, end));
    } else if (status != 204 && status != 304) {
        ok = ok && put_header(wsi, "content-length:", number, &p, end);
    }
    ok = ok && put_header(wsi, "x-content-type-options:", "nosniff", &p, end) &&
         (!x->id[0] || put_header(wsi, "x-request-id:", x->id, &p, end)) && put_more_headers(x, &p, end) &&
         (!x->closes || put_header(wsi, "connection:", "close", &p, end)) &&
         lws_finalize_http_header(wsi, &p, end) == 0;
    if (!ok || !exchange_append(x, head, (size_t)(p - head))) {
        exchange_abort(x);
        return;
    }
    x->deadline_ns = now_ns() + BLOCKED_SECONDS * second_ns;
    flush(x);
}

void exchange_write(exchange *x, const void *data, size_t n)
{
    if (!x->connection || x->ended || n == 0 || x->method == HTTP_HEAD) return;
    if (x->n_out == x->sent) x->deadline_ns = now_ns() + BLOCKED_SECONDS * second_ns;
    bool ok = true;
    if (x->streams && !x->http10) {
        char size[24];
        int m = snprintf(size, sizeof size, "%zx\r\n", n);
        ok = exchange_append(x, size, (size_t)m) && exchange_append(x, data, n) &&
             exchange_append(x, "\r\n", 2);
    } else {
        ok = exchange_append(x, data, n);
    }
    if (!ok || (x->streams && x->n_out - x->sent > OUT_MAX)) {
        exchange_abort(x);
        return;
    }
    flush(x);
}

void exchange_end(exchange *x)
{
    if (!x->connection || x->ended) return;
    if (x->streams && !x->http10 && x->method != HTTP_HEAD && !exchange_append(x, "0\r\n\r\n", 5)) {
        exchange_abort(x);
        return;
    }
    x->ended = true;
    flush(x);
}

void exchange_abort(exchange *x)
{
    x->ended = x->closes = true;
    x->n_out = x->sent = 0;
    if (x->connection) lws_set_timeout(x->connection, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

// The answer was sent.
static int finish(exchange *x)
{
    struct lws *wsi = x->connection;
    bool closes = x->closes;
    release(x);
    if (closes) return -1;
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

static int write_some(exchange *x)
{
    if ((!x->status && !x->ended) || x->lingers) return 0;
    if (x->in_body && !x->closes) return 0; // the answer waits until the body was read
    size_t n = x->n_out - x->sent;
    if (n > WRITE_SIZE) n = WRITE_SIZE;
    if (n > 0) {
        uint8_t *from = (uint8_t *)x->out + EXCHANGE_PRE + x->sent;
        if (lws_write(x->connection, from, n, LWS_WRITE_HTTP) < 0) return -1;
        x->sent += n;
        x->deadline_ns = now_ns() + BLOCKED_SECONDS * second_ns;
    }
    if (x->sent < x->n_out) {
        flush(x);
        return 0;
    }
    x->sent = x->n_out = 0;
    if (!x->ended) return 0;
    if (!x->in_body) return finish(x);
    // The client still sends a body that was refused. Closing now would reset the connection, and the client
    // might not see the answer.
    x->lingers = true;
    x->deadline_ns = now_ns() + LINGER_SECONDS * second_ns;
    return 0;
}

// --- requests --------------------------------------------------------------------------------------------

static char *copy_token(exchange *x, struct lws *wsi, enum lws_token_indexes token)
{
    int n = lws_hdr_total_length(wsi, token);
    if (n <= 0) return NULL;
    char *out = malloc((size_t)n + 2);
    x->no_memory |= !out;
    if (out && lws_hdr_copy(wsi, out, n + 1, token) < 0) {
        free(out);
        out = NULL;
    }
    if (out) head_trim(out);
    return out;
}

static char *copy_named(exchange *x, struct lws *wsi, const char *name)
{
    int size = (int)strlen(name), n = lws_hdr_custom_length(wsi, name, size);
    if (n <= 0) return NULL;
    char *out = calloc(1, (size_t)n + 2);
    x->no_memory |= !out;
    if (out && lws_hdr_custom_copy(wsi, out, n + 1, name, size) < 0) {
        free(out);
        out = NULL;
    }
    return out;
}

static void read_headers(exchange *x, struct lws *wsi)
{
    static const struct {
        int header;
        enum lws_token_indexes token;
    } tokens[] = {
        {HEADER_HOST, WSI_TOKEN_HOST},
        {HEADER_ORIGIN, WSI_TOKEN_ORIGIN},
        {HEADER_AUTHORIZATION, WSI_TOKEN_HTTP_AUTHORIZATION},
        {HEADER_CONTENT_TYPE, WSI_TOKEN_HTTP_CONTENT_TYPE},
        {HEADER_ACCEPT, WSI_TOKEN_HTTP_ACCEPT},
        {HEADER_ACCEPT_ENCODING, WSI_TOKEN_HTTP_ACCEPT_ENCODING},
        {HEADER_IF_NONE_MATCH, WSI_TOKEN_HTTP_IF_NONE_MATCH},
        {HEADER_REQUEST_HEADERS, WSI_TOKEN_HTTP_AC_REQUEST_HEADERS},
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        x->headers[tokens[i].header] = copy_token(x, wsi, tokens[i].token);
    bool repeated = lws_hdr_fragment_length(wsi, WSI_TOKEN_HOST, 1) > 0 ||
                    lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE, 1) > 0;
    if (repeated && !x->fault) x->fault = HTTP_REPEATED;
    x->headers[HEADER_API_KEY] = copy_named(x, wsi, "x-api-key:");
    x->headers[HEADER_REQUEST_METHOD] = copy_named(x, wsi, "access-control-request-method:");
    x->headers[HEADER_REQUEST_ID] = copy_named(x, wsi, "x-request-id:");
}

static http_method read_method(struct lws *wsi)
{
    char *uri;
    int n;
    switch (lws_http_get_uri_and_method(wsi, &uri, &n)) {
    case LWSHUMETH_GET:
        return HTTP_GET;
    case LWSHUMETH_HEAD:
        return HTTP_HEAD;
    case LWSHUMETH_POST:
        return HTTP_POST;
    case LWSHUMETH_OPTIONS:
        return HTTP_OPTIONS;
    default:
        return HTTP_OTHER;
    }
}

static void read_framing(exchange *x, struct lws *wsi)
{
    char *version = copy_token(x, wsi, WSI_TOKEN_HTTP);
    char *length = copy_token(x, wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    char *coding = copy_token(x, wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING);
    char *expect = copy_token(x, wsi, WSI_TOKEN_HTTP_EXPECT);
    char *connection = copy_token(x, wsi, WSI_TOKEN_CONNECTION);
    http_fault of_version = head_version(version, &x->http10);
    http_fault of_length = head_length(length, coding, &x->announced);
    if (!x->fault) x->fault = of_version ? of_version : of_length;
    if (!x->fault && expect && strcasecmp(expect, "100-continue") != 0) x->fault = HTTP_BAD_EXPECT;
    x->awaits_continue = expect && !x->http10 && x->announced > 0;
    // Without a length the library takes what follows for the next request. An empty Content-Length
    // looks to it like none.
    bool unframed = x->method == HTTP_POST && x->announced < 0;
    x->closes = head_lists(connection, "close") || unframed;
    free(version);
    free(length);
    free(coding);
    free(expect);
    free(connection);
}

static void read_path(exchange *x, struct lws *wsi, const char *path, size_t n)
{
    size_t n_query = (size_t)lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS);
    if (memchr(path, 0, n)) {
        x->fault = HTTP_BAD_PATH;
    } else if (n >= sizeof x->path || n + n_query > LINE_MAX_SIZE) {
        x->fault = HTTP_LONG_PATH;
    } else {
        memcpy(x->path, path, n);
        x->path[n] = 0;
    }
}

static void set_body_limit(exchange *x)
{
    uint64_t seconds = BODY_SECONDS + (uint64_t)x->announced / BODY_BYTES_PER_SECOND;
    x->in_body = true;
    x->deadline_ns = now_ns() + seconds * second_ns;
    // A refused body is read if it is short. Then the connection can be used further.
    x->closes = x->closes || (x->status && x->announced > DISCARD_MAX);
}

// The library does not answer 100-continue itself.
static bool send_continue(exchange *x, struct lws *wsi)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char buf[LWS_PRE + sizeof text];
    if (!x->awaits_continue || x->status) return true;
    x->awaits_continue = false;
    memcpy(buf + LWS_PRE, text, sizeof text - 1);
    return lws_write(wsi, (uint8_t *)buf + LWS_PRE, sizeof text - 1, LWS_WRITE_HTTP_HEADERS) >= 0;
}

static int on_head(transport *t, struct lws *wsi, const char *path, size_t n)
{
    exchange *x = lws_get_opaque_user_data(wsi);
    if (x) release(x);
    x = new_exchange(t, wsi);
    if (!x) return -1;
    read_path(x, wsi, path, n);
    x->method = read_method(wsi);
    x->from_loopback = peer_is_loopback(lws_get_socket_fd(wsi));
    read_headers(x, wsi);
    read_framing(x, wsi);
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    t->cfg.head(t->cfg.user, x);
    if (x->announced > 0) {
        set_body_limit(x);
        return send_continue(x, wsi) ? 0 : -1;
    }
    x->in_body = x->announced == 0 && x->method == HTTP_POST; // its end is reported
    if (!x->in_body && !x->status) t->cfg.request(t->cfg.user, x);
    return 0;
}

static int on_body(transport *t, struct lws *wsi, const void *data, size_t n)
{
    exchange *x = lws_get_opaque_user_data(wsi);
    if (!x || x->status) return 0; // refused: it is only read
    return exchange_add_body(x, data, n, t->cfg.body_max) ? 0 : -1;
}

static int on_body_end(transport *t, struct lws *wsi)
{
    exchange *x = lws_get_opaque_user_data(wsi);
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    // A second call for the same body: the client sent more before it had the answer. Version 4.1 of the
    // library then calls without end, so the connection is closed.
    if (!x || x->body_ended || x->lingers) return -1;
    x->body_ended = true;
    x->in_body = false;
    if (x->status)
        flush(x);
    else
        t->cfg.request(t->cfg.user, x);
    return 0;
}

static transport *transport_of(struct lws *wsi)
{
    return lws_context_user(lws_get_context(wsi));
}

static bool is_listening(const transport *t, const struct lws *wsi)
{
    for (int i = 0; i < t->n_listening; i++)
        if (t->listening[i] == wsi) return true;
    return false;
}

static int on_http(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    transport *t = transport_of(wsi);
    exchange *x;
    (void)user;
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return on_head(t, wsi, in, len);
    case LWS_CALLBACK_HTTP_BODY:
        return on_body(t, wsi, in, len);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return on_body_end(t, wsi);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        x = lws_get_opaque_user_data(wsi);
        return x ? write_some(x) : 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: // only HTTP/1.1 is spoken
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return -1;
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_WSI_DESTROY:
        x = lws_get_opaque_user_data(wsi);
        if (x) release(x);
        if (reason == LWS_CALLBACK_WSI_DESTROY && !is_listening(t, wsi) && t->n_open > 0) t->n_open--;
        return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        t->cfg.wake(t->cfg.user);
        return 0;
    default:
        return 0;
    }
}

// --- connections -----------------------------------------------------------------------------------------

static int on_listen(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    transport *t = transport_of(wsi);
    bool full = false;
    (void)user, (void)in, (void)len;
    if (reason != LWS_CALLBACK_RAW_RX_FILE || t->draining) return 0;
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = listen_accept((int)(intptr_t)lws_get_socket_fd(wsi), &full);
        if (fd < 0) break;
        if (t->n_open >= t->cfg.connections || !addresses_add(&t->addresses, fd)) {
            listen_refuse(fd);
            continue;
        }
        t->n_open++; // before: a failure may call back already
        if (!lws_adopt_socket_vhost(t->vhost, fd) && t->n_open > 0) t->n_open--;
    }
    if (full) { // no descriptor is free: waiting for one must not use the processor
        t->paused = true;
        lws_rx_flow_control(wsi, 0);
    }
    return 0;
}

// The library reads nothing between a request and its answer. So the end of the connection would only be
// noticed with the next write, and is asked for here.
static void check_exchanges(transport *t)
{
    uint64_t now = now_ns();
    for (exchange *x = t->exchanges, *next; x; x = next) {
        next = x->next;
        bool waits = x->n_out > x->sent && !(x->in_body && !x->closes);
        // The library gives each piece of a body the time of a head; here the whole has one limit.
        if (x->in_body) lws_set_timeout(x->connection, NO_PENDING_TIMEOUT, 0);
        if (x->in_body && !x->status && !x->ended && now > x->deadline_ns) {
            x->closes = true;
            t->cfg.late(t->cfg.user, x); // answers, which gives it another deadline
        }
        if (((x->in_body || waits) && now > x->deadline_ns) ||
            (!x->in_body && !x->ended && peer_has_left(lws_get_socket_fd(x->connection))))
            exchange_abort(x);
    }
}

static void on_timer(lws_sorted_usec_list_t *timer)
{
    transport *t = lws_container_of(timer, transport, timer);
    check_exchanges(t);
    if (t->paused) {
        t->paused = false;
        for (int i = 0; i < t->n_listening && !t->draining; i++) lws_rx_flow_control(t->listening[i], 1);
    }
    t->cfg.tick(t->cfg.user);
    lws_sul_schedule(t->context, 0, &t->timer, on_timer, TICK_US);
}

static int on_watched(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    transport *t = transport_of(wsi);
    (void)user, (void)in, (void)len;
    if (reason == LWS_CALLBACK_RAW_RX_FILE) t->cfg.wake(t->cfg.user);
    return 0;
}

// --- the whole -------------------------------------------------------------------------------------------

static const struct lws_protocols protocols[] = {
    {.name = "http", .callback = on_http},
    {.name = "listen", .callback = on_listen},
    {.name = "watch", .callback = on_watched},
    {.name = NULL},
};

static void no_log(int level, const char *line)
{
    (void)level, (void)line;
}

static bool adopt_listeners(transport *t)
{
    for (int i = 0; i < t->l.n; i++) {
        lws_sock_file_fd_type fd = {.filefd = t->l.fds[i]};
        struct lws *wsi = lws_adopt_descriptor_vhost(t->vhost, LWS_ADOPT_RAW_FILE_DESC, fd, "listen", NULL);
        if (!wsi) return false;
        t->listening[t->n_listening++] = wsi;
        t->l.fds[i] = -1; // the library closes it
    }
    return true;
}

int transport_open(const transport_config *cfg, transport **out)
{
    transport *t = calloc(1, sizeof *t);
    if (!t) return fail(EXIT_MEMORY, "out of memory for the server");
    t->cfg = *cfg;
    t->cfg.connections = listen_connections(cfg->connections);
    if (!addresses_open(&t->addresses, t->cfg.connections + OTHER_DESCRIPTORS)) {
        free(t);
        return fail(EXIT_MEMORY, "out of memory for the server");
    }
    int code = listen_open(&t->l, cfg->host, cfg->port);
    if (code) {
        addresses_close(&t->addresses);
        free(t);
        return code;
    }
    lws_set_log_level(0, no_log);
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = protocols,
        .user = t,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
        .server_string = "tenon",
        .max_http_header_data = HEAD_MAX,
        .keepalive_timeout = IDLE_SECONDS,
        .timeout_secs = HEAD_SECONDS,
        .timeout_secs_ah_idle = HEAD_SECONDS,
        .options = LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME | LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
    };
    t->context = lws_create_context(&info);
    t->vhost = t->context ? lws_create_vhost(t->context, &info) : NULL;
    if (!t->vhost || !adopt_listeners(t)) {
        transport_close(&t);
        return fail(EXIT_FAILED, "libwebsockets cannot start; too few file descriptors (ulimit -n)?");
    }
    snprintf(t->address, sizeof t->address, "%s", t->l.address);
    *out = t;
    return 0;
}

void transport_close(transport **out)
{
    transport *t = *out;
    if (!t) return;
    if (t->context) lws_context_destroy(t->context);
    for (int i = 0; i < t->l.n; i++)
        if (t->l.fds[i] >= 0) close(t->l.fds[i]);
    t->l.n = 0;
    listen_close(&t->l);
    addresses_close(&t->addresses);
    free(t);
    *out = NULL;
}

void transport_run(transport *t, const volatile int *stop)
{
    lws_sul_schedule(t->context, 0, &t->timer, on_timer, TICK_US);
    while (!*stop && lws_service(t->context, 0) >= 0) continue;
    lws_sul_cancel(&t->timer);
}

void transport_wake(transport *t)
{
    lws_cancel_service(t->context);
}

void *transport_watch(transport *t, int fd)
{
    lws_sock_file_fd_type own = {.filefd = dup(fd)}; // the library closes what it is given
    if (own.filefd < 0) return NULL;
    return lws_adopt_descriptor_vhost(t->vhost, LWS_ADOPT_RAW_FILE_DESC, own, "watch", NULL);
}

void transport_unwatch(void *watch)
{
    lws_set_timeout(watch, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

void transport_drain(transport *t)
{
    if (t->draining) return;
    t->draining = true;
    for (int i = 0; i < t->n_listening; i++)
        lws_set_timeout(t->listening[i], PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

int transport_n_open(const transport *t)
{
    return t->n_open;
}

int transport_n_busy(const transport *t)
{
    return t->n_busy;
}

const char *transport_address(const transport *t)
{
    return t->address;
}
