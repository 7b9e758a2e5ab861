// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory of an exchange: the body as it comes, the answer as it waits.
#include "tools/server/http/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool exchange_append(exchange *x, const void *data, size_t n)
{
    if (x->n_out + n > x->out_capacity) {
        size_t capacity = (x->n_out + n) * 2 + 1024;
        char *more = realloc(x->out, EXCHANGE_PRE + capacity);
        if (!more) return false;
        x->out = more;
        x->out_capacity = capacity;
    }
    if (n) memcpy(x->out + EXCHANGE_PRE + x->n_out, data, n);
    x->n_out += n;
    return true;
}

bool exchange_add_body(exchange *x, const void *data, size_t n, size_t most)
{
    if (n > most || x->n_body > most - n) return false;
    if (x->n_body + n + 1 > x->body_capacity) {
        // Memory comes with the bytes: an announced length alone costs none.
        size_t capacity = 2 * (x->n_body + n), announced = x->announced > 0 ? (size_t)x->announced : 0;
        if (capacity > announced && announced >= x->n_body + n) capacity = announced;
        char *more = realloc(x->body, capacity + 1);
        if (!more) return false;
        x->body = more;
        x->body_capacity = capacity + 1;
    }
    if (n) memcpy(x->body + x->n_body, data, n);
    x->body[x->n_body += n] = 0;
    return true;
}

void exchange_header(exchange *x, const char *name, const char *value)
{
    size_t used = strlen(x->more_headers);
    int n = snprintf(x->more_headers + used, sizeof x->more_headers - used, "%s: %s\n", name, value);
    if (n < 0 || (size_t)n >= sizeof x->more_headers - used) x->more_headers[used] = 0;
}

void exchange_free(exchange *x)
{
    for (int i = 0; i < HEADER_COUNT; i++) free(x->headers[i]);
    free(x->body);
    free(x->out);
    free(x);
}
