// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A growing text or byte buffer. The first failed allocation is kept in `status`; later calls do nothing,
// so that a writer checks once at its end.
#ifndef TN_CORE_STRBUF_H
#define TN_CORE_STRBUF_H

#include "core/context.h"

typedef struct tn_strbuf {
    tn_context *ctx;
    char *data; // always terminated by a 0 byte when not NULL
    size_t size, capacity;
    tn_status status;
} tn_strbuf;

void tn_strbuf_init(tn_strbuf *s, tn_context *ctx);
void tn_strbuf_fini(tn_strbuf *s);
void tn_strbuf_reserve(tn_strbuf *s, size_t n); // n more bytes will be appended
void tn_strbuf_append(tn_strbuf *s, const void *bytes, size_t n);
void tn_strbuf_puts(tn_strbuf *s, const char *text);
void tn_strbuf_printf(tn_strbuf *s, const char *fmt, ...) TN_PRINTF(2, 3);
// Text as the inside of a JSON string: quotes, backslashes and control bytes escaped; invalid UTF-8
// becomes U+FFFD.
void tn_strbuf_json(tn_strbuf *s, const char *text, size_t n);
void tn_strbuf_clear(tn_strbuf *s);

#endif
