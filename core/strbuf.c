// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/strbuf.h"

#include <stdio.h>
#include <string.h>

void tn_strbuf_init(tn_strbuf *s, tn_context *ctx)
{
    *s = (tn_strbuf){.ctx = ctx, .status = TN_OK};
}

void tn_strbuf_fini(tn_strbuf *s)
{
    tn_free(s->ctx, s->data);
    *s = (tn_strbuf){.ctx = s->ctx, .status = TN_OK};
}

void tn_strbuf_clear(tn_strbuf *s)
{
    s->size = 0;
    if (s->data) s->data[0] = 0;
}

static char *reserve(tn_strbuf *s, size_t n)
{
    if (s->status != TN_OK) return NULL;
    if (n >= SIZE_MAX / 4 - s->size) {
        s->status = tn_fail(s->ctx, TN_ERR_MEMORY, "out of memory: text of %zu bytes", n);
        return NULL;
    }
    if (s->size + n + 1 > s->capacity) {
        size_t capacity = TN_MAX(s->capacity * 2, s->size + n + 64);
        char *p = tn_realloc(s->ctx, s->data, s->size, capacity);
        if (!p) {
            s->status = TN_ERR_MEMORY;
            return NULL;
        }
        s->data = p;
        s->capacity = capacity;
    }
    return s->data + s->size;
}

void tn_strbuf_reserve(tn_strbuf *s, size_t n)
{
    reserve(s, n);
}

void tn_strbuf_append(tn_strbuf *s, const void *bytes, size_t n)
{
    char *p = reserve(s, n);
    if (!p) return;
    if (n > 0) memcpy(p, bytes, n);
    p[n] = 0;
    s->size += n;
}

void tn_strbuf_puts(tn_strbuf *s, const char *text)
{
    tn_strbuf_append(s, text, strlen(text));
}

void tn_strbuf_printf(tn_strbuf *s, const char *fmt, ...)
{
    enum { USUAL = 64 }; // bytes that most texts fit into, so that they are formatted once
    va_list args, again;
    char *p = reserve(s, USUAL);
    if (!p) return;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(p, USUAL + 1, fmt, args);
    va_end(args);
    if (n > USUAL && (p = reserve(s, (size_t)n))) vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    if (n >= 0 && p) s->size += (size_t)n;
    s->data[s->size] = 0;
}

// Length of the valid UTF-8 sequence at p, 0 if there is none.
static size_t utf8_length(const unsigned char *p, size_t n)
{
    unsigned c = p[0];
    size_t len = c < 0x80                ? 1
                 : c >= 0xc2 && c < 0xe0 ? 2
                 : c >= 0xe0 && c < 0xf0 ? 3
                 : c >= 0xf0 && c < 0xf5 ? 4
                                         : 0;
    if (len == 0 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (len == 3 && c == 0xe0 && p[1] < 0xa0) return 0;
    if (len == 3 && c == 0xed && p[1] >= 0xa0) return 0;
    if (len == 4 && c == 0xf0 && p[1] < 0x90) return 0;
    if (len == 4 && c == 0xf4 && p[1] >= 0x90) return 0;
    return len;
}

void tn_strbuf_json(tn_strbuf *s, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < n;) {
        unsigned c = p[i];
        size_t len = utf8_length(p + i, n - i);
        if (len == 0) {
            tn_strbuf_puts(s, "\\ufffd");
            len = 1;
        } else if (c == '"' || c == '\\') {
            char esc[2] = {'\\', (char)c};
            tn_strbuf_append(s, esc, 2);
        } else if (c == '\n') {
            tn_strbuf_puts(s, "\\n");
        } else if (c < 0x20 || c == 0x7f) {
            tn_strbuf_printf(s, "\\u%04x", c);
        } else {
            tn_strbuf_append(s, p + i, len);
        }
        i += len;
    }
}
