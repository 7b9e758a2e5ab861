// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// HTTP: connections, requests, answers. Only transport.c knows the library behind it. All functions but
// transport_wake belong to the thread that runs transport_run.
#ifndef TENON_TOOLS_SERVER_TRANSPORT_H
#define TENON_TOOLS_SERVER_TRANSPORT_H

#include "tools/server/http/head.h"

#include <stddef.h>

typedef enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_OPTIONS, HTTP_OTHER } http_method;

enum {
    HEADER_HOST,
    HEADER_ORIGIN,
    HEADER_AUTHORIZATION,
    HEADER_API_KEY,
    HEADER_CONTENT_TYPE,
    HEADER_ACCEPT,
    HEADER_REQUEST_METHOD,
    HEADER_REQUEST_HEADERS,
    HEADER_REQUEST_ID,
    HEADER_ACCEPT_ENCODING,
    HEADER_IF_NONE_MATCH,
    HEADER_COUNT
};
enum { PATH_SIZE = 1024, HEADERS_SIZE = 1536 };

typedef struct transport transport;

// A request and its answer. `user` and `route` belong to the application.
typedef struct exchange {
    http_method method;
    char path[PATH_SIZE];        // without the query; "" where `fault` is about it
    char *headers[HEADER_COUNT]; // NULL: absent
    char *body;                  // terminated
    size_t n_body;
    int64_t announced; // Content-Length, -1: none
    http_fault fault;  // why it must be refused
    bool no_memory;    // for some header: what was read of them must not be used
    bool from_loopback;
    uint64_t start_ns;
    int status; // of the answer, 0: none yet
    const struct route *route;
    void *user;
    void (*forget)(struct exchange *x); // `user` is not NULL, and the exchange ends
    char id[72];                        // x-request-id
    char note[160];                     // of the application, for its log
    char more_headers[HEADERS_SIZE];    // lines "name: value\n" that the answer has besides its own
    // the state of transport.c
    transport *owner;
    void *connection;
    struct exchange *next, *before;
    char *out;
    size_t n_out, out_capacity, sent;
    size_t body_capacity;
    uint64_t deadline_ns;
    bool http10, streams, ended, closes, in_body, body_ended, lingers;
    bool awaits_continue; // the client sends its body when it is asked to
} exchange;

typedef struct transport_config {
    const char *host; // an address, a name, a path that begins with '/' for a Unix socket; NULL: loopback
    int port;         // 0: any
    int connections;  // at a time
    size_t body_max;  // bytes
    void *user;
    // The head of a request was read. It may be answered at once; otherwise the body is read.
    void (*head)(void *user, exchange *x);
    void (*request)(void *user, exchange *x);  // it is complete
    void (*identify)(void *user, exchange *x); // it is about to be answered and has no id
    void (*late)(void *user, exchange *x);     // its body takes too long, and the connection will be closed
    void (*gone)(void *user, exchange *x);     // the client left before the answer was sent, or it was sent
    void (*wake)(void *user);                  // after transport_wake, or see transport_watch
    void (*tick)(void *user);                  // several times a second
    void (*log)(void *user, const char *text);
} transport_config;

// 0 or an exit code after a message. Connections are accepted from now on, and served by transport_run.
int transport_open(const transport_config *cfg, transport **out);
void transport_close(transport **t);
// Serves until `*stop` is not 0.
void transport_run(transport *t, const volatile int *stop);
// `wake` is also called when this descriptor is readable, until transport_unwatch; NULL: no descriptor is
// free.
void *transport_watch(transport *t, int fd);
void transport_unwatch(void *watch);
// From any thread.
void transport_wake(transport *t);
// No more connections are accepted, and idle ones are closed.
void transport_drain(transport *t);
int transport_n_open(const transport *t); // connections
int transport_n_busy(const transport *t); // exchanges without a complete answer
// "http://127.0.0.1:8080"
const char *transport_address(const transport *t);

// The head of an answer. length -1: a stream, whose pieces go out as they are written.
void exchange_begin(exchange *x, int status, const char *type, int64_t length);
void exchange_write(exchange *x, const void *data, size_t n);
void exchange_end(exchange *x);
// Ends a stream in the middle and closes the connection.
void exchange_abort(exchange *x);
// A further header of the answer, before it begins.
void exchange_header(exchange *x, const char *name, const char *value);

// exchange.c, for transport.c: memory of an exchange. Bytes that wait to be sent begin at out[EXCHANGE_PRE].
enum { EXCHANGE_PRE = 64 };
bool exchange_append(exchange *x, const void *data, size_t n);
bool exchange_add_body(exchange *x, const void *data, size_t n, size_t most);
void exchange_free(exchange *x);

#endif
