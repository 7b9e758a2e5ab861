// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One GET at a time, by libcurl, which is opened when it is needed: the program starts without it.
#ifndef TENON_TOOLS_HTTP_H
#define TENON_TOOLS_HTTP_H

#include "tools/store/sha256.h"

enum { HTTP_URL = 4096, HTTP_VALIDATOR = 256, HTTP_WHY = 512, HTTP_ORIGIN = 300 };

typedef struct http http;

// What the headers of a response say.
typedef struct http_head {
    long status;
    int64_t length;                 // bytes of the body; -1: not known
    int64_t first, total;           // of Content-Range; -1: not known
    char validator[HTTP_VALIDATOR]; // what If-Range may name: a strong ETag, else Last-Modified; or ""
    char type[64];                  // Content-Type
    char host[128];                 // that answered
    int64_t retry_after;            // seconds; -1: not known
    bool gated;                     // X-Error-Code says that terms must be accepted
    // Hugging Face names the file that a redirect leads to: its SHA-256 or "", its size or -1.
    char linked_sha256[SHA256_HEX];
    int64_t linked_size;
} http_head;

typedef struct http_request {
    const char *url;
    const char *token, *token_origin; // the token is sent to this origin only; NULL: none
    bool plain;                       // http:// is allowed, at the start and in redirects from http://
    uint64_t first;                   // the first byte that is wanted
    const char *validator;            // all of it if it changed since; "": whatever it is
    int64_t timeout;                  // seconds without a byte
    // Before the body, which is given in pieces if the status is 200 or 206. False ends the request.
    bool (*on_head)(void *user, const http_head *head);
    bool (*on_data)(void *user, const void *data, size_t n);
    void *user;
} http_request;

typedef enum http_result {
    HTTP_DONE,        // a whole response came, of whatever status
    HTTP_STOPPED,     // by on_head or on_data
    HTTP_INTERRUPTED, // by Ctrl-C
    HTTP_BROKEN,      // the network or the server failed; another attempt may succeed
    HTTP_REFUSED,     // every attempt would fail alike
} http_result;

// 0, or an exit code after a message that says how to get libcurl.
int http_open(http **out);
void http_close(http **h);
// *head: of the last response; `why`: the reason if the result is HTTP_BROKEN or HTTP_REFUSED.
http_result http_get(http *h, const http_request *r, http_head *head, char why[HTTP_WHY]);
// "https://host:port" of a URL, all lower case, and its host; false: no such URL, or one with a password in
// it.
bool http_origin(http *h, const char *url, char origin[HTTP_ORIGIN], char *host, size_t host_size);

#endif
