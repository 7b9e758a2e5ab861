// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The bounds-checked cursor: the only way to bytes of a file. A read that does not fit returns false and
// moves nothing. Numbers are little endian and usually misaligned, so they are put together byte by byte.
#ifndef TN_MODELS_GGUF_CURSOR_H
#define TN_MODELS_GGUF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_cursor {
    const uint8_t *data;
    size_t size, pos; // pos <= size always
    size_t absent;    // bytes at the end that the file has, but that are not at `data`
} tn_cursor;

static inline uint64_t tn_load_le(const uint8_t *p, size_t n_bytes)
{
    uint64_t v = 0;
    for (size_t i = n_bytes; i > 0; i--) v = v << 8 | p[i - 1];
    return v;
}

// What the file has behind the position.
static inline size_t tn_cursor_left(const tn_cursor *c)
{
    return c->size - c->pos;
}

// Returns the address of the next n bytes and moves behind them.
static inline bool tn_cursor_bytes(tn_cursor *c, uint64_t n, const uint8_t **out)
{
    if (n > tn_cursor_left(c) - c->absent) return false;
    *out = c->data + c->pos;
    c->pos += (size_t)n;
    return true;
}

static inline bool tn_cursor_u32(tn_cursor *c, uint32_t *out)
{
    const uint8_t *p;
    if (!tn_cursor_bytes(c, 4, &p)) return false;
    *out = (uint32_t)tn_load_le(p, 4);
    return true;
}

static inline bool tn_cursor_u64(tn_cursor *c, uint64_t *out)
{
    const uint8_t *p;
    if (!tn_cursor_bytes(c, 8, &p)) return false;
    *out = tn_load_le(p, 8);
    return true;
}

#endif
