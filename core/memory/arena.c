// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/memory/arena.h"

#include "core/checked.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK_SIZE = 32 * 1024, ARENA_ALIGN = 16 };

struct tn_arena_chunk {
    tn_arena_chunk *next;
    size_t used, size; // of the bytes that follow the header
    TN_ALIGNED(16) char data[];
};

void tn_arena_init(tn_arena *arena, tn_context *ctx)
{
    arena->ctx = ctx;
    arena->chunks = NULL;
}

void tn_arena_fini(tn_arena *arena)
{
    for (tn_arena_chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        tn_free(arena->ctx, c);
    }
    arena->chunks = NULL;
}

void *tn_arena_alloc(tn_arena *arena, size_t size)
{
    size_t need;
    if (!tn_round_up_size(size ? size : 1, ARENA_ALIGN, &need) || need > SIZE_MAX - CHUNK_SIZE) {
        tn_fail(arena->ctx, TN_ERR_MEMORY, "out of memory: %zu bytes wanted", size);
        return NULL;
    }
    tn_arena_chunk *c = arena->chunks;
    if (!c || c->size - c->used < need) {
        size_t capacity = TN_MAX(need, (size_t)CHUNK_SIZE);
        c = tn_alloc(arena->ctx, sizeof *c + capacity);
        if (!c) return NULL;
        *c = (tn_arena_chunk){.next = arena->chunks, .size = capacity};
        memset(c->data, 0, capacity);
        arena->chunks = c;
    }
    void *p = c->data + c->used;
    c->used += need;
    return p;
}

void *tn_arena_array(tn_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (!tn_mul_size(count, size, &bytes)) {
        tn_fail(arena->ctx, TN_ERR_MEMORY, "out of memory: %zu items of %zu bytes wanted", count, size);
        return NULL;
    }
    return tn_arena_alloc(arena, bytes);
}

char *tn_arena_strdup(tn_arena *arena, const char *text)
{
    size_t n = strlen(text);
    char *p = tn_arena_alloc(arena, n + 1);
    if (p) memcpy(p, text, n);
    return p;
}

char *tn_arena_printf(tn_arena *arena, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return tn_arena_strdup(arena, text);
}
