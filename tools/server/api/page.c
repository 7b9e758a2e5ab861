// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GET / and the files of the page. They are part of the program; a browser keeps them and asks each time
// whether they are still the same (304).
#include "tools/server/page.h"
#include "tools/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Nothing from elsewhere, nothing inline, no frames: text of the model that gets into the page as markup by
// mistake can neither run nor send anything away, not even by the address of an image.
static const char policy[] = "default-src 'none'; connect-src 'self'; img-src 'self' data:; "
                             "style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'; "
                             "frame-ancestors 'none'";

// Whether one member of Accept-Encoding, of n bytes, names gzip with a weight other than 0.
static bool names_gzip(const char *member, size_t n)
{
    char text[64];
    if (n >= sizeof text) return false;
    memcpy(text, member, n);
    text[n] = 0;
    size_t name = strcspn(text, "; \t");
    bool gzip = (name == 4 && strncasecmp(text, "gzip", name) == 0) || (name == 1 && text[0] == '*');
    const char *weight = strstr(text + name, "q=");
    return gzip && (!weight || strtod(weight + 2, NULL) > 0);
}

static bool accepts_gzip(const char *header)
{
    for (const char *p = header; p && *p;) {
        p += strspn(p, " \t,");
        size_t n = strcspn(p, ",");
        if (names_gzip(p, n)) return true;
        p += n;
    }
    return false;
}

// Programs that look for Ollama ask for "/"; browsers say that they want a page. Who says nothing gets it
// too.
static bool wants_ollama(const exchange *x)
{
    const char *accept = x->headers[HEADER_ACCEPT];
    return strcmp(x->path, "/") == 0 && accept && !head_lists_type(accept, "text/html");
}

static void answer_ollama(exchange *x)
{
    static const char text[] = "Ollama is running";
    exchange_header(x, "vary", "Accept");
    reply_bytes(x, 200, "text/plain; charset=utf-8", text, sizeof text - 1);
}

void route_page(server *s, exchange *x)
{
    if (wants_ollama(x)) {
        answer_ollama(x);
        return;
    }
    const page_file *f = NULL;
    for (size_t i = 0; i < n_page_files; i++)
        if (strcmp(page_files[i].path, x->path) == 0) f = &page_files[i];
    if (!f) {
        reply_error(s, x, ERROR_PATH, NULL, "the page of this build has no %.100s", x->path);
        return;
    }
    bool gzip = f->gzip.bytes && accepts_gzip(x->headers[HEADER_ACCEPT_ENCODING]);
    const page_variant *v = gzip ? &f->gzip : &f->plain;
    exchange_header(x, "etag", v->tag);
    exchange_header(x, "cache-control", "no-cache");
    exchange_header(x, "vary", strcmp(x->path, "/") == 0 ? "Accept, Accept-Encoding" : "Accept-Encoding");
    exchange_header(x, "content-security-policy", policy);
    exchange_header(x, "referrer-policy", "no-referrer");
    // The tags have their quotes and hold nothing that needs escapes, so being part of the list is enough.
    const char *known = x->headers[HEADER_IF_NONE_MATCH];
    if (known && (strstr(known, v->tag) || strcmp(known, "*") == 0)) {
        exchange_begin(x, 304, NULL, 0);
    } else {
        if (gzip) exchange_header(x, "content-encoding", "gzip");
        exchange_begin(x, 200, f->type, (int64_t)v->n);
        exchange_write(x, v->bytes, v->n);
    }
    exchange_end(x);
}
